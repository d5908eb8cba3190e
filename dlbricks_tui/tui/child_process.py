"""Processes of this program that read an order from their standard input, and write a line for each step."""

from __future__ import annotations

import asyncio
import signal
from contextlib import suppress
from typing import TYPE_CHECKING, Generic, TypeVar

from dlbricks_tui.errors import UserError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence
    from pathlib import Path
    from typing import BinaryIO

Message = TypeVar("Message")

# The process ends its workers before it ends itself; one that hangs is killed after this time.
_SECONDS_TO_END = 10.0
# The latencies of a second of requests are one line.
_LONGEST_LINE = 1 << 26


class ChildError(UserError):
    """The process could not be started, wrote something else than messages, or has failed."""


class ChildProcess(Generic[Message]):
    """One such process, from its start to its end."""

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
        """Run the process to its end, and pass on its messages; raise ChildError if it fails."""
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
            raise
        status = await process.wait()
        if status and not self.stopped:
            raise ChildError(self._last_words() or f"the process ended with status {status}")

    def stop(self) -> None:
        """End the process; what it has stored is kept."""
        self.stopped = True
        self._end()

    async def ended(self) -> None:
        """Wait until the process has ended after it was stopped."""
        if self._process is not None:
            await self._process.wait()

    def _end(self) -> None:
        if self._process is not None and self._process.returncode is None:
            with suppress(ProcessLookupError):
                self._process.send_signal(signal.SIGTERM)
            asyncio.get_running_loop().call_later(_SECONDS_TO_END, self._kill)

    def _kill(self) -> None:
        if self._process is not None and self._process.returncode is None:
            with suppress(ProcessLookupError):
                self._process.kill()

    async def _start(self, narration: BinaryIO) -> asyncio.subprocess.Process:
        # A session of its own: ctrl+z in the terminal must not stop a model that is being timed.
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
        lines = self._log.read_text(errors="replace").split("\n")
        return next((it for it in reversed(lines) if it.strip()), "")
