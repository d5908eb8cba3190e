"""Read JSON from others: bounded before it is parsed, and checked for exactly the expected fields."""

import json
from collections.abc import Callable, Mapping
from dataclasses import is_dataclass
from functools import cache
from types import MappingProxyType, UnionType
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

Decoded = TypeVar("Decoded")

# Small values take up to 30 times the memory of their text.
MOST_VALUES = 8_000_000
# Numbers beyond it are no sizes, times or counts.
LARGEST = 1e18


def parsed_document(
    content: bytes, format_name: str, schema: int, cure: str = "use the same version on both sides"
) -> dict[str, Any]:
    """Return the JSON object in a file without its format and schema.

    Raise ValueError, whose message completes "it ...", for anything else. `cure` says what to do about another schema.
    """
    if not content.lstrip()[:1] == b"{":
        raise ValueError(f"is not a {format_name} file: it does not begin like one")
    if sum(content.count(sign) for sign in (b",", b"[", b"{")) > MOST_VALUES:
        raise ValueError(f"holds more than {MOST_VALUES:,} values")
    try:
        document = json.loads(content, parse_constant=_no_number)
    except RecursionError:
        raise ValueError("nests too deep") from None
    except ValueError as error:
        raise ValueError(f"is not JSON: {error}") from None
    if not isinstance(document, dict) or document.pop("format", None) != format_name:
        raise ValueError(f"is not a {format_name} file")
    found = document.pop("schema", None)
    if type(found) is not int or found != schema:
        raise ValueError(
            f"was written by another version of dlbricks (schema {str(found)[:20]}, this version reads {schema}); "
            f"{cure}"
        )
    return document


def check_fields(document: Any, fields: Mapping[str, type]) -> None:
    """Raise ValueError unless it is an object with exactly these fields and types."""
    _check_names(document, fields)
    for name, kind in fields.items():
        # Not isinstance: true is an int in Python.
        if type(document[name]) is not kind:
            raise ValueError(f"has a {name} that is not a {_NAMES[kind]}")


_NAMES: Mapping[type, str] = {str: "text", int: "whole number", bool: "truth value", list: "list", dict: "object"}


def _no_number(text: str) -> float:
    raise ValueError(f"{text} is not a number")


def decoded(
    kind: type[Decoded],
    document: Any,
    *,
    letters: int = 1000,
    entries: int = 100,
    clean: Callable[[str], str] = str,
    readers: Mapping[type, Callable[[Any], Any]] = MappingProxyType({}),
) -> Decoded:
    """Return the dataclass in an object with exactly its fields, each of the type that the dataclass states.

    Texts have so many letters at most, and lists and objects so many entries. `clean` gets each text, and `readers`
    read other types. Raise ValueError, whose message completes "it ...", for anything else.
    """

    def text(value: Any, name: str) -> str:
        if not isinstance(value, str):
            raise ValueError(f"has a {name} that is not a text")
        if len(value) > letters:
            raise ValueError(f"has a {name} of {len(value):,} letters")
        return clean(value)

    def read(hint: Any, value: Any, name: str) -> Any:
        if hint in readers:
            return readers[hint](value)
        if is_dataclass(hint):
            return read_object(hint, value)
        if hint is str:
            return text(value, name)
        if hint is Any:
            return value
        if hint is float and type(value) in (int, float) and abs(value) <= LARGEST:
            return float(value)
        if hint in (int, bool) and type(value) is hint and abs(value) <= LARGEST:
            return value
        origin, arguments = get_origin(hint), get_args(hint)
        if origin is UnionType and type(None) in arguments:
            return None if value is None else read(arguments[0], value, name)
        if origin is Literal and value in arguments:
            return value
        if origin is tuple and isinstance(value, list):
            return tuple([read(arguments[0], each, name) for each in bounded(value, name)])
        if origin is Mapping and isinstance(value, dict):
            if arguments[1] is Any:
                # Others check what it holds.
                return value
            return {text(key, name): read(arguments[1], each, name) for key, each in bounded(value, name).items()}
        raise ValueError(f"has an impossible {name}")

    def bounded(value: Any, name: str) -> Any:
        if len(value) > entries:
            raise ValueError(f"has more than {entries:,} entries of {name}")
        return value

    def read_object(of: Any, value: Any) -> Any:
        hints = _hints(of)
        _check_names(value, hints)
        return of(**{name: read(hint, value[name], name) for name, hint in hints.items()})

    found: Decoded = read_object(kind, document)
    return found


def _check_names(document: Any, fields: Mapping[str, Any]) -> None:
    if not isinstance(document, dict):
        raise ValueError("is not an object")
    if document.keys() != fields.keys():
        odd = ", ".join(sorted(repr(name[:20]) for name in document.keys() ^ fields.keys())[:4])
        raise ValueError(f"has missing or unexpected fields: {odd}")


@cache
def _hints(kind: type) -> Mapping[str, Any]:
    return get_type_hints(kind)
