"""Very deep super-resolution: twenty equal convolutions (Kim et al., 2016)."""

from sample_models.builders.architecture import Architecture, Row
from sample_models.builders.network import Network

DEPTH = 20


def _build() -> bytes:
    net = Network()
    x = net.input("data", 1, 1, 255, 255)
    for place in range(1, DEPTH):
        x = net.conv(x, f"conv{place}", 64, kernel=3, pad=1)
        x = net.relu(x, f"relu{place + 1}")
    x = net.conv(x, f"conv{DEPTH}", 1, kernel=3, pad=1)
    # The sum with the input image is not part of the published network.
    return net.render(net.transpose(x, "transpose_final", 0, 2, 3, 1))


ARCHITECTURES = (Architecture(file="vdsr", build=_build, rows=(Row(38, "Very Deep Net for Super-Resolution", "IP"),)),)
