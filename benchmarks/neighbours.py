"""What layers that follow one another take together, beside what each of them takes alone: what a brick does not see.

usage: python -m benchmarks.neighbours [--level LEVEL] [MODEL ...]

MODEL is a name that `dlbricks models` lists, or table1:ID. Each two layers of a model of which the second one alone
reads the first become one sequence; all sequences run in one worker, in rounds. For each two kinds of operators it
prints how many such pairs the model has, what they take together, and what their halves take.
"""

import argparse
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median

from dlbricks_tui.bench.warming import untimed_runs
from dlbricks_tui.bricks.contexts import context_key
from dlbricks_tui.bricks.identity import brick_of
from dlbricks_tui.bricks.layouts import output_layouts
from dlbricks_tui.bricks.programs import sequence_program
from dlbricks_tui.models.framework import WorkerFramework
from dlbricks_tui.models.graph import LayerGraph, Level
from dlbricks_tui.models.library import Library
from dlbricks_tui.models.loading import Loader
from dlbricks_tui.runtime.process import Worker
from dlbricks_tui.runtime.protocol import Load, Sample
from dlbricks_tui.runtime.registry import Registry
from dlbricks_tui.runtime.runtime import Runtime
from dlbricks_tui.settings import SAMPLE_MODELS

MODELS = ("table1:10", "resnet50_v1")
ROUNDS = 25
PATIENCE_SECONDS = 600.0

# Layers that run as one program.
Layers = tuple[int, ...]


def main() -> int:
    """Prints a table for each model."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=MODELS)
    parser.add_argument("--level", choices=[level.value for level in Level], default=Level.WRITTEN.value)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder)
        runtime = Registry(data).default({})
        with WorkerFramework(runtime, data / "log") as framework:
            loader = Loader(data / "cache", framework, framework)
            sources = Library(SAMPLE_MODELS, data).find_all(arguments.models)
            graphs = [loader.load(source, Level(arguments.level)) for source in sources]
        for graph in graphs:
            pairs = list(pairs_of(graph))
            alone = [(index,) for index in sorted({index for pair in pairs for index in pair})]
            tell(graph, pairs, latencies_ms(graph, [*pairs, *alone], runtime, data / "log"))
    return 0


def pairs_of(graph: LayerGraph) -> Iterator[Layers]:
    """The layers of which one computes something, and another one alone reads it and computes something, too."""
    for layer in graph.layers:
        readers = set(graph.successors[layer.index])
        if layer.operators and len(readers) == 1:
            (reader,) = readers
            if graph.layers[reader].operators:
                yield layer.index, reader


def latencies_ms(graph: LayerGraph, chosen: Sequence[Layers], runtime: Runtime, log: Path) -> dict[Layers, float]:
    """What each of these sequences takes, by rounds over all that differ."""
    layouts = output_layouts(graph)
    keys = {layers: (brick_of(graph, layers).key, context_key(graph, layers, layouts)) for layers in chosen}
    named = {key: (str(number), layers) for number, (layers, key) in enumerate(keys.items())}
    with Worker(runtime, log) as worker:
        for name, layers in named.values():
            worker.ask(Load(name, sequence_program(graph, layers), None, check_values=False), PATIENCE_SECONDS)
        usual: dict[str, float] = {}
        for name, _ in named.values():
            (taken,) = worker.ask(Sample((name,), 1, 1), PATIENCE_SECONDS).durations_ns
            usual[name] = taken[0] / 1e6
        samples: dict[str, list[float]] = defaultdict(list)
        for _ in range(ROUNDS):
            for name, latency_ms in usual.items():
                warm = untimed_runs(latency_ms, whole=False)
                (taken,) = worker.ask(Sample((name,), warm, 1), PATIENCE_SECONDS).durations_ns
                samples[name].append(taken[0] / 1e6)
    return {layers: median(samples[named[key][0]]) for layers, key in keys.items()}


def tell(graph: LayerGraph, pairs: Sequence[Layers], latency_ms: dict[Layers, float]) -> None:
    """Prints what was found of a model."""
    print(f"{graph.name}, {graph.level.value}")
    print(f"{'':36} {'pairs':>6} {'together':>12} {'first':>12} {'second':>12} {'missing':>12}")
    kinds: dict[str, list[Layers]] = defaultdict(list)
    for pair in pairs:
        kinds[", ".join(graph.layers[index].op for index in pair)].append(pair)
    for kind, those in sorted(kinds.items(), key=lambda item: -sum(latency_ms[pair] for pair in item[1])):
        together, first, second = (
            sum(latency_ms[part] for part in parts)
            for parts in (those, [pair[:1] for pair in those], [pair[1:] for pair in those])
        )
        missing = together - first - second
        figures = "".join(f"{figure:10.2f} ms" for figure in (together, first, second, missing))
        print(f"{kind[:36]:36} {len(those):6}{figures}")


if __name__ == "__main__":
    sys.exit(main())
