"""Tests of all screens and actions, and of the pictures of the docs."""

import ast
import importlib
import pkgutil
import re
import string
from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from textual.actions import parse
from textual.binding import Binding
from textual.dom import DOMNode
from textual.screen import Screen

import dlbricks_tui.tui
from dlbricks_tui.tui.app import DlbricksApp
from dlbricks_tui.tui.keys.scopes import ACTIONS, CHAINS, RESULTS, SCOPES, WORKBENCH
from dlbricks_tui.tui.widgets.screens import PanelledScreen
from docs import pictures
from tests.tui import actions_run, snapshots

TESTS = Path(__file__).parent


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


NODES = tuple(_nodes())
# Those with subclasses are bases.
SCREENS = sorted((it for it in NODES if issubclass(it, Screen) and not it.__subclasses__()), key=lambda it: it.__name__)
FULL = [it for it in SCREENS if issubclass(it, PanelledScreen)]


def _texts() -> set[object]:
    """Return the constants in the code of the tests; comments are none."""
    trees = (ast.parse(path.read_text(encoding="utf-8")) for path in TESTS.glob("test_*.py"))
    return {node.value for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Constant)}


def test_every_screen_has_a_snapshot_that_a_test_compares() -> None:
    # `check` finds that a listed snapshot shows another screen.
    listed, texts = snapshots.snapshots_of_screens(), _texts()
    for screen in (it.__name__ for it in SCREENS):
        assert screen in listed, f"add a snapshot of {screen}, and its line to {snapshots.SCREENS_FILE.name}"
        name = listed[screen]
        assert (snapshots.FOLDER / f"{name}.txt").is_file(), f"{screen} has no {name}.txt"
        assert name in texts, f"no test compares {name}.txt"


@pytest.mark.parametrize("screen", FULL, ids=lambda it: it.__name__)
def test_every_screen_says_above_its_keys_what_measures(screen: type[Screen[Any]]) -> None:
    shown = (snapshots.FOLDER / f"{snapshots.snapshots_of_screens()[screen.__name__]}.txt").read_text("utf-8")
    above, _ = next(both for both in pairwise(shown.splitlines()) if both[1].endswith("  q quit"))
    assert above.startswith((" nothing measures", " running "))


@pytest.mark.parametrize("screen", FULL, ids=lambda it: it.__name__)
def test_every_screen_has_a_picture_in_the_docs(screen: type[Screen[Any]]) -> None:
    # `docs.pictures` stops if the keys of a picture lead to another screen.
    found = [it.name for it in pictures.PICTURES if it.screen == screen.__name__]
    assert found, "add it to docs/pictures.py"
    assert all((pictures.FOLDER / f"{name}.svg").is_file() for name in found), "make screenshots takes them"


def test_every_action_is_run_by_a_test_that_exists() -> None:
    # `conftest.py` checks that each listed test runs its actions.
    listed = dict(actions_run.listed())
    actions = [action for ran in listed.values() for action in ran]
    # All screens go to their panels in one way; `check_layout` checks their keys.
    expected = [it.id for it in ACTIONS if not it.call.startswith(("go_to(", "step_panel(")) or it.scope is RESULTS]
    assert sorted(actions) == sorted(expected), f"{actions_run.FILE.name} names one test of each"
    tests: dict[str, set[str]] = {}
    for test in listed:
        path, _, name = test.partition("::")
        if path not in tests:
            tree = ast.parse((TESTS.parents[1] / path).read_text(encoding="utf-8"))
            tests[path] = {it.name for it in tree.body if isinstance(it, ast.AsyncFunctionDef | ast.FunctionDef)}
        assert name.partition("[")[0] in tests[path], f"{actions_run.FILE.name} names {test}, which is not there"


# tmux and screen keep their prefix to themselves; a terminal cannot tell ctrl+h, i, j, m and [ from backspace, tab,
# enter and escape; it stops at ctrl+s until ctrl+q.
RESERVED_KEYS = {f"ctrl+{letter}" for letter in "abhijmqs["} | {"ctrl+left_square_bracket"}


def test_no_key_is_reserved_by_terminals_or_tmux() -> None:
    for action in ACTIONS:
        assert action.keys, action.id
        assert RESERVED_KEYS.isdisjoint(action.keys), action.id
        # Elsewhere the user would expect the shell.
        assert ("ctrl+z" in action.keys) == (action.id == "app.suspend_process")


def test_every_action_has_an_id_and_a_help_sentence_and_every_scope_a_heading() -> None:
    assert len({action.id for action in ACTIONS}) == len(ACTIONS)
    assert not [action.id for action in ACTIONS if not action.label or not action.help.endswith(".")]
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


def test_every_place_has_a_key_that_leaves_it() -> None:
    assert {key for action in ACTIONS if action.method in ("quit", "close", "clear") for key in action.keys} == {
        "q",
        "ctrl+c",
        "escape",
    }


def test_every_offered_action_has_a_method() -> None:
    doers: dict[str, list[type[DOMNode]]] = defaultdict(list)
    for node in NODES:
        for binding in node.__dict__.get("BINDINGS", ()):
            if isinstance(binding, Binding) and binding.id is not None:
                doers[binding.id].append(node)
    assert set(doers) == {action.id for action in ACTIONS}
    for action in ACTIONS:
        for node in doers[action.id]:
            namespace, name, _ = parse(action.call)
            around = [it for it in SCREENS if vars(it).get("scope") in action.scope.outer]
            (doer,) = around if namespace == "screen" else [DlbricksApp if namespace == "app" else node]
            assert callable(getattr(doer, f"action_{name}", None)), f"{action.id} does nothing in {node}"


DOCS = Path(__file__).parents[2] / "docs"
_SHOWS = re.compile(r"!\[[^\]]*\]\(([^)\s]+)\)")
PAGES = (DOCS.parent / "README.md", *sorted(DOCS.rglob("*.md")))
SHOWN = [(text, picture) for text in PAGES for picture in sorted({*_SHOWS.findall(text.read_text(encoding="utf-8"))})]


@pytest.mark.parametrize(("text", "picture"), SHOWN, ids=[f"{text.stem}-{Path(shown).stem}" for text, shown in SHOWN])
def test_every_picture_in_the_docs_exists(text: Path, picture: str) -> None:
    assert (text.parent / picture).is_file(), "make screenshots takes it"
