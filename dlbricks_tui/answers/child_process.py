"""Processes of this program that read an order from their standard input, and write a line for each step.

Each has a folder with its order and its lines, so that it outlives the program that has started it: another one can
follow it later.
"""

from __future__ import annotations

import asyncio
import json
import math
import os
import pickle
import secrets
import shutil
import signal
import subprocess
import time
from collections import deque
from contextlib import suppress
from dataclasses import asdict
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from dlbricks_tui.atomic_write import write_atomically
from dlbricks_tui.errors import UserError
from dlbricks_tui.host.queue import ProcessIdentity, identity_of
from dlbricks_tui.recorded_host import NOTHING_IS_MEASURED, recorded_host
from dlbricks_tui.regular_files import read_bytes
from dlbricks_tui.runs.control import LEASH_VARIABLE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from dlbricks_tui.folders import DataFolder
    from dlbricks_tui.host.queue import WorkKind

Message = TypeVar("Message")

# The process ends its workers before it ends itself; one that hangs is killed with them after this time.
_SECONDS_TO_END = 10.0
# A look costs a read of a file, which disturbs no measurement.
_SECONDS_BETWEEN_LOOKS = 0.1
# Processes that have ended and that nobody has followed to their end keep their folders, up to so many.
_MOST_ENDED = 20


class ChildError(UserError):
    """The process could not be started, wrote something else than messages, or has failed."""


class JobFolder:
    """The files of such a process: `KIND-TIME` in the folder of jobs."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.order = path / "order"
        self.messages = path / "messages.jsonl"
        # What the process narrates; the last line says why it failed.
        self.narration = path / "output.log"
        self.identity = path / "process.json"

    @classmethod
    def new(cls, data: DataFolder, kind: WorkKind) -> JobFolder:
        """Return a folder that is not there yet; old ones that nobody has followed to their end are removed."""
        for old in [it for it in cls.all_of(data, kind) if not it.is_active][:-_MOST_ENDED]:
            old.remove()
        name = f"{kind.name.lower()}-{datetime.now(timezone.utc):%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"
        return cls(data.jobs / name)

    @classmethod
    def all_of(cls, data: DataFolder, kind: WorkKind) -> list[JobFolder]:
        """Return the folders of all processes of a kind, the newest last."""
        try:
            found = sorted(data.jobs.glob(f"{kind.name.lower()}-*"))
        except OSError:
            return []
        return [cls(path) for path in found if (path / "process.json").is_file()]

    @classmethod
    def last_of(cls, data: DataFolder, kind: WorkKind, model: str) -> tuple[JobFolder, Any] | None:
        """Return the newest process of a kind that is about a model, with its order; it may have ended."""
        for folder in reversed(cls.all_of(data, kind)):
            # The order of another version of this program says nothing.
            with suppress(OSError, EOFError, ImportError, AttributeError, TypeError, pickle.UnpicklingError):
                order = pickle.loads(folder.order.read_bytes())
                if order.source.name == model:
                    return folder, order
        return None

    @property
    def process(self) -> ProcessIdentity | None:
        """The process; None if the folder does not say it."""
        try:
            found = json.loads(self.identity.read_bytes())
            return ProcessIdentity(int(found["pid"]), str(found["started"]))
        except (OSError, ValueError, KeyError, TypeError):
            return None

    @property
    def is_active(self) -> bool:
        """True while its process runs."""
        process = self.process
        return process is not None and process.alive

    def remove(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)


class ChildProcess(Generic[Message]):
    """One such process, from its start to its end.

    - `follow` is for code in an event loop, which may `stop` the process meanwhile. The process goes on when the loop
      ends before it.
    - `run` is for all other code: an exception, such as KeyboardInterrupt, ends the process.
    """

    def __init__(
        self, command: Sequence[str], order: bytes, folder: JobFolder, decode: Callable[[bytes], Message]
    ) -> None:
        self.folder = folder
        self._command = command
        self._order = order
        self._decode = decode
        # None before the start, and for a process that another program has started.
        self._child: subprocess.Popen[bytes] | None = None
        self._process: ProcessIdentity | None = None
        # Lines that nobody has taken yet, and where the next one begins.
        self._lines: deque[bytes] = deque()
        self._read_bytes = 0
        # When it is killed, if it does not end before.
        self._kill_at = math.inf
        # True once the user has asked the process to end.
        self.stopped = False

    @classmethod
    def started_before(cls, folder: JobFolder, decode: Callable[[bytes], Message]) -> ChildProcess[Message]:
        """Return a process that was started earlier; it is followed from its first message on."""
        found = cls((), b"", folder, decode)
        found._process = folder.process
        return found

    async def follow(self, take: Callable[[Message], None]) -> None:
        """Pass on the messages of the process until it has ended; raise ChildError if it fails."""
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

    def run(self, take: Callable[[Message], None]) -> None:
        """Start the process, and pass on its messages until it has ended; raise ChildError if it fails.

        An exception that a signal or `take` raises ends the process with its workers; a second one kills them. After
        KeyboardInterrupt, messages that the process writes until its end are passed on. If this process is killed, the
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
                self.folder.remove()
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
        """Start the process; on a leash, it ends when the other end of that pipe is closed."""
        if recorded_host() is not None:
            raise ChildError(NOTHING_IS_MEASURED)
        folder, environment = self.folder, dict(os.environ)
        passed = () if leash is None else (leash,)
        if leash is not None:
            environment[LEASH_VARIABLE] = str(leash)
        try:
            folder.path.mkdir(parents=True)
            folder.order.write_bytes(self._order)
            # A session of its own: ctrl+c in the terminal reaches this process only, which ends the other one, and
            # ctrl+z must not stop a model that is being timed.
            with (
                folder.order.open("rb") as order,
                folder.messages.open("wb") as messages,
                folder.narration.open("wb") as narration,
            ):
                self._child = subprocess.Popen(
                    self._command,
                    stdin=order,
                    stdout=messages,
                    stderr=narration,
                    env=environment,
                    pass_fds=passed,
                    start_new_session=True,
                )
            self._process = identity_of(self._child.pid)
            write_atomically(folder.identity, json.dumps(asdict(self._process)))
        except OSError as error:
            folder.remove()
            raise ChildError(f"the process cannot be started: {error.strerror}") from error
        if self.stopped:
            self._end()

    def _looks(self) -> Iterator[None]:
        """Yield as long as the process runs, and once more: its last messages are there then."""
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

    def _pass_on(self, take: Callable[[Message], None]) -> None:
        """Pass on the messages that the process has written since the last look."""
        with suppress(FileNotFoundError), self.folder.messages.open("rb") as file:
            file.seek(self._read_bytes)
            complete, newline, _ = file.read().rpartition(b"\n")
            self._read_bytes += len(complete) + len(newline)
            self._lines.extend(complete.split(b"\n") if newline else ())
        while self._lines:
            try:
                message = self._decode(self._lines.popleft())
            except (ValueError, LookupError, TypeError, AttributeError) as error:
                raise ChildError("the process wrote a line that is no message") from error
            take(message)

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
        """Remove the folder; raise ChildError if the process has failed."""
        status = 0 if self._child is None else self._child.returncode
        words = self._last_words()
        self.folder.remove()
        if status and not self.stopped:
            raise ChildError(words or f"the process ended with status {status}")

    def _last_words(self) -> str:
        try:
            lines = read_bytes(self.folder.narration).decode(errors="replace").split("\n")
        except OSError:
            return ""
        return next((it for it in reversed(lines) if it.strip()), "")
