"""The ResNet-101 that locates photographs: batch norm and ReLU stand before each convolution."""

from sample_models.builders.architecture import Architecture, Row
from sample_models.builders.network import Network
from sample_models.builders.symbol_writer import Output

EPS = 0.00002
DEPTHS = (3, 4, 23, 3)
PLACES = 15527


def _preactivation_resnet() -> bytes:
    net = Network()
    x = net.input("data", 1, 3, 224, 224)
    x = net.batch_norm(x, "bn_data", EPS)
    x = net.conv(x, "conv0", 64, 7, 2, pad=3, bias=False)
    x = _norm_relu(net, x, 0)
    x = net.max_pool(x, "pooling0", 3, 2, pad=1)
    for stage, depth in enumerate(DEPTHS, start=1):
        for position in range(1, depth + 1):
            x = _unit(net, x, stage, position)
    x = _norm_relu(net, x, 1)
    x = net.spatial_mean(x, "pool1")
    x = net.linear(x, "fc1", PLACES)
    return net.render(net.softmax(x, "softmax_softmax"))


def _unit(net: Network, x: Output, stage: int, position: int) -> Output:
    tag = f"stage{stage}_unit{position}"
    width = 32 * 2**stage
    first = position == 1
    stride = 2 if first and stage > 1 else 1
    shortcut = x
    with net.scope(tag):
        activated = _norm_relu(net, x, 1)
        x = net.conv(activated, "conv1", width, 1, bias=False)
        x = _norm_relu(net, x, 2)
        x = net.conv(x, "conv2", width, 3, stride, pad=1, bias=False)
        x = _norm_relu(net, x, 3)
        x = net.conv(x, "conv3", 4 * width, 1, bias=False)
        if first:
            shortcut = net.conv(activated, "sc", 4 * width, 1, stride, bias=False)
        return net.add(f"_plus_{tag}", x, shortcut)


def _norm_relu(net: Network, x: Output, number: int) -> Output:
    x = net.batch_norm(x, f"bn{number}", EPS)
    return net.relu(x, f"relu{number}")


ARCHITECTURES: tuple[Architecture, ...] = (
    Architecture(
        "preactivation_resnet101",
        _preactivation_resnet,
        (Row(12, "ResNet-101 Trained on YFC100m Geotagged Data", "IC"),),
        classes=PLACES,
    ),
)
