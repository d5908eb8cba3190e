"""The networks of MXNet, translated into ONNX: the same layers, the same shapes and the same results."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy
import pytest
from onnx import ModelProto, load_from_string
from onnx.checker import check_model
from onnx.shape_inference import infer_shapes

from dlbricks_tui.bricks.decomposition import Decomposition
from dlbricks_tui.bricks.identity import brick_of
from dlbricks_tui.models.graph import LayerGraph, type_of
from dlbricks_tui.models.kinds import Kind
from dlbricks_tui.models.library import Library, ModelSource
from dlbricks_tui.runtime.inside.mxnet_framework import load_mxnet
from dlbricks_tui.runtime.inside.ort_session import options
from dlbricks_tui.runtime.traits import Format
from sample_models.builders.__main__ import SAMPLES
from tests.sample_models.weights import store_weights

# The smallest of a family have all kinds of layers that the others have.
SMALLEST = (
    *("adain", "ademxapp_a-", "alexnet", "capsnet", "colorization", "colornet_places", "cyclegan-", "dilation8_camvid"),
    *("inception_v1_5-", "mobilenet0.25", "mobilenetv2_0.25", "pix2pix", "resnet18_v1", "resnet18_v2", "squeezenet1.0"),
    *("ssd_vgg_300", "vdsr", "vgg11_bn", "vgg16_2", "yolo_v2"),
)
SAMPLES_OF_BOTH = {it.path: it for it in Library(SAMPLES, SAMPLES).samples() if it.twin is not None}
NETWORKS = [it for path, it in sorted(SAMPLES_OF_BOTH.items()) if path.name.startswith(SMALLEST)]
every_network = pytest.mark.parametrize("network", NETWORKS, ids=lambda network: network.path.name)


def _onnx(network: ModelSource) -> ModelSource:
    return network.in_format(Format.ONNX)


def _model(network: ModelSource) -> ModelProto:
    return load_from_string(_onnx(network).path.read_bytes())


def _layers(graph: LayerGraph) -> list[object]:
    """Return what the formats have to agree in, layer by layer; stored arrays are layers in MXNet only."""
    constants = {layer.index for layer in graph.layers if layer.kind is Kind.CONSTANT}
    found: list[object] = []
    for layer in graph.layers:
        if layer.index not in constants:
            read = {graph.layers[it].name for it in graph.predecessors[layer.index] if it not in constants}
            found.append((layer.name, layer.kind, layer.times, layer.outputs, read))
    return found


@every_network
def test_both_formats_of_a_network_have_the_same_layers(
    network: ModelSource, decomposed: Callable[[ModelSource], Decomposition]
) -> None:
    mxnet, onnx = decomposed(network), decomposed(_onnx(network))
    assert _layers(onnx.graph) == _layers(mxnet.graph)
    constants = {brick_of(mxnet.graph, [it.index]) for it in mxnet.graph.layers if it.kind is Kind.CONSTANT}
    assert len(onnx.bricks) == len(mxnet.bricks) - len(constants)
    # As the manifest counts them.
    counted = _onnx(network)
    assert (counted.layers, counted.unique_layers) == (len(onnx.graph.layers), len(onnx.bricks))


@every_network
def test_a_translated_network_is_valid_and_its_outputs_have_the_shapes_of_the_network(
    network: ModelSource, decomposed: Callable[[ModelSource], Decomposition]
) -> None:
    graph, model = decomposed(network).graph, _model(network)
    check_model(model)
    for given in model.graph.input:
        given.type.tensor_type.shape.dim[0].dim_value = 1
    outputs = infer_shapes(model, strict_mode=True, data_prop=True).graph.output
    shapes = [tuple(axis.dim_value for axis in it.type.tensor_type.shape.dim) for it in outputs]
    assert shapes == [type_of(graph, head).shape for head in graph.heads]


@pytest.mark.soak
@pytest.mark.mxnet
@every_network
def test_a_translated_network_computes_what_mxnet_computes(network: ModelSource, ort: Any) -> None:
    mxnet = load_mxnet()
    model = _model(network)
    generator = numpy.random.default_rng(0)

    def drawn(_: str, shape: Sequence[int], filling: Any) -> Any:
        # Small enough that no output is at its limit.
        if len(shape) > 1:
            return generator.normal(0, numpy.sqrt(0.3 / numpy.prod(shape[1:])), shape).astype(numpy.float32)
        return (numpy.ones(shape) if filling == 1 else generator.uniform(0.5, 1.5, shape)).astype(numpy.float32)

    values = store_weights(model.graph, drawn)
    inputs = {}
    for given in model.graph.input:
        sizes = [axis.dim_value or 1 for axis in given.type.tensor_type.shape.dim]
        inputs[given.name] = generator.normal(0, 1, sizes).astype(numpy.float32)
    session = ort.InferenceSession(
        model.SerializeToString(), options(ort, optimised=True), providers=["CPUExecutionProvider"]
    )
    outputs = session.run(None, inputs)
    expected = _by_mxnet(mxnet, network.path, values | inputs)
    for output, wanted in zip(outputs, expected, strict=True):
        assert numpy.abs(output - wanted).max() <= 1e-4 * numpy.abs(wanted).max()


def _by_mxnet(mxnet: Any, path: Path, values: dict[str, Any]) -> list[Any]:
    symbol = mxnet.sym.load(str(path))
    arrays, states = (
        {name: mxnet.nd.array(values[name]) for name in names}
        for names in (symbol.list_arguments(), symbol.list_auxiliary_states())
    )
    bound = symbol.bind(mxnet.cpu(), arrays, aux_states=states, grad_req="null")
    return [output.asnumpy() for output in bound.forward(is_train=False)]
