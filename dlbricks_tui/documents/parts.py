"""The parts of a document: what an answer says, before a door draws it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

if TYPE_CHECKING:
    from dlbricks_tui.documents.lines import Line
    from dlbricks_tui.documents.pictures import Plot

Row = TypeVar("Row")
_GOOD_ERROR, _FAIR_ERROR = 0.05, 0.1

# Returns all names of a column in so many characters each.
Fit = Callable[[Sequence[str], int], Sequence[str]]


@dataclass(frozen=True, slots=True)
class Heading:
    """The title of what follows."""

    text: str


@dataclass(frozen=True, slots=True)
class Sentence:
    """A line of text that is wrapped where the width is short."""

    text: str
    style: str = "text"


BLANK_LINE = Sentence("")


@dataclass(frozen=True, slots=True)
class MarkedSentence:
    """A sentence after a mark in a style, such as a verdict; its subject stands first."""

    mark: str
    style: str
    text: str
    subject: str = ""


@dataclass(frozen=True, slots=True)
class Fact:
    """A value with its name before it."""

    name: str
    text: str
    remark: str = ""
    # Of the value.
    style: str = "text"


@dataclass(frozen=True, slots=True)
class Names:
    """Names in one line: as many as fit, and the number of the others."""

    names: Sequence[str]


@dataclass(frozen=True, slots=True)
class BarFigure:
    """A named value, drawn as a bar beside others; its interval has lighter shades. A value below zero has no bar."""

    name: str
    text: str
    value: float = -1.0
    low: float | None = None
    high: float | None = None
    # The first remark that fits is shown; the last one stands below if none does.
    remarks: tuple[str, ...] = ()
    # Of the remark.
    style: str = "muted"


@dataclass(frozen=True, slots=True)
class Figures:
    """Values below one another, whose bars have one scale."""

    rows: tuple[BarFigure, ...]
    has_bars: bool = True


class CellKind(Enum):
    """The kind of cells in a column: names and words are aligned left, numbers right; bars take the room that is left.

    Only names are shortened where the width is short, and sentences are wrapped.
    """

    NAME = "name"
    WORD = "word"
    NUMBER = "number"
    BAR = "bar"
    SENTENCE = "sentence"


@dataclass(frozen=True, slots=True)
class Column(Generic[Row]):
    """A column of a table: its title, and the text of each row. Of a bar, `cell` returns the share in place of it."""

    title: str
    cell: Callable[[Row], Any]
    kind: CellKind = CellKind.NUMBER
    style: str | Callable[[Row], str] = "text"
    # True if it is left out where names have too little room; the first such column goes first.
    is_optional: bool = False
    # True if the other optional columns go before it.
    goes_last: bool = False
    # True if the title is a name, which stays as it is where others are capitals.
    is_named: bool = False
    # Returns the cells in so many characters; without it their beginnings are kept, and the first names are cut last.
    fit: Fit | None = None
    # True if it tells rows apart: it is never shortened, and rows without figures have it too.
    is_key: bool = False


# What stands in place of the figures of a row: a reason, and a command, of which one may be empty.
Missing = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Table(Generic[Row]):
    """Rows with the same columns; the first column of names is shortened where the width is short."""

    columns: tuple[Column[Row], ...]
    rows: Sequence[Row]
    # What stands below a row, indented; a list leaves it out.
    details: Callable[[Row], Iterable[Part]] | None = None
    # Returns the beginning of the first cell in a tree: the lines that lead from a row to those inside of it.
    guides: Callable[[Row], str] | None = None
    # Returns why a row has no figures, and the command that measures them.
    missing: Callable[[Row], Missing | None] = lambda _: None


@dataclass(frozen=True, slots=True)
class Grid:
    """A share for each two of these names, as a shade, and as a number where there is room."""

    names: tuple[str, ...]
    shares: Sequence[Sequence[float]]


@dataclass(frozen=True, slots=True)
class Plots:
    """A plot, or two side by side, in so many lines; a panel shows pictures in an area of its own."""

    plots: tuple[Plot, ...]
    lines: int


class DoorSentence(Protocol):
    """A sentence that only one door can say, such as one with the keys of the workbench."""

    @property
    def line(self) -> Line:
        """The sentence as styled text."""


Part = Heading | Sentence | MarkedSentence | Fact | Names | Figures | Table[Any] | Grid | Plots | DoorSentence


def error_style(error: float) -> str:
    """Return the style of an estimate's error, a share of what was measured."""
    return "good" if abs(error) <= _GOOD_ERROR else "warn" if abs(error) <= _FAIR_ERROR else "bad"


def name_column(title: str, cell: Callable[[Row], str], style: str | Callable[[Row], str] = "text") -> Column[Row]:
    """Return a column of names."""
    return Column(title, cell, CellKind.NAME, style)


def word_column(title: str, cell: Callable[[Row], str], style: str | Callable[[Row], str] = "text") -> Column[Row]:
    """Return a column of words, which are never shortened."""
    return Column(title, cell, CellKind.WORD, style)


def each_fit(shorten: Callable[[str, int], str]) -> Fit:
    """Return how names are fitted one by one."""
    return lambda names, width: [shorten(name, width) for name in names]


def bar_column(share: Callable[[Row], float]) -> Column[Row]:
    """Return a column of bars that show shares."""
    return Column("", share, CellKind.BAR, "bar")
