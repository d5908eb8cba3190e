"""The page of JSON documents: a recorded example of each command, and the fields of those that have a schema."""

import dataclasses
import json
from collections.abc import Mapping
from enum import Enum
from pathlib import Path
from types import NoneType
from typing import Any, get_args, get_origin, get_type_hints

from dlbricks_tui.api.documents import told_fields
from docs.generators.documents import Example, command_of, examples
from docs.generators.fields import fields_of, sentence_of
from docs.generators.markdown import MARK, plain, table
from docs.generators.parsers import CommandPage, commands

HEAD = f"""{MARK}# JSON documents

`--json` prints one document on standard output. Keys stay as they are; new ones may be added. Each example was printed by
the command above it, on the [recorded results](../guides/workbench.md#demonstration) of `dlbricks demo` where nothing has to be measured.
Lists are shortened to their first entries, and numbers to five digits.

`--json-schema` prints the schema of a document; the tables say the same. The [Python API](api.md) returns the documents as
objects of the classes that are named here.

"""
# Commands that print the document of another one, in words.
LIKE = {
    **dict.fromkeys(
        (f"dlbricks jobs {it}" for it in ("watch", "replay", "pause", "cancel", "resume")),
        "an entry of `dlbricks jobs`; of a run or fleet run, the document of `dlbricks runs` or `dlbricks fleet` for it",
    ),
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
_WORDS = {str: "text", Path: "text", bool: "true or false", int: "whole number", float: "number", NoneType: "null"}


def page() -> str:
    """Return the text of the page."""
    kinds: dict[str, type] = {}
    sections = []
    recorded = examples()
    for command in commands():
        found = [it for name, it in recorded.items() if command_of(name) == command.name]
        if not found:
            continue
        sections.append(_section(command, found))
        for kind in () if command.document is None else _dataclasses_in(command.document.loaded()):
            kinds |= _parts_of(kind)
    parts = [
        f"### {name}\n\n{plain(sentence_of(kind))}\n\n{_field_table(kind)}\n" for name, kind in sorted(kinds.items())
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
            parts.append(f"{prefix}`{kind.__name__}`: {plain(sentence_of(kind))}\n\n{_field_table(kind)}\n")
    return "".join(parts)


def _field_table(kind: type) -> str:
    hints = get_type_hints(kind)
    about = {it.name: it.about for it in fields_of(kind)}
    rows = ((f"`{it.name}`", in_words(hints[it.name]), plain(about[it.name])) for it in told_fields(kind))
    return table(("key", "value", "meaning"), rows)


def in_words(hint: Any) -> str:
    """Return what JSON has for a type."""
    origin, arguments = get_origin(hint), get_args(hint)
    if hint in _WORDS:
        return _WORDS[hint]
    if origin is tuple and arguments[-1] is Ellipsis:
        return f"list of {in_words(arguments[0])}"
    if origin is tuple:
        return f"list: {', '.join(map(in_words, arguments))}"
    if origin is Mapping:
        return f"object of {in_words(arguments[1])}"
    if arguments:
        return " or ".join(map(in_words, arguments))
    if issubclass(hint, Enum):
        return ", ".join(f"`{it.value}`" for it in hint)
    return f"[{hint.__name__}](#{hint.__name__.lower()})"


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
