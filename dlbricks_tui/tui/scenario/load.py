"""The panel of the latency at each load: predicted, and as tests have found it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dlbricks_tui.documents.layout import laid_out
from dlbricks_tui.documents.lines import BLANK, Line, Span, line
from dlbricks_tui.documents.load_curve import LoadCurve, load_plot
from dlbricks_tui.documents.load_pictures import percentiles_plot, throughput_rows
from dlbricks_tui.documents.scenario import outcome_table
from dlbricks_tui.scenarios.outcome import measured_load, percentile_of
from dlbricks_tui.scenarios.scenario import Kind
from dlbricks_tui.tui.keys.keymap import Hint
from dlbricks_tui.tui.scenario.words import ended_line
from dlbricks_tui.tui.widgets.panel import Panel
from dlbricks_tui.tui.widgets.rows import LineRows

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dlbricks_tui.documents.pictures import Picture
    from dlbricks_tui.scenarios.messages import LoadTestDone
    from dlbricks_tui.store.records import LoadTest
    from dlbricks_tui.tui.scenario.progress import Progress
    from dlbricks_tui.tui.scenario.work import ScenarioView


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
        self._progress: Progress | None = None
        self._test: LoadTest | None = None

    def show(self, view: ScenarioView | None, progress: Progress | None, test: LoadTest | None) -> None:
        """Show a prediction with the tests of a measurement, or with a stored one."""
        self._view, self._progress, self._test = view, progress, test
        self.show_picture(None if view is None else self._picture_of(view))
        self._list.remake()

    def _picture_of(self, view: ScenarioView) -> Picture | None:
        answer, test = view.answer, self._test
        if answer.scenario.kind is Kind.SERVER:
            curve = curve_of(view, self._progress)
            return load_plot(curve, answer.scenario) if curve.points else None
        if answer.scenario.kind is not Kind.OFFLINE:
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


def curve_of(view: ScenarioView, progress: Progress | None) -> LoadCurve:
    """Return what is known about the latencies of a server: its prediction, and the tests of a measurement."""
    running = None
    if progress is not None and progress.test is not None and progress.test.rate is not None and progress.ordered_ms:
        running = (progress.test.rate, percentile_of(progress.ordered_ms, view.answer.scenario.percentile))
    return LoadCurve.of(view.answer, view.curve, None if progress is None else progress.ended, running)


def _ended(progress: Progress | None) -> Sequence[LoadTestDone]:
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
