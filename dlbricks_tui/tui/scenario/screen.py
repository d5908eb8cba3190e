"""The screen of how much load a model can serve: the prediction, and MLPerf LoadGen's measurement of it."""

from __future__ import annotations

import asyncio
from array import array
from bisect import bisect_right
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from textual import on

from dlbricks_tui.answers.loads import load_process
from dlbricks_tui.documents.lines import Line, Span, line
from dlbricks_tui.documents.parts import BLANK_LINE, Sentence
from dlbricks_tui.documents.scenario import load_answer, load_question
from dlbricks_tui.jobs.errors import JobError
from dlbricks_tui.jobs.events import Waiting
from dlbricks_tui.jobs.process import JobProcess
from dlbricks_tui.runtime.variant import stated_threads
from dlbricks_tui.scenarios.scenario import (
    LOAD_TEST,
    LoadDone,
    LoadProgress,
    LoadReady,
    LoadTestDone,
    LoadTestsKept,
    LoadTestStarted,
    ScenarioKind,
)
from dlbricks_tui.tui.dialogs.dialog import ConfirmingScreen
from dlbricks_tui.tui.keys import scopes
from dlbricks_tui.tui.keys.keymap import Hint, key
from dlbricks_tui.tui.saving import show_message
from dlbricks_tui.tui.scenario.panels import (
    LatenciesPanel,
    LoadPanel,
    LoadTestsPanel,
    ScenarioSettings,
    SettingsPanel,
)
from dlbricks_tui.tui.session import options_of, own_estimator
from dlbricks_tui.tui.widgets.screens import AnswerScreen
from dlbricks_tui.wording.numbers import measured_ago
from dlbricks_tui.wording.scenarios import execution_line, progress_line, scenario_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from dlbricks_tui.answers.estimating import Estimator
    from dlbricks_tui.answers.scenarios import ScenarioAnswer, ScenarioOptions
    from dlbricks_tui.config.config import Config
    from dlbricks_tui.documents.load_pictures import LoadPoint
    from dlbricks_tui.estimate.system_estimate import SystemEstimate
    from dlbricks_tui.folders import DataFolder
    from dlbricks_tui.jobs.events import Event
    from dlbricks_tui.scenarios.scenario import PredictedLoad, Scenario, ScenarioOrder
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
) -> ScenarioView:
    """Predict a scenario from stored results; raise a UserError where that is not possible."""
    from dlbricks_tui.answers.scenarios import scenario_answer

    options = replace(options_of(spec, choices, config), batch=None)
    if settings.threads is not None:
        options = replace(options, threads=settings.threads)
    if settings.runtime is not None:
        options = replace(options, runtime=settings.runtime)
    with own_estimator(options, session.data) as estimator:
        found = scenario_answer(estimator, spec.source, _options_for(estimator, spec, settings))
        scope = estimator.scope_of([spec.source])
        results = tuple(it.found for it in estimator.answers([spec.source], scope))
        is_server = found.scenario.kind is ScenarioKind.SERVER
        curve = tuple((it.rate, it.latency_ms.value) for it in found.curve()) if is_server else ()
        return ScenarioView(found, curve, results)


def _options_for(estimator: Estimator, spec: ModelSpec, settings: ScenarioSettings) -> ScenarioOptions:
    from dlbricks_tui.answers.scenarios import ScenarioOptions, scenario_answer
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
                "nothing was measured of it yet, so there is no default bound: set one, or run the model first"
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


class ScenarioScreen(AnswerScreen[None]):
    """Predicts scenarios of the open model in threads, and measures them in a process."""

    scope = scopes.SCENARIO
    CSS_PATH = "scenario.tcss"
    WRAPS_STATE = True
    WANTS_NEW_RESULTS = True
    WAITS_FOR_RUN = True
    ABOUT = (
        "How much load the open model can serve. The prediction comes from stored results and a simulated queue; "
        "{scenario.measure} measures the same scenario with MLPerf LoadGen. {scenario.pause} pauses so that others can "
        "measure: the test in progress is repeated. {scenario.cancel} cancels. It goes on when you leave."
    )

    def __init__(self, session: Session, spec: ModelSpec, choices: Choices, config: Config) -> None:
        batch_sizes = () if choices.batch is None else (choices.batch,)
        self._settings = ScenarioSettings(runtimes=runtimes_of(session, spec), batch_sizes=batch_sizes)
        self._load = LoadPanel()
        self._form = SettingsPanel(self._settings)
        self._latencies = LatenciesPanel()
        self._tests = LoadTestsPanel()
        super().__init__(self._load, self._form, self._latencies, self._tests)
        self._session = session
        self._spec = spec
        self._predict = partial(predict_scenario, session, spec, choices, config)
        self._view: ScenarioView | None = None
        # Why nothing is predicted.
        self._refusal = ""
        # True while the view is that of earlier settings or results.
        self._is_looking = False
        self._measuring: LoadMeasuring | None = None
        # The tests of the last measurement, until the settings change.
        self._last: LoadStanding | None = None
        # Why the last measurement failed.
        self._failure = ""
        # The load test that was measured here last, what its measurement warned about, and what was predicted before.
        self._measured = ""
        self._warnings: tuple[str, ...] = ()
        self._predicted_before: PredictedLoad | None = None
        self._is_outdated = False

    def on_mount(self) -> None:
        begun = partial(LoadMeasuring.begun, self._spec.source.name, self._session.data)
        self.run_in_thread(begun, "begun", self._go_on)

    # The prediction

    def take_new_results(self) -> None:
        if self._measuring is None:
            self.look()
        else:
            self._is_outdated = True

    def action_look_again(self) -> None:
        if self._measuring is not None:
            self._say_measuring()
        else:
            self.look()

    @on(SettingsPanel.Chosen)
    def _chosen(self, event: SettingsPanel.Chosen) -> None:
        self._take(event.settings)

    @on(LoadTestsPanel.Opened, "#load-tests")
    def _test_taken(self) -> None:
        if self._tests.selected is not None:
            self._take(settings_of(self._tests.selected, self._settings))

    def _take(self, settings: ScenarioSettings) -> None:
        if self._measuring is not None:
            self._say_measuring()
        elif settings != self._settings:
            self._settings = settings
            self._form.show(settings)
            self._failure, self._last = "", None
            self.look()

    def look(self) -> None:
        self._is_outdated, self._is_looking = False, True
        self.run_in_thread(partial(self._predict, self._settings), "prediction", self._predicted, self._refused)

    def _predicted(self, found: ScenarioView) -> None:
        self._show_prediction(found, found.answer.refusal)
        self._tests.show_items(found.tests)
        if self._measured:
            self._tests.select(self._measured)
        self._show_all()

    def _refused(self, reason: str) -> None:
        self._show_prediction(None, reason)
        self._show_all()

    def _show_prediction(self, view: ScenarioView | None, refusal: str) -> None:
        self._is_looking, self._view, self._refusal = False, view, refusal
        usual_bound_ms = None if view is None else view.answer.scenario.bound_ms
        self._form.show(replace(self._settings, usual_bound_ms=usual_bound_ms))
        self._load.show_placeholder(Hint(refusal, "warn"))

    # What is shown

    @on(LoadTestsPanel.Settled, "#load-tests")
    def _test_selected(self) -> None:
        if self._measuring is None:
            self._show_all()

    def _show_all(self) -> None:
        measuring = self._measuring
        if measuring is not None:
            self._load.show(self._view, measuring.progress, None)
            self._latencies.show_measuring(measuring)
        else:
            test = self._tests.selected
            self._load.show(self._view, self._last, test if self._is_of_scenario(test) else None)
            self._latencies.show_test(
                self._view,
                test,
                self._prediction_of(test),
                self._logs_of(test),
                self._warnings if test is not None and test.uuid == self._measured else (),
            )
        self.head_changed()

    def _is_of_scenario(self, test: LoadTest | None) -> bool:
        return test is not None and self._view is not None and self._view.is_of(test)

    def _prediction_of(self, test: LoadTest | None) -> PredictedLoad | None:
        """Return what is predicted of the scenario of a load test.

        The test that was measured last is already known to the prediction of now, so that of before counts.
        """
        if test is not None and test.uuid == self._measured:
            return self._predicted_before
        return self._view.answer.prediction if self._view is not None and self._is_of_scenario(test) else None

    def _logs_of(self, test: LoadTest | None) -> str:
        folder = self._session.data.scenarios / test.uuid if test is not None else None
        return str(folder) if folder is not None and folder.is_dir() else ""

    def question(self) -> str:
        return load_question(self._spec.source.name)

    def answer(self) -> Iterable[Line]:
        name, view = Span(f" {self._spec.source.name}: ", "strong"), self._view
        answer = None if view is None else view.answer
        told = [] if answer is None else load_answer(answer.scenario, answer.best_test, answer.prediction)
        if told:
            yield line(name, Span("; ".join(told), "strong"))
        elif self._refusal:
            yield line(name, Span(self._refusal, "warn"))
        elif view is not None:
            yield (name, *Hint("nothing was measured yet: {scenario.measure} measures it.", "warn").line)
        elif self._measuring is None:
            yield line(Span(" Predicting.", "muted"))
        # How far a measurement is must not be cut off.
        if self._measuring is not None:
            yield line(Span(" "), *_state_of(self._measuring))
        elif self._failure:
            yield line(Span(f" The measurement failed: {self._failure}", "bad"))

    def state(self) -> Line:
        if self._measuring is not None or self._failure:
            return ()
        if self._view is None:
            return line(Span(" "))
        answer, measured = self._view.answer, measured_ago(self._view.results)
        where = execution_line(answer.system, answer.execution)
        # The scenario is the same as in its panel.
        return line(Span(f" {scenario_line(answer.scenario)}; {where}{f', {measured}' if measured else ''}", "muted"))

    # The measurement

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action in ("pause", "cancel"):
            return self._measuring is not None
        return super().check_action(action, parameters)

    def action_measure(self) -> None:
        order = None if self._view is None else self._view.answer.order
        if self._measuring is not None:
            self._say_measuring()
        elif self._is_looking:
            self.notify("The scenario is still being looked up.")
        elif self._view is None:
            self.notify(self._refusal)
        elif order is None:
            self.notify("The scenario cannot be measured here: it was looked up for another system or runtime.")
        else:
            self._failure, self._last = "", None
            self._go_on(LoadMeasuring(order, self._session.data))

    def _go_on(self, measuring: LoadMeasuring | None) -> None:
        if measuring is not None and self._measuring is None:
            self._measuring = measuring
            self._show_all()
            self.run_worker(self._follow(measuring), group="measurement", exit_on_error=False)

    async def _follow(self, measuring: LoadMeasuring) -> None:
        try:
            await measuring.follow(self._show_all)
        finally:
            self._measuring = None
            self._failure, self._last = measuring.progress.failure, measuring.progress
            if measuring.progress.done is not None:
                self._measured, self._warnings = measuring.progress.done.uuid, measuring.progress.done.warnings
                before = None if self._view is None or measuring.was_begun_before else self._view.answer.prediction
                self._predicted_before = before
            if measuring.cancelled:
                self.notify(f"The measurement is cancelled; stored tests of it: {measuring.progress.kept}.")
            self._show_all()
            if measuring.progress.done is not None or measuring.progress.kept or self._is_outdated:
                self.look()

    def _say_measuring(self) -> None:
        self.notify(f"The scenario is being measured: {key('scenario.cancel')} cancels it.")

    def action_pause(self) -> None:
        if self._measuring is not None:
            (self._measuring.resume if self._measuring.paused else self._measuring.pause)()
            self._show_all()

    def action_cancel(self) -> None:
        def cancel(_: bool) -> None:
            if self._measuring is not None:
                self._measuring.cancel()

        self.ask(CancelLoadScreen(), cancel)

    def action_leave(self) -> None:
        if self._measuring is not None and self._measuring.paused:
            show_message(self.app, "The paused load test ends here; its tests that have ended are stored.")
        elif self._measuring is not None:
            show_message(self.app, "The load test goes on in the background; this screen shows it again.")
        super().action_leave()


class CancelLoadScreen(ConfirmingScreen):
    HEADING = "Cancel the measurement?"
    scope = scopes.CANCEL_LOAD
    ABOUT = (
        "The result of a scenario is stored once all of its tests have ended. If it is cancelled, the tests that have "
        "ended are stored as load tests at their rates or batch sizes; the test in progress is lost."
    )

    def __init__(self) -> None:
        told = "The test in progress is lost; the tests that have ended are stored."
        super().__init__(Sentence("LoadGen measures the scenario."), BLANK_LINE, Sentence(told))


def _state_of(measuring: LoadMeasuring) -> Line:
    progress, scenario = measuring.progress, measuring.scenario
    if measuring.cancelled:
        return (Span("cancelling", "warn"),)
    if measuring.paused:
        return (
            Span("paused; others may measure; ", "warn"),
            *Hint("{scenario.pause} repeats the test in progress", "muted").line,
        )
    if progress.waits_for:
        return (Span(f"waits for {progress.waits_for}", "warn"),)
    if progress.test is None:
        told = "loading the model" if progress.ready is None else "the next test starts"
        return (Span(told, "warn"),)
    answered = progress.ordered_ms
    slower = 0 if scenario.bound_ms is None else len(answered) - bisect_right(answered, scenario.bound_ms)
    return (Span(progress_line(progress.test, scenario, len(answered), slower, progress.seconds), "good"),)
