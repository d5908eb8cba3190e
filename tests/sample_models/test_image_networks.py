"""CapsNet, the image processing and the detection networks of Table 1."""

from ast import literal_eval
from functools import cache

import pytest

from dlbricks_tui.models.cache import GraphAnswer
from dlbricks_tui.models.composites import LAYER_ATTRIBUTE
from dlbricks_tui.models.graph import Layer, TensorType
from dlbricks_tui.models.kinds import Kind
from dlbricks_tui.models.mxnet_file import SymbolFile, SymbolNode, parse_symbol
from dlbricks_tui.models.mxnet_layers import build_graph, variable_roles
from sample_models.builders import adain, capsnet, colorization, colornet, cyclegan, pix2pix, ssd, vdsr, yolo_v2
from sample_models.builders.architecture import Architecture

CAPSNET, YOLO_V2 = capsnet.ARCHITECTURES[0], yolo_v2.ARCHITECTURES[0]
BUILDERS = (adain, capsnet, colorization, colornet, cyclegan, pix2pix, ssd, vdsr, yolo_v2)
ALL = [architecture for builder in BUILDERS for architecture in builder.ARCHITECTURES]


def layer_of(node: SymbolNode) -> str | None:
    return node.attributes.get(LAYER_ATTRIBUTE)


@cache
def symbol_file(architecture: Architecture) -> SymbolFile:
    return parse_symbol(architecture.build(), architecture.file)


@cache
def layers(architecture: Architecture) -> tuple[Layer, ...]:
    """Read the file as a graph without shapes, which only a framework infers."""
    file = symbol_file(architecture)
    unknown = [[TensorType(None)]] * len(file.nodes)
    return build_graph(file, variable_roles(file), GraphAnswer(unknown), architecture.file).layers


@pytest.mark.parametrize("architecture", ALL, ids=lambda architecture: architecture.file)
def test_a_layer_keeps_the_name_and_kind_that_its_builder_gave_it(architecture: Architecture) -> None:
    nodes = symbol_file(architecture).nodes
    given = {layer_of(node): node.attributes["__kind__"] for node in nodes if layer_of(node)}
    assert {layer.name: layer.kind.value for layer in layers(architecture)} == given


def test_capsnet_repeats_the_layers_of_its_routing_loop_and_no_others() -> None:
    repeated = {layer.name for layer in layers(CAPSNET) if layer.times == capsnet.ROUTING_STEPS == 2}
    assert len(repeated) == 15
    assert repeated == {layer.name for layer in layers(CAPSNET) if layer.name.startswith("DynamicRouting/2/")}
    assert {layer.times for layer in layers(CAPSNET)} == {1, 2}


def test_a_constant_of_the_architecture_is_a_layer_that_holds_an_array() -> None:
    found = {a.file: [layer.name for layer in layers(a) if layer.kind is Kind.CONSTANT] for a in ALL}
    assert {file: names for file, names in found.items() if names} == {
        CAPSNET.file: ["PrimaryPredVects/2"],
        YOLO_V2.file: [f"BoxTransformation/{name}" for name in ("Grid", "Anchors", "Scale")],
    }


@pytest.mark.parametrize(
    ("architecture", "boxes", "classes"),
    [(architecture, *facts) for architecture, facts in zip(ssd.ARCHITECTURES, ((8732, 20), (24564, 80)), strict=True)],
    ids=["300", "512"],
)
def test_ssd_reads_all_boxes_of_all_its_scales(architecture: Architecture, boxes: int, classes: int) -> None:
    reshapes = [node for node in symbol_file(architecture).nodes if node.op == "Reshape"]
    shapes = {str(layer_of(node)): literal_eval(node.attributes["shape"]) for node in reshapes}
    offsets = [shape for name, shape in shapes.items() if name.endswith("multiboxLocs/reshape")]
    scores = [shape for name, shape in shapes.items() if name.endswith("multiboxClasses/2")]

    assert sum(per_place * height * width for _, per_place, _, height, width in offsets) == boxes
    assert [(a, h, w) for _, a, _, h, w in offsets] == [(a, h, w) for _, a, _, h, w in scores]
    assert {columns for _, _, columns, _, _ in offsets} == {4}
    # The background is a class until the softmax is done.
    assert {columns for _, _, columns, _, _ in scores} == {classes + 1}
    assert shapes["2/reshapePoint"] == (0, boxes, 2, 2)
    assert architecture.classes == classes
