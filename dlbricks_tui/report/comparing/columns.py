"""The sections of hosts and of versions: the latencies of models side by side, relative to the first."""

from collections.abc import Iterator, Sequence

from dlbricks_tui.answers.analyses import Cell
from dlbricks_tui.answers.changes import MOST_ESTIMATED, Columns, ComparedCell, ComparedRow
from dlbricks_tui.report import drawing
from dlbricks_tui.report.comparing.ratio_rows import DrawnRatio, ratio_rows, row_labels
from dlbricks_tui.report.exhibits import Exhibit, Section, csv_table
from dlbricks_tui.report.figures.executions import series_meaning
from dlbricks_tui.wording.numbers import counted, names_of

_MOST_ROWS = 200
_MOST_NAMED = 10


def hosts_section(hosts: Columns | None) -> Section:
    """Return the section of the systems side by side."""
    return _section(
        "Which host is how fast?",
        "hosts",
        "The end-to-end latency of each model on each system, over that on the first, in the same execution. A system "
        "counts with the results of the first side that has it.",
        [] if hosts is None else [hosts],
        "All results are of one system.",
    )


def versions_section(versions: Sequence[Columns]) -> Section:
    """Return the section of the versions side by side."""
    return _section(
        "Which version is how fast?",
        "versions",
        "The end-to-end latency of each model by framework, by the version of each framework, and by the version of "
        "dlbricks, over that by the first one, in the same execution.",
        versions,
        "All results are of one version of one framework, as far as they tell.",
    )


def mean_words(ratio: float | None, interval: tuple[float, float] | None) -> str:
    """Return a geometric mean with its interval: `0.984 times as long, 95 % 0.956 to 1.011`."""
    if ratio is None or interval is None:
        return "nothing in common"
    return f"{ratio:.3f} times as long, 95 % {interval[0]:.3f} to {interval[1]:.3f}"


def _section(heading: str, anchor: str, explanation: str, found: Sequence[Columns], nothing: str) -> Section:
    return Section(
        heading,
        anchor,
        explanation,
        tuple([_exhibit(f"figure-{anchor}-{number}", it) for number, it in enumerate(found, 1) if it.models]),
        missing=tuple([line for it in found for line in (*it.remarks, *_unestimated(it))]),
        answer=" ".join(line for it in found for line in _answers(it)) or nothing,
    )


def _answers(found: Columns) -> Iterator[str]:
    for it in found.others:
        if it.ratio is None:
            yield f"{it.name} has no model to compare with {found.first}."
        else:
            mean = f"geometric mean of {counted(it.models, 'result')}"
            yield f"{it.name} takes {mean_words(it.ratio, it.interval)}, as {found.first} ({mean})."


def _exhibit(name: str, found: Columns) -> Exhibit:
    rows, first = found.models, found.first
    title, drawn = f"By {found.what}", rows[:MOST_ESTIMATED]
    series = {it.name: series_meaning(number, it.name) for number, it in enumerate(found.others)}
    labels = row_labels([(it.model, it.execution.split(", ")) for it in drawn])
    ratios = [[DrawnRatio(series[it.column], it.ratio, *it.interval) for it in row.others] for row in drawn]
    says = f"A row for each of {len(drawn)} models, with the latency over that of {first} and its 95 % interval."
    columns, details = ["model", "execution", f"{first} ms", f"{first} estimate ms"], list[str]()
    for own in series:
        columns += [f"{own} {it}" for it in ("ms", "estimate ms", "ratio", "low", "high", "verdict")]
        details += [f"{own} low", f"{own} high"]
    cut = f" The picture has the first {len(drawn)} of {len(rows):,} rows." if len(drawn) < len(rows) else ""
    estimated = sum(it is not None for row in drawn for it in _estimates(row))
    told = f" Estimates are from bricks, for models of the library: {estimated:,} of them." if estimated else ""
    return Exhibit(
        name,
        title,
        f"{counted(len(rows), 'row')}, relative to {first}.{cut}{told}",
        csv_table(columns, [_cells(it, list(series)) for it in rows], details, _MOST_ROWS),
        drawing.draw(name, title, ratio_rows(f"latency over that of {first}", says, labels, ratios)),
    )


def _cells(row: ComparedRow, names: Sequence[str]) -> tuple[Cell, ...]:
    by_name = {it.column: it for it in row.others}
    others = (cell for name in names for cell in _cells_of(by_name.get(name)))
    return row.model, row.execution, row.ms, row.estimate_ms, *others


def _cells_of(it: ComparedCell | None) -> tuple[Cell, ...]:
    if it is None:
        return (None,) * 6
    return it.ms, it.estimate_ms, it.ratio, *it.interval, it.verdict.value


def _estimates(row: ComparedRow) -> Iterator[float | None]:
    """Yield the estimates of both sides of each ratio."""
    for it in row.others:
        yield from (row.estimate_ms, it.estimate_ms)


def _unestimated(found: Columns) -> Iterator[str]:
    lacking = list(dict.fromkeys(it.model for it in found.models[:MOST_ESTIMATED] if None in _estimates(it)))
    if lacking:
        yield (
            f"No estimate by {found.what} of {counted(len(lacking), 'model')} ({names_of(lacking, _MOST_NAMED)}): they "
            "are not in the library, or not all of their bricks are among the results."
        )
