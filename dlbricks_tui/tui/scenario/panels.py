"""The panels of the scenario screen: the latency at each load, the stored load tests, and the latencies of one test."""

from __future__ import annotations

from bisect import bisect_right
from functools import lru_cache
from typing import TYPE_CHECKING

from textual.message import Message

from dlbricks_tui.documents.layout import laid_out
from dlbricks_tui.documents.lines import BLANK, Line, Span, line
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
from dlbricks_tui.documents.parts import Sentence
from dlbricks_tui.documents.scenario import (
    load_answer,
    load_test_columns,
    outcome_table,
    prediction_sentence,
    verdict_of,
    verdict_parts,
)
from dlbricks_tui.scenarios.scenario import ScenarioKind, latencies_ms, measured_load, percentile_of
from dlbricks_tui.tui.keys.keymap import Hint
from dlbricks_tui.tui.scenario import actions
from dlbricks_tui.tui.widgets.panel import Panel
from dlbricks_tui.tui.widgets.rows import LineRows
from dlbricks_tui.tui.widgets.table import TablePanel
from dlbricks_tui.wording.numbers import measured_ago, minute_of
from dlbricks_tui.wording.scenarios import execution_line, message_line, progress_line, scenario_line, scenario_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dlbricks_tui.documents.parts import Column, Part
    from dlbricks_tui.documents.pictures import Picture, Plot
    from dlbricks_tui.scenarios.messages import LoadTestDone
    from dlbricks_tui.scenarios.scenario import PredictedLoad, Scenario
    from dlbricks_tui.store.records import LoadTest
    from dlbricks_tui.tui.scenario.work import LoadMeasuring, LoadStanding, ScenarioView


def answer_line(model: str, view: ScenarioView | None, refusal: str) -> Line:
    """Return the answer to a scenario as a sentence: what a test has found, and what is predicted."""
    name = Span(f" {model}: ", "strong")
    answer = None if view is None else view.answer
    told = [] if answer is None else load_answer(answer.scenario, answer.best_test, answer.prediction)
    if not told:
        return line(name, Span(refusal, "warn") if refusal else Span("how much load can it serve?"))
    return line(name, Span("; ".join(told), "strong"))


def state_line(view: ScenarioView | None, measuring: LoadMeasuring | None, failure: str) -> Line:
    """Return how far the measurement is, or what the scenario is."""
    if measuring is not None:
        return line(Span(" "), *_state_of(measuring))
    if failure:
        return line(Span(f" The measurement failed: {failure}", "bad"))
    if view is None:
        return line(Span(" "))
    answer, measured = view.answer, measured_ago(view.results)
    where = execution_line(answer.system, answer.execution)
    return line(Span(f" {scenario_line(answer.scenario)}; {where}{f', {measured}' if measured else ''}", "muted"))


def ended_line(test: LoadTestDone, scenario: Scenario) -> Line:
    """Return what a test of a measurement has found."""
    sign, style = (PASSED, "good") if test.passed else (FAILED, "bad")
    return line(Span(f"{sign} ", style), message_line(test, scenario))


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


class LoadPanel(Panel):
    """The latency at each rate of requests; of the other kinds the percentiles, or the throughput of batch sizes."""

    TITLE = "Load"
    REACHED_BY = "scenario.go_to_load"
    PICTURED = True
    ABOUT = (
        "~ is predicted from stored results, with the bound as a line and the predicted highest rate within it. Each "
        "test of a measurement is a point: o passed, x failed, ? is in progress. A test below the bound fails if more "
        "requests exceed it than LoadGen's confidence of 99 % allows."
    )

    def __init__(self) -> None:
        self._list = LineRows(self._lines)
        super().__init__(self._list, id="load")
        self._view: ScenarioView | None = None
        self._progress: LoadStanding | None = None
        self._test: LoadTest | None = None

    def show(self, view: ScenarioView | None, progress: LoadStanding | None, test: LoadTest | None) -> None:
        """Show a prediction with the tests of a measurement, or with a stored one."""
        self._view, self._progress, self._test = view, progress, test
        self.show_picture(None if view is None else self._picture_of(view))
        self._list.remake()

    def _picture_of(self, view: ScenarioView) -> Picture | None:
        answer, test = view.answer, self._test
        if answer.scenario.kind is ScenarioKind.SERVER:
            curve = curve_of(view, self._progress)
            return load_plot(curve, answer.scenario) if curve.points else None
        if answer.scenario.kind is not ScenarioKind.OFFLINE:
            measured = None if test is None else measured_load(test)
            return percentiles_plot(answer.prediction, measured, answer.scenario.bound_ms)
        predicted = answer.prediction
        expected = {} if predicted is None else {predicted.batch_size: predicted.per_second.value}
        found = {it.batch_size: it.per_second for it in _ended(self._progress)}
        if test is not None:
            found.setdefault(test.batch_size, test.per_second)
        return throughput_rows(sorted(answer.scenario.batch_sizes), expected, found)

    def _lines(self, width: int) -> Iterator[Line]:
        if self._view is None:
            return
        answer = self._view.answer
        if not self.picture.display:
            yield from _nothing_yet(self._view)
            return
        if answer.prediction is not None:
            yield from laid_out([outcome_table(answer.scenario, answer.prediction)], width)
        yield from (ended_line(test, answer.scenario) for test in reversed(_ended(self._progress)))


def curve_of(view: ScenarioView, progress: LoadStanding | None) -> LoadCurve:
    """Return what is known about the latencies of a server: its prediction, and the tests of a measurement."""
    running = None
    if progress is not None and progress.test is not None and progress.test.rate is not None and progress.ordered_ms:
        running = (progress.test.rate, percentile_of(progress.ordered_ms, view.answer.scenario.percentile))
    return LoadCurve.of(view.answer, view.curve, None if progress is None else progress.ended, running)


def _ended(progress: LoadStanding | None) -> Sequence[LoadTestDone]:
    return progress.ended if progress is not None else ()


def _nothing_yet(view: ScenarioView) -> Iterator[Line]:
    answer = view.answer
    yield line(Span(answer.refusal, "warn"))
    if answer.cure:
        yield BLANK
        yield line(Span("  "), Span(answer.cure, "strong"))
    if answer.order is not None:
        yield BLANK
        yield Hint("{scenario.measure} measures it all the same.", "muted").line


class LoadTestsPanel(TablePanel["LoadTest"]):
    """A row for each load test, the newest first."""

    scope = actions.TESTS
    TITLE = "Load tests"
    REACHED_BY = "scenario.go_to_tests"
    SEARCH_HINT = "scenario, runtime, verdict or date"
    ABOUT = (
        "The stored load tests of the model on this system, the newest first. The latencies of the selected one are "
        "shown while nothing is measured. {load_tests.take} takes its settings and predicts its scenario."
    )

    class Selected(Message):
        """The cursor has settled on a load test, or there is none."""

    class Taken(Message):
        """The user wants the settings of the selected load test."""

    def __init__(self) -> None:
        super().__init__(id="load-tests")
        self.show_placeholder(
            line("No load test of this model is stored."),
            Hint("{scenario.measure} measures the scenario above.", "muted"),
        )

    def columns(self) -> tuple[Column[LoadTest], ...]:
        return load_test_columns()

    def show(self, tests: Sequence[LoadTest]) -> None:
        self.show_items(tests)
        self.cursor_settled()

    def identity(self, item: LoadTest) -> str:
        return item.uuid

    def searched(self, item: LoadTest) -> str:
        return f"{scenario_line(scenario_of(item))} {item.runtime} {verdict_of(item)} {item.when[:16]}"

    def search_changed(self) -> None:
        super().search_changed()
        self.cursor_settled()

    def cursor_settled(self) -> None:
        self.post_message(self.Selected())

    def action_take(self) -> None:
        if self.selected is not None:
            self.post_message(self.Taken())


_HOW_TO_MEASURE = Hint("{scenario.measure} measures the scenario with MLPerf LoadGen.", "muted")


class LatenciesPanel(Panel):
    """While it is measured the latencies of the test in progress, else those of the selected load test."""

    scope = actions.LATENCIES
    TITLE = "Latencies"
    REACHED_BY = "scenario.go_to_latencies"
    PICTURED = True
    ABOUT = (
        "While a scenario is measured: the latency of each request of the test in progress, in their order, with the "
        "bound as a line. Else the selected load test: the histogram of its latencies, its figures beside the "
        "prediction, and LoadGen's verdict. {latencies.copy} copies the path of LoadGen's logs."
    )

    def __init__(self) -> None:
        self._list = LineRows(self._lines)
        super().__init__(self._list, id="latencies")
        self._view: ScenarioView | None = None
        self._measuring: LoadMeasuring | None = None
        self._test: LoadTest | None = None
        self._predicted: PredictedLoad | None = None
        self._logs = ""
        self._warnings: tuple[str, ...] = ()
        self.show_placeholder(_HOW_TO_MEASURE)

    def show_measuring(self, measuring: LoadMeasuring) -> None:
        """Show how far a measurement is."""
        self._measuring = measuring
        self.show_placeholder(line(Span("The latencies of a test appear as its requests are answered.", "muted")))
        self._logs = measuring.progress.ready.logs if measuring.progress.ready else self._logs
        self.show_title(" of the test in progress")
        progress, scenario = measuring.progress, measuring.scenario
        picture = None
        if progress.latencies_ms and progress.test is not None:
            picture = progress_plot(progress.latencies_ms, progress.ordered_ms, progress.test.queries, scenario)
        self.show_picture(picture)
        self._list.remake()

    def show_test(
        self,
        view: ScenarioView | None,
        test: LoadTest | None,
        predicted: PredictedLoad | None,
        logs: str,
        warnings: tuple[str, ...],
    ) -> None:
        """Show a stored load test beside the prediction of its scenario, if there is one."""
        if self._measuring is not None or test != self._test:
            self._list.move_to(0)
        self._measuring = None
        self.show_placeholder(_HOW_TO_MEASURE)
        self._view, self._test, self._predicted = view, test, predicted
        self._logs, self._warnings = logs, warnings
        self.show_title("" if test is None else f" of {minute_of(test.when)}")
        self.show_picture(None if test is None else _histogram(test, predicted))
        self._list.remake()

    def action_copy(self) -> None:
        self.copy(self._logs or None, "There are no logs to copy.")

    def _lines(self, width: int) -> Iterator[Line]:
        if self._measuring is not None:
            yield from _measuring_lines(self._measuring)
            return
        test, view = self._test, self._view
        if test is not None:
            yield line(Span(scenario_line(scenario_of(test)), "strong"))
            if view is not None and not view.is_of(test):
                yield Hint("{load_tests.take} in the load tests predicts this scenario.", "muted").line
            yield from laid_out(self._tested(test), width)
        if view is not None:
            yield from self._predicted_lines(view, width)

    def _tested(self, test: LoadTest) -> Iterator[Part]:
        yield from (Sentence(f"! {warning}", "warn") for warning in self._warnings)
        verdict, *reasons = verdict_parts(test, self._logs)
        yield verdict
        yield outcome_table(scenario_of(test), self._predicted, test)
        yield from reasons

    def _predicted_lines(self, view: ScenarioView, width: int) -> Iterator[Line]:
        answer = view.answer
        if self._test is not None and answer.notes:
            yield BLANK
        if self._test is None and answer.prediction is not None:
            table = outcome_table(answer.scenario, answer.prediction)
            yield from laid_out([table, prediction_sentence(answer.scenario, answer.prediction)], width)
            yield BLANK
        if answer.notes:
            yield line(Span("Before you believe the prediction", "heading"))
        yield from (line(Span(f"  {note}")) for note in answer.notes)


def _measuring_lines(measuring: LoadMeasuring) -> Iterator[Line]:
    progress, scenario = measuring.progress, measuring.scenario
    if progress.ready is not None and progress.test is None:
        yield line(Span(message_line(progress.ready, scenario), "muted"))
    yield from (ended_line(test, scenario) for test in reversed(progress.ended))


@lru_cache(maxsize=8)
def _histogram(test: LoadTest, predicted: PredictedLoad | None) -> Plot | None:
    return histogram_plot(test, latencies_ms(test), predicted)
