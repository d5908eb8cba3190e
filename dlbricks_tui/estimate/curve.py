"""A model in several variants: the best one under a bound, and what more threads gain."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from dlbricks_tui.estimate.system_estimate import SystemEstimate
from dlbricks_tui.runtime.variant import Kernels, Precision


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
    def estimate_ms(self) -> float | None:
        """The sequential estimate; None where layers are missing in it."""
        return None if self.found.estimate.is_partial else self.found.sequential_ms

    @property
    def measured_ms(self) -> float | None:
        """The end-to-end latency."""
        return None if self.found.end_to_end is None else self.found.end_to_end.value_ms

    @property
    def latency_ms(self) -> float | None:
        """The estimate, or where there is none the end-to-end latency."""
        return self.measured_ms if self.estimate_ms is None else self.estimate_ms

    @property
    def per_second(self) -> float | None:
        """The images, sentences or rows in a second, by `latency_ms`."""
        return per_second(self.batch_size, self.latency_ms)

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
    alike = [it for it in points if _but_threads(it) == _but_threads(point) and it.latency_ms]
    fewest = min((it for it in alike if it.threads), key=lambda it: it.threads or 0, default=None)
    if fewest is None or not point.threads or not point.latency_ms:
        return None
    return ((fewest.latency_ms or 0.0) * (fewest.threads or 0)) / (point.latency_ms * point.threads)


def _but_threads(point: Point) -> tuple[str, Precision, int]:
    return point.runtime, point.precision, point.batch_size
