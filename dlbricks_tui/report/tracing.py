"""Trace every number back to the results in the store behind it."""

from collections.abc import Iterator

from dlbricks_tui.answers.analyses import Cell
from dlbricks_tui.answers.reported import ModelResult, ReportContents
from dlbricks_tui.report.exhibits import CsvTable, csv_table

# With these, `dlbricks estimate` composes the same latency, and `bricks.csv` has the results behind it.
TRACE = ("system", "runtime", "level", "protocol", "granularity", "cut", "order", "end_to_end_result")


def trace(result: ModelResult) -> tuple[Cell, ...]:
    """Return the values that identify an estimate and its end-to-end result."""
    way, cutting = result.found.way, result.found.estimate.cutting
    how = (cutting.granularity, cutting.cut.value, cutting.order.value)
    return (way.system, way.runtime, way.level.value, way.protocol, *how, result.result_id)


def bricks_table(contents: ReportContents) -> CsvTable:
    """Return the latency of every brick in the estimates of a report, with the results behind it."""
    columns = ("system", "runtime", "level", "protocol", "brick", "context", "latency_ms", "used_by", "results")
    return csv_table(columns, list(_bricks(contents)))


_Use = tuple[float, dict[str, None], tuple[str, ...]]


def _bricks(contents: ReportContents) -> Iterator[tuple[Cell, ...]]:
    for series in contents.series:
        way = series.way
        # By brick and context: the latency, the models that use it, and the results behind it.
        used: dict[tuple[str, str], _Use] = {}
        for result in series.results:
            for part in result.found.estimate.parts:
                if part.measured is not None:
                    fresh: _Use = (part.measured.latency.value_ms, {}, part.measured.results)
                    used.setdefault(part.pair, fresh)[1][result.reported.table1_id or result.reported.name] = None
        for (brick, context), (latency_ms, users, results) in used.items():
            named = (way.system, way.runtime, way.level.value, way.protocol)
            yield (*named, brick, context, latency_ms, "; ".join(users), " ".join(results))
