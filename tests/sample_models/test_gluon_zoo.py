import json
from typing import Any

import pytest

from dlbricks_tui.runtime.inside.mxnet_framework import load_mxnet
from sample_models.builders import gluon
from sample_models.builders.__main__ import SAMPLES
from sample_models.builders.catalogue import MANIFEST
from sample_models.builders.gluon_zoo import export

EXPORTED_BY = "1.9.1"


@pytest.fixture(scope="module")
def exported() -> dict[str, bytes]:
    return dict(gluon.exported(SAMPLES))


@pytest.fixture(scope="module")
def listed() -> dict[str, dict[str, Any]]:
    models = json.loads((SAMPLES / MANIFEST).read_bytes())["models"]
    return {model["name"]: model for model in models if model["file"].startswith("gluon/")}


def test_all_34_networks_of_the_zoo_are_samples(exported: dict[str, bytes], listed: dict[str, dict[str, Any]]) -> None:
    assert len(exported) == 34
    assert list(listed) == list(exported) == list(gluon.NETWORKS)
    assert {path.name for path in (SAMPLES / "gluon").glob("*-symbol.json")} == {f"{it}-symbol.json" for it in exported}


def test_the_manifest_counts_the_layers_of_an_exported_network(listed: dict[str, dict[str, Any]]) -> None:
    assert listed["resnet50_v1"] == {
        "name": "resnet50_v1",
        "task": "IC",
        "file": "gluon/resnet50_v1-symbol.json",
        "onnx": {"file": "gluon/resnet50_v1.onnx", "layers": 174, "unique_layers": 46},
        "types": "gluon/resnet50_v1-types.json",
        "inputs": {"data": [1, 3, 224, 224]},
        "classes": 1000,
        "layers": 174,
        "unique_layers": 46,
        "kinds": {"batchnorm": 53, "combine": 16, "convolution": 53, "elementwise": 49, "linear": 1, "pooling": 2},
    }
    assert listed["inceptionv3"]["inputs"] == {"data": [1, 3, 299, 299]}
    assert all("other" not in model["kinds"] for model in listed.values())


def test_an_exported_network_has_one_output_no_unread_operator_and_nothing_of_its_training(
    exported: dict[str, bytes],
) -> None:
    for name, network in exported.items():
        document = json.loads(network)
        read = {source for node in document["nodes"] for source, *_ in node["inputs"]}
        unread = [place for place in range(len(document["nodes"])) if place not in read]
        assert unread == [place for place, *_ in document["heads"]], name
        assert len(unread) == 1, name
        annotated = [node["name"] for node in document["nodes"] if node["op"] == "null" and "attrs" in node]
        assert annotated == ["data"], name


@pytest.mark.soak
@pytest.mark.mxnet
def test_exporting_again_gives_the_committed_bytes(exported: dict[str, bytes]) -> None:
    version = load_mxnet().__version__
    if version != EXPORTED_BY:
        pytest.skip(f"MXNet {version} writes other parameters than {EXPORTED_BY}")
    assert [name for name in gluon.NETWORKS if export(name) != exported[name]] == []
