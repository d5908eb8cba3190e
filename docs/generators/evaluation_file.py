"""The page of the file of an evaluation, from its JSON schema."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dlbricks_tui.evaluations.evaluation import schema
from docs.generators.markdown import MARK, plain, table

EXAMPLE = Path(__file__).with_name("evaluation_example.toml")
HEAD = f"""{MARK}# The file of an evaluation

The keys of a TOML file that [`dlbricks evaluate`](commands.md#dlbricks-evaluate) reads. `sample_models/evaluation.toml` can
be run as it is. This example has most of the keys:

```toml
{EXAMPLE.read_text(encoding="utf-8")}```

- A key that takes several values takes a single one without brackets, too. Lists in `[[runtime]]` give a combination for
  each of their values.
- Keys that are left out leave the choice to dlbricks, or require nothing.
- Nothing runs by accident: a file may set only variables that tune a framework, never those that name files, folders or
  libraries. It names no interpreter: frameworks run in the runtimes that you have registered.
- A file with a mistake is refused before anything is measured, in one line with the position and what to do:
  `nightly.toml, line 12, column 1: there is no key thread in [[runtime]]; did you mean threads?`
- `format` is raised if a file could mean something else than before. Earlier formats are read, later ones refused.
- `dlbricks evaluate --schema > evaluation.schema.json` writes the JSON schema. Editors that use
  [taplo](https://taplo.tamasfe.dev) read the one that the first line of a file names: `#:schema ./evaluation.schema.json`.

## Top of the file

"""


def page() -> str:
    """Return the text of the page."""
    root = schema()
    parts = [HEAD, key_table(root)]
    for name, each in root["properties"].items():
        many = each.get("type") == "array"
        part = each["items"] if many else each
        if part.get("type") == "object":
            heading = f"[[{name}]]" if many else f"[{name}]"
            parts.append(f"\n## Table {name}\n\n`{heading}`: {plain(part.get('description', ''))}\n\n{key_table(part)}")
    return "".join(parts)


def key_table(part: Any) -> str:
    """Return the table of the keys of a table of the file."""
    required = part.get("required", ())
    rows = []
    for name, each in part["properties"].items():
        about = each.get("description", "")
        rows.append((f"`{name}`", plain(about), _values(each), "yes" if name in required else ""))
    return table(("key", "meaning", "values", "required"), rows)


def _values(part: Any) -> str:
    """Return the allowed values in words."""
    return ", or ".join(dict.fromkeys(_alternatives(part)))


def _alternatives(part: Any) -> Iterator[str]:
    if "anyOf" in part:
        for each in part["anyOf"]:
            yield from _alternatives(each)
    elif "const" in part:
        yield f"`{part['const']}`"
    elif "enum" in part:
        yield ", ".join(f"`{each}`" for each in part["enum"])
    elif part.get("type") == "array":
        yield "tables" if part["items"].get("type") == "object" else "a list"
    elif "patternErrorMessage" in part:
        yield part["patternErrorMessage"]
    else:
        words = {"string": "text", "integer": "a whole number", "number": "a number", "boolean": "`true` or `false`"}
        yield words.get(str(part.get("type")), "a table" if part.get("type") == "object" else "")
