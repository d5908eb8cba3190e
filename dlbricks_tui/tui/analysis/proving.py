"""The process that proves what-ifs, as the screen follows it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dlbricks_tui.analysis.paired_rounds import ProofError
from dlbricks_tui.answers.analysis.proof_process import ProofDone, ProofWaits, RoundsDone, decode, proof_command
from dlbricks_tui.answers.child_process import ChildError, ChildProcess, JobFolder
from dlbricks_tui.host.queue import Kind

if TYPE_CHECKING:
    from collections.abc import Callable

    from dlbricks_tui.answers.analysis.proof_process import ProofMessage, ProofOrder
    from dlbricks_tui.folders import DataFolder


class Proving:
    """The proofs in progress: which what-if is proved now, how far it is, and how many follow."""

    def __init__(self, order: ProofOrder, process: ChildProcess[ProofMessage]) -> None:
        self._what_ifs = order.what_ifs
        self._process = process
        self._ended = 0
        self.rounds: RoundsDone | None = None
        # What the proof waits for; empty while it runs.
        self.waits_for = ""

    @classmethod
    def new(cls, order: ProofOrder, data: DataFolder) -> Proving:
        """Return proofs that start when they are followed."""
        folder = JobFolder.new(data, Kind.PROOF)
        return cls(order, ChildProcess(proof_command(data), order.encoded(), folder, decode))

    @classmethod
    def begun(cls, model: str, data: DataFolder) -> Proving | None:
        """Return the proofs of a model that were begun before, and that nobody has followed to their end."""
        found = JobFolder.last_of(data, Kind.PROOF, model)
        return None if found is None else cls(found[1], ChildProcess.started_before(found[0], decode))

    @property
    def now(self) -> str:
        """The id of the what-if that is proved now; empty at the end."""
        return self._what_ifs[self._ended].id if self._ended < len(self._what_ifs) else ""

    @property
    def place(self) -> str:
        """The place of the what-if among several: `2 of 5`; empty for a single one."""
        several = len(self._what_ifs)
        return f"{self._ended + 1} of {several}" if several > 1 else ""

    @property
    def stopped(self) -> bool:
        """True once the user has cancelled it."""
        return self._process.stopped

    async def follow(self, take: Callable[[ProofMessage], None]) -> None:
        """Run the process to its end, and pass on what it writes; raise ProofError if it fails."""

        def pass_on(message: ProofMessage) -> None:
            self._take(message)
            take(message)

        try:
            await self._process.follow(pass_on)
        except ChildError as error:
            raise ProofError(f"{self.now or 'the last what-if'} was not proved: {error}") from error

    def stop(self) -> None:
        """Cancel the proof in progress; the proofs before it are kept."""
        self._process.stop()

    def _take(self, message: ProofMessage) -> None:
        self.waits_for = message.holder if isinstance(message, ProofWaits) else ""
        self.rounds = message if isinstance(message, RoundsDone) else None
        if isinstance(message, ProofDone):
            self._ended += 1
