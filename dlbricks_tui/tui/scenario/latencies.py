"""The panel of the latencies of the test in progress, or of a stored load test."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from dlbricks_tui.documents.lines import BLANK, Line, Span, fact, line
from dlbricks_tui.documents.load_curve import FAILED, PASSED
from dlbricks_tui.scenarios.outcome import latencies_ms, percentile_of
from dlbricks_tui.tui.keys.keymap import Hint
from dlbricks_tui.tui.scenario import actions
from dlbricks_tui.tui.scenario.pictures import histogram_plot, progress_plot
from dlbricks_tui.tui.scenario.work import measured_of
from dlbricks_tui.tui.widgets.panel import Panel
from dlbricks_tui.tui.widgets.rows import LineRows
from dlbricks_tui.wording.scenarios import (
    in_us,
    message_line,
    outcome_lines,
    percentile_name,
    prediction_line,
    scenario_line,
    scenario_of,
    verdict_lines,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dlbricks_tui.answers.scenarios.predicting import ScenarioAnswer
    from dlbricks_tui.documents.pictures import Plot
    from dlbricks_tui.scenarios.messages import LoadTestDone
    from dlbricks_tui.scenarios.outcome import PredictedLoad
    from dlbricks_tui.scenarios.scenario import Scenario
    from dlbricks_tui.store.records import LoadTest
    from dlbricks_tui.tui.scenario.measuring import Measuring
    from dlbricks_tui.tui.scenario.progress import Progress
    from dlbricks_tui.tui.scenario.work import ScenarioView

_HOW_TO_MEASURE = Hint("{scenario.measure} measures the scenario with MLPerf LoadGen.", "muted")
_SO_FAR = (50.0, 90.0, 99.0)


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
        self._measuring: Measuring | None = None
        self._test: LoadTest | None = None
        self._predicted: PredictedLoad | None = None
        self._logs = ""
        self._warnings: tuple[str, ...] = ()
        self.show_placeholder(_HOW_TO_MEASURE)

    def show_measuring(self, measuring: Measuring) -> None:
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
        self.show_title("" if test is None else f" of {test.when[:16].replace('T', ' ')}")
        self.show_picture(None if test is None else _histogram(test, predicted))
        self._list.remake()

    def action_copy(self) -> None:
        self.copy(self._logs or None, "There are no logs to copy.")

    def _lines(self, width: int) -> Iterator[Line]:
        if self._measuring is not None:
            yield from _measuring_lines(self._measuring)
            return
        if self._test is not None:
            yield from _test_lines(self._test, self._view, self._predicted, self._warnings)
            if self._logs:
                yield fact("logs", Span(self._logs, "muted"))
        if self._view is not None:
            yield from _prediction_lines(self._view.answer, has_test=self._test is not None)


def _measuring_lines(measuring: Measuring) -> Iterator[Line]:
    progress, scenario = measuring.progress, measuring.scenario
    yield from _progress_lines(progress, scenario)
    for test in reversed(progress.ended):
        yield _ended_line(test, scenario)


def _progress_lines(progress: Progress, scenario: Scenario) -> Iterator[Line]:
    if progress.ready is not None and progress.test is None:
        yield line(Span(message_line(progress.ready, scenario), "muted"))
    found = progress.ordered_ms
    if found:
        yield fact("so far", "   ".join(f"{percentile_name(it)} {in_us(percentile_of(found, it))}" for it in _SO_FAR))


def _ended_line(test: LoadTestDone, scenario: Scenario) -> Line:
    sign, style = (PASSED, "good") if test.passed else (FAILED, "bad")
    return line(Span(f"{sign} ", style), message_line(test, scenario))


def _test_lines(
    test: LoadTest, view: ScenarioView | None, predicted: PredictedLoad | None, warnings: Sequence[str]
) -> Iterator[Line]:
    scenario = scenario_of(test)
    yield line(Span(scenario_line(scenario), "strong"))
    if view is not None and not view.is_of(test):
        yield Hint("{load_tests.take} in the load tests predicts this scenario.", "muted").line
    for warning in warnings:
        yield line(Span(f"! {warning}", "warn"))
    verdict, *reasons = verdict_lines(test)
    yield line(verdict)
    for text in (*outcome_lines(scenario, predicted, measured_of(test), test), *reasons):
        yield line(text)


def _prediction_lines(answer: ScenarioAnswer, *, has_test: bool) -> Iterator[Line]:
    if has_test and answer.notes:
        yield BLANK
    if not has_test and answer.prediction is not None:
        for text in outcome_lines(answer.scenario, answer.prediction, None):
            yield line(text)
        yield line(prediction_line(answer.scenario, answer.prediction))
        yield BLANK
    if answer.notes:
        yield line(Span("Before you believe the prediction", "heading"))
    for note in answer.notes:
        yield line(Span(f"  {note}"))


@lru_cache(maxsize=8)
def _histogram(test: LoadTest, predicted: PredictedLoad | None) -> Plot | None:
    return histogram_plot(test, latencies_ms(test), predicted)
