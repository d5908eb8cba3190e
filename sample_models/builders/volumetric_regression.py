"""Volumetric regression of a face from one image: two stacked hourglasses (Jackson et al., 2017).

No public text defines this network; its edges follow from the names, the order and the shapes of its layers.
"""

from sample_models.builders.architecture import Architecture, Row
from sample_models.builders.containers import (
    Step,
    chain,
    conv,
    enlarge,
    halve_by_max,
    identity,
    norm,
    relu,
    sequence,
    total,
)
from sample_models.builders.network import Network
from sample_models.builders.symbol_writer import Output

SIDE = 192
DEPTH = 4
WIDTH = 256
VOLUME_SLICES = 200


def _residual(inputs: int, outputs: int) -> Step:
    half = outputs // 2
    bottleneck = chain(norm, relu, conv(half, 1), norm, relu, conv(half, 3), norm, relu, conv(outputs, 1))
    return chain(total(bottleneck, identity if inputs == outputs else chain(conv(outputs, 1))))


def _normalised(filters: int, kernel: int, stride: int = 1) -> tuple[Step, Step, Step]:
    return conv(filters, kernel, stride), norm, relu


def _hourglass(depth: int) -> Step:
    """Unlike other hourglasses it nests in the branch of full resolution, so that every level halves only once."""
    residual = _residual(WIDTH, WIDTH)
    nested = [chain(_hourglass(depth - 1), residual)] if depth > 1 else []
    low_resolution = [residual] * (6 if depth > 1 else 9)
    return total(chain(*[residual] * 3, *nested), chain(halve_by_max, *low_resolution, enlarge))


def _stack() -> Step:
    project = chain(*_normalised(WIDTH, 1))
    return total(identity, chain(_hourglass(DEPTH), _residual(WIDTH, WIDTH), project, project))


def _to_full_size(net: Network, x: Output, name: str) -> Output:
    return net.single(name, "resize", "_contrib_BilinearResize2D", x, height=SIDE, width=SIDE)


def _build() -> bytes:
    net = Network()
    return net.render(
        sequence(
            net,
            net.input("data", 1, 3, SIDE, SIDE),
            *_normalised(64, 7, stride=2),
            _residual(64, 128),
            halve_by_max,
            _residual(128, 128),
            _residual(128, WIDTH),
            _stack(),
            _stack(),
            chain(chain(*_normalised(WIDTH, 1)), conv(VOLUME_SLICES, 1), _to_full_size, Network.sigmoid),
        )
    )


ARCHITECTURES = (
    Architecture(
        file="volumetric_regression",
        build=_build,
        rows=(Row(47, "Unguided Volumetric RG Net for 3D Face Reconstruction", "RG"),),
    ),
)
