"""What a scenario shows: percentiles of latencies and requests per second, predicted or measured."""

from dataclasses import dataclass

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


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredLoad:
    """Latencies and throughput of a scenario by LoadGen, and its verdict."""

    p50_ms: float
    p90_ms: float
    p99_ms: float
    p999_ms: float
    per_second: float
    valid: bool
    queries: int
    batch_size: int
