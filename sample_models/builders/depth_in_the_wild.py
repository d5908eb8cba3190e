"""Depth from a single image: one hourglass of inception modules (Chen et al., 2016)."""

from sample_models.builders.architecture import Architecture, Row
from sample_models.builders.containers import (
    Step,
    chain,
    conv,
    enlarge,
    halve_by_max,
    halve_by_mean,
    joined,
    norm,
    relu,
    sequence,
    total,
)
from sample_models.builders.network import Network
from sample_models.builders.symbol_writer import Output


def _inception(filters: int, reduced: int, *kernels: int) -> Step:
    """A 1x1 convolution beside larger ones, each of which works on fewer channels."""
    plain = chain(conv(filters, 1), norm, relu)
    large = (chain(conv(reduced, 1), norm, relu, conv(filters, kernel), norm, relu) for kernel in kernels)
    return joined(plain, *large)


def _hourglass() -> Step:
    narrow = _inception(32, 32, 3, 5, 7)
    wide = _inception(64, 32, 3, 5, 7)
    far = _inception(64, 64, 3, 7, 11)
    innermost = chain(total(chain(wide, wide), chain(halve_by_mean, wide, wide, wide, enlarge)))
    third = chain(total(chain(wide, far), chain(halve_by_mean, wide, wide, innermost, wide, far, enlarge)))
    second = chain(
        total(
            chain(halve_by_max, narrow, wide, third, wide, narrow, enlarge),
            chain(narrow, _inception(32, 64, 3, 7, 11)),
        )
    )
    low = chain(
        halve_by_max, narrow, narrow, second, _inception(32, 64, 3, 5, 7), _inception(16, 32, 3, 7, 11), enlarge
    )
    return chain(total(low, chain(_inception(16, 64, 3, 7, 11))))


def _only_channel(net: Network, x: Output, name: str) -> Output:
    with net.layer(name, "slice") as writer:
        return writer.op("squeeze", writer.op("slice_axis", x, axis=1, begin=0, end=1), axis=1)


def _build() -> bytes:
    net = Network()
    x = net.input("data", 1, 3, 240, 320)
    return net.render(sequence(net, x, conv(128, 7), norm, relu, _hourglass(), conv(1, 3), _only_channel))


ARCHITECTURES = (
    Architecture(
        file="depth_in_the_wild",
        build=_build,
        rows=(
            Row(44, "Single-Image Depth Perception Net Trained on Depth in the Wild Data", "RG"),
            Row(45, "Single-Image Depth Perception Net Trained on NYU Depth V2 and Depth in the Wild Data", "RG"),
            Row(46, "Single-Image Depth Perception Net Trained on NYU Depth V2 Data", "RG"),
        ),
    ),
)
