"""Work of the scenario screen that takes time, and the process that measures a scenario."""

from __future__ import annotations

import asyncio
from array import array
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from dlbricks_tui.answers.scenarios.load_process import load_process
from dlbricks_tui.errors import UserError
from dlbricks_tui.jobs.errors import JobError
from dlbricks_tui.jobs.events import Waiting
from dlbricks_tui.jobs.process import JobProcess
from dlbricks_tui.runtime.variant import stated_threads
from dlbricks_tui.scenarios.messages import (
    LOAD_TEST,
    LoadDone,
    LoadProgress,
    LoadReady,
    LoadTestDone,
    LoadTestsKept,
    LoadTestStarted,
)
from dlbricks_tui.scenarios.scenario import ScenarioKind
from dlbricks_tui.tui.analysis.work import options_of
from dlbricks_tui.tui.scenario.form import ScenarioSettings

if TYPE_CHECKING:
    from collections.abc import Callable

    from dlbricks_tui.answers.estimating import Estimator
    from dlbricks_tui.answers.scenarios.predicting import ScenarioAnswer, ScenarioOptions
    from dlbricks_tui.config.config import Config
    from dlbricks_tui.documents.load_pictures import LoadPoint
    from dlbricks_tui.estimate.system_estimate import SystemEstimate
    from dlbricks_tui.folders import DataFolder
    from dlbricks_tui.jobs.events import Event
    from dlbricks_tui.scenarios.messages import ScenarioOrder
    from dlbricks_tui.scenarios.scenario import Scenario
    from dlbricks_tui.store.records import LoadTest
    from dlbricks_tui.tui.choices import Choices
    from dlbricks_tui.tui.open_model import ModelSpec
    from dlbricks_tui.tui.session import Session

# The usual bound over the time of a single request.
_USUAL_BOUND = 10.0


class ScenarioView(NamedTuple):
    """A scenario of a model with its prediction, and the stored load tests of the model."""

    answer: ScenarioAnswer
    # The predicted latency of the percentile at rates of a server.
    curve: tuple[LoadPoint, ...]
    # What is known of the model by itself, on which the prediction rests.
    results: tuple[SystemEstimate, ...] = ()

    @property
    def tests(self) -> tuple[LoadTest, ...]:
        """All load tests of the model on the system, the newest first."""
        return self.answer.load_tests_of_model

    def is_of(self, test: LoadTest) -> bool:
        """Return whether a load test is of the same scenario and execution."""
        return any(it.uuid == test.uuid for it in self.answer.load_tests)


def predict_scenario(
    session: Session, spec: ModelSpec, choices: Choices, config: Config, settings: ScenarioSettings
) -> ScenarioView | str:
    """Predict a scenario from stored results; return the reason where that is not possible."""
    from dlbricks_tui.answers.estimating import Remarks, open_estimator
    from dlbricks_tui.answers.scenarios.predicting import scenario_answer

    silent = Remarks(lambda _: None, str, lambda *_: None)
    options = replace(options_of(spec, choices, config), batch=None)
    if settings.threads is not None:
        options = replace(options, threads=settings.threads)
    if settings.runtime is not None:
        options = replace(options, runtime=settings.runtime)
    try:
        # A store of its own: reading models takes long, and other panels estimate meanwhile.
        with open_estimator(options, session.data, silent) as estimator:
            found = scenario_answer(estimator, spec.source, _options_for(estimator, spec, settings))
            scope = estimator.scope_of([spec.source])
            results = tuple(it.found for it in estimator.answers([spec.source], scope))
            if found.scenario.kind is not ScenarioKind.SERVER:
                return ScenarioView(found, (), results)
            return ScenarioView(found, tuple((it.rate, it.latency_ms.value) for it in found.curve()), results)
    except UserError as error:
        return str(error)


def _options_for(estimator: Estimator, spec: ModelSpec, settings: ScenarioSettings) -> ScenarioOptions:
    from dlbricks_tui.answers.scenarios.predicting import ScenarioOptions, scenario_answer
    from dlbricks_tui.scenarios.scenario import ScenarioError

    asked = ScenarioOptions(
        kind=ScenarioKind.SINGLE, percentile=settings.percentile, instances=settings.instances, full=settings.full
    )
    is_server = settings.kind is ScenarioKind.SERVER
    bound_ms = settings.bound_ms
    if is_server and bound_ms is None:
        service = scenario_answer(estimator, spec.source, asked).service
        if service is not None:
            bound_ms = float(f"{_USUAL_BOUND * service.single_ms:.2g}")
        elif settings.rate is None:
            raise ScenarioError(
                "The time of a request is not known, so there is no usual bound: set one, or run the model first."
            )
    rate = settings.rate if is_server else None
    return replace(asked, kind=settings.kind, bound_ms=bound_ms, rate=rate, batch_sizes=settings.batch_sizes)


def settings_of(test: LoadTest, settings: ScenarioSettings) -> ScenarioSettings:
    """Return the settings that predict the scenario of a load test."""
    return replace(
        settings,
        kind=ScenarioKind(test.kind),
        bound_ms=test.bound_ms,
        percentile=test.percentile,
        rate=None if test.sought else test.rate,
        batch_sizes=(test.batch_size,),
        instances=test.instances,
        threads=stated_threads(test.runtime),
        runtime=test.runtime,
    )


def runtimes_of(session: Session, spec: ModelSpec) -> tuple[str, ...]:
    """Return the names of the runtimes that run a model, the usual one first."""
    from dlbricks_tui.runtime.registry import Registry
    from dlbricks_tui.tui.run.settings import runtimes_for

    return runtimes_for(Registry(session.data.path), (spec.source,))


class LoadStanding:
    """The tests that have ended, and the latencies of the test in progress."""

    def __init__(self) -> None:
        # What the measurement waits for; empty while it runs.
        self.waits_for = ""
        self.ready: LoadReady | None = None
        self.test: LoadTestStarted | None = None
        self.seconds = 0.0
        # Of the requests answered so far, in their order and sorted.
        self.latencies_ms = array("d")
        self.ordered_ms: list[float] = []
        self.ended: list[LoadTestDone] = []
        self.done: LoadDone | None = None
        self.failure = ""
        # Tests that are stored although the measurement has not reached its result.
        self.kept = 0

    @property
    def highest_passed(self) -> float | None:
        """The highest rate that has passed."""
        return max((it.rate for it in self.ended if it.passed and it.rate is not None), default=None)

    def take(self, message: Event) -> None:
        self.waits_for = message.holder if isinstance(message, Waiting) else ""
        if isinstance(message, LoadReady):
            self.ready = message
        elif isinstance(message, LoadTestStarted):
            self._forget_test()
            self.test = message
        elif isinstance(message, LoadProgress):
            self.seconds = message.seconds
            self.latencies_ms.extend(message.latencies_ms)
            self.ordered_ms = sorted([*self.ordered_ms, *message.latencies_ms])
        elif isinstance(message, LoadTestDone):
            self.ended.append(message)
            self._forget_test()
        elif isinstance(message, LoadDone):
            self.done = message
        elif isinstance(message, LoadTestsKept):
            self.kept += message.tests

    def process_ended(self) -> None:
        """Forget the test in progress, which the next process repeats."""
        self.waits_for, self.ready = "", None
        self._forget_test()

    def _forget_test(self) -> None:
        self.test = None
        self.seconds, self.latencies_ms, self.ordered_ms = 0.0, array("d"), []


class LoadMeasuring:
    """A scenario that is measured. A pause ends its process; the next one repeats the test in progress."""

    def __init__(self, order: ScenarioOrder, data: DataFolder, begun: JobProcess | None = None) -> None:
        """`begun` is the process of a measurement that was begun before."""
        self._order = order
        self._data = data
        self._process = begun
        self.was_begun_before = begun is not None
        self._resumed = asyncio.Event()
        self.progress = LoadStanding()
        self.paused = self.cancelled = False

    @classmethod
    def begun(cls, model: str, data: DataFolder) -> LoadMeasuring | None:
        """Return the measurement of a model that was begun before, and that nobody has followed to its end."""
        found = LOAD_TEST.last_unseen(data, model)
        if found is None:
            return None
        return cls(LOAD_TEST.request_of(found), data, JobProcess.started_before(LOAD_TEST, found, data))

    @property
    def scenario(self) -> Scenario:
        return self._order.scenario

    async def follow(self, changed: Callable[[], None]) -> None:
        """Measure to the end, and report each change; a failure is kept in the progress."""

        def take(message: Event) -> None:
            self.progress.take(message)
            changed()

        while not self.cancelled and self.progress.done is None and not self.progress.failure:
            if self.paused:
                self._resumed.clear()
                changed()
                await self._resumed.wait()
                continue
            process = self._process = self._process or self._new_process()
            try:
                await process.follow(take)
            except JobError as error:
                self.progress.failure = str(error)
            self._process = None
            if process.stopped:
                self.progress.failure = ""
            elif self.progress.done is None and not self.progress.failure:
                self.progress.failure = "the process ended without a result"
            if self.progress.done is None:
                self.progress.process_ended()

    def pause(self) -> None:
        """End the process, so that others can measure."""
        self.paused = True
        if self._process is not None:
            self._process.stop()

    def resume(self) -> None:
        self.paused = False
        self._resumed.set()

    def cancel(self) -> None:
        self.cancelled = True
        self._resumed.set()
        if self._process is not None:
            self._process.stop()

    def _new_process(self) -> JobProcess:
        passed = self.progress.highest_passed
        order = self._order if passed is None else replace(self._order, first_rate=passed)
        return load_process(order, self._data)
