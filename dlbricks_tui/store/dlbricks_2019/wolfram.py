"""Lists of numbers as the Wolfram Language prints them: `{1., -2.5, 1.571141*^6}`."""

import re
from collections.abc import Iterator

# The digits after a backtick say how precise the number before it is.
_NUMBER = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+))(?:`[\d.]*)?(?:\*\^([+-]?\d+))?", re.ASCII)


def parse_numbers(text: str) -> tuple[float, ...]:
    """The numbers of a list, none of an empty one; raises ValueError for anything else."""
    inside = text.strip()
    if not (inside.startswith("{") and inside.endswith("}")):
        raise ValueError("is no list in braces")
    inside = inside[1:-1].strip()
    return tuple(_numbers(inside)) if inside else ()


def _numbers(inside: str) -> Iterator[float]:
    for item in inside.split(","):
        match = _NUMBER.fullmatch(item.strip())
        if not match:
            raise ValueError(f"has {item.strip()[:40]!r} for a number")
        digits, exponent = match.groups()
        yield float(f"{digits}e{exponent}" if exponent else digits)
