"""Layers by which networks that paint take pixel values from 0..1 to -1..1 and back."""

from sample_models.builders.network import Network
from sample_models.builders.symbol_writer import Output


def from_unit(net: Network, x: Output, name: str) -> Output:
    """-1 + 2x."""
    with net.layer(name, "elementwise") as writer:
        return writer.op("_plus_scalar", writer.op("_mul_scalar", x, scalar=2.0), scalar=-1.0)


def to_unit_by_tanh(net: Network, x: Output, name: str) -> Output:
    """0.5 + 0.5 tanh(x)."""
    with net.layer(name, "elementwise") as writer:
        squeezed = writer.op("Activation", x, act_type="tanh")
        return writer.op("_plus_scalar", writer.op("_mul_scalar", squeezed, scalar=0.5), scalar=0.5)
