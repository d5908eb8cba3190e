"""Marks on rows of one kind; they belong to what the rows stand for, not to their places."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from textual.app import App

    from dlbricks_tui.api.open_models import ComparableRow

MARK = "●"
# The kind of what-ifs, which are marked and never compared.
WHAT_IF = "what-if"
# How many rows a comparison takes.
TWO = 2
# What rows with marks stand for.
MARKABLE = "models, what-ifs, variants, systems, runs and results"


class Marks:
    """The rows that are marked now, in the order in which they were."""

    def __init__(self, *rows: ComparableRow) -> None:
        self.rows = rows

    def has(self, row: ComparableRow | None) -> bool:
        return row is not None and any((it.kind, it.identity) == (row.kind, row.identity) for it in self.rows)

    def of(self, kind: str) -> tuple[ComparableRow, ...]:
        return tuple(it for it in self.rows if it.kind == kind)

    def toggle(self, row: ComparableRow) -> None:
        """Mark a row or unmark it; rows of another kind lose their marks."""
        if self.has(row):
            self.rows = tuple(it for it in self.rows if it.identity != row.identity)
        else:
            self.rows = (*self.of(row.kind), row)


_NONE = Marks()


def marks_of(app: App[object]) -> Marks:
    """Return the marks of an application; those of one without marks are none."""
    found = getattr(app, "marks", _NONE)
    return found if isinstance(found, Marks) else _NONE
