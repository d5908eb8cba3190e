"""A job in a process of its own: its start, its viewers, and its work.

The process outlives the program that has started it: others can watch, cancel and follow it later.
"""

from __future__ import annotations

import asyncio
import math
import os
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from dlbricks_tui.errors import UserError, exit_in_words, keep_traceback
from dlbricks_tui.files import open_log, read_bytes
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.host.queue import ProcessIdentity, identity_of, this_process
from dlbricks_tui.jobs.control import JobStopped, StopSignals, only_process
from dlbricks_tui.jobs.errors import JobError
from dlbricks_tui.jobs.events import Event, EventReader, EventWriter, JobEnded, JobStarted, Waiting
from dlbricks_tui.jobs.folder import JobFolder, State
from dlbricks_tui.jobs.kinds import JobKind, refuse_in_demonstration

if TYPE_CHECKING:
    from dlbricks_tui.jobs.folder import JobState

Request = TypeVar("Request")

PACKAGE_PARENT = Path(__file__).resolve().parents[2]
# This dlbricks comes first on the path, whatever else is installed and wherever the process works.
_CODE = """import importlib, sys
sys.path[0] = sys.argv[1]
module, _, function = sys.argv[2].partition(":")
getattr(importlib.import_module(module), function or "main")(*sys.argv[3:])"""
# The pipe that a process waits at for the end of the one that has started it.
LEASH_VARIABLE = "DLBRICKS_LEASH"
_SECONDS_TO_START = 120.0
# The process ends its workers before it ends itself; one that hangs is killed with them after this time.
_SECONDS_TO_END = 10.0
# A look costs a read of a file, which disturbs no measurement.
_SECONDS_BETWEEN_LOOKS = 0.1
_NAP_SECONDS = 0.02


def command_of(module: str, *arguments: str) -> list[str]:
    """Return the command that calls a function, `module:name`, or `main` of a module, in a process of its own."""
    return [sys.executable, "-c", _CODE, str(PACKAGE_PARENT), module, *arguments]


def _spawn(folder: JobFolder, data: DataFolder, module: str, leash: int | None = None) -> subprocess.Popen[bytes]:
    """Start the process of a job; on a leash, it ends when the other end of that pipe is closed."""
    environment = dict(os.environ)
    if leash is not None:
        environment[LEASH_VARIABLE] = str(leash)
    try:
        with open_log(folder.output_file) as output:
            # A session of its own: ctrl+c in the terminal reaches this process only, which ends the other one, and
            # ctrl+z must not stop a model that is being timed.
            return subprocess.Popen(
                command_of(module, str(folder.path), str(data.path)),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=environment,
                cwd=folder.path,
                pass_fds=() if leash is None else (leash,),
                start_new_session=True,
            )
    except OSError as error:
        told = f"cannot start {folder.noun} {folder.run}: {error.strerror}"
        _keep_failure(folder, told)
        raise JobError(told) from error


def _keep_failure(folder: JobFolder, words: str) -> None:
    # Otherwise it has ended before, or another process works on it: its state stays.
    if (state := folder.state()).active and state.process == this_process():
        _keep(folder, replace(state, state=State.FAILED, message=words))


def _last_words(folder: JobFolder) -> str:
    try:
        lines = read_bytes(folder.output_file).decode(errors="replace").split("\n")
    except OSError:
        return ""
    return next((it for it in reversed(lines) if it.strip()), "")


def start_detached(folder: JobFolder, data: DataFolder, module: str) -> None:
    """Work on the job in a separate process, and return when it has begun; `module` has its `main`."""
    refuse_in_demonstration(folder.state().kind)
    wait_until_begun(folder, _spawn(folder, data, module))


def wait_until_begun(folder: JobFolder, process: subprocess.Popen[bytes]) -> None:
    """Wait until a process works on the job; raise JobError if it does not begin."""
    give_up = time.monotonic() + _SECONDS_TO_START
    while folder.state().process.pid != process.pid:
        # The job may have begun and ended since the state was read.
        if process.poll() is not None and folder.state().process.pid != process.pid:
            words = _last_words(folder) or "it printed nothing"
            _keep_failure(folder, words)
            raise JobError(f"{folder.noun} {folder.run} did not start: {words}")
        if time.monotonic() > give_up:
            raise JobError(
                f"{folder.noun} {folder.run} did not start within {_SECONDS_TO_START:g} s; see {folder.output_file}"
            )
        time.sleep(_NAP_SECONDS)


class JobProcess:
    """The process of one job, from its start to its end.

    - `follow` is for code in an event loop, which may `stop` the process meanwhile. The process goes on when the loop
      ends before it.
    - `run` is for all other code: an exception, such as KeyboardInterrupt, ends the process.
    """

    def __init__(self, kind: JobKind[Any], data: DataFolder, create: Callable[[], JobFolder]) -> None:
        self._kind = kind
        self._data = data
        self._create = create
        self._folder: JobFolder | None = None
        # None before the start, and for a process that another program has started.
        self._child: subprocess.Popen[bytes] | None = None
        self._process: ProcessIdentity | None = None
        self._reader: EventReader | None = None
        # Events that nobody has taken yet.
        self._events: deque[Event] = deque()
        self._ended: JobEnded | None = None
        # When it is killed, if it does not end before.
        self._kill_at = math.inf
        # True once the user has asked the process to end.
        self.stopped = False

    @classmethod
    def new(cls, kind: JobKind[Request], request: Request, data: DataFolder, models: Sequence[str] = ()) -> JobProcess:
        """Return the process of a new job; it starts when it is followed."""
        return cls(kind, data, lambda: kind.create(data, tuple(models), request))

    @classmethod
    def started_before(cls, kind: JobKind[Any], folder: JobFolder, data: DataFolder) -> JobProcess:
        """Return a process that was started earlier; it is followed from its first event on."""
        found = cls(kind, data, lambda: folder)
        found._folder, found._process = folder, folder.state().process
        found._reader = kind.reader(folder)
        return found

    async def follow(self, take: Callable[[Event], None]) -> None:
        """Pass on the events of the job until it has ended; raise JobError if it fails."""
        if self._process is None:
            self._start()
        try:
            for _ in self._looks():
                self._pass_on(take)
                await asyncio.sleep(_SECONDS_BETWEEN_LOOKS)
        except asyncio.CancelledError:
            # The viewer leaves, and the process goes on.
            raise
        except BaseException:
            self._end()
            for _ in self._looks():
                await asyncio.sleep(_SECONDS_BETWEEN_LOOKS)
            raise
        self._conclude()

    def run(self, take: Callable[[Event], None]) -> None:
        """Start the process, and pass on its events until it has ended; raise JobError if it fails.

        An exception that a signal or `take` raises ends the process with its workers; a second one kills them. After
        KeyboardInterrupt, events that the process writes until its end are passed on. If this process is killed, the
        other one ends too.
        """
        leash, held_end = os.pipe()
        try:
            self._start(leash)
            for _ in self._looks():
                self._pass_on(take)
                time.sleep(_SECONDS_BETWEEN_LOOKS)
        except BaseException as error:
            self.stopped = True
            try:
                self._end()
                for _ in self._looks():
                    if isinstance(error, KeyboardInterrupt):
                        self._pass_on(take)
                    time.sleep(_SECONDS_BETWEEN_LOOKS)
            finally:
                # It hangs, or a second exception leaves no time to wait.
                self._kill()
            raise
        finally:
            os.close(leash)
            os.close(held_end)
        self._conclude()

    def stop(self) -> None:
        """End the process; what it has stored is kept."""
        self.stopped = True
        self._end()

    def _start(self, leash: int | None = None) -> None:
        folder = self._folder = self._create()
        self._child = _spawn(folder, self._data, self._kind.function, leash)
        self._process = identity_of(self._child.pid)
        self._reader = self._kind.reader(folder)
        _keep(folder, replace(folder.state(), process=self._process))
        if self.stopped:
            self._end()

    def _looks(self) -> Iterator[None]:
        """Yield as long as the process runs, and once more: its last events are there then."""
        is_there = True
        while is_there:
            is_there = self._is_there()
            if time.monotonic() >= self._kill_at:
                self._kill()
            yield

    def _is_there(self) -> bool:
        if self._child is not None:
            return self._child.poll() is None
        return self._process is not None and self._process.alive

    def _pass_on(self, take: Callable[[Event], None]) -> None:
        """Pass on the events that the process has written since the last look."""
        if self._reader is not None:
            self._events.extend(self._reader.new())
        while self._events:
            event = self._events.popleft()
            if isinstance(event, JobStarted | JobEnded):
                # Another process may have ended before.
                self._ended = event if isinstance(event, JobEnded) else None
            take(event)

    def _end(self) -> None:
        self._kill_at = time.monotonic() + _SECONDS_TO_END
        if self._process is not None and self._is_there():
            with suppress(ProcessLookupError):
                os.kill(self._process.pid, signal.SIGTERM)

    def _kill(self) -> None:
        """Kill the process with its workers, which are in its group."""
        if self._process is not None and self._is_there():
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)

    def _conclude(self) -> None:
        """Raise JobError if the job has failed; its end has been seen."""
        folder, ended = self._folder, self._ended
        if folder is None:
            return
        folder.mark_seen()
        if self.stopped or (ended is not None and ended.state == State.FINISHED.value):
            return
        if ended is not None:
            raise JobError(ended.message)
        if self._child is None:
            raise JobError(folder.state().message)
        if self._child.returncode:
            how = exit_in_words(self._child.returncode)
            raise JobError(_last_words(folder) or f"the process {how}; {folder.path} tells no other reason")


@dataclass(frozen=True)
class JobAtWork(Generic[Request]):
    """A job in the process that works on it."""

    folder: JobFolder
    data: DataFolder
    request: Request
    signals: StopSignals
    tell: Callable[[Event], None]


def work_in_process(kind: JobKind[Request], folder: str, data: str, work: Callable[[JobAtWork[Request]], None]) -> int:
    """Do the work of a job in a process of its own; return the exit status."""
    _hold_leash()
    return int(work_on(kind, JobFolder(Path(folder)), DataFolder(Path(data)), work).state is not State.FINISHED)


def work_on(
    kind: JobKind[Request],
    job: JobFolder,
    data: DataFolder,
    work: Callable[[JobAtWork[Request]], None],
    listener: Callable[[Event], None] | None = None,
) -> JobState:
    """Do the work of a job in this process, and keep its state and events; return the state at its end.

    A full disk loses progress and the stored state, not the work.
    """
    began = time.monotonic()
    with (
        only_process(job),
        StopSignals(ignore_hangup=False) as signals,
        closing(EventWriter(job.events_file, listener, spares_disk=True)) as events,
    ):
        course = _Course(job, events, began)
        try:
            work(JobAtWork(job, data, kind.request_of(job), signals, course.tell))
        except JobStopped as stopped:
            if stopped.state is State.CANCELLED and job.pause_file.exists():
                return course.end(State.PAUSED, f"it is paused: `{job.resumed_by} {job.run}` goes on")
            return course.end(stopped.state, stopped.why)
        except UserError as error:
            return course.end(State.FAILED, str(error))
        except Exception as error:  # noqa: BLE001 - a fault of dlbricks is one line, too
            told = f"internal error: {error}; the traceback is in {keep_traceback(error, data.log)}"
            return course.end(State.FAILED, told)
        return course.end(State.FINISHED)


class _Course:
    """The state and the events of a job at work."""

    def __init__(self, job: JobFolder, events: EventWriter, began: float) -> None:
        self._job, self._events = job, events
        self._began = self._changed = began
        self._state = replace(job.state(), state=State.STARTING, process=this_process(), seconds=0.0, message="")
        with suppress(OSError):
            job.seen_file.unlink(missing_ok=True)
            job.pause_file.unlink(missing_ok=True)
        _keep(job, self._state)
        events.tell(JobStarted(pid=this_process().pid))

    @property
    def _seconds(self) -> float:
        """The time of work until now, without waiting."""
        return (self._changed if self._state.state is State.WAITING else time.monotonic()) - self._began

    def _change(self, found: State, message: str = "") -> None:
        if (found, message) != (self._state.state, self._state.message):
            worked, self._changed = self._seconds, time.monotonic()
            self._began = self._changed - worked
            self._state = replace(self._state, state=found, message=message, seconds=worked)
            _keep(self._job, self._state)

    def tell(self, event: Event) -> None:
        if isinstance(event, Waiting):
            self._change(State.WAITING, f"for {event.holder}")
        else:
            self._change(State.RUNNING)
        self._events.tell(event)

    def end(self, found: State, message: str = "") -> JobState:
        # Told before the state changes: viewers stop reading events at a final state.
        self._events.tell(JobEnded(state=found.value, message=message, seconds=self._seconds))
        self._change(found, message)
        return self._state


def _keep(folder: JobFolder, state: JobState) -> None:
    with suppress(JobError):
        folder.set_state(state)


def _hold_leash() -> None:
    """End this process by SIGTERM when the one ends that has started it and waits for it, even if that is killed."""
    leash = os.environ.pop(LEASH_VARIABLE, None)

    def wait(pipe: int) -> None:
        os.read(pipe, 1)
        os.kill(os.getpid(), signal.SIGTERM)

    if leash is not None:
        threading.Thread(target=wait, args=(int(leash),), name="leash", daemon=True).start()
