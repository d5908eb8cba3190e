"""Finds a command by its name."""

from collections.abc import Sequence

from textual.app import ComposeResult
from textual.dom import DOMNode
from textual.widgets import Input

from dlbricks_tui.tui.actions.action import Action, Scope
from dlbricks_tui.tui.actions.registry import bindings
from dlbricks_tui.tui.key_names import all_shown
from dlbricks_tui.tui.keymap import keys_of
from dlbricks_tui.tui.lines import Line, Span, column, line, spread
from dlbricks_tui.tui.screens.dialog import Dialog
from dlbricks_tui.tui.widgets.box import Box
from dlbricks_tui.tui.widgets.field import Field
from dlbricks_tui.tui.widgets.rows import RowsView

Command = tuple[Action, DOMNode]


class PaletteScreen(Dialog[Command]):
    """Gives the action that was chosen and the node that does it."""

    scope = Scope.PALETTE
    BINDINGS = bindings(Scope.PALETTE)
    AUTO_FOCUS = "Input"
    ABOUT = "Type some words of what you want to do."

    def __init__(self, commands: Sequence[Command]) -> None:
        super().__init__()
        self._commands = tuple(commands)
        self._list = _CommandRows(self._commands)

    def compose(self) -> ComposeResult:
        with Box("Commands", [Scope.PALETTE, Scope.DIALOG], classes="-tall"):
            yield Field(hint="what to do")
            yield self._list

    def on_input_changed(self, event: Input.Changed) -> None:
        words = event.value.casefold().split()
        self._list.show([command for command in self._commands if _fits(command[0], words)])

    def on_input_submitted(self) -> None:
        self.action_take()

    def action_next(self) -> None:
        self._list.action_down()

    def action_previous(self) -> None:
        self._list.action_up()

    def action_take(self) -> None:
        if self._list.chosen is not None:
            self.dismiss(self._list.chosen)


class _CommandRows(RowsView, can_focus=False):
    def __init__(self, commands: Sequence[Command]) -> None:
        super().__init__()
        self._shown = tuple(commands)
        self.say(line(Span("There is no such command.", "muted")))

    @property
    def row_count(self) -> int:
        return len(self._shown)

    @property
    def chosen(self) -> Command | None:
        return self._shown[self.cursor] if self._shown else None

    def row(self, index: int, width: int) -> Line:
        action, _ = self._shown[index]
        keys = line(Span(f" {all_shown(keys_of(action))} ", "accent"))
        return spread(line(column(action.label, 16, "strong"), action.help), keys, width)

    def show(self, commands: Sequence[Command]) -> None:
        self._shown = tuple(commands)
        self.cursor = 0
        self.rows_changed()

    def on_mount(self) -> None:
        self.rows_changed()


def _fits(action: Action, words: Sequence[str]) -> bool:
    text = f"{action.label} {action.help}".casefold()
    return all(word in text for word in words)
