"""What bricks add up to if each has to wake MXNet up by itself, and if they find it awake, beside their model.

usage: python -m benchmarks.waking [--level LEVEL] [MODEL ...]

MODEL is a name that `dlbricks models` lists, a file, or table1:ID. All of it is sampled in the same rounds of one
worker, and nothing is corrected; what a call that computes nothing takes is in the latency of the model, too.
"""

import sys
from collections import defaultdict
from statistics import median
from typing import NamedTuple

from benchmarks.chosen_models import PATIENCE_SECONDS, ROUNDS, Chosen, chosen_models, latency_ms, load
from dlbricks_tui.bench.warming import untimed_runs
from dlbricks_tui.bricks.decomposition import decompose
from dlbricks_tui.bricks.identity import times_paid
from dlbricks_tui.bricks.programs import model_program, sequence_program
from dlbricks_tui.models.graph import LayerGraph
from dlbricks_tui.runtime.process import Worker
from dlbricks_tui.runtime.protocol import NullCalls, Sample

MODELS = ("mobilenet0.25", "squeezenet1.1")
WHOLE = "model"


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
    paid, first = counted(graph)
    samples: dict[str, list[float]] = defaultdict(list)
    with Worker(chosen.runtime, chosen.folder / "log") as worker:
        load(worker, WHOLE, model_program(graph))
        for brick, layers in first.items():
            for awake in (False, True):
                load(worker, name_of(brick, awake), sequence_program(graph, layers, awake=awake))
        names = [WHOLE, *(name_of(brick, awake) for brick in first for awake in (False, True))]
        alike: dict[int, list[str]] = defaultdict(list)
        for name in names:
            alike[untimed_runs(latency_ms(worker, name, 1), whole=name == WHOLE)].append(name)
        calls_ns: list[int] = []
        for _ in range(ROUNDS):
            for warm, sampled in alike.items():
                taken_ns = worker.ask(Sample(tuple(sampled), warm, 1), PATIENCE_SECONDS).durations_ns
                for name, (duration_ns,) in zip(sampled, taken_ns, strict=True):
                    samples[name].append(duration_ns / 1e6)
            calls_ns += worker.ask(NullCalls(ROUNDS), PATIENCE_SECONDS).durations_ns[0]
    asleep_ms, awake_ms = (
        sum(times * median(samples[name_of(brick, awake)]) for brick, times in paid.items()) for awake in (False, True)
    )
    return Found(median(samples[WHOLE]), asleep_ms, awake_ms, median(calls_ns) / 1e6)


def counted(graph: LayerGraph) -> tuple[dict[str, int], dict[str, tuple[int, ...]]]:
    """How often each brick in each context is paid for, and the layers where it stands first."""
    paid: dict[str, int] = defaultdict(int)
    first: dict[str, tuple[int, ...]] = {}
    for occurrence in decompose(graph).occurrences:
        layers = occurrence.sequence.layers
        if any(graph.layers[index].operators for index in layers):
            brick = f"{occurrence.brick.key} {occurrence.context}"
            paid[brick] += times_paid(graph, layers)
            first.setdefault(brick, layers)
    return paid, first


def name_of(brick: str, awake: bool) -> str:
    """What the worker knows it by."""
    return f"{brick} {'awake' if awake else 'asleep'}"


if __name__ == "__main__":
    sys.exit(main())
