"""Processes of this program that read an order from their standard input, and write a line for each step."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from dlbricks_tui.errors import UserError
from dlbricks_tui.recorded_host import NOTHING_IS_MEASURED, recorded_host

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Sequence
    from pathlib import Path
    from typing import BinaryIO

Message = TypeVar("Message")

# The process ends its workers before it ends itself; one that hangs is killed with them after this time.
_SECONDS_TO_END = 10.0
# Python handles a signal that arrives just before a thread waits only after the wait: no wait is longer.
_LONGEST_WAIT = 1.0
# The latencies of a second of requests are one line.
_LONGEST_LINE = 1 << 26


class ChildError(UserError):
    """The process could not be started, wrote something else than messages, or has failed."""


class _End(NamedTuple):
    """The end of the process, as the thread that follows it tells it."""

    error: BaseException | None


class ChildProcess(Generic[Message]):
    """One such process, from its start to its end.

    - `follow` is for code in an event loop, which may `stop` the process meanwhile.
    - `run` is for all other code; an exception in its thread, such as KeyboardInterrupt, ends the process.
    """

    def __init__(self, command: Sequence[str], order: bytes, log: Path, decode: Callable[[bytes], Message]) -> None:
        self._command = command
        self._order = order
        # What the process narrates; the last line says why it failed.
        self._log = log
        self._decode = decode
        self._process: asyncio.subprocess.Process | None = None
        # True once the user has asked the process to end.
        self.stopped = False

    async def follow(self, take: Callable[[Message], None]) -> None:
        """Start the process and pass on its messages until it has ended; raise ChildError if it fails."""
        if recorded_host() is not None:
            raise ChildError(NOTHING_IS_MEASURED)
        try:
            self._log.parent.mkdir(parents=True, exist_ok=True)
            with self._log.open("wb") as narration:
                process = self._process = await self._start(narration)
        except OSError as error:
            raise ChildError(f"the process cannot be started: {error.strerror}") from error
        if self.stopped:
            self._end()
        try:
            await self._send_order(process)
            async for message in self._messages(process):
                take(message)
        except BaseException:
            self._end()
            await process.wait()
            raise
        status = await process.wait()
        if status and not self.stopped:
            raise ChildError(self._last_words() or f"the process ended with status {status}")

    def run(self, take: Callable[[Message], None]) -> None:
        """Start the process and call `take` in this thread with its messages; raise ChildError if it fails.

        An exception that a signal or `take` raises ends the process with its workers, and a second one kills them.
        After KeyboardInterrupt, messages that the process writes until its end are passed on too. The event loop is in
        a thread of its own, since one may be running in this thread, as in a notebook.
        """
        told: SimpleQueue[Message | _End] = SimpleQueue()

        def follow() -> None:
            error: BaseException | None = None
            try:
                asyncio.run(self.follow(told.put))
            except BaseException as raised:  # noqa: BLE001 - the thread that waits raises it
                error = raised
            told.put(_End(error))

        thread = threading.Thread(target=follow, name="child process")
        try:
            thread.start()
            while not isinstance(last := _next(told), _End):
                take(last)
        except BaseException as error:
            if thread.is_alive():
                self._end_in(thread)
            if isinstance(error, KeyboardInterrupt):
                for message in _rest(told):
                    take(message)
            raise
        if last.error is not None:
            raise last.error

    def stop(self) -> None:
        """End the process, in the thread of its event loop; what it has stored is kept."""
        self.stopped = True
        self._end()

    async def ended(self) -> None:
        """Wait until the process has ended after it was stopped."""
        if self._process is not None:
            await self._process.wait()

    def _end_in(self, thread: threading.Thread) -> None:
        """End the process that another thread follows, and wait for both."""
        try:
            # A process that has not started yet ends as soon as it has.
            self.stopped = True
            self._signal(signal.SIGTERM)
            thread.join(_SECONDS_TO_END)
        finally:
            # It hangs, or a second exception leaves no time to wait.
            self._kill()
            thread.join()

    def _end(self) -> None:
        self._signal(signal.SIGTERM)
        asyncio.get_running_loop().call_later(_SECONDS_TO_END, self._kill)

    def _signal(self, number: signal.Signals) -> None:
        if self._process is not None and self._process.returncode is None:
            with suppress(ProcessLookupError):
                os.kill(self._process.pid, number)

    def _kill(self) -> None:
        """Kill the process with its workers, which are in its group."""
        if self._process is not None and self._process.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)

    async def _start(self, narration: BinaryIO) -> asyncio.subprocess.Process:
        # A session of its own: ctrl+c in the terminal reaches this process only, which ends the other one, and ctrl+z
        # must not stop a model that is being timed.
        return await asyncio.create_subprocess_exec(
            *self._command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=narration,
            start_new_session=True,
            limit=_LONGEST_LINE,
        )

    async def _send_order(self, process: asyncio.subprocess.Process) -> None:
        if process.stdin is not None:
            with suppress(ConnectionError):
                process.stdin.write(self._order)
                await process.stdin.drain()
            process.stdin.close()

    async def _messages(self, process: asyncio.subprocess.Process) -> AsyncIterator[Message]:
        while process.stdout is not None:
            try:
                line = await process.stdout.readline()
                if not line:
                    return
                message = self._decode(line)
            except (ValueError, LookupError, TypeError, AttributeError) as error:
                raise ChildError("the process wrote a line that is no message") from error
            yield message

    def _last_words(self) -> str:
        try:
            lines = self._log.read_text(errors="replace").split("\n")
        except OSError:
            return ""
        return next((it for it in reversed(lines) if it.strip()), "")


def _next(told: SimpleQueue[Message | _End]) -> Message | _End:
    """Return what the thread that follows the process tells next."""
    while True:
        with suppress(Empty):
            return told.get(timeout=_LONGEST_WAIT)


def _rest(told: SimpleQueue[Message | _End]) -> Iterator[Message]:
    """Yield the messages that have arrived until the end of the process."""
    with suppress(Empty):
        while not isinstance(message := told.get_nowait(), _End):
            yield message
