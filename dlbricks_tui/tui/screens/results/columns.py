"""Chooses which columns the table of results has."""

from collections.abc import Sequence

from textual.app import ComposeResult

from dlbricks_tui.store.columns import COLUMNS
from dlbricks_tui.tui.actions.action import Scope
from dlbricks_tui.tui.actions.registry import bindings
from dlbricks_tui.tui.key_words import Hint
from dlbricks_tui.tui.lines import Line, Span, column, line
from dlbricks_tui.tui.screens.results.cells import HEADINGS
from dlbricks_tui.tui.screens.searched import SearchedDialog
from dlbricks_tui.tui.widgets.box import Box
from dlbricks_tui.tui.widgets.rows import RowsView, place_of

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
    "reference_ms": "what the reference took beside them: how fast the host was",
    "when": "when it was measured",
    "run": "in which run",
    "good": "whether nothing speaks against it",
    "models": "the models of the run that measured it",
}


class ColumnsScreen(SearchedDialog[tuple[str, ...]]):
    """Gives the columns in the order in which they are to stand."""

    scope = Scope.COLUMNS
    BINDINGS = bindings(Scope.COLUMNS)
    SEARCH_HINT = "name or meaning"
    ABOUT = "Columns with a mark are shown, in this order; those that do not fit are a few steps to the right."

    def __init__(self, shown: Sequence[str]) -> None:
        self._list = _ColumnRows(shown)
        super().__init__(self._list)

    def compose(self) -> ComposeResult:
        with Box("Columns", [Scope.COLUMNS, Scope.BOX, Scope.DIALOG], classes="-tall"):
            yield self._list
            yield self.search_line

    def show_found(self, words: Sequence[str]) -> None:
        self._list.seek(words)

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
        self._words: tuple[str, ...] = ()
        self._found = tuple(self._order)
        self.say(line("No column has all of these words."), Hint("{find.clear} shows all columns again.", "muted"))

    @property
    def shown(self) -> list[str]:
        """The chosen columns."""
        return [name for name in self._order if name in self._chosen]

    @property
    def row_count(self) -> int:
        return len(self._found)

    def row(self, index: int, width: int) -> Line:
        name = self._found[index]
        mark = Span("[x] " if name in self._chosen else "[ ] ", "mark" if name in self._chosen else "muted")
        return line(mark, column(name, 18, "strong"), Span(_ABOUT[name], "muted"))

    def on_mount(self) -> None:
        self.rows_changed()

    def seek(self, words: Sequence[str]) -> None:
        """Lists only the columns that have all of the words."""
        here = self._found[self.cursor] if self._found else None
        self._words = tuple(words)
        self._find()
        self.move_to(place_of(here, self._found))

    def toggle(self) -> None:
        """Shows the column under the cursor, or hides it."""
        if self._found:
            self._chosen ^= {self._found[self.cursor]}
            self.action_down()
            self.refresh()

    def shift(self, step: int) -> None:
        """Exchanges the column under the cursor with a neighbour, whether a search has found that or not."""
        if not self._found:
            return
        name = self._found[self.cursor]
        here = self._order.index(name)
        there = here + step
        if 0 <= there < len(self._order):
            self._order[here], self._order[there] = self._order[there], self._order[here]
            self._find()
            self.cursor = self._found.index(name)

    def _find(self) -> None:
        self._found = tuple(name for name in self._order if _fits(name, self._words))
        self.rows_changed()


def _fits(name: str, words: Sequence[str]) -> bool:
    text = f"{name} {HEADINGS[name].title} {_ABOUT[name]}".casefold()
    return all(word in text for word in words)
