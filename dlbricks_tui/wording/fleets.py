"""Fleet runs in words, for the TUI and the command line."""

from collections import Counter
from collections.abc import Iterable, Sequence

from dlbricks_tui.fleet.events import HostBrickFailed, HostChanged, HostEstimate, HostState, ModelLeftOut
from dlbricks_tui.fleet.progress import FleetProgress, HostRow
from dlbricks_tui.measure.events import Event
from dlbricks_tui.wording.numbers import PARTLY, PREDICTED, counted, duration, milliseconds, names_of

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
ORDER_LEGEND = "a < b: a is faster; a = b: equally fast, within 2 %"


def latency_on(it: HostEstimate) -> str:
    """Return the latency of a model on a host, with the sign of a prediction or of missing layers."""
    if it.sequential_ms is None:
        return "-"
    sign = PARTLY if it.missing_layers else PREDICTED if it.predicted_layers else ""
    return f"{sign}{milliseconds(it.sequential_ms)}"


def dollars(it: HostEstimate) -> str:
    """Return the cost of a million inferences; a dash without a price."""
    return "-" if it.dollars_per_million is None else f"${it.dollars_per_million:,.2f}"


def order_in_words(order: Sequence[Sequence[str]]) -> str:
    """Return hosts in their order, such as `b < a = c`."""
    return " < ".join(" = ".join(rank) for rank in order)


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


def fleet_question(question: str, models: Sequence[str], hosts: int) -> str:
    """Return the question of a fleet run."""
    if question == "which-host":
        return f"Which host is fastest for {names_of(models)}?"
    return f"How fast are {names_of(models)} on {counted(hosts, 'host')}?"


def fastest_sentence(fastest: Sequence[Sequence[str]], *, settled: bool) -> str:
    """Return the fastest hosts of all models; several of a model are equally fast, none has no estimate yet.

    Hosts whose order is not settled are said to be fastest so far.
    """
    firsts = {tuple(it) for it in fastest if it}
    so_far = "" if settled and all(fastest) else " so far"
    if len(firsts) == 1:
        (first,) = firsts
        verb = "is" if len(first) == 1 else "are"
        return f"{' and '.join(first)} {verb} fastest for every model{so_far}"
    wins = Counter(host for hosts in fastest for host in hosts)
    told = ", ".join(f"{host} for {counted(count, 'model')}" for host, count in wins.most_common(3))
    return f"The fastest host{so_far} differs: {told}"


def hosts_sentence(estimates: Sequence[HostEstimate], fastest: Sequence[str], *, settled: bool) -> str:
    """Return the fastest hosts of a model, and how much longer the slowest one takes."""
    known = {it.host: it for it in estimates if it.sequential_ms}
    best = next((known[host] for host in fastest if host in known), None)
    if best is None:
        return "No host has an estimate yet."
    slowest = max(known.values(), key=lambda it: it.sequential_ms or 0.0)
    words = f"{' and '.join(fastest)}: {latency_on(best)} ms"
    if slowest.host not in fastest:
        times = (slowest.sequential_ms or 0.0) / (best.sequential_ms or 1.0)
        words += f"; {slowest.host} takes {times:.2f} times as long"
    return f"{words}; the order is {'settled' if settled else 'open'}."


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
