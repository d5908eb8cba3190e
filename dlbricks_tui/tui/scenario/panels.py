"""The panels of the scenario screen: the load, the settings, the stored load tests, and the latencies of one test."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING

from dlbricks_tui.documents.parts import BLANK_LINE, Heading, Sentence
from dlbricks_tui.documents.scenario import (
    histogram,
    load_parts,
    load_picture,
    load_test_columns,
    outcome_table,
    prediction_sentence,
    progress_parts,
    progress_picture,
    verdict_of,
    verdict_parts,
)
from dlbricks_tui.settings.loads import BATCHES, BOUND, FULL, INSTANCES, KIND, PERCENTILE, RATE
from dlbricks_tui.settings.variant import RUNTIME, THREADS
from dlbricks_tui.tui.keys import scopes
from dlbricks_tui.tui.keys.keymap import Hint
from dlbricks_tui.tui.widgets.form import FormPanel, FormRow
from dlbricks_tui.tui.widgets.panel import DocumentPanel, TablePanel
from dlbricks_tui.wording.jobs import scenario_line, scenario_of
from dlbricks_tui.wording.numbers import minute_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dlbricks_tui.api.followed_jobs import LoadJob
    from dlbricks_tui.api.scenarios import ScenarioOfModel
    from dlbricks_tui.documents.parts import Column, Part
    from dlbricks_tui.scenarios.scenario import PredictedLoad
    from dlbricks_tui.store.records import LoadTest


SCENARIO_ROWS = (
    FormRow(setting=KIND),
    FormRow(setting=BOUND, usual="default", words=attrgetter("bound_in_words")),
    FormRow(
        setting=PERCENTILE,
        usual="that of MLPerf",
        words=attrgetter("percentile_in_words"),
    ),
    FormRow(setting=RATE, usual="the highest", words=lambda it: "highest" if it.rate is None else f"{it.rate:g}/s"),
    FormRow(setting=BATCHES, many=True, usual="default"),
    FormRow(setting=INSTANCES),
    FormRow(setting=THREADS, usual="default", meaning="of each instance"),
    FormRow(setting=RUNTIME, usual="default", meaning="that serves", offered=lambda it: it.runtimes),
    FormRow(setting=FULL, label="length"),
)


class SettingsPanel(FormPanel):
    scope = scopes.LOAD_SETTINGS
    ID = "load-settings"
    TITLE = "Scenario"
    REACHED_BY = "scenario.go_to_settings"
    ROWS = SCENARIO_ROWS
    ABOUT = (
        "How requests arrive and how they are served; the prediction follows each change. The default bound of a "
        "server is ten times what a request takes. Short tests have the fewest queries that decide about the "
        "percentile. "
        "{load_settings.write} writes a value of your own."
    )


class LoadPanel(DocumentPanel):
    ID = "load"
    TITLE = "Load"
    REACHED_BY = "scenario.go_to_load"
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
    ID = "load-tests"
    TITLE = "Load tests"
    REACHED_BY = "scenario.go_to_tests"
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
    ID = "latencies"
    TITLE = "Latencies"
    REACHED_BY = "scenario.go_to_latencies"
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
        self.show_picture(None if test is None else histogram(test, predicted))
        tested = () if test is None else _tested_parts(found, test, predicted, logs, warnings)
        self.show_parts([*tested, *(() if found is None else _predicted_parts(found, test))], test)


def _tested_parts(
    found: ScenarioOfModel | None,
    test: LoadTest,
    predicted: PredictedLoad | None,
    logs: str,
    warnings: tuple[str, ...],
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
