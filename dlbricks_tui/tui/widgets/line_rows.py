"""Lines to read, wrapped to the width there is, with a cursor that leads through them."""

from collections.abc import Callable

from dlbricks_tui.tui.lines import Line
from dlbricks_tui.tui.widgets.keyed import Keyed
from dlbricks_tui.tui.widgets.rows import RowsView


class LineRows(RowsView, Keyed):
    """Asks for its lines whenever they or the width may have changed."""

    def __init__(self, make: Callable[[int], tuple[Line, ...]], *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self._make = make
        self._made: tuple[Line, ...] = ()
        self._made_for = -1

    @property
    def row_count(self) -> int:
        return len(self._lines())

    def row(self, index: int, width: int) -> Line:
        return self._lines()[index]

    def can_rest_on(self, index: int) -> bool:
        return bool(self._lines()[index])

    def remake(self) -> None:
        """Makes the lines of what is known now."""
        self._made_for = -1
        self.rows_changed()

    def on_resize(self) -> None:
        self.remake()

    def keys_changed(self) -> None:
        self.remake()

    def _lines(self) -> tuple[Line, ...]:
        width = self.line_width - 1
        if width != self._made_for and width > 0:
            self._made, self._made_for = self._make(width), width
        return self._made
