"""The page of JSON documents: a recorded example of each command, and the fields of those that have a schema."""

import dataclasses
import json
from typing import Any, get_args, get_type_hints

from docs.generators.documents import Example, command_of, examples
from docs.generators.fields import field_table, sentence_of
from docs.generators.markdown import MARK, plain, table
from docs.generators.parsers import CommandPage, commands

HEAD = f"""{MARK}# JSON documents

`--json` prints one document on standard output. Keys stay as they are; new ones may be added. Each example was printed by
the command above it, on the [recorded results](../demonstration.md) of `dlbricks demo` where nothing has to be measured.
Lists are shortened to their first entries, and numbers to five digits.

`--json-schema` prints the schema of a document. The tables say the same: `None` is null, a tuple is a list, and an
enumeration is one of its values. The [Python API](api.md) has the classes.

"""
# Commands that print the document of another one, in words.
LIKE = {
    "dlbricks runs pause": "an entry of `dlbricks runs`",
    "dlbricks runs cancel": "an entry of `dlbricks runs`",
    "dlbricks runs resume": "an entry of `dlbricks runs`, or the document of `dlbricks run` if it goes on with an ended run",
    "dlbricks fleet run": "the document of `dlbricks fleet status`",
    "dlbricks fleet pause": "the document of `dlbricks fleet status`",
    "dlbricks fleet cancel": "the document of `dlbricks fleet status`",
    "dlbricks fleet resume": "the document of `dlbricks fleet status`",
    "dlbricks fleet add": "the document of `dlbricks fleet status`",
}
_WIDTH = 100


def page() -> str:
    """Return the text of the page."""
    kinds: dict[str, type] = {}
    sections = []
    for command in commands():
        found = [it for name, it in examples().items() if command_of(name) == command.name]
        if not found:
            continue
        sections.append(_section(command, found))
        for kind in () if command.document is None else _dataclasses_in(command.document.loaded()):
            kinds |= _parts_of(kind)
    parts = [
        f"### {name}\n\n{plain(sentence_of(kind))}\n\n{field_table(kind)}\n" for name, kind in sorted(kinds.items())
    ]
    like = (
        f"## Other commands\n\n{table(('command', 'prints'), [(f'`{name}`', what) for name, what in LIKE.items()])}\n"
    )
    return "".join([HEAD, *sections, like, "## Parts of documents\n\n", *parts]).rstrip("\n") + "\n"


def written(value: Any, indent: str = "") -> str:
    """Return JSON text in which what fits on a line is on one."""
    line = json.dumps(value, ensure_ascii=False)
    if len(indent) + len(line) <= _WIDTH or not isinstance(value, dict | list) or not value:
        return line
    inner = f"{indent}  "
    if isinstance(value, dict):
        items = [f"{inner}{json.dumps(name)}: {written(it, inner)}" for name, it in value.items()]
        return "{\n" + ",\n".join(items) + f"\n{indent}}}"
    return "[\n" + ",\n".join(f"{inner}{written(it, inner)}" for it in value) + f"\n{indent}]"


def _section(command: CommandPage, found: list[Example]) -> str:
    parts = [f"## {command.name}\n\n"]
    parts += [f"    {it.command}\n\n```json\n{written(it.document)}\n```\n\n" for it in found]
    if command.document is not None:
        prefix = "A list of " if command.document.many else ""
        # A command may print documents of one of several classes.
        for kind in _dataclasses_in(command.document.loaded()):
            parts.append(f"{prefix}`{kind.__name__}`: {plain(sentence_of(kind))}\n\n{field_table(kind)}\n")
    return "".join(parts)


def _parts_of(kind: type) -> dict[str, type]:
    """Return the dataclasses in the fields of another one, and in theirs, by name."""
    found: dict[str, type] = {}
    waiting = list(_inside(kind))
    while waiting:
        each = waiting.pop()
        if each.__name__ not in found:
            found[each.__name__] = each
            waiting.extend(_inside(each))
    return found


def _inside(kind: type) -> list[type]:
    hints = get_type_hints(kind)
    return [it for each in dataclasses.fields(kind) for it in _dataclasses_in(hints[each.name])]


def _dataclasses_in(hint: Any) -> list[type]:
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        return [hint]
    return [it for argument in get_args(hint) for it in _dataclasses_in(argument)]
