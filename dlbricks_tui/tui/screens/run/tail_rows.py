"""The base of lists that grow at their end."""

from dlbricks_tui.tui.widgets.rows import RowsView


class TailRows(RowsView):
    """Whoever stands at the end stays there when it moves; whoever reads further up is left in peace."""

    def __init__(self) -> None:
        super().__init__()
        self._last = 0

    def grown(self) -> None:
        """Draws anew after rows have come or changed."""
        at_end = self.cursor >= self._last
        self._last = max(0, self.row_count - 1)
        self.rows_changed()
        if at_end and self.cursor != self._last:
            self.move_to(self._last)
