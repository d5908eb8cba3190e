"""The page of all keys, from the registry of actions."""

from dlbricks_tui.tui.keys.actions import Action
from dlbricks_tui.tui.keys.keymap import shown
from dlbricks_tui.tui.keys.registry import SCOPES
from docs.generators.markdown import MARK, table

HEAD = f"""{MARK}# Keys

All keys of the [workbench](../guides/workbench.md). `?` shows those that work where you are.

The [keymap of the config file](settings.md#keys) gives other keys to an action by its name, in the last column.
"""


def page() -> str:
    """Return the text of the page."""
    scopes = ((it.title, [(_keys(action), action.help, f"`{action.id}`") for action in it.actions]) for it in SCOPES)
    return "\n".join([HEAD, *(f"## {title}\n\n{table(('key', 'action', 'name'), rows)}" for title, rows in scopes)])


def _keys(action: Action) -> str:
    return " ".join(f"`{shown(key)}`" for key in action.keys)
