"""The paths that a typed beginning may become, to walk through and choose from."""

from textual import events

from dlbricks_tui.tui.lines import Line, Span, line
from dlbricks_tui.tui.widgets.rows import RowsView


class OfferedPaths(RowsView, can_focus=False):
    """Has no cursor until one walks into it: before that, what is typed counts."""

    def __init__(self) -> None:
        super().__init__()
        self.offered: tuple[str, ...] = ()
        self._walked = False

    @property
    def has_cursor(self) -> bool:
        return self._walked

    @property
    def chosen(self) -> str | None:
        """The path that the cursor is on; a folder has a slash at its end."""
        return self.offered[self.cursor] if self._walked and self.offered else None

    @property
    def row_count(self) -> int:
        return len(self.offered)

    def row(self, index: int, width: int) -> Line:
        path = self.offered[index]
        is_folder = path.endswith("/")
        name = path.removesuffix("/").rpartition("/")[2]
        return line(Span(f"{name}/", "strong") if is_folder else Span(name))

    def show(self, offered: tuple[str, ...]) -> None:
        """Offers other paths."""
        self.offered = offered
        self.say(line(Span("Nothing that could be used here begins so.", "muted")))
        self.leave()
        self.rows_changed()

    def walk(self, step: int) -> None:
        """Moves the cursor: from what is typed to the first path, and from that back to what is typed."""
        if self._walked and step < 0 and self.cursor == 0:
            self.leave()
        elif self._walked:
            self.move_to(self.cursor + step)
        elif step > 0:
            self._walked = bool(self.offered)
            self.refresh()

    def leave(self) -> None:
        """Chooses none of them any more."""
        self._walked = False
        self.cursor = 0
        self.refresh()

    def on_click(self, event: events.Click) -> None:
        self._walked = event.y + self.scroll_offset.y < self.row_count
        self.refresh()
