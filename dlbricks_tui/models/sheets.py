"""Sheets, on which the networks for a worker are written: one implementation per file format."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol

from dlbricks_tui.models.graph import LayerGraph, NativeNode, TensorType
from dlbricks_tui.models.mxnet.symbol_writer import SymbolSheet
from dlbricks_tui.models.onnx.neutral import plain_native, version_among
from dlbricks_tui.models.onnx.writer import OnnxSheet
from dlbricks_tui.runtime.traits import Format, Traits


class SheetOutput(NamedTuple):
    """One output of a node on a sheet."""

    node: int
    output: int


class Waker(NamedTuple):
    """An operator that reads the result of the one before it and these weights."""

    native: NativeNode
    weights: Sequence[TensorType]


class Sheet(Protocol):
    """Collects the nodes of one network. Nodes are known by number."""

    def fresh(self, name: str) -> str:
        """Return the name, or a similar one if it is taken."""

    def variable(self, name: str, found: TensorType, *, learned: bool) -> int:
        """Write an array of that name."""

    def operator(self, native: NativeNode, name: str, inputs: Sequence[SheetOutput]) -> int:
        """Write an operator that reads these outputs; `name` is the name of its layer."""

    def in_passing(self, entry: SheetOutput) -> Sequence[tuple[int, int]]:
        """Return the outputs to request so that `entry` is computed at the same cost as in the middle of a model."""

    def text(self, heads: Sequence[SheetOutput]) -> str:
        """Return the network with these outputs, as a worker reads it."""


_SHEETS: Mapping[Format, Callable[[], Sheet]] = {Format.MXNET: SymbolSheet, Format.ONNX: OnnxSheet}

# Enough channels to fill the blocks of any oneDNN layout.
_CHANNELS = 16
_SIDE = 4
# Short operators that use the same parts of MXNet as most layers: a convolution, and a conversion to the plain layout,
# which MXNet's own operators read.
_WAKERS: Mapping[Format, Sequence[Waker]] = {
    Format.MXNET: (
        Waker(
            NativeNode("Convolution", (("kernel", "(1, 1)"), ("num_filter", str(_CHANNELS)), ("no_bias", "True"))),
            (TensorType((1, _CHANNELS, _SIDE, _SIDE)), TensorType((_CHANNELS, _CHANNELS, 1, 1))),
        ),
        Waker(NativeNode("_plus_scalar", (("scalar", "1"),)), ()),
    )
}
_COPIES: Mapping[Format, Callable[[], NativeNode]] = {
    Format.MXNET: lambda: NativeNode("_copy"),
    Format.ONNX: lambda: plain_native("Identity"),
}
# Operators that keep positive values. MXNet's copy converts a tensor to the plain layout. Its relu keeps the layout.
_RELUS: Mapping[Format, Callable[[], NativeNode]] = {
    Format.MXNET: lambda: NativeNode("Activation", (("act_type", "relu"),)),
    Format.ONNX: lambda: plain_native("Relu"),
}


def sheet_for(form: Format) -> Sheet:
    """Return an empty sheet for native nodes of that format."""
    return _SHEETS[form]()


def plain_copy(form: Format) -> NativeNode:
    """Return an operator that copies an array."""
    return _COPIES[form]()


def wakers(traits: Traits) -> Sequence[Waker]:
    """Return a row of short operators to run first where the framework sleeps between two runs."""
    return _WAKERS[traits.format] if traits.sleeps_between_runs else ()


def copy_of(graph: LayerGraph, dtype: str) -> NativeNode:
    """Return an operator that copies positive values with all cores, and in their layout where possible."""
    # No runtime computes with the other floats.
    if dtype not in ("float16", "float32", "float64"):
        return plain_copy(graph.format)
    parallel = _parallel_operator(graph) if dtype == "float32" else None
    return _RELUS[graph.format]() if parallel is None else plain_native(parallel)


def _parallel_operator(graph: LayerGraph) -> str | None:
    """Return the operator that copies small tensors with all cores, so that each core's caches hold its part."""
    version = version_among(operator.native for layer in graph.layers for operator in layer.operators)
    found = (op for op, since in graph.traits.parallel_operators if version is None or version >= since)
    return next(found, None)
