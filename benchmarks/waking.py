"""What bricks add up to if each has to wake MXNet up by itself, and if they find it awake, beside their model.

usage: python -m benchmarks.waking [--level LEVEL] [MODEL ...]

MODEL is a name that `dlbricks models` lists, a file, or table1:ID. All of it is sampled in the same rounds of one
worker, and nothing is corrected; what a call that computes nothing takes is in the latency of the model, too.
"""

import sys
from collections import defaultdict
from statistics import median
from typing import NamedTuple

from benchmarks.chosen_models import (
    PATIENCE_SECONDS,
    ROUNDS,
    Chosen,
    chosen_models,
    latency_ms,
    load,
    places_of,
    round_ms,
)
from dlbricks_tui.bench.warming import untimed_runs
from dlbricks_tui.bricks.programs import model_program, sequence_program
from dlbricks_tui.models.graph import LayerGraph
from dlbricks_tui.runtime.process import Worker
from dlbricks_tui.runtime.protocol import NullCalls

MODELS = ("mobilenet0.25", "squeezenet1.1")
WHOLE, ASLEEP, AWAKE = "model", "asleep ", "awake "


class Found(NamedTuple):
    """What a model takes, what its bricks add up to in both ways, and what a call takes, in milliseconds."""

    model_ms: float
    asleep_ms: float
    awake_ms: float
    call_ms: float


def main() -> int:
    """Prints a line for each model."""
    with chosen_models(__doc__, MODELS) as chosen:
        print(f"{'':24} {'model':>10} {'asleep':>10} {'awake':>10} {'a call':>10}")
        for graph in chosen.graphs:
            cells = "".join(f"{value:8.3f} ms" for value in found_of(graph, chosen))
            print(f"{graph.name[:24]:24}{cells}", flush=True)
    return 0


def found_of(graph: LayerGraph, chosen: Chosen) -> Found:
    """A model and its bricks, by rounds over all that differ."""
    places = {str(number): place for number, place in enumerate(places_of(graph).values())}
    samples: dict[str, list[float]] = defaultdict(list)
    calls_ns: list[int] = []
    with Worker(chosen.runtime, chosen.folder / "log") as worker:
        load(worker, WHOLE, model_program(graph))
        for name, place in places.items():
            load(worker, ASLEEP + name, sequence_program(graph, place.layers, awake=False))
            load(worker, AWAKE + name, sequence_program(graph, place.layers))
        names = [WHOLE, *(state + name for name in places for state in (ASLEEP, AWAKE))]
        untimed = {name: untimed_runs(latency_ms(worker, name, 1), whole=name == WHOLE) for name in names}
        for _ in range(ROUNDS):
            for name, taken_ms in round_ms(worker, untimed).items():
                samples[name].append(taken_ms)
            calls_ns += worker.ask(NullCalls(ROUNDS), PATIENCE_SECONDS).durations_ns[0]
    asleep_ms, awake_ms = (
        sum(place.times * median(samples[state + name]) for name, place in places.items()) for state in (ASLEEP, AWAKE)
    )
    return Found(median(samples[WHOLE]), asleep_ms, awake_ms, median(calls_ns) / 1e6)


if __name__ == "__main__":
    sys.exit(main())
