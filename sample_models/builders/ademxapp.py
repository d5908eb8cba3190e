"""Ademxapp models A and A1: wide pre-activation residual networks without biases, A1 dilated instead of pooled."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial

from sample_models.builders.architecture import Architecture, Row
from sample_models.builders.network import Network
from sample_models.builders.symbol_writer import Output

EPS = 1.001e-5


@dataclass(frozen=True, slots=True)
class _Conv:
    width: int
    kernel: int
    stride: int = 1
    dilation: int = 1


# Each level's number of units, and the convolutions of one unit.
LEVELS: Mapping[int, tuple[int, tuple[_Conv, ...]]] = {
    2: (3, (_Conv(128, 3), _Conv(128, 3))),
    3: (3, (_Conv(256, 3), _Conv(256, 3))),
    4: (6, (_Conv(512, 3), _Conv(512, 3))),
    5: (3, (_Conv(512, 3), _Conv(1024, 3))),
    6: (1, (_Conv(512, 1), _Conv(1024, 3), _Conv(2048, 1))),
    7: (1, (_Conv(1024, 1), _Conv(2048, 3), _Conv(4096, 1))),
}

# Model A halves the image by a pool before these levels.
POOLED_LEVELS = (2, 3, 4, 5, 6)

# Model A1 strides into these levels and keeps the image after them; its kernels widen instead.
STRIDED_LEVELS = (2, 3, 4)
DILATIONS: Mapping[int, int] = {5: 2, 6: 4, 7: 4}
DROPOUTS: Mapping[int, float] = {6: 0.3, 7: 0.5}


def _model_a() -> bytes:
    net = Network()
    x = net.input("data", 1, 3, 320, 320)
    x = _conv(net, x, "conv1a", _Conv(64, 3))
    for level, (units, convs) in LEVELS.items():
        if level in POOLED_LEVELS:
            x = net.max_pool(x, f"pool{level - 1}", 3, 2, pad=1)
        for position in range(units):
            tag = _unit_tag(level, position)
            x = _unit(net, x, tag, convs, f"_plus{tag}", projects=position == 0)
    x = _norm_relu(net, x, "bn7", "relu7")
    x = net.spatial_mean(x, "pool7")
    x = net.linear(x, "linear1000", 1000)
    return net.render(net.softmax(x, "softmax"))


def _model_a1(classes: int) -> bytes:
    net = Network()
    x = net.input("data", 1, 3, 504, 504)
    x = _conv(net, x, "conv1a", _Conv(64, 3))
    for level, (units, convs) in LEVELS.items():
        dilated = [replace(conv, dilation=DILATIONS.get(level, 1)) for conv in convs]
        # A level's first convolution still reads the grid of the level before.
        entering = replace(convs[0], stride=2 if level in STRIDED_LEVELS else 1, dilation=DILATIONS.get(level - 1, 1))
        for position in range(units):
            tag = _unit_tag(level, position)
            first = position == 0
            unit_convs = (entering if first else dilated[0], *dilated[1:])
            x = _unit(net, x, tag, unit_convs, f"{tag}_plus", projects=first, dropout=DROPOUTS.get(level))
    x = _norm_relu(net, x, "bn7", "relu7")
    x = _conv(net, x, "conv6a", _Conv(512, 3, dilation=12))
    x = net.relu(x, "conv6a_relu")
    x = _conv(net, x, f"linear{classes}", _Conv(classes, 3, dilation=12))
    with net.scope("softmax"):
        x = net.transpose(x, "1", 0, 2, 3, 1)
        return net.render(net.softmax(x, "2"))


def _unit_tag(level: int, position: int) -> str:
    return f"{level}b{position}" if position else f"{level}a"


def _unit(
    net: Network,
    x: Output,
    tag: str,
    convs: tuple[_Conv, ...],
    plus: str,
    *,
    projects: bool,
    dropout: float | None = None,
) -> Output:
    shortcut = x
    with net.scope(tag):
        for index, conv in enumerate(convs):
            branch = f"{tag}_branch2b{index}" if index else f"{tag}_branch2a"
            x = _norm_relu(net, x, f"bn{branch}", f"res{branch}_relu")
            if projects and index == 0:
                shortcut = _conv(net, x, f"res{tag}_branch1", _Conv(convs[-1].width, 1, conv.stride))
            if dropout is not None and index == len(convs) - 1:
                x = net.dropout(x, f"res{branch}_do", dropout)
            x = _conv(net, x, f"res{branch}", conv)
        return net.add(plus, x, shortcut)


def _norm_relu(net: Network, x: Output, norm: str, relu: str) -> Output:
    x = net.batch_norm(x, norm, EPS)
    return net.relu(x, relu)


def _conv(net: Network, x: Output, name: str, conv: _Conv) -> Output:
    dilation = conv.dilation if conv.kernel > 1 else 1
    pad = dilation * (conv.kernel // 2)
    return net.conv(x, name, conv.width, conv.kernel, conv.stride, pad, dilation=dilation, bias=False)


ARCHITECTURES: tuple[Architecture, ...] = (
    Architecture(
        "ademxapp_a",
        _model_a,
        (Row(1, "Ademxapp Model A Trained on ImageNet Competition Data", "IC"),),
        classes=1000,
    ),
    Architecture(
        "ademxapp_a1_150",
        partial(_model_a1, 150),
        (Row(48, "Ademxapp Model A1 Trained on ADE20K Data", "SS"),),
        classes=150,
    ),
    Architecture(
        "ademxapp_a1_21",
        partial(_model_a1, 21),
        (Row(49, "Ademxapp Model A1 Trained on PASCAL VOC2012 and MS-COCO Data", "SS"),),
        classes=21,
    ),
)
