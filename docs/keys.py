"""Write the page of all keys from the registry of actions.

usage: python -m docs.keys
"""

from pathlib import Path

from dlbricks_tui.tui.keys.actions import Action
from dlbricks_tui.tui.keys.keymap import shown
from dlbricks_tui.tui.keys.registry import SCOPES

PAGE = Path(__file__).parent / "keys.md"
HEAD = """# Keys

All keys of the [workbench](workbench.md). `?` shows those that work where you are.

The [keymap of the config file](settings.md#keys) gives other keys to an action by its name, in the last column.
"""


def page() -> str:
    """Return the text of the page."""
    parts = [HEAD]
    for scope in SCOPES:
        rows = [f"| {_keys(it)} | {it.help} | `{it.id}` |" for it in scope.actions]
        parts.append("\n".join([f"## {scope.title}", "", "| key | action | name |", "|---|---|---|", *rows, ""]))
    return "\n".join(parts)


def _keys(action: Action) -> str:
    return " ".join(f"`{shown(key)}`" for key in action.keys)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
