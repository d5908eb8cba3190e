"""Tests of LoadGen that send requests to a model that is served: their progress, their clock and their results.

The main thread waits for LoadGen, so that signals, lost workers and a clock that is set end a test at once.
"""

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from dlbricks_tui.host.contention import Contention, contention_between
from dlbricks_tui.scenarios.loadgen import (
    Latencies,
    LoadGenLog,
    LoadGenTest,
    LoadSettings,
    LoggedTest,
    Verdict,
    compress_trace,
    read_latencies,
    read_verdict,
)
from dlbricks_tui.scenarios.messages import LoadMessage, LoadProgress, LoadTestDone, LoadTestStarted
from dlbricks_tui.scenarios.outcome import percentile_of
from dlbricks_tui.scenarios.scenario import SAMPLES_PER_QUERY, Kind, ScenarioError
from dlbricks_tui.scenarios.serving import Answered, Serving

_SECONDS_BETWEEN_LOOKS = 0.2
_SECONDS_BETWEEN_MESSAGES = 1.0
# As many as most searches take.
_TESTS_OF_A_SEARCH = 7
_NS_PER_MS = 1e6
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
    """A clock that nobody sets, and the clock of the host."""

    steady: Callable[[], float] = time.monotonic
    host: Callable[[], float] = time.time

    @property
    def difference(self) -> float:
        """Seconds by which the clock of the host is ahead of the steady one: they change when the clock is set."""
        return self.host() - self.steady()


class Finding(NamedTuple):
    """The result of a test: its verdict and its latencies."""

    settings: LoadSettings
    batch_size: int
    verdict: Verdict
    latencies: Latencies

    @property
    def rate(self) -> float:
        """Requests per second that were sent to a server; 0 for other kinds."""
        return self.settings.rate or 0.0

    @property
    def per_second(self) -> float:
        """Samples per second."""
        samples = SAMPLES_PER_QUERY if self.settings.kind is Kind.MULTI else 1
        return samples * len(self.latencies.latencies_ns) / self.latencies.seconds


class Searched(NamedTuple):
    """The end of a search: the highest rate that passed, and the inferences of all of its tests."""

    # None if the first rate fails.
    highest: float | None
    inferences_ms: Sequence[float]


class LoadTests:
    """Lets LoadGen carry out tests, one after another, each with its logs in a folder of its own."""

    def __init__(
        self,
        serving: Serving,
        folder: Path,
        changed: threading.Event,
        write: Callable[[LoadMessage], None],
        waiting: Callable[[], AbstractContextManager[None]],
        clocks: Clocks,
    ) -> None:
        # What a user should know before believing the results.
        self.warnings: list[str] = []
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

    def run(self, settings: LoadSettings, batch_size: int) -> Finding:
        """Carry out a test, and tell its progress."""
        before = self._serving.contention()
        test, progress, step = self._run(settings, batch_size)
        self._warn_of_waiting(before, progress.seconds)
        verdict, latencies = read_verdict(test.folder), read_latencies(test.folder, settings.kind)
        compress_trace(test.folder)
        if step:
            verdict = replace(verdict, valid=False, reasons=(*verdict.reasons, step))
        finding = Finding(settings, batch_size, verdict, latencies)
        progress.end(finding)
        self._warn(finding, test.folder)
        return finding

    def search(self, settings: LoadSettings, batch_size: int) -> Searched:
        """Let LoadGen search for the highest rate within the bound, and tell the progress of its tests."""
        test, progress, _ = self._run(settings, batch_size)
        # The verdict of a search is that on its last test, at the percentile of the search.
        read_verdict(test.folder)
        compress_trace(test.folder)
        return progress.end_search()

    def _run(self, settings: LoadSettings, batch_size: int) -> "_Ended":
        """Run LoadGen to its end."""
        self._starts += 1
        test = LoadGenTest(settings, self._folder / f"loadgen-{self._starts}", self._serving.issue, self._changed)
        log = LoadGenLog(test.folder, settings.rate)
        progress = _Progress(self._serving, settings, batch_size, log, self._write, self._clocks.steady, self._tests)
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

    def _warn(self, finding: Finding, folder: Path) -> None:
        if finding.verdict.errors:
            self.warnings.append(f"LoadGen met {finding.verdict.errors} errors, which its logs in {folder} name")
        percentile = finding.settings.percentile
        late_ns, latency_ns = (
            percentile_of(sorted(it), percentile)
            for it in (finding.latencies.delays_ns, finding.latencies.latencies_ns)
        )
        if late_ns > _LATE_SHARE * latency_ns:
            self.warnings.append(
                f"LoadGen sent requests late, {percentile:g} % of them within {late_ns / _NS_PER_MS:.1f} ms: this host "
                "is too busy to send requests and to answer them (latencies count from when requests were due)"
            )


class _Ended(NamedTuple):
    """A test of LoadGen that has ended, its progress, and a warning if the clock was set meanwhile."""

    test: LoadGenTest
    progress: "_Progress"
    step: str


class _Progress:
    """Tells the tests of LoadGen: when each starts, its latencies about once a second, and its end."""

    def __init__(
        self,
        serving: Serving,
        settings: LoadSettings,
        batch_size: int,
        log: LoadGenLog,
        write: Callable[[LoadMessage], None],
        clock: Callable[[], float],
        tests_before: int,
    ) -> None:
        self._serving = serving
        self._settings = settings
        self._batch_size = batch_size
        self._log = log
        self._write = write
        self._clock = clock
        self._tests_before = tests_before
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
        self._answered += self._serving.take_answered()
        self._log.follow()
        while self._started < len(self._log.tests):
            if self._started:
                self._finish(self._log.tests[self._started - 1])
            self._begin(self._log.tests[self._started])
        if self._started and self._clock() >= self._next:
            self._tell(len(self._answered))

    def end(self, finding: Finding) -> None:
        """Tell the end of the last test: what it has found."""
        self._answered += self._serving.take_answered()
        self._tell(len(self._answered))
        settings = finding.settings
        percentile_ms = percentile_of(sorted(finding.latencies.latencies_ns), settings.percentile) / _NS_PER_MS
        passed = settings.bound_ms is None or percentile_ms <= settings.bound_ms
        self._done(settings.rate, percentile_ms, finding.per_second, passed=passed)

    def end_search(self) -> Searched:
        """Tell the end of the last test of a search."""
        self._finish(self._log.tests[-1])
        highest = self._log.highest
        return Searched(None if highest is None else highest.rate, [it.inference_ms for it in self._answered])

    def _begin(self, test: LoggedTest) -> None:
        self._first = self._log.first_query_of(test)
        self._started += 1
        self._began = self._clock()
        self._next = self._began + _SECONDS_BETWEEN_MESSAGES
        settings = self._settings
        # LoadGen prepares more queries of a stream than it sends.
        queries = test.queries if settings.kind is Kind.SERVER else settings.queries
        seconds = queries / test.rate if test.rate else max(queries * settings.expected_ms / 1000, settings.seconds)
        if settings.kind is Kind.MULTI:
            queries *= SAMPLES_PER_QUERY
        if settings.kind is Kind.OFFLINE:
            queries = max(queries, test.samples)
        if settings.search is not None:
            # The test that confirms the highest rate is the last one.
            seconds *= max(2, _TESTS_OF_A_SEARCH - self._number + 1)
        self._write(
            LoadTestStarted(
                number=self._number,
                rate=test.rate,
                batch_size=self._batch_size,
                queries=queries,
                seconds_left=seconds,
            )
        )

    def _finish(self, test: LoggedTest) -> None:
        """Tell the end of a test of a search by the latencies since its requests were handed to us."""
        first = self._log.first_query_of(test)
        self._tell(min(first + test.queries, len(self._answered)))
        latencies_ns = sorted(it.latency_ns for it in self._answered[first : first + test.queries])
        if latencies_ns:
            percentile_ms = percentile_of(latencies_ns, self._settings.percentile) / _NS_PER_MS
            seconds = max(self._clock() - self._began, 1e-9)
            self._done(test.rate, percentile_ms, len(latencies_ns) / seconds, passed=bool(test.passed))

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

    def _done(self, rate: float | None, percentile_ms: float, per_second: float, *, passed: bool) -> None:
        self._write(
            LoadTestDone(
                number=self._number,
                rate=rate,
                batch_size=self._batch_size,
                passed=passed,
                percentile_ms=percentile_ms,
                per_second=per_second,
            )
        )
