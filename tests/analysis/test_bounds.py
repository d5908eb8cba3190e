from dataclasses import replace

import pytest

from dlbricks_tui.analysis.bounds import best_measured, fastest, gap_of, over_best, ratio_of
from dlbricks_tui.analysis.groups import groups_of
from dlbricks_tui.estimate.compositions import picoseconds
from dlbricks_tui.estimate.knowledge import Latency
from dlbricks_tui.models.graph import TensorType
from tests.analysis.executions import as_conversion, executed, in_file, renamed, with_nodes
from tests.bricks.graphs import DATA, Spec, after, built, chain


def test_the_parallel_best_is_the_longest_path_through_the_groups() -> None:
    fork = built([Spec("conv", DATA), Spec("relu", after(0)), Spec("pool", after(0)), Spec("add", after(1, 2))])
    best = best_measured([executed(with_nodes(fork), {0: 1.0, 1: 2.0, 2: 3.0, 3: 1.0})])
    assert best.latency_ms == pytest.approx(7.0)
    assert best.parallel_ps == picoseconds(5.0)


def test_groups_that_wait_for_one_another_are_on_the_path_together() -> None:
    """The second execution computes the first and the last layer at once."""
    graph = with_nodes(chain("conv", "relu", "conv"))
    joined = with_nodes(chain("conv", "relu"))
    joined = replace(joined, layers=(replace(joined.layers[0], nodes=(0, 2)), joined.layers[1]))
    best = best_measured([executed(graph, {0: 1.0, 1: 2.0, 2: 1.0}), executed(joined, {0: 5.0, 1: 5.0})])
    assert [winner.nodes for winner in best.winners] == [(0, 2), (1,)]
    assert best.parallel_ps == picoseconds(4.0)


def test_the_headline_is_the_end_to_end_latency_over_the_best() -> None:
    graph = with_nodes(chain("conv", "relu"))
    baseline = executed(graph, {0: 3.0, 1: 1.0}, end_to_end=Latency(6.0, 5.8, 6.2))
    found = over_best(baseline, best_measured([baseline, executed(graph, {0: 2.0, 1: 1.0})]))
    assert found is not None
    assert found.value == pytest.approx(2.0)
    assert 1.8 < found.low < 2.0 < found.high < 2.2


def test_the_errors_of_a_ratio_are_independent() -> None:
    found = ratio_of(Latency(2.0, 1.9, 2.1), Latency(1.0, 0.95, 1.05))
    assert found.value == 2.0
    assert 1.0 - found.low / 2.0 == pytest.approx(0.05 * 2**0.5, rel=0.1)
    assert ratio_of(Latency(0.0, 0.0, 0.0), Latency(1.0, 0.0, 2.0)) == (0.0, 0.0, 0.0)
    assert ratio_of(Latency(1.0, 1.0, 1.0), Latency(1.0, 0.0, 2.0)).high < 1e4


def test_an_execution_that_fuses_more_does_not_keep_others_from_competing_over_single_layers() -> None:
    graph = with_nodes(chain("conv", "relu"))
    one, other = executed(graph, {0: 1.0, 1: 3.0}), executed(graph, {0: 3.0, 1: 1.0})
    fused = executed(graph, {0: 10.0}, granularity=2)
    assert best_measured([one, other]).latency_ms == pytest.approx(2.0)
    assert best_measured([one, other, fused]).latency_ms == pytest.approx(2.0)
    assert best_measured([one, other, executed(graph, {0: 1.5}, granularity=2)]).latency_ms == pytest.approx(1.5)


def test_an_execution_of_few_layers_counts_where_another_one_fuses_them() -> None:
    graph = with_nodes(chain("conv", "relu"))
    (conv, relu) = graph.layers
    only_conv = replace(graph, layers=(conv,), heads=())
    only_relu = replace(graph, layers=(replace(relu, index=0, feeds=conv.feeds),), heads=())
    apart = [executed(only_conv, {0: 1.0}), executed(only_relu, {0: 1.0})]
    fused = executed(graph, {0: 5.0}, granularity=2)
    assert best_measured([*apart, fused]).latency_ps <= best_measured(apart).latency_ps


def test_each_cause_has_its_part() -> None:
    graph = with_nodes(chain("conv", "relu", "pool"))
    converting = replace(graph, layers=tuple(as_conversion(it) if it.index == 1 else it for it in graph.layers))
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


def test_an_inserted_layer_belongs_to_the_layer_that_reads_it() -> None:
    graph = with_nodes(chain("conv", "relu", "pool"), without=[1])
    (first, second) = groups_of([executed(graph)]).groups
    assert (first.nodes, first.parts) == ((0,), ((0,),))
    assert (second.nodes, second.parts) == ((2,), ((1, 2),))


def test_conversions_belong_to_no_group() -> None:
    graph = with_nodes(chain("conv", "relu", "pool"))
    layers = [as_conversion(it) if it.index == 1 else it for it in graph.layers]
    found = groups_of([executed(replace(graph, layers=tuple(layers)))])
    assert [group.nodes for group in found.groups] == [(0,), (2,)]
    assert [group.parts for group in found.groups] == [((0,),), ((2,),)]


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
