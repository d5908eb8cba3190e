"""Models read with the real MXNet: inference, fusion and refusals."""

import json
from pathlib import Path

import pytest

from dlbricks_tui.models.errors import ModelError
from dlbricks_tui.models.graph import Level, NativeNode
from dlbricks_tui.models.library import source_of
from dlbricks_tui.models.loading import Loader
from dlbricks_tui.runtime.process import Worker
from dlbricks_tui.runtime.runtime import Runtime
from tests.models.symbols import Document, Node, content, document, node, shared_layers, small_network, variable
from tests.runtime.engines import framework_of

pytestmark = pytest.mark.mxnet

IMAGE = {"data": (1, 3, 32, 32)}


@pytest.fixture(scope="module")
def loader(our_runtime: Runtime, mxnet_worker: Worker, tmp_path_factory: pytest.TempPathFactory) -> Loader:
    return Loader(tmp_path_factory.mktemp("cache"), framework_of(our_runtime, mxnet_worker))


def saved(folder: Path, written: Document | bytes, name: str = "net") -> Path:
    path = folder / f"{name}-symbol.json"
    path.write_bytes(written if isinstance(written, bytes) else json.dumps(written).encode())
    return path


def test_fusing_joins_layers_and_records_which(loader: Loader, tmp_path: Path) -> None:
    source = source_of(saved(tmp_path, document(small_network())))
    written, fused = loader.load(source, given=IMAGE), loader.load(source, Level.FUSED, IMAGE)
    assert len(fused.layers) < len(written.layers)
    assert fused.layers[0].name == "conv0"
    pieces = shared_layers(fused, written)
    assert pieces[0] == (0, 1, 2)
    assert {layer for found in pieces for layer in found} == set(range(len(written.layers)))


def test_an_array_added_by_fusion_gets_the_size_that_its_readers_need(loader: Loader, tmp_path: Path) -> None:
    def start(shape: str) -> NativeNode:
        nodes = [variable("data"), node("_zeros", "start", shape=shape), node("elemwise_add", "sum", 0, 1)]
        graph = loader.load(source_of(saved(tmp_path, content(nodes, 2))), given={"data": (5, 7)})
        (operator,) = next(it for it in graph.layers if it.name == "start").operators
        return operator.native

    assert start("(0, 7)") == start("(-1, 7)") == start("(5, 7)") == NativeNode("_zeros", (("shape", "(5, 7)"),))


def test_a_fused_operator_keeps_copies_of_shared_weights(loader: Loader, tmp_path: Path) -> None:
    arrays = [variable("data"), variable("fc_weight"), variable("fc_bias")]
    about = {"num_hidden": "512", "flatten": "False"}
    steps = [node("FullyConnected", f"step{place}", last, 1, 2, **about) for place, last in enumerate((0, 3))]
    source = source_of(saved(tmp_path, content([*arrays, *steps], 4)))
    once = 4 * (512 * 512 + 512)
    assert loader.load(source, given={"data": (1, 512)}).weight_bytes == once
    assert loader.load(source, Level.FUSED, {"data": (1, 512)}).weight_bytes == 2 * once


CONVOLUTION = [variable("data"), variable("conv_weight"), variable("conv_bias")]


@pytest.mark.parametrize(
    "nodes",
    [
        [variable("data"), node("elemwise_add", "conv", 0, 0, 0)],
        [*CONVOLUTION, node("Convolution", "conv", 0, 1, 2, kernel="(3, 3, 3)", num_filter="8")],
        [*CONVOLUTION, node("Convolution", "conv", 0, 1, 2, kernel="(3, 3)", num_filter="8", precision="low")],
        [*CONVOLUTION, node("FullyConnected", "conv", 0, 1, 2, num_hidden=str(10**12))],
        [*CONVOLUTION, node("relu", "relu", 0), node("elemwise_add", "conv", 3, (3, 1))],
    ],
    ids=["too many inputs", "three axes", "an unknown parameter", "10^12 elements", "no such output"],
)
def test_refusals_of_mxnet_name_the_node_in_one_line(loader: Loader, tmp_path: Path, nodes: list[Node]) -> None:
    with pytest.raises(ModelError) as refusal:
        loader.load(source_of(saved(tmp_path, content(nodes))), given=IMAGE)
    message = str(refusal.value)
    assert message.startswith("net: ")
    assert "\n" not in message
    assert "conv" in message or "relu" in message
