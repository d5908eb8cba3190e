"""The models named on the command line of a benchmark, and the latencies of their layers as bricks."""

import argparse
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import NamedTuple

from dlbricks_tui.bricks.contexts import context_key
from dlbricks_tui.bricks.identity import brick_of
from dlbricks_tui.bricks.layouts import output_layouts
from dlbricks_tui.bricks.programs import model_program, sequence_program
from dlbricks_tui.folders import SAMPLE_MODELS
from dlbricks_tui.measure.jobs import untimed_runs
from dlbricks_tui.models.frameworks import WorkerFramework
from dlbricks_tui.models.graph import LayerGraph, Level
from dlbricks_tui.models.library import Library
from dlbricks_tui.models.loading import Loader
from dlbricks_tui.runtime.process import Worker
from dlbricks_tui.runtime.protocol import Load, Program, Sample
from dlbricks_tui.runtime.registry import Registry
from dlbricks_tui.runtime.runtime import Runtime

ROUNDS = 25
PATIENCE_SECONDS = 600.0
WHOLE = "model"

# Layers that run as one program.
Layers = tuple[int, ...]


class Chosen(NamedTuple):
    """Models, their usual runtime, and a folder to work in."""

    graphs: Sequence[LayerGraph]
    runtime: Runtime
    folder: Path


@contextmanager
def chosen_models(about: str | None, models: Sequence[str]) -> Iterator[Chosen]:
    """Load the models of the command line at its level; by default these, at `written`."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=models)
    parser.add_argument("--level", choices=[level.value for level in Level], default=Level.WRITTEN.value)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        runtime = Registry(folder).default({})
        with WorkerFramework(runtime, folder / "log") as framework:
            loader = Loader(folder / "cache", framework, framework)
            sources = Library(SAMPLE_MODELS, folder).find_all(arguments.models)
            graphs = [loader.load(source, Level(arguments.level)) for source in sources]
        yield Chosen(graphs, runtime, folder)


def load(worker: Worker, name: str, program: Program) -> None:
    worker.ask(Load(name, program, check_values=False), PATIENCE_SECONDS)


def latency_ms(worker: Worker, name: str, untimed: int) -> float:
    """Return the latency of one run of a program, after so many untimed ones."""
    ((taken,),) = worker.ask(Sample((name,), untimed, 1), PATIENCE_SECONDS).durations_ns
    return taken / 1e6


def load_model(worker: Worker, graph: LayerGraph) -> int:
    """Load a whole model, and return its number of untimed runs."""
    load(worker, WHOLE, model_program(graph))
    return untimed_runs(latency_ms(worker, WHOLE, 1), whole=True)


def load_bricks(worker: Worker, programs: Mapping[str, Program]) -> dict[str, int]:
    """Load bricks, and return the number of untimed runs of each."""
    for name, program in programs.items():
        load(worker, name, program)
    return {
        name: untimed_runs(latency_ms(worker, name, 1), whole=False, cold=program.cold)
        for name, program in programs.items()
    }


def round_ms(worker: Worker, untimed: Mapping[str, int]) -> dict[str, float]:
    """Take one sample of each program after its untimed runs, without a pause between them, as in a run."""
    taken: dict[str, float] = {}
    for runs in sorted(set(untimed.values()), reverse=True):
        names = tuple(name for name, its_runs in untimed.items() if its_runs == runs)
        durations_ns = worker.ask(Sample(names, runs, 1), PATIENCE_SECONDS).durations_ns
        taken |= {name: duration_ns / 1e6 for name, (duration_ns,) in zip(names, durations_ns, strict=True)}
    return taken


def latencies_ms(graph: LayerGraph, sequences: Sequence[Layers], runtime: Runtime, log: Path) -> dict[Layers, float]:
    """Return the latency of each sequence as a brick; equal bricks are timed once, all in the same rounds."""
    layouts = output_layouts(graph)
    keys = {layers: (brick_of(graph, layers).key, context_key(graph, layers, layouts)) for layers in sequences}
    named = {key: (str(number), sequence_program(graph, layers)) for number, (layers, key) in enumerate(keys.items())}
    with Worker(runtime, log) as worker:
        untimed = load_bricks(worker, dict(named.values()))
        samples: dict[str, list[float]] = defaultdict(list)
        for _ in range(ROUNDS):
            for name, taken in round_ms(worker, untimed).items():
                samples[name].append(taken)
    return {layers: median(samples[named[key][0]]) for layers, key in keys.items()}
