from pathlib import Path

import pytest

from dlbricks_tui.bricks.decomposition import Decomposition, decompose
from dlbricks_tui.measure.calibration_nets import SUFFIXES, calibration_nets
from dlbricks_tui.models.errors import ModelError
from dlbricks_tui.models.graph import LayerGraph
from dlbricks_tui.models.kinds import Kind
from dlbricks_tui.models.library import Library, ModelSource, source_of
from dlbricks_tui.models.loading import Loader
from dlbricks_tui.runtime.traits import Format
from sample_models.builders.__main__ import SAMPLES
from sample_models.builders.delivered_types import NoFramework, infer, installed_framework, types_path
from tests.models.table_framework import TableFramework

VOLUMETRIC_REGRESSION = "47"


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> tuple[ModelSource, ...]:
    return Library(SAMPLES, tmp_path_factory.mktemp("data")).samples()


@pytest.fixture(scope="module")
def decomposed(samples: tuple[ModelSource, ...], tmp_path_factory: pytest.TempPathFactory) -> tuple[Decomposition, ...]:
    """All samples, loaded where there is no framework and nothing was inferred before."""
    cache = tmp_path_factory.mktemp("cache")
    loader = Loader(cache, NoFramework())
    found = tuple(decompose(loader.load(source)) for source in samples)
    assert not list(cache.rglob("*.json")), "answers of a framework"
    return found


def test_every_tensor_of_every_network_of_mxnet_has_a_type(decomposed: tuple[Decomposition, ...]) -> None:
    networks = [model for model in decomposed if model.graph.format is Format.MXNET]
    assert len(networks) == 50 + 34
    for model in networks:
        for layer in model.graph.layers:
            assert layer.unmeasurable is None, (model.graph.name, layer.name)
            assert all(tensor.shape for tensor in (*layer.data, *layer.weights, *layer.outputs)), layer.name


def computed(graph: LayerGraph) -> set[tuple[object, ...]]:
    """Convolutions and linear layers by what they read, learn and make, without regard to a bias or what is fused."""
    return {
        (*(tensor.shape for tensor in layer.data), layer.weights[0].shape, layer.outputs[0].shape)
        for layer in graph.layers
        if layer.kind in (Kind.CONVOLUTION, Kind.LINEAR) and layer.weights
    }


def test_no_sample_shares_a_layer_with_the_calibration_networks(
    decomposed: tuple[Decomposition, ...], tmp_path: Path
) -> None:
    samples = set[tuple[object, ...]]().union(*(computed(model.graph) for model in decomposed))
    loader = Loader(tmp_path / "cache", TableFramework())
    for name, content in calibration_nets(Format.ONNX).items():
        path = tmp_path / f"{name}{SUFFIXES[Format.ONNX]}"
        path.write_bytes(content)
        layers = computed(loader.load(source_of(path)))
        assert layers, name
        assert not layers & samples, name


def test_the_manifest_counts_layers_and_unique_layers_as_decomposing_does(
    samples: tuple[ModelSource, ...], decomposed: tuple[Decomposition, ...]
) -> None:
    assert len(samples) == 50 + 34 + 8
    for source, model in zip(samples, decomposed, strict=True):
        assert (source.layers, source.unique_layers) == (len(model.graph.layers), len(model.bricks)), source.name


def test_the_manifest_says_the_inputs_of_the_network(
    samples: tuple[ModelSource, ...], decomposed: tuple[Decomposition, ...]
) -> None:
    for source, model in zip(samples, decomposed, strict=True):
        assert source.inputs == {it.name: it.type.shape for it in model.graph.inputs}, source.name


def test_the_fifty_models_have_as_many_unique_layers_as_the_published_files_give(
    samples: tuple[ModelSource, ...], decomposed: tuple[Decomposition, ...]
) -> None:
    """The paper says 1,529; its authors' files give 1,485 to 1,536, depending on what makes two layers the same."""
    table1 = [model for source, model in zip(samples, decomposed, strict=True) if source.table1_id]
    assert sum(len(model.graph.layers) for model in table1) == 10_815
    assert 1_485 <= len(frozenset().union(*(model.bricks for model in table1))) <= 1_536


def test_volumetric_regression_has_the_smallest_unique_share_as_in_the_paper(samples: tuple[ModelSource, ...]) -> None:
    shares = {it.table1_id: 100 * it.unique_layers / it.layers for it in samples if it.unique_layers and it.layers}
    assert round(shares[VOLUMETRIC_REGRESSION], 1) == 3.9
    assert min(shares.values()) == shares[VOLUMETRIC_REGRESSION]


def test_a_changed_network_ignores_its_old_types(tmp_path: Path) -> None:
    network = (SAMPLES / "table1" / "vdsr-symbol.json").read_bytes()
    changed = tmp_path / "vdsr-symbol.json"
    changed.write_bytes(network.replace(b"(1, 1, 255, 255)", b"(1, 1, 128, 128)"))
    with pytest.raises(ModelError, match="make samples"):
        infer("table1/vdsr-symbol.json", changed.read_bytes(), SAMPLES / "table1" / "vdsr-types.json", NoFramework())


@pytest.mark.soak
@pytest.mark.mxnet
def test_delivered_types_equal_those_inferred_by_mxnet(samples: tuple[ModelSource, ...], tmp_path: Path) -> None:
    with installed_framework(tmp_path) as mxnet:
        for path in sorted({source.path for source in samples if source.format is Format.MXNET}):
            name = path.relative_to(SAMPLES).as_posix()
            inferred = infer(name, path.read_bytes(), tmp_path / "nothing-delivered.json", mxnet)
            delivered = infer(name, path.read_bytes(), SAMPLES / types_path(name), NoFramework())
            assert inferred.graph == delivered.graph, name
