"""The base of boxes that can be searched."""

from collections.abc import Sequence
from typing import ClassVar, Generic, TypeVar

from textual.binding import BindingType
from textual.widget import Widget

from dlbricks_tui.tui.actions.action import Scope
from dlbricks_tui.tui.actions.registry import BY_ID, binding, bindings
from dlbricks_tui.tui.screens.dialog import Dialog
from dlbricks_tui.tui.widgets.search_line import SearchLine

Result = TypeVar("Result")


class SearchedDialog(Dialog[Result], Generic[Result]):
    """Subclasses put `search_line` below what is searched, and show what has all the words."""

    # While there is a search, the key that ends it comes before the one that closes the box.
    BINDINGS: ClassVar[list[BindingType]] = [
        *bindings(Scope.BOX),
        binding(BY_ID["find.clear"]),
        *bindings(Scope.DIALOG),
    ]
    # What can be searched for.
    SEARCH_HINT: ClassVar[str]

    def __init__(self, searched: Widget) -> None:
        super().__init__()
        self.search_line = SearchLine(self.SEARCH_HINT, searched)

    def show_found(self, words: Sequence[str]) -> None:
        """Shows what has all of these words, in small letters; everything where there are none."""
        raise NotImplementedError

    def on_search_line_sought(self, event: SearchLine.Sought) -> None:
        self.show_found(event.text.casefold().split())

    def action_search(self) -> None:
        self.search_line.begin()

    def action_clear(self) -> None:
        self.search_line.end()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Offer to end the search only while there is one: else the key closes the box."""
        return self.search_line.has_text if action == "clear" else super().check_action(action, parameters)
