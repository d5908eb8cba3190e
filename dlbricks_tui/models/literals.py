"""Parameter values in the spellings of all versions of MXNet: `(8L, 3L)`, `True`, `1`, `[1,1]`, `None`."""

import math
import re
from math import copysign, inf
from struct import pack, unpack

from dlbricks_tui.models.graph import Numbers, ParamValue

_WORDS: dict[str, bool | None] = {"true": True, "false": False, "none": None, "null": None, "": None}
_WHOLE = re.compile(r"[+-]?[0-9]+L?\Z", re.IGNORECASE)
_REAL = re.compile(r"[+-]?(([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?|inf|infinity|nan)\Z", re.IGNORECASE)
# Python takes long to read longer numbers.
_LONGEST_NUMBER = 64
# More numbers are data, and no command line holds them.
MOST_NUMBERS = 1024


class LiteralError(ValueError):
    """The text is not a value of the parameter's type."""


def parse_value(text: str, kind: str) -> ParamValue:
    """Parse the value of a parameter whose declared type is `kind`: bool, int, float, tuple or text."""
    text = text.strip()
    if kind == "text":
        return None if text in ("None", "") else text
    if kind == "tuple":
        return parse_tuple(text)
    word = text.lower()
    value = _WORDS[word] if word in _WORDS else _number(text)
    if value is None:
        return None
    if kind == "float":
        return float(value)
    if value not in (0, 1) if kind == "bool" else not float(value).is_integer():
        raise LiteralError(f"{text!r} is not {'true or false' if kind == 'bool' else 'a whole number'}")
    return bool(value) if kind == "bool" else int(value)


def parse_tuple(text: str) -> tuple[int | float | None, ...] | None:
    """Parse a tuple of numbers and Nones; a bare number is a tuple of one."""
    text = text.strip()
    if text in ("None", ""):
        return None
    inner = text[1:-1] if text[0] in "([" and text[-1] in ")]" else text
    parts = [part.strip() for part in inner.split(",")]
    if parts[-1] == "":
        parts.pop()
    numbers = [None if part == "None" else _number(part) for part in parts]
    return tuple([int(it) if isinstance(it, float) and it.is_integer() else it for it in numbers])


def numbers_of(document: object) -> Numbers:
    """Return the numbers or texts of a JSON document: one, or a list; raise ValueError for anything else."""
    items = document if isinstance(document, list) else [document]
    numbers = tuple(
        [it for it in items if type(it) is int or type(it) is str or (type(it) is float and math.isfinite(it))]
    )
    if not items or len(numbers) < len(items) or len(numbers) > MOST_NUMBERS:
        raise ValueError("not a number or a list of numbers")
    return numbers


def guess_value(text: str) -> ParamValue:
    """Parse the value of a parameter of unknown type."""
    text = text.strip()
    word = text.lower()
    if word in _WORDS:
        return _WORDS[word]
    try:
        return parse_tuple(text) if text[0] in "([" else _number(text)
    except LiteralError:
        return text


def single_precision(value: float) -> float:
    """Return the shortest number with the same 32-bit value: MXNet also writes `0.001` as `0.0010000000474974513`."""
    held = _held_in_32_bits(value)
    # Nine digits always suffice. Adding zero removes the sign of a zero, which no operator distinguishes.
    spellings = (float(f"{held:.{digits}g}") for digits in range(6, 10))
    return next((short for short in spellings if _held_in_32_bits(short) == held), value) + 0.0


def _held_in_32_bits(value: float) -> float:
    try:
        (held,) = unpack("f", pack("f", value))
    except OverflowError:
        # Python 3.14 refuses such numbers, earlier versions take them for infinite.
        return copysign(inf, value)
    return float(held)


def _number(text: str) -> int | float:
    if len(text) <= _LONGEST_NUMBER:
        if _WHOLE.match(text):
            return int(text.rstrip("lL"))
        if _REAL.match(text):
            return single_precision(float(text))
    raise LiteralError(f"{text[:40]!r} is not a number")
