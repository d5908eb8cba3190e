"""The compositions of the latencies of layer sequences to that of a model (paper, section 3.2).

Latencies are whole picoseconds here, so that sums are exact: one worker takes exactly the sequential time, and
unlimited workers exactly the time of the critical path.

Rules of the user say which layers may run in parallel, how many, and how much they slow each other down.
"""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from fractions import Fraction
from heapq import heappop, heappush
from pathlib import Path
from typing import Any, NamedTuple

from dlbricks_tui import files
from dlbricks_tui.errors import UserError
from dlbricks_tui.models.graph import Layer
from dlbricks_tui.models.kinds import Kind


class EstimateError(UserError):
    """The requested estimate is not possible, or a file of rules or prices has a mistake."""


PICOSECONDS_PER_MS = 1_000_000_000


def to_picoseconds(latency_ms: float) -> int:
    """Convert a latency to the unit of the compositions."""
    return round(latency_ms * PICOSECONDS_PER_MS)


def from_picoseconds(latency_ps: int) -> float:
    """Convert picoseconds to milliseconds."""
    return latency_ps / PICOSECONDS_PER_MS


class Sharing(NamedTuple):
    """The limits of a task that runs beside others. Tasks with equal `Sharing` count together towards `at_most`."""

    parallel: bool = True
    at_most: int | None = None
    # The factor of its latency while any other task runs.
    slowdown: Fraction = Fraction(1)
    # Distinguishes two limits of the same size.
    label: str = ""


FREELY = Sharing()


class SequenceTask(NamedTuple):
    """A sequence to execute: its latency by itself, and the earlier tasks that must end before it begins."""

    latency_ps: int
    after: tuple[int, ...] = ()
    sharing: Sharing = FREELY


class CriticalPath(NamedTuple):
    """The longest path through the tasks: the least latency of any schedule that keeps their order."""

    latency_ps: int
    tasks: tuple[int, ...]


def critical_path(tasks: Sequence[SequenceTask]) -> CriticalPath:
    """Return the longest path through the tasks; of equally long ones the first."""
    ends: list[int] = []
    before: list[int | None] = []
    for task in tasks:
        latest = max(task.after, key=ends.__getitem__, default=None)
        before.append(latest)
        ends.append(task.latency_ps + (0 if latest is None else ends[latest]))
    # Of equal ends the last: tasks without latency at the end of a model are on the path too.
    last = max(reversed(range(len(tasks))), key=ends.__getitem__, default=None)
    longest = 0 if last is None else ends[last]
    path: list[int] = []
    while last is not None:
        path.append(last)
        last = before[last]
    return CriticalPath(longest, tuple(reversed(path)))


class Placed(NamedTuple):
    """The begin and the end of a task."""

    begin_ps: int
    end_ps: int


class Schedule(NamedTuple):
    """The begin and the end of each task, in the order of the tasks."""

    placed: tuple[Placed, ...]

    @property
    def latency_ps(self) -> int:
        """The time from the first begin to the last end."""
        return max((each.end_ps for each in self.placed), default=0)


def schedule(tasks: Sequence[SequenceTask], workers: int | None = None) -> Schedule:
    """Return the list schedule on some workers; None: as many as are useful.

    A free worker takes the ready task with the longest path to the end. If that task must run by itself, less urgent
    tasks wait until it has the machine for itself.
    """
    return _ListScheduling(tasks, workers).run()


class _ListScheduling:
    def __init__(self, tasks: Sequence[SequenceTask], workers: int | None) -> None:
        self.tasks = tasks
        self.workers = workers
        self.now_ps = 0
        # The end of each running task, if as many tasks as now keep running.
        self.running: dict[int, int] = {}
        # Entries that differ from `running` are out of date and skipped.
        self.ends: list[tuple[int, int]] = []
        self.ready: list[tuple[int, int]] = []
        # Ready tasks that the limit of their sharing holds back.
        self.parked: defaultdict[Sharing, list[tuple[int, int]]] = defaultdict(list)
        self.active: defaultdict[Sharing, int] = defaultdict(int)
        self.crowded = False

    def run(self) -> Schedule:
        readers: list[list[int]] = [[] for _ in self.tasks]
        for number, task in enumerate(self.tasks):
            for source in task.after:
                readers[source].append(number)
        # The longest path to the end.
        urgency = [0] * len(self.tasks)
        for number in reversed(range(len(self.tasks))):
            later = max((urgency[reader] for reader in readers[number]), default=0)
            urgency[number] = self.tasks[number].latency_ps + later
        waits_for = [len(task.after) for task in self.tasks]
        begins = [0] * len(self.tasks)
        ends = [0] * len(self.tasks)
        for number, count in enumerate(waits_for):
            if not count:
                heappush(self.ready, (-urgency[number], number))
        while self.ready or self.running:
            started = self._start()
            for number in started:
                begins[number] = self.now_ps
            crowded = len(self.running) > 1
            if crowded != self.crowded:
                # At most one task goes on: with more of them `crowded` would not have changed. It runs by itself now,
                # or no longer does.
                for number in self.running.keys() - set(started):
                    left_ps = self.running[number] - self.now_ps
                    self._expect(number, left_ps if crowded else left_ps / self.tasks[number].sharing.slowdown, crowded)
                self.crowded = crowded
            for number in started:
                self._expect(number, self.tasks[number].latency_ps, crowded)
            for number in self._finish():
                ends[number] = self.now_ps
                for reader in readers[number]:
                    waits_for[reader] -= 1
                    if not waits_for[reader]:
                        heappush(self.ready, (-urgency[reader], reader))
        return Schedule(tuple(map(Placed, begins, ends)))

    def _start(self) -> list[int]:
        started: list[int] = []
        while self.ready and (self.workers is None or len(self.running) < self.workers):
            sharing = self.tasks[self.ready[0][1]].sharing
            if self.running and not (sharing.parallel and self.tasks[next(iter(self.running))].sharing.parallel):
                break
            entry = heappop(self.ready)
            if sharing.at_most is not None and self.active[sharing] >= sharing.at_most:
                heappush(self.parked[sharing], entry)
                continue
            self.active[sharing] += 1
            self.running[entry[1]] = self.now_ps
            started.append(entry[1])
        return started

    def _expect(self, number: int, alone_ps: int | Fraction, crowded: bool) -> None:
        slowdown = self.tasks[number].sharing.slowdown if crowded else 1
        self.running[number] = self.now_ps + round(alone_ps * slowdown)
        heappush(self.ends, (self.running[number], number))

    def _finish(self) -> list[int]:
        """Advance to the next end, and return the tasks that end there."""
        finished: list[int] = []
        while self.ends and (not finished or self.ends[0][0] == self.now_ps):
            end_ps, number = heappop(self.ends)
            if self.running.get(number) != end_ps:
                continue
            self.now_ps = end_ps
            del self.running[number]
            finished.append(number)
            sharing = self.tasks[number].sharing
            self.active[sharing] -= 1
            if self.parked[sharing]:
                heappush(self.ready, heappop(self.parked[sharing]))
        return finished


_WHAT = "rules file"
_TABLE = "rule"
_PATTERNS = ("ops", "kinds", "names")
_KEYS = (*_PATTERNS, "parallel", "at_most", "slowdown")
# Larger than any real slowdown. Without a limit latencies could overflow.
_MOST_SLOWDOWN = 1_000_000


class Rule(NamedTuple):
    """Patterns of layers, and how these share the machine; an empty pattern list matches all layers."""

    sharing: Sharing
    ops: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    names: tuple[str, ...] = ()

    def covers(self, layer: Layer) -> bool:
        """True if a layer matches all pattern lists."""
        return all(
            not patterns or any(fnmatchcase(text, pattern) for text in texts for pattern in patterns)
            for texts, patterns in (
                # Users know fused operators by the operators inside.
                ((layer.op, *(op for it in layer.operators for op in (it.op, *it.parts))), self.ops),
                ((layer.kind.value,), self.kinds),
                ((layer.name,), self.names),
            )
        )


class Rules(NamedTuple):
    """The rules of a file in order; the first one that covers a layer counts."""

    rules: tuple[Rule, ...] = ()

    def sharing_of(self, layers: Sequence[Layer]) -> Sharing:
        """Return how a sequence shares the machine: as the strictest of its layers."""
        if not self.rules:
            return FREELY
        found = {next((rule.sharing for rule in self.rules if rule.covers(layer)), FREELY) for layer in layers}
        limited = min(found, key=lambda sharing: (sharing.at_most or math.inf, sharing.label), default=FREELY)
        return Sharing(
            parallel=all(sharing.parallel for sharing in found),
            at_most=limited.at_most,
            slowdown=max((sharing.slowdown for sharing in found), default=FREELY.slowdown),
            label=limited.label,
        )


NO_RULES = Rules()


def read_rules(path: Path) -> Rules:
    return parse_rules(read_text(path, _WHAT), f"{_WHAT} {path}")


def parse_rules(text: str, where: str) -> Rules:
    """Return the rules in a TOML text; `where` names the text in error messages."""
    document = parse_toml(text, where)
    tables = document.pop(_TABLE, [])
    if document:
        raise EstimateError(f"{where}: {next(iter(document))!r} means nothing here; write [[{_TABLE}]] tables")
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise EstimateError(f"{where}: each rule begins with [[{_TABLE}]], in two pairs of brackets")
    return Rules(tuple(_rule(table, f"{where}, rule {number}") for number, table in enumerate(tables, 1)))


def _rule(table: Mapping[str, Any], where: str) -> Rule:
    for key in table:
        if key not in _KEYS:
            raise EstimateError(f"{where}: {key!r} means nothing; a rule has {', '.join(_KEYS)}")
    parallel = table.get("parallel", True)
    if not isinstance(parallel, bool):
        raise EstimateError(f"{where}: parallel is true or false, not {parallel!r}")
    if not parallel and {"at_most", "slowdown"} & table.keys():
        raise EstimateError(f"{where}: what is not parallel shares with nothing; take out at_most and slowdown")
    at_most, slowdown = table.get("at_most"), table.get("slowdown", 1)
    if at_most is not None and (not isinstance(at_most, int) or isinstance(at_most, bool) or at_most < 1):
        raise EstimateError(f"{where}: at_most is a whole number, 1 or more, not {at_most!r}")
    if not isinstance(slowdown, int | float) or isinstance(slowdown, bool) or not 1 <= slowdown <= _MOST_SLOWDOWN:
        raise EstimateError(
            f"{where}: slowdown is a number from 1 to a million, by which a latency is multiplied, not {slowdown!r}"
        )
    patterns = {key: table.get(key, []) for key in _PATTERNS}
    for key, value in patterns.items():
        if not isinstance(value, list) or not all(isinstance(each, str) and each for each in value):
            raise EstimateError(f'{where}: {key} is a list of patterns, such as ["conv*"], not {value!r}')
    for kind in patterns["kinds"]:
        if not any(fnmatchcase(known.value, kind) for known in Kind):
            raise EstimateError(f"{where}: no kind of layers is called {kind!r}; there are {', '.join(Kind)}")
    # Exactly the number as it is written: 1.3 is thirteen tenths.
    sharing = Sharing(parallel, at_most, Fraction(str(slowdown)), label=where)
    return Rule(sharing, *(tuple(patterns[key]) for key in _PATTERNS))


def read_text(path: Path, what: str) -> str:
    """Return the text of a file; `what` names the file in error messages."""
    try:
        return files.read_text(path)
    except OSError as error:
        raise EstimateError(f"{what} {path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise EstimateError(f"{what} {path} is not UTF-8 text: {error.reason} at byte {error.start}") from None


def parse_toml(text: str, where: str) -> dict[str, Any]:
    try:
        return files.parsed_toml(text)
    except ValueError as error:
        raise EstimateError(f"{where} is not TOML: {error}") from None
