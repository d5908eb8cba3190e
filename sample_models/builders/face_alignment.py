"""Face alignment networks: four stacked hourglasses of hierarchical blocks (Bulat and Tzimiropoulos, 2017)."""

from sample_models.builders.architecture import Architecture, Row
from sample_models.builders.containers import (
    Step,
    chain,
    conv,
    enlarge,
    halve_by_mean,
    identity,
    joined,
    norm,
    relu,
    total,
)
from sample_models.builders.network import Network
from sample_models.builders.symbol_writer import Output

STACKS = 4
DEPTH = 4
WIDTH = 256
LANDMARKS = 68


def _preactivated(filters: int, kernel: int) -> Step:
    return chain(norm, relu, conv(filters, kernel))


def _block(inputs: int, outputs: int) -> Step:
    """Three convolutions, each on the output of the one before; all three results are kept side by side."""
    half, quarter = outputs // 2, outputs // 4
    last_two = chain(_preactivated(quarter, 3), joined(identity, _preactivated(quarter, 3)))
    all_three = chain(norm, relu, conv(half, 3), joined(identity, last_two))
    skip = identity if inputs == outputs else _preactivated(outputs, 1)
    return chain(total(all_three, skip))


def _hourglass(depth: int) -> Step:
    block = _block(WIDTH, WIDTH)
    inner = _hourglass(depth - 1) if depth > 1 else block
    return chain(total(chain(block), chain(halve_by_mean, block, inner, block, enlarge)))


def _build() -> bytes:
    net = Network()
    x = net.identity(net.input("data", 1, 3, 256, 256), "7")
    blocks = (_block(64, 128), halve_by_mean, _block(128, 128), _block(128, WIDTH))
    x = heat_maps = chain(conv(64, 7, stride=2), norm, relu, *blocks)(net, x, "11")
    # The outermost container numbers its members kind by kind, each kind from the last stack back to the first.
    for stacks_after in reversed(range(STACKS)):
        features = _features(net, x, stacks_after)
        heat_maps = conv(LANDMARKS, 1)(net, features, str(32 + stacks_after))
        if stacks_after:
            from_features = conv(WIDTH, 1)(net, features, str(2 * stacks_after))
            from_heat_maps = conv(WIDTH, 1)(net, heat_maps, str(2 * stacks_after - 1))
            x = net.add(str(7 + stacks_after), x, from_features, from_heat_maps)
    return net.render(heat_maps)


def _features(net: Network, x: Output, stacks_after: int) -> Output:
    members = {12: _hourglass(DEPTH), 16: _block(WIDTH, WIDTH), 20: conv(WIDTH, 1), 24: norm, 28: relu}
    for first, member in members.items():
        x = member(net, x, str(first + stacks_after))
    return x


ARCHITECTURES = (
    Architecture(
        file="face_alignment",
        build=_build,
        rows=(
            Row(42, "2D Face Alignment Net Trained on 300W Large Pose Data", "RG"),
            Row(43, "3D Face Alignment Net Trained on 300W Large Pose Data", "RG"),
        ),
    ),
)
