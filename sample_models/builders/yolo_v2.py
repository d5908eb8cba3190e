"""YOLO V2: one look at the image, five boxes at each of 13x13 places (Redmon and Farhadi, 2017)."""

from sample_models.builders.architecture import Architecture, Row
from sample_models.builders.containers import Step, chain
from sample_models.builders.network import Network
from sample_models.builders.symbol_writer import Output

# Filters of the convolutions after each halving of the image; the narrow ones see one pixel.
TRUNK = ((64,), (128, 64, 128), (256, 128, 256), (512, 256, 512, 256, 512))
TOP = (1024, 512, 1024, 512, 1024)
BOXES = 5
CLASSES = 80
GRID = 13
PLACES = BOXES * GRID * GRID
# What the network says of a box: centre, size, confidence, class scores.
FACTS = 2 + 2 + 1 + CLASSES


def _conv(filters: int, kernel: int) -> tuple[Step, ...]:
    return (
        lambda net, x, name: net.conv(x, name, filters, kernel, pad=kernel // 2),
        lambda net, x, name: net.batch_norm(x, name, eps=1e-6),
        lambda net, x, name: net.leaky_relu(x, name, 0.1),
    )


def _halve() -> tuple[Step, ...]:
    return (
        lambda net, x, name: net.pad(x, name, 0, 1),
        lambda net, x, name: net.max_pool(x, name, kernel=2, stride=2),
    )


def _build() -> bytes:
    net = Network()
    image = net.input("data", 1, 3, 416, 416)
    with net.scope("Conv"):
        facts = _features(net, image)
    with net.scope("Region"):
        coordinates, confidence, scores = _read(net, facts)
    with net.scope("BoxTransformation"):
        boxes = _boxes(net, coordinates)
    return net.render(boxes, scores, confidence)


def _features(net: Network, x: Output) -> Output:
    x = chain(*_conv(32, 3))(net, x, "conv32")
    for filters in TRUNK:
        x = _halved(net, x, filters)
    fine = chain(*_conv(64, 1))(net, x, "conv_final_2")
    fine = _reorganised(net, fine, "reshape")
    x = _halved(net, x, TOP)
    x = chain(*_conv(1024, 3), *_conv(1024, 3))(net, x, "conv_final_1")
    x = net.concat("combine", fine, x)
    x = chain(*_conv(1024, 3))(net, x, "conv_final_3")
    with net.scope("end"):
        return net.conv(x, "1", BOXES * FACTS, kernel=1)


def _halved(net: Network, x: Output, filters: tuple[int, ...]) -> Output:
    widest = max(filters)
    convs = (step for width in filters for step in _conv(width, kernel=3 if width == widest else 1))
    return chain(*_halve(), *convs)(net, x, f"conv{widest}")


def _reorganised(net: Network, x: Output, name: str) -> Output:
    """Half the height and width, four times the channels, as Darknet lays them out."""
    with net.scope(name):
        x = net.reshape(x, "1", 0, 16 * 2 * GRID, 2, 2 * GRID, 2)
        x = net.transpose(x, "2", 0, 2, 4, 1, 3)
        return net.reshape(x, "3", 0, 4 * 64, GRID, GRID)


def _read(net: Network, facts: Output) -> tuple[Output, Output, Output]:
    x = net.reshape(facts, "Reshape", 0, BOXES, FACTS, GRID, GRID)
    x = net.transpose(x, "Transpose", 0, 2, 1, 3, 4)
    with net.scope("ClassScore"):
        scores = net.softmax(_part(net, x, "1", 5, FACTS), "2", axis=1)
        scores = _one_row_each(net, scores, ("3", "4"), CLASSES)
    with net.scope("Confidence"):
        with net.layer("1", "slice") as writer:
            confidence = writer.op("slice_axis", x, axis=1, begin=4, end=5)
            confidence = writer.op("Reshape", confidence, shape=(0, BOXES, GRID, GRID))
        confidence = net.flatten(net.sigmoid(confidence, "2"), "3")
    with net.scope("Centers"):
        centres = net.sigmoid(_part(net, x, "1", 0, 2), "2")
    sizes = _part(net, x, "Sizes", 2, 4)
    return net.concat("Coordinates", centres, sizes), confidence, scores


def _boxes(net: Network, coordinates: Output) -> Output:
    centres = _part(net, coordinates, "Centers", 0, 2)
    grid = net.constant("Grid", 1, 2, BOXES, GRID, GRID)
    centres = net.single("ScaledCenters", "combine", "broadcast_add", centres, grid)
    with net.scope("Sizes"):
        sizes = net.single("2", "elementwise", "exp", _part(net, coordinates, "1", 2, 4))
    anchors = net.constant("Anchors", 1, 2, BOXES, GRID, GRID)
    sizes = net.single("ScaledSizes", "combine", "broadcast_mul", sizes, anchors)
    x = net.concat("ScaledCoord", centres, sizes)
    scale = net.constant("Scale", 1, 4, BOXES, GRID, GRID)
    x = net.single("NormalizedCoord", "combine", "broadcast_div", x, scale)
    return _one_row_each(net, x, ("FlattenedCoord", "CoordList"), 4)


def _part(net: Network, x: Output, name: str, begin: int, end: int) -> Output:
    return net.single(name, "slice", "slice_axis", x, axis=1, begin=begin, end=end)


def _one_row_each(net: Network, x: Output, names: tuple[str, str], columns: int) -> Output:
    """Lists the boxes of all places below each other."""
    flatten, transpose = names
    x = net.single(flatten, "flatten", "Reshape", x, shape=(0, columns, PLACES))
    return net.transpose(x, transpose, 0, 2, 1)


ARCHITECTURES = (
    Architecture(
        file="yolo_v2",
        build=_build,
        rows=(Row(41, "YOLO V2 Trained on MS-COCO Data", "OD"),),
        classes=CLASSES,
    ),
)
