"""A run shown again from its events, as it was shown while it measured."""

import time
from collections.abc import Iterator
from dataclasses import dataclass

from dlbricks_tui.answers.run_results import ReplayedModel, ReplayedRun, replayed_run
from dlbricks_tui.cli.output import narrate, write_json
from dlbricks_tui.cli.parser import Status
from dlbricks_tui.cli.rendering import show_parts
from dlbricks_tui.cli.run_progress import shown
from dlbricks_tui.documents.parts import BLANK_LINE, Column, Part, Sentence, Table, bar_column, name_column
from dlbricks_tui.runs.replaying import Replay, events_so_far, play
from dlbricks_tui.runs.run_folder import RunFolder
from dlbricks_tui.wording.numbers import duration, in_ms, milliseconds, or_dash, partly, signed_percent


@dataclass(frozen=True, slots=True)
class Showing:
    """How a replay is shown."""

    json: bool = False
    quiet: bool = False


def replay_run(folder: RunFolder, speed: float, showing: Showing) -> int:
    """Show the events of a run again, print the last estimates that they tell, and return the exit status."""
    events = events_so_far(folder)
    replay, seconds = Replay(events, speed, time.monotonic), events[-1].seconds
    if not showing.quiet:
        narrate(
            f"replay of run {folder.run}: {duration(seconds)} of it, {speed:g} times as fast; nothing is measured now"
        )
    with shown(quiet=showing.quiet, clock=lambda: replay.position) as display:
        for event in play(replay, time.sleep):
            display.take(event)
    found = replayed_run(folder.run, display.progress, seconds)
    if showing.json:
        write_json(found)
    else:
        show_parts(_replayed_parts(found))
    if not showing.quiet:
        so_far = "" if display.progress.ended else ", and may go on"
        narrate(f"end of the replay: run {folder.run} was {found.state.value}{so_far}")
    return Status.DONE


def _replayed_parts(found: ReplayedRun) -> Iterator[Part]:
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
