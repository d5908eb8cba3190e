import json
from ast import literal_eval
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest

from sample_models.builders import ssd
from sample_models.builders.__main__ import SAMPLES, main
from sample_models.builders.architecture import Architecture
from sample_models.builders.catalogue import ARCHITECTURES, MANIFEST, path_of, sample_files
from sample_models.builders.delivered_types import NoFramework, infer, onnx_path, types_path
from sample_models.builders.onnx.samples import SAMPLES as ONNX_SAMPLES
from sample_models.builders.onnx.samples import OnnxSample
from sample_models.builders.onnx.translation import translate_file


@pytest.fixture(scope="module")
def models() -> list[dict[str, Any]]:
    listed: list[dict[str, Any]] = json.loads((SAMPLES / MANIFEST).read_bytes())["models"]
    return [model for model in listed if "table1_id" in model]


@pytest.mark.parametrize("architecture", ARCHITECTURES, ids=lambda it: it.file)
def test_a_network_is_built_as_it_is_committed_and_computes_nothing_that_is_not_read(
    architecture: Architecture,
) -> None:
    built = architecture.build()
    assert built == (SAMPLES / path_of(architecture)).read_bytes()
    nodes, heads = (json.loads(built)[key] for key in ("nodes", "heads"))
    read = {source for node in nodes for source, *_ in node["inputs"]} | {place for place, *_ in heads}
    assert read == set(range(len(nodes)))
    assert len({node["name"] for node in nodes}) == len(nodes)
    # Every operator belongs to a layer, and a layer is of one kind.
    layers = {(it["attrs"]["__layer__"], it["attrs"]["__kind__"]) for it in nodes if it["op"] != "null"}
    assert len(layers) == len(dict(layers))


@pytest.mark.parametrize(
    ("architecture", "boxes", "classes"),
    [(architecture, *facts) for architecture, facts in zip(ssd.ARCHITECTURES, ((8732, 20), (24564, 80)), strict=True)],
    ids=["300", "512"],
)
def test_ssd_reads_all_boxes_of_all_its_scales(architecture: Architecture, boxes: int, classes: int) -> None:
    reshapes = [node["attrs"] for node in json.loads(architecture.build())["nodes"] if node["op"] == "Reshape"]
    shapes = {said["__layer__"]: literal_eval(said["shape"]) for said in reshapes}
    offsets = [shape for name, shape in shapes.items() if name.endswith("multiboxLocs/reshape")]
    scores = [shape for name, shape in shapes.items() if name.endswith("multiboxClasses/2")]

    assert sum(per_place * height * width for _, per_place, _, height, width in offsets) == boxes
    assert [(a, h, w) for _, a, _, h, w in offsets] == [(a, h, w) for _, a, _, h, w in scores]
    assert {columns for _, _, columns, _, _ in offsets} == {4}
    # The background is a class until the softmax is done.
    assert {columns for _, _, columns, _, _ in scores} == {classes + 1}
    assert shapes["2/reshapePoint"] == (0, boxes, 2, 2)
    assert architecture.classes == classes


@pytest.mark.parametrize("sample", ONNX_SAMPLES, ids=lambda it: it.name)
def test_an_onnx_sample_is_built_as_it_is_committed(sample: OnnxSample) -> None:
    assert sample.build() == (SAMPLES / sample.path).read_bytes()


@pytest.mark.parametrize("path", ["table1/vdsr-symbol.json", "table1/capsnet-symbol.json", "gluon/alexnet-symbol.json"])
def test_the_types_and_the_translation_of_a_network_are_made_as_committed(path: str) -> None:
    network, types = ((SAMPLES / it).read_bytes() for it in (path, types_path(path)))
    assert infer(path, network, SAMPLES / types_path(path), NoFramework()).types == types
    assert translate_file(network, types, path) == (SAMPLES / onnx_path(path)).read_bytes()


@pytest.mark.soak
def test_building_all_again_gives_the_committed_files() -> None:
    built = sample_files(SAMPLES, NoFramework())
    assert [path for path, content in built.items() if (SAMPLES / path).read_bytes() != content] == []
    committed = {
        path.relative_to(SAMPLES).as_posix() for path in SAMPLES.glob("*/*.*") if path.suffix in (".json", ".onnx")
    }
    assert committed == set(built) - {MANIFEST}


def test_the_samples_stay_small() -> None:
    assert sum(path.stat().st_size for path in SAMPLES.rglob("*") if path.is_file()) < 15e6


def test_the_manifest_lists_the_fifty_models_in_order(models: list[dict[str, Any]]) -> None:
    assert [model["table1_id"] for model in models] == [str(number) for number in range(1, 51)]
    assert len({model["name"] for model in models}) == 50
    assert {model["task"] for model in models} == {"IC", "IP", "OD", "RG", "SS"}


def test_check_names_what_differs_from_what_is_built(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    built = {f"table1/{it.name}": it.read_bytes() for it in (SAMPLES / "table1").iterdir()}
    copytree(SAMPLES / "table1", tmp_path / "table1")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sample_models.builders.__main__.sample_files", lambda *_: built)
        assert main([], tmp_path) == 0
        assert main(["--check"], tmp_path) == 0
        (tmp_path / "table1" / "vdsr-symbol.json").write_text("{}")
        (tmp_path / "table1" / "adain-symbol.json").unlink()
        (tmp_path / "table1" / "retired-symbol.json").write_text("{}")
        capsys.readouterr()
        assert main(["--check"], tmp_path) == 1
    named = [line.split()[0] for line in capsys.readouterr().err.splitlines()]
    assert named == [f"table1/{name}-symbol.json" for name in ("adain", "retired", "vdsr")]
