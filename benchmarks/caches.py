"""What models take beside the sums of their bricks, timed with warm caches and with cold ones.

usage: python -m benchmarks.caches [--level LEVEL] [MODEL ...]

MODEL is a name that `dlbricks models` lists, or table1:ID. In rounds, in one worker: the model, its bricks after they
have just run, and its bricks after 64 MiB of something else went through the caches. Printed is by how much their sums
miss the model; the last line has the mean absolute errors.
"""

import sys
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from statistics import median
from typing import NamedTuple

from benchmarks.chosen_models import ROUNDS, chosen_models, latency_ms, load, places_of, round_ms
from dlbricks_tui.bench.warming import untimed_runs
from dlbricks_tui.bricks.programs import model_program, sequence_program
from dlbricks_tui.models.graph import LayerGraph
from dlbricks_tui.runtime.process import Worker
from dlbricks_tui.runtime.runtime import Runtime

MODELS = ("squeezenet1.1", "mobilenet0.5", "mobilenetv2_1.0", "resnet50_v1")
# How much of the way from warm to cold.
WAYS: Mapping[str, float] = {"warm": 0.0, "a third": 1 / 3, "half-way": 0.5, "cold": 1.0}
WHOLE, WARM, COLD = "whole", "warm", "cold"


class Sums(NamedTuple):
    """Of all bricks of a model, and what it takes by itself."""

    whole_ms: float
    warm_ms: float
    cold_ms: float

    def error(self, share: float) -> float:
        """By how much bricks that lie so far from warm to cold miss the model."""
        return (self.warm_ms + share * (self.cold_ms - self.warm_ms)) / self.whole_ms - 1


def main() -> int:
    """Prints a line for each model."""
    with chosen_models(__doc__, MODELS) as chosen:
        print(f"{'':28} {'end to end':>12}" + "".join(f"{way:>10}" for way in WAYS))
        errors: dict[str, list[float]] = defaultdict(list)
        for graph in chosen.graphs:
            sums = sums_of(graph, chosen.runtime, chosen.folder / "log")
            for way, share in WAYS.items():
                errors[way].append(sums.error(share))
            shown = "".join(f"{errors[way][-1]:+10.1%}" for way in WAYS)
            print(f"{graph.name[:28]:28} {sums.whole_ms:9.2f} ms{shown}", flush=True)
        print(f"{'mean absolute':41}" + "".join(f"{sum(map(abs, it)) / len(it):10.1%}" for it in errors.values()))
    return 0


def sums_of(graph: LayerGraph, runtime: Runtime, log: Path) -> Sums:
    """Of one model."""
    places = {str(number): place for number, place in enumerate(places_of(graph).values())}
    samples: dict[str, list[float]] = defaultdict(list)
    with Worker(runtime, log) as worker:
        load(worker, WHOLE, model_program(graph))
        untimed = {WHOLE: untimed_runs(latency_ms(worker, WHOLE, 1), whole=True)}
        for number, place in places.items():
            for state in (WARM, COLD):
                name = state + number
                load(worker, name, sequence_program(graph, place.layers, cold=state == COLD))
                untimed[name] = untimed_runs(latency_ms(worker, name, 1), whole=False, cold=state == COLD)
        for _ in range(ROUNDS):
            for name, taken_ms in round_ms(worker, untimed).items():
                samples[name].append(taken_ms)
    warm_ms, cold_ms = (
        sum(place.times * median(samples[state + number]) for number, place in places.items()) for state in (WARM, COLD)
    )
    return Sums(median(samples[WHOLE]), warm_ms, cold_ms)


if __name__ == "__main__":
    sys.exit(main())
