"""SqueezeNet 1.1: fire modules, which squeeze to few channels and expand by two kernels side by side."""

from sample_models.builders.architecture import Architecture, Row
from sample_models.builders.network import Network
from sample_models.builders.symbol_writer import Output

CLASSES = 1000

# The widths (squeeze, each expansion) of the fire modules between two pools.
STAGES = (
    ((16, 64), (16, 64)),
    ((32, 128), (32, 128)),
    ((48, 192), (48, 192), (64, 256), (64, 256)),
)


def _squeezenet() -> bytes:
    net = Network()
    x = net.input("data", 1, 3, 227, 227)
    x = net.conv(x, "conv1", 64, 3, 2)
    x = net.relu(x, "relu_conv1")
    x = net.max_pool(x, "pool1", 3, 2)
    last = 1
    for stage in STAGES:
        if last > 1:
            x = net.pad(x, f"pool{last}_pad", 0, 1)
            x = net.max_pool(x, f"pool{last}", 3, 2)
        for number, (squeeze, expand) in enumerate(stage, start=last + 1):
            x = _fire(net, x, number, squeeze, expand)
        last += len(stage)
    x = net.dropout(x, "drop9", 0.5)
    x = net.conv(x, "conv10", CLASSES, 1)
    x = net.relu(x, "relu_conv10")
    x = net.spatial_mean(x, "pool10")
    x = net.flatten(x, "flatten")
    return net.render(net.softmax(x, "probabilities"))


def _fire(net: Network, x: Output, number: int, squeeze: int, expand: int) -> Output:
    with net.scope(f"fire{number}"):
        squeezed = _conv(net, x, "squeeze1x1", squeeze, 1)
        ones = _conv(net, squeezed, "expand1x1", expand, 1)
        threes = _conv(net, squeezed, "expand3x3", expand, 3)
        return net.concat("concat", ones, threes)


def _conv(net: Network, x: Output, name: str, width: int, kernel: int) -> Output:
    x = net.conv(x, name, width, kernel, pad=kernel // 2)
    return net.relu(x, f"relu_{name}")


ARCHITECTURES: tuple[Architecture, ...] = (
    Architecture(
        "squeezenet_1.1",
        _squeezenet,
        (Row(16, "SqueezeNet V1.1 Trained on ImageNet Competition Data", "IC"),),
        classes=CLASSES,
    ),
)
