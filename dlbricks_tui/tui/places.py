"""Where on a screen an action applies: the nodes that have a scope."""

from collections.abc import Iterator

from textual.app import App
from textual.dom import DOMNode
from textual.screen import Screen

from dlbricks_tui.tui.actions.action import Action, Scope
from dlbricks_tui.tui.actions.registry import ACTIONS
from dlbricks_tui.tui.key_words import spelled

# Actions that belong to where one types or reads: nobody looks for them by name.
_UNNAMED = frozenset({Scope.LIST, Scope.SEARCH, Scope.DIALOG, Scope.BOX, Scope.FORM, Scope.PALETTE, Scope.PATH})


def scope_of(node: DOMNode) -> Scope | None:
    """The scope of a node, None where it has none."""
    scope = getattr(node, "scope", None)
    return scope if isinstance(scope, Scope) else None


def about_of(node: DOMNode) -> str:
    """What a node says of itself in the help."""
    return spelled(getattr(node, "ABOUT", ""))


def places_around(app: App[None]) -> Iterator[DOMNode]:
    """The nodes with a scope that see the keys now, the innermost first."""
    start = app.screen.focused or app.screen
    return (node for node in start.ancestors_with_self if scope_of(node) is not None)


def actions_on(screen: Screen[object]) -> Iterator[tuple[Action, DOMNode]]:
    """All that can be done on a screen, with the node that does it."""
    nodes = {scope_of(node): node for node in (screen.app, screen, *screen.query("*")) if scope_of(node) is not None}
    for action in ACTIONS:
        node = nodes.get(action.scope)
        if node is not None and action.scope not in _UNNAMED and node.check_action(action.method, ()):
            yield action, node


def actions_here(screen: Screen[object]) -> Iterator[Action]:
    """All that a key does now: on this screen and where on it one is."""
    found = {active.binding.id for active in screen.active_bindings.values() if active.enabled}
    return (action for action in ACTIONS if action.id in found or action.always)
