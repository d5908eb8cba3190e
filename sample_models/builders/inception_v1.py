"""Inception V1 (GoogLeNet) as Caffe has it: nine modules of four branches, pools rounded up by a padding layer."""

from dataclasses import dataclass
from functools import partial

from sample_models.builders.architecture import Architecture, Row
from sample_models.builders.network import Network
from sample_models.builders.symbol_writer import Output


@dataclass(frozen=True, slots=True)
class _Module:
    """The widths of one module's branches; a pair is (reduction, convolution)."""

    name: str
    conv1: int
    conv3: tuple[int, int]
    conv5: tuple[int, int]
    projection: int


STAGES = (
    (
        _Module("3a", 64, (96, 128), (16, 32), 32),
        _Module("3b", 128, (128, 192), (32, 96), 64),
    ),
    (
        _Module("4a", 192, (96, 208), (16, 48), 64),
        _Module("4b", 160, (112, 224), (24, 64), 64),
        _Module("4c", 128, (128, 256), (24, 64), 64),
        _Module("4d", 112, (144, 288), (32, 64), 64),
        _Module("4e", 256, (160, 320), (32, 128), 128),
    ),
    (
        _Module("5a", 256, (160, 320), (32, 128), 128),
        _Module("5b", 384, (192, 384), (48, 128), 128),
    ),
)


def _inception_v1(classes: int, classifier: str, softmax: str) -> bytes:
    net = Network()
    x = net.input("data", 1, 3, 224, 224)
    x = net.conv(x, "conv1_7x7_s2", 64, 7, stride=2, pad=3)
    x = net.relu(x, "conv1_relu_7x7")
    x = _halve(net, x, "pool1")
    x = _local_response_norm(net, x, "pool1_norm1")
    x = net.conv(x, "conv2_3x3_reduce", 64, 1)
    x = net.relu(x, "conv2_relu_3x3_reduce")
    x = net.conv(x, "conv2_3x3", 192, 3, pad=1)
    x = net.relu(x, "conv2_relu_3x3")
    x = _local_response_norm(net, x, "conv2_norm2")
    for number, stage in enumerate(STAGES, start=2):
        x = _halve(net, x, f"pool{number}")
        for module in stage:
            x = _inception(net, x, module)
    x = net.mean_pool(x, "pool5_7x7_s1", 7)
    x = net.dropout(x, "pool5_drop_7x7_s1", 0.4)
    x = net.flatten(x, "flatten_0")
    x = net.linear(x, classifier, classes)
    return net.render(net.softmax(x, softmax))


def _inception(net: Network, x: Output, module: _Module) -> Output:
    with net.scope(f"inception_{module.name}"):
        branches = [_conv(net, x, "1x1", module.conv1)]
        for kernel, (reduction, width) in ((3, module.conv3), (5, module.conv5)):
            reduced = _conv(net, x, f"{kernel}x{kernel}_reduce", reduction)
            branches.append(_conv(net, reduced, f"{kernel}x{kernel}", width, kernel))
        pooled = net.max_pool(x, "pool", 3, pad=1)
        branches.append(_conv(net, pooled, "pool_proj", module.projection))
        return net.concat("output", *branches)


def _conv(net: Network, x: Output, name: str, width: int, kernel: int = 1) -> Output:
    x = net.conv(x, name, width, kernel, pad=kernel // 2)
    return net.relu(x, f"relu_{name}")


def _halve(net: Network, x: Output, name: str) -> Output:
    x = net.pad(x, f"{name}_3x3_s2_pad", 0, 1)
    return net.max_pool(x, f"{name}_3x3_s2", 3, 2)


def _local_response_norm(net: Network, x: Output, name: str) -> Output:
    return net.single(name, "lrn", "LRN", x, alpha=0.0001, beta=0.75, knorm=1.0, nsize=5)


ARCHITECTURES: tuple[Architecture, ...] = (
    Architecture(
        "inception_v1_5",
        partial(_inception_v1, 5, "loss3_classifier_sos", "loss3_loss3"),
        (Row(6, "Inception V1 Trained on Extended Salient Object Subitizing Data", "IC"),),
        classes=5,
    ),
    Architecture(
        "inception_v1_1000",
        partial(_inception_v1, 1000, "loss3_classifier", "prob"),
        (Row(7, "Inception V1 Trained on ImageNet Competition Data", "IC"),),
        classes=1000,
    ),
    Architecture(
        "inception_v1_365",
        partial(_inception_v1, 365, "loss3_classifier", "prob"),
        (Row(8, "Inception V1 Trained on Places365 Data", "IC"),),
        classes=365,
    ),
)
