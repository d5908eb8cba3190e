from dataclasses import replace

from hypothesis import given

from dlbricks_tui.analysis.groups import MeasuredExecution, fastest, groups_of, paid_ps
from tests.analysis.executions import as_conversion, executed, some_executions, with_nodes
from tests.bricks.graphs import chain


@given(some_executions())
def test_each_part_belongs_to_one_group_or_converts_a_layout(executions: list[MeasuredExecution]) -> None:
    found = groups_of(executions)
    for number, one in enumerate(executions):
        held = [part for group in found.groups for part in group.parts[number]]
        assert sorted([*held, *found.conversions[number]]) == list(range(len(one.parts)))


@given(some_executions())
def test_each_node_belongs_to_one_group(executions: list[MeasuredExecution]) -> None:
    nodes = [node for group in groups_of(executions).groups for node in group.nodes]
    assert len(nodes) == len(set(nodes))


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
    assert found.conversions == ((1,),)


def test_nodes_that_an_execution_has_optimised_away_take_no_time_in_it() -> None:
    written = with_nodes(chain("conv", "relu"))
    without = replace(written, layers=written.layers[:1], heads=())
    (_, relu) = groups_of([executed(written), executed(without)]).groups
    assert relu.parts == ((1,), ())
    assert paid_ps(executed(without), relu.parts[1]) == 0


@given(some_executions())
def test_the_winners_compute_each_node_once(executions: list[MeasuredExecution]) -> None:
    groups = groups_of(executions)
    nodes = [
        node for it in fastest(groups, [[part.paid_ps for part in it.parts] for it in executions]) for node in it.nodes
    ]
    assert len(nodes) == len(set(nodes))
