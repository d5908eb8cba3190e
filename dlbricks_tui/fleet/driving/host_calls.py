"""The calls to hosts, one after another: a host gets the parcels that it lacks, and then its task."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from typing import Protocol, TypeAlias

from dlbricks_tui.fleet.encoding import task_text
from dlbricks_tui.fleet.engine.events import Answered, Calls, EngineEvent, HostJoined, HostLeft, HostSaid
from dlbricks_tui.fleet.hosts import HostEntry
from dlbricks_tui.fleet.messages import Parcel, Task

# More than these wait until the driver has looked after everything else.
_MOST_AT_ONCE = 5_000


class CallEngine(Calls, Protocol):
    """The part of the engine that a driver uses."""

    @property
    def events(self) -> "SimpleQueue[EngineEvent]":
        """What happens at the hosts, in order."""

    def start(self) -> None:
        """Begin to watch for hosts."""

    def close(self) -> None:
        """Give up all calls."""


@dataclass(frozen=True, slots=True)
class Reported:
    """The report of a host as JSON, or the reason why it has none."""

    host: str
    text: str = field(repr=False)
    error: str = ""


@dataclass(frozen=True, slots=True)
class TaskOver:
    """The end of a task of a host, with everything that it has sent once more, or the reason why there is nothing."""

    host: str
    task: str
    text: str = field(repr=False)
    error: str = ""


@dataclass(frozen=True, slots=True)
class CallLost:
    """A host went away during a call, or could not be called."""

    host: str


@dataclass(frozen=True, slots=True)
class HostUnreachable:
    """A host cannot be reached, for this reason. It is tried again later, unless that is final."""

    host: str
    reason: str
    is_final: bool = False


News: TypeAlias = HostJoined | HostLeft | HostSaid | Reported | TaskOver | CallLost | HostUnreachable


@dataclass(slots=True, eq=False)
class _Errand:
    """A task on its way to a host, with the parcels that it needs first."""

    host: str
    task: Task
    parcels: dict[str, Parcel]
    # The answers that are still to come before the task can be given.
    waiting: set[str] = field(default_factory=set)
    call: str = ""
    is_cancelled: bool = False


class HostCalls:
    """Calls hosts through an engine, and passes on what comes of it."""

    def __init__(
        self,
        engine: CallEngine,
        add: Callable[[HostEntry], None],
        release: Callable[[], None] = lambda: None,
        unreachable: "SimpleQueue[HostUnreachable] | None" = None,
    ) -> None:
        """`add` reaches one more host, and `release` ends the connections to all of them.

        `unreachable` has what goes wrong with the connections.
        """
        self._unreachable = unreachable
        self._engine = engine
        self._add = add
        self._release = release
        # The parcels that each host has, as far as this driver knows.
        self._held: dict[str, set[str]] = {}
        self._reports: set[str] = set()
        self._errands: dict[str, _Errand] = {}

    def start(self) -> None:
        """Begin to watch for hosts."""
        self._engine.start()

    def close(self) -> None:
        """Give up all calls, and end the connections."""
        try:
            self._engine.close()
        finally:
            self._release()

    def add(self, entry: HostEntry) -> None:
        """Reach one more host; raise FleetError if that is not possible."""
        self._add(entry)

    def report(self, host: str) -> None:
        """Ask a host for its report."""
        self._reports.add(self._engine.report(host))

    def submit(self, host: str, task: Task, parcels: Sequence[Parcel]) -> None:
        """Give a host a task, and before that the parcels that it lacks."""
        errand = _Errand(host, task, {parcel.sha256: parcel for parcel in parcels})
        unsure = [sha256 for sha256 in errand.parcels if sha256 not in self._held.setdefault(host, set())]
        if unsure:
            self._expect(errand, self._engine.missing(host, unsure))
        else:
            self._carry_out(errand)

    def control(self, host: str, task: str, what: str) -> None:
        """Pause, resume or cancel a task."""
        for errand in self._errands.values():
            if errand.task.id == task and what == "cancel":
                errand.is_cancelled = True
        self._engine.control(host, task, what)

    def wait(self, seconds: float) -> Sequence[News]:
        """Return what has happened, after a while if nothing has."""
        found: list[News] = []
        events = self._engine.events
        try:
            found += self._news(events.get(timeout=seconds))
            while len(found) < _MOST_AT_ONCE:
                found += self._news(events.get_nowait())
        except Empty:
            pass
        while self._unreachable is not None and not self._unreachable.empty():
            found.append(self._unreachable.get())
        return found

    def _news(self, event: EngineEvent) -> Sequence[News]:
        if isinstance(event, HostLeft):
            # Its folder may be another one when it returns.
            self._held.pop(event.host, None)
        return self._answered(event) if isinstance(event, Answered) else [event]

    def _answered(self, answer: Answered) -> Sequence[News]:
        errand = self._errands.pop(answer.call, None)
        if answer.call in self._reports:
            self._reports.discard(answer.call)
            return [CallLost(answer.host) if answer.lost else Reported(answer.host, answer.text, answer.error)]
        if errand is None:
            return []
        if answer.lost:
            return [CallLost(errand.host)]
        if answer.error:
            return [TaskOver(errand.host, errand.task.id, "", answer.error)]
        if answer.call == errand.call:
            return [TaskOver(errand.host, errand.task.id, answer.text)]
        if errand.is_cancelled:
            return [TaskOver(errand.host, errand.task.id, "", "it was cancelled before it began")]
        errand.waiting.discard(answer.call)
        lacking = _hashes(answer.text)
        for sha256 in errand.parcels.keys() & lacking:
            self._expect(errand, self._engine.send(errand.host, errand.parcels[sha256]))
        if not errand.waiting:
            self._held.setdefault(errand.host, set()).update(errand.parcels)
            self._carry_out(errand)
        return []

    def _expect(self, errand: _Errand, call: str) -> None:
        errand.waiting.add(call)
        self._errands[call] = errand

    def _carry_out(self, errand: _Errand) -> None:
        errand.call = self._engine.carry_out(errand.host, task_text(errand.task))
        self._errands[errand.call] = errand


def _hashes(text: str) -> frozenset[str]:
    """Return the hashes in the answer to a question for missing parcels; that to a sent parcel has none."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return frozenset()
    return frozenset(it for it in found if isinstance(it, str)) if isinstance(found, list) else frozenset()
