"""VGG-16 and VGG-19: groups of 3x3 convolutions, each closed by a pool, and three linear layers."""

from functools import partial

from sample_models.builders.architecture import Architecture, Row
from sample_models.builders.network import Network

WIDTHS = (64, 128, 256, 512, 512)
VGG16 = (2, 2, 3, 3, 3)
VGG19 = (2, 2, 4, 4, 4)


def _vgg(depths: tuple[int, ...], classes: int, classifier: str) -> bytes:
    net = Network()
    x = net.input("data", 1, 3, 224, 224)
    for group, (depth, width) in enumerate(zip(depths, WIDTHS, strict=True), start=1):
        for position in range(1, depth + 1):
            x = net.conv(x, f"conv{group}_{position}", width, 3, pad=1)
            x = net.relu(x, f"relu{group}_{position}")
        x = net.max_pool(x, f"pool{group}", 2, 2)
    x = net.flatten(x, "flatten_0")
    for number in (6, 7):
        x = net.linear(x, f"fc{number}", 4096)
        x = net.relu(x, f"relu{number}")
        x = net.dropout(x, f"drop{number}", 0.5)
    x = net.linear(x, classifier, classes)
    return net.render(net.softmax(x, "prob"))


ARCHITECTURES: tuple[Architecture, ...] = (
    Architecture(
        "vgg16_101",
        partial(_vgg, VGG16, 101, "fc8_101"),
        (
            Row(2, "Age Estimation VGG-16 Trained on IMDB-WIKI and Looking at People Data", "IC"),
            Row(3, "Age Estimation VGG-16 Trained on IMDB-WIKI Data", "IC"),
        ),
        classes=101,
    ),
    Architecture(
        "vgg16_2",
        partial(_vgg, VGG16, 2, "fc8_2"),
        (Row(5, "Gender Prediction VGG-16 Trained on IMDB-WIKI Data", "IC"),),
        classes=2,
    ),
    Architecture(
        "vgg16_1000",
        partial(_vgg, VGG16, 1000, "fc8"),
        (Row(17, "VGG-16 Trained on ImageNet Competition Data", "IC"),),
        classes=1000,
    ),
    Architecture(
        "vgg19_1000",
        partial(_vgg, VGG19, 1000, "fc8"),
        (Row(18, "VGG-19 Trained on ImageNet Competition Data", "IC"),),
        classes=1000,
    ),
)
