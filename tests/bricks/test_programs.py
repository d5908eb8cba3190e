import json
from base64 import b64decode
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from onnx import ModelProto, TensorProto, defs
from onnx.helper import make_node

from dlbricks_tui.bricks.cutting import Cut, cut
from dlbricks_tui.bricks.programs import model_program, sequence_program
from dlbricks_tui.models.graph import UNKNOWN_TYPE, Feed, LayerGraph, NativeNode, Origin, TensorType, Wire
from dlbricks_tui.models.networks import ProgramError
from dlbricks_tui.runtime.protocol import ArrayType, Network
from tests.bricks.convolutions import named, with_layer
from tests.bricks.graphs import DATA, Spec, after, built, chain, graphs, wired
from tests.models.onnx_models import floats, integers, loaded, model


def nodes_of(network: Network) -> list[dict[str, Any]]:
    nodes: list[dict[str, Any]] = json.loads(network.symbol)["nodes"]
    return nodes


def ops_of(network: Network | None) -> list[str]:
    return [node["op"] for node in nodes_of(network) if node["op"] != "null"] if network else []


def heads_of(network: Network) -> list[str]:
    nodes = nodes_of(network)
    return [f"{nodes[node]['name']}:{output}" for node, output, _ in json.loads(network.symbol)["heads"]]


@given(graphs())
def test_nodes_have_unique_names_and_read_only_earlier_ones_and_a_model_runs_as_often_as_it_is_paid_for(
    graph: LayerGraph,
) -> None:
    whole = model_program(graph)
    assert ops_of(whole.network) == [layer.op for layer in graph.layers for _ in range(layer.times) if layer.operators]
    assert whole.producer is None
    of_sequences = {it.layers: sequence_program(graph, it.layers) for it in cut(graph, 3, Cut.RUNNABLE)}
    for program in (whole, *of_sequences.values()):
        for network in filter(None, (program.network, program.producer, program.prelude)):
            nodes = nodes_of(network)
            assert all(source < place for place, node in enumerate(nodes) for source, _, _ in node["inputs"])
            assert len({node["name"] for node in nodes}) == len(nodes)
            variables = [node["name"] for node in nodes if node["op"] == "null"]
            assert sorted(variables) == sorted([*network.inputs, *network.weights])
        # A producer has one head for each input.
        assert program.producer is None or len(heads_of(program.producer)) == len(program.network.inputs)
    for layers, program in of_sequences.items():
        # A sequence puts out what others read, and begins with its prelude.
        outside = [layer for layer in graph.layers if layer.index not in layers]
        read = {feed for layer in outside for feed in layer.feeds}.union(graph.heads)
        assert len(heads_of(program.network)) >= sum(feed.layer in layers for feed in read)
        assert program.prelude is not None
        assert list(program.prelude.inputs.items()) == list(program.network.inputs.items())
        copies = ops_of(program.prelude)
        assert copies
        assert ops_of(program.network)[: len(copies)] == copies


def test_layers_that_share_an_array_read_the_same_one() -> None:
    graph = chain("conv", "relu", "conv", "conv")
    for layer, array in ((0, 7), (2, 7), (3, 8)):
        graph = with_layer(graph, replace(graph.layers[layer], arrays=(array,)))
    assert len(model_program(graph).network.weights) == 2
    three, one = (sequence_program(graph, layers).network.weights for layers in ((1, 2, 3), (1,)))
    assert len(three) - len(one) == 2
    often = with_layer(graph, replace(graph.layers[2], times=3))
    # Its repetitions have arrays of their own.
    assert len(model_program(often).network.weights) == 4


# What lets MXNet wake up before anything else runs.
WAKE = ["Convolution", "_plus_scalar"]


def woken(network: Network | None) -> list[str]:
    """The operators of a network that wakes MXNet first, behind those that do."""
    ops = ops_of(network)
    assert ops[: len(WAKE)] == WAKE
    return ops[len(WAKE) :]


def put_out(network: Network) -> list[str]:
    """The outputs of such a network, behind the one that has it woken first."""
    wake, *others = heads_of(network)
    assert wake == "wake_2:0"
    return others


def test_a_producer_begins_where_the_layout_is_set_and_plain_inputs_pass_through_it() -> None:
    graph = chain("pool", "conv", "relu", "relu", "pool", "relu")
    told = {(0,): [], (1,): [], (2,): ["conv"], (4, 5): ["conv", "relu", "relu"]}
    assert {layers: ops_of(sequence_program(graph, layers).producer) for layers in told} == told
    assert sequence_program(graph, [1]).producer is None
    program = sequence_program(wired("conv add:i1,0"), [1])
    assert program.producer is not None
    assert list(program.network.inputs) == ["data0", "data1"]
    assert ops_of(program.producer) == ["conv"]
    assert heads_of(program.producer) == ["data1:0", "layer0:0"]


def test_an_awake_program_and_its_prelude_start_with_a_wake_up() -> None:
    program = sequence_program(chain("relu", "pool"), [1])
    assert program.prelude is not None
    for network in (program.network, program.prelude):
        first, *_ = heads_of(network)
        assert first == "wake_2:0", "it runs before anything else"
        assert woken(network)
    asleep = sequence_program(chain("relu", "pool"), [1], awake=False)
    assert ops_of(asleep.network) == ["Activation", "pool"]
    assert ops_of(model_program(chain("relu", "pool")).network) == ["relu", "pool"], "a model wakes up by itself"


def test_streamed_inputs_are_copied_by_the_operator_that_streamed_them() -> None:
    program = sequence_program(streaming("conv", "conv", "relu"), [2])
    assert program.prelude is not None
    assert woken(program.prelude) == ["BatchNorm"]
    assert woken(program.network) == ["BatchNorm", "relu"]
    assert ops_of(program.producer) == ["conv", "BatchNorm"]
    copy = next(node for node in nodes_of(program.network) if node["op"] == "BatchNorm")
    read = [nodes_of(program.network)[source]["name"] for source, _, _ in copy["inputs"]]
    assert [name in program.network.inputs for name in read] == [True, False]
    woken_with = [ArrayType((1, 16, 4, 4), "float32"), ArrayType((16, 16, 1, 1), "float32")]
    assert list(program.prelude.weights.values()) == [*woken_with, ArrayType((1, 8), "float32")]


def streaming(*ops: str) -> LayerGraph:
    """A chain of operators, the second of which is a batch norm."""
    graph = named(chain(*ops), ops[0], "batch_norm", *ops[2:])
    norm = graph.layers[1].operators[0]
    norm = replace(norm, inputs=(Wire(Origin.DATA, 0), Wire(Origin.WEIGHT, 0)), native=NativeNode("BatchNorm"))
    return with_layer(graph, replace(graph.layers[1], operators=(norm,)))


def test_row_indices_are_copied_unchanged() -> None:
    graph = chain("relu")
    whole = replace(graph, inputs=(graph.inputs[0]._replace(type=TensorType((1, 8), "int32")),))
    assert woken(sequence_program(whole, [0]).prelude) == ["_copy"]


def test_tensors_read_outside_a_sequence_or_needed_afterwards_are_outputs() -> None:
    graph = built([Spec("split", DATA), Spec("relu", (Feed(0, 0),)), Spec("concat", (Feed(0, 1), Feed(1, 0)))])
    assert put_out(sequence_program(graph, [0]).network) == ["layer0:0", "layer0:1"]
    assert put_out(sequence_program(graph, [0, 1]).network) == ["layer0:1", "layer1:0"]
    assert put_out(sequence_program(graph, [0, 1, 2]).network) == ["layer2:0"]
    graph = wired("relu relu add:0,1 relu:1")
    assert put_out(sequence_program(graph, [2]).network) == ["layer2:0", "copy_2:0"]


def test_equal_names_in_a_model_file_do_not_clash() -> None:
    graph = built([Spec("conv", DATA), Spec("conv", after(0))], names=lambda index: "weight0")
    names = [node["name"] for node in nodes_of(model_program(graph).network)]
    assert len(set(names)) == len(names)


def test_a_layer_of_unknown_shape_is_named() -> None:
    graph = chain("conv", "relu")
    unknown = replace(graph.layers[0], weights=(UNKNOWN_TYPE,))
    message = "generated: layer0 cannot be run, because the shape of its weight is unknown"
    with pytest.raises(ProgramError, match=message):
        sequence_program(replace(graph, layers=(unknown, graph.layers[1])), [0])


# The inputs and outputs of programs of ONNX layers, which take as long as inside of a model.


def read(network: Network | None) -> ModelProto:
    assert network is not None
    found: ModelProto = ModelProto.FromString(b64decode(network.symbol))
    return found


def makers_of_outputs(found: ModelProto) -> list[str]:
    """Return the operators that compute the outputs of a model."""
    makers = {name: node.op_type for node in found.graph.node for name in node.output}
    return [makers[output.name] for output in found.graph.output]


def test_operators_that_alias_their_memory_are_not_copied(tmp_path: Path) -> None:
    nodes = [
        make_node("Conv", ["x", "w"], ["c"]),
        make_node("Reshape", ["c", "to"], ["r"]),
        make_node("Transpose", ["r"], ["t"], perm=[1, 0]),
    ]
    weights = [floats("w", (4, 3, 1, 1)), integers("to", (4, 64))]
    graph = loaded(tmp_path, model(nodes, {"x": (1, 3, 8, 8)}, ["t"], weights))

    conv, reshape, both = (sequence_program(graph, layers) for layers in ((0,), (1,), (0, 1)))
    assert makers_of_outputs(read(conv.network)) == ["Conv"], "nobody sleeps who would have to be woken"
    assert makers_of_outputs(read(reshape.network)) == ["Erf", "Shape"], "the copy that it reads, as in the prelude"
    assert makers_of_outputs(read(reshape.prelude)) == ["Erf"]
    assert makers_of_outputs(read(both.network)) == ["Conv", "Shape"], "what is computed is put out"


@pytest.mark.parametrize(("opset", "op"), [(7, "Elu"), (8, "Elu"), (9, "Erf"), (17, "Erf")])
def test_a_copy_uses_an_operator_of_the_models_version(opset: int, op: str, tmp_path: Path) -> None:
    made = model([make_node("Sqrt", ["x"], ["y"])], {"x": (1, 8)}, ["y"], opset=opset)
    program = sequence_program(loaded(tmp_path, made), (0,))
    # One that all cores compute, where its type allows.
    assert makers_of_outputs(read(program.prelude)) == [op]
    network = read(program.network)
    assert [node.op_type for node in network.graph.node] == [op, "Sqrt"], "what the prelude takes is taken off"
    assert defs.get_schema(op, opset, "").since_version <= network.opset_import[0].version == opset
    made.graph.input[0].type.tensor_type.elem_type = TensorProto.DOUBLE
    assert makers_of_outputs(read(sequence_program(loaded(tmp_path, made), (0,)).prelude)) == ["Relu"]
