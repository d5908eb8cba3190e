"""Faults of an evaluation, and their messages in the words of the file."""

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import NamedTuple

from dlbricks_tui.evaluations.positions import Place
from dlbricks_tui.evaluations.schema import Schema, resolved
from dlbricks_tui.printable import printable

# Characters of a value in a message.
_LONGEST_SHOWN = 60
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
    return text if len(text) <= _LONGEST_SHOWN else f"{text[: _LONGEST_SHOWN - 3]}..."


def table_shown(place: Place) -> str:
    """Return the table of a place as the file writes its header, such as `[[model]]` or `[measure]`."""
    if not place:
        return "the file"
    keys = ".".join(key_shown(key) for key in place if isinstance(key, str))
    return f"[[{keys}]]" if any(isinstance(key, int) for key in place[-1:]) else f"[{keys}]"


def allowed(part: Schema) -> str:
    """Return the values that a part of the schema allows, in words."""
    part = resolved(part)
    if "patternErrorMessage" in part:
        return str(part["patternErrorMessage"])
    if "anyOf" in part:
        return f"{allowed(part['anyOf'][0])}, or a list of such values"
    if "const" in part:
        return shown(part["const"])
    if "enum" in part:
        return f"one of {', '.join(map(shown, part['enum']))}"
    kinds = part["type"]
    if isinstance(kinds, list):
        return "text, a number, or true or false"
    if kinds == "array":
        items = resolved(part["items"])
        return "several tables" if items.get("type") == "object" else f"a list, each item {allowed(items)}"
    return {
        "integer": f"a whole number{_bounds(part)}",
        "number": f"a number{_bounds(part)}",
        "string": "text in quotes",
        "boolean": "true or false",
        "object": "a table",
    }[kinds]


def _bounds(part: Schema) -> str:
    least, most = part.get("minimum"), part.get("maximum")
    above, below = part.get("exclusiveMinimum"), part.get("exclusiveMaximum")
    if above is not None and below is not None:
        return f" between {above:,.10g} and {below:,.10g}"
    if least is not None and most is not None:
        return f" from {least:,.10g} to {most:,.10g}"
    if above is not None and most is not None:
        return f" above {above:,.10g}, at most {most:,.10g}"
    return ""


def wrong_value(place: Place, value: object, part: Schema) -> Fault:
    """Return the fault that a value is not one of those that the schema allows."""
    expected = resolved(part)
    if isinstance(value, dict) and allowed(expected) == "several tables":
        return Fault(place, f"there may be several: write [[{key_shown(str(place[-1]))}]] with two brackets")
    if isinstance(value, list) and expected.get("type") == "object" and place:
        return Fault(place, f"there is only one: write [{key_shown(str(place[-1]))}] with one bracket")
    close = _close(value, expected)
    hint = f"; did you mean {shown(close)}?" if close else ""
    return Fault(place, f"{_subject(place, value)}: it has to be {allowed(expected)}{hint}")


def _close(value: object, part: Schema) -> str:
    """Return the word of an enumeration that a text resembles; empty if there is none."""
    choices = (resolved(each) for each in (part, *part.get("anyOf", ())))
    words = [str(word) for each in choices for word in each.get("enum", ())]
    if not isinstance(value, str) or value in words:
        return ""
    text = value.lower()[:_LONGEST_SHOWN]
    longer = [word for word in words if len(text) > 2 and word.startswith(text)]
    return next(iter([*longer, *get_close_matches(text, words, 1)]), "")


def _subject(place: Place, value: object) -> str:
    """Return the key and value that a fault is about."""
    names = [key for key in place if isinstance(key, str)]
    if not names:
        return "the file"
    is_item = isinstance(place[-1], int)
    return f"{key_shown(names[-1])} {'has the item' if is_item else '='} {shown(value)}"


def wrong_count(place: Place, value: Sequence[object] | Mapping[str, object], part: Schema) -> Fault:
    """Return the fault that a list or a table has too many or too few items."""
    most = part.get("maxItems", part.get("maxProperties"))
    name = key_shown(next((key for key in reversed(place) if isinstance(key, str)), ""))
    if not value:
        return Fault(place, f"{name} has no items: give at least one")
    return Fault(place, f"{name} has {len(value):,} items: the limit is {most:,}")


def too_long(place: Place, value: str, part: Schema) -> Fault:
    """Return the fault that a text is too long."""
    return Fault(
        place, f"{_subject(place, value)}: it has {len(value):,} characters, the limit is {part['maxLength']:,}"
    )


def missing_key(place: Place, key: str, part: Schema) -> Fault:
    """Return the fault that a table lacks a key."""
    wanted = resolved(part["properties"][key])
    if "const" in wanted:
        return Fault(place, f"{table_shown(place)} lacks {key}: add {key} = {shown(wanted['const'])}")
    if wanted.get("type") == "array":
        return Fault(place, f"{table_shown(place)} lacks [[{key}]]: add one")
    return Fault(place, f"{table_shown(place)} lacks {key}: add it, {allowed(wanted)}")


def unknown_key(place: Place, key: str, part: Schema) -> Fault:
    """Return the fault that a table has a key that the format lacks."""
    known = list(part["properties"])
    close = get_close_matches(key.lower()[:_LONGEST_SHOWN], known, 1)
    hint = f"did you mean {close[0]}?" if close else f"the keys of {table_shown(place)} are {', '.join(known)}"
    return Fault((*place, key), f"there is no key {key_shown(key)} in {table_shown(place)}; {hint}")


def wrong_name(place: Place, key: str, part: Schema) -> Fault:
    """Return the fault that a table with free keys has one that is not allowed."""
    return Fault((*place, key), f"{key_shown(key)} is not allowed here: it has to be {part['patternErrorMessage']}")


def any_number_fault(place: Place, value: float) -> Fault:
    """Return the fault that a number is infinite, not a number, or has too many digits."""
    return Fault(place, f"{_subject(place, value)}: it has to be a finite number of at most 20 digits")
