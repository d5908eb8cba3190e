"""The times that an instance of a model takes to serve a batch of requests, from stored results."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from statistics import fmean, median

import numpy as np
from numpy.typing import NDArray

from dlbricks_tui.estimate.knowledge import Latency
from dlbricks_tui.scenarios.scenario import ScenarioKind, latencies_ms
from dlbricks_tui.store.records import LoadTest
from dlbricks_tui.store.statistics import summarise

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


def streamed_service(test: LoadTest, placement_share: float = 0.0) -> ServiceTime:
    """Return the service time of single requests, from a load test of a single stream.

    It has hundreds of requests, one after another, so it shows slow ones that a few timed runs do not.
    """
    samples = [max(0.0, latency_ms - test.passing_ms) for latency_ms in latencies_ms(test)]
    found = summarise(samples)
    latency = Latency(found.trimmed_mean_ms, found.low_ms, found.high_ms)
    return ServiceTime(1, _widened(latency, placement_share), tuple(samples), ServiceSource.SINGLE_STREAM)


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
    """Return service times with what the load tests of a system tell: the newest first.

    `runtime` is the identity of the runtime.
    """
    own = [it for it in tests if it.runtime == runtime]
    slowdown = None if instances == 1 else slowdown_of(own, instances)
    if not own:
        return replace(service, slowdown=slowdown)
    return replace(
        service, slowdown=slowdown, passing_ms=own[0].passing_ms, wake_up_ms=own[0].wake_up_ms, passing_is_measured=True
    )


def slowdown_of(tests: Sequence[LoadTest], instances: int) -> float | None:
    """Return how much longer a batch takes while so many instances run, by valid offline tests of one and of several.

    None without such tests of the same model and batch size.
    """
    offline = [it for it in tests if it.kind == ScenarioKind.OFFLINE.value and it.valid]
    alone = {(it.model, it.batch_size): it for it in reversed(offline) if it.instances == 1}
    together = {(it.model, it.batch_size): it for it in reversed(offline) if it.instances == instances}
    common = alone.keys() & together.keys()
    factors = [instances * alone[it].per_second / together[it].per_second for it in common if together[it].per_second]
    return median(factors) if factors else None
