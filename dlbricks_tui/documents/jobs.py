"""Runs, fleet runs and other jobs in lists, and a run that was shown again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dlbricks_tui.documents.parts import BLANK_LINE, Column, Part, Sentence, Table, bar_column, name_column, word_column
from dlbricks_tui.wording.numbers import (
    ago,
    duration,
    in_ms,
    milliseconds,
    names_of,
    or_dash,
    partly,
    signed_percent,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dlbricks_tui.api.fleets import FleetSummary
    from dlbricks_tui.api.jobs import JobSummary
    from dlbricks_tui.api.measuring import ReplayedModel, ReplayedRun, RunSummary

# An active job does not store its time by the second.
RUN_COLUMNS: tuple[Column[RunSummary], ...] = (
    name_column("models", lambda it: names_of(it.models)),
    Column("run", lambda it: it.run),
    Column("state", lambda it: it.state.value),
    Column("bricks", lambda it: it.bricks.total),
    Column("measured", lambda it: it.bricks.run),
    Column("known", lambda it: it.bricks.reused),
    Column("failed", lambda it: it.bricks.failed),
    Column("time", lambda it: "" if it.pid else duration(it.seconds)),
)
JOB_COLUMNS: tuple[Column[JobSummary], ...] = (
    name_column("models", lambda it: names_of(it.models)),
    word_column("kind", lambda it: it.kind),
    word_column("job", lambda it: it.id),
    word_column("state", lambda it: it.state.value),
    Column("started", lambda it: ago(it.started)),
    Column("time", lambda it: "" if it.pid else duration(it.seconds)),
    Column("left", lambda it: or_dash(duration, it.seconds_left)),
)
FLEET_COLUMNS: tuple[Column[FleetSummary], ...] = (
    name_column("models", lambda it: names_of(it.models)),
    Column("fleet run", lambda it: it.fleet),
    Column("state", lambda it: it.state.value),
    Column("bricks", lambda it: it.bricks),
    Column("measured", lambda it: it.measured),
    Column("known", lambda it: it.known),
    Column("failed", lambda it: it.failed),
)


def replay_parts(found: ReplayedRun) -> Iterator[Part]:
    """Yield the last estimates that the events of a run tell."""
    if not found.models:
        yield Sentence("its events tell no estimate")
        return
    longest_ms = max((it.sequential_ms or 0.0 for it in found.models), default=0.0) or 1.0
    columns: tuple[Column[ReplayedModel], ...] = (
        name_column("model", lambda it: it.model),
        Column("sequential", lambda it: _sum(it, it.sequential_ms)),
        bar_column(lambda it: (it.sequential_ms or 0.0) / longest_ms),
        Column("95 %", _interval),
        Column("parallel", lambda it: _sum(it, it.parallel_ms)),
        Column("layers", lambda it: f"{it.measured_layers}/{it.layers}"),
        Column("end to end", lambda it: or_dash(in_ms, it.measured_ms)),
        Column("error", lambda it: or_dash(signed_percent, it.error)),
    )
    yield Sentence(found.runtime)
    yield BLANK_LINE
    yield Table(columns, found.models)


def _sum(it: ReplayedModel, latency_ms: float | None) -> str:
    return "-" if latency_ms is None else partly(latency_ms, part=it.measured_layers < it.layers)


def _interval(it: ReplayedModel) -> str:
    if it.low_ms is None or it.high_ms is None:
        return "-"
    return f"{milliseconds(it.low_ms, precise=True)} to {in_ms(it.high_ms)}"
