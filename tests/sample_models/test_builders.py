import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest

from dlbricks_tui.models.mxnet.symbol_file import parse_symbol
from dlbricks_tui.models.mxnet.variables import Role, variable_roles
from sample_models.builders.__main__ import SAMPLES, main
from sample_models.builders.architecture import Architecture
from sample_models.builders.catalogue import ARCHITECTURES, MANIFEST, path_of, sample_files
from sample_models.builders.delivered_types import NoFramework, infer, onnx_path, types_path
from sample_models.builders.onnx.samples import SAMPLES as ONNX_SAMPLES
from sample_models.builders.onnx.samples import OnnxSample
from sample_models.builders.onnx.translation import translate_file

Node = dict[str, Any]
Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Facts:
    """What is published of a network."""

    # How many layers of each kind, such as "2 pooling, softmax".
    layers: str
    # The layers that give the results.
    outputs: tuple[str, ...]
    inputs: Mapping[str, Shape]
    # How many layers of the kind take so many operands; a learned array is an operand.
    combine: Mapping[int, int] = field(default_factory=dict)
    concat: Mapping[int, int] = field(default_factory=dict)

    def layers_by_kind(self) -> dict[str, int]:
        words = [part.split() for part in self.layers.split(", ")]
        return {kind: int(count[0]) if count else 1 for *count, kind in words}


def _image(side: int, channels: int = 3) -> dict[str, Shape]:
    return {"data": (1, channels, side, side)}


def _vgg(convolutions: int) -> Facts:
    layers = (
        f"{convolutions} convolution, {convolutions + 2} elementwise, 5 pooling, flatten, 3 linear, 2 dropout, softmax"
    )
    return Facts(layers, ("prob",), _image(224))


def _inception_v1(output: str) -> Facts:
    layers = "57 convolution, 57 elementwise, 14 pooling, 9 concat, 4 pad, 2 lrn, dropout, flatten, linear, softmax"
    return Facts(layers, (output,), _image(224), concat={4: 9})


def _resnet(blocks: int) -> Facts:
    convolutions = 3 * blocks + 5
    layers = (
        f"{convolutions} convolution, {convolutions} batchnorm, {3 * blocks + 1} elementwise, {blocks} combine, "
        "2 pooling, pad, flatten, linear, softmax"
    )
    return Facts(layers, ("prob",), _image(224), combine={2: blocks})


def _ademxapp_a1() -> Facts:
    layers = "45 convolution, 38 elementwise, 37 batchnorm, 17 combine, 2 dropout, transpose, softmax"
    return Facts(layers, ("softmax/2",), _image(504), combine={2: 17})


def _colornet() -> Facts:
    layers = "24 convolution, 28 elementwise, 4 resize, 3 linear, flatten, broadcast, concat"
    return Facts(layers, ("4/16",), _image(224, channels=1), concat={2: 1})


def _cyclegan(pads: int, output: str) -> Facts:
    layers = f"22 convolution, 2 deconvolution, 23 norm, 16 elementwise, {pads} pad, 9 combine, 2 slice"
    return Facts(layers, (output,), _image(256), combine={2: 9})


FACTS: Mapping[str, Facts] = {
    "vgg16_101": _vgg(13),
    "vgg16_2": _vgg(13),
    "vgg16_1000": _vgg(13),
    "vgg19_1000": _vgg(16),
    "inception_v1_5": _inception_v1("loss3_loss3"),
    "inception_v1_1000": _inception_v1("prob"),
    "inception_v1_365": _inception_v1("prob"),
    "inception_v3": Facts(
        "94 convolution, 94 batchnorm, 94 elementwise, 14 pooling, 11 concat, flatten, linear, slice, softmax",
        ("softmax",),
        _image(299),
        # Two modules halve the image, and the last two end in six branches.
        concat={4: 7, 3: 2, 6: 2},
    ),
    "inception_bn_4315": Facts(
        "69 convolution, 69 batchnorm, 69 elementwise, 13 pooling, 10 concat, linear, softmax",
        ("softmax",),
        _image(224),
        concat={4: 8, 3: 2},
    ),
    "mobilenet_v2_1.4": Facts(
        "53 convolution, 52 batchnorm, 35 elementwise, 10 combine, pooling, reshape, softmax",
        ("prob_softmax",),
        _image(224),
        combine={2: 10},
    ),
    "squeezenet_1.1": Facts(
        "26 convolution, 26 elementwise, 8 concat, 3 pooling, 2 pad, dropout, reduce, flatten, softmax",
        ("probabilities",),
        _image(227),
        concat={2: 8},
    ),
    "resnet50": _resnet(16),
    "resnet101": _resnet(33),
    "resnet152": _resnet(50),
    "open_nsfw": _resnet(16),
    "preactivation_resnet101": Facts(
        "104 convolution, 102 batchnorm, 101 elementwise, 33 combine, pooling, reduce, linear, softmax",
        ("softmax_softmax",),
        _image(224),
        combine={2: 33},
    ),
    "wide_resnet50_2": Facts(
        "53 convolution, 53 batchnorm, 49 elementwise, 16 combine, 2 pooling, reshape, linear, softmax",
        ("24",),
        _image(224),
        combine={2: 16},
    ),
    "senet154": Facts(
        "157 convolution, 157 batchnorm, 253 elementwise, 101 linear, 100 combine, 50 reduce, 50 broadcast, 2 pooling, "
        "pad, dropout, flatten, softmax",
        ("prob",),
        _image(224),
        # Each block weighs its channels and adds its shortcut.
        combine={2: 100},
    ),
    "ademxapp_a": Facts(
        "43 convolution, 37 batchnorm, 37 elementwise, 17 combine, 5 pooling, reduce, linear, softmax",
        ("softmax",),
        _image(320),
        combine={2: 17},
    ),
    "ademxapp_a1_150": _ademxapp_a1(),
    "ademxapp_a1_21": _ademxapp_a1(),
    "dilation8_camvid": Facts(
        "24 convolution, 22 elementwise, 3 pooling, 2 dropout, transpose, softmax",
        ("prob",),
        {"data": (1, 3, 900, 1100)},
    ),
    "adain": Facts(
        "27 convolution, 28 elementwise, 27 pad, 6 pooling, 6 reduce, 6 broadcast, 6 combine, 3 resize",
        ("decoder/29",),
        {"content": (1, 3, 512, 512), "style": (1, 3, 512, 512)},
        combine={2: 6},
    ),
    "capsnet": Facts(
        "2 convolution, 12 elementwise, 8 reduce, 8 broadcast, 8 combine, 4 reshape, 3 linear, 2 softmax, 2 slice, "
        "transpose, constant, flatten, other",
        ("Norm/3", "Reconstruct/7"),
        _image(28, channels=1),
        combine={2: 8},
    ),
    "colorization": Facts(
        "23 convolution, deconvolution, 24 elementwise, 7 batchnorm, 2 transpose, softmax",
        ("final_scaling",),
        _image(224, channels=1),
    ),
    "colornet_imagenet": _colornet(),
    "colornet_places": _colornet(),
    "cyclegan": _cyclegan(20, "31"),
    "cyclegan_reflect": _cyclegan(22, "33"),
    "pix2pix": Facts(
        "8 convolution, 8 deconvolution, 13 norm, 17 elementwise, 7 concat, 3 dropout",
        ("55",),
        _image(256),
        concat={2: 7},
    ),
    "vdsr": Facts("20 convolution, 19 elementwise, transpose", ("transpose_final",), _image(255, channels=1)),
    "ssd_vgg_300": Facts(
        "35 convolution, 31 elementwise, 15 transpose, 14 reshape, 12 flatten, 11 combine, 10 slice, 7 softmax, "
        "5 pooling, 3 concat, 2 pad",
        ("2/reshapePoint", "1/8"),
        _image(300),
        combine={2: 11},
        # Boxes and scores of six scales, and four corners.
        concat={6: 2, 4: 1},
    ),
    "ssd_vgg_512": Facts(
        "39 convolution, 33 elementwise, 17 transpose, 16 reshape, 14 flatten, 11 combine, 11 slice, 8 softmax, "
        "5 pooling, 3 concat",
        ("2/reshapePoint", "1/9"),
        _image(512),
        combine={2: 11},
        concat={7: 2, 4: 1},
    ),
    "yolo_v2": Facts(
        "23 convolution, 22 batchnorm, 25 elementwise, 6 slice, 5 pad, 5 pooling, 4 transpose, 3 reshape, 3 concat, "
        "3 flatten, 3 constant, 3 combine, softmax",
        ("BoxTransformation/CoordList", "Region/ClassScore/4", "Region/Confidence/3"),
        _image(416),
        combine={2: 3},
        concat={2: 3},
    ),
    "face_alignment": Facts(
        "194 convolution, 184 batchnorm, 360 elementwise, 118 concat, 78 combine, 17 pooling, 16 resize",
        ("32",),
        _image(256),
        # Between two hourglasses meet what the first one read, its features and its heat maps.
        combine={2: 75, 3: 3},
        concat={2: 118},
    ),
    "depth_in_the_wild": Facts(
        "156 convolution, 155 batchnorm, 155 elementwise, 22 concat, 4 pooling, 4 resize, 4 combine, slice",
        ("6",),
        {"data": (1, 3, 240, 320)},
        combine={2: 4},
        concat={4: 22},
    ),
    "volumetric_regression": Facts(
        "276 convolution, 273 batchnorm, 363 elementwise, 99 combine, 9 pooling, 9 resize",
        ("10/4",),
        _image(192),
        combine={2: 99},
    ),
}
every_network = pytest.mark.parametrize("file", FACTS)


@pytest.fixture(scope="module")
def networks() -> Mapping[str, dict[str, Any]]:
    # The committed files are those that are built, as another test proves.
    return {
        architecture.file: json.loads((SAMPLES / path_of(architecture)).read_bytes()) for architecture in ARCHITECTURES
    }


@pytest.fixture(scope="module")
def models() -> list[dict[str, Any]]:
    listed: list[dict[str, Any]] = json.loads((SAMPLES / MANIFEST).read_bytes())["models"]
    return [model for model in listed if "table1_id" in model]


@pytest.mark.parametrize("architecture", ARCHITECTURES, ids=lambda it: it.file)
def test_a_network_is_built_as_it_is_committed(architecture: Architecture) -> None:
    assert architecture.build() == (SAMPLES / path_of(architecture)).read_bytes()


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


def test_every_network_has_facts() -> None:
    assert [architecture.file for architecture in ARCHITECTURES if architecture.file not in FACTS] == []


@every_network
def test_the_manifest_counts_the_published_layers(file: str, models: list[dict[str, Any]]) -> None:
    published = FACTS[file].layers_by_kind()
    for model in _rows(models, file):
        assert model["kinds"] == published
        assert model["layers"] == sum(published.values())


@every_network
def test_a_network_takes_its_published_inputs(file: str, models: list[dict[str, Any]]) -> None:
    for model in _rows(models, file):
        assert {name: tuple(shape) for name, shape in model["inputs"].items()} == FACTS[file].inputs
    symbol = parse_symbol((SAMPLES / "table1" / f"{file}-symbol.json").read_bytes(), file)
    inputs = {symbol.nodes[number].name for number, role in variable_roles(symbol).items() if role is Role.INPUT}
    assert inputs == set(FACTS[file].inputs)


@every_network
def test_a_network_gives_its_published_outputs_and_computes_nothing_else(
    file: str, networks: Mapping[str, dict[str, Any]]
) -> None:
    nodes, heads = networks[file]["nodes"], networks[file]["heads"]
    assert tuple(nodes[place]["attrs"]["__layer__"] for place, *_ in heads) == FACTS[file].outputs
    read = {source for node in nodes for source, *_ in node["inputs"]} | {place for place, *_ in heads}
    assert [node["name"] for place, node in enumerate(nodes) if place not in read] == []


@every_network
def test_joins_have_as_many_inputs_as_in_the_architecture(file: str, networks: Mapping[str, dict[str, Any]]) -> None:
    nodes = networks[file]["nodes"]
    assert _layers_by_operands(nodes, "combine") == FACTS[file].combine
    assert _layers_by_operands(nodes, "concat") == FACTS[file].concat


@every_network
def test_every_operator_belongs_to_a_layer_of_one_kind(file: str, networks: Mapping[str, dict[str, Any]]) -> None:
    kinds: dict[str, str] = {}
    for node in networks[file]["nodes"]:
        attributes = node.get("attrs", {})
        if node["op"] != "null":
            assert kinds.setdefault(attributes["__layer__"], attributes["__kind__"]) == attributes["__kind__"]


@every_network
def test_no_two_nodes_share_a_name(file: str, networks: Mapping[str, dict[str, Any]]) -> None:
    names = Counter(node["name"] for node in networks[file]["nodes"])
    assert [name for name, times in names.items() if times > 1] == []


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


def _rows(models: list[dict[str, Any]], file: str) -> list[dict[str, Any]]:
    rows = [model for model in models if model["file"] == f"table1/{file}-symbol.json"]
    assert rows
    return rows


def _layers_by_operands(nodes: list[Node], kind: str) -> dict[int, int]:
    """How many layers of a kind take so many tensors from outside; of a repeated layer the first writing counts."""
    members: dict[str, list[int]] = {}
    for place, node in enumerate(nodes):
        attributes = node.get("attrs", {})
        if attributes.get("__kind__") == kind:
            members.setdefault(attributes["__layer__"], []).append(place)
    operands: Counter[int] = Counter()
    for places in members.values():
        times = int(nodes[places[0]]["attrs"].get("__times__", 1))
        once = places[: len(places) // times]
        operands[sum(source not in once for place in once for source, *_ in nodes[place]["inputs"])] += 1
    return dict(operands)
