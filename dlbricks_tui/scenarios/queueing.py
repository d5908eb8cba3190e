"""A simulated queue: many tests of a server at once, from the times of requests and of their service to latencies."""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dlbricks_tui.scenarios.scenario import CONFIDENCE, SCHEDULE_SEED

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
        return _served_one_by_one(arrivals, service[0])
    return _served_in_batches(arrivals, service, sizes, instances, wake_up_ms)


def _served_one_by_one(arrivals: Numbers, service: Numbers) -> Numbers:
    """Return latencies of one instance: it works without a pause since the last request that found it idle."""
    worked = np.cumsum(service, axis=-1)
    found: Numbers = worked + np.maximum.accumulate(arrivals - (worked - service), axis=-1) - arrivals
    return found


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
