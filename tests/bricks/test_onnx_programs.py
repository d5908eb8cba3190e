"""The inputs and outputs of programs of ONNX layers, which take as long as inside of a model."""

from base64 import b64decode
from pathlib import Path

import pytest
from onnx import ModelProto, TensorProto, defs
from onnx.helper import make_node

from dlbricks_tui.bricks.programs import sequence_program
from dlbricks_tui.runtime.protocol import Network
from tests.models.onnx_models import floats, integers, loaded, model


def read(network: Network | None) -> ModelProto:
    assert network is not None
    found: ModelProto = ModelProto.FromString(b64decode(network.symbol))
    return found


def put_out(found: ModelProto) -> list[str]:
    """Which operators make what a model puts out."""
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
    assert put_out(read(conv.network)) == ["Conv"], "nobody sleeps who would have to be woken"
    assert put_out(read(reshape.network)) == ["Erf", "Shape"], "the copy that it reads, which the prelude puts out too"
    assert put_out(read(reshape.prelude)) == ["Erf"]
    assert put_out(read(both.network)) == ["Conv", "Shape"], "what is computed is put out"


def test_a_copy_is_made_by_all_cores_where_its_type_allows(tmp_path: Path) -> None:
    graph = loaded(tmp_path, model([make_node("Sqrt", ["x"], ["y"])], {"x": (1, 8)}, ["y"]))
    assert put_out(read(sequence_program(graph, (0,)).prelude)) == ["Erf"]

    made = model([make_node("Sqrt", ["x"], ["y"])], {"x": (1, 8)}, ["y"])
    made.graph.input[0].type.tensor_type.elem_type = TensorProto.DOUBLE
    assert put_out(read(sequence_program(loaded(tmp_path, made), (0,)).prelude)) == ["Relu"]


@pytest.mark.parametrize(("opset", "op"), [(7, "Elu"), (8, "Elu"), (9, "Erf"), (17, "Erf")])
def test_a_copy_uses_an_operator_of_the_models_version(opset: int, op: str, tmp_path: Path) -> None:
    graph = loaded(tmp_path, model([make_node("Sqrt", ["x"], ["y"])], {"x": (1, 8)}, ["y"], opset=opset))
    program = sequence_program(graph, (0,))
    assert put_out(read(program.prelude)) == [op]
    network = read(program.network)
    assert [node.op_type for node in network.graph.node] == [op, "Sqrt"], "what the prelude takes is taken off"
    assert defs.get_schema(op, opset, "").since_version <= network.opset_import[0].version == opset
