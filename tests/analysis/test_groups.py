from dataclasses import replace

from dlbricks_tui.analysis.bounds import fastest
from dlbricks_tui.analysis.groups import groups_of, paid_ps
from dlbricks_tui.models.graph import TensorType
from tests.analysis.executions import as_conversion, executed, in_file, renamed, with_nodes
from tests.bricks.graphs import DATA, Spec, after, built, chain


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


def test_nodes_that_an_execution_has_optimised_away_take_no_time_in_it() -> None:
    written = with_nodes(chain("conv", "relu"))
    without = replace(written, layers=written.layers[:1], heads=())
    (_, relu) = groups_of([executed(written), executed(without)]).groups
    assert relu.parts == ((1,), ())
    assert paid_ps(executed(without), relu.parts[1]) == 0


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
