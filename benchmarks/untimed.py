"""What models and the sums of their bricks take, by how often each runs untimed before it is timed.

usage: python -m benchmarks.untimed [--level LEVEL] [MODEL ...]

MODEL is a name that `dlbricks models` lists, or table1:ID. Programs take turns, as in a run, so that each finds in the
caches what others have left there. Bricks whose weights are cold are timed in one way only, as ever. Below the sums are
the bricks that gain or lose most of a model by it.
"""

import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from statistics import median
from typing import NamedTuple

from benchmarks.chosen_models import (
    ROUNDS,
    WHOLE,
    Chosen,
    Place,
    chosen_models,
    load,
    places_of,
    round_ms,
)
from dlbricks_tui.bricks.programs import model_program, sequence_program
from dlbricks_tui.models.graph import LayerGraph
from dlbricks_tui.runtime.process import Worker

MODELS = ("table1:10",)
WAYS = (1, 3, 5, 8, 12)
MOST_SHOWN = 6


class Found(NamedTuple):
    """What a model takes, and each of its bricks, in each way and without regard to it."""

    places: Mapping[str, Place]
    whole_ms: Mapping[int, float]
    bricks_ms: Mapping[int, Mapping[str, float]]
    others_ms: float

    def sum_ms(self, untimed: int) -> float:
        """What the bricks add up to."""
        return self.others_ms + sum(self.places[name].times * taken for name, taken in self.bricks_ms[untimed].items())

    def gain_ms(self, name: str) -> float:
        """How much more of the model a brick is at last than at first."""
        return self.places[name].times * (self.bricks_ms[WAYS[-1]][name] - self.bricks_ms[WAYS[0]][name])


def main() -> int:
    """Prints a table for each model."""
    with chosen_models(__doc__, MODELS) as chosen:
        for graph in chosen.graphs:
            tell(graph, found_of(graph, chosen))
    return 0


def found_of(graph: LayerGraph, chosen: Chosen) -> Found:
    """A model and its bricks, by rounds over all that differ."""
    places = {str(number): place for number, place in enumerate(places_of(graph).values())}
    programs = {name: sequence_program(graph, place.layers) for name, place in places.items()}
    cold = {name: 0 for name, program in programs.items() if program.cold}
    samples: dict[tuple[str, int], list[float]] = defaultdict(list)
    with Worker(chosen.runtime, chosen.folder / "log") as worker:
        load(worker, WHOLE, model_program(graph))
        for name, program in programs.items():
            load(worker, name, program)
        for _ in range(ROUNDS):
            for untimed in WAYS:
                asked = {name: untimed for name in (WHOLE, *places) if name not in cold}
                for name, taken_ms in round_ms(worker, asked).items():
                    samples[name, untimed].append(taken_ms)
            for name, taken_ms in round_ms(worker, cold).items():
                samples[name, 0].append(taken_ms)
    return Found(
        places,
        {untimed: median(samples[WHOLE, untimed]) for untimed in WAYS},
        {untimed: {name: median(samples[name, untimed]) for name in places if name not in cold} for untimed in WAYS},
        sum(places[name].times * median(samples[name, 0]) for name in cold),
    )


def tell(graph: LayerGraph, found: Found) -> None:
    """Prints what was found of a model."""
    print(f"{graph.name}, {graph.level.value}")
    row("untimed runs", WAYS, "")
    row("model", [found.whole_ms[untimed] for untimed in WAYS], ".2f")
    row("sum of bricks", [found.sum_ms(untimed) for untimed in WAYS], ".2f")
    row("wrong by", [100 * (found.sum_ms(untimed) / found.whole_ms[untimed] - 1) for untimed in WAYS], "+.1f")
    for name in sorted(found.bricks_ms[WAYS[0]], key=lambda name: -abs(found.gain_ms(name)))[:MOST_SHOWN]:
        place = found.places[name]
        first = graph.layers[place.layers[0]].name
        row(f"  {first[:28]} x{place.times}", [found.bricks_ms[untimed][name] for untimed in WAYS], ".3f")


def row(name: str, cells: Sequence[float], form: str) -> None:
    """Prints a line of a table, in milliseconds or percent."""
    print(f"{name:36}" + "".join(f"{format(cell, form):>9}" for cell in cells), flush=True)


if __name__ == "__main__":
    sys.exit(main())
