"""Small networks that a measuring method is calibrated on: kin of nothing that anybody wants to know about.

Their layers are of all common kinds, and short, so that what a layer takes beside its computation can be told. No known
network has their shapes.
"""

from collections.abc import Callable, Mapping

from dlbricks_tui.models.mxnet.symbol_writer import Output, SymbolWriter

INPUT = "data"


def calibration_nets() -> Mapping[str, bytes]:
    """The symbol files by their names; always the same."""
    return {name: _rendered(build) for name, build in _NETS.items()}


def _rendered(build: "Callable[[_Net], Output]") -> bytes:
    net = _Net()
    return net.writer.render(build(net))


class _Net:
    """Writes layers with few words."""

    def __init__(self) -> None:
        self.writer = SymbolWriter()

    def image(self, channels: int, size: int) -> Output:
        return self.writer.input(INPUT, (1, channels, size, size))

    def conv(self, data: Output, filters: int, kernel: int = 1, stride: int = 1, groups: int = 1) -> Output:
        return self.writer.op(
            "Convolution",
            data,
            kernel=(kernel, kernel),
            stride=(stride, stride),
            pad=(kernel // 2, kernel // 2),
            num_filter=filters,
            num_group=groups,
        )

    def up(self, data: Output, filters: int) -> Output:
        return self.writer.op(
            "Deconvolution", data, kernel=(4, 4), stride=(2, 2), pad=(1, 1), num_filter=filters, no_bias=True
        )

    def relu(self, data: Output) -> Output:
        return self.writer.op("Activation", data, act_type="relu")

    def norm(self, data: Output) -> Output:
        return self.writer.op("BatchNorm", data, fix_gamma=False)

    def pool(self, data: Output, kernel: int = 2, stride: int = 2, pad: int = 0, kind: str = "max") -> Output:
        return self.writer.op(
            "Pooling", data, kernel=(kernel, kernel), stride=(stride, stride), pad=(pad, pad), pool_type=kind
        )

    def whole_mean(self, data: Output) -> Output:
        return self.writer.op("Pooling", data, kernel=(1, 1), global_pool=True, pool_type="avg")

    def linear(self, data: Output, units: int) -> Output:
        return self.writer.op("FullyConnected", data, num_hidden=units)

    def join(self, *branches: Output) -> Output:
        return self.writer.op("Concat", *branches, num_args=len(branches), dim=1)

    def classes(self, data: Output, count: int) -> Output:
        flat = self.writer.op("Flatten", data)
        return self.writer.op("softmax", self.linear(flat, count))


def _chain(net: _Net) -> Output:
    data = net.image(3, 200)
    for filters, depth in ((24, 2), (56, 2), (104, 3), (200, 2)):
        for _ in range(depth):
            data = net.relu(net.conv(data, filters, 3))
        data = net.pool(data)
    wide = net.writer.op("Dropout", net.relu(net.linear(net.writer.op("Flatten", data), 616)), p=0.5)
    return net.writer.op("softmax", net.linear(wide, 328))


def _residual(net: _Net) -> Output:
    data = net.pool(net.relu(net.norm(net.conv(net.image(3, 264), 56, 5, 2))), 3, 2, 1)
    for inner, stride, repeats in ((24, 1, 2), (56, 2, 3), (104, 2, 3), (216, 2, 2)):
        outer = 4 * inner
        for number in range(repeats):
            step = stride if number == 0 else 1
            side = net.norm(net.conv(data, outer, 1, step)) if number == 0 else data
            main = net.relu(net.norm(net.conv(data, inner, 1, step)))
            main = net.relu(net.norm(net.conv(main, inner, 3)))
            data = net.relu(net.writer.op("elemwise_add", net.norm(net.conv(main, outer)), side))
    return net.classes(net.whole_mean(data), 888)


def _separable(net: _Net) -> Output:
    def bounded(data: Output) -> Output:
        return net.writer.op("clip", net.norm(data), a_min=0.0, a_max=6.0)

    read = 24
    data = bounded(net.conv(net.image(3, 304), read, 3, 2))
    for filters, stride, expansion in (
        *((24, 1, 2), (40, 2, 4), (40, 1, 4), (56, 2, 4), (56, 1, 4), (56, 1, 4)),
        *((104, 2, 5), (104, 1, 5), (104, 1, 5), (168, 2, 5), (168, 1, 5), (296, 1, 5)),
    ):
        inner = read * expansion
        main = bounded(net.conv(data, inner))
        main = net.norm(net.conv(bounded(net.conv(main, inner, 3, stride, groups=inner)), filters))
        data = net.writer.op("elemwise_add", data, main) if (filters, stride) == (read, 1) else main
        read = filters
    return net.classes(net.whole_mean(bounded(net.conv(data, 1144))), 904)


def _branches(net: _Net) -> Output:
    data = net.pool(net.relu(net.conv(net.image(3, 280), 56, 7, 2)), 3, 2, 1)
    data = net.pool(net.relu(net.conv(net.writer.op("LRN", data, nsize=5), 136, 3)), 3, 2, 1)
    for number, width in enumerate((24, 32, 40, 40, 48, 64, 72)):
        one = net.relu(net.conv(data, 2 * width))
        three = net.relu(net.conv(net.relu(net.conv(data, 2 * width)), 3 * width, 3))
        five = net.relu(net.conv(net.relu(net.conv(data, width // 2)), width, 5))
        pooled = net.relu(net.conv(net.pool(data, 3, 1, 1), width))
        data = net.join(one, three, five, pooled)
        if number in (1, 4):
            data = net.pool(data, 3, 2, 1)
    return net.classes(net.whole_mean(data), 856)


def _dense(net: _Net) -> Output:
    data = net.pool(net.relu(net.norm(net.conv(net.image(3, 248), 40, 7, 2))), 3, 2, 1)
    for width, repeats in ((40, 3), (88, 5), (136, 4)):
        for _ in range(repeats):
            inner = net.conv(net.relu(net.norm(data)), 104)
            data = net.join(data, net.conv(net.relu(net.norm(inner)), 24, 3))
        data = net.pool(net.conv(net.relu(net.norm(data)), width), kind="avg")
    return net.classes(net.whole_mean(net.relu(net.norm(data))), 776)


def _there_and_back(net: _Net) -> Output:
    op = net.writer.op
    data = net.image(3, 200)
    for filters in (24, 56, 104):
        data = op("LeakyReLU", op("InstanceNorm", net.conv(data, filters, 3, 2)), act_type="leaky", slope=0.2)
    for filters in (56, 24):
        data = net.relu(op("InstanceNorm", net.up(data, filters)))
    return op("Activation", net.up(data, 3), act_type="tanh")


def _heavy(net: _Net) -> Output:
    data = net.relu(net.conv(net.image(24, 10), 448, 3))
    for _ in range(3):
        data = net.relu(net.norm(net.conv(data, 448, 3)))
    wide = net.relu(net.linear(net.writer.op("Flatten", net.pool(data)), 432))
    return net.writer.op("softmax", net.linear(net.relu(net.linear(wide, 1080)), 1000))


_NETS: Mapping[str, Callable[[_Net], Output]] = {
    "chain": _chain,
    "residual": _residual,
    "separable": _separable,
    "branches": _branches,
    "dense": _dense,
    "there and back": _there_and_back,
    "heavy": _heavy,
}
