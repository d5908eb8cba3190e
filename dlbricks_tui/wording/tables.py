"""Cells of tables."""

from collections.abc import Callable


def or_dash(written: Callable[[float], str], value: float | None) -> str:
    """Return a number as a cell; a dash if there is none."""
    return "-" if value is None else written(value)
