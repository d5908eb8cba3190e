"""Small networks that the method `alone` is calibrated on. They are unlike the models that users measure.

Their layers are of common kinds and short, since short layers show most of what a layer takes beside its computation.
The layers of two networks are shorter than 5 µs in ONNX Runtime.
No layer of a sample model has the shapes of one of theirs.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from dlbricks_tui.models.mxnet.symbol_writer import Output, SymbolWriter
from dlbricks_tui.runtime.traits import Format

if TYPE_CHECKING:
    from onnx import NodeProto, TensorProto

SUFFIXES: Mapping[Format, str] = {Format.MXNET: "-symbol.json", Format.ONNX: ".onnx"}
_INPUT = "data"
_OPSET, _IR_VERSION = 13, 8
_FLOAT, _INT64 = 1, 7


def calibration_nets(form: Format, batch_size: int = 1) -> Mapping[str, bytes]:
    """Return the files of the networks at a batch size by their names; always the same."""
    return {name: _file(build, form, batch_size) for name, build in _NETS.items()}


def _file(build: "Callable[[Net], NetTensor]", form: Format, batch_size: int) -> bytes:
    net = Net(batch_size)
    head = build(net)
    return net.symbol_file(head) if form is Format.MXNET else net.onnx_file(head)


class NetTensor(NamedTuple):
    """The output of a layer: in MXNet's symbol, in the ONNX graph, and its shape."""

    symbol: Output
    onnx: str
    shape: tuple[int, ...]


class Net:
    """Adds each layer to a symbol of MXNet and to an ONNX graph. In the latter constant nodes make the weights."""

    def __init__(self, batch_size: int) -> None:
        self._batch_size = batch_size
        self._symbol = SymbolWriter()
        self._nodes: list[NodeProto] = []
        self._stored: list[TensorProto] = []
        self._input_shape: tuple[int, ...] = ()

    def image(self, channels: int, size: int) -> NetTensor:
        """Add the input."""
        self._input_shape = (self._batch_size, channels, size, size)
        return NetTensor(self._symbol.input(_INPUT, self._input_shape), _INPUT, self._input_shape)

    def conv(self, data: NetTensor, filters: int, kernel: int = 1, stride: int = 1, groups: int = 1) -> NetTensor:
        """Add a convolution with a bias, padded so that a stride of 1 keeps the size."""
        pad = kernel // 2
        window = {"kernel": (kernel, kernel), "stride": (stride, stride), "pad": (pad, pad)}
        symbol = self._symbol.op("Convolution", data.symbol, **window, num_filter=filters, num_group=groups)
        weights = [self._weight((filters, data.shape[1] // groups, kernel, kernel)), self._weight((filters,))]
        onnx = self._node("Conv", data.onnx, *weights, **_window(kernel, stride, pad), group=groups)
        return NetTensor(symbol, onnx, _slid(data, filters, kernel, stride, pad))

    def pool(self, data: NetTensor, kernel: int = 2, stride: int = 2, pad: int = 0, kind: str = "max") -> NetTensor:
        """Add max pooling, or with `avg` average pooling."""
        window = {"kernel": (kernel, kernel), "stride": (stride, stride), "pad": (pad, pad)}
        symbol = self._symbol.op("Pooling", data.symbol, **window, pool_type=kind)
        op = "AveragePool" if kind == "avg" else "MaxPool"
        onnx = self._node(op, data.onnx, **_window(kernel, stride, pad))
        return NetTensor(symbol, onnx, _slid(data, data.shape[1], kernel, stride, pad))

    def whole_mean(self, data: NetTensor) -> NetTensor:
        """Add global average pooling."""
        symbol = self._symbol.op("Pooling", data.symbol, kernel=(1, 1), global_pool=True, pool_type="avg")
        return NetTensor(symbol, self._node("GlobalAveragePool", data.onnx), (data.shape[0], data.shape[1], 1, 1))

    def linear(self, data: NetTensor, units: int) -> NetTensor:
        """Add a fully connected layer with a bias."""
        weights = [self._weight((units, data.shape[1])), self._weight((units,))]
        onnx = self._node("Gemm", data.onnx, *weights, transB=1)
        return NetTensor(self._symbol.op("FullyConnected", data.symbol, num_hidden=units), onnx, (data.shape[0], units))

    def norm(self, data: NetTensor) -> NetTensor:
        """Add batch normalisation."""
        weights = [self._weight((data.shape[1],)) for _ in range(4)]
        onnx = self._node("BatchNormalization", data.onnx, *weights)
        return NetTensor(self._symbol.op("BatchNorm", data.symbol, fix_gamma=False), onnx, data.shape)

    def relu(self, data: NetTensor) -> NetTensor:
        symbol = self._symbol.op("Activation", data.symbol, act_type="relu")
        return NetTensor(symbol, self._node("Relu", data.onnx), data.shape)

    def add(self, one: NetTensor, other: NetTensor) -> NetTensor:
        """Add an elementwise sum."""
        symbol = self._symbol.op("elemwise_add", one.symbol, other.symbol)
        return NetTensor(symbol, self._node("Add", one.onnx, other.onnx), one.shape)

    def join(self, *branches: NetTensor) -> NetTensor:
        """Add a concatenation of channels."""
        symbol = self._symbol.op("Concat", *[each.symbol for each in branches], num_args=len(branches), dim=1)
        onnx = self._node("Concat", *[each.onnx for each in branches], axis=1)
        count, _, *sizes = branches[0].shape
        return NetTensor(symbol, onnx, (count, sum(each.shape[1] for each in branches), *sizes))

    def flat(self, data: NetTensor) -> NetTensor:
        """Add a flattening to two axes."""
        count, channels, height, width = data.shape
        onnx = self._node("Flatten", data.onnx)
        return NetTensor(self._symbol.op("Flatten", data.symbol), onnx, (count, channels * height * width))

    def softmax(self, data: NetTensor) -> NetTensor:
        return NetTensor(self._symbol.op("softmax", data.symbol), self._node("Softmax", data.onnx), data.shape)

    def symbol_file(self, head: NetTensor) -> bytes:
        """Return the symbol file of the network with this output."""
        return self._symbol.render(head.symbol)

    def onnx_file(self, head: NetTensor) -> bytes:
        """Return the ONNX file of the network with this output."""
        from onnx import GraphProto, ModelProto, ValueInfoProto
        from onnx.helper import make_opsetid, make_tensor_value_info

        graph = GraphProto(
            name="calibration",
            node=self._nodes,
            initializer=self._stored,
            input=[make_tensor_value_info(_INPUT, _FLOAT, self._input_shape)],
            output=[ValueInfoProto(name=head.onnx)],
        )
        made = ModelProto(ir_version=_IR_VERSION, graph=graph, opset_import=[make_opsetid("", _OPSET)])
        return bytes(made.SerializeToString(deterministic=True))

    def _weight(self, shape: Sequence[int]) -> str:
        from onnx.helper import make_tensor

        self._stored.append(make_tensor(f"stored{len(self._stored)}", _INT64, (len(shape),), shape))
        value = make_tensor("value", _FLOAT, (1,), (0.01,))
        return self._node("ConstantOfShape", self._stored[-1].name, value=value)

    def _node(self, op: str, *inputs: str, **attributes: Any) -> str:
        from onnx.helper import make_node

        name = f"{op.lower()}{len(self._nodes)}"
        self._nodes.append(make_node(op, list(inputs), [name], name=name, **attributes))
        return name


def _window(kernel: int, stride: int, pad: int) -> dict[str, list[int]]:
    return {"kernel_shape": [kernel] * 2, "strides": [stride] * 2, "pads": [pad] * 4}


def _slid(data: NetTensor, channels: int, kernel: int, stride: int, pad: int) -> tuple[int, ...]:
    """Return the shape that a sliding window puts out."""
    return (data.shape[0], channels, *((size + 2 * pad - kernel) // stride + 1 for size in data.shape[2:]))


def _classes(net: Net, data: NetTensor, count: int) -> NetTensor:
    return net.softmax(net.linear(net.flat(data), count))


def _residual(net: Net) -> NetTensor:
    data = net.pool(net.relu(net.norm(net.conv(net.image(3, 264), 56, 5, 2))), 3, 2, 1)
    for inner, stride, repeats in ((24, 1, 2), (56, 2, 3), (104, 2, 3), (216, 2, 2)):
        outer = 4 * inner
        for number in range(repeats):
            step = stride if number == 0 else 1
            side = net.norm(net.conv(data, outer, 1, step)) if number == 0 else data
            main = net.relu(net.norm(net.conv(data, inner, 1, step)))
            main = net.relu(net.norm(net.conv(main, inner, 3)))
            data = net.relu(net.add(net.norm(net.conv(main, outer)), side))
    return _classes(net, net.whole_mean(data), 888)


def _dense(net: Net) -> NetTensor:
    """Blocks in which each layer reads the results of all layers before it."""
    data = net.pool(net.relu(net.norm(net.conv(net.image(3, 248), 40, 7, 2))), 3, 2, 1)
    for width, repeats in ((40, 3), (88, 5), (136, 4)):
        for _ in range(repeats):
            inner = net.conv(net.relu(net.norm(data)), 104)
            data = net.join(data, net.conv(net.relu(net.norm(inner)), 24, 3))
        data = net.pool(net.conv(net.relu(net.norm(data)), width), kind="avg")
    return _classes(net, net.whole_mean(net.relu(net.norm(data))), 776)


def _cold_chain(net: Net) -> NetTensor:
    data = net.relu(net.conv(net.image(48, 12), 272, 3))
    for _ in range(17):
        data = net.relu(net.conv(data, 272, 3))
    return _classes(net, net.whole_mean(data), 168)


def _cold_residual(net: Net) -> NetTensor:
    return _narrowing(net, 14, (1104, 304, 3), 6)


def _cold_wide(net: Net) -> NetTensor:
    return _narrowing(net, 7, (1904, 560, 1), 8)


def _narrowing(net: Net, side: int, widths: tuple[int, int, int], repeats: int) -> NetTensor:
    """Blocks of a convolution to fewer channels, one with that window among them if it has any, and one back.

    Wide networks are built of multiples of 16 channels, for which some processors have kernels of their own.
    """
    outer, inner, window = widths
    data = net.relu(net.norm(net.conv(net.image(48, side), outer)))
    for _ in range(repeats):
        main = net.relu(net.norm(net.conv(data, inner)))
        if window > 1:
            main = net.relu(net.norm(net.conv(main, inner, window)))
        data = net.relu(net.add(net.norm(net.conv(main, outer)), data))
    return _classes(net, net.whole_mean(data), 136)


def _separable(net: Net) -> NetTensor:
    """Pairs of a convolution of each channel by itself and one of all channels."""
    read = 24
    data = net.relu(net.norm(net.conv(net.image(3, 232), read, 3, 2)))
    for filters, stride in (
        *((40, 1), (88, 2), (88, 1), (168, 2), (168, 1)),
        *((296, 2), (296, 1), (296, 1), (296, 1), (584, 2), (584, 1)),
    ):
        data = net.relu(net.norm(net.conv(data, read, 3, stride, groups=read)))
        data, read = net.relu(net.norm(net.conv(data, filters))), filters
    return _classes(net, net.whole_mean(data), 328)


def _small_residual(net: Net) -> NetTensor:
    data = net.relu(net.norm(net.conv(net.image(3, 56), 24, 3)))
    for width, stride, repeats in ((24, 1, 2), (40, 2, 2), (72, 2, 3)):
        for number in range(repeats):
            step = stride if number == 0 else 1
            side = net.norm(net.conv(data, width, 1, step)) if number == 0 else data
            main = net.relu(net.norm(net.conv(data, width, 3, step)))
            data = net.relu(net.add(net.norm(net.conv(main, width, 3)), side))
    return _classes(net, net.whole_mean(data), 104)


def _small_branches(net: Net) -> NetTensor:
    data = net.pool(net.relu(net.conv(net.image(3, 120), 40, 5, 2)), 3, 2, 1)
    for number, width in enumerate((16, 24, 24, 40)):
        one = net.relu(net.conv(data, 2 * width))
        three = net.relu(net.conv(net.relu(net.conv(data, width)), 2 * width, 3))
        pooled = net.relu(net.conv(net.pool(data, 3, 1, 1), width))
        data = net.join(one, three, pooled)
        if number == 1:
            data = net.pool(data, 3, 2, 1)
    return _classes(net, net.whole_mean(data), 104)


def _short_linear(net: Net) -> NetTensor:
    """Many layers that compute next to nothing: they show what the runtime takes for each."""
    data = net.linear(net.flat(net.conv(net.image(3, 9), 8, 3)), 56)
    for _ in range(60):
        data = net.add(net.norm(net.relu(net.linear(data, 56))), data)
    return net.softmax(net.linear(data, 88))


def _short_residual(net: Net) -> NetTensor:
    data = net.conv(net.image(3, 9), 24, 3)
    for _ in range(32):
        data = net.add(net.relu(net.norm(net.conv(net.pool(data, 3, 1, 1, "avg"), 24))), data)
    return _classes(net, net.whole_mean(data), 72)


# In an order in which the first ones tell of all constants. Cold: their weights exceed the caches.
_NETS: Mapping[str, Callable[[Net], NetTensor]] = {
    "small residual": _small_residual,
    "short linear": _short_linear,
    "cold chain": _cold_chain,
    "short residual": _short_residual,
    "cold residual": _cold_residual,
    "separable": _separable,
    "small branches": _small_branches,
    "residual": _residual,
    "cold wide": _cold_wide,
    "dense": _dense,
}
NETWORKS = tuple(_NETS)
