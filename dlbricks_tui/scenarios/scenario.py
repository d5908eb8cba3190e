"""Scenarios: how requests arrive, and what is asked of their latencies."""

from dataclasses import dataclass
from enum import Enum

from dlbricks_tui.errors import UserError

# LoadGen decides with this confidence whether a percentile is within its bound, with one slower query allowed.
CONFIDENCE = 0.99
_SLOWER_QUERIES_ALLOWED = 1
# The samples of a query of multi stream in MLPerf.
SAMPLES_PER_QUERY = 8
# The seed of the times at which LoadGen sends requests, unless its settings say another one.
SCHEDULE_SEED = 0
# The least duration of a test by MLPerf's rules.
FULL_SECONDS = 600.0


class ScenarioError(UserError):
    """A scenario that contradicts itself, or that nothing can fulfil."""


class Kind(str, Enum):
    """The scenarios of MLPerf."""

    # The next request is sent when the last one is answered.
    SINGLE = "single"
    # The same with requests of eight samples.
    MULTI = "multi"
    # Requests arrive at random times, as a Poisson process.
    SERVER = "server"
    # All samples are there from the start.
    OFFLINE = "offline"


# A server gets the fewest queries that decide.
_LEAST_SECONDS = {Kind.SINGLE: 2.0, Kind.MULTI: 2.0, Kind.SERVER: 0.0, Kind.OFFLINE: 3.0}


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """How requests arrive, and how the system serves them."""

    kind: Kind
    # Of the latencies, in percent, such as 99.
    percentile: float
    # The bound of that percentile; a server needs one unless it has a rate.
    bound_ms: float | None = None
    # Requests per second of a server; None: the highest rate within the bound is sought.
    rate: float | None = None
    # A server batches waiting requests up to the largest; offline, each size is tried and the best one counts.
    batch_sizes: tuple[int, ...] = (1,)
    # Copies of the model that serve at the same time, each in a worker with its own threads.
    instances: int = 1
    # MLPerf's durations in place of the fewest queries that decide.
    full: bool = False

    @property
    def seeks_rate(self) -> bool:
        """True if the highest rate of a server is sought."""
        return self.kind is Kind.SERVER and self.rate is None

    @property
    def least_seconds(self) -> float:
        """The least duration of a test."""
        return FULL_SECONDS if self.full else _LEAST_SECONDS[self.kind]


def usual_percentile(kind: Kind) -> float:
    """Return the percentile that MLPerf reports."""
    return 90.0 if kind is Kind.SINGLE else 99.0


def fewest_queries(percentile: float) -> int:
    """Return the least number of queries after which LoadGen's early stopping may decide about a percentile.

    If the true share of fast queries is the percentile, at most one slow one among so many has a chance of at most
    1 - CONFIDENCE.
    """
    within = percentile / 100.0

    def chance(queries: int) -> float:
        return float(within**queries + queries * (1 - within) * within ** (queries - 1))

    too_few, enough = _SLOWER_QUERIES_ALLOWED, _SLOWER_QUERIES_ALLOWED + 1
    while chance(enough) > 1 - CONFIDENCE:
        too_few, enough = enough, 2 * enough
    while enough - too_few > 1:
        middle = (too_few + enough) // 2
        too_few, enough = (middle, enough) if chance(middle) > 1 - CONFIDENCE else (too_few, middle)
    return enough


def batch_sizes_up_to(largest: int) -> tuple[int, ...]:
    """Return the sizes of batches of at most so many requests for which there are programs: 1, 2, 4, ..., largest."""
    powers = (1 << power for power in range(largest.bit_length()))
    return (*(size for size in powers if size < largest), largest)
