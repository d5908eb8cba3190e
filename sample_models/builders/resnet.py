"""ResNet-50, 101 and 152 as Caffe has them, and Yahoo's Open NSFW, a ResNet-50 of half the width."""

from dataclasses import dataclass
from functools import partial
from string import ascii_lowercase

from sample_models.builders.architecture import Architecture, Row
from sample_models.builders.network import Network
from sample_models.builders.symbol_writer import Output

EPS = 0.0001
RESNET50 = (3, 4, 6, 3)
RESNET101 = (3, 4, 23, 3)
RESNET152 = (3, 8, 36, 3)


@dataclass(frozen=True, slots=True)
class _BlockStyle:
    """The names of a block's layers, where `{}` stands for the branch, and if its convolutions have a bias."""

    scope: str
    conv: str
    norm: str
    relu: str
    shortcut: str
    total: str
    total_relu: str
    bias: bool


def _caffe_style(stage: int, tag: str) -> _BlockStyle:
    block = f"{stage}{tag}"
    return _BlockStyle(
        scope=block,
        conv=f"res{block}_{{}}",
        norm=f"bn{block}_{{}}",
        relu=f"res{block}_{{}}_relu",
        shortcut="branch1",
        total=f"res{block}",
        total_relu=f"res{block}_relu",
        bias=False,
    )


def _nsfw_style(stage: int, position: int) -> _BlockStyle:
    block = f"stage{stage}_block{position}"
    return _BlockStyle(
        scope=block,
        conv="conv_{}",
        norm="bn_{}",
        relu="relu_{}",
        shortcut="proj_shortcut",
        total=f"eltwise_{block}",
        total_relu=f"relu_{block}",
        bias=True,
    )


def _resnet(depths: tuple[int, ...], counted_stages: tuple[int, ...] = (), *, stem_bias: bool = False) -> bytes:
    """Blocks are lettered; in a counted stage they are called `a`, `b1`, `b2` and so on."""
    net = Network()
    x = net.input("data", 1, 3, 224, 224)
    x = _stem(net, x, "conv1", "bn_conv1", "conv1_relu", bias=stem_bias)
    for stage, depth in enumerate(depths, start=2):
        width = 64 * 2 ** (stage - 2)
        for position in range(depth):
            first = position == 0
            tag = ascii_lowercase[position] if first or stage not in counted_stages else f"b{position}"
            stride = 2 if first and stage > 2 else 1
            x = _bottleneck(net, x, _caffe_style(stage, tag), width, stride, projects=first)
    return _head(net, x, "pool5", "fc1000", 1000)


def _open_nsfw() -> bytes:
    net = Network()
    x = net.input("data", 1, 3, 224, 224)
    x = _stem(net, x, "conv_1", "bn_1", "relu_1", bias=True)
    for stage, depth in enumerate(RESNET50):
        width = 32 * 2**stage
        for position in range(depth):
            first = position == 0
            stride = 2 if first and stage > 0 else 1
            x = _bottleneck(net, x, _nsfw_style(stage, position), width, stride, projects=first)
    return _head(net, x, "pool", "fc_nsfw", 2)


def _stem(net: Network, x: Output, conv: str, norm: str, relu: str, *, bias: bool) -> Output:
    x = net.conv(x, conv, 64, 7, 2, pad=3, bias=bias)
    x = net.batch_norm(x, norm, EPS)
    x = net.relu(x, relu)
    x = net.pad(x, "pool1_pad", 0, 1)
    return net.max_pool(x, "pool1", 3, 2)


def _bottleneck(net: Network, x: Output, style: _BlockStyle, width: int, stride: int, *, projects: bool) -> Output:
    with net.scope(style.scope):
        shortcut = _conv(net, x, style, style.shortcut, 4 * width, 1, stride) if projects else x
        # Caffe's networks stride in the first 1x1 convolution, later ones in the 3x3.
        x = _conv(net, x, style, "branch2a", width, 1, stride)
        x = net.relu(x, style.relu.format("branch2a"))
        x = _conv(net, x, style, "branch2b", width, 3)
        x = net.relu(x, style.relu.format("branch2b"))
        x = _conv(net, x, style, "branch2c", 4 * width, 1)
        x = net.add(style.total, shortcut, x)
        return net.relu(x, style.total_relu)


def _conv(net: Network, x: Output, style: _BlockStyle, branch: str, width: int, kernel: int, stride: int = 1) -> Output:
    x = net.conv(x, style.conv.format(branch), width, kernel, stride, pad=kernel // 2, bias=style.bias)
    return net.batch_norm(x, style.norm.format(branch), EPS)


def _head(net: Network, x: Output, pool: str, classifier: str, classes: int) -> bytes:
    x = net.mean_pool(x, pool, 7)
    x = net.flatten(x, "flatten_0")
    x = net.linear(x, classifier, classes)
    return net.render(net.softmax(x, "prob"))


ARCHITECTURES: tuple[Architecture, ...] = (
    Architecture(
        "resnet50",
        # Only this one was published with a bias before a batch norm, in its first convolution.
        partial(_resnet, RESNET50, stem_bias=True),
        (Row(14, "ResNet-50 Trained on ImageNet Competition Data", "IC"),),
        classes=1000,
    ),
    Architecture(
        "resnet101",
        partial(_resnet, RESNET101, counted_stages=(3, 4)),
        (Row(11, "ResNet-101 Trained on ImageNet Competition Data", "IC"),),
        classes=1000,
    ),
    Architecture(
        "resnet152",
        partial(_resnet, RESNET152, counted_stages=(3, 4)),
        (Row(13, "ResNet-152 Trained on ImageNet Competition Data", "IC"),),
        classes=1000,
    ),
    Architecture(
        "open_nsfw",
        _open_nsfw,
        (Row(21, "Yahoo Open NSFW Model V1", "IC"),),
        classes=2,
    ),
)
