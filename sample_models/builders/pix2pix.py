"""Pix2pix: a U-net that halves the image eight times and joins each size again on the way up (Isola et al., 2017)."""

from itertools import count

from sample_models.builders.architecture import Architecture, Row
from sample_models.builders.network import Network
from sample_models.builders.pixel_range import from_unit, to_unit_by_tanh
from sample_models.builders.symbol_writer import Output

# Filters at each level, from the whole image down to one pixel.
WIDTHS = (3, 64, 128, 256, 512, 512, 512, 512, 512)

# The layers of each level, in the order in which the published network numbers them: from the innermost level outwards.
INNERMOST = ("leaky", "conv")
WITH_DROPOUT = ("relu", "leaky", "deconv", "conv", "norm_up", "norm_down", "dropout", "join")
PLAIN = ("leaky", "relu", "conv", "deconv", "norm_down", "norm_up", "join")
NEXT_TO_IMAGE = ("relu", "deconv", "conv", "norm_up", "join")
IMAGE = ("relu", "deconv", "to_unit", "from_unit")
LEVELS = (INNERMOST, *3 * (WITH_DROPOUT,), *3 * (PLAIN,), NEXT_TO_IMAGE, IMAGE)


def _build() -> bytes:
    numbers = count(1)
    names = [{layer: str(next(numbers)) for layer in level} for level in LEVELS]
    image, *inner = zip(reversed(names), WIDTHS, strict=True)
    net = Network()
    x = from_unit(net, net.input("data", 1, 3, 256, 256), image[0]["from_unit"])
    sizes = []
    for level, filters in inner:
        x = _down(net, x, level, filters)
        sizes.append(x)
    x = sizes.pop()
    for level, filters in reversed(inner[:-1]):
        x = _up(net, x, level, filters)
        if "dropout" in level:
            x = net.dropout(x, level["dropout"], 0.5)
        x = net.concat(level["join"], x, sizes.pop())
    level, filters = image
    x = _up(net, x, level, filters)
    return net.render(to_unit_by_tanh(net, x, level["to_unit"]))


def _down(net: Network, x: Output, names: dict[str, str], filters: int) -> Output:
    if "leaky" in names:
        x = net.leaky_relu(x, names["leaky"], 0.2)
    x = net.conv(x, names["conv"], filters, kernel=4, stride=2, pad=1)
    if "norm_down" in names:
        x = net.instance_norm(x, names["norm_down"], eps=1e-3)
    return x


def _up(net: Network, x: Output, names: dict[str, str], filters: int) -> Output:
    x = net.relu(x, names["relu"])
    x = net.deconv(x, names["deconv"], filters, kernel=4, stride=2, pad=1)
    if "norm_up" in names:
        x = net.instance_norm(x, names["norm_up"], eps=1e-3)
    return x


ARCHITECTURES = (
    Architecture(
        file="pix2pix",
        build=_build,
        rows=(
            Row(36, "Pix2pix Photo-to-Street-Map Translation", "IP"),
            Row(37, "Pix2pix Street-Map-to-Photo Translation", "IP"),
        ),
    ),
)
