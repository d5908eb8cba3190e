"""Parameter values as MXNet files of every vintage spell them: `(8L, 3L)`, `True`, `1`, `[1,1]`, `None`."""

import re

from dlbricks_tui.models.graph import ParamValue

_WORDS: dict[str, ParamValue] = {"true": True, "false": False, "none": None, "null": None, "": None}
_NUMBER = re.compile(r"[+-]?(\d+)L?\Z|[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\Z|[+-]?(inf|nan)\Z", re.IGNORECASE)


class LiteralError(ValueError):
    """The text is not a value of the type that the parameter has."""


def parse_value(text: str, kind: str) -> ParamValue:
    """The value of a parameter whose declared type is `kind`: bool, int, float, tuple or text."""
    text = text.strip()
    if kind == "text":
        return None if text in ("None", "") else text
    if kind == "tuple":
        return parse_tuple(text)
    word = text.lower()
    if kind == "bool" and word in ("1", "0"):
        return word == "1"
    if word in _WORDS:
        value = _WORDS[word]
        return int(value) if kind in ("int", "float") and isinstance(value, bool) else value
    number = _number(text)
    if kind == "float":
        return single_precision(float(number))
    if number != int(number):
        raise LiteralError(f"{text!r} is not a whole number")
    return bool(number) if kind == "bool" else int(number)


def parse_tuple(text: str) -> ParamValue:
    """A tuple of numbers and Nones; a bare number is a tuple of one."""
    text = text.strip()
    if text in ("None", ""):
        return None
    inner = text[1:-1] if text[0] in "([" and text[-1] in ")]" else text
    parts = [part.strip() for part in inner.split(",")]
    if parts and parts[-1] == "":
        parts.pop()
    return tuple(None if part == "None" else _number(part) for part in parts)


def guess_value(text: str) -> ParamValue:
    """The value of a parameter that no table declares, by its look."""
    word = text.strip().lower()
    if word in _WORDS:
        return _WORDS[word]
    try:
        return parse_tuple(text) if word[0] in "([" else _number(word)
    except LiteralError:
        return text.strip()


def single_precision(value: float) -> float:
    """MXNet keeps float parameters in 32 bits: `0.001` and `0.0010000000474974513` are one value."""
    return float(f"{value:.7g}")


def _number(text: str) -> int | float:
    # The length bound keeps int() linear, whatever the file holds.
    found = _NUMBER.match(text) if len(text) <= 64 else None
    if not found:
        raise LiteralError(f"{text[:40]!r} is not a number")
    if found.group(1) is not None:
        return int(text.rstrip("lL"))
    return single_precision(float(text))
