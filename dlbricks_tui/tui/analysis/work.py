"""Work of the analysis screen that takes time, and the process that proves what-ifs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dlbricks_tui.analysis.proving import PEAKS, PROOF, PeaksOrder, ProofDone, ProofError, RoundsDone
from dlbricks_tui.jobs.errors import JobError
from dlbricks_tui.jobs.events import Waiting
from dlbricks_tui.jobs.process import JobProcess
from dlbricks_tui.tui.session import options_of, own_estimator
from dlbricks_tui.wording.checks import what_if_words

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from dlbricks_tui.analysis.kernels import TimedKernel
    from dlbricks_tui.analysis.proving import ProofOrder
    from dlbricks_tui.answers.analysing import Analysis, MeasuringPlan
    from dlbricks_tui.config.config import Config
    from dlbricks_tui.documents.analysis import AnalysisDocument
    from dlbricks_tui.folders import DataFolder
    from dlbricks_tui.jobs.events import Event
    from dlbricks_tui.models.graph import Shape
    from dlbricks_tui.runtime.process import Worker
    from dlbricks_tui.tui.choices import Choices
    from dlbricks_tui.tui.open_model import ModelSpec
    from dlbricks_tui.tui.session import Session


def analyse(session: Session, spec: ModelSpec, choices: Choices, config: Config) -> AnalysisDocument:
    """Analyse a model from stored results; raise a UserError where that is not possible."""
    from dlbricks_tui.answers.analysing import Analyser
    from dlbricks_tui.documents.analysis import AnalysisDocument

    with own_estimator(options_of(spec, choices, config), session.data) as estimator:
        document = AnalysisDocument(next(iter(Analyser(estimator).analyses([spec.source]))))
    document.prepare()
    return document


def read_kernels(
    found: Analysis,
    data: DataFolder,
    tell_waiting: Callable[[str], None],
    check: Callable[[], None],
    started: Callable[[Worker], None],
) -> Sequence[TimedKernel]:
    """Return the kernel of each layer; raise a UserError where the runtime does not tell them."""
    from dlbricks_tui.answers.analysing import kernels_of
    from dlbricks_tui.host.queue import host_queue

    return kernels_of(found, data, host_queue(), tell_waiting, check, started)


def require_this_host(found: Analysis) -> None:
    """Raise ProvingError if a model was analysed on another system."""
    from dlbricks_tui.answers.analysing import ProvingError
    from dlbricks_tui.host.fingerprint import fingerprint

    if found.system != fingerprint().id:
        raise ProvingError(f"{found.source.name} was analysed on another system, and models run on this host.")


def plan_measuring(found: Analysis, data: DataFolder, inputs: Mapping[str, Shape]) -> MeasuringPlan:
    """Return what the what-ifs of a model lack on this host; raise a UserError where nothing can be measured."""
    from dlbricks_tui.analysis.what_if import WhatIfKind
    from dlbricks_tui.answers.analysing import plan_of

    require_this_host(found)
    return plan_of(found, tuple(WhatIfKind), data, inputs, {})


def peaks_process(threads: int, data: DataFolder) -> JobProcess:
    """Return the process that measures the peaks of this host; it has not started yet."""
    return JobProcess.new(PEAKS, PeaksOrder(threads), data)


class Proving:
    """The proofs in progress: which what-if is proved now, how far it is, and how many follow."""

    def __init__(self, order: ProofOrder, process: JobProcess) -> None:
        self._what_ifs = order.what_ifs
        self._process = process
        self._ended = 0
        self.rounds: RoundsDone | None = None
        # What the proof waits for; empty while it runs.
        self.waits_for = ""

    @classmethod
    def new(cls, order: ProofOrder, data: DataFolder) -> Proving:
        """Return proofs that start when they are followed."""
        return cls(order, JobProcess.new(PROOF, order, data, [order.source.name]))

    @classmethod
    def begun(cls, model: str, data: DataFolder) -> Proving | None:
        """Return the proofs of a model that were begun before, and that nobody has followed to their end."""
        found = PROOF.last_unseen(data, model)
        if found is None:
            return None
        return cls(PROOF.request_of(found), JobProcess.started_before(PROOF, found, data))

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

    async def follow(self, take: Callable[[Event], None]) -> None:
        """Run the process to its end, and pass on what it writes; raise ProofError if it fails."""

        def pass_on(message: Event) -> None:
            self._take(message)
            take(message)

        try:
            await self._process.follow(pass_on)
        except JobError as error:
            raise ProofError(f"not proved: {what_if_words(self.now) or 'the last what-if'}: {error}") from error

    def stop(self) -> None:
        """Cancel the proof in progress; the proofs before it are kept."""
        self._process.stop()

    def _take(self, message: Event) -> None:
        self.waits_for = message.holder if isinstance(message, Waiting) else ""
        self.rounds = message if isinstance(message, RoundsDone) else None
        if isinstance(message, ProofDone):
            self._ended += 1
