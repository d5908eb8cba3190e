"""Fleet runs in words, for the TUI and the command line."""

from collections.abc import Iterable

from dlbricks_tui.fleet.events import FleetProgress, HostBrickFailed, HostChanged, HostRow, HostState
from dlbricks_tui.measure.events import Event
from dlbricks_tui.runs.events import ModelLeftOut
from dlbricks_tui.wording.numbers import counted, duration

_MOST_HOSTS_IN_A_LINE = 4
# States whose reason a user should read.
_TOLD = frozenset(
    {
        *(HostState.CONNECTING, HostState.LOST, HostState.REFUSED, HostState.DISTRUSTED, HostState.FAILED),
        *(HostState.WAITING, HostState.CANCELLED),
    }
)
# States in which a host has some time left.
WORKING = frozenset({HostState.PROBING, HostState.MEASURING})


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
    """Return how many orders of hosts are settled."""
    found = list(settled)
    return f"{sum(found)} of {len(found)} orders settled"


def note_line(event: Event, progress: FleetProgress) -> str:
    """Return the line about an event that a user should know, after all events before it; empty if there is none."""
    match event:
        case ModelLeftOut():
            return f"{event.model} is left out: {event.reason}"
        case HostBrickFailed():
            return f"{event.host}: {event.label} failed: {event.reason}"
        case HostChanged(message=message) if message and HostState(event.state) in _TOLD:
            before = progress.hosts.get(event.host)
            # Each attempt to reach a host again has a message.
            if before is None or before.state.value != event.state or not before.message:
                return f"{event.host} {event.state}: {message}"
    return ""
