from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from dlbricks_tui.bricks.decomposition import Decomposition
from dlbricks_tui.models.errors import ModelError
from dlbricks_tui.models.library import ModelSource
from dlbricks_tui.runtime.traits import Format
from sample_models.builders.__main__ import SAMPLES
from sample_models.builders.delivered_types import NoFramework, infer, installed_framework, types_path

VOLUMETRIC_REGRESSION = "47"
# Samples beside Table 1: one of each family, and those that are files of ONNX.
FEW = (
    *("alexnet", "mobilenet0.25", "mobilenetv2_0.25", "resnet18_v1", "resnet18_v2", "squeezenet1.0", "vgg11_bn"),
    *("boosted_trees", "crnn", "mobilenetv2_int8", "silero_vad", "tabular_network"),
)


@pytest.mark.parametrize("few", [True, pytest.param(False, marks=pytest.mark.soak)])
def test_every_tensor_of_mxnet_has_a_type_and_the_manifest_has_the_inputs_and_counts_the_layers(
    few: bool, samples: tuple[ModelSource, ...], decomposed: Callable[[ModelSource], Decomposition]
) -> None:
    assert Counter(source.path.parent.name for source in samples) == {"table1": 50, "gluon": 34, "onnx": 8}
    for source in samples:
        if few and not source.table1_id and source.name not in FEW:
            continue
        model = decomposed(source)
        assert model.graph.format is Format.MXNET or source.path.parent.name == "onnx"
        for layer in model.graph.layers if model.graph.format is Format.MXNET else ():
            assert layer.unmeasurable is None, (source.name, layer.name)
            assert all(tensor.shape for tensor in (*layer.data, *layer.weights, *layer.outputs)), layer.name
        assert (source.layers, source.unique_layers) == (len(model.graph.layers), len(model.bricks)), source.name
        assert source.inputs == {it.name: it.type.shape for it in model.graph.inputs}, source.name


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
