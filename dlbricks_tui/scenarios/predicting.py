"""The latencies and the throughput of a scenario, predicted from service times by simulated tests of LoadGen."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import Enum
from statistics import fmean, median

import numpy as np
from numpy.typing import NDArray

from dlbricks_tui.estimate.knowledge import Latency
from dlbricks_tui.scenarios.kinds import ScenarioKind
from dlbricks_tui.scenarios.scenario import (
    CONFIDENCE,
    PERCENTILES,
    SAMPLES_PER_QUERY,
    SCHEDULE_SEED,
    PredictedLoad,
    Range,
    Scenario,
    ScenarioError,
    fewest_queries,
    latencies_ms,
)
from dlbricks_tui.store.change import TOGETHER
from dlbricks_tui.store.records import LoadTest
from dlbricks_tui.store.statistics import mean_latency, summarise

Numbers = NDArray[np.float64]

# What passing a request to the worker and back adds, until a load test has measured it: 0.1 to 0.2 ms on the hosts
# where it was measured.
USUAL_PASSING_MS = 0.15
# How much longer a request takes after a pause of its instance, until a load test has measured it: 1.2 ms with ONNX
# Runtime, 1.6 ms with MXNet and 1.9 ms with OpenVINO on a virtual machine with two cores of an Intel Xeon.
USUAL_WAKE_UP_MS = 1.2
# Half of a 95 % interval in standard deviations.
_DEVIATIONS = 1.96
# The sums of samples that stand for the spread of an estimate.
_SUMS = 200


class ServiceSource(str, Enum):
    """The results that a service time comes from."""

    # The whole model was timed.
    END_TO_END = "end to end"
    # The requests of a single stream were.
    SINGLE_STREAM = "single stream"
    # Its bricks were.
    ESTIMATE = "estimate"
    # Those of a smaller and a larger batch.
    INTERPOLATED = "interpolated"


@dataclass(frozen=True, slots=True)
class ServiceTime:
    """The time of one inference at a batch size: its latency with an interval, and samples with the same mean.

    Timed runs follow one another, and short models are timed by medians of several runs. So the samples tell little
    about the slowest requests: a percentile beyond that of the slowest sample is not known.
    """

    batch_size: int
    latency: Latency
    samples_ms: tuple[float, ...]
    source: ServiceSource


@dataclass(frozen=True, slots=True)
class ServiceTimes:
    """The time that an instance needs for each batch size, and what passing a request and a pause before it add."""

    by_size: tuple[ServiceTime, ...]
    passing_ms: float = USUAL_PASSING_MS
    wake_up_ms: float = USUAL_WAKE_UP_MS
    # True if a load test has measured both on this system.
    passing_is_measured: bool = False
    # The factor by which instances that run at the same time slow one another down; None: not known.
    slowdown: float | None = None
    # The threads of all instances for each core, if there are more threads than cores.
    crowding: float = 1.0

    @property
    def sizes(self) -> tuple[int, ...]:
        """The batch sizes, the smallest first."""
        return tuple(it.batch_size for it in self.by_size)

    @property
    def single_ms(self) -> float:
        """The mean time for the smallest batch."""
        return self.mean_ms(self.sizes[0])

    def mean_ms(self, size: int) -> float:
        """Return the mean time for a batch, with passing it to the worker."""
        return fmean(self._of(size).samples_ms) * self._factor + self.passing_ms

    def draws(self, sizes: Sequence[int], tests: int, requests: int, seed: int = 0) -> Numbers:
        """Return random times: sizes x tests x requests, in milliseconds.

        Each test has a host and a load of the model of its own: its times are scaled by a value from the interval of
        the latency. Each request draws one of the samples.
        """
        random = np.random.default_rng(seed)
        shift = random.standard_normal((tests, 1)) / _DEVIATIONS
        ranks = random.random((tests, requests))
        return np.stack([self._drawn(self._of(size), shift, ranks) for size in sizes])

    def _drawn(self, service: ServiceTime, shift: Numbers, ranks: Numbers) -> Numbers:
        latency, samples = service.latency, np.sort(service.samples_ms)
        half = np.where(shift < 0.0, latency.value_ms - latency.low_ms, latency.high_ms - latency.value_ms)
        scale = np.maximum(0.0, 1.0 + shift * half / latency.value_ms)
        picked = samples[(ranks * len(samples)).astype(np.intp)]
        found: Numbers = picked * scale * self._factor + self.passing_ms
        return found

    @property
    def _factor(self) -> float:
        """The factor by which other instances make an inference longer, as far as it is known."""
        return self.crowding if self.slowdown is None else self.slowdown

    def _of(self, size: int) -> ServiceTime:
        return next(it for it in self.by_size if it.batch_size == size)


def timed_service(
    batch_size: int, samples_ms: Sequence[float], latency: Latency, placement_share: float = 0.0
) -> ServiceTime:
    """Return the service time of a model that was timed end to end.

    `placement_share` is how much two loads of a model differ: a scenario loads it again.
    """
    return ServiceTime(batch_size, _widened(latency, placement_share), tuple(samples_ms), ServiceSource.END_TO_END)


def streamed_service(tests: Sequence[LoadTest], placement_share: float = 0.0) -> ServiceTime:
    """Return the service time of single requests, from load tests of a single stream: the mean of their means.

    Each has hundreds of requests, one after another, so it shows slow ones that a few timed runs do not. By how much
    the tests differ, each with a load of the model of its own, is in the interval.
    """
    by_test = [[max(0.0, latency_ms - it.passing_ms) for latency_ms in latencies_ms(it)] for it in tests]
    found = map(summarise, by_test)
    latency = Latency(*mean_latency([(it.trimmed_mean_ms, it.low_ms, it.high_ms) for it in found]))
    samples = tuple([sample for samples in by_test for sample in samples])
    return ServiceTime(1, _widened(latency, placement_share), samples, ServiceSource.SINGLE_STREAM)


def _widened(latency: Latency, placement_share: float) -> Latency:
    """Return a latency with an interval that includes another load of the model."""
    placement_ms = placement_share * latency.value_ms
    below = float(np.hypot(latency.value_ms - latency.low_ms, placement_ms))
    above = float(np.hypot(latency.high_ms - latency.value_ms, placement_ms))
    return Latency(latency.value_ms, max(0.0, latency.value_ms - below), latency.value_ms + above)


@dataclass(frozen=True, slots=True)
class BrickSamples:
    """The samples of a brick, which the model runs `times` times.

    Bricks of one group were timed in the same rounds: their samples of the same place belong together.
    """

    group: str
    times: int
    samples_ms: tuple[float, ...]


def composed_service(batch_size: int, latency: Latency, bricks: Iterable[BrickSamples]) -> ServiceTime:
    """Return the service time of an estimate, with the spread of its bricks.

    Samples of bricks that were timed in the same rounds add up round by round, since what slows one down slows the
    others down, too. Sums of different groups are independent. All sums are scaled to the estimate. Without samples
    every inference takes the estimate.
    """
    sums: dict[tuple[str, int], Numbers] = {}
    for brick in bricks:
        if brick.samples_ms:
            key = brick.group, len(brick.samples_ms)
            sums[key] = sums.get(key, 0.0) + brick.times * np.array(brick.samples_ms)
    if not sums:
        return ServiceTime(batch_size, latency, (latency.value_ms,), ServiceSource.ESTIMATE)
    random = np.random.default_rng(len(sums))
    if len(sums) == 1:
        total = next(iter(sums.values()))
    else:
        total = np.sum([random.choice(held, _SUMS) for held in sums.values()], axis=0)
    middle = float(np.mean(total))
    scaled = total * (latency.value_ms / middle) if middle else np.full_like(total, latency.value_ms)
    return ServiceTime(batch_size, latency, tuple(scaled.tolist()), ServiceSource.ESTIMATE)


def interpolated_service(batch_size: int, smaller: ServiceTime, larger: ServiceTime) -> ServiceTime:
    """Return the service time between two batch sizes, on the line through both, with the spread of the nearer one."""
    share = (batch_size - smaller.batch_size) / (larger.batch_size - smaller.batch_size)
    latency = Latency(
        *((1.0 - share) * low + share * high for low, high in zip(smaller.latency, larger.latency, strict=True))
    )
    nearer = smaller if share < 0.5 else larger
    factor = latency.value_ms / nearer.latency.value_ms
    samples = tuple([factor * sample for sample in nearer.samples_ms])
    return ServiceTime(batch_size, latency, samples, ServiceSource.INTERPOLATED)


def filled(known: Mapping[int, ServiceTime], sizes: Sequence[int]) -> tuple[ServiceTime, ...]:
    """Return the service times of these sizes; those between known ones are interpolated, others missing."""
    found = []
    for size in sorted(sizes):
        smaller = max((it for it in known if it < size), default=None)
        larger = min((it for it in known if it > size), default=None)
        if size in known:
            found.append(known[size])
        elif smaller is not None and larger is not None:
            found.append(interpolated_service(size, known[smaller], known[larger]))
    return tuple(found)


def with_load_tests(service: ServiceTimes, tests: Sequence[LoadTest], runtime: str, instances: int) -> ServiceTimes:
    """Return service times with what the load tests of a system tell.

    `runtime` is the identity of the runtime. What passing a request and a pause cost varies from test to test: the
    median of those that count together is taken.
    """
    own = [it for it in tests if it.runtime == runtime]
    recent = tests_together(own)
    slowdown = None if instances == 1 else slowdown_of(own, instances)
    if not own:
        return replace(service, slowdown=slowdown)
    return replace(
        service,
        slowdown=slowdown,
        passing_ms=median(it.passing_ms for it in recent),
        wake_up_ms=median(it.wake_up_ms for it in recent),
        passing_is_measured=True,
    )


def tests_together(tests: Iterable[LoadTest]) -> list[LoadTest]:
    """Return the tests that count together with the newest of these, oldest first."""
    ordered = sorted(((datetime.fromisoformat(it.when), it) for it in tests), key=lambda it: it[0])
    return [it for when, it in ordered if ordered[-1][0] - when <= TOGETHER]


def slowdown_of(tests: Sequence[LoadTest], instances: int) -> float | None:
    """Return how much longer a batch takes while so many instances run, by valid offline tests of one and of several.

    None without such tests of the same model and batch size. They are sorted: the last of alike ones counts.
    """
    offline = [it for it in tests if it.kind == ScenarioKind.OFFLINE.value and it.valid]
    alone = {(it.model, it.batch_size): it for it in offline if it.instances == 1}
    together = {(it.model, it.batch_size): it for it in offline if it.instances == instances}
    common = alone.keys() & together.keys()
    factors = [instances * alone[it].per_second / together[it].per_second for it in common if together[it].per_second]
    return median(factors) if factors else None


# Tests that are simulated: fewer where each takes longer, since a look-up should not.
_TESTS, _TESTS_IN_BATCHES, _FEWEST_TESTS = 200, 60, 20
_REQUESTS_IN_ALL, _REQUESTS_IN_ALL_IN_BATCHES = 140_000, 40_000
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


@dataclass(frozen=True, slots=True)
class Simulation:
    """Tests of instances that answer requests, with the times that they take.

    Requests are served in the order of their arrival. A free instance takes as many waiting requests as the largest of
    the sizes allows; requests that are fewer than the smallest size are served as if they were so many.
    """

    # When requests arrive at a rate of one per millisecond: in all tests, or a row for each test.
    schedule: Numbers
    # The time that an instance takes for a batch: sizes x tests x requests. It stands at the first request of a batch.
    service: Numbers
    sizes: tuple[int, ...] = (1,)
    instances: int = 1
    # How much longer a batch takes after a long pause of its instance.
    wake_up_ms: float = 0.0

    @classmethod
    def of(cls, scenario: Scenario, service: ServiceTimes, queries: int, most: int = _TESTS) -> "Simulation":
        """Return tests of a server with so many queries, which arrive as LoadGen sends them."""
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
        largest = max(self.sizes)
        found: Numbers = self.instances / (self.service[self.sizes.index(largest)].mean(axis=-1) / largest)
        return found

    def latencies(self, rates: Numbers) -> Numbers:
        """Return the latency of each request, from when it was due: rates x tests x requests.

        `rates` has a row for each rate to try, with the rate of each test per millisecond.
        """
        arrivals = self.schedule / rates[..., np.newaxis]
        if self.sizes != (1,) or self.instances > 1:
            return _served_in_batches(arrivals, self.service, self.sizes, self.instances, self.wake_up_ms)
        return _served_alone(arrivals, self.service[0], self.wake_up_ms)

    def highest_rates(self, bound_ms: float, slower_allowed: int) -> Numbers:
        """Return for each test the highest rate, per millisecond, at which so few requests exceed the bound.

        It is zero if even requests that never wait exceed it. No rate is higher than what the instances can serve in
        the long run, although a short test may end before the queue has grown.
        """
        lowest, highest = np.zeros(self.tests), self.capacity
        steps = np.arange(1, _RATES_AT_ONCE + 1) / (_RATES_AT_ONCE + 1)
        for narrowing in range(_NARROWINGS):
            # The first time the highest rate is one of those tried.
            shares = steps if narrowing else np.append(steps, 1.0)
            rates = lowest + shares[:, np.newaxis] * (highest - lowest)
            slower = (self.latencies(rates) > bound_ms).sum(axis=-1)
            passes = np.logical_and.accumulate(slower <= slower_allowed, axis=0)
            edges = np.concatenate((lowest[np.newaxis], rates, highest[np.newaxis]))
            last, tests = passes.sum(axis=0), np.arange(self.tests)
            lowest, highest = edges[last, tests], edges[last + 1, tests]
        # Requests that exceed the bound although they never wait.
        slow_alone = (self.service[0] > bound_ms).sum(axis=-1)
        return np.where(slow_alone <= slower_allowed, lowest, 0.0)


def _served_alone(arrivals: Numbers, service: Numbers, wake_up_ms: float) -> Numbers:
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
    simulation = Simulation.of(scenario, service, min(_MOST_QUERIES, fewest_queries(scenario.percentile)))
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
    simulation = Simulation.of(scenario, service, _queries(scenario, service), _TESTS_IN_BATCHES)
    random = np.random.default_rng(1)
    arrivals = random.exponential(1.0, (simulation.tests, simulation.queries)).cumsum(axis=-1)
    allowed = slower_allowed(simulation.queries, scenario.percentile)
    rates = replace(simulation, schedule=arrivals).highest_rates(scenario.bound_ms, allowed)
    return _range(rates * _MS_PER_SECOND)


def _server(scenario: Scenario, service: ServiceTimes) -> PredictedLoad:
    simulation = Simulation.of(scenario, service, _queries(scenario, service))
    bound_ms, allowed = scenario.bound_ms, slower_allowed(simulation.queries, scenario.percentile)
    if scenario.rate is not None:
        rates = np.full(simulation.tests, scenario.rate / _MS_PER_SECOND)
    else:
        if bound_ms is None:
            raise ScenarioError("a server needs a bound of its latency, or a rate")
        rates = simulation.highest_rates(bound_ms, allowed)
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
        valid = bool(np.median(slower) <= allowed)
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
        answered = Simulation(np.zeros(samples), alone, sizes, scenario.instances).latencies(at_once)[0]
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
        ends = Simulation(np.zeros(batches), drawn, instances=scenario.instances).latencies(at_once)[0]
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
