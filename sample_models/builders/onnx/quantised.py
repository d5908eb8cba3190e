"""A convolutional network with 8-bit weights and activations, as a static quantiser writes it (QDQ)."""

from sample_models.builders.onnx.graph import Graph

# Expansion, filters, number of blocks, and stride of the first of them.
_STAGES = (
    (1, 16, 1, 1),
    (6, 24, 2, 2),
    (6, 32, 3, 2),
    (6, 64, 4, 2),
    (6, 96, 3, 1),
    (6, 160, 3, 2),
    (6, 320, 1, 1),
)
_CLASSES, _LAST = 1000, 1280
# A bias has the scale of the products that it is added to: otherwise ONNX Runtime does not compute with whole numbers.
_SCALE, _WEIGHT_SCALE = 0.0235, 0.01
_BIAS_SCALE = _SCALE * _WEIGHT_SCALE


def mobilenetv2_int8() -> bytes:
    """Return MobileNetV2 with one scale for each filter; the clipping at 6 is part of the scales."""
    net = Graph()
    x = _quantised(net, net.input("input", "float32", "batch", 3, 224, 224), middle=114)
    with net.scope("features"):
        x, width = _conv(net, x, "0", 3, 32, 3, 2), 32
        number = 0
        for expansion, filters, blocks, stride in _STAGES:
            for block in range(blocks):
                number += 1
                x = _bottleneck(net, x, str(number), width, expansion, filters, 1 if block else stride)
                width = filters
        x = _conv(net, x, str(number + 1), width, _LAST, 1)
    x = _quantised(net, net.op("GlobalAveragePool", x))
    x = _quantised(net, net.op("Flatten", x, axis=1))
    with net.scope("classifier"):
        weights = _weight(net, "weight", _CLASSES, _LAST), _bias(net, _CLASSES)
        x = net.op("Gemm", x, *weights, transB=1)
    net.output(_quantised(net, x, middle=128), "scores", "float32", "batch", _CLASSES)
    return net.rendered()


def _bottleneck(net: Graph, x: str, name: str, width: int, expansion: int, filters: int, stride: int) -> str:
    hidden = width * expansion
    with net.scope(name):
        y = x if expansion == 1 else _conv(net, x, "expand", width, hidden, 1)
        y = _conv(net, y, "depthwise", hidden, hidden, 3, stride, groups=hidden)
        y = _conv(net, y, "project", hidden, filters, 1, middle=128)
        if stride > 1 or width != filters:
            return y
        return _quantised(net, net.op("Add", x, y), middle=128)


def _conv(
    net: Graph,
    x: str,
    name: str,
    inputs: int,
    filters: int,
    kernel: int,
    stride: int = 1,
    *,
    groups: int = 1,
    middle: int = 0,
) -> str:
    """A convolution between numbers of 8 bits; `middle` is the number that stands for zero after it."""
    with net.scope(name):
        weights = _weight(net, "weight", filters, inputs // groups, kernel, kernel), _bias(net, filters)
        window = {"kernel_shape": [kernel] * 2, "strides": [stride] * 2, "pads": [kernel // 2] * 4}
        x = net.op("Conv", x, *weights, dilations=[1, 1], group=groups, **window)
        return _quantised(net, x, middle)


def _quantised(net: Graph, x: str, middle: int = 0) -> str:
    """Write a tensor as numbers of 8 bits, and read it as floats again."""
    scale = net.stored(_SCALE, "float32"), net.stored(middle, "uint8")
    return net.op("DequantizeLinear", net.op("QuantizeLinear", x, *scale), *scale)


def _weight(net: Graph, name: str, filters: int, *shape: int) -> str:
    return _dequantised(
        net, net.weight(f"{name}_quantized", filters, *shape, dtype="int8"), name, filters, "int8", _WEIGHT_SCALE
    )


def _bias(net: Graph, filters: int) -> str:
    return _dequantised(
        net, net.weight("bias_quantized", filters, dtype="int32"), "bias", filters, "int32", _BIAS_SCALE
    )


def _dequantised(net: Graph, numbers: str, name: str, filters: int, dtype: str, scale: float) -> str:
    """Read stored numbers as floats, by a scale for each filter."""
    scales = net.weight(f"{name}_scale", filters, value=scale)
    zeros = net.weight(f"{name}_zero_point", filters, dtype=dtype, value=0)
    return net.op("DequantizeLinear", numbers, scales, zeros, axis=0)
