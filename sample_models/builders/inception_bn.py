"""Wolfram's ImageIdentify: the Inception network with batch norms, with unpadded pools in its stem."""

from dataclasses import dataclass

from sample_models.builders.architecture import Architecture, Row
from sample_models.builders.network import Network
from sample_models.builders.symbol_writer import Output

EPS = 1.00001e-5
CLASSES = 4315


@dataclass(frozen=True, slots=True)
class _Module:
    """The widths of one module's branches, each in the order of its convolutions."""

    name: str
    conv1: int
    conv3: tuple[int, int]
    double_conv3: tuple[int, int, int]
    projection: int
    pool: str = "avg"


@dataclass(frozen=True, slots=True)
class _Reduction:
    """A module that halves the image: two branches of convolutions, and a pool passed through."""

    name: str
    conv3: tuple[int, int]
    double_conv3: tuple[int, int, int]


MODULES: tuple[_Module | _Reduction, ...] = (
    _Module("3a", 64, (64, 64), (64, 96, 96), 32),
    _Module("3b", 64, (64, 96), (64, 96, 96), 64),
    _Reduction("3c", (128, 160), (64, 96, 96)),
    _Module("4a", 224, (64, 96), (96, 128, 128), 128),
    _Module("4b", 192, (96, 128), (96, 128, 128), 128),
    _Module("4c", 160, (128, 160), (128, 160, 160), 128),
    _Module("4d", 96, (128, 192), (160, 192, 192), 128),
    _Reduction("4e", (128, 192), (192, 256, 256)),
    _Module("5a", 352, (192, 320), (160, 224, 224), 128),
    _Module("5b", 352, (192, 320), (192, 224, 224), 128, pool="max"),
)


def _inception_bn() -> bytes:
    net = Network()
    x = net.input("data", 1, 3, 224, 224)
    x = _conv(net, x, "_1", 64, 7, stride=2)
    x = net.max_pool(x, "pool_1", 3, 2)
    x = _conv(net, x, "_2_red", 64)
    x = _conv(net, x, "_2", 192, 3)
    x = net.max_pool(x, "pool_2", 3, 2)
    for module in MODULES:
        with net.scope(module.name):
            x = _inception(net, x, module) if isinstance(module, _Module) else _reduction(net, x, module)
    x = net.mean_pool(x, "global_pool", 7)
    x = net.linear(x, "linear", CLASSES)
    return net.render(net.softmax(x, "softmax"))


def _inception(net: Network, x: Output, module: _Module) -> Output:
    single = _conv(net, x, "1x1", module.conv1)
    conv3 = _conv3(net, x, module.conv3)
    double = _double_conv3(net, x, module.double_conv3)
    pool = net.mean_pool if module.pool == "avg" else net.max_pool
    pooled = pool(x, f"{module.pool}_poolpool", 3, pad=1)
    projected = _conv(net, pooled, "proj", module.projection)
    return net.concat("ch_concatchconcat", single, conv3, double, projected)


def _reduction(net: Network, x: Output, module: _Reduction) -> Output:
    conv3 = _conv3(net, x, module.conv3, stride=2)
    double = _double_conv3(net, x, module.double_conv3, stride=2)
    pooled = net.max_pool(x, "max_poolpool", 3, 2, pad=1)
    return net.concat("ch_concatchconcat", conv3, double, pooled)


def _conv3(net: Network, x: Output, widths: tuple[int, int], stride: int = 1) -> Output:
    x = _conv(net, x, "3x3_reduce", widths[0])
    return _conv(net, x, "3x3", widths[1], 3, stride)


def _double_conv3(net: Network, x: Output, widths: tuple[int, int, int], stride: int = 1) -> Output:
    x = _conv(net, x, "double_3x3_reduce", widths[0])
    x = _conv(net, x, "double_3x3_0", widths[1], 3)
    return _conv(net, x, "double_3x3_1", widths[2], 3, stride)


def _conv(net: Network, x: Output, name: str, width: int, kernel: int = 1, stride: int = 1) -> Output:
    x = net.conv(x, f"conv{name}", width, kernel, stride, pad=kernel // 2)
    x = net.batch_norm(x, f"bn{name}", EPS)
    return net.relu(x, f"relu{name}")


ARCHITECTURES: tuple[Architecture, ...] = (
    Architecture(
        "inception_bn_4315",
        _inception_bn,
        (Row(20, "Wolfram ImageIdentify Net V1", "IC"),),
        classes=CLASSES,
    ),
)
