"""Wide ResNet-50-2: bottlenecks of twice the inner width, numbered as Torch numbers them."""

from sample_models.builders.architecture import Architecture, Row
from sample_models.builders.network import Network
from sample_models.builders.symbol_writer import Output

EPS = 0.00001
DEPTHS = (3, 4, 6, 3)
CLASSES = 1000


def _wide_resnet() -> bytes:
    net = Network()
    x = net.input("data", 1, 3, 224, 224)
    x = net.conv(x, "1", 64, 7, 2, pad=3, bias=False)
    x = net.batch_norm(x, "2", EPS)
    x = net.relu(x, "3")
    x = net.max_pool(x, "4", 3, 2, pad=1)
    number = 5
    for stage, depth in enumerate(DEPTHS):
        for position in range(depth):
            first = position == 0
            stride = 2 if first and stage > 0 else 1
            with net.scope(str(number)):
                x = _bottleneck(net, x, 128 * 2**stage, stride, projects=first)
            number += 1
    x = net.mean_pool(x, f"{number}", 7)
    x = net.reshape(x, f"{number + 1}", 1, 2048)
    x = net.linear(x, f"{number + 2}", CLASSES)
    return net.render(net.softmax(x, f"{number + 3}"))


def _bottleneck(net: Network, x: Output, width: int, stride: int, *, projects: bool) -> Output:
    shortcut = x
    x = net.conv(x, "1", width, 1, bias=False)
    x = net.batch_norm(x, "2", EPS)
    x = net.relu(x, "3")
    x = net.conv(x, "4", width, 3, stride, pad=1, bias=False)
    x = net.batch_norm(x, "5", EPS)
    x = net.relu(x, "6")
    x = net.conv(x, "7", 2 * width, 1, bias=False)
    x = net.batch_norm(x, "8", EPS)
    last = 8
    if projects:
        shortcut = net.conv(shortcut, "9", 2 * width, 1, stride, bias=False)
        shortcut = net.batch_norm(shortcut, "10", EPS)
        last = 10
    x = net.add(f"{last + 1}", x, shortcut)
    return net.relu(x, f"{last + 2}")


ARCHITECTURES: tuple[Architecture, ...] = (
    Architecture(
        "wide_resnet50_2",
        _wide_resnet,
        (Row(19, "Wide ResNet-50-2 Trained on ImageNet Competition Data", "IC"),),
        classes=CLASSES,
    ),
)
