"""One setting: what it may be, and what it does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import TypeVar

# What TOML has of single values; None stands for a setting that is left open.
Value = str | int | float | None

Wanted = TypeVar("Wanted", bound=Enum)
Number = TypeVar("Number", int, float)


class NotAllowedError(ValueError):
    """The value is none of those that are allowed."""


@dataclass(frozen=True, slots=True)
class Kind:
    """The values that a setting may have: told from others, read from a text, and in words."""

    allowed: str
    accepts: Callable[[object], bool]
    # Of an environment variable or the command line, which know only texts.
    from_text: Callable[[str], object]
    # What one comes by who steps through the values; more may be allowed.
    offered: tuple[Value, ...]

    def checked(self, value: object) -> Value:
        """The value, if it is one of them."""
        if not self.accepts(value):
            raise NotAllowedError(value)
        # Whatever is accepted is a value; a whole number will do for any number.
        return value if isinstance(value, str | int | float) else None

    def read(self, text: str) -> Value:
        """The value that a text stands for."""
        try:
            return self.checked(self.from_text(text))
        except ValueError:
            raise NotAllowedError(text) from None


@dataclass(frozen=True, slots=True)
class Option:
    """A setting by its full name, such as `workbench.theme`."""

    name: str
    kind: Kind
    default: Value
    about: str

    @property
    def variable(self) -> str:
        """The environment variable that has a say over the file."""
        return f"DLBRICKS_{self.name.replace('.', '_').upper()}"


def one_of(*words: str) -> Kind:
    """One of some words."""
    return Kind(f"one of {', '.join(map(_quoted, words))}", lambda value: value in words, str, words)


def text(allowed: str, *offered: Value) -> Kind:
    """Some text that is not empty; what it is to name is only known where it is used."""
    return Kind(allowed, lambda value: isinstance(value, str) and value != "", str, offered)


def whole(least: int, most: int, *offered: Value) -> Kind:
    """A whole number from one to another."""

    def accepts(value: object) -> bool:
        return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most

    return Kind(f"a whole number from {least} to {most}", accepts, int, offered)


def number(more_than: float, less_than: float, allowed: str, *offered: Value) -> Kind:
    """A number between two others."""

    def accepts(value: object) -> bool:
        return isinstance(value, int | float) and not isinstance(value, bool) and more_than < value < less_than

    return Kind(allowed, accepts, float, offered)


def _quoted(word: str) -> str:
    return f'"{word}"'
