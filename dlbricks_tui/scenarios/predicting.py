"""The latencies and the throughput of a scenario, predicted from service times by simulated tests of LoadGen."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dlbricks_tui.scenarios.queueing import (
    capacity_of,
    highest_rates,
    latencies_of,
    percentiles_of,
    slower_allowed,
    unit_schedule,
)
from dlbricks_tui.scenarios.scenario import (
    PERCENTILES,
    SAMPLES_PER_QUERY,
    PredictedLoad,
    Range,
    Scenario,
    ScenarioError,
    ScenarioKind,
    fewest_queries,
)
from dlbricks_tui.scenarios.service import ServiceTimes

Numbers = NDArray[np.float64]

# Tests that are simulated: fewer where each takes longer, since a look-up should not.
_TESTS, _TESTS_IN_BATCHES, _FEWEST_TESTS = 200, 60, 20
_REQUESTS_IN_ALL, _REQUESTS_IN_ALL_IN_BATCHES = 140_000, 40_000
# Of a test; more are not simulated.
_MOST_QUERIES = 7_000
# An offline test has more samples than its duration needs.
_MORE_SAMPLES = 1.25
_MS_PER_SECOND = 1000.0
# Per millisecond.
_LEAST_RATE = 1e-6


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """The percentile of the latencies of a server at a rate, in requests per second."""

    rate: float
    latency_ms: Range


def predict(scenario: Scenario, service: ServiceTimes) -> PredictedLoad:
    """Return what a scenario shows if LoadGen carries it out.

    Many tests are simulated, each as long as LoadGen's, with its arrivals. In each one the service times are scaled by
    a value from the interval of the estimate. A value is the median of the tests, and its interval holds 95 % of them.
    So `per_second` of a server without a rate is the rate that LoadGen's test passes half of the time: it compares
    with the highest rate that LoadGen's search finds. Percentiles are those of a test, at this rate.

    Raise ScenarioError if no request can meet the bound, or if a test has too many queries to simulate.
    """
    queries = fewest_queries(scenario.percentile)
    if queries > _MOST_QUERIES:
        raise ScenarioError(
            f"percentile {scenario.percentile:g}: a test needs {queries:,} requests, and predictions simulate at most "
            f"{_MOST_QUERIES:,}; give a lower --percentile, such as 99.9"
        )
    if scenario.kind is ScenarioKind.SERVER:
        return _server(scenario, service)
    if scenario.kind is ScenarioKind.OFFLINE:
        return _offline(scenario, service)
    return _stream(scenario, service)


def load_curve(scenario: Scenario, service: ServiceTimes, points: int = 20) -> tuple[CurvePoint, ...]:
    """Return the percentile of a server at rates from almost none to all that it can serve."""
    simulation = _Simulation.of(scenario, service, min(_MOST_QUERIES, fewest_queries(scenario.percentile)))
    capacity = float(np.median(simulation.capacity))
    rates = capacity * np.arange(1, points + 1) / points
    latencies = simulation.latencies(np.repeat(rates[:, np.newaxis], simulation.tests, axis=1))
    (found,) = percentiles_of(latencies, [scenario.percentile])
    return tuple(
        CurvePoint(float(rate) * _MS_PER_SECOND, _range(each)) for rate, each in zip(rates, found, strict=True)
    )


def with_other_arrivals(scenario: Scenario, service: ServiceTimes) -> Range:
    """Return the highest rate within the bound, per second, if each test had arrivals of its own.

    All tests of LoadGen have the same arrivals. A server meets others, so this says how much they matter.
    """
    if scenario.bound_ms is None:
        raise ScenarioError("a server needs a bound of its latency")
    simulation = _Simulation.of(scenario, service, _queries(scenario, service), _TESTS_IN_BATCHES)
    random = np.random.default_rng(1)
    arrivals = random.exponential(1.0, (simulation.tests, simulation.queries)).cumsum(axis=-1)
    rates = replace(simulation, schedule=arrivals).highest_rates(scenario.bound_ms, scenario.percentile)
    return _range(rates * _MS_PER_SECOND)


@dataclass(frozen=True, slots=True)
class _Simulation:
    """Tests of a server with random service times."""

    # When requests arrive at a rate of one per millisecond: those of LoadGen in all tests, or others in each.
    schedule: Numbers
    service: Numbers
    sizes: tuple[int, ...]
    instances: int
    wake_up_ms: float

    @classmethod
    def of(cls, scenario: Scenario, service: ServiceTimes, queries: int, most: int = _TESTS) -> "_Simulation":
        """Return tests with so many queries."""
        in_batches = len(scenario.batch_sizes) > 1 or scenario.instances > 1
        most = min(most, _TESTS_IN_BATCHES) if in_batches else most
        requests = _REQUESTS_IN_ALL_IN_BATCHES if in_batches else _REQUESTS_IN_ALL
        tests = max(_FEWEST_TESTS, min(most, requests // queries))
        drawn = service.draws(scenario.batch_sizes, tests, queries)
        return cls(unit_schedule(queries), drawn, scenario.batch_sizes, scenario.instances, service.wake_up_ms)

    @property
    def tests(self) -> int:
        """The number of tests."""
        return int(self.service.shape[1])

    @property
    def queries(self) -> int:
        """The queries of each test."""
        return int(self.service.shape[2])

    @property
    def capacity(self) -> Numbers:
        """The highest rate per millisecond that each test can serve in the long run."""
        return capacity_of(self.service, self.sizes, self.instances)

    def latencies(self, rates: Numbers) -> Numbers:
        """Return the latencies at rates per millisecond: rates x tests x requests."""
        return latencies_of(self.schedule, rates, self.service, self.sizes, self.instances, self.wake_up_ms)

    def highest_rates(self, bound_ms: float, percentile: float) -> Numbers:
        """Return the highest rate per millisecond within the bound, of each test; zero if there is none."""
        allowed = slower_allowed(self.queries, percentile)
        return highest_rates(
            self.schedule, self.service, bound_ms, allowed, self.sizes, self.instances, self.wake_up_ms
        )


def _server(scenario: Scenario, service: ServiceTimes) -> PredictedLoad:
    simulation = _Simulation.of(scenario, service, _queries(scenario, service))
    bound_ms = scenario.bound_ms
    if scenario.rate is not None:
        rates = np.full(simulation.tests, scenario.rate / _MS_PER_SECOND)
    else:
        if bound_ms is None:
            raise ScenarioError("a server needs a bound of its latency, or a rate")
        rates = simulation.highest_rates(bound_ms, scenario.percentile)
        if np.median(rates) == 0.0:
            raise ScenarioError(_impossible(scenario, service, bound_ms))
    # Tests that pass at no rate are shown as if requests never met.
    served = np.maximum(rates, _LEAST_RATE)
    latencies = simulation.latencies(served[np.newaxis])[0]
    # LoadGen divides the requests by the time until the last answer.
    ends = simulation.schedule / served[:, np.newaxis] + latencies
    per_second = simulation.queries / ends.max(axis=-1) if scenario.rate is not None else rates
    valid = True
    if bound_ms is not None and scenario.rate is not None:
        slower = (latencies > bound_ms).sum(axis=-1)
        valid = bool(np.median(slower) <= slower_allowed(simulation.queries, scenario.percentile))
    return _outcome(latencies, per_second, max(scenario.batch_sizes), valid)


def _stream(scenario: Scenario, service: ServiceTimes) -> PredictedLoad:
    """Return the outcome if the next query is sent when the last one is answered."""
    queries, sizes = _queries(scenario, service), scenario.batch_sizes
    samples = SAMPLES_PER_QUERY if scenario.kind is ScenarioKind.MULTI else 1
    tests = max(_FEWEST_TESTS, min(_TESTS, _REQUESTS_IN_ALL // (queries * samples)))
    drawn = service.draws(sizes, tests, queries * samples)
    if samples == 1:
        latencies = drawn[0]
    else:
        # Each query is a short test of its own, in which all samples arrive at once.
        alone = drawn.reshape(len(sizes), tests * queries, samples)
        at_once = np.ones((1, tests * queries))
        answered = latencies_of(np.zeros(samples), at_once, alone, sizes, scenario.instances)[0]
        latencies = answered.max(axis=-1).reshape(tests, queries)
    (found,) = percentiles_of(latencies, [scenario.percentile])
    valid = scenario.bound_ms is None or bool(np.median(found) <= scenario.bound_ms)
    return _outcome(latencies, samples / latencies.mean(axis=-1), max(sizes), valid)


def _offline(scenario: Scenario, service: ServiceTimes) -> PredictedLoad:
    """Return the outcome of the batch size with the highest throughput, if all samples are there from the start."""
    found = []
    for size in scenario.batch_sizes:
        batches = -(-fewest_queries(scenario.percentile) // size)
        tests = max(_FEWEST_TESTS, min(_TESTS, _REQUESTS_IN_ALL_IN_BATCHES // batches))
        # A batch is a request of a queue in which all are there from the start.
        drawn, at_once = service.draws([size], tests, batches), np.ones((1, tests))
        ends = latencies_of(np.zeros(batches), at_once, drawn, instances=scenario.instances)[0]
        per_ms = batches * size / ends.max(axis=-1)
        found.append((float(np.median(per_ms)), size, np.repeat(ends, size, axis=-1), per_ms))
    rate, size, latencies, per_ms = max(found, key=lambda it: it[0])
    # All latencies count from the start, so they grow with the samples of the test.
    samples = rate * _MS_PER_SECOND * scenario.least_seconds * _MORE_SAMPLES
    return _outcome(latencies * samples / latencies.shape[-1], per_ms, size, valid=True)


def _queries(scenario: Scenario, service: ServiceTimes) -> int:
    """Return the queries of a test: the fewest that decide, or those of its duration as far as they are simulated."""
    rate = scenario.rate or _MS_PER_SECOND / service.single_ms
    if scenario.kind is ScenarioKind.MULTI:
        rate /= SAMPLES_PER_QUERY
    return max(fewest_queries(scenario.percentile), min(_MOST_QUERIES, int(rate * scenario.least_seconds)))


def _impossible(scenario: Scenario, service: ServiceTimes, bound_ms: float) -> str:
    return (
        f"bound {bound_ms:g} ms: a request that never waits takes {service.single_ms:.3g} ms on average, and at most "
        f"{100.0 - scenario.percentile:.3g} % may take longer than the bound; give a higher --bound-ms"
    )


def _outcome(latencies: Numbers, per_ms: Numbers, batch_size: int, valid: bool) -> PredictedLoad:
    p50, p90, p99, p999 = (_range(each) for each in percentiles_of(latencies, PERCENTILES))
    return PredictedLoad(
        p50_ms=p50,
        p90_ms=p90,
        p99_ms=p99,
        p999_ms=p999,
        per_second=_range(per_ms * _MS_PER_SECOND),
        valid=valid,
        queries=latencies.size,
        batch_size=batch_size,
    )


def _range(values: Numbers) -> Range:
    low, middle, high = np.quantile(values, [0.025, 0.5, 0.975])
    return Range(float(middle), float(low), float(high))
