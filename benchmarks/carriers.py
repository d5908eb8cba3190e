"""Compare ways to correct a profile by how close carriers come to their models, and engines of MXNet.

usage: python -m benchmarks.carriers [--level LEVEL] [--threads N] [--rounds N] [MODEL ...]

MODEL is a name that `dlbricks models` lists, table1:ID, or an .onnx file. Each model and its carrier run in turns. One
line for each model says how many layers its carrier runs, what the profile adds up to beside the plain run, and by how
much estimates are off with five corrections:

none          profiled times as they are
proportional  the difference to the plain run is shared out in proportion
even          each operator gets an equal part of the difference
spans         times from the start of an operator to that of the next one, in proportion
today         an equal part is subtracted from each operator, limited by the shortest, the rest in proportion
"""

import argparse
import sys
import tempfile
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

from dlbricks_tui.bricks.carriers import Carrier, carrier_of, whole
from dlbricks_tui.bricks.identity import brick_of
from dlbricks_tui.bricks.programs import model_program
from dlbricks_tui.folders import SAMPLE_MODELS
from dlbricks_tui.measure.carriers import corrected, in_proportion
from dlbricks_tui.measure.jobs import untimed_runs
from dlbricks_tui.models.frameworks import WorkerFramework
from dlbricks_tui.models.graph import LayerGraph, Level
from dlbricks_tui.models.library import Library, ModelSource, source_of
from dlbricks_tui.models.loading import Loader
from dlbricks_tui.models.networks import whole_network
from dlbricks_tui.runtime.process import Worker
from dlbricks_tui.runtime.protocol import Load, Profile, Profiled, Program, Sample
from dlbricks_tui.runtime.registry import Registry
from dlbricks_tui.runtime.runtime import Runtime
from dlbricks_tui.store.statistics import trimmed_mean

MODELS = ("squeezenet1.1", "mobilenet0.5", "resnet18_v1", "resnet50_v1", "mobilenetv2_1.0", "densenet121")
PATIENCE_SECONDS = 600.0
MODEL, CARRIER = "model", "carrier"
PROFILED_RUNS = 2
MILLISECOND = 1e6


class Rounds(NamedTuple):
    """Plain latencies, profiled times and start-to-start spans over some rounds."""

    model_ms: float
    carrier_ms: float
    nodes: tuple[int, ...]
    profiled_ms: list[float]
    spans_ms: list[float]


def main() -> int:
    """Prints a line for each model, then the mean errors."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=MODELS)
    parser.add_argument("--level", choices=[level.value for level in Level], default=Level.FUSED.value)
    parser.add_argument("--threads", type=int)
    parser.add_argument("--rounds", type=int, default=25)
    args = parser.parse_args()
    errors: dict[str, list[float]] = defaultdict(list)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for model in args.models:
            source = source_named(model, folder)
            runtime = Registry(folder).runtime_for({source.format}).with_threads(args.threads)
            graph = graph_of(source, Level(args.level), runtime, folder)
            for way, error in _told(graph, runtime.for_profiling(), folder, args.rounds).items():
                errors[way].append(error)
    for way, of_it in errors.items():
        print(f"{way:12} mean error {100 * fmean(map(abs, of_it)):5.1f} %, bias {100 * fmean(of_it):+5.1f} %")
    return 0


def source_named(model: str, folder: Path) -> ModelSource:
    """The source of a model that is given by name, or as an ONNX file."""
    if model.endswith(".onnx"):
        return source_of(Path(model))
    return Library(SAMPLE_MODELS, folder).find_all([model])[0]


def graph_of(source: ModelSource, level: Level, runtime: Runtime, folder: Path) -> LayerGraph:
    """The layers of a model as a runtime has them."""
    with WorkerFramework(runtime, folder / "log") as framework:
        return Loader(folder / "cache", framework, framework).load(source, level)


def _told(graph: LayerGraph, runtime: Runtime, folder: Path, rounds: int) -> Mapping[str, float]:
    carrier = carrier_of(graph) or whole(graph)
    network, owners = whole_network(carrier.graph)
    program = Program(network, between_bytes=carrier.missing_bytes)
    found = _rounds(model_program(graph), program, runtime, folder, rounds)
    total_ms = sum(found.profiled_ms)
    each_ms = (found.carrier_ms - total_ms) / len(found.nodes)
    ways = {
        "none": found.profiled_ms,
        "proportional": in_proportion(found.profiled_ms, found.carrier_ms),
        "even": [ms + each_ms for ms in found.profiled_ms],
        "spans": in_proportion(found.spans_ms, found.carrier_ms),
        "today": corrected(found.profiled_ms, found.carrier_ms),
    }
    errors = {
        way: _composed_ms(graph, carrier, _by_layer(found.nodes, owners, operators_ms)) / found.model_ms - 1
        for way, operators_ms in ways.items()
    }
    told = ", ".join(f"{way} {100 * error:+5.1f} %" for way, error in errors.items())
    print(
        f"{graph.name[:36]:36} {len(carrier.origin):4} of {len(graph.layers):4} layers, {found.model_ms:8.3f} ms, "
        f"profile over plain {total_ms / found.carrier_ms:5.2f}: {told}",
        flush=True,
    )
    return errors


def _rounds(model: Program, carrier: Program, runtime: Runtime, folder: Path, rounds: int) -> Rounds:
    taken: dict[str, list[float]] = defaultdict(list)
    profiles: list[Profiled] = []
    with Worker(runtime, folder / "log") as worker:
        untimed = {}
        for name, program in ((MODEL, model), (CARRIER, carrier)):
            worker.ask(Load(name, program, check_values=False), PATIENCE_SECONDS)
            ((duration,),) = worker.ask(Sample((name,), 1, 1), PATIENCE_SECONDS).durations_ns
            untimed[name] = untimed_runs(duration / MILLISECOND, whole=True)
        for _ in range(rounds):
            for name in (MODEL, CARRIER):
                ((duration,),) = worker.ask(Sample((name,), untimed[name], 1), PATIENCE_SECONDS).durations_ns
                taken[name].append(duration / MILLISECOND)
            profiles.append(worker.ask(Profile(CARRIER, 1, PROFILED_RUNS), PATIENCE_SECONDS))
    durations = [row for profile in profiles for row in profile.durations_ns]
    spans = [_spans(*rows) for it in profiles for rows in zip(it.starts_ns, it.durations_ns, strict=True)]
    return Rounds(
        trimmed_mean(taken[MODEL]),
        trimmed_mean(taken[CARRIER]),
        profiles[0].nodes,
        _trimmed(durations),
        _trimmed(spans),
    )


def _spans(starts: Sequence[int], durations: Sequence[int]) -> list[int]:
    """Return the time from the start of each operator to that of the next one."""
    ends = [*starts[1:], starts[-1] + durations[-1]]
    return [end - start for start, end in zip(starts, ends, strict=True)]


def _trimmed(rows: Sequence[Sequence[int]]) -> list[float]:
    return [trimmed_mean(of_one) / MILLISECOND for of_one in zip(*rows, strict=True)]


def _by_layer(nodes: Sequence[int], owners: Mapping[int, int], operators_ms: Sequence[float]) -> dict[int, float]:
    found: dict[int, float] = defaultdict(float)
    for node, operator_ms in zip(nodes, operators_ms, strict=True):
        found[owners[node]] += operator_ms
    return found


def _composed_ms(graph: LayerGraph, carrier: Carrier, layers_ms: Mapping[int, float]) -> float:
    """The model's latency, from the mean of each brick's places in the carrier."""
    places: dict[str, list[float]] = defaultdict(list)
    for layer in carrier.graph.layers:
        places[brick_of(carrier.graph, (layer.index,)).key].append(layers_ms.get(layer.index, 0.0) / layer.times)
    return sum(fmean(places[brick_of(graph, (layer.index,)).key]) * layer.times for layer in graph.layers)


if __name__ == "__main__":
    sys.exit(main())
