"""A private model gets decoys of its own kind."""

from collections.abc import Sequence
from pathlib import Path

from onnx import ModelProto, NodeProto
from onnx.helper import make_node

from dlbricks_tui.answers.suites.exporting import kind_of
from dlbricks_tui.bricks.decomposition import decompose
from dlbricks_tui.folders import SAMPLE_MODELS
from dlbricks_tui.models.library import source_of
from dlbricks_tui.models.loading import Loader
from dlbricks_tui.runtime.traits import Format
from dlbricks_tui.share.suites.packing import SuiteModel
from tests.models.onnx_models import floats, loaded, model, small
from tests.models.table_framework import TableFramework


def kind(folder: Path, made: ModelProto) -> tuple[Format, bool, str]:
    graph = loaded(folder, made)
    return kind_of(SuiteModel(decompose(graph), graph))


def chain(nodes: Sequence[NodeProto]) -> ModelProto:
    return model(nodes, {"x": (4, 8)}, ["y"], [floats("w", (8, 8))])


def test_a_network_with_convolutions_is_convolutional(tmp_path: Path) -> None:
    assert kind(tmp_path, small()) == (Format.ONNX, False, "convolutional")


def test_a_network_with_a_softmax_inside_is_a_transformer(tmp_path: Path) -> None:
    nodes = [
        make_node("MatMul", ["x", "w"], ["scores"]),
        make_node("Softmax", ["scores"], ["shares"]),
        make_node("MatMul", ["shares", "w"], ["y"]),
    ]
    assert kind(tmp_path, chain(nodes)) == (Format.ONNX, False, "transformer")


def test_a_classifier_without_convolutions_is_of_another_kind(tmp_path: Path) -> None:
    nodes = [make_node("MatMul", ["x", "w"], ["scores"]), make_node("Softmax", ["scores"], ["y"])]
    assert kind(tmp_path, chain(nodes)) == (Format.ONNX, False, "other")


def test_a_quantised_network_is_told_from_others_so_that_its_decoys_are_quantised(tmp_path: Path) -> None:
    source = source_of(SAMPLE_MODELS / "onnx" / "mobilenetv2_int8.onnx")
    graph = Loader(tmp_path, TableFramework()).load(source)
    assert kind_of(SuiteModel(decompose(graph), graph)) == (Format.ONNX, True, "convolutional")
