"""Symbol files of MXNet: parsed, refused, and made into layers."""

import json
import tracemalloc
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import pytest

from dlbricks_tui.models.cache import GraphAnswer
from dlbricks_tui.models.graph import UNKNOWN_TYPE, Feed, GraphInput, LayerGraph, Level, Origin, Shape, TensorType, Wire
from dlbricks_tui.models.kinds import Kind
from dlbricks_tui.models.mxnet_file import DEEPEST_NESTING, NodeOutput, SymbolFile, parse_symbol
from dlbricks_tui.models.mxnet_layers import build_graph, variable_roles
from tests.models.symbols import Node, content, document, node, refusal, small_network, variable
from tests.models.table_framework import TableFramework


def parsed(nodes: list[Node], *heads: int | tuple[int, int], version: int | None = 10901) -> SymbolFile:
    return parse_symbol(content(nodes, *heads, version=version), "net")


def refused(data: bytes | Sequence[Node]) -> str:
    return refusal(lambda: parse_symbol(data if isinstance(data, bytes) else content(data), "net"))


# The vintages.


@pytest.mark.parametrize(
    ("raw", "attributes"),
    [
        *(({key: {"axis": "1"}}, {"axis": "1"}) for key in ("param", "attr", "attrs")),
        ({"param": {"a": "1"}, "attr": {"__layer__": "x", "b": "2"}}, {"a": "1", "__layer__": "x", "b": "2"}),
        ({"attrs": {"nsize": 5, "alpha": 1e-4, "flag": True}}, {"nsize": "5", "alpha": "0.0001", "flag": "True"}),
        # Annotations for training are left out.
        ({"attr": {"kernel": "3", "lr_mult": "2", "weight_lr_mult": "2", "ctx_group": "gpu"}}, {"kernel": "3"}),
        ({}, {}),
    ],
)
def test_parameters_stand_as_text_or_numbers_under_the_keys_of_any_version(raw: Node, attributes: Node) -> None:
    (_, made) = parsed([variable("data"), {"op": "LRN", "inputs": [[0, 0]], **raw}]).nodes
    assert (made.name, made.attributes) == ("", attributes)
    assert made.params == {key: text for key, text in attributes.items() if key != "__layer__"}


def test_a_batch_norm_without_its_states_gets_them() -> None:
    nodes = [variable("data"), variable("bn_gamma"), variable("bn_beta"), node("BatchNorm", "bn", 0, 1, 2)]
    file = parsed([*nodes, node("relu", "r", 3)], version=None)
    assert " ".join(it.name for it in file.nodes) == "data bn_gamma bn_beta bn_moving_mean bn_moving_var bn r"
    assert file.nodes[5].inputs == tuple(NodeOutput(number, 0) for number in range(5))
    assert (file.nodes[6].inputs, file.heads) == ((NodeOutput(5, 0),), (NodeOutput(6, 0),))


@pytest.mark.parametrize(
    ("version", "is_old"),
    [
        *((None, True), (904, True), (905, False), (10901, False)),
        # Without a valid version it counts as old.
        *(([], True), ("text", True), ({"mxnet_version": {}}, True), ({"mxnet_version": ["int", "new"]}, True)),
    ],
)
def test_an_old_file_means_all_axes_by_the_last_one(version: object, is_old: bool) -> None:
    raw = document([variable("data"), node("argmax", "a", 0, axis="-1")], version=None)
    if version is not None:
        raw["attrs"] = {"mxnet_version": ["int", version]} if isinstance(version, int) else version
    assert parse_symbol(json.dumps(raw), "net").nodes[1].attributes == ({} if is_old else {"axis": "-1"})


# The order.


def test_nodes_are_ordered_after_their_inputs_and_those_without_a_path_to_a_head_are_dropped() -> None:
    nodes = [node("add", "last", 2, 1), node("relu", "second", 3), node("relu", "third", 1), variable("data")]
    file = parsed([*nodes, node("relu", "dead", 3)], 0)
    assert [(it.name, [entry.node for entry in it.inputs]) for it in file.nodes] == [
        *(("data", []), ("second", [0]), ("third", [1]), ("last", [2, 1])),
    ]
    assert file.heads == (NodeOutput(3, 0),)


def test_a_rendered_file_equals_the_original_except_for_names() -> None:
    file = parsed([*small_network(), node("\ud800", "\udfff", 17, __layer__="\ud800")])
    again = parse_symbol(file.render(), "net")
    assert [it._replace(name="") for it in again.nodes] == [it._replace(name="") for it in file.nodes]
    assert again.heads == file.heads


def test_a_long_chain_meets_no_recursion_limit() -> None:
    nodes = [variable("data"), *(node("relu", f"r{number}", number) for number in range(3_000))]
    backwards = [it | {"inputs": [[3_000 - entry[0], 0, 0] for entry in it["inputs"]]} for it in reversed(nodes)]
    assert len(parsed(nodes).nodes) == len(parsed(backwards, 0).nodes) == 3_001


# Graphs inside operators.

BODY = document([variable("x"), node("relu", "r", 0)])


def loop(body: dict[str, Any]) -> list[Node]:
    return [variable("data"), node("_foreach", "loop", 0) | {"subgraphs": [body]}]


def test_a_subgraph_is_read_and_kept_unchanged() -> None:
    subgraph = parsed(loop(BODY)).nodes[1].subgraphs[0]
    assert json.loads(subgraph.text) == BODY
    assert [it.op for it in subgraph.file.nodes] == ["null", "relu"]
    assert json.loads(parsed(loop(BODY)).render())["nodes"][1]["subgraphs"] == [BODY]


def test_too_deeply_nested_and_broken_subgraphs_are_refused() -> None:
    body = BODY
    for _ in range(DEEPEST_NESTING - 1):
        body = document(loop(body))
    assert len(parsed(loop(body)).nodes) == 2
    assert f"has graphs nested more than {DEEPEST_NESTING} deep" in refused(loop(document(loop(body))))
    message = refused(loop(document([variable("x"), node("relu", "r", 5)])))
    assert message == "net: node 1 ('loop') carries a broken graph: node 1 ('r') reads node 5, but there are 2 nodes"


# What is refused.

NO_LIST = "net: there is no list of nodes: not an MXNet symbol file"
NO_JSON = "net is no symbol file, which is JSON; ONNX files end in .onnx"


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        *((empty, "net: the file is empty") for empty in (b"", b" \n\t")),
        (b"milk, bread\nand butter", "net: it is text, not a model: it begins with 'milk, bread and butter'"),
        (b"null", "net: it is text, not a model: it begins with 'null'"),
        (b"version https://git-lfs.github.com/spec/v1\noid", "net: the file is a pointer of Git LFS, not the model"),
        *((data, "net is not JSON: ") for data in (b'{"nodes": [', b'{"nodes": "\x00"}')),
        *((data, NO_JSON) for data in (b"\xff\xfe\x00", b"\x00" * 10)),
        (b"[" + b"9" * 5_000 + b"]", "net holds a number of thousands of digits: not a symbol file"),
        (b'{"nodes": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", "net nests too deep: not a symbol file"),
        *((data, NO_LIST) for data in (b"[1, 2]", b'{"layers": []}', b'{"nodes": {}}', b'{"nodes": []}')),
        (b'{"nodes": [7], "heads": [[0, 0]]}', "net: node 0 is not an object with an 'op'"),
        (b'{"nodes": [{"name": "a"}]}', "net: node 0 ('a') is not an object with an 'op'"),
        *(
            (b'{"nodes": [{"op": "null"}]%s}' % heads, "net: there is no list of heads")
            for heads in (b"", b', "heads": {}', b', "heads": []')
        ),
        (b'{"nodes": [{"op": "null"}], "heads": [[1, 0]]}', "net: the list of heads reads node 1, but there are 1 nod"),
        (b'{"nodes": [' + b'{"op":"null"},' * 200_001 + b"0]}", "net: it has 200,002 nodes: at most 200,000 are read"),
    ],
    ids=range(22),
)
def test_an_invalid_symbol_file_is_refused_in_one_line(data: bytes, expected: str) -> None:
    assert refused(data).startswith(expected)


@pytest.mark.parametrize(
    ("changed", "values", "expected"),
    [
        ("op", [None, True, 7, [], {}], ""),
        ("name", [None, True, 7, [], {}], ""),
        ("inputs", [None, True, 7, "text", {}], "has inputs that are not a list"),
        ("attrs", [True, 7, "text", ["a"]], "has 'attrs' that is not an object"),
        (
            "attrs",
            [{"axis": it} for it in (None, ["a"], {"a": 1})],
            "has a parameter 'axis' that is neither text nor a n",
        ),
        ("subgraphs", [None, True, 7, "text", {}], "has subgraphs that are not a list"),
        ("subgraphs", [[[]], [7], [{}]], "carries a broken graph: "),
        ("op", ["null"], "is a variable, yet it has inputs"),
        ("inputs", [[it] for it in (7, [7], [0], [0] * 4, ["0", 0], [0, 0.0], [True, 0])], "has an entry that is not "),
        ("inputs", [[[9, 0]]], "reads node 9, but there are 2 nodes"),
        ("inputs", [[[-1, 0]]], "reads node -1, but there are 2 nodes"),
        ("inputs", [[[10**400, 0]]], "reads node 1000000"),
        ("inputs", [[[0, -1]]], "reads output -1 of node 0, which is no output number"),
        ("inputs", [[[0, 10**12]]], "reads output 1000000000000 of node 0, which is no output number"),
        ("inputs", [[[0, 1]]], "reads output 1 of a variable, which has but one"),
        ("inputs", [[[1, 0]]], "is part of a cycle, or depends on one"),
    ],
)
def test_a_faulty_part_is_refused_with_its_node(changed: str, values: list[Any], expected: str) -> None:
    for value in values:
        message = refused([variable("data"), node("relu", "r", 0) | {changed: value}])
        assert message.startswith("net: node 1 "), value
        assert expected in message, value


def test_a_file_of_too_many_small_values_is_refused_before_it_fills_the_memory() -> None:
    data = b"[" + b"[]," * 2_500_000 + b"[]]"
    tracemalloc.start()
    try:
        assert refused(data) == "net holds more than 2,000,000 values: not a symbol file"
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 2**24


def test_long_names_are_shortened_in_messages() -> None:
    assert "a" * 81 not in refused([variable("data"), node("relu", "a" * 10_000, 7)])


# Layers.

IMAGE = (1, 3, 32, 32)


def graph_of(
    nodes: Sequence[Node], *heads: int | tuple[int, int], shapes: Mapping[str, Shape] | None = None
) -> LayerGraph:
    """Return the graph with the types that the table infers; `shapes` are by node name, `data` defaults to an image."""
    file = parse_symbol(content(nodes, *heads), "net")
    given = {"data": IMAGE} if shapes is None else shapes
    by_number = {f"n{number}": given[it.name] for number, it in enumerate(file.nodes) if it.name in given}
    answer = TableFramework().infer(file.render(), by_number)
    return build_graph(file, variable_roles(file, given), answer, "net")


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
    parts = node("SliceChannel", "parts", 0, num_outputs="2")
    nodes = [variable("data"), parts, node("relu", "second", (1, 1)), node("elemwise_add", "sum", (1, 1), 2)]
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
    for only in nodes[:2]:
        assert refusal(partial(graph_of, [only])) == "net has no operators: there is nothing to run"


def test_an_unknown_operator_is_named_and_only_what_depends_on_its_shape_is_unmeasurable() -> None:
    ops = (("relu", 0), ("NobodyHasThis", 1), ("relu", 2), ("relu", 1))
    graph = graph_of([variable("data"), *(node(op, "n", source) for op, source in ops)], 3, 4)
    assert [it.unmeasurable for it in graph.layers] == [
        None,
        "operator NobodyHasThis is not known to the installed MXNet",
        "its shape depends on an operator that the installed MXNet does not know",
        None,
    ]
    assert graph.layers[1].op == "mxnet.NobodyHasThis"
    assert graph.layers[2].data == (UNKNOWN_TYPE,)
    assert graph.edges == ((0, 1), (1, 2), (0, 3))


def typed(found: TensorType) -> LayerGraph:
    file = parsed([variable("data"), node("relu", "r", 0)])
    return build_graph(file, variable_roles(file), GraphAnswer([[TensorType((1, 8))], [found]]), "net")


def test_layers_of_unknown_types_are_unmeasurable() -> None:
    for known in (TensorType((1, 8), "unknown"), TensorType(None)):
        assert typed(known).layers[0].unmeasurable == "MXNet does not find out its shape"


@pytest.mark.parametrize("shape", [(10**12,), (2**16, 2**16), (1,) * 40 + (2**31,)])
def test_a_shape_that_mxnet_cannot_hold_is_refused_with_its_node(shape: Shape) -> None:
    shown = "x".join(map(str, shape))[:80]
    said = f"net: 'r' has a shape of {shown}: more than MXNet can hold"
    assert refusal(lambda: typed(TensorType(shape))) == said


def test_a_loop_is_one_layer_that_is_identified_by_the_operators_of_its_body_and_not_by_names() -> None:
    def inner(*names: str, op: str = "relu") -> tuple[str, ...]:
        (layer,) = graph_of(loop(document([variable(names[0]), node(op, names[1], 0)]))).layers
        assert (layer.op, layer.kind) == ("mxnet._foreach", Kind.RECURRENT)
        return layer.operators[0].inner

    assert len(inner("x", "y")) == 1
    assert "mxnet.relu" in inner("x", "y")[0]
    assert inner("x", "y") == inner("a", "b")
    assert inner("x", "y") != inner("x", "y", op="exp")


# Operators that share a `__layer__`, repetitions, and arrays that are layers.


def composed(nodes: Sequence[Node], *heads: int) -> LayerGraph:
    file = parse_symbol(content(nodes, *heads), "net")
    types = [[TensorType((1, 8))] * 2 for _ in file.nodes]
    return build_graph(file, variable_roles(file), GraphAnswer(types), "net")


def layer(name: str, kind: str | None = None, times: str | None = None) -> Mapping[str, str]:
    found = {"__layer__": name, "__kind__": kind, "__times__": times}
    return {key: value for key, value in found.items() if value is not None}


def test_operators_with_one_layer_name_form_one_layer() -> None:
    said = layer("squash", "elementwise")
    added = node("_plus_scalar", "b", 0, scalar="1", **said)
    nodes = [variable("data"), node("sqrt", "a", 0, **said), added, node("elemwise_div", "c", 1, 2, **said)]
    graph = composed([*nodes, node("Flatten", "after", 3)])
    squash, after = graph.layers
    assert (squash.name, squash.kind, squash.op) == ("squash", Kind.ELEMENTWISE, "sqrt+mxnet._plus_scalar+div")
    assert squash.feeds == (Feed(None, 0),)
    assert [it.inputs for it in squash.operators] == [
        (Wire(Origin.DATA, 0),),
        (Wire(Origin.DATA, 0),),
        (Wire(Origin.OPERATOR, 0), Wire(Origin.OPERATOR, 1)),
    ]
    assert squash.results == (Wire(Origin.OPERATOR, 2),)
    assert squash.nodes == (1, 2, 3)
    assert after.feeds == (Feed(0, 0),)


def test_every_output_that_leaves_a_layer_is_a_result_of_it() -> None:
    split = node("SliceChannel", "s", 0, num_outputs="2", **layer("x"))
    nodes = [variable("data"), split, node("relu", "r", (1, 1), **layer("x")), node("elemwise_add", "out", (1, 0), 2)]
    graph = composed(nodes, 3, 2)
    assert graph.layers[0].results == (Wire(Origin.OPERATOR, 0, 0), Wire(Origin.OPERATOR, 1, 0))
    assert graph.layers[1].feeds == (Feed(0, 0), Feed(0, 1))
    assert graph.heads == (Feed(1, 0), Feed(0, 1))


# Repetitions.


def routing(times: str = "2") -> list[Node]:
    """Return a step that is written twice: the second reads the first, and the next layer reads both."""
    inside = layer("step/add", "combine", times), layer("step/relu", "elementwise", times)
    return [
        variable("data"),
        variable("start_bias"),
        node("elemwise_add", "add", 1, 0, **inside[0]),
        node("relu", "relu", 2, **inside[1]),
        node("elemwise_add", "add", 3, 0, **inside[0]),
        node("relu", "relu", 4, **inside[1]),
        node("Concat", "joined", 3, 5, num_args="2"),
    ]


def test_a_repeated_layer_is_counted_once_and_paid_several_times() -> None:
    graph = composed(routing())
    assert [(it.name, it.times) for it in graph.layers] == [("step/add", 2), ("step/relu", 2), ("joined", 1)]
    assert graph.layers[0].nodes == (2, 4)
    # Edges between repetitions are dropped: the first one stands for all, and starts from the weight.
    assert graph.predecessors == ((), (0,), (1,))
    assert [it.inputs for it in graph.layers[0].operators] == [(Wire(Origin.WEIGHT, 0), Wire(Origin.DATA, 0))]
    # A reader of several repetitions reads one layer.
    joined = graph.layers[2]
    assert joined.feeds == (Feed(1, 0),)
    assert joined.operators[0].inputs == (Wire(Origin.DATA, 0), Wire(Origin.DATA, 0))


@pytest.mark.parametrize("times", ["0", "-2", "2.0", "two", "", "²", "٢", "1000001", "9" * 5_000, "2\n"])
def test_an_impossible_number_of_repetitions_is_refused(times: str) -> None:
    nodes = [variable("data"), node("relu", "r", 0, **layer("step", None, times))]
    assert (
        refusal(lambda: composed(nodes))
        == f"net: layer 'step' has __times__ {times[:20]!r}; give a number from 1 to 1000000"
    )


# What else is refused.


@pytest.mark.parametrize(
    ("one", "other", "said"),
    [
        ({"__times__": "2"}, {}, "net: node 1 ('a') has __times__ but no __layer__ to repeat"),
        (layer("x", None, "2"), layer("x", None, "2"), "layer 'x' is repeated 2 times, but its repetitions differ"),
        (layer("x", None, "3"), layer("x", None, "3"), "has 2 operators, which is not 3 times the same"),
        (layer("x", "fancy"), {}, "layer 'x' has __kind__ 'fancy'; it must be one of convolution, deconvolution, "),
        (layer("x", "reduce"), layer("x", "pad"), "has operators of different __kind__: 'pad' and 'reduce'"),
        (layer("x", None, "2"), layer("x", "pad", "1"), "has operators of different __times__: '1' and '2'"),
        # The layer around another one depends on itself.
        (layer("around"), {}, "net: layer 'around' is part of a cycle of layers, or depends on one"),
    ],
)
def test_annotations_that_contradict_themselves_are_refused(
    one: Mapping[str, str], other: Mapping[str, str], said: str
) -> None:
    last = layer("around") if one == layer("around") else {}
    nodes = [variable("data"), node("relu", "a", 0, **one), node("exp", "b", 1, **other), node("sqrt", "c", 2, **last)]
    assert said in refusal(lambda: composed(nodes))


# Arrays that are layers.


def test_an_array_with_a_layer_of_its_own_is_a_constant_layer() -> None:
    grid = variable("grid", __shape__="(1, 8)", **layer("Grid", "constant"))
    graph = composed([variable("data"), grid, node("broadcast_add", "placed", 0, 1)])
    constant, placed = graph.layers
    assert (constant.name, constant.kind, constant.op, constant.operators) == ("Grid", Kind.CONSTANT, "constant", ())
    assert (constant.weights, constant.outputs) == ((TensorType((1, 8)),), (TensorType((1, 8)),))
    assert constant.results == (Wire(Origin.WEIGHT, 0),)
    assert placed.feeds == (Feed(None, 0), Feed(0, 0))
    assert [it.name for it in graph.inputs] == ["data"]


def test_arrays_that_share_a_layer_are_one_constant_layer() -> None:
    nodes = [variable("w", **layer("x")), variable("v", **layer("x")), node("broadcast_mul", "m", 1, 0)]
    constant, product = composed(nodes).layers
    assert constant.results == (Wire(Origin.WEIGHT, 0), Wire(Origin.WEIGHT, 1))
    assert product.feeds == (Feed(0, 1), Feed(0, 0))
