"""A recogniser of text lines: convolutions, then two bidirectional LSTMs over the columns of the image."""

from sample_models.builders.onnx.graph import LEFT_OUT, Graph

_HIDDEN, _LETTERS = 256, 37
_HALVE = {"kernel_shape": [2, 2], "strides": [2, 2], "pads": [0, 0, 0, 0]}
# Halves the height and keeps the width.
_FLATTEN = {"kernel_shape": [2, 2], "strides": [2, 1], "pads": [0, 1, 0, 1]}


def crnn() -> bytes:
    """Return the CRNN of Shi, Bai and Yao (2015)."""
    net = Graph()
    x = net.input("image", "float32", "batch", 1, 32, "width")
    with net.scope("cnn"):
        x = net.op("MaxPool", _conv(net, x, 0, 1, 64), **_HALVE)
        x = net.op("MaxPool", _conv(net, x, 1, 64, 128), **_HALVE)
        x = _conv(net, x, 2, 128, 256, norm=True)
        x = net.op("MaxPool", _conv(net, x, 3, 256, 256), **_FLATTEN)
        x = _conv(net, x, 4, 256, 512, norm=True)
        x = net.op("MaxPool", _conv(net, x, 5, 512, 512), **_FLATTEN)
        x = _conv(net, x, 6, 512, 512, kernel=2, norm=True)
    x = net.op("Transpose", net.op("Squeeze", x, net.ints(2)), perm=[2, 0, 1])
    for number, (inputs, outputs) in enumerate(((512, _HIDDEN), (_HIDDEN, _LETTERS))):
        with net.scope(f"rnn.{number}"):
            x = _embedded(net, _both_directions(net, x, inputs), outputs)
    net.output(net.op("LogSoftmax", x, axis=2), "letters", "float32", "columns", "batch", _LETTERS)
    return net.rendered()


def _conv(net: Graph, x: str, number: int, inputs: int, filters: int, kernel: int = 3, *, norm: bool = False) -> str:
    with net.scope(f"conv{number}"):
        weights = net.weight("weight", filters, inputs, kernel, kernel), net.weight("bias", filters)
        pad = 1 if kernel == 3 else 0
        x = net.op("Conv", x, *weights, kernel_shape=[kernel] * 2, pads=[pad] * 4, strides=[1, 1])
    if norm:
        with net.scope(f"norm{number}"):
            learned = [net.weight(name, filters) for name in ("weight", "bias", "running_mean", "running_var")]
            x = net.op("BatchNormalization", x, *learned, epsilon=1e-5)
    return net.op("Relu", x)


def _both_directions(net: Graph, x: str, inputs: int) -> str:
    """A bidirectional LSTM whose first states are zeros for each image of the batch."""
    with net.scope("rnn"):
        zeros = [net.filled(0, 2, net.size(x, 1), _HIDDEN) for _ in range(2)]
        weights = (
            net.weight("W", 2, 4 * _HIDDEN, inputs),
            net.weight("R", 2, 4 * _HIDDEN, _HIDDEN),
            net.weight("B", 2, 8 * _HIDDEN),
        )
        made, _, _ = net.ops("LSTM", 3, x, *weights, LEFT_OUT, *zeros, direction="bidirectional", hidden_size=_HIDDEN)
        return net.op("Reshape", net.op("Transpose", made, perm=[0, 2, 1, 3]), net.ints(0, 0, -1))


def _embedded(net: Graph, x: str, outputs: int) -> str:
    columns, batch = net.size(x, 0), net.size(x, 1)
    rows = net.reshape(x, net.op("Mul", columns, batch), 2 * _HIDDEN)
    with net.scope("embedding"):
        rows = net.gemm(rows, 2 * _HIDDEN, outputs)
    return net.reshape(rows, columns, batch, -1)
