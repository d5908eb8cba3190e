"""The columns of the list of models."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from dlbricks_tui.tui.lines import Line, Span, column, cut
from dlbricks_tui.wording.numbers import PREDICTED, age, milliseconds, part_of, percent

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from dlbricks_tui.estimate.system_estimate import SystemEstimate
    from dlbricks_tui.models.library import ModelSource

UNKNOWN = "·"
# Narrower names would tell little: the first columns are dropped before. The last one leaves less room for names.
LEAST_NAME, _GOOD_NAME = 16, 24
_GAP = 1


@dataclass(frozen=True, slots=True)
class KnownLatency:
    """The known latency of a model, for one cell."""

    sequential_ms: float | None
    # The number of measured layers.
    measured: int
    layers: int
    # True if an estimate is possible at all.
    possible: bool = True
    # True if layers that were not measured have a predicted latency, so that the sum is of all layers.
    predicted: bool = False
    end_to_end_ms: float | None = None
    per_second: float | None = None
    runtime: str = ""
    # The time of the oldest measurement in it, in seconds since 1970; None if nothing was measured.
    since: float | None = None

    @property
    def whole_ms(self) -> float | None:
        """The latency of the whole model; None if the sum lacks layers."""
        return self.sequential_ms if self.predicted or self.measured >= self.layers else None


def known_latency(system_estimate: SystemEstimate) -> KnownLatency:
    """Return an estimate as the list shows it."""
    found, timed = system_estimate.estimate, system_estimate.end_to_end
    between = system_estimate.measured_between
    return KnownLatency(
        system_estimate.sequential_ms,
        found.coverage.measured,
        found.coverage.layers,
        not found.obstacle,
        found.coverage.predicted > 0 and not found.is_partial,
        None if timed is None else timed.value_ms,
        system_estimate.per_second,
        system_estimate.way.runtime,
        None if between is None else between[0],
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
    return latency.runtime if latency is not None and latency.sequential_ms is not None else UNKNOWN, "muted"


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
    if latency is None or latency.sequential_ms is None:
        return UNKNOWN, "muted"
    if latency.predicted:
        return f"{PREDICTED}{milliseconds(latency.sequential_ms)}", "warn"
    if latency.measured < latency.layers:
        # A sum over part of a model would invite wrong comparisons.
        return f"{part_of(latency.measured, latency.layers)} run", "warn"
    return milliseconds(latency.sequential_ms), "strong"


# The most important last: the first ones are dropped when the panel is narrow.
COLUMNS = (
    ModelColumn("task", "task", 4, "the task: image classification (IC), object detection (OD), ...", _task, False),
    ModelColumn("format", "format", 11, "the formats of its files", _format, False),
    ModelColumn("runtime", "runtime", 20, "the runtime of the estimate", _runtime, False),
    ModelColumn("layers", "layers", 6, "the number of layers", _layers),
    ModelColumn("unique", "unique", 6, "the share of layers that differ from all others", _unique),
    ModelColumn("per_second", "per s", 8, "images, sentences or rows in a second, by the estimate", _per_second),
    ModelColumn("measured", "measured", 8, "the end-to-end latency in ms", _measured),
    ModelColumn("age", "age", 6, "the age of the oldest measurement in the estimate", _age),
    ModelColumn("estimate", "est. ms", 8, "the sequential estimate in ms", _estimate),
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
