"""Measure what a reader of suites learns by looking up known networks: each sample in turn is private.

usage: python -m benchmarks.suite_lookup [LEVEL]

The reader has every sample model, knows this program, and has not the key. He looks up each brick of a suite among
those of the samples: as it is, and by its operators and weights alone, whatever the size of the image.
"""

import json
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import mean
from typing import NamedTuple

from dlbricks_tui.bricks.decomposition import Decomposition, decompose
from dlbricks_tui.bricks.excerpts import Excerpt, excerpt
from dlbricks_tui.bricks.layouts import output_layouts
from dlbricks_tui.folders import SAMPLE_MODELS
from dlbricks_tui.models.frameworks import WorkerFramework
from dlbricks_tui.models.graph import Level, Shape
from dlbricks_tui.models.library import Library, ModelSource
from dlbricks_tui.models.loading import Loader
from dlbricks_tui.runtime.registry import Registry
from dlbricks_tui.runtime.traits import Format
from dlbricks_tui.share.suites.exporting import chosen_decoys
from dlbricks_tui.share.suites.packing import MXNetPacking, SuiteModel
from dlbricks_tui.share.suites.seed import seed_of

DECOYS = 3
# A network counts as found when so many of its bricks are in the suite: a few are in every network.
FOUND = 0.95


class Outcome(NamedTuple):
    """What became of one private model."""

    found: bool
    candidates: int
    found_by_weights: bool
    candidates_by_weights: int
    decoys_known: float
    decoys_known_by_weights: float
    beside_others: float


def main() -> int:
    """Prints the means over all private models."""
    level = Level(sys.argv[1] if sys.argv[1:] else Level.FUSED.value)
    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder)
        (here / "log").mkdir()
        with WorkerFramework(Registry(here).runtime_for({Format.MXNET}), here / "log" / "framework.log") as framework:
            outcomes = list(attacks(here, Loader(here / "cache", framework), level))
    print(f"{len(outcomes)} private models among {DECOYS} decoys each, level {level.value}, G=1")
    print(f"looked up as they are:    found {mean(it.found for it in outcomes):.0%} of the private models,")
    print(f"                          among {mean(it.candidates for it in outcomes):.1f} networks that are all there,")
    print(f"                          and {mean(it.decoys_known for it in outcomes):.0%} of the decoys' own bricks")
    print(f"looked up by weights:     found {mean(it.found_by_weights for it in outcomes):.0%} of the private models,")
    print(f"                          among {mean(it.candidates_by_weights for it in outcomes):.1f} networks,")
    print(
        f"                          and {mean(it.decoys_known_by_weights for it in outcomes):.0%} of the decoys' bricks"
    )
    print(f"bricks that come with layers before them: {mean(it.beside_others for it in outcomes):.0%}")
    return 0


def attacks(here: Path, loader: Loader, level: Level) -> Iterable[Outcome]:
    """One suite after another."""
    sources = {
        source.path: source for source in Library(SAMPLE_MODELS, here).samples() if source.format is Format.MXNET
    }
    known = {path: decompose(loader.load(source, level)) for path, source in sources.items()}
    exact = {path: frozenset(keys(it)) for path, it in known.items()}
    loose = {path: frozenset(outlines(it)) for path, it in known.items()}

    def take(source: ModelSource, shapes: Mapping[str, Shape]) -> Sequence[SuiteModel]:
        return [SuiteModel(decompose(loader.load(source, level, shapes)))]

    for path, private in known.items():
        pool = [source for source in sources.values() if source.path != path]
        seed, packings = seed_of(f"lookup {path.name}"), {"mxnet": MXNetPacking(None)}
        chosen = chosen_decoys(pool, DECOYS, seed, [SuiteModel(private)], take, packings)
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
            mean(len(it.graph.layers) > it.held for it in taken_out(private)),
        )


def found(catalogue: Mapping[Path, frozenset[str]], here: frozenset[str]) -> list[Path]:
    """The networks that are in a suite, as far as a reader sees."""
    return [path for path, held in catalogue.items() if len(held & here) >= FOUND * len(held)]


def keys(decomposition: Decomposition) -> list[str]:
    """The bricks as they are."""
    return [it.brick.key for it in decomposition.occurrences]


def outlines(decomposition: Decomposition) -> list[str]:
    """The bricks that have weights, without the tensors that pass through them."""
    forms = (json.loads(it.brick.canonical) for it in decomposition.occurrences)
    return [json.dumps([form["operators"], form["weights"]]) for form in forms if form["weights"]]


def taken_out(decomposition: Decomposition) -> Iterable[Excerpt]:
    """What travels of a model."""
    layouts = output_layouts(decomposition.graph)
    pairs = {(it.brick.key, it.context): it for it in decomposition.occurrences}
    return (excerpt(decomposition.graph, it.sequence.layers, layouts) for it in pairs.values())


if __name__ == "__main__":
    sys.exit(main())
