"""The table of results, of which only the visible cells are made, and the box that chooses its columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from textual.message import Message

from dlbricks_tui.documents.lines import Line, Span, column, contains_all, line
from dlbricks_tui.documents.results import RESULT_COLUMNS, cell, short_cells
from dlbricks_tui.store.columns import COLUMNS, Content
from dlbricks_tui.store.selections import Selection, SortOrder
from dlbricks_tui.tui.dialogs.dialog import SearchedDialog
from dlbricks_tui.tui.keys import scopes
from dlbricks_tui.tui.keys.keymap import Hint
from dlbricks_tui.tui.marks.marks import MARK, ComparableRow
from dlbricks_tui.tui.results.panels import NO_RESULT, result_row
from dlbricks_tui.tui.results.work import QueriedResults, ResultQuery, quoted
from dlbricks_tui.tui.widgets.panel import Panel, counts_text, marks_text
from dlbricks_tui.tui.widgets.rows import DrawnRows, RowsView, place_of
from dlbricks_tui.wording.plain_text import TextTable

# Later orders would only decide between a few equal results.
_MOST_ORDERS = 3
_WIDEST_NAME = 60
_GAP = 1
# These fit on 80 columns: they tell results of one brick or model apart.
_SQUEEZED = ("models", "runtime", "threads", "batch_size", "trimmed_mean_ms", "when", "name")
_NAMES = ("name", "models")
FIRST_COLUMNS = (*_SQUEEZED, "precision", "samples", "system", "context", "level", "good")


@dataclass(frozen=True, slots=True)
class Arrangement:
    """The visible columns and the sort orders, the first order first."""

    columns: tuple[str, ...] = FIRST_COLUMNS
    orders: tuple[SortOrder, ...] = (SortOrder("when", descending=True),)

    def sorted_by(self, column: str) -> Arrangement:
        """Return the arrangement sorted by a column; the current one is reversed."""
        first = self.orders[0]
        # Users mostly look for the greatest number and the newest time.
        begins = COLUMNS[column] in (Content.NUMBER, Content.TIME)
        descending = not first.descending if first.column == column else begins
        rest = [order for order in self.orders if order.column != column]
        return replace(self, orders=(SortOrder(column, descending), *rest)[:_MOST_ORDERS])


class PlacedColumn(NamedTuple):
    """A column that fits, with its width."""

    column: str
    width: int


def placed(columns: Sequence[str], first: int, width: int) -> tuple[PlacedColumn, ...]:
    """Return the columns from `first` on that fit; names get the remaining width.

    The first columns are squeezed until they fit, for others there has to be room.
    """
    found = list(columns[first : first + 1])
    for name in columns[first + 1 :]:
        if _needed([*found, name], squeezed=name in _SQUEEZED) > width:
            break
        found.append(name)
    widths = {name: RESULT_COLUMNS[name].least for name in found}
    left = width - _needed(found, squeezed=True)
    # A single column may be wider than the list.
    widths[found[0]] += min(0, left)
    names = [(name, _WIDEST_NAME) for name in _NAMES if name in found]
    for name, most in (*((name, RESULT_COLUMNS[name].width) for name in found), *names):
        more = min(max(0, left), most - widths[name])
        widths[name] += more
        left -= more
    return tuple(PlacedColumn(*it) for it in widths.items())


def _needed(columns: Sequence[str], *, squeezed: bool) -> int:
    found = [RESULT_COLUMNS[name] for name in columns]
    return sum((it.least if squeezed else it.width) + _GAP for it in found)


def first_to_show(columns: Sequence[str], current: int, first: int, width: int) -> int:
    """Return the first column to show so that the current one is visible, with as little scrolling as possible."""
    first = min(first, current)
    while len(placed(columns, first, width)) <= current - first:
        first += 1
    return first


def is_right(column: str) -> bool:
    return COLUMNS[column] is Content.NUMBER


class ColumnsScreen(SearchedDialog[tuple[str, ...]]):
    """Returns the selected columns in their order."""

    scope = scopes.COLUMNS
    HEADING = "Columns"
    SEARCH_HINT = "name or meaning"
    ABOUT = "Marked columns are shown, in this order. Columns that do not fit are to the right of the last visible one."

    def __init__(self, shown: Sequence[str]) -> None:
        self._list: DrawnRows[str] = DrawnRows(self._row)
        super().__init__(self._list)
        self._chosen = set(shown)
        # All columns, whether they are found and chosen or not.
        self._order = [*shown, *(name for name in COLUMNS if name not in shown)]
        self._words: Sequence[str] = ()
        self._list.show_placeholder(
            line("No column contains all of these words."), Hint("{find.clear} shows all columns again.", "muted")
        )

    def on_mount(self) -> None:
        self._find()

    def show_found(self, words: Sequence[str]) -> None:
        here = self._list.selected
        self._words = words
        self._find()
        self._list.move_to(place_of(here, self._list.items))

    def action_use(self) -> None:
        if self._chosen:
            self.dismiss(tuple(name for name in self._order if name in self._chosen))
        else:
            self.notify("Choose at least one column.")

    def action_show_or_hide(self) -> None:
        if self._list.selected is not None:
            self._chosen ^= {self._list.selected}
            self._list.action_down()
            self._list.refresh()

    def action_shift(self, step: int) -> None:
        """Swap the selected column with its neighbour in the full order."""
        name = self._list.selected
        if name is None:
            return
        here = self._order.index(name)
        there = here + step
        if 0 <= there < len(self._order):
            self._order[here], self._order[there] = self._order[there], self._order[here]
            self._find()
            self._list.cursor = self._list.items.index(name)

    def _find(self) -> None:
        self._list.items = tuple(name for name in self._order if _matches(name, self._words))
        self._list.rows_changed()

    def _row(self, index: int, width: int) -> Line:
        name = self._list.items[index]
        mark = Span("[x] ", "mark") if name in self._chosen else Span("[ ] ", "muted")
        return line(mark, column(name, 18, "strong"), Span(RESULT_COLUMNS[name].about, "muted"))


def _matches(name: str, words: Sequence[str]) -> bool:
    return contains_all(f"{name} {RESULT_COLUMNS[name].title} {RESULT_COLUMNS[name].about}", words)


RESTORED = "+"
_DOWN, _UP = "↓", "↑"
# The cursor sign and the mark.
_BEFORE = 2


class ResultRows(RowsView):
    """The results that were found, with marks and a current column."""

    def __init__(self) -> None:
        super().__init__()
        self.selection: Selection | None = None
        self.arrangement = Arrangement()
        self.marked: set[int] = set()
        # The rows that the last undo has brought back.
        self.restored: frozenset[int] = frozenset()
        self.current = 0
        self.first = 0

    @property
    def row_count(self) -> int:
        return len(self.selection) if self.selection else 0

    def row(self, index: int, width: int) -> Line:
        if self.selection is None:
            return ()
        here = self.selection[index : index + 1]
        visible = placed(self.arrangement.columns, self.first, width - 1)
        texts = short_cells(here, [it.column for it in visible])
        cells = [column(texts[name][0], wide, _style(name), right=is_right(name)) for name, wide in visible]
        row = int(here.rows[0])
        mark = Span(RESTORED, "good") if row in self.restored else Span(" ")
        mark = Span(MARK, "mark") if row in self.marked else mark
        return (mark, *(part for each in cells for part in (each, Span(" "))))

    def heading(self, width: int) -> Line:
        """Return the titles of the visible columns, with the sort order and the current column."""
        order = self.arrangement.orders[0]
        parts: list[Span] = [Span(" " * _BEFORE)]
        for name, wide in placed(self.arrangement.columns, self.first, width - _BEFORE):
            # The newest time has the least age.
            descending = order.descending is not (name == "when")
            arrow = (_DOWN if descending else _UP) if name == order.column else ""
            style = "match" if name == self.arrangement.columns[self.current] else "muted"
            parts += [column(RESULT_COLUMNS[name].title + arrow, wide, style, right=is_right(name)), Span(" ")]
        return tuple(parts)

    def move_column(self, step: int) -> None:
        """Move to another column and scroll it into view."""
        self.current = min(max(self.current + step, 0), len(self.arrangement.columns) - 1)
        self.reveal_column()

    def reveal_column(self) -> None:
        self.first = first_to_show(self.arrangement.columns, self.current, self.first, self.line_width - _BEFORE)
        self.refresh()

    def on_resize(self) -> None:
        self.reveal_column()


class ResultsPanel(Panel):
    scope = scopes.RESULT_TABLE
    ID = "result-table"
    TITLE = "Results"
    REACHED_BY = "results.go_to_results"
    SEARCH_HINT = "words, a model, or filters: system~c5 kind=convolution ms>5"
    HEADED = True
    PLACEHOLDER = (Hint("Reading the store.", "muted"),)
    NOTHING_TO_COPY = NO_RESULT
    ABOUT = (
        "All measurements. A search finds words in any text, dates, models (those of the runs), and filters as in "
        "`dlbricks results list`: kind=convolution, name~3x3, system=c5.xlarge, ms>5, when>=2026-11-01, good=no. A "
        "result has to match all of them. The sort key uses the underlined column."
    )

    class Asked(Message):
        """The user wants other results or another order."""

    @dataclass
    class Selected(Message):
        """The cursor has settled on a result."""

        result: Selection

    class Opened(Message):
        """The user wants to read about the selected result."""

    def __init__(self) -> None:
        self._list = ResultRows()
        super().__init__(self._list)
        self._list.stands_for = self._comparable
        self.total = 0
        self._restored: frozenset[str] = frozenset()
        self._reveals_restored = False
        self._answered: ResultQuery | None = None

    @property
    def result_query(self) -> ResultQuery:
        """The current search and order."""
        return ResultQuery(self.search_line.value.strip(), self._list.arrangement.orders)

    @property
    def shown(self) -> Selection | None:
        return self._list.selection

    @property
    def under_cursor(self) -> Selection | None:
        return self.shown[self._list.cursor : self._list.cursor + 1] if self.shown else None

    @property
    def marked(self) -> Selection | None:
        """All marked results; None if there are none."""
        if self.shown is None or not self._list.marked:
            return None
        return self.shown.of_rows(np.array(sorted(self._list.marked), dtype=np.intp))

    @property
    def marked_in_view(self) -> Selection | None:
        """The marked results that match the search; None if nothing is marked."""
        marked = self.marked
        if marked is None or self.shown is None:
            return None
        return marked.of_rows(marked.rows[np.isin(marked.rows, self.shown.rows)])

    def heading(self, width: int) -> Line:
        return self._list.heading(width)

    def as_texts(self) -> TextTable:
        columns = self._list.arrangement.columns
        # Ages are out of date as soon as they are copied.
        titles = ("when, UTC" if name == "when" else RESULT_COLUMNS[name].title for name in columns)
        return TextTable(tuple(titles), _texts_of(self.shown, columns))

    def show(self, found: QueriedResults) -> None:
        """Show results, unless the search has changed since."""
        if found.query != self.result_query:
            return
        before, row = self.shown, self._row
        if before and found.selection and before.generation is not found.selection.generation:
            # Row numbers are valid in one generation of the store only.
            self._list.marked, row = set(), None
        stays = self._answered == found.query
        self._answered, self.total = found.query, found.total
        self._list.selection = found.selection
        index = None if found.selection is None else found.selection.generation.index
        rows = () if index is None else map(index.row_of_uuid, self._restored)
        self._list.restored = frozenset(it for it in rows if it is not None)
        self._say(found.problem)
        self._list.rows_changed()
        if self._reveals_restored:
            row = max(self._list.restored, default=row)
            stays, self._reveals_restored = True, False
        self._list.move_to(self._position_of(row) if stays else 0)
        self._show_counts()
        self._post_selected()

    def mark_restored(self, ids: frozenset[str]) -> None:
        """Mark the results that were brought back once they are shown, and go to one of them."""
        self._restored, self._reveals_restored = ids, bool(ids)

    def _arrange_by(self, arrangement: Arrangement) -> None:
        """Show other columns, or ask for another order."""
        before, self._list.arrangement = self._list.arrangement, arrangement
        self._list.move_column(0)
        self.heading_changed()
        if before.orders != arrangement.orders:
            self.post_message(self.Asked())

    def unmark(self, results: Selection) -> None:
        self._list.marked -= set(results.rows.tolist())
        self._list.refresh()
        self._show_counts()

    def search_changed(self) -> None:
        self.post_message(self.Asked())

    def action_move_column(self, step: int) -> None:
        self._list.move_column(step)
        self.heading_changed()

    def action_sort(self) -> None:
        arrangement = self._list.arrangement
        self._arrange_by(arrangement.sorted_by(arrangement.columns[self._list.current]))

    def action_choose_columns(self) -> None:
        def chosen(columns: tuple[str, ...] | None) -> None:
            if columns is not None:
                self._arrange_by(replace(self._list.arrangement, columns=columns))

        self.app.push_screen(ColumnsScreen(self._list.arrangement.columns), chosen)

    def mark(self) -> bool:
        if self._row is not None:
            self._list.marked ^= {self._row}
            self._list.action_down()
            self._list.refresh()
            self._show_counts()
        return True

    def action_mark_all(self) -> None:
        if self.shown is not None:
            rows = set(self.shown.rows.tolist())
            self._list.marked = self._list.marked - rows if rows <= self._list.marked else self._list.marked | rows
            self._list.refresh()
            self._show_counts()

    def copied(self) -> str | None:
        return self.under_cursor.summaries()[0].key if self.under_cursor else None

    def action_open(self) -> None:
        if self.under_cursor is not None:
            self.post_message(self.Opened())

    def action_only_this(self) -> None:
        if self.under_cursor is not None:
            (summary,) = self.under_cursor.summaries()
            self.search_line.seek(quoted("brick", summary.brick) if summary.brick else quoted("model", summary.model))

    def cursor_settled(self) -> None:
        self._post_selected()

    @property
    def _row(self) -> int | None:
        return int(self.shown.rows[self._list.cursor]) if self.shown else None

    def _comparable(self, index: int) -> ComparableRow | None:
        return result_row(self.shown[index]) if self.shown and index < len(self.shown) else None

    def _position_of(self, row: int | None) -> int:
        if row is None or self.shown is None:
            return 0
        places = np.flatnonzero(self.shown.rows == row)
        return int(places[0]) if len(places) else self._list.cursor

    def _post_selected(self) -> None:
        if self.under_cursor:
            self.post_message(self.Selected(self.under_cursor))

    def _say(self, problem: str) -> None:
        if problem:
            self._list.show_placeholder(line(Span(problem, "warn")))
        elif self.total:
            self._list.show_placeholder(
                line("No result matches the search."),
                Hint("{find.clear} shows all results again.", "muted"),
            )
        else:
            self._list.show_placeholder(
                Hint("{results.leave} and {workbench.start_run} runs a model's bricks;"),
                Hint("{results.import_file} imports a file that was exported here or on another host."),
            )

    def _show_counts(self) -> None:
        shown, marked, in_view = self._list.row_count, self.marked, self.marked_in_view
        restored = f", {len(self._list.restored):,} restored: {RESTORED}" if self._list.restored else ""
        self.show_title(f" {counts_text(shown, self.total)}{restored}")
        self.border_subtitle = marks_text(len(marked or ()), len(in_view or ()))


def _texts_of(shown: Selection | None, columns: Sequence[str]) -> Iterator[list[str]]:
    """Yield the texts of all results, with whole keys; there may be many, so they are made when they are read."""
    if shown is None:
        return
    for values in zip(*(shown.values(name) for name in columns), strict=True):
        yield [
            str(value) if COLUMNS[name] is Content.KEY else cell(name, value)
            for name, value in zip(columns, values, strict=True)
        ]


def _style(name: str) -> str:
    if name in _NAMES:
        return "text"
    return "strong" if name == "trimmed_mean_ms" else "muted"
