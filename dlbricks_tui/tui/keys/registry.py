"""All actions, in the order in which help and key bar show them."""

from textual.binding import Binding, BindingType

from dlbricks_tui.tui.keys import actions, scopes
from dlbricks_tui.tui.keys.actions import Action, Scope

_OF_SCREENS = tuple(it for it in vars(scopes).values() if isinstance(it, Scope) and it not in actions.SCOPES)
SCOPES: tuple[Scope, ...] = (*actions.SCOPES, *_OF_SCREENS)
_SURROUNDING = {outer for scope in SCOPES for outer in scope.outer}
# Panels and boxes before the screens around them.
_INNERMOST_FIRST = (*sorted(_OF_SCREENS, key=_SURROUNDING.__contains__), *reversed(actions.SCOPES))
ACTIONS: tuple[Action, ...] = tuple(action for scope in _INNERMOST_FIRST for action in scope.actions)
BY_ID = {action.id: action for action in ACTIONS}

_SCOPE_OF = {action.id: scope for scope in SCOPES for action in scope.actions}
# The scopes whose keys work at the same time, from the inside out, for each place where the focus can be. Within a
# chain a key has one meaning.
CHAINS = tuple((scope, *scope.outer) for scope in SCOPES if scope not in _SURROUNDING)


def scope_of(action: Action) -> Scope:
    return _SCOPE_OF[action.id]


def bindings(scope: Scope) -> list[BindingType]:
    """Return the Textual bindings of all actions of a scope."""
    return [binding(action) for action in scope.actions]


def binding(action: Action) -> Binding:
    # Textual separates keys by commas.
    keys = ",".join("comma" if key == "," else key for key in action.keys)
    return Binding(
        keys,
        action.call,
        action.label,
        show=action.footer,
        tooltip=action.help,
        id=action.id,
        priority=action.always,
    )
