"""The table of results: of any length, as only the cells in sight are made."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from textual import on
from textual.message import Message

from dlbricks_tui.store.columns import values_of
from dlbricks_tui.store.queries import Selection
from dlbricks_tui.tui.actions.action import Scope
from dlbricks_tui.tui.actions.registry import bindings
from dlbricks_tui.tui.key_words import Hint
from dlbricks_tui.tui.lines import Line, Span, column, line
from dlbricks_tui.tui.screens.results.cells import (
    HEADINGS,
    NO_RESULT,
    Arrangement,
    cell,
    first_to_show,
    is_right,
    placed,
)
from dlbricks_tui.tui.screens.results.seeking import Question, quoted
from dlbricks_tui.tui.widgets.panel import Panel, marks_told
from dlbricks_tui.tui.widgets.rows import RowsView

if TYPE_CHECKING:
    from dlbricks_tui.tui.screens.results.errands import Found
    from dlbricks_tui.tui.widgets.search_line import SearchLine

MARK = "•"
_DOWN, _UP = "↓", "↑"
# The cursor's sign is drawn by the list, the mark by the row.
_BEFORE = 2


class ResultRows(RowsView):
    """The results that were found, with marks and a column that the keys are about."""

    def __init__(self) -> None:
        super().__init__()
        self.selection: Selection | None = None
        self.arrangement = Arrangement()
        self.marked: set[int] = set()
        self.current = 0
        self.first = 0

    @property
    def row_count(self) -> int:
        return len(self.selection) if self.selection else 0

    def row(self, index: int, width: int) -> Line:
        if self.selection is None:
            return ()
        row = self.selection.rows[index : index + 1]
        known = self.selection.generation.index
        cells = [
            column(cell(name, values_of(known, name, row)[0]), wide, _style(name), right=is_right(name))
            for name, wide in placed(self.arrangement.columns, self.first, width - 1)
        ]
        mark = Span(MARK if int(row[0]) in self.marked else " ", "mark")
        return (mark, *(part for each in cells for part in (each, Span(" "))))

    def heading(self, width: int) -> Line:
        """What the columns in sight are called, how they are sorted, and which is the current one."""
        order = self.arrangement.orders[0]
        parts: list[Span] = [Span(" " * _BEFORE)]
        for name, wide in placed(self.arrangement.columns, self.first, width - _BEFORE):
            arrow = (_DOWN if order.descending else _UP) if name == order.column else ""
            style = "match" if name == self.arrangement.columns[self.current] else "muted"
            parts += [column(HEADINGS[name].title + arrow, wide, style, right=is_right(name)), Span(" ")]
        return tuple(parts)

    def move_column(self, step: int) -> None:
        """Makes another column the current one, and brings it in sight."""
        self.current = min(max(self.current + step, 0), len(self.arrangement.columns) - 1)
        self.reveal_column()

    def reveal_column(self) -> None:
        """Brings the current column in sight."""
        self.first = first_to_show(self.arrangement.columns, self.current, self.first, self.line_width - _BEFORE)
        self.refresh()

    def on_resize(self) -> None:
        self.reveal_column()


class ResultsPanel(Panel):
    """Finds, sorts and marks results."""

    scope = Scope.RESULT_TABLE
    BINDINGS = bindings(Scope.RESULT_TABLE)
    TITLE = "Results"
    REACHED_BY = "results.go_to_results"
    SEARCH_HINT = "words, a model, or filters: system~c5 kind=convolution ms>5"
    HEADED = True
    ABOUT = (
        "All that was measured. A search finds words in any text, dates, models (what their runs measured), and what "
        "filters say, as `dlbricks results list` does: kind=convolution, name~3x3, system=c5.xlarge, ms>5, "
        "when>=2026-11-01, good=no; a result has to pass all of them. The underlined column is the one to sort by."
    )

    class Asked(Message):
        """Other results, or another order, are wanted."""

        def __init__(self, question: Question) -> None:
            super().__init__()
            self.question = question

    class Rested(Message):
        """The cursor rests on a result."""

        def __init__(self, result: Selection) -> None:
            super().__init__()
            self.result = result

    class Opened(Message):
        """The person wants to read about the result under the cursor."""

    class ColumnsAsked(Message):
        """The person wants other columns."""

        def __init__(self, shown: tuple[str, ...]) -> None:
            super().__init__()
            self.shown = shown

    def __init__(self) -> None:
        self._list = ResultRows()
        super().__init__(self._list, id="result-table")
        self._text = ""
        self.total = 0
        self._answered: Question | None = None
        self._list.say(line(Span("Reading the store.", "muted")))

    @property
    def question(self) -> Question:
        """What the table is to show."""
        return Question(self._text, self._list.arrangement.orders)

    @property
    def shown(self) -> Selection | None:
        """All results that were found."""
        return self._list.selection

    @property
    def under_cursor(self) -> Selection | None:
        """The result that the cursor is on."""
        return self.shown.part(self._list.cursor, self._list.cursor + 1) if self.shown else None

    @property
    def marked(self) -> Selection | None:
        """The marked results, those out of sight included; None where there are none."""
        if self.shown is None or not self._list.marked:
            return None
        return Selection(self.shown.generation, np.array(sorted(self._list.marked), dtype=np.intp))

    @property
    def marked_in_view(self) -> Selection | None:
        """The marked results that the search leaves; None where nothing is marked."""
        marked = self.marked
        if marked is None or self.shown is None:
            return None
        return Selection(marked.generation, marked.rows[np.isin(marked.rows, self.shown.rows)])

    def heading(self, width: int) -> Line:
        return self._list.heading(width)

    def show(self, found: Found) -> None:
        """Shows what was found, unless something else is wanted by now."""
        if found.question != self.question:
            return
        before, row = self.shown, self._row
        if before and found.selection and before.generation is not found.selection.generation:
            # The rows of another generation are other results.
            self._list.marked, row = set(), None
        stays = self._answered == found.question
        self._answered, self.total = found.question, found.total
        self._list.selection = found.selection
        self._say(found.problem)
        self._list.rows_changed()
        self._list.move_to(self._position_of(row) if stays else 0)
        self._entitle()
        self._tell_rested()

    def arrange_by(self, arrangement: Arrangement) -> None:
        """Shows other columns, or asks for another order."""
        before, self._list.arrangement = self._list.arrangement, arrangement
        self._list.move_column(0)
        self.heading_changed()
        if before.orders != arrangement.orders:
            self.post_message(self.Asked(self.question))

    def show_columns(self, columns: tuple[str, ...]) -> None:
        """Shows these columns."""
        self.arrange_by(self._list.arrangement.with_columns(columns))

    def unmark(self, results: Selection) -> None:
        """Takes the marks off these results."""
        self._list.marked -= set(results.rows.tolist())
        self._list.refresh()
        self._entitle()

    def on_search_line_sought(self, event: SearchLine.Sought) -> None:
        if event.text != self._text:
            self._text = event.text
            self.post_message(self.Asked(self.question))

    def on_click(self) -> None:
        self.take_focus()

    def action_column_right(self) -> None:
        self._list.move_column(1)
        self.heading_changed()

    def action_column_left(self) -> None:
        self._list.move_column(-1)
        self.heading_changed()

    def action_sort(self) -> None:
        arrangement = self._list.arrangement
        self.arrange_by(arrangement.sorted_by(arrangement.columns[self._list.current]))

    def action_choose_columns(self) -> None:
        self.post_message(self.ColumnsAsked(self._list.arrangement.columns))

    def action_mark(self) -> None:
        if self._row is not None:
            self._list.marked ^= {self._row}
            self._list.action_down()
            self._list.refresh()
            self._entitle()

    def action_mark_all(self) -> None:
        if self.shown is not None:
            rows = set(self.shown.rows.tolist())
            self._list.marked = self._list.marked - rows if rows <= self._list.marked else self._list.marked | rows
            self._list.refresh()
            self._entitle()

    def action_copy(self) -> None:
        summary = self.under_cursor.summaries()[0] if self.under_cursor else None
        self.copy(summary.key if summary else None, NO_RESULT)

    def action_open(self) -> None:
        if self.under_cursor is not None:
            self.post_message(self.Opened())

    def action_only_this(self) -> None:
        if self.under_cursor is not None:
            (summary,) = self.under_cursor.summaries()
            self.seek(quoted("brick", summary.brick) if summary.brick else quoted("model", summary.model))

    def seek(self, text: str) -> None:
        """Searches as if the person had typed it."""
        self.search_line.seek(text)

    @on(RowsView.Rested)
    def _rested(self, event: RowsView.Rested) -> None:
        event.stop()
        self._tell_rested()

    @property
    def _row(self) -> int | None:
        return int(self.shown.rows[self._list.cursor]) if self.shown else None

    def _position_of(self, row: int | None) -> int:
        if row is None or self.shown is None:
            return 0
        places = np.flatnonzero(self.shown.rows == row)
        return int(places[0]) if len(places) else self._list.cursor

    def _tell_rested(self) -> None:
        if self.under_cursor:
            self.post_message(self.Rested(self.under_cursor))

    def _say(self, problem: str) -> None:
        if problem:
            self._list.say(line(Span(problem, "warn")))
        elif self.total:
            self._list.say(
                line("No result passes all of it."),
                Hint("{find.clear} shows all results again.", "muted"),
            )
        else:
            self._list.say(
                line("Nothing was measured or imported yet."),
                Hint("{results.leave} and {workbench.start_run} runs a model's bricks;"),
                Hint("{results.import_file} takes up a file that `dlbricks results export` or another host wrote."),
            )

    def _entitle(self) -> None:
        shown, marked, in_view = self._list.row_count, self.marked, self.marked_in_view
        of = "" if shown == self.total else f" of {self.total:,}"
        self.show_title(f" {shown:,}{of}")
        self.border_subtitle = marks_told(len(marked or ()), len(in_view or ()))


def _style(name: str) -> str:
    if name == "name":
        return "text"
    return "strong" if name == "trimmed_mean_ms" else "muted"
