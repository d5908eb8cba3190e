"""Read JSON from others: bounded before it is parsed, and checked for exactly the expected fields."""

import json
from collections.abc import Mapping
from typing import Any

# Small values take up to 30 times the memory of their text.
MOST_VALUES = 8_000_000


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


def _check_names(document: Any, fields: Mapping[str, Any]) -> None:
    if not isinstance(document, dict):
        raise ValueError("is not an object")
    if document.keys() != fields.keys():
        odd = ", ".join(sorted(repr(name[:20]) for name in document.keys() ^ fields.keys())[:4])
        raise ValueError(f"has missing or unexpected fields: {odd}")
