"""The networks of MXNet, translated into ONNX: the same layers, the same shapes and the same results."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy
import pytest
from onnx import ModelProto, load_from_string
from onnx.checker import check_model
from onnx.numpy_helper import from_array, to_array
from onnx.shape_inference import infer_shapes

from dlbricks_tui.models.graph import LayerGraph, type_of
from dlbricks_tui.models.kinds import Kind, kind_of
from dlbricks_tui.models.library import Library, ModelSource
from dlbricks_tui.models.loading import Loader
from dlbricks_tui.models.mxnet.layers import KIND_ATTRIBUTE
from dlbricks_tui.models.mxnet.variables import LAYER_ATTRIBUTE
from dlbricks_tui.runtime.inside.mxnet_framework import load_mxnet
from dlbricks_tui.runtime.inside.ort_session import options
from sample_models.builders.__main__ import SAMPLES
from sample_models.builders.delivered_types import NoFramework, onnx_path, types_path

NETWORKS = sorted(path.relative_to(SAMPLES).as_posix() for path in SAMPLES.glob("*/*-symbol.json"))
every_network = pytest.mark.parametrize("network", NETWORKS)


@pytest.fixture(scope="module")
def loader(tmp_path_factory: pytest.TempPathFactory) -> Loader:
    return Loader(tmp_path_factory.mktemp("cache"), NoFramework())


def _graph(network: str, loader: Loader) -> LayerGraph:
    inputs = next(it.inputs for it in Library(SAMPLES, SAMPLES).samples() if it.path == SAMPLES / network)
    return loader.load(ModelSource("network", SAMPLES / network, inputs=inputs, types=SAMPLES / types_path(network)))


def _model(network: str) -> ModelProto:
    return load_from_string((SAMPLES / onnx_path(network)).read_bytes())


def _layers(model: ModelProto) -> Iterator[tuple[str, str]]:
    """Return the name and the kind of each layer, as nodes and their metadata say."""
    for node in model.graph.node:
        if node.op_type != "ConstantOfShape":
            said = {it.key: it.value for it in node.metadata_props}
            yield said.get(LAYER_ATTRIBUTE, node.name), said.get(KIND_ATTRIBUTE, kind_of(node.op_type).value)


@every_network
def test_a_translated_network_has_the_layers_of_the_network_with_their_names_and_kinds(
    network: str, loader: Loader
) -> None:
    layers = [layer for layer in _graph(network, loader).layers if layer.kind is not Kind.CONSTANT]
    assert set(_layers(_model(network))) == {(layer.name, layer.kind.value) for layer in layers}


@every_network
def test_a_translated_network_is_valid_and_its_outputs_have_the_shapes_of_the_network(
    network: str, loader: Loader
) -> None:
    graph, model = _graph(network, loader), _model(network)
    check_model(model)
    for given in model.graph.input:
        given.type.tensor_type.shape.dim[0].dim_value = 1
    outputs = infer_shapes(model, strict_mode=True, data_prop=True).graph.output
    shapes = [tuple(axis.dim_value for axis in it.type.tensor_type.shape.dim) for it in outputs]
    assert shapes == [type_of(graph, head).shape for head in graph.heads]


@pytest.mark.soak
@pytest.mark.mxnet
@every_network
def test_a_translated_network_computes_what_mxnet_computes(network: str, ort: Any) -> None:
    mxnet = load_mxnet()
    model = _model(network)
    generator = numpy.random.default_rng(0)
    values = _store_weights(model, generator)
    inputs = {}
    for given in model.graph.input:
        sizes = [axis.dim_value or 1 for axis in given.type.tensor_type.shape.dim]
        inputs[given.name] = generator.normal(0, 1, sizes).astype(numpy.float32)
    session = ort.InferenceSession(
        model.SerializeToString(), options(ort, optimised=True), providers=["CPUExecutionProvider"]
    )
    outputs = session.run(None, inputs)
    expected = _by_mxnet(mxnet, SAMPLES / network, values | inputs)
    for output, wanted in zip(outputs, expected, strict=True):
        assert numpy.abs(output - wanted).max() <= 1e-4 * numpy.abs(wanted).max()


def _store_weights(model: ModelProto, generator: numpy.random.Generator) -> dict[str, Any]:
    """Replace each weight by an initialiser with random numbers, small enough that no output is at its limit."""
    shapes = {it.name: to_array(it).tolist() for it in model.graph.initializer}
    values, others = {}, []
    for node in model.graph.node:
        if node.op_type != "ConstantOfShape":
            others.append(node)
            continue
        shape = shapes[node.input[0]]
        if len(shape) > 1:
            drawn = generator.normal(0, numpy.sqrt(0.3 / numpy.prod(shape[1:])), shape)
        elif to_array(node.attribute[0].t)[0] == 1:
            drawn = numpy.ones(shape)
        else:
            drawn = generator.uniform(0.5, 1.5, shape)
        values[node.name] = drawn.astype(numpy.float32)
        model.graph.initializer.append(from_array(values[node.name], node.name))
    del model.graph.node[:]
    model.graph.node.extend(others)
    return values


def _by_mxnet(mxnet: Any, path: Path, values: dict[str, Any]) -> list[Any]:
    symbol = mxnet.sym.load(str(path))
    arrays, states = (
        {name: mxnet.nd.array(values[name]) for name in names}
        for names in (symbol.list_arguments(), symbol.list_auxiliary_states())
    )
    bound = symbol.bind(mxnet.cpu(), arrays, aux_states=states, grad_req="null")
    return [output.asnumpy() for output in bound.forward(is_train=False)]
