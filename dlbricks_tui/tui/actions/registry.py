"""All actions, in the order in which help and key bar show them."""

from textual.binding import Binding, BindingType

from dlbricks_tui.tui.actions.action import Action, Scope
from dlbricks_tui.tui.actions.corpus import CORPUS, LIKENESS, UNIQUENESS
from dlbricks_tui.tui.actions.details import DETAILS
from dlbricks_tui.tui.actions.dialogs import BOX, CONFIG, ERROR, FORM, HIDDEN_MARKS, PALETTE, PATH, WELCOME
from dlbricks_tui.tui.actions.estimate import ESTIMATE
from dlbricks_tui.tui.actions.everywhere import DIALOG, EVERYWHERE, LIST, SEARCH
from dlbricks_tui.tui.actions.models import MODELS
from dlbricks_tui.tui.actions.results import (
    COLUMNS,
    CONTRAST,
    DELETE_RESULTS,
    HISTORY,
    PAIRS,
    RESULT,
    RESULT_TABLE,
    RESULTS,
)
from dlbricks_tui.tui.actions.run import CANCEL_RUN, RUN, RUNS, START_RUN
from dlbricks_tui.tui.actions.systems import DOCTOR, MACHINES, SYSTEM_LIST, SYSTEMS
from dlbricks_tui.tui.actions.tree import TREE
from dlbricks_tui.tui.actions.workbench import WORKBENCH

ACTIONS: tuple[Action, ...] = (
    *WELCOME,
    *ERROR,
    *PATH,
    *FORM,
    *PALETTE,
    *START_RUN,
    *CANCEL_RUN,
    *CONFIG,
    *COLUMNS,
    *DELETE_RESULTS,
    *HIDDEN_MARKS,
    *RUNS,
    *BOX,
    *RUN,
    *RESULT_TABLE,
    *RESULT,
    *HISTORY,
    *RESULTS,
    *PAIRS,
    *CONTRAST,
    *UNIQUENESS,
    *LIKENESS,
    *CORPUS,
    *SYSTEM_LIST,
    *MACHINES,
    *DOCTOR,
    *SYSTEMS,
    *MODELS,
    *TREE,
    *DETAILS,
    *ESTIMATE,
    *WORKBENCH,
    *SEARCH,
    *DIALOG,
    *LIST,
    *EVERYWHERE,
)
BY_ID = {action.id: action for action in ACTIONS}


def actions_in(scope: Scope) -> tuple[Action, ...]:
    """The actions of a scope."""
    return tuple(action for action in ACTIONS if action.scope is scope)


def bindings(*scopes: Scope) -> list[BindingType]:
    """What a widget of these scopes puts into its BINDINGS."""
    return [binding(action) for scope in scopes for action in actions_in(scope)]


def binding(action: Action) -> Binding:
    """What a widget puts into its BINDINGS for one action."""
    # A comma is what Textual has between keys.
    keys = ",".join("comma" if key == "," else key for key in action.keys)
    return Binding(
        keys,
        action.method,
        action.label,
        show=action.footer,
        tooltip=action.help,
        id=action.id,
        priority=action.always,
    )
