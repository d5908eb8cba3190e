"""Whole models as an execution has them: read from their files, and loaded into a worker that no other run disturbs."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TypeVar

from dlbricks_tui.analysis.what_if import Execution
from dlbricks_tui.errors import UserError
from dlbricks_tui.host.queue import NAP_SECONDS, HostQueue, QueuedWork, Ticket
from dlbricks_tui.measure.alone import program_of
from dlbricks_tui.measure.events import Event
from dlbricks_tui.measure.jobs import CutModel, Job
from dlbricks_tui.measure.known import Known
from dlbricks_tui.measure.plan import plan
from dlbricks_tui.measure.stopping import Adaptive
from dlbricks_tui.measure.supervised_worker import SupervisedWorker, TimeLimits
from dlbricks_tui.models.graph import Level, Numbers, Shape
from dlbricks_tui.models.library import Library, ModelSource
from dlbricks_tui.runs.control import StopSignals
from dlbricks_tui.runs.events import LevelLowered
from dlbricks_tui.runs.planning import cut_models
from dlbricks_tui.runs.request import InputShape, InputValue, RunRequest, chosen
from dlbricks_tui.runs.work import Workplace, open_worker
from dlbricks_tui.runtime.protocol import Program

Loaded = TypeVar("Loaded")


class ExecutionError(UserError):
    """A model cannot be executed in this way."""


def whole_model(
    source: ModelSource,
    execution: Execution,
    place: Workplace,
    log: Path,
    inputs: Mapping[str, Shape],
    values: Mapping[str, Numbers],
) -> Job:
    """Return a whole model as an execution has it."""
    return job_of(executed_model(source, execution, place, log, inputs, values))


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


@contextmanager
def execution_worker(
    execution: Execution,
    place: Workplace,
    log: Path,
    waiting: Callable[[], AbstractContextManager[None]],
    tell_lost: Callable[[str], None],
    memory_bytes: int,
    limits: TimeLimits,
) -> Iterator[SupervisedWorker]:
    """Start a worker that runs models as an execution does; `tell_lost` takes the reason when it is lost."""
    # Measurements have these settings too; operators side by side need the usual ones.
    runtime = execution.runtime if execution.runtime.at_once > 1 else execution.runtime.as_timed()
    with open_worker(runtime, place.worker_program, log, waiting, tell_lost, memory_bytes, limits) as worker:
        yield worker


def load_whole(job: Job, execution: Execution, load: Callable[[Program], Loaded]) -> Loaded:
    """Load a whole model by a function that raises a UserError if that fails: its file, or else its layers."""
    side_by_side = execution.runtime.at_once > 1
    try:
        return load(program_of(job, with_file=True, side_by_side=side_by_side))
    except UserError:
        if job.file is None or job.needs_file:
            raise
    return load(program_of(job, with_file=False, side_by_side=side_by_side))


@contextmanager
def turn_on_host(
    queue: HostQueue,
    task: QueuedWork,
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
