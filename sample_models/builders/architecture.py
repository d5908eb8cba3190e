"""The types that a family module hands to the catalogue."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Row:
    """One row of the paper's Table 1."""

    id: int
    name: str
    task: str


@dataclass(frozen=True, slots=True)
class Architecture:
    """One network; rows whose networks are identical share it."""

    file: str
    build: Callable[[], bytes]
    rows: tuple[Row, ...]
    classes: int | None = None
