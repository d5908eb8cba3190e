"""ONNX models that the worker changes byte by byte, read with the onnx package."""

from onnx import ModelProto, TensorProto
from onnx.helper import make_node, make_opsetid

from dlbricks_tui.models.onnx.stored_arrays import is_external
from dlbricks_tui.runtime.inside.onnx_bytes import Stored, nodes_of, with_stored
from tests.models.onnx_models import floats, model


def made() -> ModelProto:
    nodes = [
        make_node("Conv", ["x", "w"], ["t1_0"], name="node1", pads=[1, 1, 1, 1]),
        make_node("Reorder", ["t1_0"], ["t2_0"], name="node2", domain="beside"),
        make_node("Gather", ["t2_0", "rows"], ["t3_0"], name="node3", axis=-1),
        make_node("Reorder", ["t3_0"], ["t4_0"], name="node4", domain="beside"),
    ]
    found = model(nodes, {"x": (1, 3, 8, 8)}, ["t4_0", "t3_0"], [floats("w", (4, 3, 3, 3)), floats("other", (1,))])
    found.graph.initializer[0].external_data.add(key="location", value="elsewhere")
    found.opset_import.append(make_opsetid("beside", 1))
    return found


def test_nodes_are_read_with_names_domains_and_axes() -> None:
    found = nodes_of(made().SerializeToString())
    assert [(it.name, it.op, it.domain) for it in found][:2] == [("node1", "Conv", ""), ("node2", "Reorder", "beside")]
    assert found[0].inputs == ("x", "w")
    assert found[2].axis == -1


def test_weights_get_their_place_in_a_file_and_all_else_stays() -> None:
    before = made()
    found = ModelProto.FromString(with_stored(before.SerializeToString(), {"w": Stored("weights", 64, 432)}, "beside"))
    weight, other = found.graph.initializer
    assert is_external(weight) or weight.external_data
    assert {it.key: it.value for it in weight.external_data} == {"location": "weights", "offset": "64", "length": "432"}
    assert (list(weight.dims), weight.data_type, weight.name) == ([4, 3, 3, 3], TensorProto.FLOAT, "w")
    assert other == before.graph.initializer[1]
    assert found.graph.node[0] == before.graph.node[0]
    assert found.graph.input == before.graph.input
    assert found.ir_version == before.ir_version


def test_nodes_of_the_domain_are_left_out_and_their_readers_read_what_they_read() -> None:
    found = ModelProto.FromString(with_stored(made().SerializeToString(), {}, "beside"))
    assert [node.name for node in found.graph.node] == ["node1", "node3"]
    assert list(found.graph.node[1].input) == ["t1_0", "rows"]
    assert [it.name for it in found.graph.output] == ["t3_0"], "no tensor is an output twice"
    assert [it.domain for it in found.opset_import] == [""]
