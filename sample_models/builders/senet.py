"""SENet-154: grouped bottlenecks that weigh their channels by a small network before the sum."""

from string import ascii_lowercase

from sample_models.builders.architecture import Architecture, Row
from sample_models.builders.network import Network
from sample_models.builders.symbol_writer import Output

EPS = 0.0001
GROUPS = 64
REDUCTION = 16
CLASSES = 1000
DEPTHS = (3, 8, 36, 3)


def _senet154() -> bytes:
    net = Network()
    x = net.input("data", 1, 3, 224, 224)
    for number, (suffix, width, stride) in enumerate((("3x3_s2", 64, 2), ("3x3", 64, 1), ("3x3", 128, 1)), start=1):
        x = net.conv(x, f"conv1_{number}_{suffix}", width, 3, stride, pad=1, bias=False)
        x = net.batch_norm(x, f"conv1_{number}_{suffix}_bn", EPS)
        x = net.relu(x, f"conv1_{number}_relu_{suffix}")
    x = net.pad(x, "pool1_3x3_s2_pad", 0, 1)
    x = net.max_pool(x, "pool1_3x3_s2", 3, 2)
    for stage, depth in enumerate(DEPTHS, start=2):
        width = 64 * 2**stage
        side = 224 // 2**stage
        for position in range(depth):
            first = position == 0
            stride = 2 if first and stage > 2 else 1
            with net.scope(_block_scope(stage, position)):
                x = _block(net, x, f"conv{stage}_{position + 1}", width, side, stride, projects=first)
    x = net.mean_pool(x, "pool5_7x7_s1", 7)
    x = net.dropout(x, "pool5_dropout_7x7_s1", 0.2)
    x = net.flatten(x, "flatten_0")
    x = net.linear(x, "classifier", CLASSES)
    return net.render(net.softmax(x, "prob"))


def _block_scope(stage: int, position: int) -> str:
    """Blocks are lettered; the long stage runs out of letters and counts on from `z1`."""
    letters = len(ascii_lowercase)
    return f"{stage}{ascii_lowercase[position]}" if position < letters else f"z{position - letters + 1}"


def _block(net: Network, x: Output, name: str, width: int, side: int, stride: int, *, projects: bool) -> Output:
    shortcut = x
    if projects:
        # Called 1x1 even where it strides with a kernel of 3x3.
        shortcut = _conv(net, x, f"{name}_1x1_proj", width, 3 if stride == 2 else 1, stride)
    x = _conv(net, x, f"{name}_1x1_reduce", width // 2)
    x = net.relu(x, f"{name}_1x1_reduce_relu")
    x = _conv(net, x, f"{name}_3x3", width, 3, stride, groups=GROUPS)
    x = net.relu(x, f"{name}_3x3_relu")
    x = _conv(net, x, f"{name}_1x1_increase", width)
    x = _weigh_channels(net, x, name, width, side)
    x = net.add(f"{name}_eltwise", x, shortcut)
    return net.relu(x, f"{name}_relu")


def _weigh_channels(net: Network, x: Output, name: str, width: int, side: int) -> Output:
    weight = net.spatial_mean(x, f"{name}_global_pool")
    weight = net.linear(weight, f"{name}_1x1_down", width // REDUCTION)
    weight = net.relu(weight, f"{name}_1x1_down_relu")
    weight = net.linear(weight, f"{name}_1x1_up", width)
    weight = net.sigmoid(weight, f"{name}_prob")
    weight = net.replicate(weight, f"{name}_scale_expand1", side, side)
    return net.multiply(f"{name}_scale", x, weight)


def _conv(
    net: Network, x: Output, name: str, width: int, kernel: int = 1, stride: int = 1, *, groups: int = 1
) -> Output:
    x = net.conv(x, name, width, kernel, stride, pad=kernel // 2, groups=groups, bias=False)
    return net.batch_norm(x, f"{name}_bn", EPS)


ARCHITECTURES: tuple[Architecture, ...] = (
    Architecture(
        "senet154",
        _senet154,
        (Row(15, "Squeeze-and-Excitation Net Trained on ImageNet Competition Data", "IC"),),
        classes=CLASSES,
    ),
)
