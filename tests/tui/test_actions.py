import importlib
import pkgutil
import string
from collections import defaultdict
from collections.abc import Iterator

from textual.actions import parse
from textual.binding import Binding
from textual.dom import DOMNode

import dlbricks_tui.tui
from dlbricks_tui.tui.app import DlbricksApp
from dlbricks_tui.tui.keys.registry import ACTIONS, CHAINS, SCOPES
from dlbricks_tui.tui.keys.scopes import WORKBENCH

# tmux and screen keep their prefix to themselves; a terminal cannot tell ctrl+h, i, j, m and [ from backspace, tab,
# enter and escape; it stops at ctrl+s until ctrl+q.
RESERVED_KEYS = {f"ctrl+{letter}" for letter in "abhijmqs["} | {"ctrl+left_square_bracket"}


def test_no_key_is_reserved_by_terminals_or_tmux() -> None:
    for action in ACTIONS:
        assert action.keys, action.id
        assert RESERVED_KEYS.isdisjoint(action.keys), action.id
        # Elsewhere the user would expect the shell.
        assert ("ctrl+z" in action.keys) == (action.id == "app.suspend_process")


def test_action_ids_are_unique() -> None:
    assert len({action.id for action in ACTIONS}) == len(ACTIONS)


def test_every_scope_has_actions_of_its_own_and_a_heading_in_the_help() -> None:
    assert all(scope.actions and scope.title for scope in SCOPES)
    assert all(action.id.startswith(f"{scope.name}.") for scope in SCOPES for action in scope.actions)
    assert len({scope.title for scope in SCOPES}) == len(SCOPES)


def test_no_key_runs_two_actions_in_one_place() -> None:
    for chain in CHAINS:
        keys = [key for scope in chain for action in scope.actions for key in action.keys]
        assert sorted(keys) == sorted(set(keys)), chain[0].name


def test_six_keys_mean_the_same_on_every_screen_or_are_free() -> None:
    meanings = {"m": "measure", "p": "pause/resume", "x": "cancel", "s": "sort", "d": "delete", "e": "export"}
    for key, meaning in meanings.items():
        others = {action.id: action.label for action in ACTIONS if key in action.keys and action.label != meaning}
        assert not others, key


def test_numbers_go_to_panels_and_capital_letters_of_the_workbench_ask_questions() -> None:
    numbers = [action for action in ACTIONS if set(action.keys) & set(string.digits)]
    assert all(action.method.startswith("go_to_") for action in numbers)
    asked = {key for action in WORKBENCH.actions for key in action.keys if key.isupper()}
    shows = {key for action in WORKBENCH.actions if action.method.startswith("show_") for key in action.keys}
    assert asked == {key for key in shows if key.isupper()} == set("AFJLMPQRSTUV")


def test_every_action_has_a_help_sentence() -> None:
    assert not [action.id for action in ACTIONS if not action.label or not action.help.endswith(".")]


def test_every_place_has_a_key_that_leaves_it() -> None:
    assert {key for action in ACTIONS if action.method in ("quit", "close", "clear") for key in action.keys} == {
        "q",
        "ctrl+c",
        "escape",
    }


def test_every_offered_action_has_a_method() -> None:
    doers: dict[str, list[type[DOMNode]]] = defaultdict(list)
    for node in _nodes():
        for binding in node.__dict__.get("BINDINGS", ()):
            if isinstance(binding, Binding) and binding.id is not None:
                doers[binding.id].append(node)
    assert set(doers) == {action.id for action in ACTIONS}
    for action in ACTIONS:
        for node in doers[action.id]:
            namespace, name, _ = parse(action.call)
            doer = DlbricksApp if namespace == "app" else node
            assert callable(getattr(doer, f"action_{name}", None)), f"{action.id} does nothing in {node}"


def _nodes() -> Iterator[type[DOMNode]]:
    """Return all our screens, boxes and widgets, and the application."""
    for module in pkgutil.walk_packages(dlbricks_tui.tui.__path__, "dlbricks_tui.tui."):
        importlib.import_module(module.name)
    found = {DOMNode}
    while found:
        node = found.pop()
        found.update(node.__subclasses__())
        if node.__module__.startswith("dlbricks_tui."):
            yield node
