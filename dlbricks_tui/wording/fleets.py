"""Fleets, machines and suites in words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from dlbricks_tui.estimate.comparison import PRICES_FILE, Candidate, cheapest, quickest
from dlbricks_tui.fleet.request import FleetHostState, FleetProgress, HostBrickFailed, HostChanged, HostRow
from dlbricks_tui.jobs.events import Event
from dlbricks_tui.printable import printable
from dlbricks_tui.runs.events import ModelLeftOut
from dlbricks_tui.wording.answers import combination_words, figure_text
from dlbricks_tui.wording.numbers import PARTLY, counted, duration, in_ms

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dlbricks_tui.share.exporting import OmittedBrick, SuiteWritten
    from dlbricks_tui.share.results_file import SuiteImport

_MOST_HOSTS_IN_A_LINE = 4
# States whose reason a user should read.
_TOLD = (
    *(FleetHostState.CONNECTING, FleetHostState.LOST, FleetHostState.REFUSED, FleetHostState.DISTRUSTED),
    *(FleetHostState.FAILED, FleetHostState.WAITING, FleetHostState.CANCELLED),
)
# States in which a host has some time left.
WORKING = (FleetHostState.PROBING, FleetHostState.MEASURING)


def host_line(it: HostRow) -> str:
    """Return how far a host is."""
    words = [f"{it.name} {it.state.value}"]
    if it.of:
        words.append(f"{it.bricks:,} of {counted(it.of, 'brick')}")
    if it.failed:
        words.append(f"{it.failed:,} failed")
    if it.seconds_left and it.state in WORKING:
        words.append(f"{duration(it.seconds_left)} left")
    return ", ".join(words)


def fleet_line(progress: FleetProgress) -> str:
    """Return how far all hosts are, in one line."""
    rows = list(progress.hosts.values())
    if not rows:
        return "waiting for hosts"
    told = [host_line(it) for it in rows[:_MOST_HOSTS_IN_A_LINE]]
    more = len(rows) - _MOST_HOSTS_IN_A_LINE
    if more > 0:
        told.append(f"and {counted(more, 'more host')}")
    return "; ".join(told)


def settled_line(settled: Iterable[bool]) -> str:
    """Return for how many models the order of hosts is settled."""
    found = list(settled)
    return f"the order of hosts is sure for {sum(found)} of {counted(len(found), 'model')}"


def note_line(event: Event, progress: FleetProgress) -> str:
    """Return the line about an event that a user should know, after all events before it; empty if there is none."""
    match event:
        case ModelLeftOut():
            return f"{event.model} is left out: {event.reason}"
        case HostBrickFailed():
            return f"{event.host}: {event.label} failed: {event.reason}"
        case HostChanged(message=message) if message and FleetHostState(event.state) in _TOLD:
            before = progress.hosts.get(event.host)
            # Each attempt to reach a host again has a message.
            if before is None or before.state.value != event.state or not before.message:
                return f"{event.host} {event.state}: {message}"
    return ""


def machines_question(model: str) -> str:
    """Return the question about the systems; an empty name stands for no model."""
    return f"Which system is quickest and cheapest for {printable(model) if model else 'a model'}?"


def machines_answer(model: str, found: Sequence[Candidate]) -> str:
    """Return the quickest and the cheapest system of a model as a sentence."""
    if not found:
        return f"{printable(model)} was not measured on any system."
    best, thrifty = quickest(found), cheapest(found)
    if len(found) == 1:
        return f"Only {_figure(found[0])} has results of it."
    if best is None:
        return f"None of {counted(len(found), 'system')} has enough results to tell."
    told = f"{_figure(best)} is the quickest of {counted(len(found), 'system')}"
    if thrifty is None:
        return f"{told}. For costs, write prices into {PRICES_FILE} in the data folder."
    if thrifty is best:
        return f"{told}, and the cheapest: {_cost(thrifty)}."
    return f"{told}; {_figure(thrifty)} is the cheapest: {_cost(thrifty)}."


def _figure(it: Candidate) -> str:
    figure = figure_text(it.estimate) or f"{PARTLY}{in_ms(it.latency_ms)}"
    return f"{printable(it.estimate.way.system)} ({figure}: {combination_words(it.estimate)})"


def _cost(it: Candidate) -> str:
    return f"$ {it.dollars_per_million:.2f} for a million inferences"


def suite_contents(suite: SuiteWritten) -> str:
    """Return the numbers of bricks in a suite: `28 bricks of yours among 67 of 3 decoys`."""
    return f"{counted(suite.bricks, 'brick')} of yours among {suite.decoy_bricks} of {counted(suite.decoys, 'decoy')}"


def untravelled(bricks: Iterable[OmittedBrick]) -> list[str]:
    """Return a line for each brick that a suite cannot hold."""
    return [f"cannot travel: {it.label}: it {it.reason}" for it in bricks]


def import_outcome(found: SuiteImport) -> str:
    """Return what an import has brought: `28 new bricks of yours, 0 known; 0 failed there, 0 not measured`."""
    told = f"{counted(found.new, 'new brick')} of yours, {found.known} known"
    return f"{told}; {found.failed} failed there, {found.missing} not measured"
