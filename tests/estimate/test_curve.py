import pytest

from dlbricks_tui.bricks.decomposition import decompose
from dlbricks_tui.estimate.estimate import estimate
from dlbricks_tui.estimate.knowledge import NOTHING_KNOWN, Latency
from dlbricks_tui.estimate.ranking import Point, best_within, scaling_efficiency
from dlbricks_tui.estimate.system_estimate import SystemEstimate
from dlbricks_tui.models.graph import Level
from dlbricks_tui.runtime.variant import Variant
from dlbricks_tui.store.selections import Way
from tests.bricks.graphs import chain

WAY = Way("host", "onnxruntime-1.32.0 python-3.11 threads-1", Level.WRITTEN, "inside")
UNMEASURED = estimate(decompose(chain("conv", "relu")), NOTHING_KNOWN)


def point(batch_size: int, measured_ms: float | None, threads: int | None = 1) -> Point:
    """A model that was timed end to end, and not by its bricks."""
    timed = None if measured_ms is None else Latency(measured_ms, measured_ms, measured_ms)
    found = SystemEstimate(WAY, UNMEASURED, timed, variant=Variant(threads=threads, batch=batch_size))
    return Point("", threads, found, "dlbricks run net")


def test_the_best_variant_has_the_highest_throughput_within_the_bound() -> None:
    points = [point(1, 10.0), point(4, 30.0), point(8, 70.0), point(16, None)]
    assert best_within(points, 50.0) == points[1]
    assert best_within(points, 100.0) == points[1]
    assert best_within(points, 10.0) == points[0]
    assert best_within(points, 9.0) is None
    assert best_within([], 9.0) is None


def test_throughput_counts_the_whole_batch() -> None:
    assert point(4, 20.0).per_second == 200.0
    assert point(4, None).per_second is None


def test_efficiency_compares_with_the_fewest_threads_of_the_same_batch() -> None:
    points = [point(1, 10.0, 2), point(1, 8.0, 4), point(8, 60.0, 2), point(1, 5.0, None)]
    assert scaling_efficiency(points[0], points) == 1.0
    assert scaling_efficiency(points[1], points) == pytest.approx(10 * 2 / (8 * 4))
    assert scaling_efficiency(points[2], points) == 1.0
    assert scaling_efficiency(points[3], points) is None
