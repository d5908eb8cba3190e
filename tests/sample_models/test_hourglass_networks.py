"""The hourglass networks of Table 1: face alignment, depth in the wild, volumetric regression."""

import json
from collections import Counter
from dataclasses import dataclass
from functools import cache

import pytest

from sample_models.builders import depth_in_the_wild, face_alignment, volumetric_regression
from sample_models.builders.__main__ import SAMPLES
from sample_models.builders.architecture import Architecture
from sample_models.builders.catalogue import path_of

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
def test_joined_branches_have_equal_sizes(architecture: Architecture) -> None:
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
    nodes = json.loads((SAMPLES / path_of(architecture)).read_bytes())["nodes"]
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
