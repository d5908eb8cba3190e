"""Results as tables and histograms, JSON and CSV."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dlbricks_tui.cli.output import data_console, write, write_json, write_lines
from dlbricks_tui.printable import printable
from dlbricks_tui.store.columns import COLUMNS, Content, Summary
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.documents import fields_of, to_document
from dlbricks_tui.store.index import OWN
from dlbricks_tui.store.records import BrickForm, EndToEnd, LoadTest, Provenance, Result
from dlbricks_tui.store.selections import Selection
from dlbricks_tui.wording.histogram import histogram_lines
from dlbricks_tui.wording.numbers import in_ms, milliseconds
from dlbricks_tui.wording.provenance import provenance_lines

# The columns where none are named.
SHORT = ("id", "name", "context", "system", "runtime", "level", "trimmed_mean_ms", "samples", "when")
# The columns to leave out where the terminal is too narrow, in this order.
SHORT_GIVES_WAY = ("level", "samples", "runtime", "context")
_OF_A_BRICK = (
    "id",
    "context",
    "system",
    "runtime",
    "protocol",
    "trimmed_mean_ms",
    "low_ms",
    "high_ms",
    "when",
    "good",
)
_OF_A_BRICK_GIVES_WAY = ("protocol", "good", "context", "runtime")
_BETWEEN = "  "
_KEY_DIGITS = 12
_NARROWEST_TEXT = 8
# The ends of bricks' names matter, too.
_NARROWEST_NAME = 18
_HISTOGRAM_WIDTH = 72


def rows_of(results: Selection, columns: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    """Yield the values of each result."""
    return zip(*(results.values(column) for column in columns), strict=True)


def objects_of(results: Selection, columns: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield the values of each result by column."""
    return (dict(zip(columns, row, strict=True)) for row in rows_of(results, columns))


def write_as_table(results: Selection, columns: Sequence[str], give_way: Sequence[str] = ()) -> None:
    """Write aligned columns that fit the terminal, if need be without those that may give way."""
    cells = {column: [_cell(column, value) for value in results.values(column)] for column in columns}
    width = data_console().width
    for column in give_way:
        if _least_width(cells) > width:
            del cells[column]
    write_lines(table_lines(tuple(cells), tuple(cells.values()), width))


def show_result(store: ResultsDatabase, found: Selection, as_json: bool) -> None:
    """Show a result with its statistics, its samples as a histogram, and everything recorded with it."""
    result, summary = found.result(0), found.summaries()[0]
    origin = store.provenance_of(result.run, result.runtime)
    if as_json:
        write_json({**to_document(result), **_origin_document(origin), "origin": summary.origin})
        return
    model = result.model if isinstance(result, EndToEnd) else ""
    lines = [printable(summary.name or summary.brick or summary.model)]
    lines += [f"  {name:<15} {printable(str(value))}" for name, value in _particulars(result)]
    lines.append(f"  {'origin':<15} {printable(_origin_of(store, summary))}")
    lines += _origin_lines(origin, model)
    write_lines([*lines, "", *_statistics_lines(result), "", *_histogram(result)])


def _origin_of(store: ResultsDatabase, summary: Summary) -> str:
    """Return where a result comes from, with the file that it was imported from."""
    source = None if summary.origin == OWN else store.source_of(summary.id)
    return summary.origin if source is None or not source.file else f"{summary.origin}, imported from {source.file}"


def show_brick(key: str, form: BrickForm | None, found: Selection, as_json: bool) -> None:
    """Show a brick, all of its results, and the samples of the newest."""
    summaries = found.summaries()
    if as_json:
        canonical = form.canonical if form else None
        write_json({"brick": key, "canonical": canonical, "results": list(objects_of(found, tuple(COLUMNS)))})
        return
    write_lines([printable(summaries[-1].name or key), f"  brick           {key}"])
    if form:
        write_lines([f"  canonical form  {printable(form.canonical)}"])
    write("\n")
    write_as_table(found, _OF_A_BRICK, _OF_A_BRICK_GIVES_WAY)
    newest = found.result(len(found) - 1)
    write_lines(["", *_statistics_lines(newest), "", *_histogram(newest)])


def show_load_test(store: ResultsDatabase, test: LoadTest, as_json: bool) -> None:
    """Show a measured scenario: its percentiles, its verdict, its latencies as a histogram, and where it comes from."""
    origin = store.provenance_of(test.uuid, test.runtime)
    if as_json:
        write_json({**to_document(test), **_origin_document(origin)})
        return
    # Loaded here: other results need no scenarios.
    from dlbricks_tui.wording.scenarios import load_test_details

    details = load_test_details(test, min(_HISTOGRAM_WIDTH, data_console().width))
    lines = _origin_lines(origin, test.model)
    write_lines([*map(printable, details), *(["", *lines] if lines else [])])


def _origin_document(origin: Provenance | None) -> dict[str, Any]:
    return {"provenance": None if origin is None else fields_of(origin)}


def _origin_lines(origin: Provenance | None, model: str) -> list[str]:
    lines = [] if origin is None else provenance_lines(origin, model)
    return [f"  {it.name:<15} {printable(it.text)}" for it in lines]


def table_lines(headers: Sequence[str], cells: Sequence[Sequence[str]], width: int) -> Iterator[str]:
    """Yield the lines of a table; where columns are too wide, the widest texts are cut, names less than others."""
    widths = [_width(header, column) for header, column in zip(headers, cells, strict=True)]
    contents = [COLUMNS[header] for header in headers]
    too_wide = _joined_width(widths) - width
    while too_wide > 0:
        long = [number for number, header in enumerate(headers) if widths[number] > _narrowest(header)]
        if not long:
            break
        widths[max(long, key=widths.__getitem__)] -= 1
        too_wide -= 1
    for row in ([header.upper() for header in headers], *zip(*cells, strict=True)):
        aligned = [
            _cut(cell, each).rjust(each) if content is Content.NUMBER else _cut(cell, each).ljust(each)
            for cell, each, content in zip(row, widths, contents, strict=True)
        ]
        yield _BETWEEN.join(aligned).rstrip()


def _least_width(cells: Mapping[str, Sequence[str]]) -> int:
    return _joined_width([min(_width(header, column), _narrowest(header)) for header, column in cells.items()])


def _joined_width(widths: Sequence[int]) -> int:
    return sum(widths) + len(_BETWEEN) * (len(widths) - 1)


def _width(header: str, column: Sequence[str]) -> int:
    return max(map(len, [header, *column]))


def _narrowest(header: str) -> int:
    """Return the least width of a column; only texts are cut."""
    if COLUMNS[header] is not Content.TEXT:
        return sys.maxsize
    return _NARROWEST_NAME if header == "name" else _NARROWEST_TEXT


def _cut(cell: str, width: int) -> str:
    return cell if len(cell) <= width else cell[: width - 1] + "…"


def _cell(column: str, value: Any) -> str:
    if column.endswith("_ms"):
        return milliseconds(value, precise=True)
    content = COLUMNS[column]
    if content is Content.KEY:
        return str(value)[:_KEY_DIGITS]
    if content is Content.TIME:
        return str(value)[: len("2026-11-21T12:34:56")].replace("T", " ")
    if content is Content.FLAG:
        return "yes" if value else "no"
    return printable(str(value))


def _particulars(result: Result) -> Iterator[tuple[str, Any]]:
    document = to_document(result)
    for name, value in document.items():
        if name in ("table", "schema", "statistics", "samples_ms", "flags"):
            continue
        if isinstance(value, dict):
            value = ", ".join(f"{fact} {stated}" for fact, stated in value.items())
        if value != "":
            yield ("id" if name == "uuid" else name), value
    yield "good", "yes" if result.good else f"no: {', '.join(result.flags)}"


def _statistics_lines(result: Result) -> list[str]:
    it = result.statistics
    return [
        f"  trimmed mean    {in_ms(it.trimmed_mean_ms)} (95 % between {milliseconds(it.low_ms, precise=True)} and "
        f"{milliseconds(it.high_ms, precise=True)})",
        f"  median          {in_ms(it.median_ms)}",
        f"  minimum         {in_ms(it.minimum_ms)}",
        f"  spread          {in_ms(it.spread_ms)} between the quartiles",
        f"  samples         {it.count}",
    ]


def _histogram(result: Result) -> list[str]:
    width = min(_HISTOGRAM_WIDTH, data_console().width - 2)
    return [f"  {line}" for line in histogram_lines(result.samples_ms, width)]
