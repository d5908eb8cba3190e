"""Results as tables and histograms, JSON and CSV."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from dlbricks_tui.cli.output import data_console, write_json, write_lines
from dlbricks_tui.documents.parts import BLANK_LINE, Heading
from dlbricks_tui.documents.results import (
    RESULT_COLUMNS,
    cell,
    origin_parts,
    result_parts,
    sample_parts,
    short_cells,
    title_of,
)
from dlbricks_tui.printable import printable
from dlbricks_tui.store.columns import COLUMNS, Content
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.documents import fields_of, to_document
from dlbricks_tui.store.index import OWN
from dlbricks_tui.store.records import BrickForm, LoadTest, Provenance
from dlbricks_tui.store.selections import Selection

# The columns where none are named.
SHORT = (
    *("models", "runtime", "threads", "batch_size", "trimmed_mean_ms", "when", "name", "id"),
    *("system", "context", "level", "samples"),
)
# The columns to leave out where the terminal is too narrow, in this order.
SHORT_GIVES_WAY = ("samples", "level", "context", "system", "name")
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


def write_short_table(results: Selection) -> None:
    """Write the columns that the screen of results shows first."""
    titles = {it: RESULT_COLUMNS[it].title for it in SHORT}
    _write_table(partial(short_cells, results), SHORT, SHORT_GIVES_WAY, titles)


def write_as_table(results: Selection, columns: Sequence[str], give_way: Sequence[str] = ()) -> None:
    """Write aligned columns that fit the terminal, if need be without those that may give way."""

    def cells(kept: Sequence[str]) -> dict[str, list[str]]:
        return {column: [cell(column, value, precise=True) for value in results.values(column)] for column in kept}

    _write_table(cells, columns, give_way, {})


def _write_table(
    cells: Callable[[Sequence[str]], dict[str, list[str]]],
    columns: Sequence[str],
    give_way: Sequence[str],
    titles: Mapping[str, str],
) -> None:
    def shown() -> dict[str, list[str]]:
        return {column: [*map(printable, texts)] for column, texts in cells(kept).items()}

    kept, width = list(columns), data_console().width
    found = shown()
    for column in give_way:
        if _least_width(found, titles) > width:
            kept.remove(column)
            found = shown()
    write_lines(table_lines(tuple(found), tuple(found.values()), width, titles))


def show_result(store: ResultsDatabase, found: Selection, as_json: bool) -> None:
    """Show a result with its statistics, its samples as a histogram, and everything recorded with it."""
    result, summary = found.result(0), found.summaries()[0]
    origin = store.provenance_of(result.run, result.runtime)
    if as_json:
        write_json({**to_document(result), **_origin_document(origin), "origin": summary.origin})
        return
    # Loaded here: JSON needs no rich.
    from dlbricks_tui.cli.rendering import show_parts

    source = None if summary.origin == OWN else store.source_of(summary.id)
    show_parts(result_parts(summary, result, origin, file=source.file if source else ""))


def show_brick(key: str, form: BrickForm | None, found: Selection, as_json: bool) -> None:
    """Show a brick, all of its results, and the samples of the newest."""
    summaries = found.summaries()
    if as_json:
        canonical = form.canonical if form else None
        write_json({"brick": key, "canonical": canonical, "results": list(objects_of(found, tuple(COLUMNS)))})
        return
    # Loaded here: JSON needs no rich.
    from dlbricks_tui.cli.rendering import show_parts

    show_parts([Heading(title_of(summaries[-1]))])
    # Lines that are copied are not wrapped.
    write_lines([f"brick           {key}", *([f"canonical form  {printable(form.canonical)}"] if form else []), ""])
    write_as_table(found, _OF_A_BRICK, _OF_A_BRICK_GIVES_WAY)
    show_parts([BLANK_LINE, *sample_parts(found.result(len(found) - 1))])


def show_load_test(store: ResultsDatabase, test: LoadTest, as_json: bool) -> None:
    """Show a measured scenario: its percentiles, its verdict, its latencies as a histogram, and where it comes from."""
    origin = store.provenance_of(test.uuid, test.runtime)
    if as_json:
        write_json({**to_document(test), **_origin_document(origin)})
        return
    # Loaded here: other results need no scenarios, and JSON no rich.
    from dlbricks_tui.cli.rendering import show_parts
    from dlbricks_tui.documents.scenario import load_test_parts
    from dlbricks_tui.wording.scenarios import histogram_below

    show_parts(load_test_parts(test))
    write_lines(histogram_below(test, min(_HISTOGRAM_WIDTH, data_console().width)))
    if origin is not None:
        show_parts([BLANK_LINE, *origin_parts(origin, test.model)])


def _origin_document(origin: Provenance | None) -> dict[str, Any]:
    return {"provenance": None if origin is None else fields_of(origin)}


def table_lines(
    headers: Sequence[str], cells: Sequence[Sequence[str]], width: int, titles: Mapping[str, str] | None = None
) -> Iterator[str]:
    """Yield the lines of a table; where columns are too wide, the widest texts are cut, names less than others."""
    titled = [(titles or {}).get(it, it) for it in headers]
    widths = [_width(title, column) for title, column in zip(titled, cells, strict=True)]
    contents = [COLUMNS[header] for header in headers]
    too_wide = _joined_width(widths) - width
    while too_wide > 0:
        long = [number for number, header in enumerate(headers) if widths[number] > _narrowest(header)]
        if not long:
            break
        widths[max(long, key=widths.__getitem__)] -= 1
        too_wide -= 1
    for row in ([title.upper() for title in titled], *zip(*cells, strict=True)):
        aligned = [
            _cut(cell, each).rjust(each) if content is Content.NUMBER else _cut(cell, each).ljust(each)
            for cell, each, content in zip(row, widths, contents, strict=True)
        ]
        yield _BETWEEN.join(aligned).rstrip()


def _least_width(cells: Mapping[str, Sequence[str]], titles: Mapping[str, str]) -> int:
    widths = {it: _width(titles.get(it, it), column) for it, column in cells.items()}
    return _joined_width([min(width, _narrowest(it)) for it, width in widths.items()])


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
