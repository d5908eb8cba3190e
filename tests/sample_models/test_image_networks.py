"""CapsNet, the image processing and the detection networks of Table 1."""

from functools import cache

import pytest

from dlbricks_tui.models.composites import LAYER_ATTRIBUTE
from dlbricks_tui.models.graph import Layer, LayerGraph, TensorType
from dlbricks_tui.models.kinds import Kind
from dlbricks_tui.models.mxnet.layer_graph import InferredFile, build_graph
from dlbricks_tui.models.mxnet.symbol_file import SymbolFile, SymbolNode, parse_symbol
from dlbricks_tui.models.mxnet.variables import variable_roles
from sample_models.builders import adain, capsnet, colorization, colornet, cyclegan, pix2pix, ssd, vdsr, yolo_v2
from sample_models.builders.architecture import Architecture

ADAIN = adain.ARCHITECTURES[0]
CAPSNET = capsnet.ARCHITECTURES[0]
COLORIZATION = colorization.ARCHITECTURES[0]
COLORNET_IMAGENET, COLORNET_PLACES = colornet.ARCHITECTURES
CYCLEGAN, CYCLEGAN_REFLECT = cyclegan.ARCHITECTURES
PIX2PIX = pix2pix.ARCHITECTURES[0]
SSD_300, SSD_512 = ssd.ARCHITECTURES
VDSR = vdsr.ARCHITECTURES[0]
YOLO_V2 = yolo_v2.ARCHITECTURES[0]
ALL = (
    *(ADAIN, CAPSNET, COLORIZATION, COLORNET_IMAGENET, COLORNET_PLACES, CYCLEGAN, CYCLEGAN_REFLECT),
    *(PIX2PIX, SSD_300, SSD_512, VDSR, YOLO_V2),
)
every_network = pytest.mark.parametrize("architecture", ALL, ids=lambda architecture: architecture.file)


def ids(value: object) -> str | None:
    return value.file if isinstance(value, Architecture) else ""


@every_network
def test_a_layer_keeps_the_name_and_kind_that_its_builder_gave_it(architecture: Architecture) -> None:
    given = {layer_of(node): node.attributes["__kind__"] for node in nodes(architecture) if layer_of(node)}
    assert {layer.name: layer.kind.value for layer in layers(architecture)} == given


def test_capsnet_repeats_the_layers_of_its_routing_loop_and_no_others() -> None:
    repeated = {layer.name for layer in graph(CAPSNET).layers if layer.times == capsnet.ROUTING_STEPS == 2}
    assert len(repeated) == 15
    assert repeated == {layer.name for layer in graph(CAPSNET).layers if layer.name.startswith("DynamicRouting/2/")}
    assert {layer.times for layer in graph(CAPSNET).layers} == {1, 2}


def test_capsnet_takes_another_copy_of_the_votes_in_each_routing_step() -> None:
    slices = [node for node in nodes(CAPSNET) if node.op == "slice_axis"]
    assert [(layer_of(node), node.attributes["begin"], node.attributes["end"]) for node in slices] == [
        (f"DynamicRouting/2/Net/{layer}/2", str(step), str(step + 1))
        for step in range(capsnet.ROUTING_STEPS)
        for layer in ("capsule/s", "dots")
    ]


def test_capsnet_hands_the_state_of_a_routing_step_to_the_next_one() -> None:
    written = nodes(CAPSNET)
    sums = [n for n, node in enumerate(written) if layer_of(node) == "DynamicRouting/2/Net/new_b"]
    first, last = ([layer_of(node) for node in written if any(entry.node == n for entry in node.inputs)] for n in sums)
    assert first == ["DynamicRouting/2/Net/capsule/c/1", "DynamicRouting/2/Net/new_b", "DynamicRouting/3"]
    assert last == ["DynamicRouting/3"]


def test_a_constant_of_the_architecture_is_a_layer_that_holds_an_array() -> None:
    found = {a.file: [layer.name for layer in graph(a).layers if layer.kind is Kind.CONSTANT] for a in ALL}
    assert {file: names for file, names in found.items() if names} == {
        CAPSNET.file: ["PrimaryPredVects/2"],
        YOLO_V2.file: [f"BoxTransformation/{name}" for name in ("Grid", "Anchors", "Scale")],
    }


@pytest.mark.parametrize(
    ("architecture", "boxes", "classes"), [(SSD_300, 8732, 20), (SSD_512, 24564, 80)], ids=["300", "512"]
)
def test_ssd_reads_all_boxes_of_all_its_scales(architecture: Architecture, boxes: int, classes: int) -> None:
    shapes = {str(layer_of(node)): shape_of(node) for node in nodes(architecture) if node.op == "Reshape"}
    offsets = [shape for name, shape in shapes.items() if name.endswith("multiboxLocs/reshape")]
    scores = [shape for name, shape in shapes.items() if name.endswith("multiboxClasses/2")]

    assert sum(per_place * height * width for _, per_place, _, height, width in offsets) == boxes
    assert [(a, h, w) for _, a, _, h, w in offsets] == [(a, h, w) for _, a, _, h, w in scores]
    assert {columns for _, _, columns, _, _ in offsets} == {4}
    # The background is a class until the softmax is done.
    assert {columns for _, _, columns, _, _ in scores} == {classes + 1}
    assert shapes["2/reshapePoint"] == (0, boxes, 2, 2)
    assert architecture.classes == classes


def test_ssd_pads_in_layers_of_their_own_only_where_300_pixels_force_it() -> None:
    pads = {a.file: [layer.name for layer in graph(a).layers if layer.kind is Kind.PAD] for a in (SSD_300, SSD_512)}
    assert pads == {SSD_300.file: ["1/1/blockNet4/pool3/1", "1/1/blockNet8/pad2"], SSD_512.file: []}


def test_yolo_joins_the_fine_map_to_the_coarse_one() -> None:
    assert predecessors(YOLO_V2, "Conv/combine") == ["Conv/reshape/3", "Conv/conv_final_1/6"]
    assert predecessors(YOLO_V2, "Conv/conv_final_2/1") == ["Conv/conv512/17"]
    assert predecessors(YOLO_V2, "Conv/conv1024/1") == ["Conv/conv512/17"]


def test_adain_encodes_content_and_style_with_equal_separate_encoders() -> None:
    content, style = (
        [layer for layer in graph(ADAIN).layers if layer.name.startswith(f"encoder_{name}/")]
        for name in ("content", "style")
    )
    assert [layer.op for layer in content] == [layer.op for layer in style]
    for number, encoder in enumerate((content, style)):
        first, *others = encoder
        assert [(feed.layer, feed.output) for feed in first.feeds] == [(None, number)]
        assert [[feed.layer for feed in layer.feeds] for layer in others] == [[layer.index] for layer in encoder[:-1]]


def test_adain_gives_the_content_the_style_s_deviation_and_mean() -> None:
    assert predecessors(ADAIN, "adaIN/v_norm_2") == ["adaIN/v_norm_1", "adaIN/s_v_br"]
    assert predecessors(ADAIN, "adaIN/m_shift_2") == ["adaIN/v_norm_2", "adaIN/s_m_br"]


def test_cyclegans_share_two_files() -> None:
    assert [row.id for row in CYCLEGAN.rows] == [26, 27, 28, 29, 31, 33, 34, 35]
    assert [row.id for row in CYCLEGAN_REFLECT.rows] == [30, 32]


@pytest.mark.parametrize(("architecture", "first"), [(CYCLEGAN, 12), (CYCLEGAN_REFLECT, 14)], ids=ids)
def test_a_block_of_cyclegan_adds_to_the_block_before(architecture: Architecture, first: int) -> None:
    assert predecessors(architecture, f"{first}/2") == [f"{first}/1/7", f"{first - 1}"]
    for block in range(first + 1, first + cyclegan.BLOCKS):
        assert predecessors(architecture, f"{block}/2") == [f"{block}/1/7", f"{block - 1}/2"]


def test_pix2pix_joins_each_size_on_the_way_up_with_the_same_size_on_the_way_down() -> None:
    joins = {layer.name: predecessors(PIX2PIX, layer.name) for layer in layers(PIX2PIX) if layer.kind is Kind.CONCAT}
    assert joins == {
        "10": ["9", "8"],
        "18": ["17", "16"],
        "26": ["25", "24"],
        "33": ["32", "31"],
        "40": ["39", "38"],
        "47": ["46", "45"],
        # The outermost map is the only one that is not normalized on the way down.
        "52": ["51", "50"],
    }


def test_colornet_reads_the_image_twice() -> None:
    for architecture in (COLORNET_IMAGENET, COLORNET_PLACES):
        readers = [layer.name for layer in layers(architecture) if any(feed.layer is None for feed in layer.feeds)]
        assert readers == ["1/1", "2/1"]
        assert predecessors(architecture, "3") == ["1/16", "2/29"]


def test_the_colornets_differ_in_the_convolution_after_the_join() -> None:
    pairs = zip(nodes(COLORNET_IMAGENET), nodes(COLORNET_PLACES), strict=True)
    assert {layer_of(imagenet) for imagenet, places in pairs if imagenet != places} == {"4/1"}


def layer_of(node: SymbolNode) -> str | None:
    return node.attributes.get(LAYER_ATTRIBUTE)


def shape_of(node: SymbolNode) -> tuple[int, ...]:
    return tuple(int(size) for size in node.attributes["shape"].strip("()").split(","))


def predecessors(architecture: Architecture, name: str) -> list[str]:
    found = graph(architecture)
    (index,) = [layer.index for layer in found.layers if layer.name == name]
    return [found.layers[source].name for source in found.predecessors[index]]


def layers(architecture: Architecture) -> tuple[Layer, ...]:
    return graph(architecture).layers


def nodes(architecture: Architecture) -> tuple[SymbolNode, ...]:
    return symbol_file(architecture).nodes


@cache
def symbol_file(architecture: Architecture) -> SymbolFile:
    return parse_symbol(architecture.build(), architecture.file)


@cache
def graph(architecture: Architecture) -> LayerGraph:
    """What the reader makes of the file, without shapes, which only a framework infers."""
    file = symbol_file(architecture)
    unknown = [[TensorType(None)]] * len(file.nodes)
    return build_graph(InferredFile(file, variable_roles(file), unknown), architecture.file)
