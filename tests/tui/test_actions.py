import pytest
from textual.dom import DOMNode

from dlbricks_tui.settings import DataFolder
from dlbricks_tui.tui.actions.action import Action, Scope
from dlbricks_tui.tui.actions.chains import CHAINS
from dlbricks_tui.tui.actions.registry import ACTIONS, actions_in
from dlbricks_tui.tui.app import DlbricksApp
from dlbricks_tui.tui.places import scope_of
from dlbricks_tui.tui.screens.help import TITLES
from tests.tui.bench import app_on, running

# tmux and screen keep their prefix to themselves; a terminal cannot tell ctrl+h, i, j, m and [ from backspace, tab,
# enter and escape; it stops at ctrl+s until ctrl+q.
SWALLOWED = {f"ctrl+{letter}" for letter in "abhijmqs["} | {"ctrl+left_square_bracket"}


@pytest.mark.parametrize("action", ACTIONS, ids=lambda action: action.id)
def test_no_key_is_one_that_a_terminal_or_tmux_swallows(action: Action) -> None:
    assert action.keys
    assert SWALLOWED.isdisjoint(action.keys)
    # Where it means anything else, who presses it waits for the shell.
    assert ("ctrl+z" in action.keys) == (action.id == "app.suspend_process")


def test_actions_are_told_apart_by_their_ids() -> None:
    assert len({action.id for action in ACTIONS}) == len(ACTIONS)


def test_of_every_scope_it_is_known_what_is_seen_beside_it() -> None:
    assert {scope for chain in CHAINS for scope in chain} == {action.scope for action in ACTIONS}


@pytest.mark.parametrize("chain", CHAINS, ids=lambda chain: chain[0].value)
def test_no_key_means_two_things_at_once(chain: tuple[Scope, ...]) -> None:
    keys = [key for scope in chain for action in actions_in(scope) for key in action.keys]
    assert sorted(keys) == sorted(set(keys))


@pytest.mark.parametrize("action", ACTIONS, ids=lambda action: action.id)
def test_every_action_is_in_the_help_under_a_heading(action: Action) -> None:
    assert TITLES[action.scope] and action.help.endswith(".")


def test_wherever_one_is_there_is_a_key_to_get_out() -> None:
    assert {key for action in ACTIONS if action.method in ("quit", "close", "clear") for key in action.keys} == {
        "q",
        "ctrl+c",
        "escape",
    }


async def test_every_action_has_a_method_where_it_applies(measured: DataFolder) -> None:
    app = app_on(measured)
    async with running(app):
        nodes = {scope_of(node): node for node in _nodes(app)}
        here = [(action, nodes[action.scope]) for action in ACTIONS if action.scope in nodes]
        assert {action.scope for action, _ in here} >= {Scope.EVERYWHERE, Scope.WORKBENCH, Scope.MODELS, Scope.ESTIMATE}
        for action, node in here:
            assert callable(getattr(node, f"action_{action.method}", None)), f"{action.id} does nothing"


def _nodes(app: DlbricksApp) -> list[DOMNode]:
    nodes: list[DOMNode] = [app, app.screen, *app.screen.query("*")]
    return nodes
