"""The host's side of a fleet: plain functions that the driver calls from afar.

A task is an ordinary run in a process of its own, whose results are sent as they come. The run outlives the call. If
the process that follows it dies, a later task with the same bricks waits for the host, and then finds the results in
the store.
"""

import json
import platform
import sys
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import datetime, timezone
from functools import partial
from pathlib import Path
from typing import TypeAlias

from tinydb import where

from dlbricks_tui import __version__
from dlbricks_tui.errors import UserError
from dlbricks_tui.files import replace_file
from dlbricks_tui.fleet.messages import (
    HostMessage,
    HostReport,
    ResultFound,
    Task,
    TaskProgress,
    TaskState,
    message_in,
    text_of,
)
from dlbricks_tui.fleet.request import HostError
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.host.fingerprint import fingerprint
from dlbricks_tui.host.noise import NoiseVerdict, findings
from dlbricks_tui.host.queue import host_queue, this_process
from dlbricks_tui.host_files import HostFiles
from dlbricks_tui.jobs.errors import JobError
from dlbricks_tui.jobs.folder import JobFolder, JobState, RunFolder, State
from dlbricks_tui.jobs.process import start_detached
from dlbricks_tui.language.composing import PROTOCOL
from dlbricks_tui.language.orders import LANGUAGE, LanguageFailed
from dlbricks_tui.measure.known import Conditions
from dlbricks_tui.measure.method import Method
from dlbricks_tui.measure.results import conditions_of
from dlbricks_tui.models.cache import remove_oldest
from dlbricks_tui.models.library import source_of
from dlbricks_tui.recorded_host import processors_here
from dlbricks_tui.runs.control import create_run
from dlbricks_tui.runs.events import (
    LevelLowered,
    ModelLeftOut,
    ProgramFailed,
    ProgramMeasured,
    ProgramUnfinished,
    RunEvents,
    RunProgress,
)
from dlbricks_tui.runs.request import ModelChoice, read_request
from dlbricks_tui.runs.run import execute
from dlbricks_tui.runs.work import Workplace
from dlbricks_tui.runtime.registry import NOT_INSTALLED, Registry
from dlbricks_tui.runtime.runtime import UNTUNED, Runtime
from dlbricks_tui.runtime.traits import traits_of
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.documents import to_document
from dlbricks_tui.store.records import Failure, Measurement, Record
from dlbricks_tui.store.selections import OLDEST_FIRST, equal

# Bytes of all parcels that a host keeps.
MOST_KEPT_BYTES = 1 << 30
# The tasks that were cancelled before their run had a process.
_cancelled: set[str] = set()
_DEEDS = {"pause": JobFolder.pause, "resume": JobFolder.unpause, "cancel": JobFolder.cancel}
Sendable: TypeAlias = Measurement | Failure
# Letters of the message of a failure.
_LONGEST_MESSAGE, _MOST_OF_A_FAILURE = 1000, 300
# What the doctor tells of the sources of noise: others are the same for each host of a kind.
_NOISE = ("frequency governor", "other load", "stolen time")
_LITTLE_MEMORY = 1 << 30
# Starts the process of a run.
Start = Callable[[JobFolder, DataFolder], None]
Tell = Callable[[HostMessage], None]
# Rarely: each look takes some time from the processor while something is measured on it.
_SECONDS_BETWEEN_LOOKS = 1.0
_ENDS: Mapping[State, TaskState] = {State.FINISHED: "finished", State.CANCELLED: "cancelled"}


def report(data_path: str, task: str = "") -> str:
    """Return the report of this host as JSON, with what has become of a task."""
    data = DataFolder(Path(data_path))
    return text_of(replace(_reported(data), lived=_lived(data, task)))


def _lived(data: DataFolder, task: str) -> bool:
    """Return whether a task has a run that was not killed."""
    folder = run_of(data, task)
    # A crash of the host may have damaged its state.
    with suppress(JobError):
        return folder is not None and folder.state().state is not State.INTERRUPTED
    return False


def check(data_path: str, frameworks: Sequence[str], packages: Sequence[str]) -> str:
    """Start each framework, and return the report of this host with what the doctor asks for, as JSON."""
    # Loaded here: tasks need none of it.
    from dlbricks_tui.fleet.installing import content_of, own_files, versions_here

    data, failures, bricks = DataFolder(Path(data_path)), {}, set[str]()
    for framework in frameworks:
        try:
            Registry(data.path).check(traits_of(framework).own_runtime)
        except UserError as error:
            failures[framework] = str(error)[:_MOST_OF_A_FAILURE]
    if data.store.exists():
        with ResultsDatabase(data.store) as store:
            bricks.update(store.select(equal(system=fingerprint().id), order=()).values("brick"))
    report = replace(_reported(data), failures=failures, noticed=tuple(_noticed()), bricks=len(bricks - {""}))
    return text_of(replace(report, content=content_of(own_files()), packages=versions_here(packages)))


def _noticed() -> Iterator[tuple[str, str, str]]:
    """Yield what disturbs measurements here, or might: the subject, its state, and a cure if it needs one."""
    for it in findings():
        if it.source in _NOISE:
            yield it.source, it.state, it.cure if it.verdict is NoiseVerdict.NOISY else ""
    work = next((str(it)[:_MOST_OF_A_FAILURE] for it in host_queue().places() if it.measures), "")
    yield "measuring", work or "nothing", "the fleet run waits until it has ended" if work else ""
    free = HostFiles().available_memory_bytes
    is_little = free is not None and free < _LITTLE_MEMORY
    cure = "end other programs there: large models may not fit" if is_little else ""
    yield "memory", "unknown" if free is None else f"{free / 2**30:.1f} GiB free", cure


def _reported(data: DataFolder) -> HostReport:
    return HostReport(
        dlbricks=__version__,
        python=platform.python_version(),
        methods={method.value: method.id for method in Method},
        runtimes=tuple([it.identity for it in runtimes_here(data)]),
        system=to_document(fingerprint()),
        clock=datetime.now(timezone.utc).isoformat(timespec="seconds"),
    )


def runtimes_here(data: DataFolder) -> tuple[Runtime, ...]:
    """Return the installed runtimes, without settings of the shell: processes of dask have some for their own sake."""
    return tuple([replace(it, settings=UNTUNED) for it in Registry(data.path).all() if it.version != NOT_INSTALLED])


def runtime_here(data: DataFolder, requested: Runtime) -> Runtime:
    """Return the runtime of this host with the framework, version and settings of the requested one."""
    here = runtimes_here(data)
    found = next((it for it in here if (it.framework, it.version) == (requested.framework, requested.version)), None)
    if found is None:
        raise HostError(f"this host has no {requested.framework} {requested.version} any more: install it again")
    return replace(found, settings=requested.settings).on(processors_here())


def take(data: DataFolder, sha256: str, suffix: str, content: bytes) -> Path:
    """Store a parcel as a file with this ending, and return its path."""
    path = data.parcels / f"{sha256}{suffix}"
    with _writing(data.parcels):
        data.parcels.mkdir(parents=True, exist_ok=True)
        remove_oldest([data.parcels], MOST_KEPT_BYTES - len(content))
        replace_file(path, lambda file: file.write(content))
    return path.absolute()


def run_of(data: DataFolder, task: str) -> JobFolder | None:
    """Return the run of a task, or the job that measures its language model; None if it has none yet, or any more."""
    folders = (RunFolder(data.runs / task), JobFolder(data.jobs / task))
    return next((it for it in folders if it.request_file.is_file()), None)


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise HostError(f"cannot write {path}: {error.strerror}; free some space, or make it writable") from error


def control(data_path: str, task_id: str, what: str) -> None:
    """Pause, resume or cancel a task. One that is cancelled before its run has a process ends as soon as it has one."""
    folder = run_of(DataFolder(Path(data_path)), task_id)
    # A run belongs to the process that creates it, which is this one, until its own process has begun.
    if folder is None or (state := folder.state()).process == this_process():
        if what == "cancel":
            # The call that carries it out runs in this process, too.
            _cancelled.add(task_id)
    elif state.active:
        _DEEDS[what](folder)


def found_in(
    store: ResultsDatabase, conditions: Conditions, bricks: Collection[str], since: str = ""
) -> list[Measurement | Failure]:
    """Return the good results of the newest run for each brick in each context, and the failures of all others.

    A run has several results of a brick that it timed inside of networks, one for each place there.
    """
    about = where("brick").one_of(list(bricks)) & conditions.query
    results = store.select(about & equal(of="brick", good=True), order=OLDEST_FIRST)
    keys = list(zip(*(results.values(column) for column in ("brick", "context")), strict=True))
    runs = results.values("run")
    newest = dict(zip(keys, runs, strict=True))
    found: list[Measurement | Failure] = []
    for place, (key, run) in enumerate(zip(keys, runs, strict=True)):
        result = results.result(place) if newest[key] == run else None
        if isinstance(result, Measurement) and result.when >= since:
            found.append(result)
    measured = {brick for brick, _ in keys}
    failures = {it.brick: it for it in store.records(Failure, about) if it.brick not in measured and it.when >= since}
    shortened = (replace(it, message=it.message[:_LONGEST_MESSAGE]) for it in failures.values())
    return [*found, *shortened]


def carry_out(
    data_path: str, task_json: str, parcels: Sequence[tuple[str, str, bytes]], send: Callable[[str], None]
) -> str:
    """Carry out a task with its parcels, `send` what it finds as it happens, and return its end, all as JSON."""
    data = DataFolder(Path(data_path))
    task = message_in(task_json, Task)
    start = partial(start_detached, module=LANGUAGE.function if task.language else __name__)
    nap = partial(time.sleep, _SECONDS_BETWEEN_LOOKS)
    files = [take(data, *it) for it in parcels]
    return text_of(carry_out_task(data, task, files, lambda message: send(text_of(message)), start, nap))


def carry_out_task(
    data: DataFolder, task: Task, parcels: Sequence[Path], tell: Tell, start: Start, nap: Callable[[], None]
) -> TaskProgress:
    """Carry out a task, tell what happens, and return its end."""
    try:
        return _TaskRun(data, task, parcels, tell, nap).carry_out(start)
    except (UserError, OSError) as error:
        return TaskProgress(state="failed", reason=str(error))
    finally:
        _cancelled.discard(task.id)


class _TaskRun:
    """A task at work: its run, or the job for its language model, and the records that were sent already."""

    def __init__(
        self, data: DataFolder, task: Task, parcels: Sequence[Path], tell: Tell, nap: Callable[[], None]
    ) -> None:
        self._data = data
        self._task = task
        runtime, self._order = runtime_here(data, task.request.runtime), task.language
        # Others of this host see these names, of digests, in the line and in its list of runs.
        models = tuple([ModelChoice(f"parcel {source_of(it).name[:12]}", it) for it in parcels])
        self._request = replace(task.request, models=models, runtime=runtime, end_to_end=False)
        self._system = fingerprint()
        self._conditions = conditions_of(self._system.id, runtime, self._request.method)
        if self._order is not None:
            asked = tuple([replace(it, runtime=runtime) for it in self._order.questions])
            self._order = replace(self._order, questions=asked)
            self._conditions = Conditions(self._system.id, runtime.identity, PROTOCOL)
        self._tell = tell
        self._nap = nap
        # The records that were sent, by UUID, and the bricks that they are about.
        self._sent: dict[str, str] = {}
        self._progress, self._told, self._note = RunProgress(), TaskProgress(), ""

    def carry_out(self, start: Start) -> TaskProgress:
        """Carry out the task, and return its end."""
        task = self._task.id
        with ResultsDatabase(self._data.store) as store:
            folder = run_of(self._data, task)
            if folder is None:
                lacking = self._lacking(store)
                if not lacking:
                    self._send_peaks(store)
                    return TaskProgress(state="finished")
                if task in _cancelled:
                    return TaskProgress(state="cancelled")
                if self._order is None:
                    folder = create_run(replace(self._request, only=lacking), self._data, task)
                else:
                    names = tuple(it.model.name for it in self._order.questions)
                    folder = LANGUAGE.create(self._data, names, self._order, task)
            state = folder.state()
            # A process works on the run of an earlier call, or was killed; a new run has none yet.
            if state.state is not State.FINISHED and not (state.active and folder.lock_file.exists()):
                start(folder, self._data)
                if task in _cancelled and folder.state().active:
                    folder.cancel()
            self._follow(folder, store, start)
            self._send_rest(folder, store)
        state = folder.state()
        return replace(self._told, state=_ENDS.get(state.state, "failed"), reason=state.message)

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

    def _follow(self, folder: JobFolder, store: ResultsDatabase, start: Start) -> None:
        """Tell the progress and the results until the work ends."""
        reader = RunEvents(folder.events_file) if self._order is None else LANGUAGE.reader(folder)
        while True:
            # Asked before reading, so that the last events are read.
            state = folder.state()
            if state.state is State.PAUSED and not (folder.waits_while_paused or folder.pause_file.exists()):
                # The run's process ended when it was paused: start it again, to go on after its stored results.
                start(folder, self._data)
            bricks: set[str] = set()
            for event in reader.new():
                match event:
                    case LanguageFailed():
                        self._note = event.line
                    case ModelLeftOut() | LevelLowered():
                        lowered = ": its layers are measured as written" if isinstance(event, LevelLowered) else ""
                        self._note = f"{event.model}: {event.reason}{lowered}"
                    case ProgramMeasured() | ProgramUnfinished() | ProgramFailed():
                        bricks.add(event.brick)
                if self._order is None:
                    self._progress.take(event)
                else:
                    bricks.update(self._task.bricks)
            if bricks:
                self._send_found(folder, store, bricks)
            self._tell_progress(state)
            if not state.active:
                return
            self._nap()

    def _send_rest(self, folder: JobFolder, store: ResultsDatabase) -> None:
        """Send the results that the run has reused, and tell the number of bricks that it did not find."""
        bricks = self._task.bricks
        self._send_found(folder, store, bricks)
        self._send_peaks(store)
        state = folder.state()
        lost = len(set(bricks).difference(self._sent.values()))
        if lost and state.state is State.FINISHED and not state.message and self._order is None:
            title = self._request.runtime.traits.title
            self._note = f"{lost} of {len(bricks)} bricks are in no parcel as {title} reads it on this host"
        self._tell_progress(state)

    def _send_found(self, folder: JobFolder, store: ResultsDatabase, bricks: Collection[str]) -> None:
        """Send what the store has of some bricks; of what is to be measured again, what is newer than the run."""
        store.refresh()
        started, request = folder.state().started, self._request
        found = found_in(store, self._conditions, bricks, started if request.again and self._order is None else "")
        self._send(it for it in found if it.when >= started or not (request.retry_failed and isinstance(it, Failure)))

    def _send_record(self, record: Record) -> None:
        self._tell(ResultFound(record=to_document(record)))

    def _send(self, records: Iterable[Sendable]) -> None:
        for record in records:
            if record.uuid in self._sent:
                continue
            self._sent[record.uuid] = record.brick
            self._send_record(record)

    def _send_peaks(self, store: ResultsDatabase) -> None:
        """Send the peaks by which results of language models here tell something about other hosts."""
        for it in store.peaks() if self._order is not None else ():
            if (it.system, it.threads) == (self._system.id, self._request.runtime.settings.threads):
                self._send_record(it)

    def _tell_progress(self, state: JobState) -> None:
        """Tell the progress if it has changed."""
        progress = self._progress
        now = TaskProgress(
            done=len(set(self._sent.values()).intersection(self._task.bricks)),
            of=len(self._task.bricks),
            seconds_left=None if progress.seconds_left is None else round(progress.seconds_left, 1),
            disturbed_rounds=progress.disturbances.rounds,
            disturbed_seconds=progress.disturbances.seconds,
            paused=state.state is State.PAUSED,
            waits_for=state.message.removeprefix("for ") if state.state is State.WAITING else "",
            note=self._note,
        )
        if now != self._told:
            self._told = now
            self._tell(now)


def main(folder: str, data: str) -> None:
    """Execute the run of a task, without estimates; the entry point of its process."""
    run = RunFolder(Path(folder))
    place = Workplace(DataFolder(Path(data)))
    try:
        execute(run, read_request(run.request_file), place, host_queue(), detached=True, with_estimates=False)
    except UserError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    # The doctor asks for the check: the data folder, the frameworks that have to start, and packages.
    try:
        sys.stdout.write(check(sys.argv[1], *json.loads(sys.argv[2])) + "\n")
    except UserError as error:
        sys.exit(str(error))
