"""`dlbricks corpus`: repetition within and across models (the paper, section 2.2)."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from dlbricks_tui.cli.options import add_cutting_options, add_models_argument, cutting_of, level_of, shapes_of
from dlbricks_tui.cli.output import Json, data_console, show, write_json
from dlbricks_tui.cli.parser import Groups, Status, add_json_option
from dlbricks_tui.cli.store import load_all, open_loader

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dlbricks_tui.bricks.corpus import Corpus
    from dlbricks_tui.bricks.decomposition import Decomposition
    from dlbricks_tui.config.config import Config
    from dlbricks_tui.models.library import ModelSource
    from dlbricks_tui.settings import DataFolder


def register(groups: Groups) -> None:
    """Add `corpus`."""
    parser = groups.add_parser("corpus", help="show how much of one model, or of several, is the same")
    add_models_argument(parser, many=True)
    add_cutting_options(parser, level="written")
    add_json_option(parser)
    parser.set_defaults(handler=show_corpus)


def show_corpus(args: argparse.Namespace) -> int:
    """Cut all models, compare their layer sequences, and show the result."""
    from dlbricks_tui.answers.opening import library
    from dlbricks_tui.bricks.corpus import compare, model_bricks
    from dlbricks_tui.bricks.decomposition import decompose
    from dlbricks_tui.models.graph import Level

    sources = library(args.data).find_all(args.models)
    with open_loader(args.data) as loader:
        loaded = load_all(loader, sources, level_of(args) or Level.WRITTEN, shapes_of(args))
    how = cutting_of(args)
    decompositions = [decompose(graph, how) for _, graph in loaded]
    corpus = compare([model_bricks(decomposition) for decomposition in decompositions])
    known = [source for source, _ in loaded]
    speedup = _speedup(args.data, args.config, decompositions)
    if args.json:
        write_json(_document(corpus, known, decompositions, speedup))
    else:
        from dlbricks_tui.cli.corpus_view import corpus_view

        unit = "layers" if how.granularity == 1 else "sequences"
        show(*corpus_view(corpus, [_label(source) for source in known], unit, speedup, data_console()))
    return Status.DONE if len(loaded) == len(sources) else Status.DONE_WITH_FAILURES


def _speedup(data: DataFolder, config: Config, decompositions: Sequence[Decomposition]) -> float | None:
    """Return the time of the models on this host over that of their unique bricks; None if either is unmeasured."""
    if not data.store.exists():
        return None
    from dlbricks_tui.answers.estimating import usual_runtimes
    from dlbricks_tui.estimate.accuracy import speedup
    from dlbricks_tui.estimate.inquiry import Inquiry
    from dlbricks_tui.host.fingerprint import fingerprint
    from dlbricks_tui.store.store import Store

    host, runtimes = fingerprint().id, usual_runtimes(data, config.runtime, config.threads)
    with Store(data.store) as store:
        found = [
            Inquiry(store.generation, it).on(host, runtimes[it.graph.format].identity)
            for it in decompositions
            if it.graph.format in runtimes
        ]
        return speedup([estimate for estimate in found if estimate is not None])


def _document(
    corpus: Corpus, sources: Sequence[ModelSource], decompositions: Sequence[Decomposition], speedup: float | None
) -> Json:
    layers = [len(decomposition.graph.layers) for decomposition in decompositions]
    return {
        "layers": sum(layers),
        "sequences": corpus.layers,
        "unique_layers": corpus.unique_layers,
        "contexts": corpus.contexts,
        "models": [
            {
                "model": source.name,
                "table1_id": source.table1_id,
                "layers": count,
                "sequences": model.layers,
                "unique_layers": model.unique_layers,
                "contexts": model.contexts,
                "share": model.share,
            }
            for source, count, model in zip(sources, layers, corpus.models, strict=True)
        ],
        "jaccard": corpus.jaccard,
        "repeated_types": [
            {"kind": found.kind.value, "layers": found.layers, "repeated": found.repeated}
            for found in corpus.repeated_types
        ],
        "speedup": speedup,
    }


def _label(source: ModelSource) -> str:
    return f"table1:{source.table1_id} {source.name}" if source.table1_id else source.name
