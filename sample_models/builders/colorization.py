"""Colorful image colorization: a classification of colours, then their mean (Zhang et al., 2016)."""

from sample_models.builders.architecture import Architecture, Row
from sample_models.builders.network import Network
from sample_models.builders.symbol_writer import Output

COLOURS = 313
# Filters, convolutions, stride of the last one and dilation of all.
GROUPS = (
    (64, 2, 2, 1),
    (128, 2, 2, 1),
    (256, 3, 2, 1),
    (512, 3, 1, 1),
    (512, 3, 1, 2),
    (512, 3, 1, 2),
    (512, 3, 1, 1),
)


def _build() -> bytes:
    net = Network()
    x = net.input("data", 1, 1, 224, 224)
    for number, group in enumerate(GROUPS, start=1):
        x = _group(net, x, number, *group)
    x = net.relu(net.deconv(x, "conv8_1", 256, kernel=4, stride=2, pad=1), "relu8_1")
    for place in (2, 3):
        x = net.relu(net.conv(x, f"conv8_{place}", 256, kernel=3, pad=1), f"relu8_{place}")
    x = net.conv(x, f"conv8_{COLOURS}", COLOURS, kernel=1)
    x = net.single(f"class8_{COLOURS}rh1", "elementwise", "_mul_scalar", x, scalar=2.606)
    x = net.transpose(x, "transpose", 0, 2, 3, 1)
    x = net.softmax(x, "prob")
    x = net.transpose(x, "transpose2", 0, 3, 1, 2)
    x = net.conv(x, "final_conv", 2, kernel=1)
    return net.render(net.single("final_scaling", "elementwise", "_mul_scalar", x, scalar=0.01))


def _group(net: Network, x: Output, number: int, filters: int, size: int, last_stride: int, dilation: int) -> Output:
    for place in range(1, size + 1):
        # The first layer reads grey values only.
        prefix = "bw_" if (number, place) == (1, 1) else ""
        stride = last_stride if place == size else 1
        name = f"conv{number}_{place}"
        x = net.conv(x, prefix + name, filters, kernel=3, stride=stride, pad=dilation, dilation=dilation)
        x = net.relu(x, f"relu{number}_{place}")
    return net.batch_norm(x, f"{name}norm", eps=1e-4)


ARCHITECTURES = (
    Architecture(
        file="colorization",
        build=_build,
        rows=(Row(23, "Colorful Image Colorization Trained on ImageNet Competition Data", "IP"),),
    ),
)
