"""Compare the latencies of layers inside their model, by MXNet's profiler, with those of their bricks alone.

usage: python -m benchmarks.inside_models [--level LEVEL] [MODEL ...]

MODEL is a name that `dlbricks models` lists, or table1:ID. The model runs in this process, operator by operator, as the
profiler can tell them apart only so; the bricks run in a worker as in any run, in rounds. For each kind of operator it
prints how many there are and what all of them take in both ways, then the layers that differ most.
"""

import json
import os
import sys
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import NamedTuple

from benchmarks.chosen_models import ROUNDS, chosen_models, latencies_ms
from dlbricks_tui.bricks.decomposition import Decomposition, Occurrence, decompose
from dlbricks_tui.bricks.programs import model_program
from dlbricks_tui.models.graph import LayerGraph
from dlbricks_tui.runtime.inside.mxnet_backend import BoundSymbol
from dlbricks_tui.runtime.inside.mxnet_framework import load_mxnet
from dlbricks_tui.runtime.protocol import Network
from dlbricks_tui.runtime.runtime import Runtime

MODELS = ("table1:10", "table1:16")
WARM_UP = 5
MOST_SHOWN = 8
# Each operator by itself, as the profiler tells nothing of those that run in bulk, and in the order of the graph.
ONE_BY_ONE = {"MXNET_EXEC_BULK_EXEC_INFERENCE": "0", "MXNET_ENGINE_TYPE": "NaiveEngine"}


class Layer(NamedTuple):
    """A sequence of one layer in both ways, in milliseconds."""

    name: str
    operators: str
    inside_ms: float
    alone_ms: float

    @property
    def more_ms(self) -> float:
        return self.inside_ms - self.alone_ms


def main() -> int:
    """Prints a table for each model."""
    with chosen_models(__doc__, MODELS) as chosen:
        # A process can dump a profile once.
        for graph in chosen.graphs:
            if os.fork() == 0:
                tell(graph, layers_of(graph, chosen.runtime, chosen.folder))
                sys.stdout.flush()
                os._exit(0)
            if os.wait()[1]:
                return 1
    return 0


def layers_of(graph: LayerGraph, runtime: Runtime, data: Path) -> Sequence[Layer]:
    """All that a model runs, in both ways."""
    decomposition = decompose(graph)
    run = run_by(decomposition)
    alone = latencies_ms(graph, [it.sequence.layers for it in run], runtime, data / "log")
    inside = latencies_inside(model_program(graph).network, data / "profile.json")
    if len(inside) != sum(len(operators(graph, it)) for it in run):
        sys.exit(f"the profiler tells of {len(inside)} operators of {graph.name}, which has another number of them")
    found = []
    for it in run:
        names = operators(graph, it)
        taken, inside = inside[: len(names)], inside[len(names) :]
        name = graph.layers[it.sequence.layers[0]].name
        found.append(Layer(name, "+".join(names), sum(taken), alone[it.sequence.layers]))
    return found


def run_by(decomposition: Decomposition) -> Sequence[Occurrence]:
    """The sequences that compute anything, in the order in which the model runs them: it is cut along its branches."""
    computing = (it for it in decomposition.occurrences if operators(decomposition.graph, it))
    return sorted(computing, key=lambda it: it.sequence.layers)


def operators(graph: LayerGraph, occurrence: Occurrence) -> list[str]:
    """What a sequence computes."""
    return [operator.op for index in occurrence.sequence.layers for operator in graph.layers[index].operators]


def latencies_inside(network: Network, file: Path) -> list[float]:
    """What each operator takes inside of a network, in the order in which they run."""
    os.environ |= ONE_BY_ONE
    mxnet = load_mxnet()
    bound = BoundSymbol(mxnet, network)
    # Workers that are started later are not to know of it.
    for name in ONE_BY_ONE:
        del os.environ[name]
    others = dict.fromkeys(("profile_imperative", "profile_memory", "profile_api", "aggregate_stats"), False)
    mxnet.profiler.set_config(profile_symbolic=True, filename=str(file), **others)
    for _ in range(WARM_UP):
        bound.run()
    mxnet.profiler.set_state("run")
    for _ in range(ROUNDS):
        bound.run()
    mxnet.profiler.set_state("stop")
    mxnet.profiler.dump()
    taken = durations_ms(json.loads(file.read_text())["traceEvents"])
    per_round, left = divmod(len(taken), ROUNDS)
    if left:
        sys.exit(f"the profiler tells of {len(taken)} operators in {ROUNDS} runs, of some more often than of others")
    return [median(taken[place::per_round]) for place in range(per_round)]


def durations_ms(events: Sequence[dict[str, object]]) -> list[float]:
    """How long operators took, in the order in which they began; a beginning is followed by its end."""
    found, began = [], 0.0
    for event in events:
        if event.get("cat") != "operator":
            continue
        if event["ph"] == "B":
            began = float(str(event["ts"]))
        elif event["ph"] == "E":
            found.append((began, (float(str(event["ts"])) - began) / 1e3))
    return [duration for _, duration in sorted(found)]


def tell(graph: LayerGraph, layers: Sequence[Layer]) -> None:
    """Prints what was found of a model."""
    print(f"{graph.name}, {graph.level.value}")
    print(f"{'':24} {'layers':>7} {'inside':>10} {'alone':>10}")
    kinds: defaultdict[str, list[Layer]] = defaultdict(list)
    for layer in layers:
        kinds[layer.operators].append(layer)
    kinds["all"] = list(layers)
    for kind, those in sorted(kinds.items(), key=lambda item: sum(it.inside_ms for it in item[1])):
        inside, alone = sum(it.inside_ms for it in those), sum(it.alone_ms for it in those)
        print(f"{kind[:24]:24} {len(those):7} {inside:7.2f} ms {alone:7.2f} ms")
    for layer in sorted(layers, key=lambda it: -abs(it.more_ms))[:MOST_SHOWN]:
        print(f"  {layer.name[:40]:40} {layer.inside_ms:7.3f} inside, {layer.alone_ms:7.3f} alone")


if __name__ == "__main__":
    sys.exit(main())
