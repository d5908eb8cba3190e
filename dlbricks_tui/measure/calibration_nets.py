"""Small networks that a measuring method is calibrated on: kin of nothing that anybody wants to know about.

Their layers are of all common kinds, and short, so that what a layer takes beside its computation can be told. No layer
of a sample has the shapes of one of theirs. Some take less than a millisecond or two: their tensors and code stay in
the nearest caches.
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


def _chain(net: NetWriter[T]) -> T:
    data = net.image(3, 200)
    for filters, depth in ((24, 2), (56, 2), (104, 3), (200, 2)):
        for _ in range(depth):
            data = net.relu(net.conv(data, filters, 3))
        data = net.pool(data)
    wide = net.dropout(net.relu(net.linear(net.flat(data), 616)))
    return net.softmax(net.linear(wide, 328))


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


def _separable(net: NetWriter[T]) -> T:
    return _inverted(
        net,
        304,
        (24, 1144, 904),
        *((24, 1, 2), (40, 2, 4), (40, 1, 4), (56, 2, 4), (56, 1, 4), (56, 1, 4)),
        *((104, 2, 5), (104, 1, 5), (104, 1, 5), (168, 2, 5), (168, 1, 5), (296, 1, 5)),
    )


def _small_inverted(net: NetWriter[T]) -> T:
    return _inverted(
        net,
        104,
        (8, 264, 136),
        *((8, 1, 3), (24, 2, 3), (24, 1, 3), (40, 2, 5), (40, 1, 5), (40, 1, 5), (72, 2, 5), (72, 1, 5), (72, 1, 5)),
    )


def _inverted(net: NetWriter[T], side: int, widths: tuple[int, int, int], *blocks: tuple[int, int, int]) -> T:
    """Blocks of filters, stride and expansion between a first and a last convolution, and classes."""

    def bounded(data: T) -> T:
        return net.bounded(net.norm(data))

    read, last, classes = widths
    data = bounded(net.conv(net.image(3, side), read, 3, 2))
    for filters, stride, expansion in blocks:
        inner = read * expansion
        main = bounded(net.conv(data, inner))
        main = net.norm(net.conv(bounded(net.conv(main, inner, 3, stride, groups=inner)), filters))
        data = net.add(data, main) if (filters, stride) == (read, 1) else main
        read = filters
    return _classes(net, net.whole_mean(bounded(net.conv(data, last))), classes)


def _branches(net: NetWriter[T]) -> T:
    data = net.pool(net.relu(net.conv(net.image(3, 296), 56, 7, 2)), 3, 2, 1)
    data = net.pool(net.relu(net.conv(net.lrn(data), 136, 3)), 3, 2, 1)
    for number, width in enumerate((24, 32, 40, 40, 48, 64, 72)):
        one = net.relu(net.conv(data, 2 * width))
        three = net.relu(net.conv(net.relu(net.conv(data, 2 * width)), 3 * width, 3))
        five = net.relu(net.conv(net.relu(net.conv(data, width // 2)), width, 5))
        pooled = net.relu(net.conv(net.pool(data, 3, 1, 1), width))
        data = net.join(one, three, five, pooled)
        if number in (1, 4):
            data = net.pool(data, 3, 2, 1)
    return _classes(net, net.whole_mean(data), 856)


def _dense(net: NetWriter[T]) -> T:
    return _joining(net, 248, (40, 104, 24, 776), (40, 3), (88, 5), (136, 4))


def _small_dense(net: NetWriter[T]) -> T:
    return _joining(net, 88, (24, 56, 16, 136), (24, 3), (40, 4), (56, 3))


def _joining(net: NetWriter[T], side: int, widths: tuple[int, int, int, int], *blocks: tuple[int, int]) -> T:
    """Blocks of width and length, in which each layer reads what all before it have made."""
    first, squeezed, grown, classes = widths
    data = net.pool(net.relu(net.norm(net.conv(net.image(3, side), first, 7, 2))), 3, 2, 1)
    for width, repeats in blocks:
        for _ in range(repeats):
            inner = net.conv(net.relu(net.norm(data)), squeezed)
            data = net.join(data, net.conv(net.relu(net.norm(inner)), grown, 3))
        data = net.pool(net.conv(net.relu(net.norm(data)), width), kind="avg")
    return _classes(net, net.whole_mean(net.relu(net.norm(data))), classes)


def _there_and_back(net: NetWriter[T]) -> T:
    data = net.image(3, 200)
    for filters in (24, 56, 104):
        data = net.leaky(net.instance_norm(net.conv(data, filters, 3, 2)))
    for filters in (56, 24):
        data = net.relu(net.instance_norm(net.up(data, filters)))
    return net.tanh(net.up(data, 3))


def _heavy(net: NetWriter[T]) -> T:
    data = net.relu(net.conv(net.image(24, 10), 448, 3))
    for _ in range(3):
        data = net.relu(net.norm(net.conv(data, 448, 3)))
    wide = net.relu(net.linear(net.flat(net.pool(data)), 432))
    return net.softmax(net.linear(net.relu(net.linear(wide, 1080)), 1000))


def _cold_chain(net: NetWriter[T]) -> T:
    data = net.relu(net.conv(net.image(48, 12), 272, 3))
    for _ in range(17):
        data = net.relu(net.conv(data, 272, 3))
    return _classes(net, net.whole_mean(data), 168)


def _cold_residual(net: NetWriter[T]) -> T:
    return _narrowing(net, 14, (1104, 304, 3), 6)


def _cold_wide(net: NetWriter[T]) -> T:
    return _narrowing(net, 7, (1904, 560, 1), 8)


def _staying_residual(net: NetWriter[T]) -> T:
    return _narrowing(net, 10, (552, 200, 3), 6)


def _staying_wide(net: NetWriter[T]) -> T:
    return _narrowing(net, 7, (1032, 328, 1), 5)


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


def _small_chain(net: NetWriter[T]) -> T:
    data = net.image(3, 72)
    for filters in (24, 40, 56, 88):
        for _ in range(2):
            data = net.relu(net.conv(data, filters, 3))
        data = net.pool(data)
    return _classes(net, net.whole_mean(data), 104)


def _small_separable(net: NetWriter[T]) -> T:
    return _in_two_steps(
        net,
        136,
        (8, 104),
        *((24, 1), (40, 2), (40, 1), (72, 2), (72, 1)),
        *((104, 2), (104, 1), (104, 1), (104, 1), (168, 2), (168, 1)),
    )


def _middle_separable(net: NetWriter[T]) -> T:
    return _in_two_steps(
        net,
        232,
        (24, 328),
        *((40, 1), (88, 2), (88, 1), (168, 2), (168, 1)),
        *((296, 2), (296, 1), (296, 1), (296, 1), (584, 2), (584, 1)),
    )


def _in_two_steps(net: NetWriter[T], side: int, widths: tuple[int, int], *blocks: tuple[int, int]) -> T:
    """Blocks of filters and stride, each a convolution of every channel by itself and one of all of them."""
    read, classes = widths
    data = net.relu(net.norm(net.conv(net.image(3, side), read, 3, 2)))
    for filters, stride in blocks:
        data = net.relu(net.norm(net.conv(data, read, 3, stride, groups=read)))
        data, read = net.relu(net.norm(net.conv(data, filters))), filters
    return _classes(net, net.whole_mean(data), classes)


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


# The small ones first: they tell most for the time that they take. Then, in turns, those whose weights are in a cache
# that cores share, if it is large enough, and those whose weights are in none.
_NETS: Mapping[str, Callable[[NetWriter[Any]], Any]] = {
    "small chain": _small_chain,
    "small separable": _small_separable,
    "small residual": _small_residual,
    "small branches": _small_branches,
    "small inverted": _small_inverted,
    "small dense": _small_dense,
    "staying residual": _staying_residual,
    "cold chain": _cold_chain,
    "staying wide": _staying_wide,
    "cold residual": _cold_residual,
    "cold wide": _cold_wide,
    "middle separable": _middle_separable,
    "heavy": _heavy,
    "there and back": _there_and_back,
    "dense": _dense,
    "separable": _separable,
    "branches": _branches,
    "residual": _residual,
    "chain": _chain,
}
NETWORKS = tuple(_NETS)
