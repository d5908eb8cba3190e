"""The boxes that list actions: the help and the command palette."""

from collections.abc import Iterable, Sequence

from textual.dom import DOMNode
from textual.widgets import Input

from dlbricks_tui.documents.lines import BLANK, Line, Span, column, contains_all, line, spread
from dlbricks_tui.tui.dialogs.dialog import Dialog, SearchedDialog
from dlbricks_tui.tui.keys import scopes
from dlbricks_tui.tui.keys.keymap import Hint, key_labels, keys_of
from dlbricks_tui.tui.keys.scopes import Action
from dlbricks_tui.tui.widgets.panel import Field
from dlbricks_tui.tui.widgets.rows import DrawnRows
from dlbricks_tui.tui.widgets.text import TextView

_KEYS = 16


class HelpScreen(SearchedDialog[None]):
    """The actions that work here, the innermost first, with a paragraph about each place."""

    HEADING = "Help"
    SEARCH_HINT = "action or key"

    def __init__(self, about: Sequence[str], actions: Iterable[Action]) -> None:
        self._text = TextView(self._lines)
        super().__init__(self._text)
        self._about = about
        self._actions = tuple(actions)

    def search_changed(self) -> None:
        self._text.remake()

    def _lines(self, _: int) -> Iterable[Line]:
        found = [
            action
            for action in self._actions
            if contains_all(f"{key_labels(keys_of(action))} {action.label} {action.help}", self.words)
        ]
        if not self.words:
            for paragraph in self._about:
                yield line(paragraph)
                yield BLANK
        elif not found:
            yield line("No action here contains all of these words.")
            yield Hint("{find.clear} shows all actions again.", "muted").line
        scope = None
        for action in found:
            if action.scope is not scope:
                if scope is not None:
                    yield BLANK
                scope = action.scope
                yield line(Span(scope.title, "heading"))
            yield line(column(key_labels(keys_of(action)), _KEYS, "accent"), action.help)


Command = tuple[Action, DOMNode]


class PaletteScreen(Dialog[Command]):
    """Returns the selected action and the node that runs it."""

    scope = scopes.PALETTE
    HEADING = "Commands"
    BOX_CLASSES = "-tall"
    AUTO_FOCUS = "Input"
    ABOUT = "Type some words of the command."

    def __init__(self, commands: Sequence[Command]) -> None:
        self._commands = tuple(commands)
        self._list: DrawnRows[Command] = DrawnRows(self._row, self._commands)
        # The keys go to the field.
        self._list.can_focus = False
        self._list.show_placeholder(line(Span("No command contains all of these words.", "muted")))
        super().__init__(Field(hint="command"), self._list)

    def on_input_changed(self, event: Input.Changed) -> None:
        words = event.value.casefold().split()
        self._list.show_items(it for it in self._commands if contains_all(f"{it[0].label} {it[0].help}", words))
        self._list.move_to(0)

    def action_step(self, step: int) -> None:
        self._list.move_to(self._list.cursor + step)

    def action_take(self) -> None:
        if self._list.selected is not None:
            self.dismiss(self._list.selected)

    def _row(self, index: int, width: int) -> Line:
        action, _ = self._list.items[index]
        keys = line(Span(f" {key_labels(keys_of(action))} ", "accent"))
        return spread(line(column(action.label, 16, "strong"), action.help), keys, width)
