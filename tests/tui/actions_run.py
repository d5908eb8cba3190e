"""The actions that tests run the way a user does: by a key, or by a command of the palette.

`actions_run.txt` names one test for each action. `conftest.py` checks that this test really runs it.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from textual.actions import parse
from textual.app import App
from textual.dom import DOMNode

FILE = Path(__file__).parent / "actions_run.txt"


def listed() -> Mapping[str, list[str]]:
    """Return the actions that each test is listed for."""
    found = defaultdict[str, list[str]](list)
    for entry in FILE.read_text(encoding="utf-8").splitlines():
        action, test = entry.split(maxsplit=1)
        found[test].append(action)
    return found


def record(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Return a set that gets the id of each action that Textual runs from now on."""
    found = set[str]()
    dispatch: Callable[..., Any] = App._dispatch_action

    async def recorded(app: App[None], node: DOMNode, name: str, parameters: Any) -> bool:
        # Before the action may close a box.
        ids = _ids(app, node, name, parameters)
        is_done: bool = await dispatch(app, node, name, parameters)
        if is_done:
            found.update(ids)
        return is_done

    monkeypatch.setattr(App, "_dispatch_action", recorded)
    return found


def _ids(app: App[None], node: DOMNode, name: str, parameters: Any) -> set[str]:
    # The keys of a panel or a box may run actions of the screen or of the application.
    around = (app.screen.focused or app.screen).ancestors_with_self if app.screen_stack else [node]
    bindings = (it for place in {node, *around} for kept in place._bindings.key_to_bindings.values() for it in kept)
    return {it.id for it in bindings if it.id is not None and parse(it.action)[1:] == (name, tuple(parameters))}
