"""The highest rate of a server within its bound: LoadGen's own search, and the test that confirms what it has found.

1. LoadGen tests a first rate. If it fails, the search starts again at a lower one.
2. LoadGen raises the rate until one fails, and halves the range between the last two.
3. A test at the rate that was found shows LoadGen's verdict. If it is negative, lower rates follow until one is valid.
   Otherwise higher ones follow until one is not: another program may have disturbed a test of the search.

LoadGen's search takes a rate if the percentile of its latencies is within the bound. Its verdict demands more: so few
slow requests that the percentile is within the bound with some confidence. So the search is asked for a higher
percentile: the one that is within the bound exactly if so few requests are slow.
"""

import math
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from dlbricks_tui.host.noise import contention_between
from dlbricks_tui.jobs.events import Event
from dlbricks_tui.scenarios.kinds import ScenarioKind
from dlbricks_tui.scenarios.loadgen import (
    Latencies,
    LoadGenLog,
    LoadGenTest,
    LoadgenVerdict,
    LoadSettings,
    LoggedTest,
    Search,
    compress_trace,
    read_latencies,
    read_verdict,
)
from dlbricks_tui.scenarios.predicting import slower_allowed, unit_schedule
from dlbricks_tui.scenarios.scenario import (
    SAMPLES_PER_QUERY,
    LoadProgress,
    LoadTestDone,
    LoadTestStarted,
    ScenarioError,
    percentile_of,
)
from dlbricks_tui.scenarios.serving import Answered, Serving
from dlbricks_tui.store.records import utc_now

_SECONDS_BETWEEN_MESSAGES = 1.0
_TOO_MANY_SLOW = "more requests exceeded the bound than LoadGen's search allows"
_NS_PER_SECOND, _NS_PER_MS = 1e9, 1e6


class LoadFinding(NamedTuple):
    """The result of a test: its verdict and its latencies."""

    # When the test ended.
    when: str
    settings: LoadSettings
    batch_size: int
    verdict: LoadgenVerdict
    latencies: Latencies

    @property
    def rate(self) -> float:
        """Requests per second that were sent to a server; 0 for other kinds."""
        return self.settings.rate or 0.0

    @property
    def per_second(self) -> float:
        """Samples per second."""
        samples = SAMPLES_PER_QUERY if self.settings.kind is ScenarioKind.MULTI else 1
        return samples * len(self.latencies.latencies_ns) / self.latencies.seconds

    @property
    def percentile_ms(self) -> float:
        """The latency of the percentile that the test is about."""
        return percentile_of(sorted(self.latencies.latencies_ns), self.settings.percentile) / _NS_PER_MS


class Searched(NamedTuple):
    """The end of a search: the highest rate that passed, and the inferences of all of its tests."""

    # None if the first rate fails.
    highest: float | None
    inferences_ms: Sequence[float]


@dataclass
class LoadTeller:
    """Tells the tests of one start of LoadGen: when each begins, its latencies about once a second, and its end."""

    serving: Serving
    settings: LoadSettings
    batch_size: int
    log: LoadGenLog
    write: Callable[[Event], None]
    clock: Callable[[], float]
    tests_before: int
    # Takes those of the tests that have ended.
    findings: list[LoadFinding]
    answered: list[Answered] = field(default_factory=list)
    # Tests that have started, answers that were told, and the first answer of the test in progress.
    started: int = 0
    told: int = 0
    first: int = 0

    def __post_init__(self) -> None:
        self.created = self.began = self.next = self.clock()

    @property
    def seconds(self) -> float:
        """Seconds since the first test began."""
        return self.clock() - self.created

    def look(self) -> None:
        """Tell what has happened since the last call."""
        # In this order: all requests of a test have been answered when LoadGen logs the next one.
        self.log.follow()
        self.answered += self.serving.take_answered()
        while self.started < len(self.log.tests):
            if self.started:
                self._finish(self.log.tests[self.started - 1])
            self._begin(self.log.tests[self.started])
        if self.started and self.clock() >= self.next:
            self._tell(self._end_of(self.log.tests[self.started - 1]))

    def end(self, verdict: LoadgenVerdict, latencies: Latencies) -> LoadFinding:
        """Tell the end of the only test, and return what it has found by LoadGen's logs."""
        self.answered += self.serving.take_answered()
        self._tell(len(self.answered))
        found = LoadFinding(utc_now(), self.settings, self.batch_size, verdict, latencies)
        self.findings.append(found)
        bound_ms = self.settings.bound_ms
        self._done(found, passed=verdict.valid and (bound_ms is None or found.percentile_ms <= bound_ms))
        return found

    def end_search(self) -> Searched:
        """Tell the end of the last test of a search."""
        # Where a disk is full, LoadGen may have logged none.
        for last in self.log.tests[-1:]:
            self._finish(last)
        highest = self.log.highest
        return Searched(None if highest is None else highest.rate, [it.inference_ms for it in self.answered])

    def _begin(self, test: LoggedTest) -> None:
        self.first = self.log.first_query_of(test)
        self.started += 1
        self.began = self.clock()
        self.next = self.began + _SECONDS_BETWEEN_MESSAGES
        settings = self.settings
        # LoadGen prepares more queries of a stream than it sends.
        queries = test.queries if settings.kind is ScenarioKind.SERVER else settings.queries
        seconds = queries / test.rate if test.rate else max(queries * settings.expected_ms / 1000, settings.seconds)
        if settings.kind is ScenarioKind.MULTI:
            queries *= SAMPLES_PER_QUERY
        if settings.kind is ScenarioKind.OFFLINE:
            queries = max(queries, test.samples)
        self.write(
            LoadTestStarted(
                number=self._number,
                rate=test.rate,
                batch_size=self.batch_size,
                queries=queries,
                seconds_left=seconds,
                tests=self._number,
            )
        )

    def _finish(self, test: LoggedTest) -> None:
        """Tell the end of a test of a search, and keep what it has found; LoadGen's trace may not be written yet."""
        end = self._end_of(test)
        self._tell(end)
        answered, rate, passed = self.answered[self.first : end], test.rate, test.passed
        if answered and rate is not None and passed is not None:
            verdict = LoadgenVerdict(passed, () if passed else (_TOO_MANY_SLOW,), 0)
            settings = replace(self.settings, rate=rate, search=None)
            found = LoadFinding(utc_now(), settings, self.batch_size, verdict, latencies_since_due(answered, rate))
            self.findings.append(found)
            self._done(found, passed=passed)

    def _end_of(self, test: LoggedTest) -> int:
        """Return the number of answers until the end of a test, as far as they have arrived."""
        arrived = len(self.answered)
        return min(self.first + test.queries, arrived) if self.settings.kind is ScenarioKind.SERVER else arrived

    @property
    def _number(self) -> int:
        return self.tests_before + self.started

    def _tell(self, end: int) -> None:
        """Tell the latencies of answers up to that one."""
        latencies_ms = tuple(it.latency_ns / _NS_PER_MS for it in self.answered[self.told : end])
        self.told = max(self.told, end)
        now = self.clock()
        self.next = now + _SECONDS_BETWEEN_MESSAGES
        if latencies_ms:
            self.write(
                LoadProgress(
                    number=self._number, queries=end - self.first, seconds=now - self.began, latencies_ms=latencies_ms
                )
            )

    def _done(self, found: LoadFinding, *, passed: bool) -> None:
        self.write(
            LoadTestDone(
                number=self._number,
                rate=found.settings.rate,
                batch_size=self.batch_size,
                passed=passed,
                percentile_ms=found.percentile_ms,
                per_second=found.per_second,
            )
        )


def latencies_since_due(answered: Sequence[Answered], rate: float) -> Latencies:
    """Return latencies of a server as LoadGen counts them: from when each request was due by LoadGen's schedule.

    The request that arrived with the least delay tells when the schedule began.
    """
    ordered = sorted(answered, key=lambda it: it.received_ns)
    received_ns = np.array([it.received_ns for it in ordered], dtype=np.int64)
    due_ns = np.rint(unit_schedule(len(ordered)) * (_NS_PER_SECOND / rate)).astype(np.int64)
    began_ns = np.min(received_ns - due_ns)
    delays_ns = received_ns - due_ns - began_ns
    latencies_ns = delays_ns + np.array([it.latency_ns for it in ordered], dtype=np.int64)
    seconds = (due_ns + latencies_ns).max() / _NS_PER_SECOND
    return Latencies(latencies_ns.tolist(), delays_ns.tolist(), float(seconds))


_SECONDS_BETWEEN_LOOKS = 0.2
# LoadGen reads the clock of the host. A step by less changes few latencies, and by little.
_CLOCK_STEP_SECONDS = 0.1
# LoadGen waits until its clock has reached the time of the next query.
_CLOCK_SET_BACK_SECONDS = 1.0
# Of the time of a test, the share for which an instance may wait for a processor.
_WAITED_SHARE = 0.02
# Of a percentile of the latencies, the share for which LoadGen may be late to send requests.
_LATE_SHARE = 0.1


@dataclass(frozen=True, slots=True)
class Clocks:
    """A clock that only runs forward, and the clock of the host, which can be set."""

    steady: Callable[[], float] = time.monotonic
    host: Callable[[], float] = time.time

    @property
    def difference(self) -> float:
        """Seconds by which the clock of the host is ahead of the steady one: they change when the clock is set."""
        return self.host() - self.steady()


@dataclass
class LoadTests:
    """Lets LoadGen carry out tests, one after another, each with its logs in a folder of its own."""

    serving: Serving
    folder: Path
    # Set when LoadGen ends, or an instance fails.
    changed: threading.Event
    write: Callable[[Event], None]
    waiting: Callable[[], AbstractContextManager[None]]
    clocks: Clocks
    # The largest share of a test for which an instance waited for a processor.
    waited: float = 0.0
    # What else a user should know before believing the results.
    warnings: list[str] = field(default_factory=list)
    # All tests that have ended, also those of a search that has not.
    findings: list[LoadFinding] = field(default_factory=list)
    starts: int = 0
    # Of all tests that LoadGen was started for.
    tests: int = 0

    @property
    def all_warnings(self) -> list[str]:
        if self.waited <= _WAITED_SHARE:
            return self.warnings
        waited = f"the model had to wait for a processor for {self.waited * 100:.0f} % of a test"
        return [f"{waited}: measure again on a quiet host, and leave LoadGen a core", *self.warnings]

    def run(self, settings: LoadSettings, batch_size: int) -> LoadFinding:
        """Carry out a test, and tell its progress."""
        before = self.serving.contention()
        test, progress, step = self._run(settings, batch_size)
        counted = [contention_between(*it) for it in zip(before, self.serving.contention(), strict=True)]
        shares = [it.waited_seconds / progress.seconds for it in counted if it is not None]
        self.waited = max([self.waited, *shares])
        verdict, latencies = read_verdict(test.folder), read_latencies(test.folder, settings.kind)
        compress_trace(test.folder)
        if step:
            verdict = replace(verdict, valid=False, reasons=(*verdict.reasons, step))
        found = progress.end(verdict, latencies)
        self._warn(found, test.folder)
        return found

    def search(self, settings: LoadSettings, batch_size: int) -> Searched:
        """Let LoadGen search for the highest rate within the bound, and tell the progress of its tests."""
        test, progress, _ = self._run(settings, batch_size)
        found = progress.end_search()
        # Complete logs have a verdict. It is that on the last test, at the percentile of the search.
        read_verdict(test.folder)
        compress_trace(test.folder)
        return found

    def _run(self, settings: LoadSettings, batch_size: int) -> "_Ended":
        """Run LoadGen to its end."""
        self.starts += 1
        test = LoadGenTest(settings, self.folder / f"loadgen-{self.starts}", self.serving.issue, self.changed)
        log = LoadGenLog(test.folder, settings.rate)
        progress = LoadTeller(
            self.serving, settings, batch_size, log, self.write, self.clocks.steady, self.tests, self.findings
        )
        self.serving.largest = batch_size
        self.serving.take_answered()
        self.serving.respond = test.complete
        difference = self.clocks.difference
        test.start()
        while not test.ended:
            with self.waiting():
                self.changed.wait(_SECONDS_BETWEEN_LOOKS)
            self.changed.clear()
            self.serving.raise_failure()
            if (step := self.clocks.difference - difference) < -_CLOCK_SET_BACK_SECONDS:
                raise ScenarioError(
                    f"the clock of this host was set back by {-step:,.1f} s during the test, and LoadGen waits for "
                    "this clock: measure again"
                )
            progress.look()
        # LoadGen has an answer to every request, also to the last ones of an instance that has failed.
        self.serving.raise_failure()
        if test.error is not None:
            raise ScenarioError(f"LoadGen failed: {test.error}; its logs are in {test.folder}")
        progress.look()
        self.tests += len(log.tests)
        step, warning = self.clocks.difference - difference, ""
        if abs(step) > _CLOCK_STEP_SECONDS:
            warning = (
                f"the clock of this host jumped by {step:+,.1f} s during a test, and LoadGen measures latencies with "
                "this clock: measure again"
            )
            self.warnings.append(warning)
        return _Ended(test, progress, warning)

    def _warn(self, found: LoadFinding, folder: Path) -> None:
        if found.verdict.errors:
            self.warnings.append(f"LoadGen met {found.verdict.errors} errors, which its logs in {folder} name")
        percentile = found.settings.percentile
        late_ns, latency_ns = (
            percentile_of(sorted(it), percentile) for it in (found.latencies.delays_ns, found.latencies.latencies_ns)
        )
        if late_ns > _LATE_SHARE * latency_ns:
            self.warnings.append(
                f"LoadGen sent requests late, {percentile:g} % of them within {late_ns / _NS_PER_MS:.1f} ms: this host "
                "is too busy to send requests and to answer them (latencies count from when requests were due)"
            )


class _Ended(NamedTuple):
    """A test of LoadGen that has ended, its progress, and a warning if the clock was set meanwhile."""

    test: LoadGenTest
    progress: LoadTeller
    step: str


# The first rate as a share of the expected one, low enough to pass; the factor for the next rate if a search finds
# none that passes; and the most searches.
_FIRST, _LOWER, _MOST_LOWERINGS = 0.9, 0.7, 8
_STEP = 0.15
# The search ends when it knows the highest rate to about this share.
_RESOLUTION = 0.04
# It ends when its bounds are less than two units of the last decimal apart, usually one and a half.
_UNITS = 1.5
# A test takes at least so many times the bound.
_BOUNDS_IN_A_TEST = 10
# The share by which the rates of the tests after the search differ.
_CONFIRM, _MOST_CONFIRMATIONS = 0.03, 10


@dataclass(frozen=True, slots=True)
class RateSearch:
    """A search by tests with these settings; the server could answer `capacity` requests per second in the long run."""

    tests: LoadTests
    settings: LoadSettings
    batch_size: int
    capacity: float
    passing_ms: float

    def find(self, expected: float | None) -> LoadFinding:
        """Return the test of the highest rate that LoadGen finds and calls valid; raise ScenarioError if none passes.

        The search begins near the expected rate, if there is one.
        """
        self._refuse_bound([self.settings.expected_ms])
        # About the highest rate of a server that takes the same time for each request.
        slow = math.log(1 / (1 - self.settings.percentile / 100))
        likely = self.capacity / (1 + slow / (2 * self._bound_ms / self.settings.expected_ms))
        found = self._test(self._highest(_FIRST * min(expected or likely, self.capacity)))
        rises = found.verdict.valid
        for _ in range(_MOST_CONFIRMATIONS):
            further = self._test((1 + _CONFIRM if rises else 1 - _CONFIRM) * found.rate)
            if rises and not further.verdict.valid:
                # The last valid test counts.
                break
            found = further
            if not rises and found.verdict.valid:
                break
        return found

    def _test(self, rate: float) -> LoadFinding:
        return self.tests.run(replace(self.settings, rate=rate, seconds=self._seconds), self.batch_size)

    def _highest(self, rate: float) -> float:
        """Return the highest rate that LoadGen finds; begin with this one."""
        for _ in range(_MOST_LOWERINGS):
            found = self.tests.search(self._search(rate), self.batch_size)
            if found.highest is not None:
                return found.highest
            self._refuse_bound(found.inferences_ms)
            rate *= _LOWER
        raise ScenarioError(
            f"bound {self._bound_ms:g} ms: no rate keeps {self._percentile} of the requests within it, not even "
            f"{rate / _LOWER:.3g} per second; give a higher one"
        )

    def _search(self, rate: float) -> LoadSettings:
        decimals = 0
        while _UNITS * 10.0**-decimals > _RESOLUTION * rate:
            decimals += 1
        queries = max(self.settings.queries, math.ceil(rate * self._seconds))
        # In the middle between two queries, since LoadGen rounds.
        within = queries - slower_allowed(queries, self.settings.percentile) - 0.5
        search = Search(_STEP, decimals, 100 * within / queries)
        return replace(self.settings, rate=rate, seconds=self._seconds, search=search)

    def _refuse_bound(self, inferences_ms: Sequence[float]) -> None:
        """Raise ScenarioError if the inferences alone exceed the bound."""
        slow_ms = percentile_of(sorted(inferences_ms), self.settings.percentile) + self.passing_ms
        if slow_ms > self._bound_ms:
            raise ScenarioError(
                f"bound {self._bound_ms:g} ms: a request that never waits takes {slow_ms:.3g} ms, so no rate keeps "
                f"{self._percentile} of them within the bound; give a higher one"
            )

    @property
    def _seconds(self) -> float:
        """The least duration of a test; in a shorter one, no queue would grow beyond the bound at any rate."""
        return max(self.settings.seconds, _BOUNDS_IN_A_TEST * self._bound_ms / 1000)

    @property
    def _bound_ms(self) -> float:
        if self.settings.bound_ms is None:
            raise ScenarioError("a server needs a bound of its latency, or a rate")
        return self.settings.bound_ms

    @property
    def _percentile(self) -> str:
        return f"{self.settings.percentile:g} %"
