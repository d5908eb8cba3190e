"""Jobs that a viewer follows to their ends, such as proofs, load tests and traces; they go on without a viewer."""

from __future__ import annotations

import asyncio
from array import array
from collections import deque
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from dlbricks_tui.analysis.proving import PEAKS, PROOF, PeaksOrder, ProofDone, ProofError, ProofOrder, RoundsDone
from dlbricks_tui.api import language_models as language
from dlbricks_tui.api.language_answers import named_model
from dlbricks_tui.host.peaks import PEAKS_SECONDS
from dlbricks_tui.jobs.errors import JobError
from dlbricks_tui.jobs.events import Event, Waiting
from dlbricks_tui.jobs.process import JobProcess
from dlbricks_tui.language.orders import LANGUAGE, LanguageFailed, LanguageMeasured, LanguageOrder
from dlbricks_tui.scenarios.scenario import (
    LOAD_TEST,
    LoadDone,
    LoadProgress,
    LoadReady,
    LoadTestDone,
    LoadTestsKept,
    LoadTestStarted,
    ScenarioOrder,
)
from dlbricks_tui.traces.trace import TRACE, LevelDone, LevelStarted, RoundStarted, TraceDone, TraceOrder
from dlbricks_tui.wording.answers import what_if_words
from dlbricks_tui.wording.jobs import language_line

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dlbricks_tui.api.language_answers import LanguageOptions
    from dlbricks_tui.folders import DataFolder
    from dlbricks_tui.jobs.kinds import JobKind
    from dlbricks_tui.language.opening import NamedModel
    from dlbricks_tui.traces.trace import TraceLevel

Order = TypeVar("Order")
AnyJob = TypeVar("AnyJob", bound="FollowedJob[Any]")


class FollowedJob(Generic[Order]):
    """A job that is followed from its beginning to its end; subclasses take its events."""

    KIND: ClassVar[JobKind[Any]]
    # What a job without result and reason has ended without.
    RESULT: ClassVar[str] = "a result"

    def __init__(self, order: Order, data: DataFolder, process: JobProcess | None = None) -> None:
        """`process` is that of a job that was begun before."""
        self.order = order
        self.was_begun_before = process is not None
        # What it waits for; empty while it runs.
        self.waits_for = ""
        # Why it has ended without a result; empty if the user has cancelled it.
        self.failure = ""
        self.cancelled = False
        self.data = data
        self._process = process

    @classmethod
    def begun(cls: type[AnyJob], data: DataFolder, model: str = "") -> AnyJob | None:
        """Return the newest such job, about a model, that was begun before and that nobody has followed to its end."""
        found = cls.KIND.last_unseen(data, model)
        if found is None:
            return None
        return cls(cls.KIND.request_of(found), data, JobProcess.started_before(cls.KIND, found, data))

    @property
    def models(self) -> Sequence[str]:
        """The names of the models that it is about."""
        source = getattr(self.order, "source", None)
        return [] if source is None else [source.name]

    @property
    def has_result(self) -> bool:
        """True if the job has told its result, or tells none but its end."""
        return True

    def take(self, event: Event) -> None:
        """Take an event of the job."""

    def new_process(self) -> JobProcess:
        """Return the process of the job; it has not started yet."""
        return JobProcess.new(self.KIND, self.order, self.data, self.models)

    def run(self, take: Callable[[Event], object]) -> None:
        """Do the job at once, and pass on its events; raise JobError if it fails."""

        def keep(event: Event) -> None:
            self.take(event)
            take(event)

        self.new_process().run(keep)

    async def follow(self, changed: Callable[[], object]) -> None:
        """Follow the job to its end, and report each change; a failure is kept."""

        def take(event: Event) -> None:
            self.waits_for = event.holder if isinstance(event, Waiting) else ""
            self.take(event)
            changed()

        process = self._process = self._process or self.new_process()
        try:
            await process.follow(take)
        except JobError as error:
            self.failure = self.failure or str(error)
        self._process, self.waits_for = None, ""
        if process.stopped:
            self.failure = ""
        elif not self.has_result and not self.failure:
            self.failure = f"the process ended without {self.RESULT}"

    def cancel(self) -> None:
        """End the process of the job; what it has stored is kept."""
        self.cancelled = True
        if self._process is not None:
            self._process.stop()


class PeaksJob(FollowedJob[PeaksOrder]):
    """The peaks of this host are measured, for so many seconds."""

    KIND = PEAKS
    SECONDS = PEAKS_SECONDS


def peaks_job(threads: int, data: DataFolder) -> PeaksJob:
    """Return the job that measures the peaks of this host."""
    return PeaksJob(PeaksOrder(threads), data)


class ProofJob(FollowedJob[ProofOrder]):
    """The proofs in progress: which what-if is proved now, how far it is, and how many follow."""

    KIND = PROOF

    def __init__(self, order: ProofOrder, data: DataFolder, process: JobProcess | None = None) -> None:
        super().__init__(order, data, process)
        self.rounds: RoundsDone | None = None
        # The number of proofs that have ended, and those of them that the viewer has not taken yet.
        self._ended = 0
        self.news: deque[ProofDone] = deque()

    @property
    def now(self) -> str:
        """The id of the what-if that is proved now; empty at the end."""
        what_ifs = self.order.what_ifs
        return what_ifs[self._ended].id if self._ended < len(what_ifs) else ""

    @property
    def title(self) -> str:
        """The words for the what-if that is proved now."""
        return what_if_words(self.now)

    @property
    def place(self) -> str:
        """The place of the what-if among several: `2 of 5`; empty for a single one."""
        several = len(self.order.what_ifs)
        return f"{self._ended + 1} of {several}" if several > 1 else ""

    def take(self, event: Event) -> None:
        self.rounds = event if isinstance(event, RoundsDone) else None
        if isinstance(event, ProofDone):
            self._ended += 1
            self.news.append(event)

    def require_proof(self) -> None:
        """Raise ProofError if it has failed."""
        if self.failure:
            raise ProofError(f"not proved: {self.title or 'the last what-if'}: {self.failure}")


class TraceJob(FollowedJob[TraceOrder]):
    """A model that is being traced."""

    KIND = TRACE
    RESULT = "a trace"

    def __init__(self, order: TraceOrder, data: DataFolder, process: JobProcess | None = None) -> None:
        super().__init__(order, data, process)
        # The level that started last, and the round after that.
        self.level: TraceLevel | None = None
        self.round: RoundStarted | None = None
        self.ended_levels: list[LevelDone] = []
        # The id of the trace, once it is stored.
        self.done = ""

    @property
    def has_result(self) -> bool:
        return bool(self.done)

    def take(self, event: Event) -> None:
        if isinstance(event, LevelStarted):
            self.level, self.round = event.level, None
        elif isinstance(event, RoundStarted):
            self.round = event
        elif isinstance(event, LevelDone):
            self.ended_levels.append(event)
            if event.inference_ms is not None:
                self.level = self.round = None
        elif isinstance(event, TraceDone):
            self.done = event.id


class LanguageJob(FollowedJob[LanguageOrder]):
    """A language model is measured."""

    KIND = LANGUAGE

    def __init__(self, order: LanguageOrder, data: DataFolder, process: JobProcess | None = None) -> None:
        super().__init__(order, data, process)
        # The last message; None until the process has written one.
        self._last: Event | None = None

    @classmethod
    def new(
        cls, model: NamedModel | str, options: LanguageOptions, data: DataFolder, *, end_to_end: bool
    ) -> LanguageJob:
        """Return a measurement that starts when it is followed; raise a UserError if the model cannot be measured."""
        return cls(language.language_order([named_model(model)], options, data, end_to_end=end_to_end), data)

    @property
    def models(self) -> Sequence[str]:
        return self.order.models

    @property
    def progress(self) -> str:
        if self.cancelled:
            return "cancelling"
        return "the measurement starts" if self._last is None else language_line(self._last)

    @property
    def has_result(self) -> bool:
        return isinstance(self._last, LanguageMeasured)

    def take(self, event: Event) -> None:
        if language_line(event):
            self._last = event
        if isinstance(event, LanguageFailed):
            self.failure = event.line


class LoadJob(FollowedJob[ScenarioOrder]):
    """A scenario that is measured: the tests that have ended, and the latencies of the one in progress.

    A pause ends its process; the next one repeats the test in progress.
    """

    KIND = LOAD_TEST

    def __init__(self, order: ScenarioOrder, data: DataFolder, process: JobProcess | None = None) -> None:
        super().__init__(order, data, process)
        self.ended: list[LoadTestDone] = []
        self.done: LoadDone | None = None
        # Tests that are stored although the measurement has not reached its result.
        self.kept = 0
        self.paused = False
        self._resumed = asyncio.Event()
        self._forget_process()

    def _forget_process(self) -> None:
        self.ready: LoadReady | None = None
        self._forget_test()

    def _forget_test(self) -> None:
        self.test: LoadTestStarted | None = None
        self.seconds = 0.0
        # Of the requests answered so far, in their order and sorted.
        self.latencies_ms = array("d")
        self.ordered_ms: list[float] = []

    @property
    def has_result(self) -> bool:
        return self.done is not None

    def take(self, event: Event) -> None:
        if isinstance(event, LoadReady):
            self.ready = event
        elif isinstance(event, LoadTestStarted):
            self._forget_test()
            self.test = event
        elif isinstance(event, LoadProgress):
            self.seconds = event.seconds
            self.latencies_ms.extend(event.latencies_ms)
            self.ordered_ms = sorted([*self.ordered_ms, *event.latencies_ms])
        elif isinstance(event, LoadTestDone):
            self.ended.append(event)
            self._forget_test()
        elif isinstance(event, LoadDone):
            self.done = event
        elif isinstance(event, LoadTestsKept):
            self.kept += event.tests

    async def follow(self, changed: Callable[[], object]) -> None:
        while not (self.cancelled or self.has_result or self.failure):
            if self.paused:
                self._resumed.clear()
                changed()
                await self._resumed.wait()
                continue
            await super().follow(changed)
            if not self.has_result:
                self._forget_process()
                rates = {it.rate: it.passed for it in self.ended if it.rate is not None}
                passed = [rate for rate, has_passed in rates.items() if has_passed]
                first = max(passed, default=min(rates, default=self.order.first_rate))
                self.order = replace(self.order, first_rate=first)

    def pause(self) -> None:
        """End the process, so that others can measure."""
        self.paused = True
        if self._process is not None:
            self._process.stop()

    def resume(self) -> None:
        self.paused = False
        self._resumed.set()

    def cancel(self) -> None:
        super().cancel()
        self._resumed.set()
