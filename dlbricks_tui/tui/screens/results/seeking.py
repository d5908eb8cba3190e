"""What a person types to find results, while they type it."""

import re
from typing import NamedTuple

from dlbricks_tui.store.conditions import Condition, parse_condition
from dlbricks_tui.store.queries import Order

# A value in quotes may hold blanks; the quote that closes it may be still to come.
_WORD = re.compile(r'(?:[^\s"]|"[^"]*"?)+')
_BEGUN = re.compile(r"\w+(==|!=|<=|>=|=|<|>|~)")


class Question(NamedTuple):
    """Which results are wanted, in which order."""

    text: str
    orders: tuple[Order, ...]


def conditions_of(text: str) -> tuple[Condition, ...]:
    """The filters in a text, of which results have to pass all; one that is only begun holds nothing back yet."""
    words = [word.replace('"', "") for word in _WORD.findall(text)]
    return tuple(parse_condition(word) for word in words if word and not _BEGUN.fullmatch(word))


def quoted(column: str, value: str) -> str:
    """The filter that only this value passes."""
    return f'{column}=="{value}"' if re.search(r"[\s,]", value) else f"{column}=={value}"
