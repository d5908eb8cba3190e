"""A detector of the YOLO family in its smallest size, with open axes: its head computes anchors from shapes."""

from onnx import TensorProto

from sample_models.builders.onnx.graph import LEFT_OUT, Graph

_CLASSES, _BINS = 80, 16
_STRIDES = (8, 16, 32)


def yolov8n() -> bytes:
    """Return YOLOv8n."""
    net = Graph()
    image = net.input("images", "float32", "batch", 3, "height", "width")
    x = _conv(net, image, "model.0", 3, 16, 3, 2)
    x = _conv(net, x, "model.1", 16, 32, 3, 2)
    x = _c2f(net, x, "model.2", 32, 32, 1, shortcut=True)
    x = _conv(net, x, "model.3", 32, 64, 3, 2)
    fine = _c2f(net, x, "model.4", 64, 64, 2, shortcut=True)
    x = _conv(net, fine, "model.5", 64, 128, 3, 2)
    middle = _c2f(net, x, "model.6", 128, 128, 2, shortcut=True)
    x = _conv(net, middle, "model.7", 128, 256, 3, 2)
    x = _c2f(net, x, "model.8", 256, 256, 1, shortcut=True)
    coarse = _pyramid_pooling(net, x, "model.9", 256)
    x = _concat(net, "model.11", _upsample(net, coarse, "model.10"), middle)
    joined = _c2f(net, x, "model.12", 384, 128, 1)
    x = _concat(net, "model.14", _upsample(net, joined, "model.13"), fine)
    fine = _c2f(net, x, "model.15", 192, 64, 1)
    x = _concat(net, "model.17", _conv(net, fine, "model.16", 64, 64, 3, 2), joined)
    middle = _c2f(net, x, "model.18", 192, 128, 1)
    x = _concat(net, "model.20", _conv(net, middle, "model.19", 128, 128, 3, 2), coarse)
    coarse = _c2f(net, x, "model.21", 384, 256, 1)
    with net.scope("model.22"):
        found = _head(net, {fine: 64, middle: 128, coarse: 256})
    net.output(found, "output0", "float32", "batch", 4 + _CLASSES, "anchors")
    return net.rendered()


def _plain_conv(net: Graph, x: str, inputs: int, filters: int, kernel: int, stride: int = 1) -> str:
    weights = net.weight("weight", filters, inputs, kernel, kernel), net.weight("bias", filters)
    window = {"kernel_shape": [kernel] * 2, "strides": [stride] * 2, "pads": [kernel // 2] * 4}
    return net.op("Conv", x, *weights, dilations=[1, 1], group=1, **window)


def _conv(net: Graph, x: str, name: str, inputs: int, filters: int, kernel: int, stride: int = 1) -> str:
    with net.scope(name):
        with net.scope("conv"):
            x = _plain_conv(net, x, inputs, filters, kernel, stride)
        with net.scope("act"):
            return net.op("Mul", x, net.op("Sigmoid", x))


def _c2f(net: Graph, x: str, name: str, inputs: int, filters: int, bottlenecks: int, *, shortcut: bool = False) -> str:
    """A block that splits its channels and keeps the result of every bottleneck."""
    half = filters // 2
    with net.scope(name):
        x = _conv(net, x, "cv1", inputs, filters, 1)
        parts = net.ops("Split", 2, x, net.ints(half, half), axis=1)
        for number in range(bottlenecks):
            with net.scope(f"m.{number}"):
                made = _conv(net, _conv(net, parts[-1], "cv1", half, half, 3), "cv2", half, half, 3)
                parts.append(net.op("Add", parts[-1], made) if shortcut else made)
        return _conv(net, net.op("Concat", *parts, axis=1), "cv2", half * len(parts), filters, 1)


def _pyramid_pooling(net: Graph, x: str, name: str, filters: int) -> str:
    window = {"kernel_shape": [5, 5], "strides": [1, 1], "pads": [2] * 4, "ceil_mode": 0}
    with net.scope(name):
        parts = [_conv(net, x, "cv1", filters, filters // 2, 1)]
        with net.scope("m"):
            for _ in range(3):
                parts.append(net.op("MaxPool", parts[-1], **window))
        return _conv(net, net.op("Concat", *parts, axis=1), "cv2", 2 * filters, filters, 1)


def _upsample(net: Graph, x: str, name: str) -> str:
    how = {"coordinate_transformation_mode": "asymmetric", "mode": "nearest", "nearest_mode": "floor"}
    with net.scope(name):
        scales = net.constant((1, 1, 2, 2), "float32")
        return net.op("Resize", x, LEFT_OUT, scales, cubic_coeff_a=-0.75, **how)


def _concat(net: Graph, name: str, *parts: str) -> str:
    with net.scope(name):
        return net.op("Concat", *parts, axis=1)


def _head(net: Graph, levels: dict[str, int]) -> str:
    """Return the boxes and class scores of all anchors."""
    made = []
    for number, (x, channels) in enumerate(levels.items()):
        boxes = _branch(net, x, f"cv2.{number}", channels, 64, 4 * _BINS)
        classes = _branch(net, x, f"cv3.{number}", channels, 80, _CLASSES)
        made.append(net.op("Concat", boxes, classes, axis=1))
    batch = net.size(made[0], 0)
    flat = [net.reshape(level, batch, 4 * _BINS + _CLASSES, -1) for level in made]
    anchors, strides = _anchors(net, made)
    both = net.op("Concat", *flat, axis=2)
    boxes, classes = net.ops("Split", 2, both, net.ints(4 * _BINS, _CLASSES), axis=1)
    boxes = net.op("Mul", _box(net, _distances(net, boxes), net.unsqueeze(anchors, 0)), strides)
    return net.op("Concat", boxes, net.op("Sigmoid", classes), axis=1)


def _branch(net: Graph, x: str, name: str, inputs: int, filters: int, outputs: int) -> str:
    with net.scope(name):
        x = _conv(net, x, f"{name}.0", inputs, filters, 3)
        x = _conv(net, x, f"{name}.1", filters, filters, 3)
        with net.scope(f"{name}.2"):
            return _plain_conv(net, x, filters, outputs, 1)


def _anchors(net: Graph, levels: list[str]) -> tuple[str, str]:
    """Return the centre of each anchor, and its stride, from the sizes of the levels."""
    points, strides = [], []
    for level, stride in zip(levels, _STRIDES, strict=True):
        height, width = net.size(level, 2), net.size(level, 3)
        rows, columns = _grid(net, _centres(net, height), _centres(net, width))
        pairs = net.op("Concat", net.unsqueeze(columns, -1), net.unsqueeze(rows, -1), axis=-1)
        points.append(net.reshape(pairs, -1, 2))
        strides.append(net.filled(stride, net.op("Mul", height, width), 1))
    return (
        net.op("Transpose", net.op("Concat", *points, axis=0), perm=[1, 0]),
        net.op("Transpose", net.op("Concat", *strides, axis=0), perm=[1, 0]),
    )


def _centres(net: Graph, count: str) -> str:
    numbers = net.op("Range", net.number(0), net.op("Cast", count, to=TensorProto.FLOAT), net.number(1))
    return net.op("Add", numbers, net.number(0.5))


def _grid(net: Graph, down: str, across: str) -> tuple[str, str]:
    """Return the row and the column of each point of a grid."""
    lengths = net.op("Shape", down), net.op("Shape", across)
    both, one = net.op("Concat", *lengths, axis=0), net.ints(1)
    rows = net.op("Reshape", down, net.op("Concat", lengths[0], one, axis=0))
    columns = net.op("Reshape", across, net.op("Concat", one, lengths[1], axis=0))
    return net.op("Expand", rows, both), net.op("Expand", columns, both)


def _distances(net: Graph, boxes: str) -> str:
    """Return the distances of the four sides: the mean of each distribution over the bins."""
    with net.scope("dfl"):
        batch, count = net.size(boxes, 0), net.size(boxes, 2)
        bins = net.op("Transpose", net.reshape(boxes, batch, 4, _BINS, count), perm=[0, 2, 1, 3])
        shares = net.op("Softmax", bins, axis=1)
        with net.scope("conv"):
            weight = net.weight("weight", 1, _BINS, 1, 1)
            window = {"kernel_shape": [1, 1], "strides": [1, 1], "pads": [0] * 4, "dilations": [1, 1], "group": 1}
            means = net.op("Conv", shares, weight, **window)
        return net.reshape(means, batch, 4, count)


def _box(net: Graph, distances: str, anchors: str) -> str:
    """Return centre and size of each box. The exporter writes the halves of an axis as slices of computed length."""
    half = net.op("Div", net.op("Add", net.size(distances, 1), net.constant(1, "int64")), net.constant(2, "int64"))
    ends = [net.unsqueeze(net.op("Mul", half, net.constant(times, "int64")), 0) for times in (1, 2)]
    before = net.op("Slice", distances, net.ints(0), ends[0], net.ints(1))
    after = net.op("Slice", distances, ends[0], ends[1], net.ints(1))
    first, last = net.op("Sub", anchors, before), net.op("Add", anchors, after)
    centre = net.op("Div", net.op("Add", first, last), net.number(2))
    return net.op("Concat", centre, net.op("Sub", last, first), axis=1)
