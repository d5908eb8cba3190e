"""The folder of a job: its request, state, events, logs, and files that control it."""

import errno
import json
import os
import secrets
import shutil
import signal
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from enum import Enum
from pathlib import Path
from typing import Any, Generic, TypeVar

from dlbricks_tui.files import read_bytes, read_json, write_atomically
from dlbricks_tui.host.queue import ProcessIdentity, WorkKind, this_process
from dlbricks_tui.jobs.codec import decoded, encoded, values_of
from dlbricks_tui.jobs.errors import JobError, UnreadableJobError


class State(str, Enum):
    """The state of a job."""

    STARTING = "starting"
    WAITING = "waiting"
    RUNNING = "running"
    PAUSED = "paused"
    FINISHED = "finished"
    CANCELLED = "cancelled"
    # The process was interrupted or killed, or the host went down.
    INTERRUPTED = "interrupted"
    # The job could not do what was requested.
    FAILED = "failed"

    @property
    def in_words(self) -> str:
        """The state behind the name of a job: `is running`, `has failed`."""
        return "has failed" if self is State.FAILED else f"is {self.value}"


NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})

# A process that starts loads for a while before it works on its job.
_SECONDS_TO_BEGIN, _NAP_SECONDS = 30.0, 0.05

ACTIVE = frozenset({State.STARTING, State.WAITING, State.RUNNING, State.PAUSED})


@dataclass(frozen=True, slots=True)
class Tally:
    """Counts of the bricks or models of a run, by outcome.

    `unfinished` ones have a result from too few samples, since the run was stopped.
    """

    total: int = 0
    measured: int = 0
    reused: int = 0
    failed: int = 0
    unfinished: int = 0

    @property
    def is_complete(self) -> bool:
        return self.measured + self.reused == self.total

    @property
    def done(self) -> int:
        """The number of those that need no more work."""
        return self.measured + self.reused + self.failed


@dataclass(frozen=True, slots=True)
class JobState:
    """The state of a job, and the process that works on it or did so last."""

    # The id of the job.
    run: str
    state: State
    process: ProcessIdentity
    models: tuple[str, ...]
    started: str
    changed: str
    # A brick counts once per context.
    bricks: Tally = Tally()
    # Those that are timed end to end.
    whole_models: Tally = Tally()
    # The time that the job has worked, without waiting and pauses.
    seconds: float = 0.0
    message: str = ""
    # Later jobs in the same place have higher numbers, also after the clock was set back; of earlier versions 0.
    number: int = 0
    kind: WorkKind = WorkKind.RUN

    def __post_init__(self) -> None:
        for when in (self.started, self.changed):
            if datetime.fromisoformat(when).tzinfo is None:
                raise ValueError(f"{when} has no time zone")

    @property
    def active(self) -> bool:
        """True if a process works on it, or waits for its turn."""
        return self.state in ACTIVE

    @property
    def is_finished(self) -> bool:
        """True if it has done what was requested."""
        return self.state is State.FINISHED

    @property
    def has_measured_nothing(self) -> bool:
        """True of a run that had something to measure and has neither a result nor a failure."""
        tallies = (self.bricks, self.whole_models)
        known, failed = sum(it.reused for it in tallies), sum(it.failed for it in tallies)
        to_measure = sum(it.total for it in tallies) - known - failed
        has_results = any(it.measured or it.unfinished for it in tallies)
        return not has_results and not failed and (to_measure > 0 or not known)

    @property
    def was_stopped(self) -> bool:
        """True if it ended before its time: cancelled, interrupted or killed."""
        return self.state in (State.CANCELLED, State.INTERRUPTED)


@dataclass(frozen=True, slots=True)
class StoredJobs:
    """The states of all jobs, the newest last, and for each job whose state cannot be read a line by its id."""

    states: tuple[JobState, ...]
    unreadable: Mapping[str, str]


class JobFolder:
    """The files of a job, whose id is the name of their folder."""

    # The word for it in messages, and the commands that list, show and start one.
    noun = "job"
    listed_by = "dlbricks jobs"
    watched_by = "dlbricks jobs watch"
    resumed_by = "dlbricks jobs resume"
    made_by = "dlbricks trace MODEL"
    # Of jobs whose state does not say it.
    kind = WorkKind.RUN
    # True: its process waits while the job is paused. Others end, and later begin again behind their stored results.
    waits_while_paused = False

    def __init__(self, path: Path) -> None:
        self.path = path
        self.run = path.name
        self.request_file = path / "request.json"
        self.events_file = path / "events.jsonl"
        self._state_file = path / "state.json"
        # The output of its process, and that of the framework.
        self.output_file = path / "output.log"
        self.worker_log = path / "worker.log"
        # The process of the job holds this lock, so that no other one writes to its files; it has the process id.
        self.lock_file = path / "lock"
        # The job is paused while this file exists.
        self.pause_file = path / "pause"
        # There once a viewer has followed the job to its end.
        self.seen_file = path / "seen"

    def state(self) -> JobState:
        """Return the state of the job; one whose process was killed counts as interrupted."""
        found = self._stored_state()
        if self._was_killed(found):
            # Read again: the job may have ended in the meantime.
            found = self._stored_state()
            if self._was_killed(found):
                return replace(found, state=State.INTERRUPTED, message="its process was killed")
        return found

    def set_state(self, state: JobState) -> None:
        # The first screen needs the states of runs, but no records of the store.
        from dlbricks_tui.store.records import utc_now

        with _writing(self._state_file):
            write_atomically(self._state_file, encoded(replace(state, changed=utc_now())) + "\n")

    def pause(self) -> None:
        """Ask the job to pause."""
        # A process that begins lets its job go on.
        process = self._require_active("pause", to_end=True).process
        with _writing(self.pause_file):
            self.pause_file.touch()
        if not self.waits_while_paused:
            self._end(process)

    def unpause(self) -> None:
        """Ask the job to go on."""
        with _writing(self.pause_file):
            self.pause_file.unlink(missing_ok=True)

    def go_on(self, option: str = "") -> None:
        """Ask the job to go on that is paused or about to be; raise JobError if it is neither.

        `option` is one of the command that follows the job.
        """
        state = self.state().state
        if state is not State.PAUSED and not self.pause_file.exists():
            follow = f"{self.watched_by} {self.run}{option}"
            raise JobError(f"{self.noun} {self.run} {state.in_words} already; `{follow}` shows it")
        self.unpause()

    def cancel(self) -> None:
        """Ask the job to end; what it has stored is kept."""
        state = self._require_active("cancel", to_end=True)
        if not self.waits_while_paused:
            self.unpause()
            if not state.process.alive:
                self.set_state(replace(state, state=State.CANCELLED, message="it was cancelled"))
                return
        self._end(state.process)

    def _end(self, process: ProcessIdentity) -> None:
        try:
            os.kill(process.pid, signal.SIGTERM)
        except ProcessLookupError:
            return
        except PermissionError:
            raise JobError(f"{self.noun} {self.run} belongs to another user, process {process.pid}; ask them") from None

    def mark_seen(self) -> None:
        """Remember that a viewer has followed the job to its end."""
        with suppress(OSError):
            self.seen_file.touch()

    def _require_active(self, what: str, *, to_end: bool = False) -> JobState:
        """Return the state of an active job; `to_end` waits until the process that is to be stopped has begun."""
        give_up = time.monotonic() + _SECONDS_TO_BEGIN
        while (state := self.state()).state is State.STARTING and to_end and not self._has_begun(state):
            # The process of its state is still the one that has created it, such as the workbench.
            if time.monotonic() > give_up:
                raise JobError(f"{self.noun} {self.run} is still starting: {what} it later")
            time.sleep(_NAP_SECONDS)
        if not state.active:
            raise JobError(f"{self.noun} {self.run} {state.state.in_words}: there is nothing to {what}")
        return state

    def _has_begun(self, state: JobState) -> bool:
        with suppress(OSError, ValueError):
            return int(read_bytes(self.lock_file)) == state.process.pid
        return False

    def _was_killed(self, found: JobState) -> bool:
        waits = found.state is State.PAUSED and not self.waits_while_paused
        return found.active and not waits and not found.process.alive

    def _stored_state(self) -> JobState:
        try:
            return decoded(JobState, {"kind": self.kind.value, **read_json(self._state_file)})
        except FileNotFoundError:
            if (earlier := self._earlier_state()) is not None:
                return earlier
            raise JobError(
                f"there is no {self.noun} {self.run} here; `{self.listed_by}` shows those there are"
            ) from None
        except OSError as error:
            raise self._unreadable(f"cannot be read: {error.strerror}") from error
        except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError) as error:
            raise self._unreadable(f"is damaged ({error})") from error

    def _earlier_state(self) -> JobState | None:
        """Return the state of a job that an earlier version has started: its folder names the process only."""
        try:
            process = decoded(ProcessIdentity, read_json(self.path / "process.json"))
            kind, began = self.run.rsplit("-", 3)[0], "".join(self.run.rsplit("-", 3)[1:3])
            when = datetime.strptime(began, "%Y%m%d%H%M%S").replace(tzinfo=timezone.utc).isoformat()
            return JobState(self.run, State.RUNNING, process, (), when, when, kind=WorkKind[kind.upper()])
        except (OSError, ValueError, KeyError, IndexError):
            return None

    def _unreadable(self, reason: str) -> UnreadableJobError:
        return UnreadableJobError(
            f"{self._state_file} {reason}: this {self.noun} is left out; remove its folder, which holds no results"
        )


AnyFolder = TypeVar("AnyFolder", bound=JobFolder)
Request = TypeVar("Request")

_SCHEMA = 1
# Jobs of earlier versions, other than runs, have the second one.
_STATES = ("state.json", "process.json")
# So many ended jobs of a kind are kept, besides runs and fleet runs.
_MOST_ENDED = 20


def only_one(wanted: str, folders: Sequence[AnyFolder], kind: type[AnyFolder]) -> AnyFolder:
    """Return the job of this id, or the only one whose id begins so; raise JobError if there is none."""
    found = [it for it in folders if it.run == wanted] or [it for it in folders if it.run.startswith(wanted)]
    if len(found) == 1 and wanted:
        return found[0]
    what = f"{len(found)} {kind.noun}s begin with" if found else f"no {kind.noun} is called"
    raise JobError(f"{what} {wanted[:80]!r}; `{kind.listed_by}` shows those there are")


def new_id(random_bytes: int = 2) -> str:
    """Return an id for a job that begins now."""
    return f"{datetime.now(timezone.utc):%Y%m%d-%H%M%S}-{secrets.token_hex(random_bytes)}"


class FolderList(Generic[AnyFolder]):
    """The folders of jobs in one place of a data folder."""

    folder_type: type[AnyFolder]
    mode = 0o777

    def __init__(self, path: Path) -> None:
        self._path = path

    def create(
        self, models: tuple[str, ...], kind: WorkKind | None = None, run: str = "", request: Any = None
    ) -> AnyFolder:
        """Create the folder of a new job with its request, of this id if there is one; all of it, or nothing."""
        folder = self.folder_type(self._path / (run or new_id()))
        # Two jobs of one second may draw the same number.
        while not run and folder.path.is_dir():
            folder = self.folder_type(self._path / new_id())
        with _writing(folder.path):
            # A host that was killed while it created a job of a fleet run has left the folder.
            folder.path.mkdir(mode=self.mode, parents=True, exist_ok=bool(run))
        # This process owns the job until another one works on it.
        began = datetime.now(timezone.utc).isoformat(timespec="microseconds")
        number = 1 + max((it.number for it in self.stored().states), default=0)
        owner, kind = this_process(), kind or folder.kind
        state = JobState(folder.run, State.STARTING, owner, models, began, began, number=number, kind=kind)
        try:
            folder.set_state(state)
            if request is not None:
                store_request(folder.request_file, request)
        except BaseException:
            shutil.rmtree(folder.path, ignore_errors=True)
            raise
        return folder

    def stored(self) -> StoredJobs:
        """Return the states of all jobs, and the jobs whose state cannot be read."""
        states: list[JobState] = []
        unreadable: dict[str, str] = {}
        for folder in self.folders():
            try:
                states.append(folder.state())
            except UnreadableJobError as error:
                unreadable[folder.run] = str(error)
            except JobError:
                # It was removed since, such as to make room for a new one.
                continue
        return StoredJobs(tuple(sorted(states, key=lambda it: (it.number, it.started))), unreadable)

    def states(self) -> tuple[JobState, ...]:
        """Return the states of all jobs that can be read, the newest last."""
        return self.stored().states

    def find(self, wanted: str) -> AnyFolder:
        """Find a job by its id, or by the beginning of its id if that is unique; `last` is the newest."""
        if wanted == "last":
            return self._last()
        return only_one(wanted, self.folders(), self.folder_type)

    def _last(self) -> AnyFolder:
        found = self.stored()
        newest = found.states[-1].run if found.states else ""
        # Ids begin with the date: an unreadable job may be newer.
        for run in sorted(found.unreadable, reverse=True):
            if run > newest:
                raise UnreadableJobError(found.unreadable[run])
        if not newest:
            raise JobError(f"there is no {self.folder_type.noun} yet; `{self.folder_type.made_by}` starts one")
        return self.folder_type(self._path / newest)

    def folders(self) -> list[AnyFolder]:
        """Return the folders of all jobs, by their ids."""
        try:
            # Also those with a directory or a broken link in the place of the state.
            found = sorted(path for path in self._path.iterdir() if any(os.path.lexists(path / it) for it in _STATES))
        except FileNotFoundError:
            return []
        except OSError as error:
            raise JobError(f"cannot read {self._path}: {error.strerror}") from error
        return [self.folder_type(path) for path in found]


class RunFolder(JobFolder):
    """The files of a run."""

    noun = "run"
    listed_by = "dlbricks runs list"
    watched_by = "dlbricks runs watch"
    waits_while_paused = True
    made_by = "dlbricks run"


class RunFolders(FolderList[RunFolder]):
    """The folders of all runs of a data folder."""

    folder_type = RunFolder


class JobFolders(FolderList[JobFolder]):
    """The folders of all other jobs of a data folder; the oldest ended ones make room for new ones."""

    folder_type = JobFolder
    # The order of an export has the secret of its suite.
    mode = 0o700

    def create(
        self, models: tuple[str, ...], kind: WorkKind | None = None, run: str = "", request: Any = None
    ) -> JobFolder:
        ended = [it.run for it in self.states() if it.kind is kind and not it.active]
        for it in ended[: 1 - _MOST_ENDED]:
            shutil.rmtree(self._path / it, ignore_errors=True)
        return super().create(models, kind, run, request)


def store_request(path: Path, request: Any) -> None:
    """Store what a job is asked to do, so that any process can work on it."""
    with _writing(path):
        write_atomically(path, json.dumps({"schema": _SCHEMA, **values_of(request)}, indent=2) + "\n")


def stored_request(path: Path, kind: type[Request], noun: str = "job") -> Request:
    """Return what a job is asked to do."""
    try:
        document = read_json(path)
        schema = document["schema"]
        if schema == _SCHEMA:
            return decoded(kind, document)
    except OSError as error:
        raise JobError(f"cannot read {path}: {error.strerror}; start a new {noun}") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise JobError(f"{path} is no request of a {noun} ({error!r}); start a new {noun}") from error
    raise JobError(
        f"{path} was written with schema {schema!r}; this version reads schema {_SCHEMA}; start a new {noun}"
    )


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        cure = "free some space" if error.errno in NO_ROOM else "make it writable"
        raise JobError(
            f"cannot write {path}: {error.strerror}; what was measured is kept: {cure}, or choose another data folder"
        ) from error
