"""The bases of all boxes in front of a screen."""

from collections.abc import Iterable
from typing import ClassVar, Generic, TypeVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widget import Widget

from dlbricks_tui.documents.layout import laid_out
from dlbricks_tui.documents.lines import Line, Span, line, wrapped
from dlbricks_tui.documents.parts import BLANK_LINE, Part, Sentence
from dlbricks_tui.printable import printable
from dlbricks_tui.tui.keys import scopes
from dlbricks_tui.tui.keys.keymap import keys_of, shown, types_text
from dlbricks_tui.tui.keys.scopes import BY_ID, Action, Scope
from dlbricks_tui.tui.widgets.panel import SearchedPlace, SearchLine
from dlbricks_tui.tui.widgets.screens import ThreadedScreen
from dlbricks_tui.tui.widgets.text import NamesKeys, TextLines, TextView

# Between the keys at the foot of a box, and the width of its frame beside them.
_BETWEEN_KEYS, _BESIDE_KEYS = "  ", 6


class Box(Vertical, NamesKeys):
    """The frame of a box, as high as its content, with keys at its foot."""

    def __init__(self, title: str, scope: Scope, *content: Widget, classes: str = "") -> None:
        super().__init__(*content, classes=classes)
        self.border_title = Text(printable(title))
        self._offered = [action for each in (scope, *scope.outer) for action in each.actions if action.footer]
        self._typing = scope.typing
        self.keys_changed()

    def on_resize(self) -> None:
        self.keys_changed()

    def keys_changed(self) -> None:
        def label(action: Action) -> str:
            # While the user types, letters are text.
            keys = (each for each in keys_of(action) if not (self._typing and types_text(each)))
            return f"{shown(next(keys))} {action.label}"

        told = [
            label(action)
            for action in self._offered
            if not self.is_attached or self.screen.check_action(action.method, ()) is not False
        ]
        room = self.outer_size.width - _BESIDE_KEYS
        # The last one closes the box; the help lists the others too.
        while room > 0 and len(told) > 2 and len(_BETWEEN_KEYS.join(told)) > room:
            del told[-2]
        self.border_subtitle = _BETWEEN_KEYS.join(told)


Result = TypeVar("Result")


class Dialog(ThreadedScreen[Result], ModalScreen[Result], Generic[Result]):
    """A box in the middle of the screen; closing it returns None."""

    scope: ClassVar[Scope] = scopes.DIALOG
    # The title, unless it is given.
    HEADING: ClassVar[str] = ""
    BOX_CLASSES: ClassVar[str] = ""

    def __init__(self, *content: Widget, heading: str = "") -> None:
        super().__init__()
        self._content = content
        self._heading = heading or self.HEADING

    def compose(self) -> ComposeResult:
        yield Box(self._heading, self.scope, *self._content, classes=self.BOX_CLASSES)

    def action_close(self) -> None:
        self.dismiss(None)


class SearchedDialog(Dialog[Result], SearchedPlace, Generic[Result]):
    """A box with a list and a search."""

    scope = scopes.BOX
    # While there is a search, escape ends it before it closes the box.
    BINDINGS: ClassVar[list[BindingType]] = [*scopes.BOX.bindings, BY_ID["find.clear"].binding, *scopes.DIALOG.bindings]
    BOX_CLASSES = "-tall"
    # The kind of text to search for.
    SEARCH_HINT: ClassVar[str]

    def __init__(self, searched: Widget) -> None:
        self.search_line = SearchLine(self.SEARCH_HINT, searched)
        super().__init__(searched, self.search_line)

    def action_search(self) -> None:
        self.search_line.begin()


class TextDialog(Dialog[Result], Generic[Result]):
    """A box with a text."""

    def __init__(self, *parts: Part, heading: str = "") -> None:
        self._text = TextView(lambda width: laid_out(self.parts(), width))
        super().__init__(self._text, heading=heading)
        self._parts = parts

    def parts(self) -> Iterable[Part]:
        """Return the text as it is now."""
        return self._parts

    def parts_changed(self) -> None:
        """Show the text anew, in a box as high as it needs."""
        self._text.remake()
        self._text.refresh(layout=True)


class AskingDialog(Dialog[Result], Generic[Result]):
    """A box with fields, and a text below them: what to write, or what is wrong with it."""

    def __init__(self, fields: Widget, *rest: Widget, heading: str = "", note: str = "") -> None:
        self._note, self._problem = note, ""
        self.below = TextLines(self._below_lines)
        super().__init__(fields, self.below, *rest, heading=heading)

    def say(self, problem: str) -> None:
        """Show what is wrong; empty: nothing is."""
        self._problem = problem
        self.below.refresh(layout=True)

    def _below_lines(self, width: int) -> tuple[Line, ...]:
        said = Span(self._problem or self._note, "bad" if self._problem else "muted")
        return tuple(wrapped(line(said), width))


class ConfirmingScreen(TextDialog[bool]):
    """Asks for a confirmation; returns True if the user gives it."""

    # What is to be confirmed, and what follows, unless they are given.
    ASKS: ClassVar[tuple[str, ...]] = ()

    def parts(self) -> Iterable[Part]:
        if self._parts:
            return self._parts
        return [part for asked in self.ASKS for part in (BLANK_LINE, Sentence(asked))][1:]

    def action_confirm(self) -> None:
        self.dismiss(True)
