"""MobileNet V2 of width 1.4: inverted residuals, which expand, filter each channel by itself and project."""

from sample_models.builders.architecture import Architecture, Row
from sample_models.builders.network import Network
from sample_models.builders.symbol_writer import Output

EPS = 0.001
CLASSES = 1001
STEM_WIDTH = 48
HEAD_WIDTH = 1792
EXPANSION = 6

# Groups 2 to 6, as the layers are named: output width and stride of each bottleneck.
GROUPS = (
    ((24, 1), (32, 2)),
    ((32, 1), (48, 2)),
    ((48, 1), (48, 1), (88, 2), (88, 1), (88, 1), (88, 1), (136, 1)),
    ((136, 1), (136, 1), (224, 2)),
    ((224, 1), (224, 1), (448, 1)),
)


def _mobilenet_v2() -> bytes:
    net = Network()
    x = net.input("data", 1, 3, 224, 224)
    with net.scope("1"):
        # TensorFlow pads this and every other convolution of stride 2 by 0 and 2, which costs the same.
        x = net.conv(x, "conv1", STEM_WIDTH, 3, 2, pad=1, bias=False)
        x = net.batch_norm(x, "conv1_bn", EPS)
        x = net.relu6(x, "relu1")
    width = STEM_WIDTH
    for group, bottlenecks in enumerate(GROUPS, start=2):
        for position, (out_width, stride) in enumerate(bottlenecks, start=1):
            x = _bottleneck(net, x, f"{group}_{position}", width, out_width, stride)
            width = out_width
    with net.scope("6_4"):
        x = net.conv(x, "conv6_4", HEAD_WIDTH, 1, bias=False)
        x = net.batch_norm(x, "conv6_4_bn", EPS)
        x = net.relu6(x, "relu6_4")
    x = net.mean_pool(x, "pool6", 7)
    x = net.conv(x, "fc7", CLASSES, 1)
    x = net.reshape(x, "reshape", 1, CLASSES)
    return net.render(net.softmax(x, "prob_softmax"))


def _bottleneck(net: Network, x: Output, tag: str, width: int, out_width: int, stride: int) -> Output:
    block_input = x
    first = tag == "2_1"
    expanded = width if first else EXPANSION * width
    parts = iter("1234")
    with net.scope(tag):
        if not first:
            with net.scope(next(parts)):
                x = net.conv(x, f"conv{tag}_expand", expanded, 1, bias=False)
                x = net.batch_norm(x, f"conv{tag}_expand_bn", EPS)
                x = net.relu6(x, f"relu{tag}_expand")
        with net.scope(next(parts)):
            x = net.conv(x, f"conv{tag}_dwise", expanded, 3, stride, pad=1, groups=expanded, bias=False)
            x = net.batch_norm(x, f"conv{tag}_dwise_bn", EPS)
            x = net.relu6(x, f"relu{tag}_dwise")
        with net.scope(next(parts)):
            x = net.conv(x, f"conv{tag}_linear", out_width, 1, bias=False)
            x = net.batch_norm(x, f"conv{tag}_linear_bn", EPS)
        if stride == 1 and width == out_width:
            x = net.add(next(parts), block_input, x)
    return x


ARCHITECTURES: tuple[Architecture, ...] = (
    Architecture(
        "mobilenet_v2_1.4",
        _mobilenet_v2,
        (Row(10, "MobileNet V2 Trained on ImageNet Competition Data", "IC"),),
        classes=CLASSES,
    ),
)
