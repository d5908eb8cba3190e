"""Carry out a task: an ordinary run in a process of its own, whose results are sent as they come.

The run outlives the call. If the process that follows it dies, a later task with the same bricks waits for the host,
and then finds the results in the store.
"""

import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path

from dlbricks_tui.errors import UserError
from dlbricks_tui.fleet.at_host.receiving import parcel_file
from dlbricks_tui.fleet.at_host.results import Sendable, found_in
from dlbricks_tui.fleet.at_host.runtimes import runtime_here
from dlbricks_tui.fleet.at_host.tasks import keep_run, run_of, was_cancelled
from dlbricks_tui.fleet.encoding import message_text, outcome_text, task_from
from dlbricks_tui.fleet.errors import HostError, MessageError
from dlbricks_tui.fleet.messages import HostMessage, ResultFound, Task, TaskEnded, TaskNote, TaskProgress
from dlbricks_tui.folders import SAMPLE_MODELS, DataFolder
from dlbricks_tui.host.fingerprint import fingerprint
from dlbricks_tui.measure.events import Event
from dlbricks_tui.measure.method import Method
from dlbricks_tui.measure.plan import keys_of
from dlbricks_tui.measure.results import conditions_of, runtime_record
from dlbricks_tui.models.library import Library, source_of
from dlbricks_tui.runs.events import (
    EventReader,
    LevelLowered,
    ModelLeftOut,
    ProgramFailed,
    ProgramMeasured,
    ProgramUnfinished,
)
from dlbricks_tui.runs.launch import create_run, start_detached
from dlbricks_tui.runs.planning import cut_models
from dlbricks_tui.runs.progress import RunProgress
from dlbricks_tui.runs.request import ModelChoice, RunRequest
from dlbricks_tui.runs.run_folder import RunFolder, State
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.documents import to_document
from dlbricks_tui.store.records import Failure

# Starts the process of a run.
Start = Callable[[RunFolder, DataFolder], None]
Tell = Callable[[HostMessage], None]

# The module whose `main` is the process of a run.
PROCESS = "dlbricks_tui.fleet.at_host.process"
# Rarely: each look takes some time from the processor while something is measured on it.
_SECONDS_BETWEEN_LOOKS = 1.0
_ENDS = {State.FINISHED: "finished", State.CANCELLED: "cancelled"}


def carry_out(data_path: str, task_json: str, send: Callable[[str], None]) -> str:
    """Carry out a task, `send` what happens as it happens, and return all results and notes at its end as JSON."""
    data = DataFolder(Path(data_path))
    try:
        task = task_from(task_json)
    except MessageError as error:
        raise HostError(f"the task {error}") from None
    start = partial(start_detached, module=PROCESS)
    return outcome_text(carry_out_task(data, task, lambda message: send(message_text(message)), start))


def carry_out_task(
    data: DataFolder,
    task: Task,
    tell: Tell,
    start: Start,
    nap: Callable[[], None] | None = None,
) -> tuple[HostMessage, ...]:
    """Carry out a task, tell what happens, and return all results and notes, and the end of the task as the last."""
    messages: list[HostMessage] = []

    def tell_and_keep(message: HostMessage) -> None:
        # The progress is of no interest at the end.
        if not isinstance(message, TaskProgress):
            messages.append(message)
        tell(message)

    try:
        request = request_here(data, task)
        ended = _TaskRun(data, task, request, tell_and_keep, nap or _nap).carry_out(start)
    except (UserError, OSError) as error:
        ended = TaskEnded(task=task.id, state="failed", reason=str(error))
    tell_and_keep(ended)
    return tuple(messages)


def _nap() -> None:
    time.sleep(_SECONDS_BETWEEN_LOOKS)


def request_here(data: DataFolder, task: Task) -> RunRequest:
    """Return the request of a task with the files of its parcels and the runtime of this host."""
    if not task.parcels:
        raise HostError("the task names no parcel")
    models = []
    for sha256 in task.parcels:
        path = parcel_file(data, sha256)
        if path is None:
            raise HostError(f"parcel {sha256[:12]} is not on this host; send it first")
        models.append(ModelChoice(source_of(path).name, path.absolute()))
    runtime = runtime_here(data, task.request.runtime)
    return replace(task.request, models=tuple(models), runtime=runtime, end_to_end=False)


class _TaskRun:
    """A task, its run, and the records that were sent of it."""

    def __init__(self, data: DataFolder, task: Task, request: RunRequest, tell: Tell, nap: Callable[[], None]) -> None:
        self._data = data
        self._task = task
        self._request = request
        self._system = fingerprint()
        self._conditions = conditions_of(self._system.id, request.runtime, request.method)
        self._tell = tell
        self._nap = nap
        # The records that were sent, by UUID, and the bricks that they are about.
        self._sent: dict[str, str] = {}
        self._progress: TaskProgress | None = None

    def carry_out(self, start: Start) -> TaskEnded:
        """Carry out the task, and return its end."""
        with ResultsDatabase(self._data.store) as store:
            folder = run_of(self._data, self._task.id)
            if folder is None:
                lacking = self._lacking(store)
                if self._task.bricks and not lacking:
                    return self._ended("finished")
                if was_cancelled(self._data, self._task.id):
                    return self._ended("cancelled")
                folder = create_run(replace(self._request, only=tuple(lacking)), self._data)
                keep_run(self._data, self._task.id, folder)
            state = folder.state()
            # A run of an earlier call goes on by itself, or its process was killed.
            if state.state is not State.FINISHED and not self._is_driven(folder):
                start(folder, self._data)
            self._follow(folder, store)
            self._send_rest(folder, store)
        state = folder.state()
        return self._ended(_ENDS.get(state.state, "failed"), state.message)

    def _is_driven(self, folder: RunFolder) -> bool:
        """Return true if a process works on the run; a new one belongs to this process until it is started."""
        return folder.state().active and folder.lock_file.exists()

    def _lacking(self, store: ResultsDatabase) -> tuple[str, ...]:
        """Send what the store has of the task, and return the bricks to measure."""
        if self._request.again:
            return self._task.bricks
        found = found_in(store, self._conditions, self._task.bricks)
        if self._request.retry_failed:
            found = [each for each in found if not isinstance(each, Failure)]
        self._send(found)
        # The stopping rule decides if bricks that are timed alone have enough samples.
        known = set(self._sent.values()) if self._request.method is Method.INSIDE else set()
        return tuple([brick for brick in self._task.bricks if brick not in known])

    def _follow(self, folder: RunFolder, store: ResultsDatabase) -> None:
        """Tell the progress of the run and its results until it ends."""
        reader, progress = EventReader(folder.events_file), RunProgress()
        while True:
            # Asked before reading, so that the last events are read.
            goes_on = folder.state().active
            bricks: set[str] = set()
            for event in reader.new():
                progress.take(event)
                self._tell_note(event)
                if isinstance(event, ProgramMeasured | ProgramUnfinished | ProgramFailed):
                    bricks.add(event.brick)
            if bricks:
                store.refresh()
                self._send(found_in(store, self._conditions, bricks, self._since(folder)))
            self._tell_progress(progress)
            if not goes_on:
                return
            self._nap()

    def _since(self, folder: RunFolder) -> str:
        """Return the time from which on results count: all do, unless everything is to be measured again."""
        return folder.state().started if self._request.again else ""

    def _send_rest(self, folder: RunFolder, store: ResultsDatabase) -> None:
        """Send the results that the run has reused, and tell the number of bricks that it did not find."""
        bricks = self._task.bricks or self._bricks_of_parcels(folder)
        store.refresh()
        self._send(found_in(store, self._conditions, bricks, self._since(folder)))
        state = folder.state()
        lost = len(set(bricks).difference(self._sent.values()))
        if lost and state.state is State.FINISHED and not state.message:
            self._tell(
                TaskNote(
                    task=self._task.id,
                    text=f"{lost} of {len(bricks)} bricks are in no parcel as {self._request.runtime.traits.title} "
                    "reads it on this host",
                )
            )

    def _bricks_of_parcels(self, folder: RunFolder) -> tuple[str, ...]:
        """Return the keys of all bricks of the parcels, which the run has read: they are in the cache."""
        library = Library(SAMPLE_MODELS, self._data.path, self._request.runtime.traits.format)
        models = cut_models(self._request, library, self._data.cache, folder.worker_log, lambda _: None)
        return tuple(dict.fromkeys(key.brick for key in keys_of(models, method=self._request.method) if key.brick))

    def _send(self, records: Iterable[Sendable]) -> None:
        for record in records:
            if record.uuid in self._sent:
                continue
            if not self._sent:
                for about in (self._system, runtime_record(self._request.runtime, self._system)):
                    self._tell(ResultFound(task=self._task.id, record=to_document(about)))
            self._sent[record.uuid] = record.brick
            self._tell(ResultFound(task=self._task.id, record=to_document(record)))

    def _tell_note(self, event: Event) -> None:
        if isinstance(event, ModelLeftOut | LevelLowered):
            lowered = ": its layers are measured as written" if isinstance(event, LevelLowered) else ""
            self._tell(TaskNote(task=self._task.id, text=f"parcel {event.model[:12]}: {event.reason}{lowered}"))

    def _tell_progress(self, progress: RunProgress) -> None:
        known = len(set(self._sent.values()).intersection(self._task.bricks))
        now = TaskProgress(
            task=self._task.id,
            done=known if self._task.bricks else progress.done,
            of=len(self._task.bricks) or progress.total,
            seconds_left=None if progress.seconds_left is None else round(progress.seconds_left, 1),
            disturbed_rounds=progress.disturbances.rounds,
            disturbed_seconds=progress.disturbances.seconds,
            paused=progress.state is State.PAUSED,
            waits_for=progress.message.removeprefix("for ") if progress.state is State.WAITING else "",
        )
        if now != self._progress:
            self._progress = now
            self._tell(now)

    def _ended(self, state: str, reason: str = "") -> TaskEnded:
        return TaskEnded(task=self._task.id, state=state, reason=reason)
