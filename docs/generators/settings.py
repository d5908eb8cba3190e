"""The page of all settings, from their declarations."""

from collections import defaultdict
from typing import Any

from dlbricks_tui.config.config import CONFIGURED, in_file, variable_of
from dlbricks_tui.settings.setting import Setting
from dlbricks_tui.tui.preferences import COLOURS
from dlbricks_tui.wording.numbers import capitalised
from docs.generators.markdown import MARK, plain, table
from docs.generators.parsers import commands

HEAD = f"""{MARK}# Settings

The config file is `config.toml` in [your data folder](files.md#your-data), in TOML:

```toml
[workbench]
theme = "high-contrast"

[cutting]
granularity = 3

[keys]
models.sort = "O"
app.next_theme = ["T", "f6"]
```

`dlbricks config locate` prints its path, `dlbricks config` lists every setting with its value and its origin, and
`dlbricks config validate` lists every mistake with its line. In the workbench, `,` opens the settings; a change there is
written to the file at once, and your comments stay. If you edit the file, changes take effect when you save it; those of
`cutting` and `estimate` at the next start.

![The settings on a screen of the workbench](../pictures/settings.svg)

## Precedence

From highest to lowest:

1. an option of a command, such as `--granularity`;
2. `--set NAME=VALUE` before the command, as in `dlbricks --set workbench.theme=light`;
3. the environment variable, as in `DLBRICKS_CUTTING_GRANULARITY=2 dlbricks tree resnet50_v1`;
4. the config file;
5. the default.

An unknown name or a value that is not allowed is an error: commands exit with status 2 and one line with the file, the
line, the setting and the allowed values. An open workbench shows the error and keeps the previous settings.

## All settings

The settings under `run` apply to `dlbricks run` and to the box before a run. If `run.runtime` cannot run the format of a
model, the usual runtime of that format is used.

"""
KEYS = """
## Keys

Under `[keys]`, give an action other keys: one key or a list. [Keys](keys.md) lists the names of the actions. Screens show
the first key of a list. The default keys of the action become free.

Write keys as the help shows them (`^x`, `esc`, `pgdn`) or in words (`ctrl+x`, `escape`, `shift+tab`, `alt+x`, `f5`).
These keys are refused with a message, and all keys stay as they were:

- a key of another action in the same place;
- a key that terminals do not pass on: `ctrl+a`, `ctrl+b`, `ctrl+h`, `ctrl+i`, `ctrl+j`, `ctrl+m`, `ctrl+s`, `ctrl+q`;
- a letter for an action that is used while you type.

`ctrl+c` always quits, and `esc` always closes a box.
"""
THEMES = """
## Themes

`workbench.theme` is `dark`, `light`, `high-contrast`, `colour-blind`, `terminal`, or the name of a file in the folder
`themes` of [your data folder](files.md#your-data). Such a file sets `dark` to `true` or `false`, and in `[colours]` all
of these names, each to a value such as `"#6cb6ff"` or a colour of the terminal such as `"ansi_blue"`:

"""


def page() -> str:
    """Return the text of the page."""
    options = _command_line_options()
    rows = [
        (
            f"`{it.config}`",
            plain(it.kind.allowed),
            _default(it),
            plain(f"{capitalised(it.about)}."),
            ", ".join(f"`{option}`" for option in options[it.config]) or "",
            f"`{variable_of(it)}`",
        )
        for it in CONFIGURED
    ]
    headings = ("setting", "values", "default", "meaning", "option", "environment variable")
    colours = ", ".join(f"`{it}`" for it in COLOURS)
    return f"{HEAD}{table(headings, rows)}{KEYS}{THEMES}{colours}.\n"


def _default(setting: Setting[Any]) -> str:
    return "open" if setting.default is None else f"`{in_file(setting.default)}`"


def _command_line_options() -> dict[str, list[str]]:
    """Return the options of commands by the setting that they override."""
    found: dict[str, list[str]] = defaultdict(list)
    for parameter in (it for command in commands() for it in command.parameters):
        if parameter.setting and parameter.name not in found[parameter.setting]:
            found[parameter.setting].append(parameter.name)
    return found
