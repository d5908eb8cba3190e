"""Faults of an evaluation, and their messages in the words of the file."""

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from dlbricks_tui.printable import printable

# The keys of tables and the indices of lists that lead to a value.
Place = tuple[str | int, ...]

# Of lists and inline tables in one another, and of the parts of a dotted key. An evaluation needs three.
MOST_LEVELS = 16
# Characters of a number or a key without quotes. Parsers take long to read longer numbers.
LONGEST_WORD = 200

_QUOTES = "\"'"
_TOKEN = re.compile(r"[\"'\[\]{}.,=\n]|#[^\n]*|[\w+-]+")
_ESCAPE_OR_END = {'"': re.compile(r'\\.|"', re.DOTALL), '"""': re.compile(r'\\.|"""', re.DOTALL)}


def line_at(text: str, offset: int) -> int:
    """Return the line of a character, from 1."""
    return text.count("\n", 0, offset) + 1


def position_at(text: str, offset: int) -> str:
    """Return the line and the column of a character as messages show them, both from 1; a column is a character."""
    column = offset - text.rfind("\n", 0, offset)
    return f"line {line_at(text, offset)}, column {column}"


def excess(text: str) -> tuple[int, str] | None:
    """Return the offset and the message of what is too much for parsers in a text: its nesting, or a word.

    None if nothing is. The text need not be valid.
    """
    levels = parts = 0
    for token, offset in _tokens(text):
        if token in "[{":
            levels += 1
        elif token in "]}":
            levels -= 1
        elif token == ".":
            parts += 1
        elif token in "=,\n":
            parts = 0
        elif len(token) > LONGEST_WORD and token[0] not in _QUOTES:
            return offset, f"a number or key has more than {LONGEST_WORD} characters: shorten it"
        if levels > MOST_LEVELS or parts > MOST_LEVELS:
            return offset, f"the values nest more than {MOST_LEVELS} levels deep: write them flatter"
    return None


def _tokens(text: str) -> Iterator[tuple[str, int]]:
    """Yield the tokens of a TOML text, which may have mistakes, with their offsets; comments are left out."""
    at = 0
    while found := _TOKEN.search(text, at):
        begin, at = found.start(), found.end()
        if found[0] in _QUOTES:
            at = _string_end(text, begin)
        if found[0][0] != "#":
            yield text[begin:at], begin


def offsets_of(text: str) -> Mapping[Place, int]:
    """Return the offset of each key, and of each item of a list, in a valid text that does not nest too deep."""
    return _Scanner(text).scan()


def offset_of(place: Place, offsets: Mapping[Place, int]) -> int:
    """Return the offset of a place, or of the table that it is missing in."""
    while place and place not in offsets:
        place = place[:-1]
    return offsets.get(place, 0)


class _Scanner:
    """One pass through the tokens of a valid text."""

    def __init__(self, text: str) -> None:
        self._tokens = [*_tokens(text), ("", len(text))]
        self._at = 0
        # The number of tables so far of each array of tables.
        self._tables: dict[Place, int] = {}
        self._offsets: dict[Place, int] = {}

    @property
    def _token(self) -> str:
        """The next token; empty at the end of the text."""
        return self._tokens[self._at][0]

    def scan(self) -> Mapping[Place, int]:
        """Return the offsets of the whole text."""
        table: Place = ()
        self._skip_lines()
        while self._token:
            if self._token == "[":
                table = self._header()
            else:
                self._assignment(table)
            self._skip_lines()
        return self._offsets

    def _skip_lines(self) -> None:
        while self._token == "\n":
            self._at += 1

    def _header(self) -> Place:
        """Read `[name]` or `[[name]]`, and return the place of the table that begins."""
        brackets = 2 if self._tokens[self._at + 1][0] == "[" else 1
        self._at += brackets
        place: Place = ()
        parts = self._key()
        for number, (name, offset) in enumerate(parts, 1):
            place = self._noted((*place, name), offset)
            # Further keys belong to the last table of an array.
            if number < len(parts) and place in self._tables:
                place = (*place, self._tables[place] - 1)
        if brackets == 2:
            number = self._tables.get(place, 0)
            self._tables[place] = number + 1
            place = self._noted((*place, number), parts[-1][1])
        self._at += brackets
        return place

    def _assignment(self, table: Place) -> None:
        """Read `key = value`."""
        for name, offset in self._key():
            table = self._noted((*table, name), offset)
        # The equals sign.
        self._at += 1
        self._value(table)

    def _noted(self, place: Place, offset: int) -> Place:
        self._offsets.setdefault(place, offset)
        return place

    def _key(self) -> list[tuple[str, int]]:
        """Read a key, and return its parts with their offsets."""
        begin = self._at
        while self._token not in ("=", "]"):
            self._at += 1
        return [(_unquoted(token), offset) for token, offset in self._tokens[begin : self._at] if token != "."]

    def _value(self, place: Place) -> None:
        if self._token == "[":
            number = 0
            while self._next_in_brackets("]"):
                self._value(self._noted((*place, number), self._tokens[self._at][1]))
                number += 1
        elif self._token == "{":
            while self._next_in_brackets("}"):
                self._assignment(place)
        else:
            while self._token not in (",", "]", "}", "\n", ""):
                self._at += 1

    def _next_in_brackets(self, closing: str) -> bool:
        """Skip the opening bracket or a comma, and go to the next item; return False past the closing bracket."""
        self._skip_lines()
        self._at += self._token in ("[", "{", ",")
        self._skip_lines()
        if self._token != closing:
            return True
        self._at += 1
        return False


def _unquoted(key: str) -> str:
    if key[0] not in _QUOTES:
        return key
    # Loaded here: few keys have quotes.
    from tomlkit import parse

    return str(next(iter(parse(f"{key} = 0"))))


def _string_end(text: str, begin: int) -> int:
    """Return the offset after a string that begins here; the end of the text if it is not closed."""
    quote = text[begin]
    closing = 3 * quote if text.startswith(3 * quote, begin) else quote
    at = begin + len(closing)
    if quote == "'":
        at = text.find(closing, at)
    else:
        while (found := _ESCAPE_OR_END[closing].search(text, at)) and found[0] != closing:
            at = found.end()
        at = found.start() if found else -1
    if at < 0:
        return len(text)
    end, at = at, at + len(closing)
    # A string of several lines may end with up to two quotes of its own.
    while len(closing) == 3 and at < end + 5 and text.startswith(quote, at):
        at += 1
    return at


# Characters of a value in a message.
LONGEST_SHOWN = 60
_MOST_LISTED = 12


class Fault(NamedTuple):
    """A place of the file, what is wrong there, and what to do."""

    place: Place
    message: str


def shown(value: object) -> str:
    """Return a value as a message shows it: as the file writes it, in one line, cut if it is long."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return f'"{_cut(printable(value))}"'
    if isinstance(value, list):
        items = ("[...]" if isinstance(item, list) else shown(item) for item in value[:_MOST_LISTED])
        return f"[{_cut(', '.join(items))}]"
    if isinstance(value, dict):
        return "a table"
    return _cut(printable(str(value)))


def key_shown(key: str) -> str:
    """Return a key as a message shows it."""
    return _cut(printable(key)) or '""'


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST_SHOWN else f"{text[: LONGEST_SHOWN - 3]}..."


def table_shown(place: Place) -> str:
    """Return the table of a place as the file writes its header, such as `[[model]]` or `[measure]`."""
    if not place:
        return "the file"
    keys = ".".join(key_shown(key) for key in place if isinstance(key, str))
    return f"[[{keys}]]" if any(isinstance(key, int) for key in place[-1:]) else f"[{keys}]"
