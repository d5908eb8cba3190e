"""The arrays of an ONNX file that travels: made-up numbers in the place of weights, and the few that stay."""

from collections.abc import Iterable, Sequence
from math import prod
from typing import TYPE_CHECKING, Any

from dlbricks_tui.models.onnx.constants import COMPUTED, INDEX_DTYPES, ZERO_POINTS
from dlbricks_tui.models.onnx.inputs import shape_places
from dlbricks_tui.models.onnx.layer_graph import BESIDE_SCALARS, QUANTISED, SHAPE_FLOATS
from dlbricks_tui.models.onnx.model_file import graphs_inside, reads
from dlbricks_tui.models.onnx.stored_arrays import dtype_name, is_external
from dlbricks_tui.share.errors import UnsuitableLayersError

if TYPE_CHECKING:
    from onnx import NodeProto, TensorProto

# Longer arrays of floats are weights, whatever reads them.
LONGEST_LIST = 64
# Longer arrays of integers are data.
MOST_INDICES = 2**16
# The versions of ONNX's operators with a node that fills an array, and with one that repeats an array.
_FILLS, _REPEATS = 9, 6
_FILLED = frozenset(
    ["float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool"]
)
# Bytes of weights that are written out, which take hardly any space when packed.
_MOST_WRITTEN_OUT = 1 << 26
_QUANTISE, _DEQUANTISE = "QuantizeLinear", "DequantizeLinear"


class Weights:
    """Writes arrays that hold made-up numbers, and nodes that fill such arrays."""

    def __init__(self, nodes: "Sequence[NodeProto]", version: int) -> None:
        """`version` is that of ONNX's own operators."""
        self._version = version
        self._scales = _made_up_scales(nodes)
        self._count = 0
        self._left = _MOST_WRITTEN_OUT

    def fill(self, array: "TensorProto", name: str, nodes: Any, arrays: "list[TensorProto]") -> None:
        """Write a weight without its values."""
        import numpy
        from onnx.helper import make_node
        from onnx.numpy_helper import from_array

        shape, dtype = tuple(array.dims), dtype_name(array.data_type)
        if prod(shape) < 2 or dtype not in _FILLED or self._version < _REPEATS:
            arrays.append(self.written_out(array, name))
            return
        sizes, value = f"{name}_sizes", self._value(array)
        arrays.append(from_array(numpy.array(shape, "int64"), sizes))
        if self._version >= _FILLS:
            nodes.append(make_node("ConstantOfShape", [sizes], [name], name, value=from_array(value.reshape(1))))
        else:
            arrays.append(from_array(value.reshape((1,) * len(shape)), f"{name}_value"))
            nodes.append(make_node("Tile", [f"{name}_value", sizes], [name], name))

    def written_out(self, array: "TensorProto", name: str) -> "TensorProto":
        """Return an array that holds the same made-up number everywhere."""
        from onnx import TensorProto

        value = self._value(array).tobytes()
        count: int = prod(array.dims)
        self._left -= len(value) * count
        if self._left < 0:
            raise UnsuitableLayersError(
                f"has {_MOST_WRITTEN_OUT >> 20} MiB of weights that cannot be described without values, such as "
                f"{dtype_name(array.data_type)} in version {self._version} of ONNX's operators"
            )
        return TensorProto(name=name, data_type=array.data_type, dims=array.dims, raw_data=value * count)

    def change_filled_scale(self, node: "NodeProto") -> None:
        """Replace the number in a node that fills the scales of a quantised tensor."""
        from onnx import TensorProto

        if node.op_type == "ConstantOfShape" and node.output[0] in self._scales:
            for attribute in node.attribute:
                filled = TensorProto(name=node.output[0], data_type=attribute.t.data_type, dims=[1])
                attribute.t.CopyFrom(self.written_out(filled, ""))

    def _value(self, array: "TensorProto") -> Any:
        """Return a number for a weight: another one for each, as ONNX Runtime merges layers that are equal.

        Activations keep a normal size from layer to layer.
        """
        import numpy
        from onnx.helper import tensor_dtype_to_np_dtype

        self._count += 1
        try:
            kind = numpy.dtype(tensor_dtype_to_np_dtype(array.data_type))
        except (KeyError, TypeError):
            raise UnsuitableLayersError(f"has a weight of the unknown data type {array.data_type}") from None
        if array.name in self._scales and kind.kind not in "OSUiub":
            return numpy.array(self._scales[array.name], kind)
        if kind.kind in "OSU":
            raise UnsuitableLayersError("has an array of texts")
        if kind.kind in "iu":
            # Larger ones may be indices, which have to stay in their range.
            return numpy.array(1 + self._count % 100 if kind.itemsize == 1 else 0, kind)
        if kind.kind == "b":
            return numpy.array(True, kind)
        inputs: int = prod(array.dims[1:]) if len(array.dims) > 1 else 4
        steps, step = (1000, 1e-3) if kind.itemsize == 2 else (100_000, 1e-5)
        return numpy.array(1 / max(1, inputs) * (1 + self._count % steps * step), kind)


def as_it_is(array: "TensorProto", name: str) -> "TensorProto":
    """Return an array with its values under another name, and without comments."""
    from onnx.numpy_helper import from_array, to_array

    if is_external(array):
        raise UnsuitableLayersError("has sizes in another file")
    if dtype_name(array.data_type) == "object":
        raise UnsuitableLayersError("has an array of texts")
    return from_array(to_array(array), name)


def zero_points(array: "TensorProto", name: str) -> "TensorProto":
    """Return the zero points of several channels: only the difference between zeros and others counts."""
    import numpy
    from onnx.numpy_helper import from_array, to_array

    values = to_array(array)
    return from_array(numpy.full_like(values, 1) if values.any() else values, name)


def is_written_out(nodes: "Sequence[NodeProto]", arrays: "Iterable[TensorProto]") -> bool:
    """Return true if weights are written out, as far as they are not too many.

    The optimiser treats loops and quantised tensors in another way if it has to fill arrays first.
    """
    is_sensitive = any(QUANTISED.match(node.op_type) or any(graphs_inside(node)) for node in nodes)
    # No number takes more than 8 bytes.
    return is_sensitive and sum(prod(array.dims) for array in arrays) * 8 <= _MOST_WRITTEN_OUT


class KeptArrays:
    """The stored arrays whose values are part of layers."""

    def __init__(self, nodes: "Sequence[NodeProto]") -> None:
        self._readers: dict[str, list[tuple[NodeProto, int]]] = {}
        for node in nodes:
            for place, name in enumerate(reads(node)):
                if name:
                    self._readers.setdefault(name, []).append((node, place))
        # The tensors from which shapes, and single numbers beside a tensor, are computed.
        self._deciding: set[str] = set()
        self._beside: set[str] = set()
        for node in reversed(nodes):
            places = shape_places(node.op_type) | SHAPE_FLOATS.get(node.op_type, frozenset())
            self._deciding.update(name for place, name in enumerate(node.input) if place in places and name)
            if node.op_type in BESIDE_SCALARS:
                self._beside.update(node.input)
            if node.op_type in COMPUTED and not node.domain:
                for found in (self._deciding, self._beside):
                    if found.intersection(node.output):
                        found.update(filter(None, node.input))

    def keeps(self, array: "TensorProto") -> bool:
        """Return true if the values of an array travel."""
        size, dtype = prod(array.dims), dtype_name(array.data_type)
        is_quantised = all(QUANTISED.match(node.op_type) for node, _ in self._readers.get(array.name, ()))
        if is_external(array):
            # Only large arrays are stored elsewhere, and those are weights.
            return False
        if dtype in INDEX_DTYPES and dtype != "object":
            return bool(size <= MOST_INDICES and not (is_quantised and size > 1))
        if dtype in ZERO_POINTS:
            return bool(size < 2)
        is_deciding = size <= LONGEST_LIST and array.name in self._deciding
        return bool(is_deciding or (size < 2 and array.name in self._beside))

    def is_zero_point(self, array: "TensorProto") -> bool:
        """Return true for zero points of several channels."""
        return dtype_name(array.data_type) in ZERO_POINTS and len(array.dims) < 2 and not is_external(array)


def _made_up_scales(nodes: "Sequence[NodeProto]") -> dict[str, float]:
    """Return a scale for each array of scales, another one for each.

    Optimisers expect of a bias that its scale is the product of those of the data and the weight.
    """
    import numpy

    found: dict[str, float] = {}
    scale_of: dict[str, str] = {}
    for node in nodes:
        if node.op_type in (_QUANTISE, _DEQUANTISE) and len(node.input) > 1:
            found.setdefault(node.input[1], float(numpy.float32(0.02 * (1 + len(found) % 1000 * 1e-3))))
            scale_of[node.output[0]] = node.input[1]
    for node in nodes:
        scales = [scale_of.get(name, "") for name in node.input]
        if node.op_type not in (_QUANTISE, _DEQUANTISE) and len(scales) == 3 and all(scales):
            data, weight, bias = scales
            found[bias] = float(numpy.float32(found[data]) * numpy.float32(found[weight]))
    return found


def is_short_list_of_indices(array: "TensorProto") -> bool:
    """Return true for integers that are sizes, axes or indices."""
    dtype = dtype_name(array.data_type)
    is_index = dtype in INDEX_DTYPES and dtype != "object" and not is_external(array)
    return is_index and bool(prod(array.dims) <= MOST_INDICES)
