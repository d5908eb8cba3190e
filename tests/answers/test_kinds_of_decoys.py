"""A private model gets decoys of its own kind."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from onnx import ModelProto, NodeProto
from onnx.helper import make_node

from dlbricks_tui.answers.suites import kind_of
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


MULTIPLIED = make_node("MatMul", ["x", "w"], ["scores"])


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (small(), "convolutional"),
        # A softmax inside is that of an attention, and one at the end that of a classifier.
        (
            chain(
                [
                    MULTIPLIED,
                    make_node("Softmax", ["scores"], ["shares"]),
                    make_node("MatMul", ["shares", "w"], ["y"]),
                ]
            ),
            "transformer",
        ),
        (chain([MULTIPLIED, make_node("Softmax", ["scores"], ["y"])]), "other"),
    ],
    ids=["convolutional", "transformer", "other"],
)
def test_a_network_is_of_the_kind_of_its_operators(tmp_path: Path, made: ModelProto, expected: str) -> None:
    assert kind(tmp_path, made) == (Format.ONNX, False, expected)


def test_a_quantised_network_is_told_from_others_so_that_its_decoys_are_quantised(tmp_path: Path) -> None:
    source = source_of(SAMPLE_MODELS / "onnx" / "mobilenetv2_int8.onnx")
    graph = Loader(tmp_path, TableFramework()).load(source)
    assert kind_of(SuiteModel(decompose(graph), graph)) == (Format.ONNX, True, "convolutional")
