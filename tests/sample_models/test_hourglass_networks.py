"""The hourglass networks of Table 1: face alignment, depth in the wild, volumetric regression."""

import json
from collections import Counter
from dataclasses import dataclass
from functools import cache

import pytest

from sample_models.builders import depth_in_the_wild, face_alignment, volumetric_regression
from sample_models.builders.architecture import Architecture

FACE_ALIGNMENT = face_alignment.ARCHITECTURES[0]
DEPTH_IN_THE_WILD = depth_in_the_wild.ARCHITECTURES[0]
VOLUMETRIC_REGRESSION = volumetric_regression.ARCHITECTURES[0]
ALL = [FACE_ALIGNMENT, DEPTH_IN_THE_WILD, VOLUMETRIC_REGRESSION]
IMAGE_CHANNELS = 3

every_network = pytest.mark.parametrize("architecture", ALL, ids=lambda architecture: architecture.file)


@dataclass(frozen=True)
class Data:
    """What flows along an edge: its channels, and how often the image has been halved."""

    channels: int
    halvings: int


@dataclass(frozen=True)
class SeenLayer:
    name: str
    kind: str
    parameters: tuple[tuple[str, str], ...]
    inputs: tuple[Data, ...]
    output: Data


@every_network
def test_a_network_has_one_image_input_and_one_output(architecture: Architecture) -> None:
    document = json.loads(architecture.build())
    with_shape = [node["name"] for node in document["nodes"] if "__shape__" in node.get("attrs", {})]

    unused = set(range(len(document["nodes"]))) - {
        source for node in document["nodes"] for source, *_ in node["inputs"]
    }

    assert with_shape == ["data"]
    assert [node for node, *_ in document["heads"]] == list(unused)
    assert len(unused) == 1


@every_network
def test_a_layer_is_named_once(architecture: Architecture) -> None:
    named = [node["attrs"]["__layer__"] for node in json.loads(architecture.build())["nodes"] if node["op"] != "null"]
    # The last layer of the depth network takes two operators.
    assert len(named) - len(set(named)) == (1 if architecture is DEPTH_IN_THE_WILD else 0)


@pytest.mark.parametrize(
    ("architecture", "counts"),
    [
        (
            FACE_ALIGNMENT,
            {
                "elementwise": 360,
                "convolution": 194,
                "batchnorm": 184,
                "concat": 118,
                "combine": 78,
                "pooling": 17,
                "resize": 16,
            },
        ),
        (
            DEPTH_IN_THE_WILD,
            {
                "convolution": 156,
                "batchnorm": 155,
                "elementwise": 155,
                "concat": 22,
                "pooling": 4,
                "resize": 4,
                "combine": 4,
                "slice": 1,
            },
        ),
        (
            VOLUMETRIC_REGRESSION,
            {"elementwise": 363, "convolution": 276, "batchnorm": 273, "combine": 99, "pooling": 9, "resize": 9},
        ),
    ],
)
def test_the_layers_of_each_kind_are_as_many_as_the_paper_counts(
    architecture: Architecture, counts: dict[str, int]
) -> None:
    assert Counter(layer.kind for layer in layers(architecture)) == counts


@pytest.mark.parametrize(
    ("architecture", "in_degrees"),
    [
        # Three times a stack hands on its input, its features and its heat maps.
        (FACE_ALIGNMENT, {("concat", 2): 118, ("combine", 2): 75, ("combine", 3): 3}),
        (DEPTH_IN_THE_WILD, {("concat", 4): 22, ("combine", 2): 4}),
        (VOLUMETRIC_REGRESSION, {("combine", 2): 99}),
    ],
)
def test_branches_meet_where_the_architecture_says(
    architecture: Architecture, in_degrees: dict[tuple[str, int], int]
) -> None:
    merges = [layer for layer in layers(architecture) if layer.kind in ("combine", "concat")]
    assert Counter((layer.kind, len(layer.inputs)) for layer in merges) == in_degrees


@every_network
def test_branches_that_meet_are_of_one_size(architecture: Architecture) -> None:
    for layer in layers(architecture):
        assert len({data.halvings for data in layer.inputs}) == 1, layer.name
        if layer.kind == "combine":
            assert len({data.channels for data in layer.inputs}) == 1, layer.name


@pytest.mark.parametrize(
    ("architecture", "enlarged_after_halvings"),
    [
        # Four hourglasses on images that the stem has halved twice, each four levels deep.
        (FACE_ALIGNMENT, {3: 4, 4: 4, 5: 4, 6: 4}),
        (DEPTH_IN_THE_WILD, {1: 1, 2: 1, 3: 1, 4: 1}),
        # Four levels nest in the branch of full resolution: none sees an image that another has halved.
        # The head enlarges the volume to the size of the image.
        (VOLUMETRIC_REGRESSION, {3: 8, 2: 1}),
    ],
)
def test_an_hourglass_is_as_deep_as_the_architecture_says(
    architecture: Architecture, enlarged_after_halvings: dict[int, int]
) -> None:
    enlarged = [layer for layer in layers(architecture) if layer.kind == "resize"]
    assert Counter(layer.inputs[0].halvings for layer in enlarged) == enlarged_after_halvings


@pytest.mark.parametrize(
    ("architecture", "distinct"), [(FACE_ALIGNMENT, 112), (DEPTH_IN_THE_WILD, 90), (VOLUMETRIC_REGRESSION, 40)]
)
def test_layers_repeat_as_often_as_the_authors_files_show(architecture: Architecture, distinct: int) -> None:
    assert len({(layer.kind, layer.parameters, layer.inputs) for layer in layers(architecture)}) == distinct


@cache
def layers(architecture: Architecture) -> tuple[SeenLayer, ...]:
    """The layers with what flows through them, in the order of the file."""
    nodes = json.loads(architecture.build())["nodes"]
    flow: dict[int, Data] = {}
    seen: list[SeenLayer] = []
    for index, node in enumerate(nodes):
        attributes = node.get("attrs", {})
        if node["name"] == "data":
            flow[index] = Data(IMAGE_CHANNELS, halvings=0)
        if node["op"] == "null":
            continue
        inputs = tuple(flow[source] for source, *_ in node["inputs"] if source in flow)
        flow[index] = _passed_on(node["op"], attributes, inputs)
        name, kind = attributes["__layer__"], attributes["__kind__"]
        if seen and seen[-1].name == name:
            continue
        parameters = tuple(sorted((key, value) for key, value in attributes.items() if key != "__layer__"))
        seen.append(SeenLayer(name, kind, parameters, inputs, flow[index]))
    return tuple(seen)


def _passed_on(op: str, attributes: dict[str, str], inputs: tuple[Data, ...]) -> Data:
    first = inputs[0]
    match op:
        case "Convolution":
            return Data(int(attributes["num_filter"]), first.halvings + (attributes["stride"] == "(2, 2)"))
        case "Concat":
            return Data(sum(data.channels for data in inputs), first.halvings)
        case "Pooling":
            return Data(first.channels, first.halvings + 1)
        case "UpSampling":
            return Data(first.channels, first.halvings - 1)
        case "_contrib_BilinearResize2D":
            return Data(first.channels, halvings=0)
    return first
