"""The nodes of a network behind the nodes that OpenVINO executes, told by a runtime model made for the test."""

from collections.abc import Sequence
from dataclasses import dataclass, field

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


@dataclass
class _Fact:
    text: str

    def astype(self, _: type) -> str:
        return self.text


@dataclass
class _Op:
    """An executed node as OpenVINO's runtime model tells it."""

    name: str
    kind: str
    sources: "list[_Op]" = field(default_factory=list)
    names: str = ""
    order: int = 0

    def get_friendly_name(self) -> str:
        return self.name

    def get_rt_info(self) -> dict[str, _Fact]:
        facts = {"layerType": self.kind, "originalLayersNames": self.names, "execOrder": str(self.order)}
        facts |= {"primitiveType": "jit", "outputLayouts": "acdb", "outputPrecisions": "f32"}
        return {key: _Fact(text) for key, text in facts.items()}

    def get_input_size(self) -> int:
        return len(self.sources)

    def input_value(self, place: int) -> "_Value":
        return _Value(self.sources[place])


@dataclass
class _Value:
    node: _Op

    def get_node(self) -> _Op:
        return self.node


@dataclass
class _Compiled:
    ops: list[_Op]

    def get_runtime_model(self) -> "_Compiled":
        for order, op in enumerate(self.ops):
            op.order = order
        return self

    def get_ordered_ops(self) -> list[_Op]:
        # The order in which OpenVINO lists them is not that of execution.
        return [*reversed(self.ops)]


def node(number: int, op: str, *reads: str, domain: str = "") -> Node:
    return Node(f"node{number}", op, domain, reads, (f"t{number}_0",), 0)


def executed(ops: list[_Op], nodes: list[Node]) -> list[Executed]:
    return executed_nodes(_Compiled(ops), nodes)


def test_nodes_that_openvino_names_no_more_belong_to_their_readers() -> None:
    """OpenVINO names a convolution that it has merged with a batch norm and a relu after these two only."""
    nodes = [
        node(1, "MaxPool", "data0"),
        node(2, "Conv", "t1_0", "w"),
        node(3, "BatchNormalization", "t2_0"),
        node(4, "Relu", "t3_0"),
    ]
    data = _Op("data0", "Input")
    pool = _Op("node1", "Pooling", [data], "node1")
    conv = _Op("Multiply_12", "Convolution", [pool, _Op("w", "Const")], "Multiply_12,node4")
    found = executed([data, pool, conv], nodes)
    assert [it.numbers for it in found] == [(1,), (2, 3, 4)]
    assert [it.reads for it in found] == [(None,), (0,)]


def test_executed_nodes_that_openvino_adds_belong_to_a_neighbour() -> None:
    """It computes a softmax of four axes as a softmax of two between two reshapes, and names one of them."""
    nodes = [node(1, "Relu", "data0"), node(2, "Softmax", "t1_0")]
    data = _Op("data0", "Input")
    relu = _Op("node1", "Eltwise", [data], "node1")
    reshape = _Op("Reshape_7", "Reshape", [relu], "Reshape_7")
    softmax = _Op("Softmax_8", "Softmax", [reshape], "Softmax_8")
    back = _Op("t2_0", "Reshape", [softmax], "t2_0")
    out = _Op("t2_0/sink_port_0", "Output", [back])
    found = executed([data, relu, reshape, softmax, back, out], nodes)
    assert [it.numbers for it in found] == [(1,), (2,), (2,), (2,)]
    assert [it.leaves for it in found] == [False, False, False, True]


def test_added_nodes_belong_to_a_neighbour_beyond_conversions() -> None:
    """It runs an LSTM of both directions as two nodes of names of its own, each between conversions of the layout."""
    nodes = [node(1, "Relu", "data0"), node(2, "LSTM", "t1_0"), node(3, "Transpose", "t2_0")]
    data = _Op("data0", "Input")
    relu = _Op("node1", "Eltwise", [data], "node1")
    first = _Op("before", "Reorder", [relu])
    passes = [_Op(f"LSTMSequence_{number}", "RNNSeq", [first], f"LSTMSequence_{number}") for number in (7, 8)]
    after = [_Op(f"{it.name}_conversion", "Reorder", [it]) for it in passes]
    found = executed([data, relu, first, *passes, *after, _Op("node3", "Transpose", after, "node3")], nodes)
    assert [it.numbers for it in found] == [(1,), (), (2, 3), (2, 3), (), (), (2, 3)]


def test_suffixes_of_names_count_but_names_of_others_do_not() -> None:
    nodes = [node(1, "Concat", "data0", "data0"), node(2, "Dropout", "t1_0")]
    data = _Op("data0", "Input")
    concat = _Op("node2_t2_0", "Concatenation", [data], "node2_t2_0,Multiply_1,not node1")
    (found,) = executed([data, concat], nodes)
    assert found.numbers == (1, 2)


def _with_conversion(*, leaves: bool = False) -> tuple[list[Node], list[_Op]]:
    nodes = [node(1, "Conv", "data0"), node(2, "Reorder", "t1_0", domain=CONVERSIONS)]
    data = _Op("data0", "Input")
    conv = _Op("node1", "Convolution", [data], "node1")
    reorder = _Op("node1_acdb_abcd_node3", "Reorder", [conv])
    if leaves:
        return nodes, [data, conv, reorder, _Op("out", "Output", [reorder])]
    nodes.append(node(3, "Softmax", "t2_0"))
    return nodes, [data, conv, reorder, _Op("node3", "Softmax", [reorder], "node3")]


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
    data = _Op("data0", "Input")
    entering = _Op("data0_abcd_acdb_node1", "Reorder", [data])
    conv = _Op("node1", "Convolution", [entering], "node1")
    leaving = _Op("node1_acdb_abcd_out", "Reorder", [conv])
    ops = [data, entering, conv, leaving, _Op("out", "Output", [leaving])]
    assert numbers_of(executed(ops, [node(1, "Conv", "data0")]), [], []) == [NO_NODE, 1, NO_NODE]


# The nodes of OpenVINO behind lines of oneDNN, which do not name them.


def owners(kinds: str, ran: str) -> Sequence[int | None]:
    """Return the numbers of the nodes of each line; nodes of these kinds have the numbers 100, 101, ..."""
    lines = [Said(f"onednn_verbose,v1,17.5,primitive,exec,cpu,{it},jit:any,,,,x,0.1", None) for it in ran.split()]
    names = kinds.split()
    found = with_owners(lines, names, list(range(100, 100 + len(names))))
    assert [it.line for it in found] == [it.line for it in lines]
    return [it.node for it in found]


def test_lines_belong_to_the_nodes_of_their_kind_in_order() -> None:
    kinds = "Convolution Pooling Convolution Eltwise FullyConnected"
    assert owners(kinds, "convolution pooling convolution inner_product") == [100, 101, 102, 104]


def test_kinds_that_run_the_same_primitive_are_counted_together() -> None:
    assert owners("FullyConnected MatMul FullyConnected", "matmul matmul inner_product") == [100, 101, 102]


def test_nodes_that_run_without_onednn_leave_the_lines_of_their_kind_without_an_owner() -> None:
    assert owners("Convolution Pooling Pooling", "convolution pooling") == [100, None]


def test_a_conversion_is_the_node_between_the_nodes_of_the_lines_around_it() -> None:
    kinds = "Reorder Convolution Reorder Convolution Reorder"
    assert owners(kinds, "reorder convolution reorder convolution reorder") == [100, 101, 102, 103, 104]
    assert owners(kinds, "reorder convolution convolution reorder") == [100, 101, 103, 104]


def test_a_conversion_inside_of_a_node_belongs_to_it() -> None:
    assert owners("Convolution Convolution", "convolution reorder convolution") == [100, 101, 101]
    assert owners("Reorder Convolution", "reorder reorder convolution") == [100, 101, 101]


def test_a_conversion_that_fits_nowhere_and_other_lines_have_no_owner() -> None:
    assert owners("Convolution", "convolution reorder") == [100, None]
    said = Said("onednn_verbose,v1,info,oneDNN v3.10", None)
    assert with_owners([said], ["Pooling"], [100]) == (said,)
    assert with_owners([], ["Pooling"], [100]) == ()


def test_a_run_that_left_out_convolutions_is_refused() -> None:
    with pytest.raises(RefusalError, match="nothing about 1 convolutions"):
        owners("Convolution Convolution", "reorder convolution")
