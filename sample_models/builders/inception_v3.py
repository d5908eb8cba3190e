"""Inception V3: eleven modules of towers, named after the TensorFlow graph that they come from."""

from sample_models.builders.architecture import Architecture, Row
from sample_models.builders.network import Network, Pair
from sample_models.builders.symbol_writer import Output

EPS = 0.001

# A tower's convolutions: width and kernel of each, padded to keep the size of the image.
Step = tuple[int, Pair]


def _inception_v3() -> bytes:
    net = Network()
    x = net.input("data", 1, 3, 299, 299)
    x = _conv(net, x, "conv", 32, 3, stride=2)
    x = _conv(net, x, "conv_1", 32, 3)
    x = _conv(net, x, "conv_2", 64, 3, pad=1)
    x = net.max_pool(x, "pool", 3, 2)
    x = _conv(net, x, "conv_3", 80, 1)
    x = _conv(net, x, "conv_4", 192, 3)
    x = net.max_pool(x, "pool1", 3, 2)
    for number, projection in enumerate((32, 64, 64)):
        x = _wide_module(net, x, number, projection)
    x = _first_reduction(net, x, 3)
    for number, width in enumerate((128, 160, 160, 192), start=4):
        x = _factorized_module(net, x, number, width)
    x = _second_reduction(net, x, 8)
    x = _expanded_module(net, x, 9, "avg")
    x = _expanded_module(net, x, 10, "max")
    x = net.mean_pool(x, "global_pool", 8)
    x = net.flatten(x, "flatten")
    x = net.linear(x, "fc1", 1008)
    # The last of the 1,008 outputs belong to no class.
    x = net.single("part", "slice", "slice_axis", x, axis=1, begin=0, end=1001)
    return net.render(net.softmax(x, "softmax"))


def _wide_module(net: Network, x: Output, number: int, projection: int) -> Output:
    mixed = _mixed(number)
    with net.scope(f"Inception{number + 1}"):
        single = _tower(net, x, mixed, (64, 1))
        fives = _tower(net, x, f"{mixed}_tower", (48, 1), (64, 5))
        threes = _tower(net, x, f"{mixed}_tower_1", (64, 1), (96, 3), (96, 3))
        pooled = net.mean_pool(x, f"avg_pool_{mixed}_pool", 3, pad=1)
        projected = _tower(net, pooled, f"{mixed}_tower_2", (projection, 1))
        return net.concat(f"ch_concat_{mixed}_chconcat", single, fives, threes, projected)


def _first_reduction(net: Network, x: Output, number: int) -> Output:
    mixed = _mixed(number)
    with net.scope(f"Inception{number + 1}"):
        single = _conv(net, x, f"{mixed}_conv", 384, 3, stride=2)
        threes = _tower(net, x, f"{mixed}_tower", (64, 1), (96, 3))
        threes = _conv(net, threes, f"{mixed}_tower_conv_2", 96, 3, stride=2)
        pooled = net.max_pool(x, f"max_pool_{mixed}_pool", 3, 2)
        return net.concat(f"ch_concat_{mixed}_chconcat", single, threes, pooled)


def _factorized_module(net: Network, x: Output, number: int, width: int) -> Output:
    mixed = _mixed(number)
    row, column = (1, 7), (7, 1)
    with net.scope(f"Inception{number + 1}"):
        single = _tower(net, x, mixed, (192, 1))
        short = _tower(net, x, f"{mixed}_tower", (width, 1), (width, row), (192, column))
        long = _tower(
            net, x, f"{mixed}_tower_1", (width, 1), (width, column), (width, row), (width, column), (192, row)
        )
        pooled = net.mean_pool(x, f"avg_pool_{mixed}_pool", 3, pad=1)
        projected = _tower(net, pooled, f"{mixed}_tower_2", (192, 1))
        return net.concat(f"ch_concat_{mixed}_chconcat", single, short, long, projected)


def _second_reduction(net: Network, x: Output, number: int) -> Output:
    mixed = _mixed(number)
    with net.scope(f"Inception{number + 1}"):
        short = _tower(net, x, f"{mixed}_tower", (192, 1))
        short = _conv(net, short, f"{mixed}_tower_conv_1", 320, 3, stride=2)
        long = _tower(net, x, f"{mixed}_tower_1", (192, 1), (192, (1, 7)), (192, (7, 1)))
        long = _conv(net, long, f"{mixed}_tower_1_conv_3", 192, 3, stride=2)
        pooled = net.max_pool(x, f"max_pool_{mixed}_pool", 3, 2)
        return net.concat(f"ch_concat_{mixed}_chconcat", short, long, pooled)


def _expanded_module(net: Network, x: Output, number: int, pool_type: str) -> Output:
    mixed = _mixed(number)
    with net.scope(f"Inception{number + 1}"):
        single = _tower(net, x, mixed, (320, 1))
        short = _tower(net, x, f"{mixed}_tower", (384, 1))
        short_pair = _row_and_column(net, short, f"{mixed}_tower_mixed")
        long = _tower(net, x, f"{mixed}_tower_1", (448, 1), (384, 3))
        long_pair = _row_and_column(net, long, f"{mixed}_tower_1_mixed")
        pool = net.mean_pool if pool_type == "avg" else net.max_pool
        pooled = pool(x, f"{pool_type}_pool_{mixed}_pool", 3, pad=1)
        projected = _tower(net, pooled, f"{mixed}_tower_2", (192, 1))
        return net.concat(f"ch_concat_{mixed}_chconcat", single, *short_pair, *long_pair, projected)


def _row_and_column(net: Network, x: Output, name: str) -> tuple[Output, Output]:
    row = _conv(net, x, f"{name}_conv", 384, (1, 3), pad=(0, 1))
    column = _conv(net, x, f"{name}_conv_1", 384, (3, 1), pad=(1, 0))
    return row, column


def _tower(net: Network, x: Output, name: str, *steps: Step) -> Output:
    for number, (width, kernel) in enumerate(steps):
        x = _conv(net, x, f"{name}_{_numbered('conv', number)}", width, kernel, pad=_same(kernel))
    return x


def _conv(net: Network, x: Output, name: str, width: int, kernel: Pair, stride: int = 1, pad: Pair = 0) -> Output:
    x = net.conv(x, f"{name}_conv2d", width, kernel, stride, pad, bias=False)
    x = net.batch_norm(x, f"{name}_batchnorm", EPS)
    return net.relu(x, f"{name}_relu")


def _same(kernel: Pair) -> Pair:
    return kernel // 2 if isinstance(kernel, int) else (kernel[0] // 2, kernel[1] // 2)


def _mixed(number: int) -> str:
    return _numbered("mixed", number)


def _numbered(name: str, number: int) -> str:
    """TensorFlow's names: the first of a kind has no number."""
    return f"{name}_{number}" if number else name


ARCHITECTURES: tuple[Architecture, ...] = (
    Architecture(
        "inception_v3",
        _inception_v3,
        (Row(9, "Inception V3 Trained on ImageNet Competition Data", "IC"),),
        classes=1001,
    ),
)
