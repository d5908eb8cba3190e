"""Text to read: lines that are wrapped to the width there is, and scrolled."""

from collections.abc import Callable, Iterable

from dlbricks_tui.tui.lines import Line, wrapped
from dlbricks_tui.tui.widgets.rows import RowsView


class Reading(RowsView):
    """Lines of text; the cursor is where one reads."""

    def __init__(self, make: Callable[[], Iterable[Line]], *, classes: str | None = None) -> None:
        super().__init__(classes=classes)
        self._make = make
        self._lines: tuple[Line, ...] = ()
        self._width = -1

    @property
    def row_count(self) -> int:
        return len(self._wrapped())

    def row(self, index: int, width: int) -> Line:
        return self._wrapped()[index]

    def on_resize(self) -> None:
        self._width = -1
        self.rows_changed()

    def _wrapped(self) -> tuple[Line, ...]:
        width = max(1, self.size.width - 1)
        if width != self._width:
            self._width = width
            self._lines = tuple(each for long in self._make() for each in wrapped(long, width))
        return self._lines
