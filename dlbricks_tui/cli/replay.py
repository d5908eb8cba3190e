"""A run shown again from its events, as it was shown while it measured."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from dlbricks_tui.answers.run_results import ReplayedModel, ReplayedRun, replayed_run
from dlbricks_tui.cli.drawing import name_cell, pen_for, plain_table
from dlbricks_tui.cli.output import data_console, narrate, show, write_json
from dlbricks_tui.cli.parser import Status
from dlbricks_tui.cli.run_progress import shown
from dlbricks_tui.runs.replaying import Replay, events_so_far, play
from dlbricks_tui.runs.run_folder import RunFolder
from dlbricks_tui.wording.numbers import duration, in_ms, milliseconds, partly, signed_percent

# The width of the other columns, with short names.
_BESIDE_BARS = 86


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
        show(*_replayed_view(found))
    if not showing.quiet:
        so_far = "" if display.progress.ended else ", and may go on"
        narrate(f"end of the replay: run {folder.run} was {found.state.value}{so_far}")
    return Status.DONE


def _replayed_view(found: ReplayedRun) -> Iterator[RenderableType]:
    if not found.models:
        yield Text("its events tell no estimate")
        return
    yield Text(f"{found.runtime}\n")
    yield _table(found.models)


def _table(models: Sequence[ReplayedModel]) -> Table:
    pen = pen_for(data_console(), _BESIDE_BARS)
    longest_ms = max((it.sequential_ms or 0.0 for it in models), default=0.0) or 1.0
    table = plain_table("MODEL", "SEQUENTIAL", "", "95 %", "PARALLEL", "LAYERS", "END TO END", "ERROR")
    for it in models:
        part = it.measured_layers < it.layers
        table.add_row(
            name_cell(it.model),
            "-" if it.sequential_ms is None else partly(it.sequential_ms, part=part),
            pen.bar((it.sequential_ms or 0.0) / longest_ms),
            _interval(it),
            "-" if it.parallel_ms is None else partly(it.parallel_ms, part=part),
            f"{it.measured_layers}/{it.layers}",
            "-" if it.measured_ms is None else in_ms(it.measured_ms),
            "-" if it.error is None else signed_percent(it.error),
        )
    return table


def _interval(it: ReplayedModel) -> str:
    if it.low_ms is None or it.high_ms is None:
        return "-"
    return f"{milliseconds(it.low_ms, precise=True)} to {in_ms(it.high_ms)}"
