"""The panel of the latency at each load: predicted, and as tests have found it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dlbricks_tui.scenarios.outcome import percentile_of
from dlbricks_tui.scenarios.scenario import Kind
from dlbricks_tui.tui.keys.keymap import Hint
from dlbricks_tui.tui.lines import BLANK, Line, Span, line
from dlbricks_tui.tui.scenario import work
from dlbricks_tui.tui.scenario.pictures import PictureRows, picture_lines
from dlbricks_tui.tui.widgets.panel import Panel
from dlbricks_tui.wording.chart import chart
from dlbricks_tui.wording.load_charts import PASSED, LoadCurve, MeasuredRate, load_picture
from dlbricks_tui.wording.numbers import PREDICTED, in_ms

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dlbricks_tui.scenarios.messages import LoadTestDone
    from dlbricks_tui.scenarios.outcome import MeasuredLoad, PredictedLoad
    from dlbricks_tui.store.records import LoadTest
    from dlbricks_tui.tui.scenario.progress import Progress
    from dlbricks_tui.tui.scenario.work import ScenarioView

_HEIGHT_AROUND_CHART = 5


class LoadPanel(Panel):
    """The latency at each rate of requests; of the other kinds the percentiles, or the throughput of batch sizes."""

    TITLE = "Load"
    REACHED_BY = "scenario.go_to_load"
    ABOUT = (
        "~ is predicted from stored results, = is the bound, and ^ the predicted highest rate within it. Each test "
        "of a measurement is a point: o passed, x failed, ? is in progress. A test below the bound fails if more "
        "requests exceed it than LoadGen's confidence of 99 % allows."
    )

    def __init__(self) -> None:
        self._list = PictureRows(self._lines)
        super().__init__(self._list, id="load")
        self._view: ScenarioView | None = None
        self._progress: Progress | None = None
        self._test: LoadTest | None = None

    def show(self, view: ScenarioView | None, progress: Progress | None, test: LoadTest | None) -> None:
        """Show a prediction with the tests of a measurement, or with a stored one."""
        self._view, self._progress, self._test = view, progress, test
        self._list.remake()

    def _lines(self, width: int) -> Iterator[Line]:
        if self._view is None:
            return
        height = self._list.size.height
        kind = self._view.answer.scenario.kind
        if kind is Kind.SERVER:
            yield from self._server_lines(self._view, width, height)
        elif kind is Kind.OFFLINE:
            yield from self._offline_lines(self._view, width, height)
        else:
            yield from self._percentile_lines(self._view, width, height)

    def _server_lines(self, view: ScenarioView, width: int, height: int) -> Iterator[Line]:
        curve = curve_of(view, self._progress)
        if curve.points:
            yield from picture_lines(load_picture(curve, view.answer.scenario.percentile, width, height))
        else:
            yield from _nothing_yet(view)

    def _percentile_lines(self, view: ScenarioView, width: int, height: int) -> Iterator[Line]:
        found: dict[str, dict[int, float]] = {}
        if view.answer.prediction is not None:
            found[PREDICTED] = dict(enumerate(_percentiles(view.answer.prediction)))
        if self._test is not None:
            found[PASSED] = dict(enumerate(_percentiles(work.measured_of(self._test))))
        if not found:
            yield from _nothing_yet(view)
            return
        names = ["p50", "p90", "p99", "p99.9"]
        bound_ms = view.answer.scenario.bound_ms
        for text in chart("ms", names, found, width, max(3, height - _HEIGHT_AROUND_CHART), bound_ms):
            yield line(text)
        dots = f"   .... bound {in_ms(bound_ms)}" if bound_ms is not None else ""
        yield line(Span(f"{PREDICTED} predicted   {PASSED} measured{dots}", "muted"))

    def _offline_lines(self, view: ScenarioView, width: int, height: int) -> Iterator[Line]:
        sizes = sorted(view.answer.scenario.batch_sizes)
        found: dict[str, dict[int, float]] = {}
        if view.answer.prediction is not None and view.answer.prediction.batch_size in sizes:
            found[PREDICTED] = {sizes.index(view.answer.prediction.batch_size): view.answer.prediction.per_second.value}
        measured = {it.batch_size: it.per_second for it in _ended(self._progress)}
        if self._test is not None:
            measured.setdefault(self._test.batch_size, self._test.per_second)
        if measured:
            found[PASSED] = {sizes.index(size): each for size, each in measured.items() if size in sizes}
        if not found:
            yield from _nothing_yet(view)
            return
        title, values = "samples per second against batch size", [str(size) for size in sizes]
        for text in chart(title, values, found, width, max(3, height - _HEIGHT_AROUND_CHART)):
            yield line(text)
        yield line(Span(f"{PREDICTED} predicted at the best batch size   {PASSED} measured", "muted"))


def curve_of(view: ScenarioView, progress: Progress | None) -> LoadCurve:
    """Return what is known about the latencies of a server: its prediction, and the tests of a measurement.

    Without a measurement, the stored load tests of the same scenario are the points.
    """
    scenario, predicted = view.answer.scenario, view.answer.prediction
    if progress is None:
        stored = view.answer.stored_tests
        tests = [MeasuredRate(it.rate, work.percentile_ms_of(it), it.valid) for it in stored if it.rate is not None]
    else:
        tests = [MeasuredRate(it.rate, it.percentile_ms, it.passed) for it in progress.ended if it.rate is not None]
    running = None
    if progress is not None and progress.test is not None and progress.test.rate is not None and progress.ordered_ms:
        running = (progress.test.rate, percentile_of(progress.ordered_ms, scenario.percentile))
    is_sought = predicted is not None and predicted.valid and scenario.rate is None
    return LoadCurve(
        predicted=view.curve,
        bound_ms=scenario.bound_ms,
        highest=predicted.per_second.value if predicted is not None and is_sought else None,
        tests=tests,
        running=running,
    )


def _ended(progress: Progress | None) -> Sequence[LoadTestDone]:
    return progress.ended if progress is not None else ()


def _percentiles(load: PredictedLoad | MeasuredLoad) -> tuple[float, ...]:
    found = (load.p50_ms, load.p90_ms, load.p99_ms, load.p999_ms)
    return tuple(it if isinstance(it, float) else it.value for it in found)


def _nothing_yet(view: ScenarioView) -> Iterator[Line]:
    answer = view.answer
    yield line(Span(answer.refusal, "warn"))
    if answer.cure:
        yield BLANK
        yield line(Span("  "), Span(answer.cure, "strong"))
    if answer.order is not None:
        yield BLANK
        yield Hint("{scenario.measure} measures it all the same.", "muted").line
