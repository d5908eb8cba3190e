"""The estimates of a run's models as rows."""

from dlbricks_tui.tui.lines import Line, Span, column, figure
from dlbricks_tui.tui.live.snapshot import RunModel
from dlbricks_tui.tui.sparkline import sparkline
from dlbricks_tui.wording.numbers import PARTLY, milliseconds, percent

_MS, _PARALLEL, _WIDTH, _COVERAGE, _SPARKLINE = 9, 9, 9, 6, 10
_LEAST_NAME = 12
_WITH_COVERAGE = _LEAST_NAME + _MS + _WIDTH + _COVERAGE
_WITH_SPARKLINE = _WITH_COVERAGE + _SPARKLINE
_WITH_PARALLEL = _WITH_SPARKLINE + _PARALLEL


def row(model: RunModel, width: int) -> Line:
    """A model in so many cells."""
    complete = model.measured_layers >= model.layers
    sign = PARTLY if model.is_partial else ""
    cells = [_latency(model.sequential_ms, sign, _MS, "strong")]
    if width >= _WITH_PARALLEL:
        cells.append(_latency(model.parallel_ms, sign, _PARALLEL, "text"))
    width_now = percent(model.half_widths[-1], 1) if model.half_widths else ""
    cells.append(figure(width_now, _WIDTH, "accent"))
    if width >= _WITH_SPARKLINE:
        cells += [Span(" "), column(sparkline(model.half_widths, _SPARKLINE - 1), _SPARKLINE - 1, "bar")]
    if width >= _WITH_COVERAGE:
        cells.append(figure(percent(model.coverage), _COVERAGE, "muted" if complete else "warn"))
    return (column(model.name, width - sum(len(cell.text) for cell in cells)), *cells)


def heading(width: int) -> Line:
    """What the columns of `row` are called."""
    cells = [column("ms", _MS, "heading", right=True)]
    if width >= _WITH_PARALLEL:
        cells.append(column("parallel", _PARALLEL, "heading", right=True))
    cells.append(column("±", _WIDTH, "heading", right=True))
    if width >= _WITH_SPARKLINE:
        cells += [Span(" "), column("± so far", _SPARKLINE - 1, "heading")]
    if width >= _WITH_COVERAGE:
        cells.append(column("run", _COVERAGE, "heading", right=True))
    return (column("model", width - sum(len(cell.text) for cell in cells), "heading"), *cells)


def _latency(value_ms: float | None, sign: str, width: int, style: str) -> Span:
    return figure("·" if value_ms is None else f"{sign}{milliseconds(value_ms)}", width, style)
