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
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from dlbricks_tui.host.load import Contention, contention_between
from dlbricks_tui.jobs.events import Event
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
    ScenarioKind,
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


class LoadTeller:
    """Tells the tests of one start of LoadGen: when each begins, its latencies about once a second, and its end."""

    def __init__(
        self,
        serving: Serving,
        settings: LoadSettings,
        batch_size: int,
        log: LoadGenLog,
        write: Callable[[Event], None],
        clock: Callable[[], float],
        tests_before: int,
        findings: list[LoadFinding],
    ) -> None:
        self._serving = serving
        self._settings = settings
        self._batch_size = batch_size
        self._log = log
        self._write = write
        self._clock = clock
        self._tests_before = tests_before
        # Takes those of the tests that have ended.
        self._findings = findings
        self._answered: list[Answered] = []
        # Tests that have started, answers that were told, and the first answer of the test in progress.
        self._started = self._told = self._first = 0
        self._created = self._began = self._next = clock()

    @property
    def seconds(self) -> float:
        """Seconds since the first test began."""
        return self._clock() - self._created

    def look(self) -> None:
        """Tell what has happened since the last call."""
        # In this order: all requests of a test have been answered when LoadGen logs the next one.
        self._log.follow()
        self._answered += self._serving.take_answered()
        while self._started < len(self._log.tests):
            if self._started:
                self._finish(self._log.tests[self._started - 1])
            self._begin(self._log.tests[self._started])
        if self._started and self._clock() >= self._next:
            self._tell(self._end_of(self._log.tests[self._started - 1]))

    def end(self, verdict: LoadgenVerdict, latencies: Latencies) -> LoadFinding:
        """Tell the end of the only test, and return what it has found by LoadGen's logs."""
        self._answered += self._serving.take_answered()
        self._tell(len(self._answered))
        found = LoadFinding(utc_now(), self._settings, self._batch_size, verdict, latencies)
        self._findings.append(found)
        bound_ms = self._settings.bound_ms
        self._done(found, passed=verdict.valid and (bound_ms is None or found.percentile_ms <= bound_ms))
        return found

    def end_search(self) -> Searched:
        """Tell the end of the last test of a search."""
        # Where a disk is full, LoadGen may have logged none.
        for last in self._log.tests[-1:]:
            self._finish(last)
        highest = self._log.highest
        return Searched(None if highest is None else highest.rate, [it.inference_ms for it in self._answered])

    def _begin(self, test: LoggedTest) -> None:
        self._first = self._log.first_query_of(test)
        self._started += 1
        self._began = self._clock()
        self._next = self._began + _SECONDS_BETWEEN_MESSAGES
        settings = self._settings
        # LoadGen prepares more queries of a stream than it sends.
        queries = test.queries if settings.kind is ScenarioKind.SERVER else settings.queries
        seconds = queries / test.rate if test.rate else max(queries * settings.expected_ms / 1000, settings.seconds)
        if settings.kind is ScenarioKind.MULTI:
            queries *= SAMPLES_PER_QUERY
        if settings.kind is ScenarioKind.OFFLINE:
            queries = max(queries, test.samples)
        self._write(
            LoadTestStarted(
                number=self._number,
                rate=test.rate,
                batch_size=self._batch_size,
                queries=queries,
                seconds_left=seconds,
                tests=self._number,
            )
        )

    def _finish(self, test: LoggedTest) -> None:
        """Tell the end of a test of a search, and keep what it has found; LoadGen's trace may not be written yet."""
        end = self._end_of(test)
        self._tell(end)
        answered, rate, passed = self._answered[self._first : end], test.rate, test.passed
        if answered and rate is not None and passed is not None:
            verdict = LoadgenVerdict(passed, () if passed else (_TOO_MANY_SLOW,), 0)
            settings = replace(self._settings, rate=rate, search=None)
            found = LoadFinding(utc_now(), settings, self._batch_size, verdict, latencies_since_due(answered, rate))
            self._findings.append(found)
            self._done(found, passed=passed)

    def _end_of(self, test: LoggedTest) -> int:
        """Return the number of answers until the end of a test, as far as they have arrived."""
        arrived = len(self._answered)
        return min(self._first + test.queries, arrived) if self._settings.kind is ScenarioKind.SERVER else arrived

    @property
    def _number(self) -> int:
        return self._tests_before + self._started

    def _tell(self, end: int) -> None:
        """Tell the latencies of answers up to that one."""
        latencies_ms = tuple(it.latency_ns / _NS_PER_MS for it in self._answered[self._told : end])
        self._told = max(self._told, end)
        now = self._clock()
        self._next = now + _SECONDS_BETWEEN_MESSAGES
        if latencies_ms:
            self._write(
                LoadProgress(
                    number=self._number,
                    queries=end - self._first,
                    seconds=now - self._began,
                    latencies_ms=latencies_ms,
                )
            )

    def _done(self, found: LoadFinding, *, passed: bool) -> None:
        self._write(
            LoadTestDone(
                number=self._number,
                rate=found.settings.rate,
                batch_size=self._batch_size,
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


class LoadTests:
    """Lets LoadGen carry out tests, one after another, each with its logs in a folder of its own."""

    def __init__(
        self,
        serving: Serving,
        folder: Path,
        changed: threading.Event,
        write: Callable[[Event], None],
        waiting: Callable[[], AbstractContextManager[None]],
        clocks: Clocks,
    ) -> None:
        # What a user should know before believing the results.
        self.warnings: list[str] = []
        # All tests that have ended, also those of a search that has not.
        self.findings: list[LoadFinding] = []
        self._serving = serving
        self._folder = folder
        # Set when LoadGen ends, or an instance fails.
        self._changed = changed
        self._write = write
        self._waiting = waiting
        self._clocks = clocks
        self._starts = 0
        # Of all tests that LoadGen was started for.
        self._tests = 0

    def run(self, settings: LoadSettings, batch_size: int) -> LoadFinding:
        """Carry out a test, and tell its progress."""
        before = self._serving.contention()
        test, progress, step = self._run(settings, batch_size)
        self._warn_of_waiting(before, progress.seconds)
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
        self._starts += 1
        test = LoadGenTest(settings, self._folder / f"loadgen-{self._starts}", self._serving.issue, self._changed)
        log = LoadGenLog(test.folder, settings.rate)
        progress = LoadTeller(
            self._serving, settings, batch_size, log, self._write, self._clocks.steady, self._tests, self.findings
        )
        self._serving.largest = batch_size
        self._serving.take_answered()
        self._serving.respond = test.complete
        difference = self._clocks.difference
        test.start()
        while not test.ended:
            with self._waiting():
                self._changed.wait(_SECONDS_BETWEEN_LOOKS)
            self._changed.clear()
            self._serving.raise_failure()
            self._refuse_clock_set_back(difference)
            progress.look()
        if test.error is not None:
            raise ScenarioError(f"LoadGen failed: {test.error}; its logs are in {test.folder}")
        progress.look()
        self._tests += len(log.tests)
        return _Ended(test, progress, self._note_clock_step(difference))

    def _refuse_clock_set_back(self, difference: float) -> None:
        step = self._clocks.difference - difference
        if step < -_CLOCK_SET_BACK_SECONDS:
            raise ScenarioError(
                f"the clock of this host was set back by {-step:,.1f} s during the test, and LoadGen waits for this "
                "clock: measure again"
            )

    def _note_clock_step(self, difference: float) -> str:
        """Return a warning if the clock of the host was set during a test; empty if it was not."""
        step = self._clocks.difference - difference
        if abs(step) <= _CLOCK_STEP_SECONDS:
            return ""
        warning = (
            f"the clock of this host jumped by {step:+,.1f} s during a test, and LoadGen measures latencies with this "
            "clock: measure again"
        )
        self.warnings.append(warning)
        return warning

    def _warn_of_waiting(self, before: Sequence[Contention | None], seconds: float) -> None:
        counted = [contention_between(*it) for it in zip(before, self._serving.contention(), strict=True)]
        waited = max((it.waited_seconds for it in counted if it is not None), default=0.0) / seconds
        if waited > _WAITED_SHARE:
            self.warnings.append(
                f"the model had to wait for a processor for {waited * 100:.0f} % of a test: measure again on a quiet "
                "host, and leave LoadGen a core"
            )

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


# The first rate is this share of the expected one, so that it passes; the share of it that a failed one leaves; how
# often the search starts again.
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
        found = self._test(self._highest(_FIRST * min(expected or self._likely(), self.capacity)))
        return self._raised(found) if found.verdict.valid else self._lowered(found)

    def _raised(self, found: LoadFinding) -> LoadFinding:
        """Return the last valid test at rising rates; the given one is the first."""
        for _ in range(_MOST_CONFIRMATIONS):
            further = self._test((1 + _CONFIRM) * found.rate)
            if not further.verdict.valid:
                break
            found = further
        return found

    def _lowered(self, found: LoadFinding) -> LoadFinding:
        """Return the first valid test at falling rates, or else the last one."""
        for _ in range(_MOST_CONFIRMATIONS):
            found = self._test((1 - _CONFIRM) * found.rate)
            if found.verdict.valid:
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

    def _likely(self) -> float:
        """Return about the highest rate of a server that takes the same time for each request."""
        slow = math.log(1 / (1 - self.settings.percentile / 100))
        waits = self._bound_ms / self.settings.expected_ms
        return self.capacity / (1 + slow / (2 * waits))

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
