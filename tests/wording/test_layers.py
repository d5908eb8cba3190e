from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlbricks_tui.analysis.bounds import best_measured, times_of_groups
from dlbricks_tui.analysis.groups import MeasuredExecution
from dlbricks_tui.wording.layers import common_beginning, layer_lines, named_layers, usual_beginning
from tests.analysis.executions import executed, some_executions, with_nodes
from tests.bricks.graphs import chain

GRAPH = with_nodes(chain("conv", "relu", "pool"))


def test_each_group_of_layers_has_a_row_with_its_end_in_few_columns() -> None:
    named = [replace(it, name=f"a_network_with_a_long_name_stage{it.index}") for it in GRAPH.layers]
    graph = replace(GRAPH, layers=tuple(named))
    one, other = executed(graph, {0: 4.0, 1: 1.0, 2: 1.0}), executed(graph, {0: 2.0, 1: 1.5, 2: 1.5}, threads=2)
    titles, *rows = layer_lines(tuple(times_of_groups(best_measured([one, other]))), 100)
    assert titles.split("  ")[0] == "LAYERS of a_network_with_a_long_name_..., in ms"
    assert [row.split() for row in rows] == [
        ["stage0", "4.000", "2.000", "mxnet", "written", "on", "2"],
        ["stage1", "1.000", "1.000", "mxnet", "written", "on", "1"],
        ["stage2", "1.000", "1.000", "mxnet", "written", "on", "1"],
    ]


def test_of_a_long_name_the_end_is_shown() -> None:
    assert named_layers(["stage1/block2/convolution", "other"], 16) == "...2/convolution"
    assert named_layers(["one", "two", "three"], 15) == "one and 2 more"


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["net_conv0", "net_conv1"], "net_"),
        (["/a/b/c", "/a/bc"], "/a/"),
        (["net_conv0"], ""),
        (["conv", "relu"], ""),
        ([], ""),
    ],
)
def test_the_words_that_all_names_begin_with_are_said_once(names: list[str], expected: str) -> None:
    assert common_beginning(names) == expected


def test_a_few_odd_names_do_not_count_for_the_usual_beginning() -> None:
    names = [f"net_conv{number}" for number in range(18)]
    assert usual_beginning(["data as acdb", *names, "output"]) == "net_"
    assert usual_beginning(["data as acdb", *names[:4]]) == ""
    assert usual_beginning(names[:1]) == usual_beginning([]) == ""


@given(some_executions(), st.integers(60, 120))
def test_rows_keep_to_the_width(executions: list[MeasuredExecution], width: int) -> None:
    lines = layer_lines(tuple(times_of_groups(best_measured(executions))), width)
    fastest = max(len(line.partition("mxnet")[2]) for line in lines)
    assert max(map(len, lines)) <= max(width, 50 + fastest)
