from dataclasses import replace

import pytest

from dlbricks_tui.analysis.roofline import Roof, Work, points_of, roof_of, works_of
from dlbricks_tui.models.graph import LayerGraph, TensorType
from dlbricks_tui.models.kinds import Kind
from dlbricks_tui.store.records import Peaks, System
from tests.analysis.executions import as_conversion, executed, with_nodes
from tests.bricks.convolutions import convolving
from tests.bricks.graphs import chain

MEBIBYTE = float(1 << 20)
ROOF = Roof(2, {"avx512": 100.0, "avx2": 50.0}, 10.0, 40.0, 32 << 20, 2 << 20)
SHAPE = (1, 64, 56, 56)
TENSOR_BYTES = 4 * 64 * 56 * 56
MULTIPLICATIONS = 64 * 64 * 9 * 56 * 56


def convolution() -> LayerGraph:
    """A convolution of 3x3 and a relu."""
    graph = with_nodes(chain("conv", "relu"))
    params = (("kernel", (3, 3)), ("pads", (1, 1, 1, 1)), ("stride", (1, 1)))
    graph = convolving(graph, 0, SHAPE, (64, 64, 3, 3), SHAPE, params=params)
    layers = [replace(it, data=(TensorType(SHAPE),), outputs=(TensorType(SHAPE),)) for it in graph.layers]
    return replace(graph, layers=tuple(layers))


@pytest.mark.parametrize(
    ("work", "weights", "expected_ms"),
    [
        # Arithmetic beyond the ridge is bound by the widest instructions.
        (Work(1e9, MEBIBYTE, 0.0), 0.0, 10.0),
        # Traffic is bound by the cache that its working set fits in.
        (Work(0.0, MEBIBYTE, 0.0), 0.0, 0.0),
        (Work(0.0, 8 * MEBIBYTE, 0.0), 0.0, 8 * MEBIBYTE / 40e6),
        (Work(0.0, 64 * MEBIBYTE, 0.0), 0.0, 64 * MEBIBYTE / 10e6),
        # Weights come from memory if those of the model fit in no cache.
        (Work(0.0, 0.0, MEBIBYTE), 100 * MEBIBYTE, MEBIBYTE / 10e6),
    ],
)
def test_work_is_bound_by_arithmetic_or_by_the_place_of_its_bytes(
    work: Work, weights: float, expected_ms: float
) -> None:
    assert ROOF.least_ms(work, weights) == pytest.approx(expected_ms)
    if work.tensor_bytes == 8 * MEBIBYTE:
        assert replace(ROOF, shared_cache=None).least_ms(work, weights) == 0.0, "a cache of unknown speed costs nothing"


def test_work_has_the_arithmetic_of_the_written_layers_and_the_bytes_that_pass_in_and_out() -> None:
    written = convolution()
    conv, relu = works_of(executed(written), written)
    assert conv == Work(2.0 * MULTIPLICATIONS, 2.0 * TENSOR_BYTES, 4.0 * 64 * 64 * 9)
    assert relu == Work(64.0 * 56 * 56, 2.0 * TENSOR_BYTES, 0.0)
    # A layer that runs several times has the work of one run.
    repeated = replace(written, layers=tuple(replace(it, times=3) for it in written.layers))
    assert works_of(executed(repeated), repeated) == works_of(executed(written), written)
    (fused,) = works_of(executed(written, granularity=2), written)
    assert fused == Work(2.0 * MULTIPLICATIONS, 2.0 * TENSOR_BYTES, 4.0 * 64 * 64 * 9)


def test_views_and_conversions_compute_nothing() -> None:
    written = convolution()
    view = replace(written.layers[1], kind=Kind.RESHAPE)
    assert works_of(executed(replace(written, layers=(written.layers[0], view))), written)[1].bytes == 0.0
    converting = replace(written, layers=(written.layers[0], as_conversion(written.layers[1])))
    assert works_of(executed(converting), written)[1].operations == 0.0


def test_points_show_the_speed_that_layers_reach() -> None:
    written = convolution()
    one = executed(written, {0: 5.0, 1: 1.0})
    conv, relu = points_of(one, works_of(one, written), ROOF)
    assert conv.billions_per_second == pytest.approx(2 * MULTIPLICATIONS / 5e6)
    assert conv.least_ms == pytest.approx(2 * MULTIPLICATIONS / 100e6)
    assert relu.work.intensity == pytest.approx(0.125)


def test_layers_that_are_faster_than_the_peaks_raise_the_roof_and_are_their_own_bound() -> None:
    written = convolution()
    usual_ms = 2 * MULTIPLICATIONS / 100e6
    fast = executed(written, {0: usual_ms / 2, 1: 1.0})
    points = points_of(fast, works_of(fast, written), ROOF)
    assert points[0].least_ms == points[0].latency_ms
    reached = ROOF.reached_by(points)
    assert reached.highest == pytest.approx(2 * ROOF.highest) and reached.memory == ROOF.memory
    # A layer without weight in the model tells nothing of the peaks.
    light = executed(written, {0: usual_ms / 2, 1: 1000.0 * usual_ms})
    assert ROOF.reached_by(points_of(light, works_of(light, written), ROOF)) == ROOF


def test_the_roof_is_that_of_the_system_and_threads() -> None:
    system = System(id="a", name="a", cpu="", cores=2, memory_bytes=0, facts=(("last_level_cache", "16M"),))
    peaks = Peaks(
        when="2026-01-01T00:00:00+00:00",
        system="a",
        threads=2,
        arithmetic=(("avx512", 100.0), ("avx2", 50.0)),
        bandwidth=(("memory", 10.0), ("shared cache", 40.0)),
    )
    found = roof_of([peaks], system, 2)
    assert found is not None
    assert (found.highest, found.memory, found.shared_cache, found.shared_bytes) == (100.0, 10.0, 40.0, 16 << 20)
    assert roof_of([peaks], system, 1) is None
    assert roof_of([peaks], replace(system, id="b"), 2) is None
