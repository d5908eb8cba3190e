"""Every screen has a snapshot and, unless it is a box, a picture in the docs; every action is run by a test."""

import ast
import importlib
import pkgutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from textual.screen import Screen

import dlbricks_tui.tui
from dlbricks_tui.tui.keys.registry import ACTIONS
from dlbricks_tui.tui.widgets.screens import PanelledScreen
from docs import pictures
from tests.tui import actions_run, snapshots
from tests.tui.application import SNAPSHOT_SIZE

TESTS = Path(__file__).parent


def _screens() -> Iterator[type[Screen[Any]]]:
    """Yield the classes of all screens and boxes; those with subclasses are bases."""
    for module in pkgutil.walk_packages(dlbricks_tui.tui.__path__, "dlbricks_tui.tui."):
        importlib.import_module(module.name)
    todo = [*Screen.__subclasses__()]
    for screen in todo:
        todo += screen.__subclasses__()
        if screen.__module__.startswith("dlbricks_tui.") and not screen.__subclasses__():
            yield screen


SCREENS = sorted(_screens(), key=lambda it: it.__name__)
FULL = [it for it in SCREENS if issubclass(it, PanelledScreen)]


def _texts() -> set[object]:
    """Return the constants in the code of the tests; comments are none."""
    trees = (ast.parse(path.read_text(encoding="utf-8")) for path in TESTS.glob("test_*.py"))
    return {node.value for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Constant)}


def test_there_is_a_list_of_screens() -> None:
    assert len(FULL) > 8 and len(SCREENS) > 30


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
    assert shown.splitlines()[SNAPSHOT_SIZE[1] - 2].startswith((" nothing measures", " running "))


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
    assert sorted(actions) == sorted(it.id for it in ACTIONS), f"{actions_run.FILE.name} names one test of each"
    tests: dict[str, set[str]] = {}
    for test in listed:
        path, _, name = test.partition("::")
        if path not in tests:
            tree = ast.parse((TESTS.parents[1] / path).read_text(encoding="utf-8"))
            tests[path] = {it.name for it in tree.body if isinstance(it, ast.AsyncFunctionDef | ast.FunctionDef)}
        assert name.partition("[")[0] in tests[path], f"{actions_run.FILE.name} names {test}, which is not there"
