"""The layers of an ONNX model."""

from pathlib import Path

import pytest
from onnx import NodeProto, TensorProto
from onnx.helper import make_node, make_tensor

from benchmarks.onnx_models import TOKENS, WIDTH, encoder
from dlbricks_tui.bricks.decomposition import Cutting, decompose
from dlbricks_tui.bricks.identity import brick_of
from dlbricks_tui.estimate.features import features_of
from dlbricks_tui.models.errors import UnreadableModelError
from dlbricks_tui.models.graph import Feed, LayerGraph, Level, Origin, TensorType, Wire
from dlbricks_tui.models.kinds import Kind
from dlbricks_tui.models.library import source_of
from dlbricks_tui.models.loading import Loader
from sample_models.builders.symbol_writer import SymbolWriter
from tests.models.onnx_models import LIGHT, floats, integers, loaded, model, small, with_everything
from tests.models.table_framework import TableFramework


def ops(graph: LayerGraph) -> list[str]:
    return [layer.op for layer in graph.layers]


def test_each_node_is_a_layer_with_its_shapes(tmp_path: Path) -> None:
    graph = loaded(tmp_path, small())
    assert ops(graph) == ["conv", "relu", "global_mean_pool", "reshape", "linear"]
    assert [layer.kind for layer in graph.layers][::4] == [Kind.CONVOLUTION, Kind.LINEAR]
    assert [layer.outputs[0].shape for layer in graph.layers] == [(1, 8, 16, 16)] * 2 + [(1, 8, 1, 1), (1, 8), (1, 10)]
    assert graph.edges == ((0, 1), (1, 2), (2, 3), (3, 4))
    assert graph.level is Level.WRITTEN


def test_results_of_weights_and_shapes_alone_are_not_layers(tmp_path: Path) -> None:
    nodes = [
        make_node("ConstantOfShape", ["sizes"], ["w"], value=make_tensor("v", TensorProto.FLOAT, (1,), (0.5,))),
        make_node("Unsqueeze", ["bias", "axes"], ["wide"]),
        make_node("Conv", ["x", "w"], ["c"], name="conv"),
        make_node("Add", ["c", "wide"], ["a"], name="add"),
        make_node("Shape", ["a"], ["shape"]),
        make_node("Gather", ["shape", "first"], ["batch"], axis=0),
        make_node("Concat", ["batch", "rest"], ["target"], axis=0),
        make_node("Reshape", ["a", "target"], ["y"], name="flat"),
    ]
    weights = [
        integers("sizes", (8, 3, 1, 1)),
        floats("bias", (8,)),
        integers("axes", (1, 2)),
        integers("first", (0,)),
        integers("rest", (-1,)),
    ]
    graph = loaded(tmp_path, model(nodes, {"x": (2, 3, 4, 4)}, ["y"], weights))
    assert [layer.name for layer in graph.layers] == ["conv", "add", "flat"]
    conv, add, flat = graph.layers
    assert conv.weights[0].shape == (8, 3, 1, 1)
    assert add.weights[0].shape == (8, 1, 1)
    assert (flat.op, flat.outputs[0].shape, flat.weights) == ("reshape", (2, 128), ())


def test_subgraphs_have_the_same_form_in_each_format(tmp_path: Path) -> None:
    (tmp_path / "big").write_bytes(bytes(16))
    graph = loaded(tmp_path, with_everything())
    canonical = brick_of(graph, (graph.layers[-1].index,)).canonical
    features = features_of(canonical, "plain")
    assert features is not None
    assert {"with onnx.Mul", "with onnx.Constant"} <= features.traits and features.operator == "onnx.Add"


def test_only_values_that_set_shapes_are_part_of_a_brick(tmp_path: Path) -> None:
    def key(weight: float, axis: int) -> str:
        stored = make_tensor("w", TensorProto.FLOAT, (3,), [weight] * 3)
        nodes = [make_node("Add", ["x", "w"], ["a"]), make_node("Gather", ["a", "rows"], ["y"], axis=0)]
        graph = loaded(tmp_path, model(nodes, {"x": (4, 3)}, ["y"], [stored, integers("rows", (axis,))]))
        return brick_of(graph, (0, 1)).key

    assert key(0.5, 1) == key(7.0, 1)
    assert key(0.5, 1) != key(0.5, 2)


def test_layers_shared_with_mxnet_are_the_same_bricks(tmp_path: Path) -> None:
    writer = SymbolWriter()
    data = writer.input("data", (1, 3, 16, 16))
    conv = writer.op("Convolution", data, kernel=(3, 3), pad=(1, 1), num_filter=8)
    norm = writer.op("BatchNorm", conv, eps=1e-5)
    relu = writer.op("Activation", norm, act_type="relu")
    pool = writer.op("Pooling", relu, kernel=(2, 2), stride=(2, 2), pool_type="max")
    flat = writer.op("Flatten", writer.op("Pooling", pool, kernel=(1, 1), global_pool=True, pool_type="avg"))
    path = tmp_path / "net-symbol.json"
    path.write_bytes(writer.render(writer.op("FullyConnected", flat, num_hidden=10)))
    mxnet = Loader(tmp_path / "cache", TableFramework()).load(source_of(path))
    nodes = [
        make_node("Conv", ["x", "w", "b"], ["c"], pads=[1, 1, 1, 1]),
        make_node("BatchNormalization", ["c", "n1", "n2", "n3", "n4"], ["n"]),
        make_node("Relu", ["n"], ["r"]),
        make_node("MaxPool", ["r"], ["m"], kernel_shape=[2, 2], strides=[2, 2]),
        make_node("GlobalAveragePool", ["m"], ["p"]),
        make_node("Flatten", ["p"], ["f"]),
        make_node("Gemm", ["f", "v", "d"], ["y"], transB=1),
    ]
    weights = [floats("w", (8, 3, 3, 3)), floats("b", (8,)), *(floats(f"n{number}", (8,)) for number in range(1, 5))]
    weights += [floats("v", (10, 8)), floats("d", (10,))]
    onnx = loaded(tmp_path, model(nodes, {"x": (1, 3, 16, 16)}, ["y"], weights))
    for ours, theirs in zip(mxnet.layers, onnx.layers, strict=True):
        assert brick_of(mxnet, (ours.index,)).canonical == brick_of(onnx, (theirs.index,)).canonical


# Nine published networks from the onnx package, without the values of their weights.

LAYERS = {"bvlc_alexnet": 24, "inception_v1": 144, "squeezenet": 66, "vgg19": 46, "zfnet512": 22}


@pytest.mark.parametrize("name", LAYERS)
def test_a_published_network_has_as_many_layers_as_operators_that_depend_on_its_input(
    name: str, tmp_path: Path
) -> None:
    graph = Loader(tmp_path, TableFramework()).load(source_of(LIGHT / f"light_{name}.onnx"))
    assert len(graph.layers) == LAYERS[name]
    assert [layer.name for layer in graph.layers if layer.unmeasurable is not None] == []
    assert [layer.name for layer in graph.layers if layer.kind is Kind.OTHER] == []
    assert graph.inputs[0].type.shape == (1, 3, 224, 224)


def test_an_encoder_of_a_transformer_has_few_unique_layers(tmp_path: Path) -> None:
    (tmp_path / "encoder.onnx").write_bytes(encoder().SerializeToString())
    graph = Loader(tmp_path, TableFramework()).load(source_of(tmp_path / "encoder.onnx"))
    # Embeddings, their sum and its norm; then blocks of attention and its following layers.
    assert len(graph.layers) == 3 + 12 * (22 + 11)
    assert [layer.name for layer in graph.layers if layer.unmeasurable is not None] == []
    assert [layer.name for layer in graph.layers if layer.kind is Kind.OTHER] == []
    assert graph.layers[0].kind is Kind.EMBEDDING
    assert graph.layers[-1].outputs[0].shape == (1, TOKENS, WIDTH)
    one, whole = (decompose(graph, Cutting(granularity)) for granularity in (1, 4))
    assert len(one.occurrences) == len(graph.layers)
    assert len(one.bricks) < 30
    assert len(whole.occurrences) < len(one.occurrences)


# ONNX nodes whose metadata calls them one layer.


def node(op: str, inputs: list[str], output: str, **said: str) -> NodeProto:
    """Return a node with metadata such as `__layer__`."""
    made = make_node(op, inputs, [output], output)
    for key, value in said.items():
        made.metadata_props.add(key=f"__{key}__", value=value)
    return made


def test_nodes_with_one_layer_name_form_one_layer(tmp_path: Path) -> None:
    squash = {"layer": "squash", "kind": "elementwise"}
    nodes = [
        node("Sqrt", ["data"], "a", **squash),
        node("Mul", ["data", "scale"], "b", **squash),
        node("Div", ["a", "b"], "c", **squash),
        node("Add", ["c", "scale"], "after"),
    ]
    graph = loaded(tmp_path, model(nodes, {"data": (1, 8)}, ["after"], [floats("scale", (1, 8))]))
    layer, after = graph.layers
    assert (layer.name, layer.kind, layer.op) == ("squash", Kind.ELEMENTWISE, "sqrt+mul+div")
    assert [it.inputs for it in layer.operators] == [
        (Wire(Origin.DATA, 0),),
        (Wire(Origin.DATA, 0), Wire(Origin.WEIGHT, 0)),
        (Wire(Origin.OPERATOR, 0), Wire(Origin.OPERATOR, 1)),
    ]
    assert (layer.feeds, layer.weights) == ((Feed(None, 0),), (TensorType((1, 8)),))
    assert (layer.results, layer.nodes) == ((Wire(Origin.OPERATOR, 2),), (0, 1, 2))
    assert (after.name, after.feeds, after.index) == ("after", (Feed(0, 0),), 1)
    # Both layers read the same array.
    assert layer.array(0) == after.array(0)


def test_an_operator_on_a_stored_vector_is_a_layer_if_the_file_calls_it_one(tmp_path: Path) -> None:
    def layers(**said: str) -> list[str]:
        nodes = [node("Reshape", ["vector", "shape"], "wide", **said), node("Add", ["data", "wide"], "sum")]
        made = model(nodes, {"data": (1, 8)}, ["sum"], [floats("vector", (8,)), integers("shape", (1, 8))])
        return [layer.name for layer in loaded(tmp_path, made).layers]

    assert layers() == ["sum"]
    assert layers(layer="widen") == ["widen", "sum"]


def test_metadata_that_describes_no_layer_is_refused_in_one_line(tmp_path: Path) -> None:
    """`test_composite_layers.py` has the other faults."""
    nodes = [node("Exp", ["data"], "a", layer="x", times="3"), node("Relu", ["a"], "b", layer="x", times="3")]
    with pytest.raises(UnreadableModelError, match=r"^net: layer 'x' has 2 operators, which is not 3 times the same$"):
        loaded(tmp_path, model(nodes, {"data": (1, 8)}, ["b"]))
