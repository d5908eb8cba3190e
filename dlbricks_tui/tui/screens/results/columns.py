"""Chooses which columns the table of results has."""

from collections.abc import Sequence

from textual.app import ComposeResult

from dlbricks_tui.store.columns import COLUMNS
from dlbricks_tui.tui.actions.action import Scope
from dlbricks_tui.tui.actions.registry import bindings
from dlbricks_tui.tui.lines import Line, Span, column, line
from dlbricks_tui.tui.screens.dialog import Dialog
from dlbricks_tui.tui.widgets.box import Box
from dlbricks_tui.tui.widgets.rows import RowsView

_ABOUT = {
    "id": "the result's own id",
    "of": "brick or model",
    "name": "operators, window and input of a brick; the name of a model",
    "kind": "the kind of a brick",
    "brick": "the key of the brick",
    "context": "in which memory layouts its inputs arrive",
    "model": "the key of the model",
    "system": "the machine",
    "runtime": "what executed it",
    "level": "written or fused layers",
    "protocol": "the method of measuring",
    "batch_size": "how many inputs at once",
    "dtype": "the type of numbers",
    "kernel_variant": "which kernel was taken",
    "trimmed_mean_ms": "the latency that is used: the mean of the middle samples",
    "median_ms": "half of the samples are below",
    "minimum_ms": "the least sample",
    "spread_ms": "the distance of the quartiles",
    "low_ms": "the 95 % interval begins here",
    "high_ms": "the 95 % interval ends here",
    "samples": "how many there are",
    "when": "when it was measured",
    "run": "in which run",
    "good": "whether nothing speaks against it",
}


class ColumnsScreen(Dialog[tuple[str, ...]]):
    """Gives the columns in the order in which they are to stand."""

    scope = Scope.COLUMNS
    BINDINGS = bindings(Scope.COLUMNS)
    ABOUT = "Columns with a mark are shown, in this order; those that do not fit are a few steps to the right."

    def __init__(self, shown: Sequence[str]) -> None:
        super().__init__()
        self._list = _ColumnRows(shown)

    def compose(self) -> ComposeResult:
        with Box("Columns", [Scope.COLUMNS, Scope.DIALOG], classes="-tall"):
            yield self._list

    def action_use(self) -> None:
        if self._list.shown:
            self.dismiss(tuple(self._list.shown))
        else:
            self.notify("Choose at least one column.")

    def action_show_or_hide(self) -> None:
        self._list.toggle()

    def action_later(self) -> None:
        self._list.shift(1)

    def action_sooner(self) -> None:
        self._list.shift(-1)


class _ColumnRows(RowsView):
    def __init__(self, shown: Sequence[str]) -> None:
        super().__init__()
        self._chosen = set(shown)
        self._order = [*shown, *(name for name in COLUMNS if name not in shown)]

    @property
    def shown(self) -> list[str]:
        """The chosen columns."""
        return [name for name in self._order if name in self._chosen]

    @property
    def row_count(self) -> int:
        return len(self._order)

    def row(self, index: int, width: int) -> Line:
        name = self._order[index]
        mark = Span("[x] " if name in self._chosen else "[ ] ", "mark" if name in self._chosen else "muted")
        return line(mark, column(name, 18, "strong"), Span(_ABOUT[name], "muted"))

    def on_mount(self) -> None:
        self.rows_changed()

    def toggle(self) -> None:
        """Shows the column under the cursor, or hides it."""
        self._chosen ^= {self._order[self.cursor]}
        self.action_down()
        self.refresh()

    def shift(self, step: int) -> None:
        """Exchanges the column under the cursor with a neighbour."""
        here, there = self.cursor, self.cursor + step
        if 0 <= there < len(self._order):
            self._order[here], self._order[there] = self._order[there], self._order[here]
            self.cursor = there
            self.refresh()
