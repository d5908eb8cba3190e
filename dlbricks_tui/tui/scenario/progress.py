"""The state of a measurement, from the messages of the process that measures a scenario."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING

from dlbricks_tui.scenarios.messages import (
    LoadDone,
    LoadFailed,
    LoadProgress,
    LoadReady,
    LoadTestDone,
    LoadTestsKept,
    LoadTestStarted,
    LoadWaits,
)

if TYPE_CHECKING:
    from dlbricks_tui.scenarios.messages import LoadMessage


class Progress:
    """The tests that have ended, and the latencies of the test in progress."""

    def __init__(self) -> None:
        # What the measurement waits for; empty while it runs.
        self.waits_for = ""
        self.ready: LoadReady | None = None
        self.test: LoadTestStarted | None = None
        self.seconds = 0.0
        # Of the requests answered so far, in their order and sorted.
        self.latencies_ms = array("d")
        self.ordered_ms: list[float] = []
        self.ended: list[LoadTestDone] = []
        self.done: LoadDone | None = None
        self.failure = ""
        # Tests that are stored although the measurement has not reached its result.
        self.kept = 0

    @property
    def highest_passed(self) -> float | None:
        """The highest rate that has passed."""
        return max((it.rate for it in self.ended if it.passed and it.rate is not None), default=None)

    def take(self, message: LoadMessage) -> None:
        self.waits_for = message.holder if isinstance(message, LoadWaits) else ""
        if isinstance(message, LoadReady):
            self.ready = message
        elif isinstance(message, LoadTestStarted):
            self._forget_test()
            self.test = message
        elif isinstance(message, LoadProgress):
            self.seconds = message.seconds
            self.latencies_ms.extend(message.latencies_ms)
            self.ordered_ms = sorted([*self.ordered_ms, *message.latencies_ms])
        elif isinstance(message, LoadTestDone):
            self.ended.append(message)
            self._forget_test()
        elif isinstance(message, LoadDone):
            self.done = message
        elif isinstance(message, LoadTestsKept):
            self.kept += message.tests
        elif isinstance(message, LoadFailed):
            self.failure = message.reason

    def process_ended(self) -> None:
        """Forget the test in progress, which the next process repeats."""
        self.waits_for, self.ready = "", None
        self._forget_test()

    def _forget_test(self) -> None:
        self.test = None
        self.seconds, self.latencies_ms, self.ordered_ms = 0.0, array("d"), []
