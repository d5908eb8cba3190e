"""Text to read: lines that are wrapped to the width there is, and scrolled."""

from collections.abc import Callable, Iterable

from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.strip import Strip

from dlbricks_tui.tui.actions.action import Scope
from dlbricks_tui.tui.actions.registry import bindings
from dlbricks_tui.tui.lines import Line, wrapped
from dlbricks_tui.tui.widgets.ink import Inked
from dlbricks_tui.tui.widgets.keyed import Keyed


class Reading(Inked, ScrollView, Keyed, can_focus=True, inherit_bindings=False):
    """Lines of text, moved by the keys that move a cursor in lists."""

    BINDINGS = bindings(Scope.LIST)

    def __init__(self, make: Callable[[], Iterable[Line]]) -> None:
        super().__init__()
        self._make = make
        self._wrapped: tuple[Line, ...] = ()

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return len(self._wrap(width))

    def on_resize(self) -> None:
        self.remake()

    def keys_changed(self) -> None:
        self.remake()

    def remake(self) -> None:
        """Makes the lines of what there is to say now."""
        self._wrapped = self._wrap(self.scrollable_content_region.width)
        self.virtual_size = Size(0, len(self._wrapped))
        self.refresh()

    def render_line(self, y: int) -> Strip:
        index = y + self.scroll_offset.y
        return self.strip_of(self._wrapped[index] if index < len(self._wrapped) else (), self.size.width)

    def action_down(self) -> None:
        self.scroll_down(animate=False)

    def action_up(self) -> None:
        self.scroll_up(animate=False)

    def action_page_down(self) -> None:
        self.scroll_page_down(animate=False)

    def action_page_up(self) -> None:
        self.scroll_page_up(animate=False)

    def action_first(self) -> None:
        self.scroll_home(animate=False)

    def action_last(self) -> None:
        self.scroll_end(animate=False)

    def _wrap(self, width: int) -> tuple[Line, ...]:
        return tuple(each for long in self._make() for each in wrapped(long, width))
