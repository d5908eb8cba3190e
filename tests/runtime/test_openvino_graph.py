"""The nodes of a network behind the nodes that OpenVINO executes, told by a runtime model made for the test."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from dlbricks_tui.runtime.inside.backend import RefusalError
from dlbricks_tui.runtime.inside.onnx_backend import Node
from dlbricks_tui.runtime.inside.openvino_backend import with_owners
from dlbricks_tui.runtime.inside.openvino_models import (
    CONVERSIONS,
    NO_NODE,
    Executed,
    executed_nodes,
    numbers_of,
    separated,
)
from dlbricks_tui.runtime.protocol import Said


def _op(name: str, kind: str, sources: Sequence[Any] = (), names: str = "") -> Any:
    """Return an executed node as OpenVINO's runtime model tells it."""
    facts = {"layerType": kind, "originalLayersNames": names, "primitiveType": "jit"}
    facts |= {"outputLayouts": "acdb", "outputPrecisions": "f32"}
    return SimpleNamespace(
        name=name,
        facts=facts,
        get_friendly_name=lambda: name,
        get_rt_info=lambda: {key: SimpleNamespace(astype=lambda _, text=text: text) for key, text in facts.items()},
        get_input_size=lambda: len(sources),
        input_value=lambda place: SimpleNamespace(get_node=lambda: sources[place]),
    )


def node(number: int, op: str, *reads: str, domain: str = "") -> Node:
    return Node(f"node{number}", op, domain, reads, (f"t{number}_0",), 0)


def executed(ops: Sequence[Any], nodes: list[Node]) -> list[Executed]:
    for order, op in enumerate(ops):
        op.facts["execOrder"] = str(order)
    # The order in which OpenVINO lists them is not that of execution.
    model = SimpleNamespace(get_ordered_ops=lambda: [*reversed(ops)])
    return executed_nodes(SimpleNamespace(get_runtime_model=lambda: model), nodes)


def test_nodes_that_openvino_names_no_more_belong_to_their_readers() -> None:
    """OpenVINO names a convolution that it has merged with a batch norm and a relu after these two only."""
    nodes = [
        node(1, "MaxPool", "data0"),
        node(2, "Conv", "t1_0", "w"),
        node(3, "BatchNormalization", "t2_0"),
        node(4, "Relu", "t3_0"),
    ]
    data = _op("data0", "Input")
    pool = _op("node1", "Pooling", [data], "node1")
    conv = _op("Multiply_12", "Convolution", [pool, _op("w", "Const")], "Multiply_12,node4")
    found = executed([data, pool, conv], nodes)
    assert [it.numbers for it in found] == [(1,), (2, 3, 4)]
    assert [it.reads for it in found] == [(None,), (0,)]


def test_executed_nodes_that_openvino_adds_belong_to_a_neighbour() -> None:
    """It computes a softmax of four axes as a softmax of two between two reshapes, and names one of them."""
    nodes = [node(1, "Relu", "data0"), node(2, "Softmax", "t1_0")]
    data = _op("data0", "Input")
    relu = _op("node1", "Eltwise", [data], "node1")
    reshape = _op("Reshape_7", "Reshape", [relu], "Reshape_7")
    softmax = _op("Softmax_8", "Softmax", [reshape], "Softmax_8")
    back = _op("t2_0", "Reshape", [softmax], "t2_0")
    out = _op("t2_0/sink_port_0", "Output", [back])
    found = executed([data, relu, reshape, softmax, back, out], nodes)
    assert [it.numbers for it in found] == [(1,), (2,), (2,), (2,)]
    assert [it.leaves for it in found] == [False, False, False, True]


def test_added_nodes_belong_to_a_neighbour_beyond_conversions() -> None:
    """It runs an LSTM of both directions as two nodes of names of its own, each between conversions of the layout."""
    nodes = [node(1, "Relu", "data0"), node(2, "LSTM", "t1_0"), node(3, "Transpose", "t2_0")]
    data = _op("data0", "Input")
    relu = _op("node1", "Eltwise", [data], "node1")
    first = _op("before", "Reorder", [relu])
    passes = [_op(f"LSTMSequence_{number}", "RNNSeq", [first], f"LSTMSequence_{number}") for number in (7, 8)]
    after = [_op(f"{it.name}_conversion", "Reorder", [it]) for it in passes]
    found = executed([data, relu, first, *passes, *after, _op("node3", "Transpose", after, "node3")], nodes)
    assert [it.numbers for it in found] == [(1,), (), (2, 3), (2, 3), (), (), (2, 3)]


def test_suffixes_of_names_count_but_names_of_others_do_not() -> None:
    nodes = [node(1, "Concat", "data0", "data0"), node(2, "Dropout", "t1_0")]
    data = _op("data0", "Input")
    concat = _op("node2_t2_0", "Concatenation", [data], "node2_t2_0,Multiply_1,not node1")
    (found,) = executed([data, concat], nodes)
    assert found.numbers == (1, 2)


def _with_conversion(*, leaves: bool = False) -> tuple[list[Node], list[Any]]:
    nodes = [node(1, "Conv", "data0"), node(2, "Reorder", "t1_0", domain=CONVERSIONS)]
    data = _op("data0", "Input")
    conv = _op("node1", "Convolution", [data], "node1")
    reorder = _op("node1_acdb_abcd_node3", "Reorder", [conv])
    if leaves:
        return nodes, [data, conv, reorder, _op("out", "Output", [reorder])]
    nodes.append(node(3, "Softmax", "t2_0"))
    return nodes, [data, conv, reorder, _op("node3", "Softmax", [reorder], "node3")]


def test_a_conversion_has_the_number_of_the_node_that_stands_for_it() -> None:
    nodes, ops = _with_conversion()
    kept, conversions = separated(nodes)
    assert [it.name for it in kept] == ["node1", "node3"]
    assert kept[1].inputs == ("t1_0",), "it reads what the conversion reads"
    assert numbers_of(executed(ops, kept), conversions, kept) == [1, 2, 3]


def test_a_conversion_that_the_network_does_not_name_belongs_to_its_reader() -> None:
    nodes, ops = _with_conversion()
    kept, _ = separated(nodes)
    assert numbers_of(executed(ops, kept), [], kept) == [1, 3, 3]


def test_conversions_where_a_part_of_a_model_begins_or_ends_belong_to_no_node() -> None:
    data = _op("data0", "Input")
    entering = _op("data0_abcd_acdb_node1", "Reorder", [data])
    conv = _op("node1", "Convolution", [entering], "node1")
    leaving = _op("node1_acdb_abcd_out", "Reorder", [conv])
    ops = [data, entering, conv, leaving, _op("out", "Output", [leaving])]
    assert numbers_of(executed(ops, [node(1, "Conv", "data0")]), [], []) == [NO_NODE, 1, NO_NODE]


# The nodes of OpenVINO behind lines of oneDNN, which do not name them.


def owners(kinds: str, ran: str) -> Sequence[int | None]:
    """Return the numbers of the nodes of each line; nodes of these kinds have the numbers 100, 101, ..."""
    lines = [Said(f"onednn_verbose,v1,17.5,primitive,exec,cpu,{it},jit:any,,,,x,0.1", None) for it in ran.split()]
    names = kinds.split()
    found = with_owners(lines, names, list(range(100, 100 + len(names))))
    assert [it.line for it in found] == [it.line for it in lines]
    return [it.node for it in found]


@pytest.mark.parametrize(
    ("kinds", "ran", "expected"),
    [
        # Lines belong to the nodes of their kind in order, also of several kinds that run the same primitive.
        (
            "Convolution Pooling Convolution Eltwise FullyConnected",
            "convolution pooling convolution inner_product",
            [100, 101, 102, 104],
        ),
        ("FullyConnected MatMul FullyConnected", "matmul matmul inner_product", [100, 101, 102]),
        # Some node runs without oneDNN: nobody knows which.
        ("Convolution Pooling Pooling", "convolution pooling", [100, None]),
        # A conversion is the node between the nodes of the lines around it, or inside of a node.
        (
            "Reorder Convolution Reorder Convolution Reorder",
            "reorder convolution reorder convolution reorder",
            [100, 101, 102, 103, 104],
        ),
        (
            "Reorder Convolution Reorder Convolution Reorder",
            "reorder convolution convolution reorder",
            [100, 101, 103, 104],
        ),
        ("Convolution Convolution", "convolution reorder convolution", [100, 101, 101]),
        ("Reorder Convolution", "reorder reorder convolution", [100, 101, 101]),
        # It fits nowhere.
        ("Convolution", "convolution reorder", [100, None]),
    ],
)
def test_lines_belong_to_nodes(kinds: str, ran: str, expected: list[int | None]) -> None:
    assert owners(kinds, ran) == expected


def test_other_lines_have_no_owner() -> None:
    said = Said("onednn_verbose,v1,info,oneDNN v3.10", None)
    assert with_owners([said], ["Pooling"], [100]) == (said,)
    assert with_owners([], ["Pooling"], [100]) == ()


def test_a_run_that_left_out_convolutions_is_refused() -> None:
    with pytest.raises(RefusalError, match="nothing about 1 convolutions"):
        owners("Convolution Convolution", "reorder convolution")
