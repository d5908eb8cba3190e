"""The screen of how much load a model can serve: the prediction, and MLPerf LoadGen's measurement of it."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from textual import on

from dlbricks_tui.api.followed_jobs import LoadJob
from dlbricks_tui.api.new_runs import runtimes_for
from dlbricks_tui.api.scenarios import ScenarioOfModel, ScenarioSettings, predicted_scenario
from dlbricks_tui.api.session import options_of
from dlbricks_tui.documents.lines import Line, Span, line
from dlbricks_tui.documents.load_pictures import histogram_plot
from dlbricks_tui.documents.parts import BLANK_LINE, Heading, Sentence
from dlbricks_tui.documents.scenario import (
    load_answer,
    load_parts,
    load_picture,
    load_question,
    load_test_columns,
    outcome_table,
    prediction_sentence,
    progress_parts,
    progress_picture,
    progress_words,
    verdict_of,
    verdict_parts,
)
from dlbricks_tui.settings.loads import BATCHES, BOUND, FULL, INSTANCES, KIND, PERCENTILE, RATE
from dlbricks_tui.settings.variant import RUNTIME, THREADS
from dlbricks_tui.tui.dialogs.dialog import ConfirmingScreen
from dlbricks_tui.tui.keys import scopes
from dlbricks_tui.tui.keys.keymap import Hint
from dlbricks_tui.tui.widgets.form import FormPanel, FormRow
from dlbricks_tui.tui.widgets.panel import DocumentPanel, TablePanel
from dlbricks_tui.tui.widgets.screens import WorkScreen
from dlbricks_tui.wording.jobs import execution_line, scenario_line, scenario_of
from dlbricks_tui.wording.numbers import measured_ago, minute_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from dlbricks_tui.api.open_models import Choices, ModelSpec
    from dlbricks_tui.api.session import Asked, WorkbenchSession
    from dlbricks_tui.config.config import Config
    from dlbricks_tui.documents.parts import Column, Part
    from dlbricks_tui.scenarios.scenario import PredictedLoad
    from dlbricks_tui.store.records import LoadTest

SCENARIO_ROWS = (
    FormRow(setting=KIND),
    FormRow(setting=BOUND, usual="default", words=attrgetter("bound_in_words")),
    FormRow(setting=PERCENTILE, usual="that of MLPerf", words=attrgetter("percentile_in_words")),
    FormRow(setting=RATE, usual="the highest", words=lambda it: "highest" if it.rate is None else f"{it.rate:g}/s"),
    FormRow(setting=BATCHES, many=True, usual="default"),
    FormRow(setting=INSTANCES),
    FormRow(setting=THREADS, usual="default", meaning="of each instance"),
    FormRow(setting=RUNTIME, usual="default", meaning="that serves", offered=lambda it: it.runtimes),
    FormRow(setting=FULL, label="length"),
)


class SettingsPanel(FormPanel):
    scope = scopes.LOAD_SETTINGS
    TITLE = "Scenario"
    ROWS = SCENARIO_ROWS
    ABOUT = (
        "How requests arrive and how they are served; the prediction follows each change. The default bound of a "
        "server is ten times what a request takes. Short tests have the fewest queries that decide about the "
        "percentile. "
        "{load_settings.write} writes a value of your own."
    )


class LoadPanel(DocumentPanel):
    TITLE = "Load"
    PICTURED = True
    PLACEHOLDER = (Hint("Looking up what a request takes.", "muted"),)
    ABOUT = (
        "~ is predicted from stored results, with the bound as a line and the predicted highest rate within it. Each "
        "test of a measurement is a point: o passed, x failed, ? is in progress. A test below the bound fails if more "
        "requests exceed it than LoadGen's confidence of 99 % allows."
    )

    def show(self, found: ScenarioOfModel | None, job: LoadJob | None, test: LoadTest | None) -> None:
        """Show a prediction with the tests of a measurement, or with a stored one."""
        picture = None if found is None else load_picture(found, job, test)
        self.show_picture(picture)
        if found is None:
            self.show_groups(())
        else:
            self.show_parts(_nothing_yet(found) if picture is None else load_parts(found, job))


def _nothing_yet(found: ScenarioOfModel) -> Iterator[Part]:
    answer = found.answer
    yield Sentence(answer.refusal, "warn")
    if answer.cure:
        yield BLANK_LINE
        yield Sentence(f"  {answer.cure}", "strong")
    if answer.order is not None:
        yield BLANK_LINE
        yield Hint("{scenario.measure} measures it all the same.", "muted")


class LoadTestsPanel(TablePanel["LoadTest"]):
    scope = scopes.LOAD_TESTS
    TITLE = "Load tests"
    SEARCH_HINT = "scenario, runtime, verdict or date"
    PLACEHOLDER = (
        Hint("No load test of this model is stored."),
        Hint("{scenario.measure} measures the scenario above.", "muted"),
    )
    NOUN = "load test"
    IDENTITY = attrgetter("uuid")
    ABOUT = (
        "The stored load tests of the model on this system, the newest first. The latencies of the selected one are "
        "shown while nothing is measured. {load_tests.take} takes its settings and predicts its scenario."
    )

    def columns(self) -> tuple[Column[LoadTest], ...]:
        return load_test_columns()

    def searched(self, item: LoadTest) -> str:
        return f"{scenario_line(scenario_of(item))} {item.runtime} {verdict_of(item)} {item.when[:16]}"


_HOW_TO_MEASURE = Hint("{scenario.measure} measures the scenario with MLPerf LoadGen.", "muted")


class LatenciesPanel(DocumentPanel):
    scope = scopes.LATENCIES
    TITLE = "Latencies"
    PICTURED = True
    PLACEHOLDER = (_HOW_TO_MEASURE,)
    NOTHING_TO_COPY = "There are no logs to copy."
    ABOUT = (
        "While a scenario is measured: the latency of each request of the test in progress, in their order, with the "
        "bound as a line. Else the selected load test: the histogram of its latencies, its figures beside the "
        "prediction, and LoadGen's verdict. {latencies.copy} copies the path of LoadGen's logs."
    )

    def __init__(self) -> None:
        super().__init__()
        self._logs = ""

    def copied(self) -> str | None:
        return self._logs

    def show_measuring(self, job: LoadJob) -> None:
        """Show how far a measurement is."""
        self.show_placeholder(Hint("The latencies of a test appear as its requests are answered.", "muted"))
        self._logs = job.ready.logs if job.ready else self._logs
        self.show_title(" of the test in progress")
        self.show_picture(progress_picture(job))
        self.show_parts(progress_parts(job), job)

    def show_test(
        self,
        found: ScenarioOfModel | None,
        test: LoadTest | None,
        predicted: PredictedLoad | None,
        logs: str,
        warnings: tuple[str, ...],
    ) -> None:
        """Show a stored load test beside the prediction of its scenario, if there is one."""
        self.show_placeholder(_HOW_TO_MEASURE)
        self._logs = logs
        self.show_title("" if test is None else f" of {minute_of(test.when)}")
        self.show_picture(None if test is None else histogram_plot(test, predicted))
        tested = () if test is None else _tested_parts(found, test, predicted, logs, warnings)
        self.show_parts([*tested, *(() if found is None else _predicted_parts(found, test))], test)


def _tested_parts(
    found: ScenarioOfModel | None, test: LoadTest, predicted: PredictedLoad | None, logs: str, warnings: tuple[str, ...]
) -> Iterator[Part]:
    yield Sentence(scenario_line(scenario_of(test)), "strong")
    if found is not None and not found.is_of(test):
        yield Hint("{load_tests.take} in the load tests predicts this scenario.", "muted")
    yield from (Sentence(f"! {warning}", "warn") for warning in warnings)
    verdict, *reasons = verdict_parts(test, logs)
    yield verdict
    yield outcome_table(scenario_of(test), predicted, test)
    yield from reasons


def _predicted_parts(found: ScenarioOfModel, test: LoadTest | None) -> Iterator[Part]:
    answer = found.answer
    if test is None and answer.prediction is not None:
        yield outcome_table(answer.scenario, answer.prediction)
        yield prediction_sentence(answer.scenario, answer.prediction)
        if not answer.notes:
            yield BLANK_LINE
    if answer.notes:
        yield Heading("Before you believe the prediction")
    yield from (Sentence(f"  {note}") for note in answer.notes)


def predict_scenario(
    session: WorkbenchSession, spec: ModelSpec, choices: Choices, config: Config, settings: ScenarioSettings
) -> ScenarioOfModel:
    """Predict a scenario from stored results; raise a UserError where that is not possible."""
    options = replace(options_of(spec, choices, config), batch=None)
    given: dict[str, Any] = {"threads": settings.threads, "runtime": settings.runtime}
    options = replace(options, **{name: value for name, value in given.items() if value is not None})
    with session.open_estimator(options) as estimator:
        return predicted_scenario(estimator, spec.source, settings)


class CancelLoadScreen(ConfirmingScreen):
    HEADING = "Cancel the measurement?"
    scope = scopes.CANCEL_LOAD
    ABOUT = (
        "The result of a scenario is stored once all of its tests have ended. If it is cancelled, the tests that have "
        "ended are stored as load tests at their rates or batch sizes; the test in progress is lost."
    )
    ASKS = ("LoadGen measures the scenario.", "The test in progress is lost; the tests that have ended are stored.")


class ScenarioScreen(WorkScreen[None, LoadJob]):
    """Predicts scenarios of the open model in threads, and measures them in a process."""

    scope = scopes.SCENARIO
    CSS = """
    ScenarioScreen.-medium .panels, ScenarioScreen.-wide .panels { grid-columns: 3fr 2fr; }
    /* The figures of a test matter as much as its picture. */
    LatenciesPanel .picture { height: 1fr; }
    """
    WRAPS_STATE = True
    WANTS_NEW_RESULTS = True
    WAITS_FOR_RUN = True
    ABOUT = (
        "How much load the open model can serve. The prediction comes from stored results and a simulated queue; "
        "{scenario.measure} measures the same scenario with MLPerf LoadGen. {scenario.pause} pauses so that others can "
        "measure: the test in progress is repeated. {scenario.cancel} cancels. It goes on when you leave."
    )
    WORK = "The load test"
    UNDER_WAY = "The scenario is being measured"
    CANCELLED = "The measurement is cancelled; stored tests of it: {job.kept}."
    ASKS_TO_CANCEL = CancelLoadScreen

    def __init__(self, session: WorkbenchSession, asked: Callable[[], Asked]) -> None:
        spec, choices, _ = asked()
        batch_sizes = () if choices.batch is None else (choices.batch,)
        runtimes = runtimes_for((spec.source,), session.data)
        self._settings = ScenarioSettings(runtimes=runtimes, batch_sizes=batch_sizes)
        self._load = LoadPanel()
        self._form = SettingsPanel(self._settings, self._take)
        self._latencies = LatenciesPanel()
        self._tests = LoadTestsPanel()
        super().__init__(self._load, self._form, self._latencies, self._tests)
        self._data = session.data
        self._model = spec.source.name
        self._predict = lambda settings: predict_scenario(session, *asked(), settings)
        self._found: ScenarioOfModel | None = None
        # Why nothing is predicted.
        self._refusal = ""
        # True while the prediction is that of earlier settings or results.
        self._is_looking = False
        # The last measurement, until the settings change.
        self._last: LoadJob | None = None
        # The load test that was measured here last, what its measurement warned about, and what was predicted before.
        self._measured = ""
        self._warnings: tuple[str, ...] = ()
        self._predicted_before: PredictedLoad | None = None
        # The load test to select once it is listed.
        self._wanted = ""
        self._is_outdated = False

    def on_mount(self) -> None:
        self.find_job(partial(LoadJob.begun, self._data, self._model))

    # The prediction

    def take_new_results(self) -> None:
        if self.job is None:
            self.look()
        else:
            self._is_outdated = True

    def action_take_test(self) -> None:
        if self._tests.selected is not None:
            self._take(self._settings.like(self._tests.selected))

    def _take(self, settings: ScenarioSettings) -> None:
        if not self.says_under_way() and settings != self._settings:
            self._settings = settings
            self._form.show(settings)
            self.failure, self._last = "", None
            self.look()

    def look(self) -> None:
        if self.says_under_way():
            return
        self._is_outdated, self._is_looking = False, True
        refused = partial(self._show_prediction, None)
        self.run_in_thread(partial(self._predict, self._settings), "prediction", self._predicted, refused)

    def _predicted(self, found: ScenarioOfModel) -> None:
        self._tests.show_items(found.answer.load_tests_of_model)
        if self._wanted:
            self._tests.select(self._wanted)
            self._wanted = ""
        self._show_prediction(found, found.answer.refusal)

    def _show_prediction(self, found: ScenarioOfModel | None, refusal: str) -> None:
        self._is_looking, self._found, self._refusal = False, found, refusal
        usual_bound_ms = None if found is None else found.answer.scenario.bound_ms
        self._form.show(replace(self._settings, usual_bound_ms=usual_bound_ms))
        self._load.show_placeholder(Hint(refusal, "warn"))
        self.job_changed()

    # What is shown

    @on(LoadTestsPanel.Settled, "LoadTestsPanel")
    def _test_selected(self) -> None:
        if self.job is None:
            self.job_changed()

    def job_changed(self) -> None:
        found = self._found
        if self.job is not None:
            self._load.show(found, self.job, None)
            self._latencies.show_measuring(self.job)
        else:
            test = self._tests.selected
            is_of_scenario = found is not None and found.is_of(test)
            self._load.show(found, self._last, test if is_of_scenario else None)
            logs = None if test is None else self._data.scenarios / test.uuid
            self._latencies.show_test(
                found,
                test,
                self._prediction_of(test),
                str(logs) if logs is not None and logs.is_dir() else "",
                self._warnings if test is not None and test.uuid == self._measured else (),
            )
        self.head_changed()

    def _prediction_of(self, test: LoadTest | None) -> PredictedLoad | None:
        """Return what is predicted of the scenario of a load test.

        The test that was measured last is already known to the prediction of now, so that of before counts.
        """
        if test is not None and test.uuid == self._measured:
            return self._predicted_before
        return self._found.answer.prediction if self._found is not None and self._found.is_of(test) else None

    def question(self) -> str:
        return load_question(self._model)

    def answer(self) -> Iterable[Line]:
        name, found = Span(f" {self._model}: ", "strong"), self._found
        told = load_answer(found.answer.scenario, found.answer.best_test, found.answer.prediction) if found else []
        if told:
            yield line(name, Span("; ".join(told), "strong"))
        elif self._refusal:
            yield line(name, Span(self._refusal, "warn"))
        elif found is not None:
            yield (name, *Hint("nothing was measured yet: {scenario.measure} measures it.", "warn").line)
        elif self.job is None:
            yield line(Span(" Predicting.", "muted"))
        # How far a measurement is must not be cut off.
        if self.job is not None:
            yield line(Span(" "), *_state_of(self.job))
        elif self.failure:
            yield line(Span(f" The measurement failed: {self.failure}", "bad"))

    def state(self) -> Line:
        if self.job is not None or self.failure:
            return ()
        if self._found is None:
            return line(Span(" "))
        answer, measured = self._found.answer, measured_ago(self._found.results)
        where = execution_line(answer.system, answer.execution)
        # The scenario is the same as in its panel.
        return line(Span(f" {scenario_line(answer.scenario)}; {where}{f', {measured}' if measured else ''}", "muted"))

    # The measurement

    def controls(self) -> Mapping[str, bool]:
        return {**super().controls(), "pause": self.job is not None}

    def action_measure(self) -> None:
        if self.says_under_way():
            return
        if self._is_looking:
            self.notify("The scenario is still being looked up.")
        elif self._found is None:
            self.notify(self._refusal)
        elif self._found.answer.order is None:
            self.notify("The scenario cannot be measured here: it was looked up for another system or runtime.")
        else:
            self._last = None
            self.follow(LoadJob(self._found.answer.order, self._data))

    def job_ended(self, job: LoadJob) -> None:
        self._last = job
        if job.done is not None:
            self._measured = self._wanted = job.done.uuid
            self._warnings = job.done.warnings
            before = None if self._found is None or job.was_begun_before else self._found.answer.prediction
            self._predicted_before = before
        self.job_changed()
        if job.done is not None or job.kept or self._is_outdated:
            self.look()

    def action_pause(self) -> None:
        if self.job is not None:
            (self.job.resume if self.job.paused else self.job.pause)()
            self.job_changed()

    @property
    def goes_on(self) -> str:
        if self.job is not None and self.job.paused:
            return "The paused load test ends here; its tests that have ended are stored."
        return super().goes_on


def _state_of(job: LoadJob) -> Line:
    if job.cancelled:
        return (Span("cancelling", "warn"),)
    if job.paused:
        again = Hint("{scenario.pause} repeats the test in progress", "muted").line
        return (Span("paused; others may measure; ", "warn"), *again)
    if job.waits_for:
        return (Span(f"waits for {job.waits_for}", "warn"),)
    if job.test is None:
        return (Span("loading the model" if job.ready is None else "the next test starts", "warn"),)
    return (Span(progress_words(job), "good"),)
