"""JSON from elsewhere, read without trust: bounded before it is parsed, and held to the fields that it may have."""

import json
from collections.abc import Mapping
from typing import Any

# Small values take up to thirty times the memory of their text.
MOST_VALUES = 8_000_000


def parsed_document(content: bytes, format_name: str, schema: int) -> dict[str, Any]:
    """The JSON object in a file, without what says its format; raises ValueError, whose text completes "it ..."."""
    if not content.lstrip()[:1] == b"{":
        raise ValueError(f"is no {format_name} file: it does not begin like one")
    if sum(content.count(sign) for sign in (b",", b"[", b"{")) > MOST_VALUES:
        raise ValueError(f"holds more than {MOST_VALUES:,} values")
    try:
        document = json.loads(content, parse_constant=_no_number)
    except RecursionError:
        raise ValueError("nests too deep") from None
    except ValueError as error:
        raise ValueError(f"is not JSON: {error}") from None
    if not isinstance(document, dict) or document.pop("format", None) != format_name:
        raise ValueError(f"is no {format_name} file")
    found = document.pop("schema", None)
    if type(found) is int and found > schema:
        raise ValueError(f"was written by a newer dlbricks (schema {found}, this one knows {schema}); update dlbricks")
    if type(found) is int and 0 < found < schema:
        raise ValueError(
            f"was written by an older dlbricks (schema {found}, this one knows {schema}); have it written again"
        )
    if type(found) is not int or found != schema:
        raise ValueError(f"has the schema {str(found)[:20]!r}, which nobody knows")
    return document


def check_fields(document: Any, fields: Mapping[str, type]) -> None:
    """Raises ValueError unless it is an object of exactly these fields with values of these types."""
    if not isinstance(document, dict):
        raise ValueError("is no object")
    if document.keys() != fields.keys():
        odd = ", ".join(sorted(repr(name[:20]) for name in document.keys() ^ fields.keys())[:4])
        raise ValueError(f"lacks or has fields that it should not: {odd}")
    for name, kind in fields.items():
        # JSON's true is an int to Python.
        if type(document[name]) is not kind:
            raise ValueError(f"has a {name} that is no {_NAMES[kind]}")


_NAMES: Mapping[type, str] = {str: "text", int: "whole number", list: "list", dict: "object"}


def _no_number(text: str) -> float:
    raise ValueError(f"{text} is no number")
