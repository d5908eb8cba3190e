"""Measure what a reader of suites learns by looking up known networks: each sample in turn is private.

usage: python -m benchmarks.suite_lookup [--format mxnet|onnx] [--level LEVEL] [--only TEXT]...

The reader has every sample model, knows this program, and has not the key. He looks up each brick of a suite among
those of the samples: as it is, and by its operators and weights alone, whatever the size of the image. He joins
excerpts that have equal bricks.
"""

import argparse
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import mean
from typing import NamedTuple

from dlbricks_tui.bricks.decomposition import Decomposition, decompose
from dlbricks_tui.folders import SAMPLE_MODELS
from dlbricks_tui.models.errors import ModelError
from dlbricks_tui.models.frameworks import WorkerFramework
from dlbricks_tui.models.graph import Level, Shape
from dlbricks_tui.models.library import Library, ModelSource
from dlbricks_tui.models.loading import Loader
from dlbricks_tui.runtime.registry import Registry
from dlbricks_tui.runtime.traits import Format
from dlbricks_tui.share.exporting import chosen_decoys, like_sized
from dlbricks_tui.share.packing import SuiteModel
from dlbricks_tui.share.suite_files import seed_of

DECOYS = 3
# A network counts as found when so many of its bricks are in the suite: a few are in every network.
FOUND = 0.95


class Joined(NamedTuple):
    """The share of a private model's layers in the largest part, and of decoys among that part's bricks."""

    layers: float
    of_decoys: float


class Outcome(NamedTuple):
    """The finds of a reader in the suite of one private model."""

    found: bool
    candidates: int
    found_by_weights: bool
    candidates_by_weights: int
    decoys_known: float
    decoys_known_by_weights: float
    beside_others: float
    joined: Joined


def main() -> int:
    """Print the means over all private models."""
    asked = _arguments()
    form, level = Format.ONNX if asked.format == "onnx" else Format.MXNET, Level(asked.level)
    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder)
        (here / "log").mkdir()
        with WorkerFramework(Registry(here).runtime_for({form}), here / "log" / "framework.log") as framework:
            outcomes = list(attacks(here, Loader(here / "cache", framework, framework), form, level, asked.only))
    print(f"{len(outcomes)} private {form.value} models among {DECOYS} decoys each, level {level.value}, G=1")
    print(f"looked up as they are:    found {mean(it.found for it in outcomes):.0%} of the private models,")
    print(f"                          among {mean(it.candidates for it in outcomes):.1f} networks that are all there,")
    print(f"                          and {mean(it.decoys_known for it in outcomes):.0%} of the decoys' own bricks")
    print(f"looked up by weights:     found {mean(it.found_by_weights for it in outcomes):.0%} of the private models,")
    print(f"                          among {mean(it.candidates_by_weights for it in outcomes):.1f} networks,")
    print(
        f"                          and {mean(it.decoys_known_by_weights for it in outcomes):.0%} of the decoys' bricks"
    )
    print(f"bricks that come with layers around them: {mean(it.beside_others for it in outcomes):.0%}")
    print(f"layers in the largest joined part:        {mean(it.joined.layers for it in outcomes):.0%}")
    print(f"bricks of decoys in that part:            {mean(it.joined.of_decoys for it in outcomes):.0%}")
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--format", choices=("mxnet", "onnx"), default="mxnet")
    parser.add_argument("--level", choices=[level.value for level in Level], default=Level.FUSED.value)
    parser.add_argument("--only", action="append", default=[], metavar="TEXT", help="networks with this in their names")
    return parser.parse_args()


def attacks(here: Path, loader: Loader, form: Format, level: Level, only: Sequence[str]) -> Iterator[Outcome]:
    """Yield the outcome of one suite after another."""
    samples = [source.in_format(form) for source in Library(SAMPLE_MODELS, here).samples() if form in source.formats]
    asked = [source for source in samples if not only or any(text in source.name for text in only)]
    sources = {source.path: source for source in asked}
    known = dict(_loaded(sources, loader, level))
    exact = {path: frozenset(keys(it)) for path, it in known.items()}
    loose = {path: frozenset(outlines(it)) for path, it in known.items()}

    def take(source: ModelSource, shapes: Mapping[str, Shape]) -> Sequence[SuiteModel]:
        if not shapes and source.path in known:
            return [SuiteModel(known[source.path])]
        return [SuiteModel(decompose(loader.load(source, level, shapes)))]

    for path, private in known.items():
        model = SuiteModel(private)
        pool = like_sized(list(sources.values()), {path: model}, DECOYS)
        chosen = chosen_decoys(pool, DECOYS, seed_of(f"lookup {path.name}"), [model], take)
        decoys = [it.decomposition for it in chosen]
        here_exact = frozenset(key for it in (private, *decoys) for key in keys(it))
        here_loose = frozenset(key for it in (private, *decoys) for key in outlines(it))
        hits, loose_hits = found(exact, here_exact), found(loose, here_loose)
        own = frozenset(key for it in decoys for key in keys(it)) - frozenset(keys(private))
        own_loose = frozenset(key for it in decoys for key in outlines(it)) - frozenset(outlines(private))
        others = frozenset().union(*(it for other, it in exact.items() if other != path))
        others_loose = frozenset().union(*(it for other, it in loose.items() if other != path))
        yield Outcome(
            path in hits,
            len(hits),
            path in loose_hits,
            len(loose_hits),
            len(own & others) / len(own) if own else 1.0,
            len(own_loose & others_loose) / len(own_loose) if own_loose else 1.0,
            mean(len(shown) > 1 for shown in shown_together(private)),
            joined_part(private, decoys),
        )


def _loaded(sources: Mapping[Path, ModelSource], loader: Loader, level: Level) -> Iterator[tuple[Path, Decomposition]]:
    for path, source in sources.items():
        try:
            yield path, decompose(loader.load(source, level))
        except ModelError as refusal:
            print(f"left out: {refusal}", file=sys.stderr)


def shown_together(decomposition: Decomposition) -> Iterator[frozenset[str]]:
    """Yield the bricks of each excerpt of a model: that of a layer, and those of its neighbours.

    Few excerpts reach further. A brick travels once, with the neighbours of its first layer.
    """
    graph = decomposition.graph
    by_layer = {it.sequence.layers[0]: it.brick.key for it in decomposition.occurrences}
    seen: set[str] = set()
    for layer, key in by_layer.items():
        if key not in seen:
            seen.add(key)
            near = (layer, *graph.predecessors[layer], *graph.successors[layer])
            yield frozenset(by_layer[it] for it in near if it in by_layer)


def joined_part(private: Decomposition, decoys: Sequence[Decomposition]) -> Joined:
    """Return the part with most layers of the private model, when excerpts with an equal brick are joined."""
    parts: list[set[str]] = []
    for shown in (shown for it in (private, *decoys) for shown in shown_together(it)):
        touched = [part for part in parts if not part.isdisjoint(shown)]
        parts = [part for part in parts if part.isdisjoint(shown)]
        parts.append(set(shown).union(*touched))
    layers = Counter(keys(private))
    shares = [(sum(layers[key] for key in part) / layers.total(), part) for part in parts]
    share, part = max(shares, key=lambda it: it[0])
    return Joined(share, sum(key not in layers for key in part) / len(part))


def found(catalogue: Mapping[Path, frozenset[str]], here: frozenset[str]) -> list[Path]:
    """Return the networks that are in a suite, as far as a reader sees."""
    return [path for path, held in catalogue.items() if len(held & here) >= FOUND * len(held)]


def keys(decomposition: Decomposition) -> list[str]:
    """Return the bricks as they are."""
    return [it.brick.key for it in decomposition.occurrences]


def outlines(decomposition: Decomposition) -> list[str]:
    """Return the bricks that have weights, without the tensors that pass through them."""
    forms = (json.loads(it.brick.canonical) for it in decomposition.occurrences)
    return [json.dumps([form["operators"], form["weights"]]) for form in forms if form["weights"]]


if __name__ == "__main__":
    sys.exit(main())
