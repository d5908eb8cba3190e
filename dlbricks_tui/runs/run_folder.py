"""The folder of a run: its request, state, events, logs, and files that control it."""

import errno
import json
import os
import secrets
import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timezone
from enum import Enum
from pathlib import Path
from typing import Any, Generic, TypeVar

from dlbricks_tui.atomic_write import write_atomically
from dlbricks_tui.host.queue import ProcessIdentity, this_process
from dlbricks_tui.regular_files import read_json
from dlbricks_tui.runs.errors import RunError, UnreadableRunError


class State(str, Enum):
    """The state of a run."""

    STARTING = "starting"
    WAITING = "waiting"
    RUNNING = "running"
    PAUSED = "paused"
    FINISHED = "finished"
    CANCELLED = "cancelled"
    # The process was interrupted or killed, or the host went down.
    INTERRUPTED = "interrupted"
    # The run could not do what was requested.
    FAILED = "failed"


NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})

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


@dataclass(frozen=True, slots=True)
class RunState:
    """The state of a run, and the process that works on it or did so last."""

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
    # The time that the run has worked, without waiting and pauses.
    seconds: float = 0.0
    message: str = ""
    # Later runs have higher numbers, also after the clock was set back. Runs of earlier versions have 0.
    number: int = 0

    @property
    def active(self) -> bool:
        """True if a process works on it, or waits for its turn."""
        return self.state in ACTIVE


@dataclass(frozen=True, slots=True)
class StoredRuns:
    """The states of all runs, the newest last, and for each run whose state cannot be read a line by its id."""

    states: tuple[RunState, ...]
    unreadable: Mapping[str, str]


class RunFolder:
    """The files of a run, whose id is the name of their folder."""

    # The word for it in messages, and the commands that list, show and start one.
    noun = "run"
    listed_by = "dlbricks runs list"
    watched_by = "dlbricks runs watch"
    made_by = "dlbricks run"

    def __init__(self, path: Path) -> None:
        self.path = path
        self.run = path.name
        self.request_file = path / "request.json"
        self.events_file = path / "events.jsonl"
        self._state_file = path / "state.json"
        # The output of a detached process, and that of the framework.
        self.output_file = path / "output.log"
        self.worker_log = path / "worker.log"
        # The process of the run holds this lock, so that no other one writes to its files.
        self.lock_file = path / "lock"
        # The run is paused while this file exists.
        self.pause_file = path / "pause"

    def state(self) -> RunState:
        """Return the state of the run; a run whose process was killed counts as interrupted."""
        found = self._stored_state()
        if found.active and not found.process.alive:
            # Read again: the run may have ended in the meantime.
            found = self._stored_state()
            if found.active:
                return replace(found, state=State.INTERRUPTED, message="its process was killed")
        return found

    def set_state(self, state: RunState) -> None:
        # The first screen needs the states of runs, but no records of the store.
        from dlbricks_tui.store.records import utc_now

        with _writing(self._state_file):
            write_atomically(self._state_file, json.dumps(asdict(replace(state, changed=utc_now()))) + "\n")

    def pause(self) -> None:
        """Ask the run to pause."""
        self._require_active("pause")
        with _writing(self.pause_file):
            self.pause_file.touch()

    def unpause(self) -> None:
        """Ask the run to go on."""
        with _writing(self.pause_file):
            self.pause_file.unlink(missing_ok=True)

    def cancel(self) -> None:
        """Ask the run to end; what it has measured is kept."""
        process = self._require_active("cancel").process
        try:
            os.kill(process.pid, signal.SIGTERM)
        except ProcessLookupError:
            return
        except PermissionError:
            raise RunError(f"{self.noun} {self.run} belongs to another user, process {process.pid}; ask them") from None

    def _require_active(self, what: str) -> RunState:
        state = self.state()
        if not state.active:
            raise RunError(f"{self.noun} {self.run} is {state.state.value}: there is nothing to {what}")
        return state

    def _stored_state(self) -> RunState:
        try:
            return _state_from(read_json(self._state_file))
        except FileNotFoundError:
            raise RunError(
                f"there is no {self.noun} {self.run} here; `{self.listed_by}` shows those there are"
            ) from None
        except OSError as error:
            raise self._unreadable(f"cannot be read: {error.strerror}") from error
        except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError) as error:
            raise self._unreadable(f"is damaged ({error})") from error

    def _unreadable(self, reason: str) -> UnreadableRunError:
        return UnreadableRunError(
            f"{self._state_file} {reason}: this {self.noun} is left out; remove its folder, which holds no results"
        )


AnyFolder = TypeVar("AnyFolder", bound=RunFolder)


class FolderList(Generic[AnyFolder]):
    """The folders of all runs of one kind in a data folder."""

    kind: type[AnyFolder]

    def __init__(self, path: Path) -> None:
        self._path = path

    def create(self, models: tuple[str, ...]) -> AnyFolder:
        """Create the folder of a new run."""
        now = datetime.now(timezone.utc)
        folder = self.kind(self._path / f"{now:%Y%m%d-%H%M%S}-{secrets.token_hex(2)}")
        with _writing(folder.path):
            folder.path.mkdir(parents=True)
        # This process owns the run until another one executes it.
        began = now.isoformat(timespec="microseconds")
        number = 1 + max((it.number for it in self.stored().states), default=0)
        folder.set_state(RunState(folder.run, State.STARTING, this_process(), models, began, began, number=number))
        return folder

    def stored(self) -> StoredRuns:
        """Return the states of all runs, and the runs whose state cannot be read."""
        states: list[RunState] = []
        unreadable: dict[str, str] = {}
        for folder in self._folders():
            try:
                states.append(folder.state())
            except UnreadableRunError as error:
                unreadable[folder.run] = str(error)
        return StoredRuns(tuple(sorted(states, key=lambda it: (it.number, it.started))), unreadable)

    def states(self) -> tuple[RunState, ...]:
        """Return the states of all runs that can be read, the newest last."""
        return self.stored().states

    def find(self, wanted: str) -> AnyFolder:
        """Find a run by its id, or by the beginning of its id if that is unique; `last` is the newest."""
        if wanted == "last":
            return self._last()
        folders = self._folders()
        found = [it for it in folders if it.run == wanted] or [it for it in folders if it.run.startswith(wanted)]
        if len(found) == 1 and wanted:
            return found[0]
        what = f"{len(found)} {self.kind.noun}s begin with" if found else f"no {self.kind.noun} is called"
        raise RunError(f"{what} {wanted[:80]!r}; `{self.kind.listed_by}` shows those there are")

    def _last(self) -> AnyFolder:
        found = self.stored()
        newest = found.states[-1].run if found.states else ""
        # Ids begin with the date: an unreadable run may be newer.
        for run in sorted(found.unreadable, reverse=True):
            if run > newest:
                raise UnreadableRunError(found.unreadable[run])
        if not newest:
            raise RunError(f"there is no {self.kind.noun} yet; `{self.kind.made_by}` starts one")
        return self.kind(self._path / newest)

    def _folders(self) -> list[AnyFolder]:
        try:
            # Also those with a directory or a broken link in the place of the state.
            found = sorted(path for path in self._path.iterdir() if os.path.lexists(path / "state.json"))
        except FileNotFoundError:
            return []
        except OSError as error:
            raise RunError(f"cannot read {self._path}: {error.strerror}") from error
        return [self.kind(path) for path in found]


class RunFolders(FolderList[RunFolder]):
    """The folders of all runs of a data folder."""

    kind = RunFolder


def _state_from(document: dict[str, Any]) -> RunState:
    """Return the state that JSON values stand for; others raise one of several built-in errors."""
    process = document.pop("process")
    return RunState(
        state=State(document.pop("state")),
        process=ProcessIdentity(int(process["pid"]), str(process["started"])),
        models=tuple(map(str, document.pop("models"))),
        bricks=_tally_from(document.pop("bricks")),
        whole_models=_tally_from(document.pop("whole_models")),
        seconds=float(document.pop("seconds")),
        number=int(document.pop("number", 0)),
        **{name: str(text) for name, text in document.items()},
    )


def _tally_from(document: dict[str, Any]) -> Tally:
    return Tally(**{name: int(count) for name, count in document.items()})


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        cure = "free some space" if error.errno in NO_ROOM else "make it writable"
        raise RunError(
            f"cannot write {path}: {error.strerror}; what was measured is kept: {cure}, or choose another data folder"
        ) from error
