"""Bounds, gaps, rooflines and tables of models."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlbricks_tui.analysis.bounds import (
    Gap,
    Roof,
    Work,
    applies_to,
    best_measured,
    fastest,
    gap_of,
    points_of,
    ratio_of,
    roof_of,
    roofline_ms,
    savings,
    works_of,
)
from dlbricks_tui.analysis.groups import MeasuredExecution, are_comparable, groups_of
from dlbricks_tui.analysis.what_if import WhatIfKind
from dlbricks_tui.analysis.whole_models import Basis, written_times
from dlbricks_tui.api.analyses import best_gains, by_execution, mean_gain, mean_ratio, middle
from dlbricks_tui.estimate.compositions import from_picoseconds, to_picoseconds
from dlbricks_tui.estimate.knowledge import Latency
from dlbricks_tui.models.graph import LayerGraph, TensorType
from dlbricks_tui.models.kinds import Kind
from dlbricks_tui.runtime.variant import Precision, Variant
from dlbricks_tui.store.records import Peaks, System
from tests.analysis.executions import (
    analysed,
    analysis_of,
    executed,
    in_file,
    renamed,
    some_executions,
    what_if,
    with_conversion,
    with_nodes,
)
from tests.bricks.convolutions import convolving
from tests.bricks.graphs import DATA, Spec, after, built, chain


def test_the_parallel_best_is_the_longest_path_through_the_groups() -> None:
    fork = built([Spec("conv", DATA), Spec("relu", after(0)), Spec("pool", after(0)), Spec("add", after(1, 2))])
    best = best_measured([executed(with_nodes(fork), {0: 1.0, 1: 2.0, 2: 3.0, 3: 1.0})])
    assert best.latency_ms == pytest.approx(7.0)
    assert best.parallel_ps == to_picoseconds(5.0)


def test_groups_that_wait_for_one_another_are_on_the_path_together() -> None:
    """The second execution computes the first and the last layer at once."""
    graph = with_nodes(chain("conv", "relu", "conv"))
    joined = with_nodes(chain("conv", "relu"))
    joined = replace(joined, layers=(replace(joined.layers[0], nodes=(0, 2)), joined.layers[1]))
    best = best_measured([executed(graph, {0: 1.0, 1: 2.0, 2: 1.0}), executed(joined, {0: 5.0, 1: 5.0})])
    assert [winner.nodes for winner in best.winners] == [(0, 2), (1,)]
    assert best.parallel_ps == to_picoseconds(4.0)


def test_the_errors_of_a_ratio_are_independent() -> None:
    found = ratio_of(Latency(2.0, 1.9, 2.1), Latency(1.0, 0.95, 1.05))
    assert found.value == 2.0
    assert 1.0 - found.low / 2.0 == pytest.approx(0.05 * 2**0.5, rel=0.1)
    assert ratio_of(Latency(0.0, 0.0, 0.0), Latency(1.0, 0.0, 2.0)) == (0.0, 0.0, 0.0)
    assert ratio_of(Latency(1.0, 1.0, 1.0), Latency(1.0, 0.0, 2.0)).high < 1e4


def test_an_execution_that_fuses_more_does_not_keep_others_from_competing_over_single_layers() -> None:
    graph = with_nodes(chain("conv", "relu"))
    one, other = executed(graph, {0: 1.0, 1: 3.0}), executed(graph, {0: 3.0, 1: 1.0})
    assert best_measured([one, other]).latency_ms == pytest.approx(2.0)
    for fused_ms, best_ms in ((10.0, 2.0), (1.5, 1.5)):
        fused = executed(graph, {0: fused_ms}, granularity=2)
        assert best_measured([one, other, fused]).latency_ms == pytest.approx(best_ms)
    # Nor executions of a few of the layers.
    conv, relu = graph.layers
    apart = [(conv,), (replace(relu, index=0, feeds=conv.feeds),)]
    few = [executed(replace(graph, layers=layers, heads=()), {0: 1.0}) for layers in apart]
    fused = executed(graph, {0: 5.0}, granularity=2)
    assert best_measured([*few, fused]).latency_ps <= best_measured(few).latency_ps


def test_each_cause_has_its_part() -> None:
    graph = with_nodes(chain("conv", "relu", "pool"))
    converting = with_conversion(graph, 1)
    baseline = executed(converting, {0: 3.0, 1: 0.5, 2: 1.0}, end_to_end=Latency(5.0, 4.9, 5.1))
    gap = gap_of(baseline, best_measured([baseline, executed(converting, {0: 2.0, 1: 1.0, 2: 2.0})]))
    assert gap.slower_layers_ms == 1.0
    assert gap.conversions_ms == 0.5
    assert gap.unexplained_ms == 0.5


def test_a_group_is_the_smallest_set_of_nodes_that_all_executions_cover_with_whole_layers() -> None:
    graph = with_nodes(chain("conv", "relu", "pool", "conv"))
    found = groups_of([executed(graph), executed(graph, granularity=2)])
    assert [group.nodes for group in found.groups] == [(0, 1), (2, 3)]
    assert [group.parts for group in found.groups] == [((0, 1), (0,)), ((2, 3), (1,))]


def test_an_inserted_layer_belongs_to_the_layer_that_reads_it_and_a_conversion_to_no_group() -> None:
    graph = chain("conv", "relu", "pool")
    inserted, converting = with_nodes(graph, without=[1]), with_conversion(with_nodes(graph), 1)
    for one, parts in ((inserted, (1, 2)), (converting, (2,))):
        (first, second) = groups_of([executed(one)]).groups
        assert (first.nodes, first.parts) == ((0,), ((0,),))
        assert (second.nodes, second.parts) == ((2,), (parts,))


def test_layers_of_files_in_several_formats_are_compared_by_their_names() -> None:
    graph = with_nodes(chain("conv", "relu", "pool"))
    other = replace(graph, layers=tuple(replace(it, nodes=(7 - it.index, 20 + it.index)) for it in graph.layers))
    one, converted = in_file(executed(graph), "one.json"), in_file(executed(other, granularity=2), "other.onnx")
    assert [group.parts for group in groups_of([one, converted]).groups] == [((0, 1), (0,)), ((2,), (1,))]


def test_a_layer_without_a_counterpart_is_compared_together_with_all_layers_that_read_it() -> None:
    fork = [Spec("conv", DATA), Spec("relu", after(0)), Spec("pool", after(1)), Spec("pool", after(1))]
    graph = with_nodes(built([*fork, Spec("add", after(2, 3))]))
    files = in_file(executed(graph), "one.json"), in_file(executed(renamed(graph, [1])), "other.onnx")
    assert [group.parts[1] for group in groups_of(files).groups] == [(0,), (1, 2, 3), (4,)]


def test_layers_without_counterparts_that_nothing_reads_are_compared_together_with_those_before() -> None:
    graph = with_nodes(chain("conv", "relu", "pool"))
    one = in_file(executed(graph), "one.json")
    other = in_file(executed(renamed(graph, [1, 2])), "other.onnx")
    assert [group.parts for group in groups_of((one, other)).groups] == [((0, 1, 2), (0, 1, 2))]
    # Layers of one name but other shapes are no counterparts.
    first, *others = graph.layers
    wider = replace(graph, layers=(replace(first, outputs=(TensorType((1, 99)),)), *others))
    other = in_file(executed(wider), "other.onnx")
    assert [group.parts[0] for group in groups_of((one, other)).groups] == [(0, 1), (2,)]


def test_files_without_common_layers_are_compared_as_a_whole() -> None:
    graph = with_nodes(chain("conv", "relu", "pool"))
    slow, fast = executed(graph, {0: 3.0, 1: 1.0, 2: 1.0}), executed(graph, {0: 2.0, 1: 2.0, 2: 2.0})
    other = in_file(executed(renamed(graph, [0, 1, 2]), {0: 1.0, 1: 3.0, 2: 3.0}), "other.onnx")
    executions = [in_file(slow, "one.json"), in_file(fast, "one.json"), other]
    (whole,) = groups_of(executions).groups
    assert whole.parts == ((0, 1, 2),) * 3
    # Executions of one file still compete over single layers.
    won = fastest(groups_of(executions), [[part.paid_ps for part in it.parts] for it in executions])
    assert [it.execution for it in won] == [1, 0, 0]


Executions = Sequence[MeasuredExecution]
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
    reshaped = replace(written, layers=(written.layers[0], view))
    assert works_of(executed(reshaped), reshaped)[1] == Work(0.0, 0.0, 0.0)
    assert works_of(executed(with_conversion(written, 1)), written)[1].operations == 0.0


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


@pytest.mark.parametrize("precision", Precision)
def test_peaks_of_32_bit_numbers_bound_no_model_that_computes_with_others(precision: Precision) -> None:
    found = executed(GRAPH).found
    assert applies_to(replace(found, variant=Variant(precision=precision))) is (precision is Precision.F32)


def test_the_best_change_of_a_kind_is_the_one_that_can_be_run_and_gains_most_or_else_a_bound() -> None:
    kind = WhatIfKind.RUNTIME
    large, mix = what_if("large", kind, 0.3, 0.28), what_if("mix", kind, 0.5, possible=False)
    loss, off = what_if("loss", kind, -0.2), what_if("off", WhatIfKind.FUSION, -0.2)
    assert best_gains([what_if("small", kind, 0.1), large, mix]) == {kind: large}
    assert best_gains([loss, mix, off]) == {kind: mix, WhatIfKind.FUSION: off}


def test_means_are_geometric_and_leave_missing_values_out() -> None:
    assert mean_gain([0.5, None, -1.0]) == pytest.approx(0.0)
    assert mean_gain([None]) is None
    # A change that leaves no latency is no reason to fail.
    assert mean_gain([1.0]) == pytest.approx(1.0)
    assert mean_ratio([2.0, None, 8.0]) == pytest.approx(4.0)
    assert middle([None, 3.0, 1.0, 2.0]) == 2.0
    assert (mean_ratio([]), middle([None])) == (None, None)


def test_a_row_has_the_shares_of_its_latency_which_is_an_estimate_where_the_model_was_not_timed() -> None:
    shares = analysed(measured_ms=10.0, best_ms=6.0, gap=Gap(1.0, 1.0, 2.0, 4.0)).shares
    assert shares == pytest.approx((0.6, 0.1, 0.1, 0.2))
    found = analysed(measured_ms=None, sequential_ms=9.0, best_ms=6.0, best_parallel_ms=3.0)
    assert [found.over(it) for it in (6.0, 3.0, None)] == [1.5, 3.0, None]


def test_layers_that_lose_most_come_first() -> None:
    slow, fast = executed(GRAPH, {0: 1.0, 1: 4.0, 2: 2.0, 3: 0.1}), executed(GRAPH, dict.fromkeys(range(4), 1.0))
    assert [it.layers for it in analysis_of(slow, fast).groups] == [("layer1",), ("layer2",), ("layer0",), ("layer3",)]


def test_only_models_of_one_execution_are_together() -> None:
    one, other, wide = analysed("a"), analysed("b"), analysed("c", executed(GRAPH, threads=2))
    assert by_execution([one, wide, other]) == [[one, other], [wide]]


TIMES_ROOF = Roof(2, {"avx512": 100.0}, 10.0, 40.0, 32 << 20, 0)
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
    found = written_times(executed(graph, {0: 4.0, 2: 6.0}, granularity=2), graph, None, TIMES_ROOF)
    assert {it.basis for it in found.layers} == {Basis.ROOFLINE}
    pool, relu = found.layers[2:]
    # The pooling moves 16 MiB, and the relu 32 MiB, within the shared cache.
    assert (pool.latency_ms, relu.latency_ms) == pytest.approx((2.0, 4.0))


def test_layers_that_the_runtime_does_not_execute_take_no_time_and_conversions_are_of_no_written_layer() -> None:
    without = replace(GRAPH, layers=GRAPH.layers[:3], heads=())
    found = written_times(executed(without, {0: 4.0, 1: 1.0, 2: 2.0}), GRAPH)
    assert (found.layers[3].latency_ps, found.layers[3].basis) == (0, Basis.GONE)
    assert written_times(executed(with_conversion(GRAPH, 2), {2: 2.0}), GRAPH).inserted_ps == 2_000_000_000


def test_layers_without_work_share_equally() -> None:
    views = replace(GRAPH, layers=tuple(replace(it, kind=Kind.RESHAPE, operators=()) for it in GRAPH.layers))
    found = written_times(executed(GRAPH, {0: 4.0, 2: 2.0}, granularity=2), views)
    assert [it.latency_ms for it in found.layers] == [2.0, 2.0, 1.0, 1.0]


@given(some_executions(), st.data())
def test_groups_bounds_gaps_and_savings_of_any_executions_add_up(
    executions: list[MeasuredExecution], data: st.DataObject
) -> None:
    each_part_and_each_node_belongs_to_one_group_and_is_computed_by_one_winner(executions)
    more_executions_never_raise_the_bounds_which_no_execution_beats(executions)
    the_parts_of_a_gap_add_up_to_the_latency_minus_the_best(data.draw(st.sampled_from(executions)), executions)
    savings_add_up_to_the_difference_without_conversions_and_calls(executions[0], executions[-1])
    one = data.draw(st.sampled_from(executions))
    found = written_times(one, with_nodes(one.graph), data.draw(st.none() | st.sampled_from(executions)), ROOF)
    assert found.total_ps == sum(part.paid_ps for part in one.parts)
    assert min(it.latency_ps for it in found.layers) >= 0


def each_part_and_each_node_belongs_to_one_group_and_is_computed_by_one_winner(executions: Executions) -> None:
    found = groups_of(executions)
    for number, one in enumerate(executions):
        held = [part for group in found.groups for part in group.parts[number]]
        converting = [part for part, nodes in enumerate(one.nodes_of_parts) if not nodes]
        assert sorted([*held, *converting]) == list(range(len(one.parts)))
    won = fastest(found, [[part.paid_ps for part in it.parts] for it in executions])
    for nodes in ([node for it in some for node in it.nodes] for some in (found.groups, won)):
        assert len(nodes) == len(set(nodes))


def more_executions_never_raise_the_bounds_which_no_execution_beats(executions: Executions) -> None:
    works = [works_of(one, executions[0].graph) for one in executions]
    first = [executions[: number + 1] for number in range(len(executions))]
    bests = [best_measured(some) for some in first]
    for bounds in (
        [it.latency_ps for it in bests],
        [roofline_ms(some, groups_of(some), works[: len(some)], ROOF) for some in first],
    ):
        assert bounds == sorted(bounds, reverse=True)
    best, latency = bests[-1], bests[-1].latency
    for one in executions:
        if one.estimate.composed is not None:
            assert best.latency_ps <= to_picoseconds(one.estimate.composed.sequential_ms)
            assert best.parallel_ps <= to_picoseconds(one.estimate.composed.parallel_ms)
    assert best.parallel_ps <= best.latency_ps
    assert 0.0 <= latency.low_ms <= latency.value_ms <= latency.high_ms


def the_parts_of_a_gap_add_up_to_the_latency_minus_the_best(
    baseline: MeasuredExecution, executions: Executions
) -> None:
    best = best_measured(executions)
    gap = gap_of(baseline, best)
    measured, composed = baseline.found.end_to_end, baseline.estimate.composed
    if measured is not None:
        assert gap.total_ms == from_picoseconds(to_picoseconds(measured.value_ms) - best.latency_ps)
    elif composed is not None:
        assert gap.unexplained_ms is None
        assert gap.total_ms == from_picoseconds(to_picoseconds(composed.sequential_ms) - best.latency_ps)
    assert gap.total_ms == pytest.approx(gap.slower_layers_ms + gap.conversions_ms + (gap.unexplained_ms or 0.0))
    assert min(gap.slower_layers_ms, gap.conversions_ms) >= 0


def savings_add_up_to_the_difference_without_conversions_and_calls(
    before: MeasuredExecution, after: MeasuredExecution
) -> None:
    found = savings(before, after)
    if not are_comparable(before, after):
        assert found == ()
        return
    assert sum(it.before_ms for it in found) == pytest.approx(compared_ms(before))
    assert sum(it.saved_ms for it in found) == pytest.approx(compared_ms(before) - compared_ms(after), abs=1e-9)


def compared_ms(one: MeasuredExecution) -> float:
    """The time of the parts that belong to nodes, for an item."""
    parts = [part for part, nodes in zip(one.parts, one.nodes_of_parts, strict=True) if nodes]
    return from_picoseconds(sum(part.paid_ps for part in parts)) / one.graph.batch_size
