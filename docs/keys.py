"""Writes the page of all keys from the registry of actions.

usage: python -m docs.keys
"""

from pathlib import Path

from dlbricks_tui.tui.actions.action import Action
from dlbricks_tui.tui.actions.registry import actions_in
from dlbricks_tui.tui.key_names import shown
from dlbricks_tui.tui.screens.help import TITLES

PAGE = Path(__file__).parent / "keys.md"
HEAD = """# Keys

What every key of the [workbench](workbench.md) does. `?` shows the part of it that counts where you are.

An action gets [other keys](settings.md#keys) by its name, which stands in the last column.
"""


def page() -> str:
    """The page."""
    parts = [HEAD]
    for scope, title in TITLES.items():
        rows = [f"| {_keys(it)} | {it.help} | `{it.id}` |" for it in actions_in(scope)]
        if rows:
            parts.append("\n".join([f"## {title}", "", "| key | | name |", "|---|---|---|", *rows, ""]))
    return "\n".join(parts)


def _keys(action: Action) -> str:
    return " ".join(f"`{shown(key)}`" for key in action.keys)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
