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
from collections.abc import Sequence
from dataclasses import dataclass, replace

from dlbricks_tui.scenarios.load_tests import LoadTests
from dlbricks_tui.scenarios.loadgen import LoadSettings, Search
from dlbricks_tui.scenarios.progress import LoadFinding
from dlbricks_tui.scenarios.queueing import slower_allowed
from dlbricks_tui.scenarios.scenario import ScenarioError, percentile_of

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
