"""`dlbricks corpus`: repetition within and across models (the paper, section 2.2, figures 5, 6 and 7)."""

import argparse
from collections.abc import Sequence
from typing import Any

from dlbricks_tui.bricks.corpus import Corpus, compare, model_bricks
from dlbricks_tui.bricks.decomposition import Decomposition, decompose
from dlbricks_tui.cli.options import (
    add_cutting_options,
    add_models_argument,
    add_runtime_option,
    cutting_of,
    runtime_of,
    shapes_of,
    sources_of,
    values_given,
)
from dlbricks_tui.cli.output import write_json
from dlbricks_tui.cli.parser import Parser, Status, add_json_option
from dlbricks_tui.cli.rendering import show_parts
from dlbricks_tui.cli.store import load_all, open_loader
from dlbricks_tui.documents.corpus import corpus_parts
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.models.graph import Level
from dlbricks_tui.models.library import ModelSource


def register(parser: Parser) -> None:
    """Add the options of `corpus`."""
    add_models_argument(parser, many=True)
    add_cutting_options(parser, level=Level.WRITTEN)
    add_runtime_option(parser)
    add_json_option(parser)
    parser.set_defaults(handler=show_corpus)


def show_corpus(args: argparse.Namespace) -> int:
    """Cut all models, compare their layer sequences, and show the result."""
    sources = sources_of(args, args.models)
    with open_loader(args.data, runtime_of(args)) as loader:
        loaded = load_all(loader, sources, args.level, shapes_of(args), values_given(args))
    how = cutting_of(args)
    decompositions = [decompose(graph, how, loader.cache) for _, graph in loaded]
    corpus = compare([model_bricks(decomposition) for decomposition in decompositions])
    known = [source for source, _ in loaded]
    speedup = _speedup(args.data, args.runtime, args.config.threads, decompositions)
    if args.json:
        write_json(_document(corpus, known, decompositions, speedup))
    else:
        unit = "layer" if how.granularity == 1 else "sequence"
        show_parts(corpus_parts(corpus, [_label(source) for source in known], unit, speedup))
    return Status.DONE if len(loaded) == len(sources) else Status.DONE_WITH_FAILURES


def _speedup(
    data: DataFolder, runtime: str | None, threads: int | None, decompositions: Sequence[Decomposition]
) -> float | None:
    """Return the time of the models on this host over that of their unique bricks; None if either is unmeasured."""
    if not data.store.exists():
        return None
    from dlbricks_tui.answers.estimating import estimates_here
    from dlbricks_tui.estimate.comparison import speedup

    found = estimates_here(data, runtime, threads, decompositions)
    return speedup([estimate for estimate in found if estimate is not None])


def _document(
    corpus: Corpus, sources: Sequence[ModelSource], decompositions: Sequence[Decomposition], speedup: float | None
) -> dict[str, Any]:
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
        "repeated_types": corpus.repeated_types,
        "speedup": speedup,
    }


def _label(source: ModelSource) -> str:
    return f"table1:{source.table1_id} {source.name}" if source.table1_id else source.name
