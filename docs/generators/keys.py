"""The page of all keys, from the registry of actions."""

import re

from dlbricks_tui.tui.keys.keymap import shown
from dlbricks_tui.tui.keys.scopes import SCOPES, Action
from docs.generators.markdown import MARK, table

HEAD = f"""{MARK}# Keys

All keys of the [workbench](../guides/workbench.md). `?` shows those that work where you are.

The [keymap of the config file](settings.md#keys) gives other keys to an action by its name, in the last column.

Numbers go to panels, capital letters of the workbench ask questions. `m` measures, `p` pauses and resumes, `x` cancels, `s`
sorts, `d` deletes and `e` exports on every screen. `space` marks a row, `a` all of them, and what you do next is done to the
marked rows.

## Letters by screen
"""

BELOW = """Those of every list, such as `j` and `k`, and of boxes are below.
"""


def page() -> str:
    """Return the text of the page."""
    scopes = ((it.title, [(_keys(action), action.help, f"`{action.id}`") for action in it.actions]) for it in SCOPES)
    return "\n".join(
        [
            HEAD,
            by_screen(),
            BELOW,
            *(f"## {title}\n\n{table(('key', 'action', 'name'), rows)}" for title, rows in scopes),
        ]
    )


# The titles of the columns, by the names of the screens.
_SCREENS = {
    "workbench": "workbench",
    "variants": "variants",
    "analysis": "analysis",
    "scenario": "load",
    "trace": "trace",
    "language": "language",
    "systems": "systems",
    "fleet": "fleet",
    "results": "results",
    "corpus": "repeats",
    "marked": "compare",
    "run": "run",
}
# Those of lists and panels are the same everywhere, or follow below.
_LETTER = re.compile(r"[a-zA-Z]")


def by_screen() -> str:
    """Return a table with a row for each letter, and what it does on each screen and in its panels."""
    labels: dict[str, dict[str, list[str]]] = {}
    for scope in SCOPES:
        screen = next((it.name for it in (scope, *scope.outer) if it.name in _SCREENS), None)
        for action in scope.actions if screen else ():
            for key in filter(_LETTER.fullmatch, action.keys):
                told = labels.setdefault(key, {}).setdefault(screen or "", [])
                told += [action.label] if action.label not in told else []
    rows = [
        (f"`{key}`", *(", ".join(labels[key].get(screen, [])) for screen in _SCREENS))
        for key in sorted(labels, key=lambda it: (it.lower(), it.isupper()))
    ]
    return table(("key", *_SCREENS.values()), rows)


def _keys(action: Action) -> str:
    return " ".join(f"`{shown(key)}`" for key in action.keys)
