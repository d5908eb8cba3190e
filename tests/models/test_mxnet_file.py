import json
import tracemalloc
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from dlbricks_tui.models.errors import ModelError, UnreadableModelError
from dlbricks_tui.models.graph import (
    UNKNOWN_TYPE,
    Feed,
    GraphInput,
    LayerGraph,
    Level,
    Origin,
    Shape,
    TensorType,
    Wire,
)
from dlbricks_tui.models.kinds import Kind
from dlbricks_tui.models.mxnet.layer_graph import InferredFile, build_graph, variable_roles
from dlbricks_tui.models.mxnet.symbol_file import DEEPEST_NESTING, NodeOutput, SymbolFile, parse_symbol
from tests.models.symbols import Node, content, document, node, small_network, variable
from tests.models.table_framework import TableFramework


def parsed(nodes: list[Node], *heads: int | tuple[int, int], version: int | None = 10901) -> SymbolFile:
    return parse_symbol(content(nodes, *heads, version=version), "net")


def refusal(data: bytes | str) -> str:
    with pytest.raises(UnreadableModelError) as caught:
        parse_symbol(data, "net")
    message = str(caught.value)
    assert "\n" not in message
    assert len(message) < 400
    return message


# The vintages.


@pytest.mark.parametrize(
    ("raw", "attributes"),
    [
        *(({key: {"axis": "1"}}, {"axis": "1"}) for key in ("param", "attr", "attrs")),
        (
            {"param": {"a": "1"}, "attr": {"__layer__": "x", "b": "2"}},
            {"a": "1", "__layer__": "x", "b": "2"},
        ),
        ({"attrs": {"nsize": 5, "alpha": 1e-4, "flag": True}}, {"nsize": "5", "alpha": "0.0001", "flag": "True"}),
    ],
)
def test_parameters_stand_as_text_or_numbers_under_the_keys_of_any_version(raw: Node, attributes: Node) -> None:
    made = {"op": "LRN", "name": "n", "inputs": [[0, 0]], **raw}
    assert parsed([variable("data"), made]).nodes[1].attributes == attributes


def test_annotations_for_training_are_not_parameters() -> None:
    noted = {"lr_mult": "2", "weight_lr_mult": "2", "ctx_group": "gpu", "__wd_mult__": "0"}
    raw = {"op": "Convolution", "name": "c", "attr": {"kernel": "(3,3)", **noted}, "inputs": [[0, 0]]}
    assert parsed([variable("data"), raw]).nodes[1].params == {"kernel": "(3,3)"}


def test_nodes_need_neither_attributes_nor_inputs_nor_names() -> None:
    file = parse_symbol('{"nodes": [{"op": "null"}, {"op": "_zeros"}], "heads": [[1, 0], [0, 0]]}', "net")
    assert [(it.op, it.name, it.attributes, it.inputs) for it in file.nodes] == [
        ("null", "", {}, ()),
        ("_zeros", "", {}, ()),
    ]


def test_a_batch_norm_without_its_states_gets_them() -> None:
    nodes = [variable("data"), variable("bn_gamma"), variable("bn_beta"), node("BatchNorm", "bn", 0, 1, 2)]
    file = parsed([*nodes, node("relu", "r", 3)], version=None)
    assert [it.name for it in file.nodes] == [
        "data",
        "bn_gamma",
        "bn_beta",
        "bn_moving_mean",
        "bn_moving_var",
        "bn",
        "r",
    ]
    assert file.nodes[5].inputs == tuple(NodeOutput(number, 0) for number in range(5))
    assert file.nodes[6].inputs == (NodeOutput(5, 0),)
    assert file.heads == (NodeOutput(6, 0),)


@pytest.mark.parametrize(
    ("version", "attributes"), [(None, {}), (904, {}), (905, {"axis": "-1"}), (10901, {"axis": "-1"})]
)
def test_an_old_file_means_all_axes_by_the_last_one(version: int | None, attributes: dict[str, str]) -> None:
    file = parsed([variable("data"), node("argmax", "a", 0, axis="-1")], version=version)
    assert file.nodes[1].attributes == attributes


# The order.


def test_nodes_are_ordered_after_their_inputs() -> None:
    nodes = [node("add", "last", 2, 1), node("relu", "second", 3), node("relu", "third", 1), variable("data")]
    file = parsed(nodes, 0)
    assert [it.name for it in file.nodes] == ["data", "second", "third", "last"]
    assert [it.inputs for it in file.nodes] == [
        (),
        (NodeOutput(0, 0),),
        (NodeOutput(1, 0),),
        (NodeOutput(2, 0), NodeOutput(1, 0)),
    ]
    assert file.heads == (NodeOutput(3, 0),)


def test_nodes_without_a_path_to_a_head_are_dropped() -> None:
    nodes = [variable("unread"), variable("data"), node("relu", "r", 1), node("relu", "dead", 0)]
    assert [it.name for it in parsed(nodes, 2).nodes] == ["data", "r"]


def test_a_rendered_file_equals_the_original_except_for_names() -> None:
    file = parsed(small_network())
    again = parse_symbol(file.render(), "net")
    assert [it._replace(name="") for it in again.nodes] == [it._replace(name="") for it in file.nodes]
    assert again.heads == file.heads


def test_a_long_chain_meets_no_recursion_limit() -> None:
    nodes = [variable("data"), *(node("relu", f"r{number}", number) for number in range(3_000))]
    backwards = [it | {"inputs": [[3_000 - entry[0], 0, 0] for entry in it["inputs"]]} for it in reversed(nodes)]
    assert len(parsed(nodes).nodes) == len(parsed(backwards, 0).nodes) == 3_001


# Graphs inside operators.


def loop(body: dict[str, Any]) -> list[Node]:
    return [variable("data"), node("_foreach", "loop", 0) | {"subgraphs": [body]}]


def test_a_subgraph_is_read_and_kept_unchanged() -> None:
    body = document([variable("x"), node("relu", "r", 0)])
    subgraph = parsed(loop(body)).nodes[1].subgraphs[0]
    assert json.loads(subgraph.text) == body
    assert [it.op for it in subgraph.file.nodes] == ["null", "relu"]
    assert json.loads(parsed(loop(body)).render())["nodes"][1]["subgraphs"] == [body]


def test_a_flaw_in_a_subgraph_is_reported_for_the_file() -> None:
    message = refusal(content(loop(document([variable("x"), node("relu", "r", 5)]))))
    assert message == "net: node 1 ('loop') carries a broken graph: node 1 ('r') reads node 5, but there are 2 nodes"


def test_too_deeply_nested_subgraphs_are_refused() -> None:
    body = document([variable("x"), node("relu", "r", 0)])
    for _ in range(DEEPEST_NESTING - 1):
        body = document(loop(body))
    assert len(parsed(loop(body)).nodes) == 2
    assert f"has graphs nested more than {DEEPEST_NESTING} deep" in refusal(content(loop(document(loop(body)))))


# What is refused.


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", "net: the file is empty"),
        (b" \n\t", "net: the file is empty"),
        (b"milk, bread\nand butter", "net: it is text, not a model: it begins with 'milk, bread and butter'"),
        (b"version https://git-lfs.github.com/spec/v1\noid", "net: the file is a pointer of Git LFS, not the model"),
        (b'{"nodes": [', "net is not JSON: "),
        (b"\xff\xfe\x00", "net is no symbol file, which is JSON; ONNX files end in .onnx"),
        (b"\x00" * 10, "net is no symbol file, which is JSON"),
        (b'{"nodes": "\x00"}', "net is not JSON: Invalid control character"),
        (b"[" + b"9" * 5_000 + b"]", "net holds a number of thousands of digits: not a symbol file"),
        (b"[" * 100_000, "net nests too deep: not a symbol file"),
        (b'{"nodes": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", "net nests too deep: not a symbol file"),
        (b"null", "net: it is text, not a model: it begins with 'null'"),
        (b"[1, 2]", "net: there is no list of nodes: not an MXNet symbol file"),
        (b'{"layers": []}', "net: there is no list of nodes: not an MXNet symbol file"),
        (b'{"nodes": {}}', "net: there is no list of nodes: not an MXNet symbol file"),
        (b'{"nodes": []}', "net: there is no list of nodes: not an MXNet symbol file"),
        (b'{"nodes": [7], "heads": [[0, 0]]}', "net: node 0 is not an object with an 'op'"),
        (b'{"nodes": [{"name": "a"}]}', "net: node 0 ('a') is not an object with an 'op'"),
        (b'{"nodes": [{"op": "null"}]}', "net: there is no list of heads"),
        (b'{"nodes": [{"op": "null"}], "heads": {}}', "net: there is no list of heads"),
        (b'{"nodes": [{"op": "null"}], "heads": []}', "net: there is no list of heads"),
        (
            b'{"nodes": [{"op": "null"}], "heads": [[1, 0]]}',
            "net: the list of heads reads node 1, but there are 1 nodes",
        ),
    ],
)
def test_an_invalid_symbol_file_is_refused_in_one_line(data: bytes, expected: str) -> None:
    assert refusal(data).startswith(expected)


@pytest.mark.parametrize(
    ("key", "values"),
    [
        ("op", [None, True, 7, 1.5, [], {}]),
        ("name", [None, True, 7, 1.5, [], {}]),
        ("inputs", [None, True, 7, "text", {}, [[]], [7]]),
        ("attrs", [True, 7, "text", ["a"], {"a": {}}]),
        ("subgraphs", [None, True, 7, "text", {}, [[]], [7], [{}]]),
    ],
)
def test_a_part_of_a_wrong_type_is_refused_with_its_node(key: str, values: list[Any]) -> None:
    for value in values:
        raw = node("relu", "r", 0) | {key: value}
        assert refusal(content([variable("data"), raw])).startswith("net: node 1 "), value


def test_a_lone_surrogate_is_a_valid_name() -> None:
    nodes = [variable("\ud800"), node("\ud800", "\udfff", 0, __layer__="\ud800")]
    assert parse_symbol(parsed(nodes).render(), "net").nodes[1].op == "\ud800"


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        (7, "has an entry that is not [node, output]"),
        ([], "has an entry that is not [node, output]"),
        ([0], "has an entry that is not [node, output]"),
        ([0, 0, 0, 0], "has an entry that is not [node, output]"),
        (["0", 0], "has an entry that is not [node, output]"),
        ([0, 0.0], "has an entry that is not [node, output]"),
        ([True, 0], "has an entry that is not [node, output]"),
        ([9, 0], "reads node 9, but there are 2 nodes"),
        ([-1, 0], "reads node -1, but there are 2 nodes"),
        ([10**400, 0], "reads node 1000000"),
        ([0, -1], "reads output -1 of node 0, which is no output number"),
        ([0, 10**12], "reads output 1000000000000 of node 0, which is no output number"),
        ([0, 1], "reads output 1 of a variable, which has but one"),
        ([1, 0], "is part of a cycle, or depends on one"),
    ],
)
def test_an_edge_to_a_missing_node_is_refused_with_its_node(entry: Any, expected: str) -> None:
    nodes = [variable("data"), {"op": "relu", "name": "r", "inputs": [entry]}]
    assert refusal(content(nodes)).startswith(f"net: node 1 ('r') {expected}")


def test_a_node_that_makes_no_sense_is_refused() -> None:
    told = {"is a variable, yet it has inputs": [node("null", "r", 0)]}
    odd = [node("relu", "r", 0) | {"attrs": {"axis": value}} for value in (None, [], {"a": 1}, ["1"])]
    told["has a parameter 'axis' that is neither text nor a number"] = odd
    for said, nodes in told.items():
        for raw in nodes:
            assert refusal(content([variable("data"), raw])) == f"net: node 1 ('r') {said}"


def test_a_file_of_too_many_small_values_is_refused_before_it_fills_the_memory() -> None:
    data = b"[" + b"[]," * 2_500_000 + b"[]]"
    tracemalloc.start()
    try:
        assert refusal(data) == "net holds more than 2,000,000 values: not a symbol file"
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 2**24


def test_a_file_of_more_nodes_than_any_network_has_is_refused() -> None:
    nodes = b",".join([b'{"op":"null"}'] * 200_001)
    refused = refusal(b'{"nodes": [' + nodes + b'], "heads": [[0, 0]]}')
    assert refused == "net: it has 200,001 nodes: at most 200,000 are read"


def test_long_names_are_shortened_in_messages() -> None:
    assert "a" * 81 not in refusal(content([variable("data"), node("relu", "a" * 10_000, 7)]))


@pytest.mark.parametrize(
    "attributes", [None, [], 7, "text", {"mxnet_version": {}}, {"mxnet_version": []}, {"mxnet_version": ["int", "new"]}]
)
def test_a_file_without_a_valid_version_counts_as_old(attributes: Any) -> None:
    raw = document([variable("data"), node("argmax", "a", 0, axis="-1")]) | {"attrs": attributes}
    assert parse_symbol(json.dumps(raw), "net").nodes[1].attributes == {}


IMAGE = (1, 3, 32, 32)


def graph_of(
    nodes: Sequence[Node], *heads: int | tuple[int, int], shapes: Mapping[str, Shape] | None = None
) -> LayerGraph:
    """Return the graph with the types that the table infers; `shapes` are by node name, `data` defaults to an image."""
    file = parse_symbol(content(nodes, *heads), "net")
    given = {"data": IMAGE} if shapes is None else shapes
    by_number = {f"n{number}": given[it.name] for number, it in enumerate(file.nodes) if it.name in given}
    answer = TableFramework().infer(file.render(), by_number)
    return build_graph(InferredFile(file, variable_roles(file, given), answer.types, answer.unknown), "net")


def test_every_operator_is_a_layer_with_its_shapes() -> None:
    graph = graph_of(small_network())
    assert (graph.name, graph.level) == ("net", Level.WRITTEN)
    assert [(it.index, it.name, it.op, it.kind) for it in graph.layers] == [
        (0, "conv0", "conv", Kind.CONVOLUTION),
        (1, "bn0", "batch_norm", Kind.BATCHNORM),
        (2, "relu0", "relu", Kind.ELEMENTWISE),
        (3, "sum0", "add", Kind.COMBINE),
        (4, "pool0", "max_pool", Kind.POOLING),
        (5, "flat0", "flatten", Kind.FLATTEN),
        (6, "fc0", "linear", Kind.LINEAR),
        (7, "softmax", "mxnet.SoftmaxOutput", Kind.LOSS),
    ]
    conv = graph.layers[0]
    assert conv.data == (TensorType(IMAGE),)
    assert conv.weights == (TensorType((8, 3, 3, 3)), TensorType((8,)))
    assert conv.outputs == (TensorType((1, 8, 32, 32)),)
    assert conv.operators[0].inputs == (Wire(Origin.DATA, 0), Wire(Origin.WEIGHT, 0), Wire(Origin.WEIGHT, 1))
    assert graph.inputs == (GraphInput("data", TensorType(IMAGE)),)
    assert graph.heads == (Feed(7, 0),)
    assert graph.edges == ((0, 1), (1, 2), (2, 3), (0, 3), (3, 4), (4, 5), (5, 6), (6, 7))


def test_edges_carry_any_output_of_a_layer() -> None:
    nodes = [
        variable("data"),
        node("SliceChannel", "parts", 0, num_outputs="2"),
        node("relu", "second", (1, 1)),
        node("elemwise_add", "sum", (1, 1), 2),
    ]
    graph = graph_of(nodes, 3, (1, 0), shapes={"data": (1, 4, 5)})
    # Unread outputs stay in the layer. The others are numbered among themselves.
    assert graph.layers[0].results == (Wire(Origin.OPERATOR, 0, 0), Wire(Origin.OPERATOR, 0, 1))
    assert graph.layers[0].outputs == (TensorType((1, 2, 5)),) * 2
    assert graph.layers[1].feeds == (Feed(0, 1),)
    assert graph.heads == (Feed(2, 0), Feed(0, 0))
    assert graph_of(nodes, shapes={"data": (1, 4, 5)}).layers[1].feeds == (Feed(0, 0),)


def test_a_head_that_is_an_input_is_kept_and_one_that_is_a_weight_is_not_computed() -> None:
    nodes = [variable("data"), variable("w_weight"), node("relu", "r", 0)]
    assert graph_of(nodes, 2, 0, 1).heads == (Feed(0, 0), Feed(None, 0))


@pytest.mark.parametrize("name", ["data", "w_weight"])
def test_a_file_without_operators_is_refused(name: str) -> None:
    with pytest.raises(UnreadableModelError, match="net has no operators: there is nothing to run"):
        graph_of([variable(name)])


def test_an_unknown_operator_is_named_and_only_what_depends_on_its_shape_is_unmeasurable() -> None:
    nodes = [
        variable("data"),
        node("relu", "before", 0),
        node("NobodyHasThis", "unknown", 1, strength="7"),
        node("relu", "behind", 2),
        node("relu", "beside", 1),
    ]
    graph = graph_of(nodes, 3, 4)
    assert [(it.name, it.unmeasurable) for it in graph.layers] == [
        ("before", None),
        ("unknown", "operator NobodyHasThis is not known to the installed MXNet"),
        ("behind", "its shape depends on an operator that the installed MXNet does not know"),
        ("beside", None),
    ]
    assert graph.layers[1].op == "mxnet.NobodyHasThis"
    assert graph.layers[2].data == (UNKNOWN_TYPE,)
    assert graph.edges == ((0, 1), (1, 2), (0, 3))


def test_layers_of_unknown_types_are_unmeasurable() -> None:
    file = parse_symbol(content([variable("data"), node("relu", "r", 0)]), "net")
    for known in (TensorType((1, 8), "unknown"), TensorType(None)):
        graph = build_graph(InferredFile(file, variable_roles(file), [[TensorType((1, 8))], [known]]), "net")
        assert graph.layers[0].unmeasurable == "MXNet does not find out its shape"


@pytest.mark.parametrize("shape", [(10**12,), (2**16, 2**16), (1,) * 40 + (2**31,)])
def test_a_shape_that_mxnet_cannot_hold_is_refused_with_its_node(shape: Shape) -> None:
    file = parse_symbol(content([variable("data"), node("relu", "r", 0)]), "net")
    with pytest.raises(ModelError) as caught:
        build_graph(InferredFile(file, variable_roles(file), [[TensorType((1, 8))], [TensorType(shape)]]), "net")
    shown = "x".join(map(str, shape))[:80]
    assert str(caught.value) == f"net: 'r' has a shape of {shown}: more than MXNet can hold"


def test_a_loop_is_one_layer_with_its_body_inside() -> None:
    body = document([variable("x"), node("relu", "r", 0), node("exp", "e", 1)])
    nodes = [variable("data"), node("_foreach", "loop", 0) | {"subgraphs": [body]}]
    loop = graph_of(nodes).layers[0]
    assert (loop.op, loop.kind) == ("mxnet._foreach", Kind.RECURRENT)
    assert len(loop.operators[0].inner) == 1
    assert "mxnet.relu" in loop.operators[0].inner[0]


def test_a_loop_body_is_identified_by_operators_and_not_by_names() -> None:
    def inner(*names: str, op: str = "relu") -> tuple[str, ...]:
        body = document([variable(names[0]), node(op, names[1], 0)])
        nodes = [variable("data"), node("_foreach", "loop", 0) | {"subgraphs": [body]}]
        return graph_of(nodes).layers[0].operators[0].inner

    assert inner("x", "y") == inner("a", "b")
    assert inner("x", "y") != inner("x", "y", op="exp")
