"""The page of all commands, from their parsers."""

from docs.generators.examples import EXAMPLES
from docs.generators.markdown import MARK, plain, table
from docs.generators.parsers import CommandPage, Parameter, commands, general

HEAD = f"""{MARK}# Commands

`dlbricks` opens the [workbench](../guides/workbench.md), and `dlbricks model.onnx` opens it on a model. `dlbricks COMMAND --help`
prints what this page says of a command. `python -m dlbricks_tui` is the same as `dlbricks`.

## Rules for all commands

- **Standard output is data, standard error is everything else.** `dlbricks tree vgg16 > tree.txt` writes only the tree
  to the file. Progress, warnings and errors stay on the terminal.
- **JSON.** `--json` prints [one JSON document](json.md) on one line; `--json-schema` prints its schema.
- **Files** are written only where you name them, as in `dlbricks report -o DIR`.
- **Colours** appear on terminals only, and not if `NO_COLOR` is set.
- **Width.** Tables fit the width of the terminal. In a pipe or a file they are complete. `COLUMNS` overrides both.
- **The exit status** is one of these:

| status | meaning |
|---|---|
| 0 | done |
| 1 | done with failures, each of which is named, or with a negative verdict, such as `slower` |
| 2 | wrong command line or input: one line says what is wrong and what to do |
| 130 | interrupted |

## Options of all commands

These stand before the command. `--data-dir` may also stand after it.

"""


def page() -> str:
    """Return the text of the page."""
    found = commands()
    every = [
        ("--data-dir DIR", "the [folder of your results](files.md#your-data), caches, settings and logs"),
        *((it.written, plain(it.about)) for it in general()),
    ]
    listed = [(f"[`{it.name}`](#{anchor(it.name)})", plain(it.about)) for it in found if it.name.count(" ") == 1]
    return "\n".join(
        [
            HEAD + table(("option", "meaning"), [(f"`{option}`", about) for option, about in every]),
            f"## All commands\n\n{table(('command', 'does'), listed)}",
            *map(section, found),
        ]
    )


def anchor(name: str) -> str:
    """Return the anchor of a command's section."""
    return name.replace(" ", "-")


def section(command: CommandPage) -> str:
    """Return the section about a command."""
    parts = [f"{'#' * (command.name.count(' ') + 1)} {command.name}\n", f"{_sentence(command.about)}\n"]
    if command.name in EXAMPLES:
        parts.append(f"Example: `{EXAMPLES[command.name]}`\n")
    if command.notes:
        parts.append(f"{plain(command.notes.strip())}\n")
    if command.parameters:
        rows = [(f"`{it.written}`", plain(it.about), _default(it)) for it in command.parameters]
        parts.append(table(("argument or option", "meaning", "default"), rows))
    return "\n".join(parts)


def _sentence(about: str) -> str:
    return f"{about[0].upper()}{about[1:]}."


def _default(parameter: Parameter) -> str:
    link = f"setting [{parameter.setting}](settings.md#all-settings)" if parameter.setting else ""
    told = "" if parameter.setting and "your settings" in parameter.default else parameter.default
    return "; ".join(filter(None, (plain(told), link)))
