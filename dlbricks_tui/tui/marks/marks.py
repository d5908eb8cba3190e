"""Marks on at most two rows of one kind, A and B; they belong to what the rows stand for, not to their places."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Hashable

    from textual.app import App

    from dlbricks_tui.answers.comparisons.named import NamedSelection
    from dlbricks_tui.answers.pairs.estimates import EstimatedSide
    from dlbricks_tui.models.library import ModelSource

LETTERS = ("A", "B")
# What rows with marks stand for.
MARKABLE = "two models, variants, systems, runs or results"
NO_LETTER = ""


@dataclass(frozen=True, slots=True)
class ComparableRow:
    """A row that can be compared with another one of its kind.

    `subject` is a model, an estimate in a variant, results, or the id of a system, a run or a result.
    """

    # One of `KINDS`, or `model`, `variant` or `result`.
    kind: str
    identity: Hashable
    name: str
    subject: ModelSource | EstimatedSide | NamedSelection | str


class Marks:
    """The rows that are marked now, the one marked first is A."""

    def __init__(self, *rows: ComparableRow) -> None:
        self.rows = rows

    @property
    def complete(self) -> bool:
        """True if there are two to compare."""
        return len(self.rows) == len(LETTERS)

    def letter(self, row: ComparableRow | None) -> str:
        """Return the letter of a row; empty if it is not marked."""
        if row is not None:
            for letter, marked in zip(LETTERS, self.rows, strict=False):
                if (marked.kind, marked.identity) == (row.kind, row.identity):
                    return letter
        return NO_LETTER

    def toggle(self, row: ComparableRow) -> str:
        """Mark a row or unmark it, and return what that means in one line.

        A third row takes the place of the oldest one. A row of another kind takes the place of both.
        """
        if self.letter(row):
            self.rows = tuple(it for it in self.rows if (it.kind, it.identity) != (row.kind, row.identity))
            return f"{row.name} is not marked any more."
        others = [it for it in self.rows if it.kind == row.kind]
        said = ""
        if len(others) < len(self.rows):
            old = self.rows[0].kind
            said = f" The marks on {counted_kind(len(self.rows), old)} are gone: only two of one kind are compared."
        elif len(others) == len(LETTERS):
            said = f" {others[0].name} is not marked any more: at most two are."
            others = others[1:]
        self.rows = (*others, row)
        return f"{LETTERS[len(self.rows) - 1]} is {row.kind} {row.name}.{said}"

    def exchange(self) -> None:
        """Exchange A and B."""
        self.rows = self.rows[::-1]

    def clear(self) -> None:
        """Unmark all rows."""
        self.rows = ()


_NONE = Marks()


def marks_of(app: App[object]) -> Marks:
    """Return the marks of an application; those of one without marks are none."""
    found = getattr(app, "marks", _NONE)
    return found if isinstance(found, Marks) else _NONE


def counted_kind(number: int, kind: str) -> str:
    """Return a number of rows with their kind: `a model`, `two models`."""
    return f"a {kind}" if number == 1 else f"two {kind}s"
