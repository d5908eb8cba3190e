"""The frame of a dialog: a title at its head, and at its foot the keys that matter."""

from collections.abc import Iterable

from textual.containers import Vertical

from dlbricks_tui.tui.actions.action import Scope
from dlbricks_tui.tui.actions.registry import actions_in
from dlbricks_tui.tui.keymap import key


class Box(Vertical):
    """Stands in the middle and is as high as what is in it."""

    def __init__(self, title: str, scopes: Iterable[Scope], *, classes: str = "") -> None:
        super().__init__(classes=classes)
        self.border_title = title
        offered = (action for scope in scopes for action in actions_in(scope) if action.footer)
        self.border_subtitle = " · ".join(f"{key(action.id)} {action.label}" for action in offered)
