"""Whole models as an execution has them: read from their files, loaded into workers of their own, timed by layer."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TypeVar

from dlbricks_tui.analysis.bounds import Roof, Work, written_works
from dlbricks_tui.analysis.groups import MeasuredExecution, paid_ps, split
from dlbricks_tui.analysis.what_if import Execution
from dlbricks_tui.errors import UserError
from dlbricks_tui.estimate.compositions import from_picoseconds
from dlbricks_tui.host.queue import NAP_SECONDS, HostQueue, Place, Ticket
from dlbricks_tui.jobs.control import StopSignals
from dlbricks_tui.jobs.events import Event
from dlbricks_tui.measure.alone import program_of
from dlbricks_tui.measure.jobs import CutModel, Job
from dlbricks_tui.measure.known import Known
from dlbricks_tui.measure.plan import plan
from dlbricks_tui.measure.stopping import Adaptive
from dlbricks_tui.measure.supervised_worker import SupervisedWorker, TimeLimits
from dlbricks_tui.models.graph import LayerGraph, Level, Numbers, Shape
from dlbricks_tui.models.library import Library, ModelSource
from dlbricks_tui.runs.events import LevelLowered
from dlbricks_tui.runs.planning import cut_models
from dlbricks_tui.runs.request import InputShape, InputValue, RunRequest, chosen
from dlbricks_tui.runs.work import Workplace, open_worker
from dlbricks_tui.runtime.protocol import Program

Loaded = TypeVar("Loaded")


class ExecutionError(UserError):
    """A model cannot be executed in this way."""


def executed_model(
    source: ModelSource,
    execution: Execution,
    place: Workplace,
    log: Path,
    inputs: Mapping[str, Shape],
    values: Mapping[str, Numbers],
) -> CutModel:
    """Return a model as an execution has it, cut into its layers."""
    traits, level = execution.runtime.traits, execution.level
    if level is Level.WRITTEN and traits.always_fuses:
        raise ExecutionError(f"{traits.title} always fuses layers: it cannot run the model as written")
    lowered: list[str] = []

    def note(event: Event) -> None:
        if isinstance(event, LevelLowered):
            lowered.append(event.reason)

    request = RunRequest(
        models=chosen([source.in_format(traits.format)]),
        runtime=execution.runtime,
        inputs=tuple(InputShape(name, shape) for name, shape in inputs.items()),
        values=tuple(InputValue(name, value) for name, value in values.items()),
        batch_sizes=() if execution.batch_size is None else (execution.batch_size,),
        level=level,
    )
    library = Library(place.samples, place.data.path, traits.format)
    (model,) = cut_models(request, library, place.data.cache, log, note)
    if lowered and model.file is None:
        raise ExecutionError(f"{model.name} cannot be run fused: {lowered[0]}")
    return model


def job_of(model: CutModel) -> Job:
    """Return the job that times the whole model."""
    found = [job for job in plan((model,), Known(), Adaptive(), end_to_end=True).jobs if job.whole]
    if not found:
        raise ExecutionError(f"{model.name} computes nothing")
    return found[0]


def execution_worker(
    execution: Execution,
    place: Workplace,
    log: Path,
    waiting: Callable[[], AbstractContextManager[None]],
    memory_bytes: int,
    limits: TimeLimits,
    tell_lost: Callable[[str], None] = lambda _: None,
) -> AbstractContextManager[SupervisedWorker]:
    """Return a worker that runs models as an execution does; `tell_lost` takes the reason when it is lost."""
    # Measurements have these settings too; operators side by side need the usual ones.
    runtime = execution.runtime if execution.runtime.at_once > 1 else execution.runtime.as_timed()
    return open_worker(runtime, place.worker_program, log, waiting, tell_lost, memory_bytes, limits)


def load_whole(job: Job, execution: Execution, load: Callable[[Program], Loaded]) -> Loaded:
    """Load a whole model by a function that raises a UserError if that fails: its file, or else its layers."""
    side_by_side = execution.runtime.at_once > 1
    try:
        return load(program_of(job, with_file=True, side_by_side=side_by_side))
    except UserError as error:
        # A worker that was killed says nothing about the file.
        if job.file is None or job.needs_file or "SIGKILL" in str(error):
            raise
    return load(program_of(job, with_file=False, side_by_side=side_by_side))


@contextmanager
def turn_on_host(
    queue: HostQueue,
    task: Place,
    signals: StopSignals,
    tell_waiting: Callable[[str], None],
    arrived_ns: int | None = None,
) -> Iterator[Ticket]:
    """Wait for the turn of some work on this host, and keep other work from it within the block."""

    def nap() -> None:
        with signals.waiting():
            time.sleep(NAP_SECONDS)

    ticket = queue.join(task, arrived_ns)
    ticket.wait(tell_waiting, nap)
    try:
        yield ticket
    finally:
        ticket.leave()


# The balance of arithmetic and traffic where the peaks of a system are not known, in billions per second.
_USUAL_ROOF = Roof(1, {"any": 100.0}, 10.0, 20.0, 32 << 20, 0)


class Basis(str, Enum):
    """The source of a written layer's time.

    - `whole`: the runtime executes the layer by itself.
    - `measured`: it has a share of a fused layer, by the times of the written layers.
    - `roofline`: it has a share of a fused layer, by the least times that the work of the written layers needs.
    - `gone`: the runtime does not execute it.
    """

    WHOLE = "whole"
    MEASURED = "measured"
    ROOFLINE = "roofline"
    GONE = "gone"


@dataclass(frozen=True, slots=True)
class WrittenTime:
    """The time that a written layer takes in an inference."""

    latency_ps: int
    basis: Basis

    @property
    def latency_ms(self) -> float:
        """The time in milliseconds."""
        return from_picoseconds(self.latency_ps)

    @property
    def by_roofline(self) -> bool:
        """True if it is shared by the work of the layers, and not by measured times."""
        return self.basis is Basis.ROOFLINE


@dataclass(frozen=True, slots=True)
class WrittenTimes:
    """The time of each written layer, and that of the layers that the runtime inserted: conversions of layouts."""

    layers: tuple[WrittenTime, ...]
    inserted_ps: int

    @property
    def total_ps(self) -> int:
        """The time of all layers that the runtime executes, without its call."""
        return sum(it.latency_ps for it in self.layers) + self.inserted_ps

    @property
    def inserted_ms(self) -> float:
        """The time of inserted layers in milliseconds."""
        return from_picoseconds(self.inserted_ps)


def written_times(
    one: MeasuredExecution, written: LayerGraph, shares: MeasuredExecution | None = None, roof: Roof | None = None
) -> WrittenTimes:
    """Return the time of each layer of the file in an execution; they add up to its layers exactly, in picoseconds.

    `shares` is the same file measured as written. Where it lacks a layer of a fused one, the roofline decides.
    """
    cover = one.nodes_of_parts
    layers = [layer.nodes for layer in written.layers]
    groups = split({0: range(len(cover)), 1: range(len(layers))}, (cover, layers))
    # None where a sequence of several layers was timed.
    measured: list[int | None] = [None] * len(layers)
    for part in () if shares is None else shares.parts:
        if len(part.layers) == 1 and part.known:
            measured[part.layers[0]] = part.paid_ps
    works: tuple[Work, ...] = ()
    found = [WrittenTime(0, Basis.GONE) for _ in layers]
    inserted_ps = sum(part.paid_ps for part, nodes in zip(one.parts, cover, strict=True) if not nodes)
    for group in groups:
        parts, members = group.parts
        total_ps = paid_ps(one, parts)
        if not members:
            inserted_ps += total_ps
        elif len(members) == 1:
            found[members[0]] = WrittenTime(total_ps, Basis.WHOLE if parts else Basis.GONE)
        elif total_ps:
            known = [measured[member] for member in members]
            basis = Basis.MEASURED if all(it is not None for it in known) and any(known) else Basis.ROOFLINE
            if basis is Basis.ROOFLINE:
                works, whole_bytes = works or written_works(written), float(written.weight_bytes)
                weights = [(roof or _USUAL_ROOF).least_ms(works[member], whole_bytes) for member in members]
            else:
                weights = [float(it or 0) for it in known]
            for member, share_ps in zip(members, _shared(total_ps, weights), strict=True):
                found[member] = WrittenTime(share_ps, basis)
        else:
            for member in members:
                found[member] = WrittenTime(0, Basis.WHOLE)
    return WrittenTimes(tuple(found), inserted_ps)


def _shared(total_ps: int, weights: Sequence[float]) -> list[int]:
    """Return a time in parts that are as proportional to the weights as whole numbers can be, and add up to it."""
    whole = sum(weights)
    weights = weights if whole else [1.0] * len(weights)
    whole = whole or float(len(weights))
    exact = [total_ps * weight / whole for weight in weights]
    found = [int(share) for share in exact]
    # Rounding leaves a rest of less than a picosecond for each, or a few more in sums of large numbers.
    largest = max(range(len(exact)), key=exact.__getitem__)
    found[largest] += total_ps - sum(found)
    return found
