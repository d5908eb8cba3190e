"""The base of boxes that can be searched."""

from collections.abc import Sequence
from typing import ClassVar, Generic, TypeVar

from textual.widget import Widget

from dlbricks_tui.tui.actions.action import Scope
from dlbricks_tui.tui.actions.registry import bindings
from dlbricks_tui.tui.screens.dialog import Dialog
from dlbricks_tui.tui.widgets.search_line import SearchLine

Result = TypeVar("Result")


class SearchedDialog(Dialog[Result], Generic[Result]):
    """Subclasses put `search_line` below what is searched, and show what has all the words."""

    BINDINGS = bindings(Scope.BOX)
    # What can be searched for.
    SEARCH_HINT: ClassVar[str]

    def __init__(self, searched: Widget) -> None:
        super().__init__()
        self._searched = searched
        self.search_line = SearchLine(self.SEARCH_HINT)

    def show_found(self, words: Sequence[str]) -> None:
        """Shows what has all of these words, in small letters; everything where there are none."""
        raise NotImplementedError

    def on_search_line_sought(self, event: SearchLine.Sought) -> None:
        self.show_found(event.text.casefold().split())

    def on_search_line_left(self) -> None:
        self._searched.focus()

    def action_search(self) -> None:
        self.search_line.begin()
