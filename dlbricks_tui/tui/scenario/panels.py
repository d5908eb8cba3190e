"""The panels of the scenario screen: the load, the settings, the stored load tests, and the latencies of one test."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from operator import attrgetter
from typing import TYPE_CHECKING

from dlbricks_tui.documents.load_pictures import (
    FAILED,
    PASSED,
    LoadCurve,
    histogram_plot,
    load_plot,
    percentiles_plot,
    progress_plot,
    throughput_rows,
)
from dlbricks_tui.documents.parts import BLANK_LINE, Heading, MarkedSentence, Sentence
from dlbricks_tui.documents.scenario import (
    load_test_columns,
    outcome_table,
    prediction_sentence,
    verdict_of,
    verdict_parts,
)
from dlbricks_tui.scenarios.scenario import ScenarioKind, latencies_ms, measured_load, percentile_of, usual_percentile
from dlbricks_tui.settings.loads import BATCHES, BOUND, FULL, INSTANCES, KIND, PERCENTILE, RATE, AskedScenario
from dlbricks_tui.settings.variant import RUNTIME, THREADS
from dlbricks_tui.tui.keys import scopes
from dlbricks_tui.tui.keys.keymap import Hint
from dlbricks_tui.tui.widgets.form import FormPanel, FormRow
from dlbricks_tui.tui.widgets.panel import DocumentPanel, TablePanel
from dlbricks_tui.wording.numbers import minute_of
from dlbricks_tui.wording.scenarios import message_line, scenario_line, scenario_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dlbricks_tui.documents.parts import Column, Part
    from dlbricks_tui.documents.pictures import Picture, Plot
    from dlbricks_tui.scenarios.scenario import LoadTestDone, PredictedLoad, Scenario
    from dlbricks_tui.store.records import LoadTest
    from dlbricks_tui.tui.scenario.screen import LoadMeasuring, LoadStanding, ScenarioView


@dataclass(frozen=True, kw_only=True)
class ScenarioSettings(AskedScenario):
    """A scenario as the user has chosen it; None is the usual value.

    The default bound of a server is ten times its estimate; other kinds have none.
    """

    # The names of the runtimes to choose from, the usual one first.
    runtimes: tuple[str, ...] = ()
    kind: ScenarioKind = ScenarioKind.SERVER
    # The largest batch of waiting requests, or several sizes: these ones.
    batch_sizes: tuple[int, ...] = ()
    threads: int | None = None
    runtime: str | None = None
    # What the usual bound stands for, once it is known.
    usual_bound_ms: float | None = field(default=None, compare=False)


def _bound(settings: ScenarioSettings) -> str:
    bound_ms = settings.usual_bound_ms if settings.bound_ms is None else settings.bound_ms
    if bound_ms is not None:
        return f"{bound_ms:g} ms"
    return "default" if settings.kind is ScenarioKind.SERVER else "none"


SCENARIO_ROWS = (
    FormRow(setting=KIND),
    FormRow(setting=BOUND, usual="default", words=_bound),
    FormRow(
        setting=PERCENTILE,
        usual="that of MLPerf",
        words=lambda it: f"p{usual_percentile(it.kind) if it.percentile is None else it.percentile:g}",
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


def ended_part(test: LoadTestDone, scenario: Scenario) -> Part:
    """Return what a test of a measurement has found."""
    sign, style = (PASSED, "good") if test.passed else (FAILED, "bad")
    return MarkedSentence(sign, style, message_line(test, scenario))


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

    def show(self, view: ScenarioView | None, progress: LoadStanding | None, test: LoadTest | None) -> None:
        """Show a prediction with the tests of a measurement, or with a stored one."""
        picture = None if view is None else _load_picture(view, progress, test)
        self.show_picture(picture)
        if view is None:
            self.show_groups(())
        else:
            self.show_parts(_nothing_yet(view) if picture is None else _load_parts(view, progress))


def _load_picture(view: ScenarioView, progress: LoadStanding | None, test: LoadTest | None) -> Picture | None:
    answer = view.answer
    if answer.scenario.kind is ScenarioKind.SERVER:
        curve = curve_of(view, progress)
        return load_plot(curve, answer.scenario) if curve.points else None
    if answer.scenario.kind is not ScenarioKind.OFFLINE:
        measured = None if test is None else measured_load(test)
        return percentiles_plot(answer.prediction, measured, answer.scenario.bound_ms)
    predicted = answer.prediction
    expected = {} if predicted is None else {predicted.batch_size: predicted.per_second.value}
    found = {it.batch_size: it.per_second for it in _ended(progress)}
    if test is not None:
        found.setdefault(test.batch_size, test.per_second)
    return throughput_rows(sorted(answer.scenario.batch_sizes), expected, found)


def _load_parts(view: ScenarioView, progress: LoadStanding | None) -> Iterator[Part]:
    answer = view.answer
    if answer.prediction is not None:
        yield outcome_table(answer.scenario, answer.prediction)
    yield from (ended_part(test, answer.scenario) for test in reversed(_ended(progress)))


def curve_of(view: ScenarioView, progress: LoadStanding | None) -> LoadCurve:
    """Return what is known about the latencies of a server: its prediction, and the tests of a measurement."""
    running = None
    if progress is not None and progress.test is not None and progress.test.rate is not None and progress.ordered_ms:
        running = (progress.test.rate, percentile_of(progress.ordered_ms, view.answer.scenario.percentile))
    return LoadCurve.of(view.answer, view.curve, None if progress is None else progress.ended, running)


def _ended(progress: LoadStanding | None) -> Sequence[LoadTestDone]:
    return progress.ended if progress is not None else ()


def _nothing_yet(view: ScenarioView) -> Iterator[Part]:
    answer = view.answer
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

    def show_measuring(self, measuring: LoadMeasuring) -> None:
        """Show how far a measurement is."""
        progress, scenario = measuring.progress, measuring.scenario
        self.show_placeholder(Hint("The latencies of a test appear as its requests are answered.", "muted"))
        self._logs = progress.ready.logs if progress.ready else self._logs
        self.show_title(" of the test in progress")
        picture = None
        if progress.latencies_ms and progress.test is not None:
            picture = progress_plot(progress.latencies_ms, progress.ordered_ms, progress.test.queries, scenario)
        self.show_picture(picture)
        self.show_parts(_measuring_parts(measuring), measuring)

    def show_test(
        self,
        view: ScenarioView | None,
        test: LoadTest | None,
        predicted: PredictedLoad | None,
        logs: str,
        warnings: tuple[str, ...],
    ) -> None:
        """Show a stored load test beside the prediction of its scenario, if there is one."""
        self.show_placeholder(_HOW_TO_MEASURE)
        self._logs = logs
        self.show_title("" if test is None else f" of {minute_of(test.when)}")
        self.show_picture(None if test is None else _histogram(test, predicted))
        tested = () if test is None else _tested_parts(view, test, predicted, logs, warnings)
        self.show_parts([*tested, *(() if view is None else _predicted_parts(view, test))], test)


def _measuring_parts(measuring: LoadMeasuring) -> Iterator[Part]:
    progress, scenario = measuring.progress, measuring.scenario
    if progress.ready is not None and progress.test is None:
        yield Sentence(message_line(progress.ready, scenario), "muted")
    yield from (ended_part(test, scenario) for test in reversed(progress.ended))


def _tested_parts(
    view: ScenarioView | None, test: LoadTest, predicted: PredictedLoad | None, logs: str, warnings: tuple[str, ...]
) -> Iterator[Part]:
    yield Sentence(scenario_line(scenario_of(test)), "strong")
    if view is not None and not view.is_of(test):
        yield Hint("{load_tests.take} in the load tests predicts this scenario.", "muted")
    yield from (Sentence(f"! {warning}", "warn") for warning in warnings)
    verdict, *reasons = verdict_parts(test, logs)
    yield verdict
    yield outcome_table(scenario_of(test), predicted, test)
    yield from reasons


def _predicted_parts(view: ScenarioView, test: LoadTest | None) -> Iterator[Part]:
    answer = view.answer
    if test is None and answer.prediction is not None:
        yield outcome_table(answer.scenario, answer.prediction)
        yield prediction_sentence(answer.scenario, answer.prediction)
        if not answer.notes:
            yield BLANK_LINE
    if answer.notes:
        yield Heading("Before you believe the prediction")
    yield from (Sentence(f"  {note}") for note in answer.notes)


@lru_cache(maxsize=8)
def _histogram(test: LoadTest, predicted: PredictedLoad | None) -> Plot | None:
    return histogram_plot(test, latencies_ms(test), predicted)
