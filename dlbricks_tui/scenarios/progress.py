"""The progress of LoadGen's tests as messages, and what each test has found."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from dlbricks_tui.jobs.events import Event
from dlbricks_tui.scenarios.loadgen import Latencies, LoadGenLog, LoadgenVerdict, LoadSettings, LoggedTest
from dlbricks_tui.scenarios.messages import LoadProgress, LoadTestDone, LoadTestStarted
from dlbricks_tui.scenarios.queueing import unit_schedule
from dlbricks_tui.scenarios.scenario import SAMPLES_PER_QUERY, ScenarioKind, percentile_of
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
