"""The combinations of a model in order, the best first, and which of them differ from the best beyond noise."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from dlbricks_tui.estimate.knowledge import Latency
from dlbricks_tui.estimate.system_estimate import SystemEstimate
from dlbricks_tui.runtime.variant import USUAL_KERNELS, Kernels, Precision
from dlbricks_tui.store.change import BESIDE_BEST, Change, Timing, Verdict, known_changes


@dataclass(frozen=True, slots=True)
class Point:
    """A model in one variant."""

    # The runtime by the name that the user gave, empty for the usual one.
    runtime: str
    # None: the number that the framework starts by default.
    threads: int | None
    found: SystemEstimate
    # The command that measures what is missing; empty if nothing is.
    cure: str = ""

    @property
    def batch_size(self) -> int:
        """The number of images, sentences or rows in an inference."""
        return self.found.variant.batch

    @property
    def latency(self) -> Latency | None:
        """The end-to-end latency, or where there is none the estimate; None where layers are missing in it."""
        return None if self.found.figure is None else self.found.figure.latency

    @property
    def estimate_ms(self) -> float | None:
        """The sequential estimate; None where layers are missing in it."""
        return None if self.found.estimate.latency is None else self.found.estimate.latency.value_ms

    @property
    def measured_ms(self) -> float | None:
        """The end-to-end latency."""
        return None if self.found.end_to_end is None else self.found.end_to_end.value_ms

    @property
    def latency_ms(self) -> float | None:
        """The latency in milliseconds."""
        return None if self.latency is None else self.latency.value_ms

    @property
    def per_second(self) -> float | None:
        """The images, sentences or rows in a second, by `latency_ms`."""
        return per_second(self.batch_size, self.latency_ms)

    @property
    def is_predicted(self) -> bool:
        """True if its latency is an estimate that contains predictions."""
        return self.found.figure is not None and not self.found.figure.is_measured

    @property
    def may_be_best(self) -> bool:
        """True if its latency was measured, or predicted with a narrow interval."""
        return self.found.figure is not None and self.found.figure.may_be_best

    @property
    def tested(self) -> Timing | None:
        """The time for one image, sentence or row, by which combinations of several batch sizes are compared."""
        return None if self.found.tested is None else self.found.tested.per_item(self.batch_size)

    @property
    def precision(self) -> Precision:
        """The numbers that the runtime computes with."""
        return self.found.variant.precision

    @property
    def kernels(self) -> Kernels:
        """The limits on the kernels of the runtime."""
        return self.found.variant.kernels


def per_second(batch_size: int, latency_ms: float | None) -> float | None:
    """Return the throughput of a model that computes a batch in this time."""
    return batch_size / latency_ms * 1000 if latency_ms else None


def best_within(points: Iterable[Point], bound_ms: float) -> Point | None:
    """Return the variant with the highest throughput whose latency is within a bound."""
    within = [it for it in points if it.latency_ms is not None and it.latency_ms <= bound_ms]
    return max(within, key=lambda it: it.per_second or 0.0, default=None)


def scaling_efficiency(point: Point, points: Sequence[Point]) -> float | None:
    """Return the share of the ideal speed-up that more threads reach, over the fewest threads of the same batch."""

    def but_threads(it: Point) -> tuple[str, Precision, Kernels, int]:
        return it.runtime, it.precision, it.kernels, it.batch_size

    alike = [it for it in points if but_threads(it) == but_threads(point) and it.latency_ms]
    fewest = min((it for it in alike if it.threads), key=lambda it: it.threads or 0, default=None)
    if fewest is None or not point.threads or not point.latency_ms:
        return None
    return ((fewest.latency_ms or 0.0) * (fewest.threads or 0)) / (point.latency_ms * point.threads)


@dataclass(frozen=True, slots=True)
class Ranked:
    """A combination beside the first one.

    `ratio` is its time for one image, sentence or row over that of the first one: 1 for that itself, None without a
    latency. `change` is that from the first one to it.
    """

    point: Point
    ratio: float | None
    change: Change | None = None
    is_first: bool = False

    @property
    def is_best(self) -> bool:
        """True for the first one, unless its latency is predicted too uncertainly."""
        return self.is_first and self.point.may_be_best

    @property
    def verdict(self) -> Verdict | None:
        """Its difference from the first; None for the first itself, and without a latency."""
        return None if self.change is None else self.change.verdict


@dataclass(frozen=True, slots=True)
class Ranking:
    """A model in several combinations on one system, the best first."""

    model: str
    system: str
    combinations: tuple[Ranked, ...]
    # The number of combinations with results of only some of the model's layers, which are left out.
    left_out: int = 0
    # The reasons why combinations that were asked for are left out.
    refusals: tuple[str, ...] = ()
    # False: the runs that measure what is missing belong on another system.
    on_this_host: bool = True
    # The batch size of the model's file.
    own_batch: int = 1
    # False while combinations without a latency are still being read.
    is_read: bool = True

    @property
    def answer(self) -> Ranked | None:
        """The fastest combination that was measured at the file's batch size, as the model is; None without any.

        It is the answer of all other places. The first combination may be another: of a batch size with a higher
        throughput, in a precision whose accuracy was not checked, or with limited kernels.
        """
        fitting = [
            (it.point.latency_ms, it)
            for it in self.combinations
            if it.point.latency_ms is not None
            and not it.point.is_predicted
            and it.point.batch_size == self.own_batch
            and not it.point.precision.is_unchecked
            and it.point.kernels == USUAL_KERNELS
        ]
        return min(fitting, key=lambda pair: pair[0], default=(0.0, None))[1]

    @property
    def rival(self) -> Ranked | None:
        """The measured combination next to the best one, if it is unknown which of the two is faster."""
        measured = [it for it in self.combinations if it.ratio is not None and it.point.measured_ms is not None]
        if len(measured) < 2 or not measured[0].is_best or measured[1].verdict is not Verdict.UNKNOWN:
            return None
        return measured[1]

    def within(self, bound_ms: float | None) -> "Ranking":
        """Return the ranking of the combinations with at most this latency; all others come last, without a ratio."""
        if bound_ms is None:
            return self
        inside, outside = list[Point](), list[Ranked]()
        for point in (it.point for it in self.combinations):
            if point.latency_ms is not None and point.latency_ms <= bound_ms:
                inside.append(point)
            else:
                outside.append(Ranked(point, None))
        return replace(self, combinations=(*ranked(inside), *outside))


def ranked(combinations: Iterable[Point]) -> tuple[Ranked, ...]:
    """Return all combinations by throughput, then those whose predictions are too uncertain to be the best.

    The first one is the best that was measured, if any was. Those without a latency come last, in their order. At one
    batch size that is the order of the latencies. Predictions do not change the verdicts on what was measured.
    """
    # Each with the time for one item.
    timed: list[tuple[float, Point]] = []
    others: list[Ranked] = []
    for it in combinations:
        if it.latency_ms:
            timed.append((it.latency_ms / it.batch_size, it))
        else:
            others.append(Ranked(it, None))
    if not timed:
        return tuple(others)
    timed.sort(key=lambda pair: (not pair[1].may_be_best, pair[0]))
    least_ms, first = timed.pop(next((number for number, (_, it) in enumerate(timed) if not it.is_predicted), 0))
    compared: dict[int, Ranked] = {}
    for predicted in (False, True):
        alike = [number for number, (_, it) in enumerate(timed) if it.is_predicted is predicted]
        changes = known_changes([(first.tested, timed[number][1].tested) for number in alike], BESIDE_BEST)
        for number, change in zip(alike, changes, strict=True):
            each_ms, it = timed[number]
            ratio = each_ms / least_ms
            compared[number] = Ranked(it, ratio, None if change is None else change.around(ratio))
    return (Ranked(first, 1.0, is_first=True), *(compared[number] for number in range(len(timed))), *others)
