"""Tests of LoadGen, one after another, and the search for the highest rate of a server within its bound.

1. A first rate near the expected one is tested, and lower ones until LoadGen calls one valid.
2. Higher ones follow until one is not valid, and then the range between the last two is halved until it is narrow.
3. A little higher ones follow until one is not valid: another program may have disturbed a test before.
"""

import math
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from dlbricks_tui.host.noise import contention_between
from dlbricks_tui.jobs.events import Event
from dlbricks_tui.scenarios.kinds import ScenarioKind
from dlbricks_tui.scenarios.loadgen import (
    Latencies,
    LoadGenTest,
    LoadgenVerdict,
    LoadSettings,
    compress_trace,
    read_latencies,
    read_verdict,
)
from dlbricks_tui.scenarios.scenario import (
    LoadProgress,
    LoadTestDone,
    LoadTestStarted,
    ScenarioError,
    percentile_of,
)
from dlbricks_tui.scenarios.serving import Answered, Serving
from dlbricks_tui.store.records import utc_now

_SECONDS_BETWEEN_MESSAGES = 1.0
_NS_PER_MS = 1e6


class LoadFinding(NamedTuple):
    """The result of a test: its verdict and its latencies."""

    # When the test ended.
    when: str
    settings: LoadSettings
    batch_size: int
    verdict: LoadgenVerdict
    latencies: Latencies
    # Of the requests: what the model alone took.
    inferences_ms: Sequence[float]

    @property
    def rate(self) -> float:
        """Requests per second that were sent to a server; 0 for other kinds."""
        return self.settings.rate or 0.0

    @property
    def per_second(self) -> float:
        """Samples per second."""
        return self.settings.samples_per_query * len(self.latencies.latencies_ns) / self.latencies.seconds

    @property
    def percentile_ms(self) -> float:
        """The latency of the percentile that the test is about."""
        return percentile_of(sorted(self.latencies.latencies_ns), self.settings.percentile) / _NS_PER_MS


@dataclass
class LoadTeller:
    """Tells a test of LoadGen: its beginning, its latencies about once a second, and its end."""

    number: int
    serving: Serving
    settings: LoadSettings
    batch_size: int
    write: Callable[[Event], None]
    clock: Callable[[], float]
    answered: list[Answered] = field(default_factory=list)
    # Answers that were told.
    told: int = 0

    def __post_init__(self) -> None:
        self.began, settings = self.clock(), self.settings
        self.next = self.began + _SECONDS_BETWEEN_MESSAGES
        is_stream = settings.kind in (ScenarioKind.SINGLE, ScenarioKind.MULTI)
        samples = settings.queries * settings.samples_per_query if is_stream else settings.samples
        self.write(
            LoadTestStarted(
                number=self.number,
                rate=settings.rate,
                batch_size=self.batch_size,
                queries=samples,
                seconds_left=settings.least_queries / settings.per_second,
            )
        )

    def look(self) -> None:
        """Tell the new latencies if the last ones were told a while ago."""
        if self.clock() >= self.next:
            self._tell_answered()

    def end(self, verdict: LoadgenVerdict, latencies: Latencies) -> LoadFinding:
        """Tell the end of the test, and return what it has found by LoadGen's logs."""
        self._tell_answered()
        inferences_ms = [it.inference_ms for it in self.answered]
        found = LoadFinding(utc_now(), self.settings, self.batch_size, verdict, latencies, inferences_ms)
        bound_ms = self.settings.bound_ms
        self.write(
            LoadTestDone(
                number=self.number,
                rate=self.settings.rate,
                batch_size=self.batch_size,
                passed=verdict.valid and (bound_ms is None or found.percentile_ms <= bound_ms),
                percentile_ms=found.percentile_ms,
                per_second=found.per_second,
            )
        )
        return found

    def _tell_answered(self) -> None:
        self.answered += self.serving.take_answered()
        latencies_ms = tuple(it.latency_ns / _NS_PER_MS for it in self.answered[self.told :])
        self.told, now = len(self.answered), self.clock()
        self.next = now + _SECONDS_BETWEEN_MESSAGES
        if latencies_ms:
            seconds = now - self.began
            self.write(LoadProgress(number=self.number, queries=self.told, seconds=seconds, latencies_ms=latencies_ms))


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
    # All tests that have ended.
    findings: list[LoadFinding] = field(default_factory=list)

    @property
    def all_warnings(self) -> list[str]:
        if self.waited <= _WAITED_SHARE:
            return self.warnings
        waited = f"the model had to wait for a processor for {self.waited * 100:.0f} % of a test"
        return [f"{waited}: measure again on a quiet host, and leave LoadGen a core", *self.warnings]

    def run(self, settings: LoadSettings, batch_size: int) -> LoadFinding:
        """Carry out a test, and tell its progress."""
        before, number = self.serving.contention(), len(self.findings) + 1
        folder = self.folder / f"loadgen-{number}"
        self.serving.largest = batch_size
        self.serving.take_answered()
        test, difference = LoadGenTest(settings, folder, self.serving.issue, self.changed), self.clocks.difference
        self.serving.respond = test.complete
        test.start()
        progress = LoadTeller(number, self.serving, settings, batch_size, self.write, self.clocks.steady)
        step = self._wait(test, progress, difference)
        counted = [contention_between(*it) for it in zip(before, self.serving.contention(), strict=True)]
        seconds = self.clocks.steady() - progress.began
        self.waited = max([self.waited, *(it.waited_seconds / seconds for it in counted if it is not None)])
        verdict, latencies = read_verdict(folder), read_latencies(folder, settings.kind)
        compress_trace(folder)
        if step:
            verdict = replace(verdict, valid=False, reasons=(*verdict.reasons, step))
        found = progress.end(verdict, latencies)
        self.findings.append(found)
        self._warn(found, folder)
        return found

    def _wait(self, test: LoadGenTest, progress: LoadTeller, difference: float) -> str:
        """Wait for the end of LoadGen, and return a warning if the clock was set since it had this difference."""
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
        if abs(step := self.clocks.difference - difference) <= _CLOCK_STEP_SECONDS:
            return ""
        self.warnings.append(
            f"the clock of this host jumped by {step:+,.1f} s during a test, and LoadGen measures latencies with this "
            "clock: measure again"
        )
        return self.warnings[-1]

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


# The first rate as a share of the expected one, low enough to pass; the factor for the next rate if it does not; and
# how often it is lowered.
_FIRST, _LOWER, _MOST_LOWERINGS = 0.9, 0.7, 8
# The share by which the next rate is higher, until one fails.
_STEP = 0.15
# The range in which the highest rate lies is halved until it is narrower than this share.
_RESOLUTION = 0.04
# A test takes at least so many times the bound.
_BOUNDS_IN_A_TEST = 10
# The share by which the rates of the last tests differ.
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
        """Return the test of the highest rate that LoadGen calls valid; raise ScenarioError if there is none.

        The search begins near the expected rate, if there is one.
        """
        self._refuse_bound([self.settings.expected_ms])
        # About the highest rate of a server that takes the same time for each request.
        slow = math.log(1 / (1 - self.settings.percentile / 100))
        likely = self.capacity / (1 + slow / (2 * self._bound_ms / self.settings.expected_ms))
        best, too_high = self._first(_FIRST * min(expected or likely, self.capacity))
        while too_high - best.rate > _RESOLUTION * best.rate:
            tested = self._test(min((1 + _STEP) * best.rate, (best.rate + too_high) / 2))
            if tested.verdict.valid:
                best = tested
            else:
                too_high = tested.rate
        for _ in range(_MOST_CONFIRMATIONS):
            further = self._test((1 + _CONFIRM) * best.rate)
            if not further.verdict.valid:
                break
            best = further
        return best

    def _first(self, rate: float) -> tuple[LoadFinding, float]:
        """Return the test of the first valid rate, this one or a lower one, and the rate that is too high."""
        too_high = math.inf
        for _ in range(_MOST_LOWERINGS):
            found = self._test(rate)
            if found.verdict.valid:
                return found, too_high
            self._refuse_bound(found.inferences_ms)
            too_high, rate = rate, _LOWER * rate
        raise ScenarioError(
            f"bound {self._bound_ms:g} ms: no rate keeps {self._percentile} of the requests within it, not even "
            f"{too_high:.3g} per second; give a higher one"
        )

    def _test(self, rate: float) -> LoadFinding:
        # In a shorter test, no queue would grow beyond the bound at any rate.
        seconds = max(self.settings.seconds, _BOUNDS_IN_A_TEST * self._bound_ms / 1000)
        return self.tests.run(replace(self.settings, rate=rate, seconds=seconds), self.batch_size)

    def _refuse_bound(self, inferences_ms: Sequence[float]) -> None:
        """Raise ScenarioError if the inferences alone exceed the bound."""
        slow_ms = percentile_of(sorted(inferences_ms), self.settings.percentile) + self.passing_ms
        if slow_ms > self._bound_ms:
            raise ScenarioError(
                f"bound {self._bound_ms:g} ms: a request that never waits takes {slow_ms:.3g} ms, so no rate keeps "
                f"{self._percentile} of them within the bound; give a higher one"
            )

    @property
    def _bound_ms(self) -> float:
        if self.settings.bound_ms is None:
            raise ScenarioError("a server needs a bound of its latency, or a rate")
        return self.settings.bound_ms

    @property
    def _percentile(self) -> str:
        return f"{self.settings.percentile:g} %"
