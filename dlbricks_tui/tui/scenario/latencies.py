"""The panel of the latencies of the test in progress, or of a stored load test."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from dlbricks_tui.documents.layout import laid_out
from dlbricks_tui.documents.lines import BLANK, Line, Span, line
from dlbricks_tui.documents.load_pictures import histogram_plot, progress_plot
from dlbricks_tui.documents.parts import Sentence
from dlbricks_tui.documents.scenario import outcome_table, prediction_sentence, verdict_parts
from dlbricks_tui.scenarios.outcome import latencies_ms
from dlbricks_tui.tui.keys.keymap import Hint
from dlbricks_tui.tui.scenario import actions
from dlbricks_tui.tui.scenario.words import ended_line
from dlbricks_tui.tui.widgets.panel import Panel
from dlbricks_tui.tui.widgets.rows import LineRows
from dlbricks_tui.wording.ages import minute_of
from dlbricks_tui.wording.scenarios import message_line, scenario_line, scenario_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dlbricks_tui.documents.parts import Part
    from dlbricks_tui.documents.pictures import Plot
    from dlbricks_tui.scenarios.outcome import PredictedLoad
    from dlbricks_tui.store.records import LoadTest
    from dlbricks_tui.tui.scenario.measuring import Measuring
    from dlbricks_tui.tui.scenario.work import ScenarioView

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


def _measuring_lines(measuring: Measuring) -> Iterator[Line]:
    progress, scenario = measuring.progress, measuring.scenario
    if progress.ready is not None and progress.test is None:
        yield line(Span(message_line(progress.ready, scenario), "muted"))
    yield from (ended_line(test, scenario) for test in reversed(progress.ended))


@lru_cache(maxsize=8)
def _histogram(test: LoadTest, predicted: PredictedLoad | None) -> Plot | None:
    return histogram_plot(test, latencies_ms(test), predicted)
