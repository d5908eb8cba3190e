"""The frame of a dialog: a title at its head, and at its foot the keys that matter."""

from collections.abc import Sequence

from rich.text import Text
from textual.containers import Vertical

from dlbricks_tui.printable import printable
from dlbricks_tui.tui.actions.action import Action, Scope
from dlbricks_tui.tui.actions.chains import TYPING
from dlbricks_tui.tui.actions.registry import actions_in
from dlbricks_tui.tui.key_names import shown, types_text
from dlbricks_tui.tui.keymap import keys_of
from dlbricks_tui.tui.widgets.keyed import Keyed


class Box(Vertical, Keyed):
    """Stands in the middle and is as high as what is in it."""

    def __init__(self, title: str, scopes: Sequence[Scope], *, classes: str = "") -> None:
        super().__init__(classes=classes)
        self.border_title = Text(printable(title))
        self._offered = [action for scope in scopes for action in actions_in(scope) if action.footer]
        self._one_types = not TYPING.isdisjoint(scopes)
        self.keys_changed()

    def keys_changed(self) -> None:
        self.border_subtitle = " · ".join(f"{self._key(action)} {action.label}" for action in self._offered)

    def _key(self, action: Action) -> str:
        # Where one types, a letter is one, whatever else it does.
        return shown(next(each for each in keys_of(action) if not (self._one_types and types_text(each))))
