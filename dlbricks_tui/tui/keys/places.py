"""Screens, panels and widgets as places where actions apply."""

from collections.abc import Iterator
from typing import ClassVar

from textual.app import App
from textual.binding import BindingType
from textual.dom import DOMNode
from textual.screen import Screen

from dlbricks_tui.tui.keys.keymap import with_keys
from dlbricks_tui.tui.keys.scopes import ACTIONS, BOX, DIALOG, FORM, LIST, PALETTE, PATH, SEARCH, Action, Scope

# The palette leaves out actions that only make sense while the user types or reads.
_NOT_IN_PALETTE = frozenset({LIST, SEARCH, DIALOG, BOX, FORM, PALETTE, PATH})


class HelpPlace:
    """A node with its own paragraph in the help; one with a scope has the bindings of that scope."""

    scope: ClassVar[Scope | None] = None
    ABOUT: ClassVar[str] = ""
    BINDINGS: ClassVar[list[BindingType]]

    def __init_subclass__(cls, **options: bool) -> None:
        own = vars(cls)
        if "scope" in own and "BINDINGS" not in own:
            cls.BINDINGS = own["scope"].bindings
        super().__init_subclass__(**options)

    @property
    def about(self) -> str:
        """The help paragraph with the current keys."""
        return with_keys(self.ABOUT)


def places_around(app: App[None]) -> Iterator[HelpPlace]:
    """Return the places whose keys work now, the innermost first."""
    start = app.screen.focused or app.screen
    return (node for node in start.ancestors_with_self if isinstance(node, HelpPlace))


def actions_on(screen: Screen[object]) -> Iterator[tuple[Action, DOMNode]]:
    """Yield the actions that the palette offers on a screen, each with the node that runs it."""
    everything: tuple[DOMNode, ...] = (screen.app, screen, *screen.query("*"))
    nodes = {scope: node for node in everything if (scope := getattr(node, "scope", None)) is not None}
    for action in ACTIONS:
        node = nodes.get(action.scope)
        if (
            node is not None
            and action.scope not in _NOT_IN_PALETTE
            and node.check_action(action.call.partition("(")[0], ())
        ):
            yield action, node


def actions_here(screen: Screen[object]) -> Iterator[Action]:
    """Return the actions whose keys work now: those of the screen and of the focused place on it."""
    found = {active.binding.id for active in screen.active_bindings.values() if active.enabled}
    return (action for action in ACTIONS if action.id in found or action.always)
