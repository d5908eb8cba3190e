"""What programs are written on: one implementation for each format of models."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from dlbricks_tui.models.graph import LayerGraph, NativeNode, TensorType
from dlbricks_tui.models.mxnet.symbol_sheet import SymbolSheet
from dlbricks_tui.models.onnx.native import plain_native, version_among
from dlbricks_tui.models.onnx.writer import OnnxSheet
from dlbricks_tui.runtime.runtime import Format

# Channels that fill the blocks of any layout of oneDNN's.
_CHANNELS = 16

# What wakes MXNet makes arrays whose sides are so long.
_SIDE = 4

# The version of ONNX's operators that brought it.
_ERF_SINCE = 9


class Entry(NamedTuple):
    """One output of a node that has been written."""

    node: int
    output: int


class Waker(NamedTuple):
    """An operator that reads what the one before it made, and these weights."""

    native: NativeNode
    weights: Sequence[TensorType]


class Sheet(Protocol):
    """Collects the nodes of one network; a node is known by its number."""

    def fresh(self, name: str) -> str:
        """The name, or one like it where something is called so already."""

    def variable(self, name: str, found: TensorType, *, learned: bool) -> int:
        """An array of that name."""

    def operator(self, native: NativeNode, name: str, inputs: Sequence[Entry]) -> int:
        """An operator that reads these outputs; `name` is what people call its layer."""

    def in_passing(self, entry: Entry) -> Sequence[tuple[int, int]]:
        """What to put out so that an output is made as inside of a model, where nobody takes it away."""

    def text(self, heads: Sequence[Entry]) -> str:
        """The network that puts these out, as a worker takes it."""


def sheet_for(form: Format) -> Sheet:
    """An empty sheet for native nodes of that format."""
    return OnnxSheet() if form is Format.ONNX else SymbolSheet()


def plain_copy(form: Format) -> NativeNode:
    """An operator that copies an array."""
    return plain_native("Identity") if form is Format.ONNX else NativeNode("_copy")


def wakers(form: Format) -> Sequence[Waker]:
    """What wakes a framework up: operators in a row, tiny, that call what most layers call.

    MXNet computes in a thread that sleeps until it is asked. The first convolution after that, and the first conversion
    to the plain layout, take microseconds longer than the next ones. ONNX Runtime computes in the thread that asks.
    """
    if form is Format.ONNX:
        return ()
    tensor, kernel = TensorType((1, _CHANNELS, _SIDE, _SIDE)), TensorType((_CHANNELS, _CHANNELS, 1, 1))
    attributes = (("kernel", "(1, 1)"), ("num_filter", str(_CHANNELS)), ("no_bias", "True"))
    # It is MXNet's own and reads a plain tensor.
    conversion = NativeNode("_plus_scalar", (("scalar", "1"),))
    return Waker(NativeNode("Convolution", attributes), (tensor, kernel)), Waker(conversion, ())


def copy_of(graph: LayerGraph, dtype: str) -> NativeNode:
    """An operator that copies an array whose values are all positive, with all cores and in its layout if it can."""
    if "float" not in dtype:
        return plain_copy(graph.format)
    if graph.format is Format.ONNX:
        return plain_native(_costly_operator(graph) if dtype == "float32" else "Relu")
    # MXNet's own copy gives a tensor the plain layout.
    return NativeNode("Activation", (("act_type", "relu"),))


def _costly_operator(graph: LayerGraph) -> str:
    """Quick operators leave small tensors to one core, and the others find nothing in their caches."""
    version = version_among(operator.native for layer in graph.layers for operator in layer.operators)
    # ONNX Runtime takes no other of the older ones to be so costly.
    return "Erf" if version is None or version >= _ERF_SINCE else "Elu"
