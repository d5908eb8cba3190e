"""Dataclasses as JSON values, read by the types of their fields.

Named tuples are lists, enums their values, and paths their texts. A field that may have one of several dataclasses gets
the one whose fields the object has.
"""

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, asdict, dataclass, fields, is_dataclass
from enum import Enum
from functools import cache
from pathlib import Path
from types import UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

Decoded = TypeVar("Decoded")

_Read = Callable[[Any, str], Any]
_NUMBERS: Mapping[type, tuple[type, ...]] = {int: (int,), bool: (bool,), float: (int, float)}


@dataclass(frozen=True, slots=True)
class ReadingRules:
    """How values are read: which fields an object may have, and the limits of values from others."""

    # True: exactly the fields of the dataclass. False: unknown ones are skipped, and missing ones have their defaults.
    exact: bool = False
    # Of a text, and of a list or an object.
    letters: float = math.inf
    entries: float = math.inf
    largest: float = math.inf
    # Gets each text.
    clean: Callable[[str], str] | None = None


OWN = ReadingRules()


def from_others(letters: int = 1000, entries: int = 100, clean: Callable[[str], str] | None = None) -> ReadingRules:
    """Return how values of others are read: exactly, with such limits."""
    # Numbers beyond the largest are no sizes, times or counts.
    return ReadingRules(True, letters, entries, 1e18, clean)


def encoded(value: Any) -> str:
    """Return a dataclass as one line of JSON."""
    return json.dumps(asdict(value), separators=(",", ":"), default=_path)


def values_of(value: Any) -> dict[str, Any]:
    """Return a dataclass as JSON values."""
    found: dict[str, Any] = json.loads(encoded(value))
    return found


def decoded(kind: type[Decoded], values: Any, reading: ReadingRules = OWN) -> Decoded:
    """Return the dataclass that JSON values stand for; raise ValueError, whose message completes "it ...", for others.

    An exception of the dataclass itself is passed on.
    """
    found: Decoded = _reader(kind, reading)(values, "")
    return found


def _path(value: Any) -> str:
    if isinstance(value, Path):
        # Another process may work elsewhere.
        return str(value.absolute())
    raise TypeError(f"{type(value).__name__} has no JSON form")


def _new_reader(hint: Any, reading: ReadingRules) -> _Read:
    """Return the function that reads values of a type; it also takes the name of the field."""
    origin, arguments = get_origin(hint), get_args(hint)
    if hint is Any:
        return lambda value, name: value
    if hint is str:
        return _text_reader(reading)
    if hint in _NUMBERS:
        # Not isinstance: true is an int in Python.
        kinds, largest = _NUMBERS[hint], reading.largest
        return _checked(lambda value: type(value) in kinds and -largest <= value <= largest, hint)
    if origin in (UnionType, Union):
        return _union_reader(arguments, reading)
    if origin is Literal:
        return _checked(lambda value: value in arguments)
    if origin in (tuple, frozenset, Sequence):
        return _list_reader(origin, arguments, reading)
    if origin is Mapping:
        return _mapping_reader(arguments, reading)
    if is_dataclass(hint):
        return _object_reader(hint, reading)
    if hint is Path:
        return lambda value, name: Path(_reader(str, reading)(value, name))
    if isinstance(hint, type) and issubclass(hint, Enum):
        return lambda value, name: hint(_reader(str, reading)(value, name))
    if isinstance(hint, type) and issubclass(hint, tuple):
        return _named_tuple_reader(hint, reading)
    raise TypeError(f"{hint} has no JSON form")


_reader: Callable[[Any, ReadingRules], _Read] = cache(_new_reader)


def _checked(is_right: Callable[[Any], bool], made: Callable[[Any], Any] = lambda value: value) -> _Read:
    def read(value: Any, name: str) -> Any:
        if not is_right(value):
            raise ValueError(f"has an impossible {name}")
        return made(value)

    return read


def _text_reader(reading: ReadingRules) -> _Read:
    clean = reading.clean or str

    def read(value: Any, name: str) -> str:
        if not isinstance(value, str):
            raise ValueError(f"has a {name} that is not a text")
        if len(value) > reading.letters:
            raise ValueError(f"has a {name} of {len(value):,} letters")
        return clean(value)

    return read


def _bounded(value: Any, kind: Any, name: str, reading: ReadingRules) -> Any:
    if not isinstance(value, kind):
        raise ValueError(f"has an impossible {name}")
    if len(value) > reading.entries:
        raise ValueError(f"has more than {reading.entries:,} entries of {name}")
    return value


def _union_reader(arguments: tuple[Any, ...], reading: ReadingRules) -> _Read:
    kinds = [it for it in arguments if it is not type(None)]
    objects: list[Any] = [it for it in kinds if is_dataclass(it)]

    def read(value: Any, name: str) -> Any:
        if value is None and len(kinds) < len(arguments):
            return None
        if isinstance(value, dict) and objects:
            likest = max(objects, key=lambda it: len(value.keys() & _hints(it).keys()))
            return _reader(likest, reading)(value, name)
        for kind in kinds[:-1]:
            if type(value) is kind:
                return _reader(kind, reading)(value, name)
        return _reader(kinds[-1], reading)(value, name)

    return read


def _list_reader(origin: Any, arguments: tuple[Any, ...], reading: ReadingRules) -> _Read:
    if (len(arguments) == 2 and arguments[1] is Ellipsis) or origin is not tuple:
        each, made = _reader(arguments[0], reading), frozenset if origin is frozenset else tuple

        def read(value: Any, name: str) -> Any:
            values = _bounded(value, list, name, reading)
            # Samples are long lists of numbers that need no check each.
            if arguments[0] is float and reading is OWN and {*map(type, values)} == {float}:
                return made(values)
            return made([each(it, name) for it in values])

        return read
    return _row_reader(arguments, tuple, reading)


def _row_reader(hints: tuple[Any, ...], made: Callable[[Iterable[Any]], Any], reading: ReadingRules) -> _Read:
    readers = [_reader(it, reading) for it in hints]

    def read(value: Any, name: str) -> Any:
        if not isinstance(value, list) or len(value) != len(readers):
            raise ValueError(f"has an impossible {name}")
        return made([each(it, name) for each, it in zip(readers, value, strict=True)])

    return read


def _named_tuple_reader(of: Any, reading: ReadingRules) -> _Read:
    hints = get_type_hints(of)
    read_row = _row_reader(tuple(hints.values()), lambda row: of(*row), reading)

    def read(value: Any, name: str) -> Any:
        # Earlier versions wrote some as objects.
        return read_row([value.get(it) for it in hints] if isinstance(value, dict) else value, name)

    return read


def _mapping_reader(arguments: tuple[Any, ...], reading: ReadingRules) -> _Read:
    if arguments[1] is Any:
        # Others check what it holds.
        return _checked(lambda value: isinstance(value, dict))
    key, each = (_reader(it, reading) for it in arguments)
    return lambda value, name: {
        key(it, name): each(found, name) for it, found in _bounded(value, dict, name, reading).items()
    }


def _object_reader(of: Any, reading: ReadingRules) -> _Read:
    # Filled with the first object: a dataclass may have fields of its own type.
    readers: dict[str, _Read] = {}
    needed: set[str] = set()

    def read(value: Any, _: str) -> Any:
        if not isinstance(value, dict):
            raise ValueError("is not an object")
        if not readers:
            readers.update({name: _reader(hint, reading) for name, hint in _hints(of).items()})
            needed.update(it.name for it in fields(of) if it.default is MISSING and it.default_factory is MISSING)
        if value.keys() != readers.keys() and (reading.exact or needed - value.keys()):
            odd = value.keys() ^ readers.keys() if reading.exact else needed - value.keys()
            names = ", ".join(sorted(repr(name[:20]) for name in odd)[:4])
            raise ValueError(f"has missing or unexpected fields: {names}")
        return of(**{name: each(value[name], name) for name, each in readers.items() if name in value})

    return read


@cache
def _hints(kind: Any) -> Mapping[str, Any]:
    hints = get_type_hints(kind)
    return {it.name: hints[it.name] for it in fields(kind)}
