"""What models take beside the sums of their bricks, timed with warm caches and with cold ones.

usage: python -m benchmarks.caches [--level LEVEL] [MODEL ...]

MODEL is a name that `dlbricks models` lists, or table1:ID. In rounds, in one worker: the model, its bricks after they
have just run, and its bricks after 64 MiB of something else went through the caches. What feeds a brick is timed in the
same way, and taken off. Printed is by how much their sums miss the model; the last line has the mean absolute errors.
"""

import sys
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import NamedTuple

from benchmarks.chosen_models import ROUNDS, chosen_models, latency_ms, load, places_of
from dlbricks_tui.bench.warming import untimed_runs
from dlbricks_tui.bricks.programs import model_program, sequence_program
from dlbricks_tui.models.graph import LayerGraph
from dlbricks_tui.runtime.inside.mxnet_backend import MXNet
from dlbricks_tui.runtime.process import Worker
from dlbricks_tui.runtime.protocol import Program
from dlbricks_tui.runtime.runtime import Runtime

MODELS = ("squeezenet1.1", "mobilenet0.5", "mobilenetv2_1.0", "resnet50_v1")
# How much of the way from warm to cold.
WAYS: Mapping[str, float] = {"warm": 0.0, "a third": 1 / 3, "half-way": 0.5, "cold": 1.0}
WHOLE, BROOM = "whole", "broom"
FED, FEEDING = "fed", "feeding"


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
    programs = {name: sequence_program(graph, place.layers) for name, place in places.items()}
    with Worker(runtime, log) as worker:
        warm_ms, cold_ms, whole_ms = measured(worker, model_program(graph), programs)
    sums = (sum(place.times * found[name] for name, place in places.items()) for found in (warm_ms, cold_ms))
    return Sums(whole_ms, *sums)


def measured(
    worker: Worker, whole: Program, programs: Mapping[str, Program]
) -> tuple[dict[str, float], dict[str, float], float]:
    """What each program takes warm and cold, and what the whole takes."""

    def without_what_feeds(latencies_ms: Callable[[str], dict[str, float]]) -> dict[str, float]:
        feeding = latencies_ms(FEEDING)
        return {name: taken - feeding[name] for name, taken in latencies_ms(FED).items()}

    load(worker, WHOLE, whole)
    load(worker, BROOM, Program(MXNet.sweep))
    for name, program in programs.items():
        load(worker, FED + name, replace(program, prelude=None))
        load(worker, FEEDING + name, Program(program.prelude or MXNet.nothing, program.producer))
    untimed = untimed_runs(latency_ms(worker, WHOLE, 1), whole=True)

    def warm(part: str) -> dict[str, float]:
        return {name: latency_ms(worker, part + name, 1) for name in programs}

    def cold(part: str) -> dict[str, float]:
        latency_ms(worker, BROOM, 0)
        return {name: latency_ms(worker, part + name, 0) for name in programs}

    wholes, warms, colds = [], [], []
    for _ in range(ROUNDS):
        wholes.append(latency_ms(worker, WHOLE, untimed))
        warms.append(without_what_feeds(warm))
        colds.append(without_what_feeds(cold))
    return medians(warms), medians(colds), median(wholes)


def medians(rounds: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Of each program."""
    return {name: median(it[name] for it in rounds) for name in rounds[0]}


if __name__ == "__main__":
    sys.exit(main())
