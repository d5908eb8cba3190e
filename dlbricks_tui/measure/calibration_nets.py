"""Small networks that the method `alone` is calibrated on. They are unlike the models that users measure.

Their layers are of common kinds and short, since short layers show most of what a layer takes beside its computation.
No layer of a sample model has the shapes of one of theirs.
"""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from dlbricks_tui.measure.net_writers import NetWriter, OnnxNetWriter, SymbolNetWriter
from dlbricks_tui.runtime.traits import Format

T = TypeVar("T")

SUFFIXES: Mapping[Format, str] = {Format.MXNET: "-symbol.json", Format.ONNX: ".onnx"}


_WRITERS: Mapping[Format, Callable[[], NetWriter[Any]]] = {Format.MXNET: SymbolNetWriter, Format.ONNX: OnnxNetWriter}


def calibration_nets(form: Format) -> Mapping[str, bytes]:
    """The files of the networks by their names; always the same."""
    return {name: _written(build, form) for name, build in _NETS.items()}


def _written(build: "Callable[[NetWriter[Any]], Any]", form: Format) -> bytes:
    net = _WRITERS[form]()
    return net.rendered(build(net))


def _classes(net: NetWriter[T], data: T, count: int) -> T:
    return net.softmax(net.linear(net.flat(data), count))


def _residual(net: NetWriter[T]) -> T:
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


def _dense(net: NetWriter[T]) -> T:
    """Blocks in which each layer reads the results of all layers before it."""
    data = net.pool(net.relu(net.norm(net.conv(net.image(3, 248), 40, 7, 2))), 3, 2, 1)
    for width, repeats in ((40, 3), (88, 5), (136, 4)):
        for _ in range(repeats):
            inner = net.conv(net.relu(net.norm(data)), 104)
            data = net.join(data, net.conv(net.relu(net.norm(inner)), 24, 3))
        data = net.pool(net.conv(net.relu(net.norm(data)), width), kind="avg")
    return _classes(net, net.whole_mean(net.relu(net.norm(data))), 776)


def _cold_chain(net: NetWriter[T]) -> T:
    data = net.relu(net.conv(net.image(48, 12), 272, 3))
    for _ in range(17):
        data = net.relu(net.conv(data, 272, 3))
    return _classes(net, net.whole_mean(data), 168)


def _cold_residual(net: NetWriter[T]) -> T:
    return _narrowing(net, 14, (1104, 304, 3), 6)


def _cold_wide(net: NetWriter[T]) -> T:
    return _narrowing(net, 7, (1904, 560, 1), 8)


def _narrowing(net: NetWriter[T], side: int, widths: tuple[int, int, int], repeats: int) -> T:
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


def _separable(net: NetWriter[T]) -> T:
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


def _small_residual(net: NetWriter[T]) -> T:
    data = net.relu(net.norm(net.conv(net.image(3, 56), 24, 3)))
    for width, stride, repeats in ((24, 1, 2), (40, 2, 2), (72, 2, 3)):
        for number in range(repeats):
            step = stride if number == 0 else 1
            side = net.norm(net.conv(data, width, 1, step)) if number == 0 else data
            main = net.relu(net.norm(net.conv(data, width, 3, step)))
            data = net.relu(net.add(net.norm(net.conv(main, width, 3)), side))
    return _classes(net, net.whole_mean(data), 104)


def _small_branches(net: NetWriter[T]) -> T:
    data = net.pool(net.relu(net.conv(net.image(3, 120), 40, 5, 2)), 3, 2, 1)
    for number, width in enumerate((16, 24, 24, 40)):
        one = net.relu(net.conv(data, 2 * width))
        three = net.relu(net.conv(net.relu(net.conv(data, width)), 2 * width, 3))
        pooled = net.relu(net.conv(net.pool(data, 3, 1, 1), width))
        data = net.join(one, three, pooled)
        if number == 1:
            data = net.pool(data, 3, 2, 1)
    return _classes(net, net.whole_mean(data), 104)


# In an order in which the first ones tell of all constants. Cold: their weights exceed the caches.
_NETS: Mapping[str, Callable[[NetWriter[Any]], Any]] = {
    "small residual": _small_residual,
    "separable": _separable,
    "cold chain": _cold_chain,
    "small branches": _small_branches,
    "cold residual": _cold_residual,
    "residual": _residual,
    "cold wide": _cold_wide,
    "dense": _dense,
}
NETWORKS = tuple(_NETS)
