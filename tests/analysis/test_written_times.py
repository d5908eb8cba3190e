from dataclasses import replace

import pytest

from dlbricks_tui.analysis.roofline import Roof
from dlbricks_tui.analysis.whole_models import Basis, written_times
from dlbricks_tui.models.graph import LayerGraph, TensorType
from dlbricks_tui.models.kinds import Kind
from tests.analysis.executions import as_conversion, executed, with_nodes
from tests.bricks.graphs import chain

ROOF = Roof(2, {"avx512": 100.0}, 10.0, 40.0, 32 << 20, 0)
GRAPH = with_nodes(chain("conv", "relu", "pool", "relu"))


def sized(graph: LayerGraph, *mebibytes: int) -> LayerGraph:
    """The graph with outputs of these sizes, each read by the next layer."""
    outputs = [(TensorType((size, 256, 1024)),) for size in mebibytes]
    layers = [
        replace(it, outputs=own, data=before)
        for it, own, before in zip(graph.layers, outputs, [graph.layers[0].data, *outputs], strict=False)
    ]
    return replace(graph, layers=tuple(layers))


def test_a_layer_that_runs_by_itself_has_its_own_time() -> None:
    found = written_times(executed(GRAPH, {0: 4.0, 1: 1.0, 2: 2.0, 3: 3.0}), GRAPH)
    assert [it.latency_ms for it in found.layers] == [4.0, 1.0, 2.0, 3.0]
    assert {it.basis for it in found.layers} == {Basis.WHOLE}


def test_a_fused_layer_is_shared_by_the_measured_times_of_its_written_layers() -> None:
    fused, written = executed(GRAPH, {0: 4.0, 2: 2.0}, granularity=2), executed(GRAPH, {0: 6.0, 1: 2.0, 2: 1.0, 3: 1.0})
    found = written_times(fused, GRAPH, written)
    assert [it.latency_ms for it in found.layers] == [3.0, 1.0, 1.0, 1.0]
    assert {it.basis for it in found.layers} == {Basis.MEASURED}


def test_without_measured_times_the_roofline_decides_and_is_marked() -> None:
    graph = sized(GRAPH, 8, 8, 8, 24)
    found = written_times(executed(graph, {0: 4.0, 2: 6.0}, granularity=2), graph, None, ROOF)
    assert {it.basis for it in found.layers} == {Basis.ROOFLINE}
    pool, relu = found.layers[2:]
    # The pooling moves 16 MiB, and the relu 32 MiB, within the shared cache.
    assert (pool.latency_ms, relu.latency_ms) == pytest.approx((2.0, 4.0))


def test_layers_that_the_runtime_does_not_execute_take_no_time_and_conversions_are_of_no_written_layer() -> None:
    without = replace(GRAPH, layers=GRAPH.layers[:3], heads=())
    found = written_times(executed(without, {0: 4.0, 1: 1.0, 2: 2.0}), GRAPH)
    assert (found.layers[3].latency_ps, found.layers[3].basis) == (0, Basis.GONE)
    layers = [as_conversion(it) if it.index == 2 else it for it in GRAPH.layers]
    found = written_times(executed(replace(GRAPH, layers=tuple(layers)), {2: 2.0}), GRAPH)
    assert found.inserted_ps == 2_000_000_000


def test_layers_without_work_share_equally() -> None:
    views = replace(GRAPH, layers=tuple(replace(it, kind=Kind.RESHAPE, operators=()) for it in GRAPH.layers))
    found = written_times(executed(GRAPH, {0: 4.0, 2: 2.0}, granularity=2), views)
    assert [it.latency_ms for it in found.layers] == [2.0, 2.0, 1.0, 1.0]
