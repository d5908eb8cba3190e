"""Write networks of random structure, made of common blocks.

usage: python -m benchmarks.made_up_networks FOLDER [COUNT [FIRST]]

    python -m benchmarks.contexts FOLDER/*.json
    python -m benchmarks.accuracy FOLDER/*.json

then tell whether their bricks execute what they execute, and how far estimates are off. The same number is always the
same network. Each stage has blocks of one kind, in widths and windows that known networks have, and others that none
has: those are what classes of layouts may be too coarse for.
"""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random

from sample_models.builders.symbol_writer import Output, SymbolWriter

COUNT = 24
CLASSES = 100

# The side of the image, and for each stage the widths that it may have.
SIDES = (96, 128, 160, 192, 224, 256)
WIDTHS = ((12, 16, 24, 32, 64), (24, 32, 36, 48, 64, 96), (40, 64, 72, 96, 128), (68, 96, 128, 160, 256))
ACTIVATIONS = ("relu", "relu", "relu", "leaky", "bounded", "swish", "hard_swish")


def main(folder: Path, count: int = COUNT, first: int = 0) -> None:
    """Writes so many of them."""
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(first, first + count):
        (folder / f"made_up_{number:02}-symbol.json").write_bytes(network(number))


def network(number: int) -> bytes:
    """The symbol file of the network of that number."""
    return _Network(Random(number)).written()


class _Network:
    def __init__(self, chance: Random) -> None:
        self._chance = chance
        self._writer = SymbolWriter()
        self._activation = chance.choice(ACTIVATIONS)
        # The channels of what the blocks hand on.
        self._width = 0

    def written(self) -> bytes:
        side = self._chance.choice(SIDES)
        data = self._writer.input("data", (1, 3, side, side))
        self._width = self._chance.choice(WIDTHS[0])
        data = self._conv(data, self._width, self._chance.choice((3, 5, 7)), stride=2)
        data = self._active(self._norm(data))
        for widths in WIDTHS:
            data = self._stage(data, self._chance.choice(widths))
        data = self._writer.op("Pooling", data, kernel=(1, 1), global_pool=True, pool_type="avg")
        data = self._writer.op("FullyConnected", self._writer.op("Flatten", data), num_hidden=CLASSES)
        return self._writer.render(self._writer.op("softmax", data))

    def _stage(self, data: Output, width: int) -> Output:
        """Half of the size, then some blocks of a kind."""
        smaller = self._chance.choice(("conv", "max", "avg"))
        if smaller == "conv":
            data = self._conv(data, width, 3, stride=2)
        else:
            data = self._conv(self._pool(data, smaller), width)
        self._width = width
        data = self._active(self._norm(data))
        block = self._chance.choice(_BLOCKS)
        for _ in range(self._chance.randint(2, 4)):
            data = block(self, data)
        return data

    # Blocks.

    def _plain(self, data: Output) -> Output:
        return self._active(self._norm(self._conv(data, self._width, 3)))

    def _residual(self, data: Output) -> Output:
        inner = self._active(self._norm(self._conv(data, self._width, 3)))
        return self._active(self._add(self._norm(self._conv(inner, self._width, 3)), data))

    def _residual_of_active(self, data: Output) -> Output:
        inner = data
        for _ in range(2):
            inner = self._conv(self._active(self._norm(inner)), self._width, 3)
        return self._add(data, inner)

    def _bottleneck(self, data: Output) -> Output:
        narrow = max(4, self._width // 4)
        inner = self._active(self._norm(self._conv(data, narrow)))
        inner = self._active(self._norm(self._conv(inner, narrow, 3, dilation=self._chance.choice((1, 1, 2, 4)))))
        return self._active(self._add(self._norm(self._conv(inner, self._width)), data))

    def _inverted(self, data: Output) -> Output:
        wide = self._width * self._chance.choice((2, 3, 6))
        inner = self._active(self._norm(self._conv(data, wide)))
        inner = self._active(self._norm(self._conv(inner, wide, self._chance.choice((3, 5)), groups=wide)))
        return self._add(self._norm(self._conv(inner, self._width)), data)

    def _grouped(self, data: Output) -> Output:
        inner = self._active(self._norm(self._conv(data, 64)))
        inner = self._active(self._norm(self._conv(inner, 64, 3, groups=self._chance.choice((4, 8, 16)))))
        return self._active(self._add(self._norm(self._conv(inner, self._width)), data))

    def _dense(self, data: Output) -> Output:
        growth = self._chance.choice((12, 16, 32))
        inner = self._conv(self._active(self._norm(data)), 4 * growth)
        inner = self._conv(self._active(self._norm(inner)), growth, 3)
        self._width += growth
        return self._join(data, inner)

    def _inception(self, data: Output) -> Output:
        sizes = [self._chance.choice((8, 16, 24, 32, 48)) for _ in range(6)]
        branches = [
            self._active(self._conv(data, sizes[0])),
            self._active(self._conv(self._active(self._conv(data, sizes[1])), sizes[2], 3)),
            self._active(self._conv(self._active(self._conv(data, sizes[3])), sizes[4], 5)),
            self._active(self._conv(self._pool(data, "max", stride=1), sizes[5])),
        ]
        self._width = sizes[0] + sizes[2] + sizes[4] + sizes[5]
        return self._join(*branches)

    def _pyramid(self, data: Output) -> Output:
        """Windows of the same size that lie ever further apart."""
        branches = [self._active(self._norm(self._conv(data, self._width, 3, dilation=step))) for step in (1, 2, 4, 6)]
        if self._chance.random() < 0.5:
            return self._writer.op("add_n", *branches, num_args=len(branches))
        return self._conv(self._join(*branches), self._width)

    def _squeezed(self, data: Output) -> Output:
        inner = self._active(self._norm(self._conv(data, self._width, 3)))
        weight = self._writer.op("Pooling", inner, kernel=(1, 1), global_pool=True, pool_type="avg")
        weight = self._conv(self._active(self._conv(weight, max(4, self._width // 8))), self._width)
        weight = self._writer.op("Activation", weight, act_type="sigmoid")
        return self._add(self._writer.op("broadcast_mul", inner, weight), data)

    def _hourglass(self, data: Output) -> Output:
        inner = self._active(self._norm(self._conv(self._pool(data, "max", kernel=2), self._width, 3)))
        inner = self._writer.op("UpSampling", inner, scale=2, sample_type="nearest", num_args=1)
        # A side that is no even number comes back larger.
        both = self._writer.op("Crop", inner, data, num_args=2)
        summed = self._add(data, both) if self._chance.random() < 0.5 else self._add(both, data)
        return self._writer.op("add_n", summed, self._conv(summed, self._width), data, num_args=3)

    def _shuffled(self, data: Output) -> Output:
        inner = self._active(self._norm(self._conv(data, self._width)))
        inner = self._writer.op("Reshape", inner, shape=(0, -4, 2, -1, -2))
        inner = self._writer.op("SwapAxis", inner, dim1=1, dim2=2)
        inner = self._writer.op("Reshape", inner, shape=(0, -3, -2))
        inner = self._norm(self._conv(inner, self._width, 3, groups=self._width))
        return self._active(self._add(self._norm(self._conv(inner, self._width)), data))

    def _ghost(self, data: Output) -> Output:
        half = self._active(self._norm(self._conv(data, self._width)))
        other = self._active(self._norm(self._conv(half, self._width, 3, groups=self._width)))
        return self._conv(self._join(half, other), self._width)

    # Layers.

    def _conv(
        self, data: Output, filters: int, kernel: int = 1, stride: int = 1, dilation: int = 1, groups: int = 1
    ) -> Output:
        return self._writer.op(
            "Convolution",
            data,
            kernel=(kernel, kernel),
            stride=(stride, stride),
            dilate=(dilation, dilation),
            pad=(dilation * (kernel // 2),) * 2,
            num_filter=filters,
            num_group=groups,
            no_bias=self._chance.random() < 0.5,
        )

    def _norm(self, data: Output) -> Output:
        return self._writer.op("BatchNorm", data, fix_gamma=False)

    def _active(self, data: Output) -> Output:
        match self._activation:
            case "relu":
                return self._writer.op("Activation", data, act_type="relu")
            case "leaky":
                return self._writer.op("LeakyReLU", data, act_type="leaky", slope=0.1)
            case "bounded":
                return self._writer.op("clip", data, a_min=0.0, a_max=6.0)
            case "swish":
                gate = self._writer.op("Activation", data, act_type="sigmoid")
            case _:
                raised = self._writer.op(
                    "clip", self._writer.op("_plus_scalar", data, scalar=3.0), a_min=0.0, a_max=6.0
                )
                gate = self._writer.op("_div_scalar", raised, scalar=6.0)
        return self._writer.op("elemwise_mul", data, gate)

    def _pool(self, data: Output, kind: str, kernel: int = 3, stride: int = 2) -> Output:
        pad = (kernel // 2, kernel // 2) if kernel % 2 else (0, 0)
        return self._writer.op(
            "Pooling", data, kernel=(kernel, kernel), stride=(stride, stride), pad=pad, pool_type=kind
        )

    def _add(self, one: Output, other: Output) -> Output:
        return self._writer.op("elemwise_add", one, other)

    def _join(self, *branches: Output) -> Output:
        return self._writer.op("Concat", *branches, num_args=len(branches), dim=1)


_BLOCKS: Sequence[Callable[[_Network, Output], Output]] = (
    _Network._plain,
    _Network._residual,
    _Network._residual_of_active,
    _Network._bottleneck,
    _Network._inverted,
    _Network._grouped,
    _Network._dense,
    _Network._inception,
    _Network._pyramid,
    _Network._squeezed,
    _Network._hourglass,
    _Network._shuffled,
    _Network._ghost,
)


if __name__ == "__main__":
    main(Path(sys.argv[1]), *map(int, sys.argv[2:4]))
