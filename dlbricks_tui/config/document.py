"""The config file as a list of statements: names, values, and the lines that they stand in."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

from dlbricks_tui.config.errors import ConfigError

_PART = r"(?:[A-Za-z0-9_-]+|\"(?:[^\"\\]|\\.)*\"|'[^']*')"
_NAME = rf"{_PART}(?:\s*\.\s*{_PART})*"
_TABLE = re.compile(rf"^\s*\[\[?\s*({_NAME})\s*\]\]?\s*(?:#.*)?$")
_ASSIGNMENT = re.compile(rf"^\s*({_NAME})\s*=")
_ERROR_LINE = re.compile(r"\(at line (\d+), column \d+\)$")


@dataclass(frozen=True, slots=True)
class Statement:
    """One value by its full name, with the sections that it stands in."""

    name: str
    value: object
    line: int


def statements(text: str, path: str) -> list[Statement]:
    """What a file says; raises what keeps it from being TOML."""
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        line = _ERROR_LINE.search(str(error))
        where = f"{path}:{line[1]}" if line else path
        raise ConfigError(f"{where}: this is not TOML: {_ERROR_LINE.sub('', str(error)).strip()}") from None
    lines = dict(_lines(text))
    return [Statement(name, value, _line_of(name, lines)) for name, value in _flat(document, "")]


def line_of(name: str, text: str) -> int | None:
    """The number of the line that gives a name its value, or that begins the section of that name."""
    return dict(_lines(text)).get(name)


def _flat(table: Mapping[str, object], before: str) -> Iterator[tuple[str, object]]:
    for key, value in table.items():
        # A section without anything in it may still have a wrong name.
        if isinstance(value, dict) and value:
            yield from _flat(value, f"{before}{key}.")
        else:
            yield f"{before}{key}", value


def _lines(text: str) -> Iterator[tuple[str, int]]:
    section = ""
    for number, line in _numbered(text):
        if table := _TABLE.match(line):
            section = f"{_plain(table[1])}."
            yield _plain(table[1]), number
        elif assignment := _ASSIGNMENT.match(line):
            yield section + _plain(assignment[1]), number


def _numbered(text: str) -> Iterator[tuple[int, str]]:
    return enumerate(text.splitlines(), 1)


def _plain(name: str) -> str:
    return ".".join(part.strip("\"'") for part in re.findall(_PART, name))


def _line_of(name: str, lines: Mapping[str, int]) -> int:
    # Of an inline table only the line of its name is known.
    while name not in lines and "." in name:
        name = name.rpartition(".")[0]
    return lines.get(name, 1)
