"""Marks and bars in a row for each model."""

from dlbricks_tui.documents.pictures import Mark, Meaning, Piece
from dlbricks_tui.report.drawing import series_style

# Within 5 % of one, behind the marks of a row.
CLOSE = Piece(0.95, 1.05, "·", "░", "rest")
PUBLISHED_LAYERS = Meaning("◇", "published, single layers", "muted")


def series_meaning(number: int, name: str) -> Meaning:
    """Return the meaning of the sign of a series."""
    found = series_style(number)
    return Meaning(found.sign, name, found.style)


def marked(meaning: Meaning, value: float, most: float = float("inf")) -> Mark:
    """Return a mark at a value, or an arrow at the end of the axis for a value beyond it."""
    return Mark(min(value, most), meaning.mark if value <= most else "▶", meaning.style)


def bar_from_zero(high: float, meaning: Meaning) -> Piece:
    """Return a bar from zero."""
    return Piece(0.0, high, meaning.mark, meaning.block, meaning.style)


def thin_line(one: float, other: float, style: str) -> Piece:
    """Return a line between two values, such as the ends of an interval."""
    return Piece(min(one, other), max(one, other), "-", "─", style)
