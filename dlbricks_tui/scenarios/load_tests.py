"""Tests of LoadGen that send requests to a model that is served: their clock, their results and what disturbs them.

The main thread waits for LoadGen, so that signals, lost workers and a clock that is set end a test at once.
"""

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from dlbricks_tui.host.load import Contention, contention_between
from dlbricks_tui.jobs.events import Event
from dlbricks_tui.scenarios.loadgen import (
    LoadGenLog,
    LoadGenTest,
    LoadSettings,
    compress_trace,
    read_latencies,
    read_verdict,
)
from dlbricks_tui.scenarios.progress import LoadFinding, LoadTeller, Searched
from dlbricks_tui.scenarios.scenario import ScenarioError, percentile_of
from dlbricks_tui.scenarios.serving import Serving

_SECONDS_BETWEEN_LOOKS = 0.2
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
