"""The columns of the list of models."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from dlbricks_tui.documents.lines import Line, Span, column, cut
from dlbricks_tui.wording.answers import combination_words, figure_number
from dlbricks_tui.wording.numbers import PREDICTED, UNKNOWN, age, milliseconds, part_of, percent

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from dlbricks_tui.estimate.system_estimate import SystemEstimate
    from dlbricks_tui.models.library import ModelSource

# Narrower names would tell little: the first columns are dropped before. The last one leaves less room for names.
LEAST_NAME, _GOOD_NAME = 16, 24
_GAP = 1


@dataclass(frozen=True, slots=True)
class KnownLatency:
    """The answer of a model, for the cells of its row."""

    # In milliseconds: `16.70`, `~8.1-15`; empty if there is none.
    figure: str
    # The latency that the list is sorted by; None without a figure.
    whole_ms: float | None
    # The number of measured layers.
    measured: int
    layers: int
    # True if an estimate is possible at all.
    possible: bool = True
    # True if the figure is a prediction.
    predicted: bool = False
    end_to_end_ms: float | None = None
    per_second: float | None = None
    # The runtime and its variant: `mxnet, 2 threads, batch 1`.
    combination: str = ""
    # The time of the oldest measurement in it, in seconds since 1970; None if nothing was measured.
    since: float | None = None


def known_latency(one: SystemEstimate) -> KnownLatency:
    """Return an answer as the list shows it."""
    found, timed, figure = one.estimate, one.end_to_end, one.figure
    whole_ms = None if figure is None else figure.latency.value_ms
    return KnownLatency(
        figure_number(one),
        whole_ms,
        found.coverage.measured if one.is_measured else 0,
        found.coverage.layers,
        not found.obstacle or figure is not None,
        figure is not None and not figure.is_measured,
        None if timed is None else timed.value_ms,
        one.variant.batch_size / whole_ms * 1000 if whole_ms else None,
        combination_words(one),
        figure.between[0] if figure is not None and figure.between is not None else None,
    )


class ModelColumn(NamedTuple):
    """A column with its title, and its meaning for the box that selects columns."""

    name: str
    title: str
    width: int
    about: str
    cell: Callable[[ModelSource, KnownLatency | None, float], tuple[str, str]]
    right: bool = True


def _task(source: ModelSource, _: KnownLatency | None, __: float) -> tuple[str, str]:
    return source.task or "", "muted"


def _layers(source: ModelSource, _: KnownLatency | None, __: float) -> tuple[str, str]:
    return UNKNOWN if source.layers is None else f"{source.layers:,}", "muted"


def _unique(source: ModelSource, _: KnownLatency | None, __: float) -> tuple[str, str]:
    known = source.layers and source.unique_layers is not None
    return percent((source.unique_layers or 0) / (source.layers or 1)) if known else UNKNOWN, "text"


def _format(source: ModelSource, _: KnownLatency | None, __: float) -> tuple[str, str]:
    return ", ".join(form.value for form in source.formats), "muted"


def _runtime(_: ModelSource, latency: KnownLatency | None, __: float) -> tuple[str, str]:
    return latency.combination if latency is not None and latency.figure else UNKNOWN, "muted"


def _per_second(_: ModelSource, latency: KnownLatency | None, __: float) -> tuple[str, str]:
    if latency is None or latency.per_second is None:
        return UNKNOWN, "muted"
    sign = PREDICTED if latency.predicted else ""
    return sign + milliseconds(latency.per_second), "warn" if latency.predicted else "text"


def _measured(_: ModelSource, latency: KnownLatency | None, __: float) -> tuple[str, str]:
    known_ms = None if latency is None else latency.end_to_end_ms
    return UNKNOWN if known_ms is None else milliseconds(known_ms), "muted" if known_ms is None else "text"


def _age(_: ModelSource, latency: KnownLatency | None, now: float) -> tuple[str, str]:
    return UNKNOWN if latency is None or latency.since is None else age(now - latency.since), "muted"


def _estimate(_: ModelSource, latency: KnownLatency | None, __: float) -> tuple[str, str]:
    if latency is not None and not latency.possible:
        return "none", "warn"
    if latency is None or (not latency.figure and not latency.measured):
        return UNKNOWN, "muted"
    if not latency.figure:
        return f"{part_of(latency.measured, latency.layers)} run", "warn"
    return latency.figure, "warn" if latency.predicted else "strong"


# The most important last: the first ones are dropped when the panel is narrow.
COLUMNS = (
    ModelColumn("task", "task", 4, "the task: image classification (IC), object detection (OD), ...", _task, False),
    ModelColumn("format", "format", 11, "the formats of its files", _format, False),
    ModelColumn("runtime", "runtime", 29, "the runtime, threads and batch size of the answer", _runtime, False),
    ModelColumn("layers", "layers", 6, "the number of layers", _layers),
    ModelColumn("unique", "unique", 6, "the share of layers that differ from all others", _unique),
    ModelColumn("per_second", "per s", 8, "images, sentences or rows in a second, by the answer", _per_second),
    ModelColumn("measured", "measured", 8, "the end-to-end latency in ms", _measured),
    ModelColumn("age", "age", 6, "the age of the oldest measurement in the answer", _age),
    ModelColumn("estimate", "ms", 10, "the answer in ms: the fastest one measured, or a predicted range", _estimate),
)
FIRST_COLUMNS = ("task", "layers", "unique", "age", "estimate")


def columns_in(names: Collection[str]) -> tuple[ModelColumn, ...]:
    """Return the columns of these names, in their order in the list."""
    return tuple(it for it in COLUMNS if it.name in names)


def fitting(columns: Sequence[ModelColumn], width: int) -> tuple[Sequence[ModelColumn], int]:
    """Return the columns that fit beside the names, and the width of the names."""
    first, room = len(columns), width
    while first and room - columns[first - 1].width - _GAP >= (LEAST_NAME if first == len(columns) else _GOOD_NAME):
        first -= 1
        room -= columns[first].width + _GAP
    return columns[first:], room


def cells(columns: Sequence[ModelColumn], source: ModelSource, latency: KnownLatency | None, now: float) -> Line:
    """Return the cells of a model, each after a gap."""
    spans: list[Span] = []
    for each in columns:
        text, style = each.cell(source, latency, now)
        spans += [Span(" " * _GAP), column(text, each.width, style, right=each.right)]
    return tuple(spans)


def titles(columns: Sequence[ModelColumn], sorted_by: str, sign: str) -> Line:
    """Return the titles of the columns; the sign marks the column that the list is sorted by."""
    spans: list[Span] = []
    for each in columns:
        title = sign + each.title if each.name == sorted_by else each.title
        spans += [Span(" " * _GAP), column(cut(title, each.width), each.width, "heading", right=each.right)]
    return tuple(spans)
