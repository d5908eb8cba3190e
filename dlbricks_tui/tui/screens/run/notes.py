"""What has happened in the run, in words."""

from datetime import datetime
from functools import lru_cache

from textual import on

from dlbricks_tui.tui.actions.action import Scope
from dlbricks_tui.tui.lines import Line, Span, line, wrapped
from dlbricks_tui.tui.screens.run.tail_rows import TailRows
from dlbricks_tui.tui.widgets.panel import Panel
from dlbricks_tui.tui.widgets.rows import RowsView
from dlbricks_tui.wording.runs import Note


class NoteRows(TailRows):
    """Notes, each in as many rows as it takes."""

    def __init__(self) -> None:
        super().__init__()
        self.notes: tuple[Note, ...] = ()
        self._made: tuple[Line, ...] = ()
        self._made_of: tuple[tuple[Note, ...], int] = ((), -1)
        self.say(line(Span("Nothing has happened yet.", "muted")))

    @property
    def row_count(self) -> int:
        return len(self._rows())

    def row(self, index: int, width: int) -> Line:
        return self._rows()[index]

    def on_resize(self) -> None:
        self.grown()

    def _rows(self) -> tuple[Line, ...]:
        wanted = self.notes, self.line_width - 1
        if wanted != self._made_of and wanted[1] > 0:
            self._made_of = wanted
            self._made = tuple(each for note in self.notes for each in _lines(note, wanted[1]))
        return self._made


class NotesPanel(Panel):
    """Failures, doubts and what else is worth to be told."""

    scope = Scope.RUN_NOTES
    TITLE = "Notes"
    REACHED_BY = "run.go_to_notes"
    ABOUT = "What has happened in the run: what failed and why, whether the machine has changed, who else measures."

    def __init__(self) -> None:
        self._list = NoteRows()
        super().__init__(self._list, id="run-notes")

    def show(self, notes: tuple[Note, ...]) -> None:
        """Lists all notes."""
        if notes is not self._list.notes:
            self._list.notes = notes
            self._list.grown()

    def on_click(self) -> None:
        self.take_focus()

    @on(RowsView.Rested)
    def _rested(self, event: RowsView.Rested) -> None:
        event.stop()


@lru_cache(maxsize=1024)
def _lines(note: Note, width: int) -> tuple[Line, ...]:
    clock = datetime.fromisoformat(note.when).astimezone().strftime("%H:%M:%S")
    return tuple(wrapped(line(Span(f"{clock} ", "muted"), Span(note.text, note.tone.value)), width))
