"""The multi-scale context network: an unpadded VGG-16 that dilates instead of pooling, then a context module."""

from sample_models.builders.architecture import Architecture, Row
from sample_models.builders.network import Network
from sample_models.builders.symbol_writer import Output

CLASSES = 11

# Depth, width and dilation of each group of convolutions; a pool follows the first three.
GROUPS = ((2, 64, 1), (2, 128, 1), (3, 256, 1), (3, 512, 1), (3, 512, 2))
POOLED_GROUPS = 3

# The context module's convolutions and how far each looks; they are padded to keep the size of the image.
CONTEXT = (("1_1", 1), ("1_2", 1), ("2_1", 2), ("3_1", 4), ("4_1", 8), ("5_1", 16))


def _dilation8() -> bytes:
    net = Network()
    x = net.input("data", 1, 3, 900, 1100)
    x = _front_end(net, x)
    x = _context_module(net, x)
    x = net.transpose(x, "transpose_final", 0, 2, 3, 1)
    return net.render(net.softmax(x, "prob"))


def _front_end(net: Network, x: Output) -> Output:
    for group, (depth, width, dilation) in enumerate(GROUPS, start=1):
        for position in range(1, depth + 1):
            x = net.conv(x, f"conv{group}_{position}", width, 3, dilation=dilation)
            x = net.relu(x, f"relu{group}_{position}")
        if group <= POOLED_GROUPS:
            x = net.max_pool(x, f"pool{group}", 2, 2)
    for number, kernel, dilation in ((6, 7, 4), (7, 1, 1)):
        x = net.conv(x, f"fc{number}", 4096, kernel, dilation=dilation)
        x = net.relu(x, f"relu{number}")
        x = net.dropout(x, f"drop{number}", 0.5)
    return net.conv(x, "final", CLASSES, 1)


def _context_module(net: Network, x: Output) -> Output:
    for name, dilation in CONTEXT:
        x = net.conv(x, f"ctx_conv{name}", CLASSES, 3, pad=dilation, dilation=dilation)
        x = net.relu(x, f"ctx_relu{name}")
    x = net.conv(x, "ctx_fc1", CLASSES, 3, pad=1)
    x = net.relu(x, "ctx_fc1_relu")
    return net.conv(x, "ctx_final", CLASSES, 1)


ARCHITECTURES: tuple[Architecture, ...] = (
    Architecture(
        "dilation8_camvid",
        _dilation8,
        (Row(50, "Multi-scale Context Aggregation Net Trained on CamVid Data", "SS"),),
        classes=CLASSES,
    ),
)
