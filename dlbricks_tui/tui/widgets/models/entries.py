"""The models of the library as rows of a list, and the search among them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dlbricks_tui.tui.lines import Line, Span, column, cut, highlighted
from dlbricks_tui.wording.numbers import milliseconds, part_of, percent

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dlbricks_tui.estimate.system_estimate import SystemEstimate
    from dlbricks_tui.models.library import ModelSource

MARK = "●"
UNKNOWN = "·"
_LEAST_NAME = 16
_GAP = 1


@dataclass(frozen=True, slots=True)
class Standing:
    """What is known of a model's latency, for one cell."""

    sequential_ms: float | None
    # How many of its layers were measured.
    measured: int
    layers: int
    # Whether an estimate is possible at all.
    possible: bool = True


@dataclass(frozen=True, slots=True)
class Entry:
    """One model of the list."""

    source: ModelSource
    marked: bool = False
    standing: Standing | None = None


@dataclass(frozen=True, slots=True)
class _Column:
    title: str
    width: int


# The first ones are the last to go when there is no room.
_ESTIMATE = _Column("est. ms", 8)
_UNIQUE = _Column("unique", 6)
_LAYERS = _Column("layers", 6)
_TASK = _Column("task", 4)
_BY_WORTH = (_ESTIMATE, _UNIQUE, _LAYERS, _TASK)
_IN_ORDER = (_TASK, _LAYERS, _UNIQUE, _ESTIMATE)


def standing_of(judged: SystemEstimate) -> Standing:
    """An estimate as the list shows it."""
    coverage = judged.estimate.coverage
    return Standing(judged.sequential_ms, coverage.measured, coverage.layers, not judged.estimate.obstacle)


def found(sources: Iterable[ModelSource], sought: str) -> tuple[ModelSource, ...]:
    """The models of which every word of the search is somewhere in the name, the task, the number or the path."""
    words = sought.casefold().split()
    return tuple(source for source in sources if all(word in _searched(source) for word in words))


def row(entry: Entry, width: int, sought: str = "") -> Line:
    """A model in so many cells."""
    columns = _columns(width)
    name_width = width - 2 - sum(each.width + _GAP for each in columns)
    name = cut(_short(entry.source.name), name_width)
    cells: list[Span] = []
    for each in columns:
        cells += [Span(" " * _GAP), _cell(entry, each)]
    mark = Span(f"{MARK} " if entry.marked else "  ", "mark")
    return (mark, *highlighted(name, sought.split()), Span(" " * (name_width - len(name))), *cells)


def heading(width: int) -> Line:
    """What the columns of `row` are called."""
    columns = _columns(width)
    name_width = width - 2 - sum(each.width + _GAP for each in columns)
    titles = [Span("  " + cut("model", name_width).ljust(name_width), "heading")]
    for each in columns:
        titles += [Span(" " * _GAP), column(each.title, each.width, "heading", right=each is not _TASK)]
    return tuple(titles)


def _short(name: str) -> str:
    # The names of Table 1 differ in what comes behind these words.
    return name.replace(" Trained on ", " · ")


def _columns(width: int) -> tuple[_Column, ...]:
    room = width - 2 - _LEAST_NAME
    kept = set[str]()
    for each in _BY_WORTH:
        if each.width + _GAP > room:
            break
        kept.add(each.title)
        room -= each.width + _GAP
    return tuple(each for each in _IN_ORDER if each.title in kept)


def _cell(entry: Entry, which: _Column) -> Span:
    source = entry.source
    if which is _TASK:
        return column(source.task or "", which.width, "muted")
    if which is _LAYERS:
        return column(UNKNOWN if source.layers is None else f"{source.layers:,}", which.width, "muted", right=True)
    if which is _UNIQUE:
        known = source.layers and source.unique_layers is not None
        share = percent((source.unique_layers or 0) / (source.layers or 1)) if known else UNKNOWN
        return column(share, which.width, right=True)
    return _standing_cell(entry.standing, which.width)


def _standing_cell(standing: Standing | None, width: int) -> Span:
    if standing is not None and not standing.possible:
        return column("none", width, "warn", right=True)
    if standing is None or standing.sequential_ms is None:
        return column(UNKNOWN, width, "muted", right=True)
    if standing.measured < standing.layers:
        # A sum over part of a model invites to compare what cannot be compared.
        return column(f"{part_of(standing.measured, standing.layers)} run", width, "warn", right=True)
    return column(milliseconds(standing.sequential_ms), width, "strong", right=True)


def _searched(source: ModelSource) -> str:
    number = f"table1:{source.table1_id}" if source.table1_id else ""
    # The folders above would match for all models that lie in them.
    path = "/".join(source.path.parts[-2:])
    return f"{source.name} {source.task or ''} {number} {path}".casefold()
