"""Nine published networks from the onnx package, without the values of their weights."""

from pathlib import Path

import pytest

from benchmarks.onnx_models import TOKENS, WIDTH, encoder
from dlbricks_tui.bricks.decomposition import Cutting, decompose
from dlbricks_tui.models.kinds import Kind
from dlbricks_tui.models.library import source_of
from dlbricks_tui.models.loading import Loader
from tests.models.onnx_models import LIGHT
from tests.models.table_framework import TableFramework

LAYERS = {
    "bvlc_alexnet": 24,
    "densenet121": 668,
    "inception_v1": 144,
    "inception_v2": 371,
    "resnet50": 176,
    "shufflenet": 203,
    "squeezenet": 66,
    "vgg19": 46,
    "zfnet512": 22,
}


@pytest.mark.parametrize(
    "name", [pytest.param(it, marks=() if LAYERS[it] < 150 else pytest.mark.soak) for it in LAYERS]
)
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
