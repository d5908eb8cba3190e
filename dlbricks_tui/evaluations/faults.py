"""Faults of an evaluation, and their messages in the words of the file."""

import re
from collections.abc import Mapping
from typing import NamedTuple

from dlbricks_tui.printable import printable

# The keys of tables and the indices of lists that lead to a value.
Place = tuple[str | int, ...]

# Of lists and inline tables in one another, and of the parts of a dotted key. An evaluation needs three.
MOST_LEVELS = 16
# Characters of a number or a key without quotes. Parsers take long to read longer numbers.
LONGEST_WORD = 200

# A limited number of lines at once: longer repetitions take much memory.
_BLANK = re.compile(r"(?:[ \t]*(?:#[^\n]*)?\n){1,500}|[ \t]+|#[^\n]*")
_SPACE = re.compile(r"[ \t]*")
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_SCALAR = re.compile(r"[^,\]}#\n]+")
# Samples are most of a large file: numbers with commas are one token.
_NUMBERS = r"(?:\s*[0-9]{1,20}(?:\.[0-9]{1,20})?,){1,500}"
_TOKEN = re.compile(rf"{_NUMBERS}|[\"'\[\]{{}}.,=\n]|#[^\n]*\n?|[\w+-]+")
_ESCAPE_OR_END = {'"': re.compile(r'\\.|"', re.DOTALL), '"""': re.compile(r'\\.|"""', re.DOTALL)}


class Position(NamedTuple):
    """A line and a column, both from 1; a column is a character."""

    line: int
    column: int

    @property
    def in_words(self) -> str:
        """The position as messages show it."""
        return f"line {self.line}, column {self.column}"


class Excess(NamedTuple):
    """A place where a text is too much for parsers, and the message about it."""

    offset: int
    message: str


def position_at(text: str, offset: int) -> Position:
    """Return the position of a character."""
    return Position(text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset))


def excess(text: str) -> Excess | None:
    """Return what is too much for parsers in a text: its nesting, or a word; None if nothing is.

    The text need not be valid.
    """
    levels = parts = at = 0
    while found := _TOKEN.search(text, at):
        token, at = found[0], found.end()
        if token in "\"'":
            at = _string_end(text, found.start())
        elif token in "[{":
            levels += 1
        elif token in "]}":
            levels -= 1
        elif token == ".":
            parts += 1
        elif token in "=\n" or token[-1] == "," or token[0] == "#":
            parts = 0
        elif len(token) > LONGEST_WORD:
            return Excess(found.start(), f"a number or key has more than {LONGEST_WORD} characters: shorten it")
        if levels > MOST_LEVELS or parts > MOST_LEVELS:
            return Excess(found.start(), f"the values nest more than {MOST_LEVELS} levels deep: write them flatter")
    return None


def offsets_of(text: str) -> Mapping[Place, int]:
    """Return the offset of each key, and of each item of a list, in a valid text that does not nest too deep."""
    scanner = _Scanner(text)
    scanner.scan()
    return scanner.offsets


def offset_of(place: Place, offsets: Mapping[Place, int]) -> int:
    """Return the offset of a place, or of the table that it is missing in."""
    while place and place not in offsets:
        place = place[:-1]
    return offsets.get(place, 0)


class _Part(NamedTuple):
    """A part of a dotted key."""

    name: str
    offset: int


class _Scanner:
    """One pass through a valid text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        # The number of tables so far of each array of tables.
        self._tables: dict[Place, int] = {}
        self.offsets: dict[Place, int] = {}

    def scan(self) -> None:
        """Note the offsets of the whole text."""
        table: Place = ()
        self._skip_blanks()
        while self._at < len(self._text):
            if self._text[self._at] == "[":
                table = self._header()
            else:
                self._assignment(table)
            self._skip_blanks()

    def _skip_blanks(self) -> None:
        """Skip spaces, line breaks and comments."""
        while found := _BLANK.match(self._text, self._at):
            self._at = found.end()

    def _skip_spaces(self) -> None:
        found = _SPACE.match(self._text, self._at)
        self._at = self._at if found is None else found.end()

    def _header(self) -> Place:
        """Read `[name]` or `[[name]]`, and return the place of the table that begins."""
        brackets = 2 if self._text.startswith("[[", self._at) else 1
        self._at += brackets
        place: Place = ()
        parts = self._key()
        for part in parts:
            place = self._noted(place, part)
            # Further keys belong to the last table of an array.
            if part is not parts[-1] and place in self._tables:
                place = (*place, self._tables[place] - 1)
        if brackets == 2:
            number = self._tables.get(place, 0)
            self._tables[place] = number + 1
            place = (*place, number)
            self.offsets[place] = parts[-1].offset
        self._at += brackets
        return place

    def _assignment(self, table: Place) -> None:
        """Read `key = value`."""
        place = table
        for part in self._key():
            place = self._noted(place, part)
        # The equals sign.
        self._at += 1
        self._skip_spaces()
        self._value(place)

    def _noted(self, table: Place, part: _Part) -> Place:
        place = (*table, part.name)
        self.offsets.setdefault(place, part.offset)
        return place

    def _key(self) -> list[_Part]:
        """Read the parts of a key, and the spaces after it."""
        parts = []
        while True:
            self._skip_spaces()
            begin = self._at
            self._at = _key_end(self._text, begin)
            parts.append(_Part(_unquoted(self._text[begin : self._at]), begin))
            self._skip_spaces()
            if not self._text.startswith(".", self._at):
                return parts
            self._at += 1

    def _value(self, place: Place) -> None:
        sign = self._text[self._at]
        if sign == "[":
            number = 0
            while self._next_in_brackets("]"):
                item = (*place, number)
                self.offsets[item] = self._at
                self._value(item)
                number += 1
        elif sign == "{":
            while self._next_in_brackets("}"):
                self._assignment(place)
        elif sign in "\"'":
            self._at = _string_end(self._text, self._at)
        elif found := _SCALAR.match(self._text, self._at):
            self._at = found.end()

    def _next_in_brackets(self, closing: str) -> bool:
        """Skip the opening bracket or comma, and go to the next item; return False past the closing bracket."""
        self._skip_blanks()
        if self._text[self._at] != closing:
            self._at += self._text[self._at] in "[{,"
            self._skip_blanks()
        if self._text[self._at] != closing:
            return True
        self._at += 1
        return False


def _key_end(text: str, begin: int) -> int:
    if text[begin] in "\"'":
        return _string_end(text, begin)
    found = _BARE_KEY.match(text, begin)
    return begin if found is None else found.end()


def _unquoted(key: str) -> str:
    if key[0] == "'":
        return key[1:-1]
    if key[0] != '"':
        return key
    # Loaded here: few keys have quotes.
    from tomlkit import parse

    return str(parse(f"key = {key}")["key"]) if "\\" in key else key[1:-1]


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
