"""SSD: a VGG-16 trunk, and boxes and class scores read at several scales (Liu et al., 2016)."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import count

from sample_models.builders.architecture import Architecture, Row
from sample_models.builders.network import Network
from sample_models.builders.symbol_writer import Output


@dataclass(frozen=True, slots=True)
class Extra:
    """The convolutions from one scale to the next: a narrow one of single pixels, then a wide one."""

    narrow: int
    wide: int
    kernel: int = 3
    stride: int = 1
    pad: int = 0
    # The padding is a layer of its own.
    pads_first: bool = False


@dataclass(frozen=True, slots=True)
class Scale:
    """A map that boxes are read from: its height and width, and the boxes at each place."""

    size: int
    shapes: int


@dataclass(frozen=True, slots=True)
class Variant:
    """One published network; the background is one of its classes."""

    size: int
    classes: int
    extras: tuple[Extra, ...]
    scales: tuple[Scale, ...]

    @property
    def boxes(self) -> int:
        return sum(scale.size**2 * scale.shapes for scale in self.scales)


SSD_300 = Variant(
    size=300,
    classes=21,
    extras=(
        Extra(256, 512, stride=2, pad=1, pads_first=True),
        Extra(128, 256, stride=2, pad=1),
        Extra(128, 256),
        Extra(128, 256),
    ),
    scales=(Scale(38, 4), Scale(19, 6), Scale(10, 6), Scale(5, 6), Scale(3, 4), Scale(1, 4)),
)
SSD_512 = Variant(
    size=512,
    classes=81,
    extras=(
        Extra(256, 512, stride=2, pad=1),
        Extra(128, 256, stride=2, pad=1),
        Extra(128, 256, stride=2, pad=1),
        Extra(128, 256, stride=2, pad=1),
        Extra(128, 256, kernel=4, pad=1),
    ),
    scales=(Scale(64, 4), Scale(32, 6), Scale(16, 6), Scale(8, 6), Scale(4, 6), Scale(2, 4), Scale(1, 4)),
)


def _ssd(variant: Variant) -> bytes:
    net = Network()
    image = net.input("data", 1, 3, variant.size, variant.size)
    with net.scope("1"):
        with net.scope("1"):
            maps = _maps(net, image, variant)
            heads = [
                _head(net, x, number, scale, variant.classes)
                for number, (x, scale) in enumerate(zip(maps, variant.scales, strict=True), start=1)
            ]
        places = map(str, count(2))
        scores = _joined(net, places, [scores for scores, _ in heads], variant.classes - 1)
        offsets = _joined(net, places, [offsets for _, offsets in heads], 4)
    with net.scope("2"):
        boxes = _decoded(net, offsets, variant)
    return net.render(boxes, scores)


def _maps(net: Network, image: Output, variant: Variant) -> list[Output]:
    """Return the maps that the scales are read from."""
    with net.scope("blockNet4"):
        x = _trunk(net, image, variant.size)
    with net.scope("multiboxLayer1"):
        maps = [_channel_norm(net, x, variant.scales[0].size)]
    with net.scope("blockNet7"):
        x = net.max_pool(x, "pool4", kernel=2, stride=2)
        x = _group(net, x, 5, 512, 3)
        x = net.max_pool(x, "pool5", kernel=3, pad=1)
        x = _conv(net, x, "conv6", 1024, 3, pad=6, dilation=6)
        x = _conv(net, x, "conv7", 1024, 1)
    maps.append(x)
    for number, extra in enumerate(variant.extras, start=8):
        with net.scope(f"blockNet{number}"):
            x = _extra(net, x, number, extra)
        maps.append(x)
    return maps


def _trunk(net: Network, x: Output, size: int) -> Output:
    x = _group(net, x, 1, 64, 2)
    for number, (filters, convs) in enumerate(((128, 2), (256, 3), (512, 3)), start=2):
        x = _halve(net, x, f"pool{number - 1}", size)
        size = (size + 1) // 2
        x = _group(net, x, number, filters, convs)
    return x


def _halve(net: Network, x: Output, name: str, size: int) -> Output:
    """A pool that rounds an odd size up, for which the published network pads in a layer of its own."""
    if size % 2 == 0:
        return net.max_pool(x, name, kernel=2, stride=2)
    with net.scope(name):
        return net.max_pool(net.pad(x, "1", 0, 1), "2", kernel=2, stride=2)


def _conv(
    net: Network, x: Output, name: str, filters: int, kernel: int, stride: int = 1, pad: int = 0, dilation: int = 1
) -> Output:
    with net.scope(name):
        return net.relu(net.conv(x, "1", filters, kernel, stride, pad, dilation=dilation), "2")


def _group(net: Network, x: Output, number: int, filters: int, convs: int) -> Output:
    for letter in "abc"[:convs]:
        x = _conv(net, x, f"conv{number}{letter}", filters, 3, pad=1)
    return x


def _extra(net: Network, x: Output, number: int, extra: Extra) -> Output:
    x = _conv(net, x, f"conv{number}a", extra.narrow, 1)
    pad = extra.pad
    if extra.pads_first:
        x, pad = net.pad(x, "pad2", pad, pad), 0
    return _conv(net, x, f"conv{number}b", extra.wide, extra.kernel, extra.stride, pad)


def _channel_norm(net: Network, x: Output, size: int) -> Output:
    """Brings each pixel to unit length and scales it: the root of a softmax of logarithms is such a division."""
    with net.scope("channelNorm1"):
        x = net.transpose(x, "1", 0, 3, 2, 1)
        with net.layer("2", "elementwise") as writer:
            x = writer.op("log", writer.op("_maximum_scalar", writer.op("square", x), scalar=1e-20))
        x = net.softmax(x, "3")
        x = net.single("4", "elementwise", "sqrt", x)
        x = net.transpose(x, "5", 0, 3, 2, 1)
        return _times_learned(net, x, "6", 512, size, size)


def _head(net: Network, x: Output, number: int, scale: Scale, classes: int) -> tuple[Output, Output]:
    """Class scores without the background's, and what moves and stretches each box."""
    place = (scale.size, scale.size)
    with net.scope(f"multiboxLayer{number}"):
        with net.scope("multiboxClasses"):
            scores = net.conv(x, "1", scale.shapes * classes, kernel=3, pad=1)
            scores = net.reshape(scores, "2", 0, scale.shapes, classes, *place)
            scores = net.softmax(scores, "3", axis=2)
            scores = net.single("4", "slice", "slice_axis", scores, axis=2, begin=1, end=classes)
        with net.scope("multiboxLocs"):
            offsets = net.conv(x, "convloc/1", scale.shapes * 4, kernel=3, pad=1)
            offsets = net.reshape(offsets, "reshape", 0, scale.shapes, 4, *place)
    return scores, offsets


def _joined(net: Network, names: Iterator[str], maps: list[Output], columns: int) -> Output:
    """Lists the boxes of all scales below each other."""
    rows = []
    for x in maps:
        with net.scope(next(names)):
            x = net.transpose(x, "1", 0, 3, 4, 1, 2)
            rows.append(net.single("2", "flatten", "Reshape", x, shape=(0, -1, columns)))
    return net.concat(next(names), *rows)


def _decoded(net: Network, offsets: Output, variant: Variant) -> Output:
    """The corners of each box in pixels, from its default box and what moves and stretches that."""
    boxes = variant.boxes
    x = _centre(net, offsets, "cx", 0, variant)
    width = _extent(net, offsets, "width", 2, variant)
    left = _half_away(net, "minx", "elemwise_sub", x, width)
    y = _centre(net, offsets, "cy", 1, variant)
    height = _extent(net, offsets, "height", 3, variant)
    bottom = _half_away(net, "miny", "elemwise_sub", y, height)
    right = _half_away(net, "maxx", "elemwise_add", x, width)
    top = _half_away(net, "maxy", "elemwise_add", y, height)
    corners = net.concat("cat", left, bottom, right, top)
    corners = net.reshape(corners, "reshape", 0, 4, boxes)
    corners = net.transpose(corners, "transpose", 0, 2, 1)
    return net.reshape(corners, "reshapePoint", 0, boxes, 2, 2)


def _centre(net: Network, offsets: Output, name: str, column: int, variant: Variant) -> Output:
    with net.scope(name):
        x = _column(net, offsets, column)
        x = _times_learned(net, x, "2", variant.boxes)
        with net.layer("3", "combine") as writer:
            x = writer.op("broadcast_add", x, writer.learned("bias", (1, variant.boxes)))
        with net.layer("4", "elementwise") as writer:
            # Images count their rows from the top, boxes from the bottom.
            upwards = writer.op("_rminus_scalar", x, scalar=1.0) if name == "cy" else x
            return writer.op("_mul_scalar", upwards, scalar=float(variant.size))


def _extent(net: Network, offsets: Output, name: str, column: int, variant: Variant) -> Output:
    with net.scope(name):
        x = _column(net, offsets, column)
        with net.layer("2", "elementwise") as writer:
            x = writer.op("exp", writer.op("_mul_scalar", x, scalar=0.2))
        x = _times_learned(net, x, "3", variant.boxes)
        return net.single("4", "elementwise", "_mul_scalar", x, scalar=float(variant.size))


def _column(net: Network, offsets: Output, column: int) -> Output:
    with net.layer("1", "slice") as writer:
        return writer.op("Flatten", writer.op("slice_axis", offsets, axis=2, begin=column, end=column + 1))


def _times_learned(net: Network, x: Output, name: str, *shape: int) -> Output:
    with net.layer(name, "combine") as writer:
        return writer.op("broadcast_mul", x, writer.learned("weight", (1, *shape)))


def _half_away(net: Network, name: str, op: str, centre: Output, extent: Output) -> Output:
    with net.layer(name, "combine") as writer:
        return writer.op(op, centre, writer.op("_mul_scalar", extent, scalar=0.5))


ARCHITECTURES = (
    Architecture(
        file="ssd_vgg_300",
        build=partial(_ssd, SSD_300),
        rows=(Row(39, "SSD-VGG-300 Trained on PASCAL VOC Data", "OD"),),
        classes=20,
    ),
    Architecture(
        file="ssd_vgg_512",
        build=partial(_ssd, SSD_512),
        rows=(Row(40, "SSD-VGG-512 Trained on MS-COCO Data", "OD"),),
        classes=80,
    ),
)
