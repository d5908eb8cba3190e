"""The latencies and the throughput of a scenario, predicted from service times by simulated tests of LoadGen."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dlbricks_tui.scenarios.scenario import (
    CONFIDENCE,
    PERCENTILES,
    SAMPLES_PER_QUERY,
    SCHEDULE_SEED,
    PredictedLoad,
    Range,
    Scenario,
    ScenarioError,
    ScenarioKind,
    fewest_queries,
)
from dlbricks_tui.scenarios.service import ServiceTimes

Numbers = NDArray[np.float64]

# After a pause of this length a batch takes 63 % of the wake-up longer: caches are lost and processors sleep step by
# step.
_IDLE_MS = 12.0
# Beyond all times; a difference of two such times is finite.
_NEVER_MS = 1e300
# Rates that are tried at the same time, and how often the range between them is narrowed.
_RATES_AT_ONCE, _NARROWINGS = 6, 4


def unit_schedule(requests: int, seed: int = SCHEDULE_SEED) -> Numbers:
    """Return the times, in milliseconds, at which LoadGen sends requests at one per millisecond.

    Every test of LoadGen starts the same random stream, and divides the times by the rate. So all tests of a search
    have the same arrivals, on another time scale. As in C++, two words of 32 bits make one random number.
    """
    words = np.random.RandomState(seed).randint(0, 1 << 32, size=(requests, 2), dtype=np.uint32)
    uniform = (words[:, 0] + words[:, 1] * 2.0**32) / 2.0**64
    gaps = -np.log(1.0 - uniform)
    # The first request is sent at once, and the last gap is behind the last request.
    return np.concatenate(([0.0], np.cumsum(gaps[:-1])))


def latencies_of(
    schedule: Numbers,
    rates: Numbers,
    service: Numbers,
    sizes: Sequence[int] = (1,),
    instances: int = 1,
    wake_up_ms: float = 0.0,
) -> Numbers:
    """Return the latency of each request, from when it was due: rates x tests x requests.

    - `schedule` has the times of the requests at a rate of one: of all tests, or a row for each test.
    - `rates` has a row for each rate to try, with the rate of each test.
    - `service` has the time that an instance takes for a batch: sizes x tests x requests. A batch takes the time that
      stands at its first request.
    - `wake_up_ms` is how much longer a batch takes after a long pause of its instance.

    Requests are served in the order of their arrival. A free instance takes as many waiting requests as the largest of
    the sizes allows; requests that are fewer than the smallest size are served as if they were so many.
    """
    arrivals = schedule / rates[..., np.newaxis]
    if tuple(sizes) == (1,) and instances == 1:
        if wake_up_ms:
            return _served_with_wake_ups(arrivals, service[0], wake_up_ms)
        # The instance works without a pause since the last request that found it idle.
        worked = np.cumsum(service[0], axis=-1)
        found: Numbers = worked + np.maximum.accumulate(arrivals - (worked - service[0]), axis=-1) - arrivals
        return found
    return _served_in_batches(arrivals, service, sizes, instances, wake_up_ms)


def _served_with_wake_ups(arrivals: Numbers, service: Numbers, wake_up_ms: float) -> Numbers:
    """Return latencies of one instance that serves each request alone, which takes longer after a pause."""
    # All tests at all rates are at the same request, so memory is read in order.
    due, taking = (np.ascontiguousarray(np.moveaxis(times, -1, 0)) for times in (arrivals, service))
    answered = np.empty_like(due)
    end = np.full(due.shape[1:], -np.inf)
    for request, arrival in enumerate(due):
        start = np.maximum(end, arrival)
        # NumPy computes exp several times as fast as expm1; the results differ by less than a nanosecond.
        awake = np.exp((end - start) / _IDLE_MS)
        end = np.add(start, taking[request] + (1.0 - awake) * wake_up_ms, out=answered[request])
    found: Numbers = np.ascontiguousarray(np.moveaxis(answered - due, 0, -1))
    return found


def _served_in_batches(
    arrivals: Numbers, service: Numbers, sizes: Sequence[int], instances: int, wake_up_ms: float
) -> Numbers:
    tests, requests = service.shape[1:]
    ordered = sorted(sizes)
    largest = ordered[-1]
    # The place of the batch size for each number of waiting requests.
    place_of = np.searchsorted(ordered, np.arange(largest + 1), side="right").clip(1) - 1
    places = np.array([list(sizes).index(size) for size in ordered])[place_of]
    taken_of = np.array(ordered)[place_of]
    # A column for each test at each rate: all of them are at about the same request, so memory is read in order.
    due = arrivals.reshape(-1, requests).T
    columns = due.shape[1]
    column = np.arange(columns)
    # Behind the last request of a test none arrives any more.
    padded = np.concatenate((due, np.full((largest + 1, columns), _NEVER_MS))).ravel()
    # By request, size and test.
    taking = np.ascontiguousarray(np.moveaxis(service, 2, 0)).ravel()
    by_size, by_request = places[:, np.newaxis] * tests + column % tests, len(sizes) * tests
    done = np.zeros((requests + 1) * columns)
    starts_batch = np.zeros((requests + 1) * columns, dtype=bool)
    # Before the first request, instances have been idle for long.
    free = np.full((columns, instances), -np.inf)
    first = np.zeros(columns, dtype=np.intp)
    while (first < requests).any():
        here = first * columns + column
        instance = free.argmin(axis=1)
        since = free[column, instance]
        start = np.maximum(since, padded[here])
        waiting = np.ones(columns, dtype=np.intp)
        for further in range(1, largest):
            waiting += padded[here + further * columns] <= start
        end = start + taking[np.minimum(first, requests - 1) * by_request + by_size[waiting, column]]
        if wake_up_ms:
            end += wake_up_ms * -np.expm1((since - start) / _IDLE_MS)
        free[column, instance] = end
        done[here] = end
        starts_batch[here] = True
        first = np.minimum(first + taken_of[waiting], requests)
    # All requests of a batch are answered with its first one.
    places_of_first = np.where(starts_batch.reshape(-1, columns), np.arange(requests + 1)[:, np.newaxis], 0)
    first_of = np.maximum.accumulate(places_of_first, axis=0)[:requests]
    answered = np.take_along_axis(done.reshape(-1, columns), first_of, axis=0)
    found: Numbers = np.ascontiguousarray((answered - due).T).reshape(arrivals.shape)
    return found


def highest_rates(
    schedule: Numbers,
    service: Numbers,
    bound_ms: float,
    slower_allowed: int,
    sizes: Sequence[int] = (1,),
    instances: int = 1,
    wake_up_ms: float = 0.0,
) -> Numbers:
    """Return for each test the highest rate, per millisecond, at which so few requests exceed the bound.

    It is zero if even requests that never wait exceed it. No rate is higher than what the instances can serve in the
    long run, although a short test may end before the queue has grown.
    """
    capacity = capacity_of(service, sizes, instances)
    lowest, highest = np.zeros_like(capacity), capacity
    steps = np.arange(1, _RATES_AT_ONCE + 1) / (_RATES_AT_ONCE + 1)
    for narrowing in range(_NARROWINGS):
        # The first time the highest rate is one of those tried.
        shares = steps if narrowing else np.append(steps, 1.0)
        rates = lowest + shares[:, np.newaxis] * (highest - lowest)
        slower = (latencies_of(schedule, rates, service, sizes, instances, wake_up_ms) > bound_ms).sum(axis=-1)
        passes = np.logical_and.accumulate(slower <= slower_allowed, axis=0)
        edges = np.concatenate((lowest[np.newaxis], rates, highest[np.newaxis]))
        last = passes.sum(axis=0)
        tests = np.arange(len(capacity))
        lowest, highest = edges[last, tests], edges[last + 1, tests]
    # Requests that exceed the bound although they never wait.
    slow_alone = (service[0] > bound_ms).sum(axis=-1)
    return np.where(slow_alone <= slower_allowed, lowest, 0.0)


def capacity_of(service: Numbers, sizes: Sequence[int], instances: int) -> Numbers:
    """Return for each test the highest rate that the instances can serve in the long run."""
    per_request = service.mean(axis=-1) / np.array(sizes)[:, np.newaxis]
    found: Numbers = instances / per_request[list(sizes).index(max(sizes))]
    return found


def percentiles_of(latencies: Numbers, percentiles: Sequence[float]) -> Numbers:
    """Return the percentiles of each test as LoadGen takes them, without interpolation: percentiles x tests."""
    count = latencies.shape[-1]
    places = [min(count - 1, int(count * percentile / 100.0)) for percentile in percentiles]
    found: Numbers = np.moveaxis(np.sort(latencies, axis=-1)[..., places], -1, 0)
    return found


def slower_allowed(queries: int, percentile: float) -> int:
    """Return the most queries that may exceed the bound in a test that LoadGen calls valid; -1 if it is too short.

    LoadGen's early stopping demands that so few slow ones have a chance of at most 1 - CONFIDENCE if the true share of
    fast ones is the percentile.
    """
    within = percentile / 100.0
    # The logarithm of the chance of exactly `slower`, since that of none is too small a number in a long test.
    exactly, slower = queries * math.log(within), 0
    at_most = math.exp(exactly)
    while at_most <= 1.0 - CONFIDENCE:
        slower += 1
        exactly += math.log((queries - slower + 1) / slower * (1.0 - within) / within)
        at_most += math.exp(exactly)
    return slower - 1


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
            raise ScenarioError(
                f"bound {bound_ms:g} ms: a request that never waits takes {service.single_ms:.3g} ms on average, and "
                f"at most {100.0 - scenario.percentile:.3g} % may take longer than the bound; give a higher --bound-ms"
            )
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
