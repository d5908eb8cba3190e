"""The process that proves what-ifs, as the screen follows it."""

from __future__ import annotations

import asyncio
import signal
from contextlib import suppress
from typing import TYPE_CHECKING

from dlbricks_tui.analysis.paired_rounds import ProofError
from dlbricks_tui.answers.proof_process import ProofDone, ProofWaits, RoundsDone, decode, proof_command

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from dlbricks_tui.answers.proof_process import ProofMessage, ProofOrder
    from dlbricks_tui.folders import DataFolder

# The process ends its workers before it ends itself.
_SECONDS_TO_END = 10.0


class Proving:
    """The proofs in progress: which what-if is proved now, how far it is, and how many follow."""

    def __init__(self, order: ProofOrder, data: DataFolder) -> None:
        self._order = order
        self._data = data
        self._process: asyncio.subprocess.Process | None = None
        self._ended = 0
        # True once the user has cancelled it.
        self.stopped = False
        self.rounds: RoundsDone | None = None
        # What the proof waits for; empty while it runs.
        self.waits_for = ""

    @property
    def now(self) -> str:
        """The id of the what-if that is proved now; empty at the end."""
        return self._order.what_ifs[self._ended].id if self._ended < len(self._order.what_ifs) else ""

    @property
    def place(self) -> str:
        """The place of the what-if among several: `2 of 5`; empty for a single one."""
        several = len(self._order.what_ifs)
        return f"{self._ended + 1} of {several}" if several > 1 else ""

    async def follow(self, take: Callable[[ProofMessage], None]) -> None:
        """Run the process to its end, and pass on what it writes; raise ProofError if it fails."""
        log = self._data.log / "proof-process.log"
        try:
            await self._follow(log, take)
        except OSError as error:
            raise ProofError(f"the process that proves cannot be started: {error.strerror}") from error

    def stop(self) -> None:
        """Cancel the proof in progress; the proofs before it are kept."""
        self.stopped = True
        if self._process is not None and self._process.returncode is None:
            with suppress(ProcessLookupError):
                self._process.send_signal(signal.SIGTERM)

    async def ended(self) -> None:
        """Wait until the process has ended; kill it if that takes long."""
        if self._process is None or self._process.returncode is not None:
            return
        try:
            await asyncio.wait_for(self._process.wait(), _SECONDS_TO_END)
        except asyncio.TimeoutError:
            with suppress(ProcessLookupError):
                self._process.kill()

    async def _follow(self, log: Path, take: Callable[[ProofMessage], None]) -> None:
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("wb") as narration:
            # A session of its own: ctrl+z in the terminal must not stop a model that is being timed.
            process = await asyncio.create_subprocess_exec(
                *proof_command(self._data),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=narration,
                start_new_session=True,
            )
        self._process = process
        if self.stopped:
            self.stop()
        if process.stdin is not None:
            with suppress(ConnectionError):
                process.stdin.write(self._order.encoded())
                await process.stdin.drain()
                process.stdin.close()
        if process.stdout is not None:
            async for text in process.stdout:
                message = decode(text)
                self._take(message)
                take(message)
        status = await process.wait()
        if status and not self.stopped:
            lines = log.read_text(errors="replace").split("\n")
            last = next((it for it in reversed(lines) if it.strip()), f"it ended with status {status}")
            raise ProofError(f"{self.now or 'the last what-if'} was not proved: {last}")

    def _take(self, message: ProofMessage) -> None:
        self.waits_for = message.holder if isinstance(message, ProofWaits) else ""
        self.rounds = message if isinstance(message, RoundsDone) else None
        if isinstance(message, ProofDone):
            self._ended += 1
