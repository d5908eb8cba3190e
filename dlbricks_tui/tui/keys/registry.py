"""All actions, in the order in which help and key bar show them."""

from textual.binding import Binding, BindingType

from dlbricks_tui.tui.analysis import actions as analysis
from dlbricks_tui.tui.corpus import actions as corpus
from dlbricks_tui.tui.fleet import actions as fleet
from dlbricks_tui.tui.keys import actions
from dlbricks_tui.tui.keys.actions import Action, Scope
from dlbricks_tui.tui.language import actions as language
from dlbricks_tui.tui.marks import actions as marks
from dlbricks_tui.tui.results import actions as results
from dlbricks_tui.tui.run import actions as run
from dlbricks_tui.tui.scenario import actions as scenario
from dlbricks_tui.tui.systems import actions as systems
from dlbricks_tui.tui.trace import actions as trace
from dlbricks_tui.tui.variants import actions as variants
from dlbricks_tui.tui.workbench import actions as workbench

_SCREENS = (
    workbench.SCOPES,
    run.SCOPES,
    results.SCOPES,
    corpus.SCOPES,
    systems.SCOPES,
    analysis.SCOPES,
    variants.SCOPES,
    scenario.SCOPES,
    trace.SCOPES,
    language.SCOPES,
    fleet.SCOPES,
    marks.SCOPES,
)

# Of each screen the screen itself first, then its panels and boxes.
SCOPES: tuple[Scope, ...] = (*actions.SCOPES, *(scope for screen in _SCREENS for scope in screen))
# From the inside out.
_INNERMOST_FIRST = (*(scope for screen in _SCREENS for scope in (*screen[1:], screen[0])), *reversed(actions.SCOPES))
ACTIONS: tuple[Action, ...] = tuple(action for scope in _INNERMOST_FIRST for action in scope.actions)
BY_ID = {action.id: action for action in ACTIONS}

_SCOPE_OF = {action.id: scope for scope in SCOPES for action in scope.actions}
_SURROUNDING = {outer for scope in SCOPES for outer in scope.outer}
# The scopes whose keys work at the same time, from the inside out, for each place where the focus can be. Within a
# chain a key has one meaning.
CHAINS = tuple((scope, *scope.outer) for scope in SCOPES if scope not in _SURROUNDING)


def scope_of(action: Action) -> Scope:
    """Return the scope that declares an action."""
    return _SCOPE_OF[action.id]


def bindings(*scopes: Scope) -> list[BindingType]:
    """Return the Textual bindings of all actions of some scopes."""
    return [binding(action) for scope in scopes for action in scope.actions]


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
