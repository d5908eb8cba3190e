"""An engine whose hosts are objects: they measure a few bricks each time the driver waits, and lie on demand."""

import itertools
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from dlbricks_tui import __version__
from dlbricks_tui.fleet.engine import Engine, HostAnswered, HostJoined, HostLeft, HostSaid, News
from dlbricks_tui.fleet.messages import (
    HostReport,
    Parcel,
    ResultFound,
    Task,
    TaskProgress,
    TaskState,
    message_in,
    text_of,
)
from dlbricks_tui.fleet.request import HostEntry
from dlbricks_tui.measure.method import Method
from dlbricks_tui.models.graph import Level
from dlbricks_tui.store.documents import to_document
from dlbricks_tui.store.records import Measurement, Record, System, utc_now
from tests.runs.runs import FAKE
from tests.store.samples import measurement, system

BRICKS_PER_STEP = 3
# A lie: returns the texts that a host sends in the place of an honest message.
Lie = Callable[["FakeHost", Task, str], Sequence[str]]


@dataclass(slots=True)
class FakeHost:
    """A host with a store of its own, which outlives its tasks and its driver."""

    name: str
    system: System
    latency_ms: float = 1.0
    lie: Lie | None = None
    # Fields of its report that are not as they should be.
    changes: dict[str, Any] = field(default_factory=dict)
    # The bricks that it cannot tell anything about, and those during which it goes away.
    unknown: frozenset[str] = frozenset()
    deadly: frozenset[str] = frozenset()
    # The reason why it cannot carry out tasks.
    fault: str = ""
    store: dict[str, Measurement] = field(default_factory=dict)
    tasks: list[Task] = field(default_factory=list)
    task: Task | None = None
    waiting: list[str] = field(default_factory=list)
    is_there: bool = True
    is_paused: bool = False

    def report(self) -> str:
        """Return what it says of itself."""
        honest = HostReport(
            dlbricks=__version__,
            python="3.11.0",
            methods={method.value: method.id for method in Method},
            runtimes=(FAKE.identity,),
            system=to_document(self.system),
            clock=utc_now(),
        )
        return text_of(replace(honest, **self.changes))

    def measured(self, brick: str) -> Measurement:
        """Return its result of a brick, the same whenever it is asked for."""
        if brick not in self.store:
            self.store[brick] = self.result(brick)
        return self.store[brick]

    def result(self, brick: str, **changes: Any) -> Measurement:
        """Return a new result of a brick."""
        way = {"system": self.system.id, "runtime": FAKE.identity, "protocol": Method.INSIDE.id}
        about = {"brick": brick, "context": "", "level": Level.WRITTEN, "run": f"run on {self.name}"}
        return measurement(self.latency_ms, **{**way, **about, **changes})


def record_text(record: Record) -> str:
    """Return the message that sends a record."""
    return text_of(ResultFound(record=to_document(record)))


class FakeEngine(Engine):
    """Speaks as the engine does; time passes when the driver waits, without taking any, and the hosts work."""

    def __init__(self, hosts: Iterable[FakeHost]) -> None:
        self.hosts = {host.name: host for host in hosts}
        self.now = 0.0
        self.waiting: deque[News] = deque()
        # Called before each step of all hosts.
        self.before_step: Callable[[int], object] = lambda _: None
        self.is_closed = False
        self._steps = itertools.count()

    def clock(self) -> float:
        return self.now

    def start(self) -> None:
        self.is_closed = False
        for host in self.hosts.values():
            if host.is_there:
                self.waiting.append(HostJoined(host.name))

    def close(self) -> None:
        self.is_closed = True
        self.waiting.clear()
        for host in self.hosts.values():
            host.task = None

    def add(self, entry: HostEntry) -> None:
        """Let one more host join."""
        self.hosts[entry.name] = FakeHost(entry.name, another_system(entry.name))
        self.waiting.append(HostJoined(entry.name))

    def wait(self, seconds: float) -> Sequence[News]:
        if not self.waiting:
            self._work(seconds)
        found = list(self.waiting)
        self.waiting.clear()
        return found

    def report(self, host: str, task: str = "") -> None:
        self.waiting.append(HostAnswered(host, "", self.hosts[host].report()))

    def carry_out(self, host: str, task: Task, parcels: Sequence[Parcel]) -> None:
        it, given = self.hosts[host], message_in(text_of(task), Task)
        if it.fault:
            self.waiting.append(HostAnswered(host, task.id, "", it.fault))
            return
        assert it.task is None, "a host has one task at a time"
        assert given.language or set(given.bricks) <= {brick for parcel in parcels for brick in parcel.bricks}
        it.task, it.waiting = given, list(given.bricks)
        it.tasks.append(given)

    def control(self, host: str, task: str, what: str) -> None:
        it = self.hosts[host]
        if it.task is None or it.task.id != task:
            return
        if what == "cancel":
            self._end(it, it.task, "cancelled")
        else:
            it.is_paused = what == "pause"

    def lose(self, name: str) -> None:
        """Let a host go away."""
        host = self.hosts[name]
        host.is_there, host.is_paused, host.task = False, False, None
        self.waiting.append(HostLeft(name))

    def bring_back(self, name: str) -> None:
        """Let a host return."""
        self.hosts[name].is_there = True
        self.waiting.append(HostJoined(name))

    def _work(self, seconds: float) -> None:
        """Let time pass: each host measures a few bricks."""
        self.now += seconds
        self.before_step(next(self._steps))
        for host in self.hosts.values():
            for _ in range(BRICKS_PER_STEP):
                if host.is_there and host.task is not None and not host.is_paused:
                    self._step(host, host.task)

    def _step(self, host: FakeHost, task: Task) -> None:
        if not host.waiting:
            self._end(host, task, "finished")
            return
        brick = host.waiting.pop(0)
        if brick in host.deadly:
            self.lose(host.name)
            return
        if brick in host.unknown:
            return
        honest = record_text(host.measured(brick))
        for text in [honest] if host.lie is None else host.lie(host, task, brick):
            self.waiting.append(HostSaid(host.name, task.id, text))
        done, of = len(task.bricks) - len(host.waiting), len(task.bricks)
        self.waiting.append(HostSaid(host.name, task.id, text_of(progress(done, of))))

    def _end(self, host: FakeHost, task: Task, state: TaskState) -> None:
        host.task, host.is_paused = None, False
        self.waiting.append(HostAnswered(host.name, task.id, text_of(TaskProgress(state=state))))


def progress(done: int, of: int, **fields: Any) -> TaskProgress:
    """Return the progress of a task on a quiet host."""
    told = {"seconds_left": 1.0, "disturbed_rounds": 0, "disturbed_seconds": 0.0}
    return TaskProgress(done=done, of=of, **{**told, **fields})


def another_system(name: str) -> System:
    """Return the system of a host."""
    return replace(system(f"{name}-4c"), name=name)
