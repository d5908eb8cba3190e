"""Outcomes of a scenario: percentiles of latencies and requests per second, predicted or measured."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from dlbricks_tui.store.packed_latencies import unpack_latencies
from dlbricks_tui.store.records import LoadTest

_NS_PER_MS = 1e6
PERCENTILES = (50.0, 90.0, 99.0, 99.9)


@dataclass(frozen=True, slots=True)
class Range:
    """A predicted value with its 95 % interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictedLoad:
    """Latencies and throughput of a scenario, from stored service times and a simulated queue."""

    p50_ms: Range
    p90_ms: Range
    p99_ms: Range
    p999_ms: Range
    # Of a server without a rate: the highest rate within the bound. Else what the system serves.
    per_second: Range
    # True: the percentile is within the bound, or there is no bound.
    valid: bool
    # Simulated queries.
    queries: int
    batch_size: int

    def at(self, percentile: float) -> Range | None:
        """Return the latency of one of the four percentiles; None for another."""
        known = (self.p50_ms, self.p90_ms, self.p99_ms, self.p999_ms)
        return dict(zip(PERCENTILES, known, strict=True)).get(percentile)


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredLoad:
    """Latencies and throughput of a scenario by LoadGen, and its verdict."""

    p50_ms: float
    p90_ms: float
    p99_ms: float
    p999_ms: float
    # Of a server without a rate: the highest rate that passed. Else what the system served.
    per_second: float
    valid: bool
    queries: int
    batch_size: int


# The latencies of a test are packed, and lists draw it again and again.
@lru_cache(maxsize=8)
def measured_load(test: LoadTest) -> MeasuredLoad:
    """Return the outcome of a stored load test."""
    ordered = sorted(latencies_ms(test))
    p50, p90, p99, p999 = (percentile_of(ordered, each) for each in PERCENTILES)
    return MeasuredLoad(
        p50_ms=p50,
        p90_ms=p90,
        p99_ms=p99,
        p999_ms=p999,
        per_second=test.found_per_second,
        valid=test.valid,
        queries=test.queries,
        batch_size=test.batch_size,
    )


def latencies_ms(test: LoadTest) -> list[float]:
    """Return the latencies of a load test, in the order of the requests."""
    return [latency_ns / _NS_PER_MS for latency_ns in unpack_latencies(test.latencies)]


@lru_cache(maxsize=256)
def percentile_ms(test: LoadTest) -> float:
    """Return the latency of the percentile that a load test is about."""
    return percentile_of(sorted(latencies_ms(test)), test.percentile)


def meets_bound(test: LoadTest) -> bool:
    """Return whether the percentile is within the bound; without a bound it is."""
    return test.bound_ms is None or percentile_ms(test) <= test.bound_ms


def is_positive(test: LoadTest) -> bool:
    """Return whether LoadGen calls a test valid, and its percentile is within the bound."""
    return test.valid and meets_bound(test)


def best_of(tests: Sequence[LoadTest]) -> LoadTest | None:
    """Return the test that answers a scenario: the newest, or offline the best of the newest of each batch size.

    The stored tests of the scenario begin with the newest. None: no search was valid, or LoadGen calls a test invalid
    for another reason than the bound.
    """
    counting = [it for it in tests if it.valid or not (it.sought or meets_bound(it))]
    by_size = {it.batch_size: it for it in reversed(counting)}
    return max(by_size.values(), key=lambda it: it.per_second, default=None)


def percentile_of(ordered: Sequence[float], percentile: float) -> float:
    """Return the percentile of sorted latencies as LoadGen does: of those that are reached, without interpolation."""
    return ordered[min(len(ordered) - 1, int(len(ordered) * percentile / 100))]
