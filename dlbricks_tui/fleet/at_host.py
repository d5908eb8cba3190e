"""The host's side of a fleet: plain functions that the driver calls from afar.

A task is an ordinary run in a process of its own, whose results are sent as they come. The run outlives the call. If
the process that follows it dies, a later task with the same bricks waits for the host, and then finds the results in
the store.
"""

import hashlib
import os
import platform
import re
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
from dlbricks_tui.files import read_bytes, read_text, replace_file, write_atomically
from dlbricks_tui.fleet.messages import (
    MOST_PARCEL_BYTES,
    EndState,
    HostMessage,
    HostReport,
    ResultFound,
    RuntimeReport,
    Task,
    TaskEnded,
    TaskNote,
    TaskProgress,
    message_in,
    text_of,
)
from dlbricks_tui.fleet.request import HostError, MessageError
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.host.fingerprint import HostFiles, fingerprint
from dlbricks_tui.host.noise import NoiseVerdict, findings
from dlbricks_tui.host.queue import host_queue, this_process
from dlbricks_tui.jobs.folder import JobFolder, JobState, RunFolder, State
from dlbricks_tui.jobs.process import start_detached
from dlbricks_tui.language.composing import PROTOCOL
from dlbricks_tui.language.orders import LANGUAGE, LanguageFailed
from dlbricks_tui.measure.known import Conditions
from dlbricks_tui.measure.method import Method
from dlbricks_tui.measure.results import conditions_of, runtime_record
from dlbricks_tui.models.cache import remove_oldest
from dlbricks_tui.models.library import MODEL_SUFFIXES, source_of
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
from dlbricks_tui.runs.request import ModelChoice, RunRequest, read_request
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
_SHA256 = re.compile("[0-9a-f]{64}")
_CANCELLED = "cancelled"
_ID = re.compile("[A-Za-z0-9][A-Za-z0-9._-]{0,79}")
# Each is about 30 bytes long: the newest thousands stay.
_MOST_BYTES = 1 << 17
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
_ENDS: Mapping[State, EndState] = {State.FINISHED: "finished", State.CANCELLED: "cancelled"}


def report(data_path: str, parcels: Sequence[str]) -> str:
    """Return the report of this host, with those of the parcels that it lacks, as JSON."""
    data = DataFolder(Path(data_path))
    lacks = tuple([sha256 for sha256 in parcels if parcel_file(data, sha256) is None])
    return text_of(replace(_reported(data), lacks=lacks))


def check(data_path: str, frameworks: Sequence[str]) -> str:
    """Start each framework, and return the report of this host with what the doctor asks for, as JSON."""
    data, failures, bricks = DataFolder(Path(data_path)), {}, set[str]()
    for framework in frameworks:
        try:
            Registry(data.path).check(traits_of(framework).own_runtime)
        except UserError as error:
            failures[framework] = str(error)[:_MOST_OF_A_FAILURE]
    found = _reported(data)
    if data.store.exists():
        with ResultsDatabase(data.store) as store:
            bricks.update(store.select(equal(system=fingerprint().id), order=()).values("brick"))
    return text_of(replace(found, failures=failures, noticed=tuple(_noticed()), bricks=len(bricks - {""})))


def _noticed() -> Iterator[tuple[str, str, str]]:
    """Yield what disturbs measurements here, or might: the subject, its state, and a cure if it needs one."""
    for it in findings():
        if it.source in _NOISE:
            yield it.source, it.state, it.cure if it.verdict is NoiseVerdict.NOISY else ""
    work = next((str(it)[:_MOST_OF_A_FAILURE] for it in host_queue().places() if it.measures), "")
    yield "measuring", work or "nothing", "the fleet run waits until it has ended" if work else ""
    words = HostFiles().fields("proc/meminfo").get("MemAvailable", "").split()
    free = 1024 * int(words[0]) if words else None
    is_little = free is not None and free < _LITTLE_MEMORY
    cure = "end other programs there: large models may not fit" if is_little else ""
    yield "memory", "unknown" if free is None else f"{free / 2**30:.1f} GiB free", cure


def _reported(data: DataFolder) -> HostReport:
    return HostReport(
        dlbricks=__version__,
        python=platform.python_version(),
        methods={method.value: method.id for method in Method},
        runtimes=tuple([RuntimeReport(it.framework, it.version, it.identity) for it in runtimes_here(data)]),
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
        there = ", ".join(f"{it.framework} {it.version}" for it in here) or "none"
        raise HostError(
            f"this host has no {requested.framework} {requested.version}; its frameworks are {there}: "
            "install the same version as at home"
        )
    return replace(found, settings=requested.settings).on(processors_here())


def take(data_path: str, sha256: str, suffix: str, content: bytes) -> None:
    """Store a parcel; `suffix` is the ending of its file."""
    if suffix not in MODEL_SUFFIXES:
        raise HostError(f"a parcel is no model file: its ending is {suffix[:40]!r}")
    if len(content) > MOST_PARCEL_BYTES:
        raise HostError(f"a parcel has {len(content):,} bytes, and {MOST_PARCEL_BYTES:,} are the most")
    if hashlib.sha256(content).hexdigest() != sha256:
        raise HostError("a parcel arrived with another content than its hash says; send it again")
    folder = DataFolder(Path(data_path)).parcels
    with _writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        remove_oldest([folder], MOST_KEPT_BYTES - len(content))
        replace_file(folder / f"{sha256}{suffix}", lambda file: file.write(content))


def parcel_file(data: DataFolder, sha256: str) -> Path | None:
    """Return the file of a parcel, and note its use; None if it is not here."""
    if not _SHA256.fullmatch(sha256):
        raise HostError(f"{sha256[:80]!r} is no hash of a parcel")
    for suffix in MODEL_SUFFIXES:
        path = data.parcels / f"{sha256}{suffix}"
        with suppress(OSError):
            # A damaged parcel is sent again.
            if hashlib.sha256(read_bytes(path)).hexdigest() == sha256:
                # Parcels that were used long ago are removed first.
                os.utime(path)
                return path
    return None


def _note(data: DataFolder, task: str) -> Path:
    """Return the file with the id of the run of a task, or the word that it was cancelled before it had one."""
    if not _ID.fullmatch(task):
        raise HostError(f"{task[:80]!r} is no id of a task")
    return data.tasks / task


def _noted(data: DataFolder, task: str) -> str:
    with suppress(OSError, ValueError):
        return read_text(_note(data, task)).strip()
    return ""


def run_of(data: DataFolder, task: str) -> JobFolder | None:
    """Return the run of a task, or the job that measures its language model; None if it has none yet, or any more."""
    noted = _noted(data, task) or _CANCELLED
    folders = (RunFolder(data.runs / noted), JobFolder(data.jobs / noted))
    return next((it for it in folders if it.request_file.is_file()), None)


def _write_note(data: DataFolder, task: str, text: str) -> None:
    with _writing(path := _note(data, task)):
        write_atomically(path, f"{text}\n")
    remove_oldest([data.tasks], _MOST_BYTES)


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise HostError(f"cannot write {path}: {error.strerror}; free some space, or make it writable") from error


def control(data_path: str, task_id: str, what: str) -> None:
    """Pause, resume or cancel a task. One that is cancelled before its run has a process ends as soon as it has one."""
    deed = _DEEDS.get(what)
    if deed is None:
        raise HostError(f"a task can be {', '.join(_DEEDS)}; {what[:40]!r} is none of them")
    data = DataFolder(Path(data_path))
    folder = run_of(data, task_id)
    # A run belongs to the process that creates it, which is this one, until its own process has begun.
    if folder is None or (state := folder.state()).process == this_process():
        if what == "cancel":
            _write_note(data, task_id, _CANCELLED)
    elif state.active:
        deed(folder)


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
    """Carry out a task with some new parcels, `send` what it finds as it happens, and return its end, all as JSON."""
    data = DataFolder(Path(data_path))
    for sha256, suffix, content in parcels:
        take(data_path, sha256, suffix, content)
    try:
        task = message_in(task_json, Task)
    except MessageError as error:
        raise HostError(f"the task {error}") from None
    start = partial(start_detached, module=LANGUAGE.function if task.language else __name__)
    nap = partial(time.sleep, _SECONDS_BETWEEN_LOOKS)
    return text_of(carry_out_task(data, task, lambda message: send(text_of(message)), start, nap))


def carry_out_task(data: DataFolder, task: Task, tell: Tell, start: Start, nap: Callable[[], None]) -> TaskEnded:
    """Carry out a task, tell what happens, and return its end."""
    try:
        return _TaskRun(data, task, tell, nap).carry_out(start)
    except (UserError, OSError) as error:
        return TaskEnded(task=task.id, state="failed", reason=str(error))


def request_here(data: DataFolder, task: Task) -> RunRequest:
    """Return the request of a task with the files of its parcels and the runtime of this host."""
    if not (task.parcels or task.language) or not task.bricks:
        raise HostError("the task names no parcel" if task.bricks else "the task names no brick")
    models = []
    for sha256 in task.parcels:
        path = parcel_file(data, sha256)
        if path is None:
            raise HostError(f"parcel {sha256[:12]} is not on this host; send it first")
        models.append(ModelChoice(source_of(path).name, path.absolute()))
    runtime = runtime_here(data, task.request.runtime)
    return replace(task.request, models=tuple(models), runtime=runtime, end_to_end=False)


class _TaskRun:
    """A task at work: its run, or the job for its language model, and the records that were sent already."""

    def __init__(self, data: DataFolder, task: Task, tell: Tell, nap: Callable[[], None]) -> None:
        self._data = data
        self._task = task
        self._request = request_here(data, task)
        self._system = fingerprint()
        runtime, self._order = self._request.runtime, task.language
        self._conditions = conditions_of(self._system.id, runtime, self._request.method)
        if self._order is not None:
            asked = tuple([replace(it, runtime=runtime) for it in self._order.questions])
            self._order = replace(self._order, questions=asked)
            self._conditions = Conditions(self._system.id, runtime.identity, PROTOCOL)
        self._tell = tell
        self._nap = nap
        # The records that were sent, by UUID, and the bricks that they are about.
        self._sent: dict[str, str] = {}
        self._progress: TaskProgress | None = None

    def carry_out(self, start: Start) -> TaskEnded:
        """Carry out the task, and return its end."""
        task = self._task.id
        with ResultsDatabase(self._data.store) as store:
            folder = run_of(self._data, task)
            if folder is None:
                lacking = self._lacking(store)
                if not lacking:
                    self._send_peaks(store)
                    return TaskEnded(task=task, state="finished")
                if _noted(self._data, task) == _CANCELLED:
                    return TaskEnded(task=task, state="cancelled")
                if self._order is None:
                    folder = create_run(replace(self._request, only=lacking), self._data)
                else:
                    folder = LANGUAGE.create(
                        self._data, tuple(it.model.name for it in self._order.questions), self._order
                    )
                _write_note(self._data, task, folder.run)
            state = folder.state()
            # A process works on the run of an earlier call, or was killed; a new run has none yet.
            if state.state is not State.FINISHED and not (state.active and folder.lock_file.exists()):
                start(folder, self._data)
                if _noted(self._data, task) == _CANCELLED and folder.state().active:
                    folder.cancel()
            self._follow(folder, store, start)
            self._send_rest(folder, store)
        state = folder.state()
        return TaskEnded(task=task, state=_ENDS.get(state.state, "failed"), reason=state.message)

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
        progress = RunProgress()
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
                        self._note(event.line)
                    case ModelLeftOut() | LevelLowered():
                        lowered = ": its layers are measured as written" if isinstance(event, LevelLowered) else ""
                        self._note(f"parcel {event.model[:12]}: {event.reason}{lowered}")
                    case ProgramMeasured() | ProgramUnfinished() | ProgramFailed():
                        bricks.add(event.brick)
                if self._order is None:
                    progress.take(event)
                else:
                    bricks.update(self._task.bricks)
            if bricks:
                self._send_found(folder, store, bricks)
            self._tell_progress(state, progress)
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
            self._note(f"{lost} of {len(bricks)} bricks are in no parcel as {title} reads it on this host")

    def _send_found(self, folder: JobFolder, store: ResultsDatabase, bricks: Collection[str]) -> None:
        """Send what the store has of some bricks; of what is to be measured again, what is newer than the run."""
        store.refresh()
        started, request = folder.state().started, self._request
        found = found_in(store, self._conditions, bricks, started if request.again and self._order is None else "")
        self._send(it for it in found if it.when >= started or not (request.retry_failed and isinstance(it, Failure)))

    def _note(self, text: str) -> None:
        self._tell(TaskNote(task=self._task.id, text=text))

    def _send_record(self, record: Record) -> None:
        self._tell(ResultFound(task=self._task.id, record=to_document(record)))

    def _send(self, records: Iterable[Sendable]) -> None:
        for record in records:
            if record.uuid in self._sent:
                continue
            if not self._sent:
                self._send_record(self._system)
                self._send_record(runtime_record(self._request.runtime, self._system))
            self._sent[record.uuid] = record.brick
            self._send_record(record)

    def _send_peaks(self, store: ResultsDatabase) -> None:
        """Send the peaks by which results of language models here tell something about other hosts."""
        for it in store.peaks() if self._order is not None else ():
            if (it.system, it.threads) == (self._system.id, self._request.runtime.settings.threads):
                self._send_record(it)

    def _tell_progress(self, state: JobState, progress: RunProgress) -> None:
        """Tell the progress if it has changed."""
        now = TaskProgress(
            task=self._task.id,
            done=len(set(self._sent.values()).intersection(self._task.bricks)),
            of=len(self._task.bricks),
            seconds_left=None if progress.seconds_left is None else round(progress.seconds_left, 1),
            disturbed_rounds=progress.disturbances.rounds,
            disturbed_seconds=progress.disturbances.seconds,
            paused=state.state is State.PAUSED,
            waits_for=state.message.removeprefix("for ") if state.state is State.WAITING else "",
        )
        if now != self._progress:
            self._progress = now
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
    # The doctor asks for the check: the data folder, and the frameworks that have to start.
    try:
        sys.stdout.write(check(sys.argv[1], sys.argv[2:]) + "\n")
    except UserError as error:
        sys.exit(str(error))
