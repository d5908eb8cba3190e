"""The models that a person names to a benchmark, and what their layers take as bricks."""

import argparse
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import NamedTuple

from dlbricks_tui.bricks.contexts import context_key
from dlbricks_tui.bricks.decomposition import decompose
from dlbricks_tui.bricks.identity import brick_of, times_paid
from dlbricks_tui.bricks.layouts import output_layouts
from dlbricks_tui.bricks.programs import model_program, sequence_program
from dlbricks_tui.measure.jobs import JobKey, untimed_runs
from dlbricks_tui.models.frameworks import WorkerFramework
from dlbricks_tui.models.graph import LayerGraph, Level
from dlbricks_tui.models.library import Library
from dlbricks_tui.models.loading import Loader
from dlbricks_tui.runtime.process import Worker
from dlbricks_tui.runtime.protocol import Load, NullCalls, Program, Sample
from dlbricks_tui.runtime.registry import Registry
from dlbricks_tui.runtime.runtime import Runtime
from dlbricks_tui.settings import SAMPLE_MODELS

ROUNDS = 25
PATIENCE_SECONDS = 600.0
WHOLE = "model"

# Layers that run as one program.
Layers = tuple[int, ...]


class Chosen(NamedTuple):
    """Models, what runs them by default, and a folder to work in."""

    graphs: Sequence[LayerGraph]
    runtime: Runtime
    folder: Path


class Place(NamedTuple):
    """Where a brick stands first in a model, and how often the model pays for it."""

    layers: Layers
    times: int


class Sums(NamedTuple):
    """What a model takes, what its bricks add up to in each way, and what a call that computes nothing takes."""

    model_ms: float
    bricks_ms: Mapping[str, float]
    call_ms: float


@contextmanager
def chosen_models(about: str | None, models: Sequence[str]) -> Iterator[Chosen]:
    """Those of the command line at the level that it says; without any, these at `written`."""
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


def places_of(graph: LayerGraph) -> Mapping[JobKey, Place]:
    """The bricks of a model that compute anything, each in each of its contexts."""
    found: dict[JobKey, Place] = {}
    for it in decompose(graph).occurrences:
        layers = it.sequence.layers
        if any(graph.layers[index].operators for index in layers):
            target = JobKey(it.brick.key, it.context)
            first, times = found.get(target, Place(layers, 0))
            found[target] = Place(first, times + times_paid(graph, layers))
    return found


def load(worker: Worker, name: str, program: Program) -> None:
    """Makes a program ready to be timed."""
    worker.ask(Load(name, program, check_values=False), PATIENCE_SECONDS)


def latency_ms(worker: Worker, name: str, untimed: int) -> float:
    """What one run of a program takes, after so many that nobody times."""
    ((taken,),) = worker.ask(Sample((name,), untimed, 1), PATIENCE_SECONDS).durations_ns
    return taken / 1e6


def load_model(worker: Worker, graph: LayerGraph) -> int:
    """Makes a whole model ready to be timed; how often it is to run untimed before."""
    load(worker, WHOLE, model_program(graph))
    return untimed_runs(latency_ms(worker, WHOLE, 1), whole=True)


def load_bricks(worker: Worker, programs: Mapping[str, Program]) -> dict[str, int]:
    """Makes bricks ready to be timed; how often each of them is to run untimed before, if at all."""
    for name, program in programs.items():
        load(worker, name, program)
    return {
        name: untimed_runs(latency_ms(worker, name, 1), whole=False, cold=program.cold)
        for name, program in programs.items()
    }


def round_ms(worker: Worker, untimed: Mapping[str, int]) -> dict[str, float]:
    """One sample of each program, which runs so often untimed before, without a pause between them, as in a run."""
    taken: dict[str, float] = {}
    for runs in sorted(set(untimed.values()), reverse=True):
        names = tuple(name for name, its_runs in untimed.items() if its_runs == runs)
        durations_ns = worker.ask(Sample(names, runs, 1), PATIENCE_SECONDS).durations_ns
        taken |= {name: duration_ns / 1e6 for name, (duration_ns,) in zip(names, durations_ns, strict=True)}
    return taken


def beside_model(graph: LayerGraph, chosen: Chosen, ways: Mapping[str, Callable[[Layers], Program]]) -> Sums:
    """A model and its bricks, each made a program in several ways, by rounds over all that differ."""
    found = places_of(graph)
    places = {str(number): place for number, place in enumerate(found.values())}
    programs = {way + name: made(place.layers) for way, made in ways.items() for name, place in places.items()}
    samples: dict[str, list[float]] = defaultdict(list)
    calls_ns: list[int] = []
    with Worker(chosen.runtime, chosen.folder / "log") as worker:
        untimed = {WHOLE: load_model(worker, graph)}
        untimed |= load_bricks(worker, programs)
        for _ in range(ROUNDS):
            for name, taken_ms in round_ms(worker, untimed).items():
                samples[name].append(taken_ms)
            calls_ns += worker.ask(NullCalls(ROUNDS), PATIENCE_SECONDS).durations_ns[0]
    sums_ms = {way: sum(it.times * median(samples[way + name]) for name, it in places.items()) for way in ways}
    return Sums(median(samples[WHOLE]), sums_ms, median(calls_ns) / 1e6)


def latencies_ms(graph: LayerGraph, sequences: Sequence[Layers], runtime: Runtime, log: Path) -> dict[Layers, float]:
    """What each of these sequences takes as a brick, by rounds over all that differ."""
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
