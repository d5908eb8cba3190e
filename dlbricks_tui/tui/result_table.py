"""The table of results, of which only the visible cells are made, the panels beside it, and the boxes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING

import numpy as np
from textual.message import Message

from dlbricks_tui.api.open_models import ComparableRow, PairKind
from dlbricks_tui.api.stored_results import QueriedResults, ResultQuery, export_problem, quoted
from dlbricks_tui.documents.lines import Line, Span, column, contains_all, line
from dlbricks_tui.documents.parts import BLANK_LINE, Column, Fact, Part, Sentence
from dlbricks_tui.documents.results import (
    KEY_DIGITS,
    RESULT_COLUMNS,
    cell,
    history_columns,
    is_right,
    result_parts,
    short_cells,
    title_of,
    whole_cells,
)
from dlbricks_tui.tui.dialogs.dialog import ConfirmingScreen, SearchedDialog
from dlbricks_tui.tui.dialogs.paths import ANY_FILE, NewFileScreen, PathScreen
from dlbricks_tui.tui.keys import scopes
from dlbricks_tui.tui.keys.keymap import Hint
from dlbricks_tui.tui.widgets.panel import Copyable, DocumentPanel, Panel, TablePanel, counts_text, marks_text
from dlbricks_tui.tui.widgets.rows import MARK, CheckedRows, RowsView
from dlbricks_tui.tui.widgets.screens import ask
from dlbricks_tui.wording.numbers import counted
from dlbricks_tui.wording.plain_text import TextTable

if TYPE_CHECKING:
    from pathlib import Path

    from dlbricks_tui.api.stored_results import ResultRead
    from dlbricks_tui.store.columns import Summary
    from dlbricks_tui.store.selections import Selection

NO_RESULT = "No result is selected."


class RecordPanel(DocumentPanel):
    scope = scopes.RESULT
    TITLE = "Result"
    PLACEHOLDER = (Hint("Select a result to read about it.", "muted"),)
    NOTHING_TO_COPY = NO_RESULT
    ABOUT = (
        "One result: its brick or model, how it was measured, the distribution of its samples, and the conditions on "
        "the host."
    )

    def show(self, read: ResultRead) -> None:
        parts = result_parts(read.summary, read.result, read.provenance, read.layers)
        self.show_groups([Copyable(tuple(parts), read.summary.key)], read.summary.id)


def result_row(summary: Summary) -> ComparableRow:
    name = summary.name or title_of(summary)[:KEY_DIGITS]
    return ComparableRow(PairKind.RESULT, summary.id, f"{name}, {cell('when', summary.when)}", summary.id)


class HistoryPanel(TablePanel["Summary"]):
    scope = scopes.HISTORY
    TITLE = "History"
    COPIES = attrgetter("id")
    PLACEHOLDER = (Hint("Select a result to see its history.", "muted"),)
    NOTHING_TO_COPY = NO_RESULT
    ABOUT = (
        "The results of all runs for the brick in its context, or for the model, on the same system by the same "
        "runtime, the newest first: time, milliseconds, and the change since the previous run. A change in brackets "
        "may be due to sampling, because the intervals overlap."
    )

    def columns(self) -> tuple[Column[Summary], ...]:
        return history_columns(self.items)

    def show(self, history: tuple[Summary, ...]) -> None:
        """Show measurements that are given oldest first."""
        before = [it.id for it in self.items]
        self.show_items(history[::-1])
        if [it.id for it in self.items] != before:
            self.rows.cursor = 0

    def show_counts(self) -> None:
        self.show_title(f" {counted(len(self.items), 'run')}" if self.items else "")

    def comparable(self, item: Summary) -> ComparableRow:
        return result_row(item)


_MOST_NAMED = 6


class DeleteScreen(ConfirmingScreen):
    HEADING = "Delete?"
    scope = scopes.DELETE_RESULTS
    ABOUT = (
        "Estimates no longer use deleted results. {results.undo_delete} on the screen of results restores them until "
        "you quit dlbricks. Export them first to keep them longer."
    )

    def __init__(self, results: Selection, total: int) -> None:
        count = len(results)
        named: list[Part] = [
            Fact(it.name, f"{cell('when', it.when)}  {it.system}  {cell('trimmed_mean_ms', it.trimmed_mean_ms)} ms")
            for it in results[:_MOST_NAMED]
        ]
        if count > _MOST_NAMED:
            named.append(Sentence(f"and {counted(count - _MOST_NAMED, 'other')}", "muted"))
        restored = Hint("{results.undo_delete} restores them until you quit dlbricks.")
        super().__init__(Sentence(f"{counted(count, 'result')} of {total:,}:", "strong"), *named, BLANK_LINE, restored)


class ImportScreen(PathScreen):
    """Asks for an existing file."""

    HEADING = "Import results from a file"
    HINT = "~/results.json"
    ENDINGS = ANY_FILE
    ABOUT = (
        "A file that was exported here or by `dlbricks results export` on any host, or one that `dlbricks suite run` "
        "has written of a suite whose key is in this data folder. Results that are already in the store stay as they "
        "are. `dlbricks results import` on the command line imports the paper's published measurements."
    )

    def problem_with(self, path: Path) -> str:
        return f"{path} is a folder: name a file in it" if path.is_dir() else super().problem_with(path)


class ExportScreen(NewFileScreen):
    """Asks for the file of an export."""

    HINT = "~/results.json, .csv or .jsonl"
    ABOUT = (
        "The ending selects the format. A .json or .json.gz file contains the results with their systems and runtimes "
        "and can be imported on any host. A .csv or .jsonl file contains one row per result."
    )

    def format_problem(self, path: Path) -> str:
        return export_problem(path)


_WIDEST_NAME = 60
_GAP = 1
# These fit on 80 columns: they tell results of one brick or model apart.
_SQUEEZED = ("models", "runtime", "threads", "batch_size", "trimmed_mean_ms", "when", "name")
_NAMES = ("name", "models")
_STYLES = {"name": "text", "models": "text", "trimmed_mean_ms": "strong"}
FIRST_COLUMNS = (*_SQUEEZED, "precision", "samples", "system", "context", "level", "good")


def placed(columns: Sequence[str], first: int, width: int) -> Mapping[str, int]:
    """Return the columns from `first` on that fit, with their widths; names get the remaining width.

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
    return widths


def _needed(columns: Sequence[str], *, squeezed: bool) -> int:
    found = [RESULT_COLUMNS[name] for name in columns]
    return sum((it.least if squeezed else it.width) + _GAP for it in found)


def first_to_show(columns: Sequence[str], current: int, first: int, width: int) -> int:
    """Return the first column to show so that the current one is visible, with as little scrolling as possible."""
    first = min(first, current)
    while len(placed(columns, first, width)) <= current - first:
        first += 1
    return first


class ColumnsScreen(SearchedDialog[tuple[str, ...]]):
    """Returns the selected columns in their order."""

    scope = scopes.COLUMNS
    HEADING = "Columns"
    SEARCH_HINT = "name or meaning"
    ABOUT = "Marked columns are shown, in this order. Columns that do not fit are to the right of the last visible one."

    def __init__(self, shown: Sequence[str]) -> None:
        self._list = CheckedRows(shown, lambda name: (name, RESULT_COLUMNS[name].about), 18)
        super().__init__(self._list)
        # All columns, whether they are found and chosen or not.
        self._order = [*shown, *(name for name in RESULT_COLUMNS if name not in shown)]
        self._list.show_placeholder(
            line("No column contains all of these words."), Hint("{find.clear} shows all columns again.", "muted")
        )

    def on_mount(self) -> None:
        self.search_changed()

    def search_changed(self) -> None:
        described = {name: f"{name} {it.title} {it.about}" for name, it in RESULT_COLUMNS.items()}
        self._list.show_items(name for name in self._order if contains_all(described[name], self.words))

    def action_use(self) -> None:
        if self._list.chosen:
            self.dismiss(tuple(name for name in self._order if name in self._list.chosen))
        else:
            self.notify("Choose at least one column.")

    def action_show_or_hide(self) -> None:
        self._list.check()

    def action_shift(self, step: int) -> None:
        """Swap the selected column with its neighbour in the full order."""
        name = self._list.selected
        if name is None:
            return
        here = self._order.index(name)
        there = here + step
        if 0 <= there < len(self._order):
            self._order[here], self._order[there] = self._order[there], self._order[here]
            self.search_changed()


RESTORED = "+"
_DOWN, _UP = "↓", "↑"
# The cursor sign and the mark.
_BEFORE = 2


class ResultRows(RowsView):
    """The results that were found, with marks and a current column."""

    def __init__(self) -> None:
        super().__init__()
        self.selection: Selection | None = None
        self.columns: tuple[str, ...] = FIRST_COLUMNS
        self.orders = ResultQuery().orders
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
        visible = placed(self.columns, self.first, width - 1)
        texts = short_cells(here, list(visible))
        cells = [
            column(texts[name][0], wide, _STYLES.get(name, "muted"), right=is_right(name))
            for name, wide in visible.items()
        ]
        row = int(here.rows[0])
        mark = Span(RESTORED, "good") if row in self.restored else Span(" ")
        mark = Span(MARK, "mark") if row in self.marked else mark
        return (mark, *(part for each in cells for part in (each, Span(" "))))

    def heading(self, width: int) -> Line:
        """Return the titles of the visible columns, with the sort order and the current column."""
        order = self.orders[0]
        parts: list[Span] = [Span(" " * _BEFORE)]
        for name, wide in placed(self.columns, self.first, width - _BEFORE).items():
            # The newest time has the least age.
            descending = order.descending is not (name == "when")
            arrow = (_DOWN if descending else _UP) if name == order.column else ""
            style = "match" if name == self.columns[self.current] else "muted"
            parts += [column(RESULT_COLUMNS[name].title + arrow, wide, style, right=is_right(name)), Span(" ")]
        return tuple(parts)

    def move_column(self, step: int) -> None:
        """Move to another column and scroll it into view."""
        self.current = min(max(self.current + step, 0), len(self.columns) - 1)
        self.on_resize()

    def on_resize(self) -> None:
        self.first = first_to_show(self.columns, self.current, self.first, self.line_width - _BEFORE)
        self.refresh()


class ResultsPanel(Panel):
    scope = scopes.RESULT_TABLE
    TITLE = "Results"
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
        return ResultQuery(self.search_line.value.strip(), self._list.orders)

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
        columns = self._list.columns
        # Ages are out of date as soon as they are copied.
        titles = ("when, UTC" if name == "when" else RESULT_COLUMNS[name].title for name in columns)
        return TextTable(tuple(titles), () if self.shown is None else whole_cells(self.shown, columns))

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
        self.cursor_settled()

    def mark_restored(self, ids: frozenset[str]) -> None:
        """Mark the results that were brought back once they are shown, and go to one of them."""
        self._restored, self._reveals_restored = ids, bool(ids)

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
        rows = self._list
        rows.orders = self.result_query.sorted_by(rows.columns[rows.current]).orders
        self.heading_changed()
        self.post_message(self.Asked())

    def action_choose_columns(self) -> None:
        def chosen(columns: tuple[str, ...]) -> None:
            self._list.columns = columns
            self.action_move_column(0)

        ask(self.app, ColumnsScreen(self._list.columns), chosen)

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

    def action_only_this(self) -> None:
        if self.under_cursor is not None:
            (summary,) = self.under_cursor.summaries()
            self.search_line.seek(quoted("brick", summary.brick) if summary.brick else quoted("model", summary.model))

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

    def cursor_settled(self) -> None:
        if self.under_cursor:
            self.post_message(self.Selected(self.under_cursor))

    def _say(self, problem: str) -> None:
        if problem:
            self._list.show_placeholder(line(Span(problem, "warn")))
        elif self.total:
            self._list.show_placeholder(
                line("No result matches the search."), Hint("{find.clear} shows all results again.", "muted")
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
