"""Writes layers as an ONNX file that travels: without names and texts of the model, and without values of its weights.

- A weight is a node that fills an array of its shape with a made-up number. Any program can read the file.
- Numbers that decide shapes, indices and single numbers beside a tensor are part of layers, and travel.
- A layer whose attributes hold weights or texts, such as trees of decisions, cannot travel.
"""

import gzip
import re
from base64 import b64decode
from collections.abc import Iterator, Sequence
from math import prod
from typing import TYPE_CHECKING, Any

from dlbricks_tui.bricks.programs import ProgramError, carrier_program
from dlbricks_tui.fleet.errors import UnfitLayerError
from dlbricks_tui.models.composites import KIND_ATTRIBUTE, LAYER_ATTRIBUTE, TIMES_ATTRIBUTE
from dlbricks_tui.models.graph import Layer, LayerGraph, TensorType
from dlbricks_tui.models.onnx.model_file import graphs_inside
from dlbricks_tui.models.onnx.tensors import declared, dtype_name, is_external

if TYPE_CHECKING:
    from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, TypeProto

# ONNX's own operators, and those that ONNX Runtime has in addition. All others run code of their own.
_DOMAINS = frozenset({"", "ai.onnx.ml", "com.microsoft"})
_WORD = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,47}")
# Values of attributes such as `mode`, and the equations of Einsum.
_CHOICE = re.compile(r"[A-Za-z0-9_., >()-]{0,64}")
# The only lists of texts among the attributes of networks.
_LISTS_OF_CHOICES = frozenset({"activations"})
# Longer lists are weights: no operator has more sizes, axes or factors.
_LONGEST_LIST = 64
_INDICES = frozenset({"int64", "int32", "bool"})
# The types that the filling node has in each version of ONNX's operators that has it.
_FILLED_SINCE = 9
_FILLED = frozenset(
    ["float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool"]
)
_REPEATED_SINCE = 6
# Bytes of weights that are written out, which takes hardly any space when packed.
_MOST_WRITTEN_OUT = 1 << 25
_PACKED_FROM = 1 << 16


def onnx_network(graph: LayerGraph) -> bytes:
    """Return the file of a graph of written layers; raise UnfitLayerError for layers that cannot travel."""
    from onnx import ModelProto

    try:
        program, owners = carrier_program(graph)
    except ProgramError as error:
        raise UnfitLayerError(str(error)) from None
    network = program.network
    model = ModelProto.FromString(b64decode(network.symbol))
    for node in model.graph.node:
        layer = owners.get(int(node.name.removeprefix("node"))) if node.name.startswith("node") else None
        if layer is not None:
            _annotate(node, graph.layers[layer])
    for read in model.graph.input:
        found = network.inputs[read.name]
        read.type.CopyFrom(declared(TensorType(found.shape, found.dtype)))
    return _Writer(model).content()


def _annotate(node: "NodeProto", layer: Layer) -> None:
    """Declare the layer of a node, if it has several nodes or reads no other layer."""
    if len(layer.operators) == 1 and layer.times == 1 and layer.feeds:
        return
    said = {LAYER_ATTRIBUTE: str(layer.index), KIND_ATTRIBUTE: layer.kind.value}
    if layer.times > 1:
        said[TIMES_ATTRIBUTE] = str(layer.times)
    for key, value in said.items():
        node.metadata_props.add(key=key, value=value)


class _Writer:
    """Replaces everything in a model that may not travel."""

    def __init__(self, model: "ModelProto") -> None:
        self._model = model
        self._opsets = {it.domain: it.version for it in model.opset_import}
        self._weights = 0
        self._names = 0
        self._left = _MOST_WRITTEN_OUT

    def content(self) -> bytes:
        """Return the file."""
        graph = self._model.graph
        for node in graph.node:
            self._clean(node)
        self._declare_domains(graph)
        fillers: list[NodeProto] = []
        kept: list[TensorProto] = []
        for array in graph.initializer:
            if is_external(array):
                self._fill(array, fillers, kept)
            else:
                kept.append(self._parameter(array))
        nodes = [*fillers, *graph.node]
        del graph.node[:], graph.initializer[:]
        graph.node.extend(nodes)
        graph.initializer.extend(kept)
        content: bytes = self._model.SerializeToString(deterministic=True)
        return gzip.compress(content, mtime=0) if len(content) > _PACKED_FROM else content

    def _declare_domains(self, graph: "GraphProto") -> None:
        """Declare the operator sets of nodes inside of nodes."""
        for domain in {node.domain for node in _all_nodes(graph)} - self._opsets.keys():
            self._opsets[domain] = 1
            self._model.opset_import.add(domain=domain, version=1)

    def _fill(self, array: "TensorProto", fillers: "list[NodeProto]", kept: "list[TensorProto]") -> None:
        """Write a weight without its values."""
        from onnx.helper import make_node
        from onnx.numpy_helper import from_array

        shape, dtype = tuple(array.dims), dtype_name(array.data_type)
        if prod(shape) < 2 or not self._can_fill(dtype):
            kept.append(self._written_out(array.name, array.data_type, shape))
            return
        import numpy

        sizes, value = f"{array.name}_sizes", self._value(array.data_type, shape)
        kept.append(from_array(numpy.array(shape, "int64"), sizes))
        if self._opsets[""] >= _FILLED_SINCE:
            filled = from_array(value.reshape(1))
            fillers.append(make_node("ConstantOfShape", [sizes], [array.name], value=filled))
        else:
            single = f"{array.name}_value"
            kept.append(from_array(value.reshape((1,) * len(shape)), single))
            fillers.append(make_node("Tile", [single, sizes], [array.name]))

    def _can_fill(self, dtype: str) -> bool:
        return dtype in _FILLED and self._opsets[""] >= _REPEATED_SINCE

    def _written_out(self, name: str, data_type: int, shape: Sequence[int]) -> "TensorProto":
        """Return an array that holds the same made-up number everywhere."""
        from onnx import TensorProto

        value = self._value(data_type, shape).tobytes()
        count: int = prod(shape)
        size = len(value) * count
        self._left -= size
        if self._left < 0:
            raise UnfitLayerError(
                f"it has weights of type {dtype_name(data_type)} for version {self._opsets['']} of ONNX's operators, "
                "which cannot be described without their values: convert the model to version 9 or newer"
            )
        return TensorProto(name=name, data_type=data_type, dims=shape, raw_data=value * count)

    def _value(self, data_type: int, shape: Sequence[int]) -> Any:
        """Return a number for a weight: another one for each, as ONNX Runtime merges layers that are equal.

        Activations keep a normal size from layer to layer.
        """
        import numpy
        from onnx.helper import tensor_dtype_to_np_dtype

        self._weights += 1
        try:
            kind = numpy.dtype(tensor_dtype_to_np_dtype(data_type))
        except (KeyError, TypeError):
            raise UnfitLayerError(f"it has a weight of the unknown data type {data_type}") from None
        if kind.kind in "OSU":
            raise UnfitLayerError("it has a weight that consists of texts")
        if kind.kind in "iu":
            return numpy.array(1 + self._weights % 100, kind)
        if kind.kind == "b":
            return numpy.array(True, kind)
        inputs: int = prod(shape[1:]) if len(shape) > 1 else 4
        scale = 1 / max(1, inputs)
        steps, step = (1000, 1e-3) if kind.itemsize == 2 else (100_000, 1e-5)
        return numpy.array(scale * (1 + self._weights % steps * step), kind)

    def _clean(self, node: "NodeProto", names: "dict[str, str] | None" = None) -> None:
        """Remove the texts of a node, and check its attributes; `names` are those of tensors inside of a graph."""
        if node.domain not in _DOMAINS or not _WORD.fullmatch(node.op_type):
            where = f"{node.domain}." if node.domain else ""
            raise UnfitLayerError(f"{where}{node.op_type}"[:80] + " is no operator of ONNX or ONNX Runtime")
        known = _declared_attributes(node, self._opsets)
        node.doc_string = ""
        for attribute in node.attribute:
            if known is not None and attribute.name not in known:
                raise UnfitLayerError(f"its {node.op_type} has an attribute that ONNX does not declare")
            self._check(attribute, node)
            attribute.doc_string = attribute.ref_attr_name = ""
        for inner in graphs_inside(node):
            self._clean_graph(inner, names or {})

    def _check(self, attribute: "AttributeProto", node: "NodeProto") -> None:
        if not _WORD.fullmatch(attribute.name):
            raise UnfitLayerError(f"its {node.op_type} has an attribute that ONNX does not declare")
        texts = [attribute.s] if attribute.s else []
        texts += attribute.strings if attribute.name in _LISTS_OF_CHOICES else []
        is_text = attribute.strings and attribute.name not in _LISTS_OF_CHOICES
        if is_text or not all(_CHOICE.fullmatch(text.decode(errors="replace")) for text in texts):
            raise UnfitLayerError(f"its {node.op_type} holds texts of the model")
        lists = (attribute.floats, attribute.ints, attribute.strings)
        of_trained = node.domain == "ai.onnx.ml" or node.op_type == "Constant"
        if any(len(each) > _LONGEST_LIST for each in lists) or (of_trained and len(attribute.floats) > 1):
            raise UnfitLayerError(f"the attributes of its {node.op_type} hold weights")
        arrays = [*attribute.tensors, *([attribute.t] if attribute.HasField("t") else [])]
        if attribute.sparse_tensors or attribute.HasField("sparse_tensor"):
            raise UnfitLayerError(f"the attributes of its {node.op_type} hold weights")
        for array in arrays:
            if prod(array.dims) > 1 and dtype_name(array.data_type) not in _INDICES:
                raise UnfitLayerError(f"the attributes of its {node.op_type} hold weights")
            _refuse_texts(array)
            array.name = array.doc_string = ""
        for its in (*attribute.type_protos, *([attribute.tp] if attribute.HasField("tp") else [])):
            _clean_type(its)

    def _clean_graph(self, graph: "GraphProto", outer: dict[str, str]) -> None:
        """Give everything inside of a node neutral names, and replace the weights there."""
        if graph.sparse_initializer:
            raise UnfitLayerError("it has sparse weights inside of a loop or a branch")
        names = dict(outer)
        own = [it.name for it in (*graph.input, *graph.initializer)]
        own += [name for node in graph.node for name in node.output if name]
        for name in own:
            names[name] = f"inside{self._names}"
            self._names += 1
        graph.name, graph.doc_string = "inside", ""
        del graph.value_info[:], graph.quantization_annotation[:], graph.metadata_props[:]
        kept = [self._inner_array(array, names) for array in graph.initializer]
        del graph.initializer[:]
        graph.initializer.extend(kept)
        for value in (*graph.input, *graph.output):
            value.name, value.doc_string = names.get(value.name, value.name), ""
            del value.metadata_props[:]
            _clean_type(value.type)
        for node in graph.node:
            self._clean(node, names)
            node.name = f"inside{self._names}"
            self._names += 1
            del node.metadata_props[:]
            for tensors in (node.input, node.output):
                for place, name in enumerate(tensors):
                    tensors[place] = names.get(name, name)

    def _inner_array(self, array: "TensorProto", names: dict[str, str]) -> "TensorProto":
        name = names[array.name]
        if prod(array.dims) > 1 and dtype_name(array.data_type) not in _INDICES:
            return self._written_out(name, array.data_type, tuple(array.dims))
        if is_external(array):
            raise UnfitLayerError("it has indices inside of a loop or a branch that are in another file")
        _refuse_texts(array)
        array.name, array.doc_string = name, ""
        return array

    def _parameter(self, array: "TensorProto") -> "TensorProto":
        """Return an array that is part of a layer."""
        import numpy
        from onnx.numpy_helper import from_array, to_array

        _refuse_texts(array)
        array.doc_string = ""
        del array.metadata_props[:]
        # Zero points of several channels: only the difference between zeros and others counts.
        if dtype_name(array.data_type) in ("int8", "uint8") and prod(array.dims) > 1:
            values = to_array(array)
            return from_array(numpy.full_like(values, 1), array.name) if values.any() else array
        return array


def _declared_attributes(node: "NodeProto", opsets: "dict[str, int]") -> "frozenset[str] | None":
    """Return the attributes that ONNX declares for an operator; None for operators of ONNX Runtime."""
    from onnx import defs

    if node.domain == "com.microsoft":
        return None
    try:
        return frozenset(defs.get_schema(node.op_type, opsets.get(node.domain, 1), node.domain).attributes)
    except defs.SchemaError:
        raise UnfitLayerError(f"{node.op_type[:40]} is no operator of the installed onnx") from None


def _refuse_texts(array: "TensorProto") -> None:
    if array.string_data or dtype_name(array.data_type) == "object":
        raise UnfitLayerError("it holds texts in its arrays")


def _clean_type(found: "TypeProto") -> None:
    """Remove the names of axes from a type."""
    found.denotation = ""
    if found.HasField("tensor_type"):
        for axis in found.tensor_type.shape.dim:
            axis.denotation = ""
            if axis.HasField("dim_param"):
                axis.ClearField("dim_param")
    elif found.HasField("sequence_type"):
        _clean_type(found.sequence_type.elem_type)
    elif found.HasField("optional_type"):
        _clean_type(found.optional_type.elem_type)


def _all_nodes(graph: "GraphProto") -> "Iterator[NodeProto]":
    for node in graph.node:
        yield node
        for inner in graphs_inside(node):
            yield from _all_nodes(inner)
