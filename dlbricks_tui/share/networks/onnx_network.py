"""Writes an ONNX model as a file that travels: without its names and texts, and without the values of its weights.

- Nodes and open axes stay: the optimiser of a runtime treats a model of known shapes in another way.
- A weight is a node that fills an array of its shape with a made-up number. Any program can read the file.
- Numbers that decide shapes, indices, and single numbers beside a tensor stay: runtimes recognise layers by them.
- A layer whose attributes hold weights or texts, such as trees of decisions, cannot travel.
"""

import gzip
import re
from collections.abc import Iterator, Mapping
from math import prod
from typing import TYPE_CHECKING

from dlbricks_tui.models.composites import KIND_ATTRIBUTE, LAYER_ATTRIBUTE, TIMES_ATTRIBUTE
from dlbricks_tui.models.graph import GraphInput, LayerGraph
from dlbricks_tui.models.input_shapes import names_a_batch, names_a_length
from dlbricks_tui.models.onnx.inputs import KEY, stating
from dlbricks_tui.models.onnx.model_file import OnnxFile, graphs_inside, parse_onnx, reads
from dlbricks_tui.models.onnx.reading import read_onnx
from dlbricks_tui.share.errors import UnsuitableLayersError
from dlbricks_tui.share.networks.onnx_weights import (
    LONGEST_LIST,
    KeptArrays,
    Weights,
    as_it_is,
    is_short_list_of_indices,
    is_written_out,
    zero_points,
)

if TYPE_CHECKING:
    from onnx import AttributeProto, GraphProto, NodeProto, TensorProto, TypeProto, ValueInfoProto

# ONNX's own operators, and those that ONNX Runtime has in addition. All others run code of their own.
DOMAINS = frozenset({"", "ai.onnx.ml", "com.microsoft"})
# Operators of ONNX Runtime that open files, run other programs, or send data to other processes.
_RUNNING_CODE = re.compile(
    r"EPContext|Snpe|ATen|Python.*|External.*|YieldOp|Send|Recv|RecordEvent|WaitEvent|Nccl.*|Mpi.*|Adasum.*|"
    r"All(Reduce|Gather|ToAll)|ReduceScatter|Distributed.*|Sharded.*"
)
_WORD = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,47}")
# Values of attributes such as `mode`, and the equations of Einsum.
_CHOICE = re.compile(r"[A-Za-z0-9_., >()-]{0,64}")
# The only lists of texts among the attributes of networks.
_LISTS_OF_CHOICES = frozenset({"activations"})
ANNOTATIONS = (LAYER_ATTRIBUTE, KIND_ATTRIBUTE, TIMES_ATTRIBUTE)


class Cleaner:
    """Gives nodes other names, and removes or refuses their texts and weights."""

    def __init__(self, opsets: Mapping[str, int], weights: Weights) -> None:
        self._opsets = opsets
        self._weights = weights
        self._names = 0
        self._axes: dict[str, str] = {}
        self._layers: dict[str, str] = {}

    def clean(self, node: "NodeProto", names: Mapping[str, str]) -> None:
        """Give the tensors of a node other names, remove its texts, and check its attributes."""
        if node.domain not in DOMAINS or not _WORD.fullmatch(node.op_type):
            where = f"{node.domain}." if node.domain else ""
            raise UnsuitableLayersError(
                f"holds {where}{node.op_type}"[:80] + ", which is no operator of ONNX or ONNX Runtime"
            )
        if node.domain and _RUNNING_CODE.fullmatch(node.op_type):
            raise UnsuitableLayersError(f"holds {node.domain}.{node.op_type}, which runs code or opens files")
        known = _declared_attributes(node, self._opsets)
        for field in ("doc_string", "overload"):
            node.ClearField(field)
        for attribute in node.attribute:
            if known is not None and attribute.name not in known:
                raise UnsuitableLayersError(f"has a {node.op_type} with an attribute that ONNX does not declare")
            self._check(attribute, node)
            # An empty text would be a reference to an attribute without a name.
            for field in ("doc_string", "ref_attr_name"):
                attribute.ClearField(field)
        for inner in graphs_inside(node):
            self._clean_graph(inner, names)
        for tensors in (node.input, node.output):
            for place, name in enumerate(tensors):
                tensors[place] = names[name] if name else ""

    def annotate(self, node: "NodeProto") -> None:
        """Keep what says that several nodes are one layer, without its name."""
        said = {it.key: it.value for it in node.metadata_props if it.key in ANNOTATIONS}
        del node.metadata_props[:]
        for key, value in said.items():
            if key == LAYER_ATTRIBUTE:
                value = self._layers.setdefault(value, f"layer{len(self._layers)}")
            elif not _WORD.fullmatch(value) and not value.isdecimal():
                raise UnsuitableLayersError("has metadata that hold texts")
            node.metadata_props.add(key=key, value=value)

    def clean_type(self, found: "TypeProto") -> None:
        """Give the axes of a type other names, which say the same about batches and lengths."""
        found.denotation = ""
        if found.HasField("tensor_type"):
            for axis in found.tensor_type.shape.dim:
                axis.denotation = ""
                if name := axis.dim_param:
                    what = "batch" if names_a_batch(name) else "length" if names_a_length(name) else "axis"
                    axis.dim_param = self._axes.setdefault(name, f"{what}{len(self._axes)}")
        elif found.HasField("sequence_type"):
            self.clean_type(found.sequence_type.elem_type)
        elif found.HasField("optional_type"):
            self.clean_type(found.optional_type.elem_type)
        elif found.HasField("map_type"):
            self.clean_type(found.map_type.value_type)

    def _check(self, attribute: "AttributeProto", node: "NodeProto") -> None:
        if not _WORD.fullmatch(attribute.name):
            raise UnsuitableLayersError(f"has a {node.op_type} with an attribute that ONNX does not declare")
        texts = [attribute.s] if attribute.s else []
        texts += attribute.strings if attribute.name in _LISTS_OF_CHOICES else []
        has_list = attribute.strings and attribute.name not in _LISTS_OF_CHOICES
        if has_list or not all(_CHOICE.fullmatch(text.decode(errors="replace")) for text in texts):
            raise UnsuitableLayersError(f"has a {node.op_type} that holds texts of the model")
        lists = (attribute.floats, attribute.ints, attribute.strings)
        is_trained = node.domain == "ai.onnx.ml" and len(attribute.floats) > 1
        if is_trained or any(len(each) > LONGEST_LIST for each in lists):
            raise UnsuitableLayersError(f"has a {node.op_type} whose attributes hold weights")
        if attribute.sparse_tensors or attribute.HasField("sparse_tensor") or attribute.tensors:
            raise UnsuitableLayersError(f"has a {node.op_type} whose attributes hold weights")
        if node.op_type == "Constant" and len(attribute.floats) > 1:
            attribute.floats[:] = [1.0] * len(attribute.floats)
        if attribute.HasField("t"):
            array = attribute.t
            if prod(array.dims) > 1 and not is_short_list_of_indices(array):
                if node.op_type != "Constant":
                    raise UnsuitableLayersError(f"has a {node.op_type} whose attributes hold weights")
                attribute.t.CopyFrom(self._weights.written_out(array, ""))
            else:
                attribute.t.CopyFrom(as_it_is(array, ""))
        for its in (*attribute.type_protos, *([attribute.tp] if attribute.HasField("tp") else [])):
            self.clean_type(its)

    def _clean_graph(self, graph: "GraphProto", outer: Mapping[str, str]) -> None:
        """Give everything inside of a node other names, and replace the weights there."""
        if graph.sparse_initializer:
            raise UnsuitableLayersError("has sparse weights inside of a loop or a branch")
        names = dict(outer)
        own = [it.name for it in (*graph.input, *graph.initializer)]
        own += [name for node in graph.node for name in node.output if name]
        for name in own:
            names[name] = self._fresh()
        graph.name, graph.doc_string = "inside", ""
        del graph.value_info[:], graph.quantization_annotation[:], graph.metadata_props[:]
        arrays = []
        for array in graph.initializer:
            keeps = prod(array.dims) < 2 or is_short_list_of_indices(array)
            written = as_it_is if keeps else self._weights.written_out
            arrays.append(written(array, names[array.name]))
        del graph.initializer[:]
        graph.initializer.extend(arrays)
        for value in (*graph.input, *graph.output):
            value.name, value.doc_string = names[value.name], ""
            del value.metadata_props[:]
            self.clean_type(value.type)
        for node in graph.node:
            self.clean(node, names)
            node.name = self._fresh()
            del node.metadata_props[:]

    def _fresh(self) -> str:
        self._names += 1
        return f"inside{self._names}"


def _declared_attributes(node: "NodeProto", opsets: Mapping[str, int]) -> frozenset[str] | None:
    """Return the attributes that ONNX declares for an operator; None for operators of ONNX Runtime."""
    from onnx import defs

    if node.domain == "com.microsoft":
        return None
    try:
        return frozenset(defs.get_schema(node.op_type, opsets.get(node.domain, 1), node.domain).attributes)
    except defs.SchemaError:
        raise UnsuitableLayersError(f"holds {node.op_type[:40]}, which is no operator of the installed onnx") from None


_PACKED_FROM = 1 << 16
_IR_VERSION = 8


def onnx_network(file: OnnxFile, inputs: Mapping[str, GraphInput]) -> bytes:
    """Return a graph as a file, which states the shapes and values of these inputs.

    Raise UnsuitableLayersError for layers that cannot travel.
    """
    return _Network(file, inputs).content()


def file_of(written: LayerGraph) -> OnnxFile:
    """Return the graph of a model, given by its written layers."""
    if written.file is None:
        raise UnsuitableLayersError("has no file that is known")
    return parse_onnx(read_onnx(written.file, written.name), written.name)


class _Network:
    """A model whose names, texts and weights are replaced."""

    def __init__(self, file: OnnxFile, inputs: Mapping[str, GraphInput]) -> None:
        self._file = file
        self._inputs = inputs
        self._opsets = {**file.opsets, "": file.opsets.get("", 1)}
        self._tensors: dict[str, str] = {}
        self._weights = Weights(file.nodes, self._opsets[""])
        self._cleaner = Cleaner(self._opsets, self._weights)

    def content(self) -> bytes:
        """Return the file."""
        from onnx import GraphProto, ModelProto, ValueInfoProto
        from onnx.helper import make_opsetid

        file = self._file
        nodes = [node for node in file.nodes if not _is_constant(node)]
        stored = {array.name: array for array in (*file.weights, *map(_array_of, filter(_is_constant, file.nodes)))}
        used = {name for node in nodes for name in reads(node)}.union(file.outputs)
        for number, given in enumerate(file.inputs):
            self._tensors[given.name] = f"input{number}"
        for number, name in enumerate(name for name in stored if name in used):
            self._tensors[name] = f"weight{number}"
        for number, node in enumerate(nodes):
            for place, name in enumerate(node.output):
                if name:
                    self._tensors[name] = f"t{number}_{place}"
        kept = KeptArrays(nodes)
        graph = GraphProto(name="layers", input=map(self._input, file.inputs))
        arrays: list[TensorProto] = []
        written_out = is_written_out(nodes, (stored[name] for name in stored if name in used))
        for name, array in stored.items():
            if name in used:
                if kept.keeps(array):
                    arrays.append(as_it_is(array, self._tensors[name]))
                elif kept.is_zero_point(array):
                    arrays.append(zero_points(array, self._tensors[name]))
                elif written_out:
                    arrays.append(self._weights.written_out(array, self._tensors[name]))
                else:
                    self._weights.fill(array, self._tensors[name], graph.node, arrays)
        for number, node in enumerate(nodes):
            self._weights.change_filled_scale(node)
            self._cleaner.clean(node, self._tensors)
            self._cleaner.annotate(node)
            node.name = f"node{number}"
            graph.node.append(node)
        graph.initializer.extend(arrays)
        graph.output.extend(ValueInfoProto(name=self._tensors[name]) for name in file.outputs)
        domains = {node.domain for node in _all_nodes(graph)} | {""}
        model = ModelProto(
            ir_version=_IR_VERSION,
            graph=graph,
            opset_import=[make_opsetid(domain, self._opsets.get(domain, 1)) for domain in sorted(domains)],
        )
        inputs = {self._tensors[name]: given for name, given in self._inputs.items() if name in self._tensors}
        model.metadata_props.add(key=KEY, value=stating(inputs))
        content: bytes = model.SerializeToString(deterministic=True)
        return gzip.compress(content, mtime=0) if len(content) > _PACKED_FROM else content

    def _input(self, given: "ValueInfoProto") -> "ValueInfoProto":
        from onnx import ValueInfoProto

        found = ValueInfoProto(name=self._tensors[given.name], type=given.type)
        self._cleaner.clean_type(found.type)
        return found


def _is_constant(node: "NodeProto") -> bool:
    return bool(node.op_type == "Constant") and not node.domain


def _array_of(node: "NodeProto") -> "TensorProto":
    """Return the array of a node that holds one."""
    import numpy
    from onnx import TensorProto
    from onnx.numpy_helper import from_array

    name = node.output[0]
    for attribute in node.attribute:
        if attribute.HasField("t"):
            found = TensorProto()
            found.CopyFrom(attribute.t)
            found.name = name
            return found
        for field, dtype in (("value_float", "float32"), ("value_int", "int64")):
            if attribute.name == field:
                return from_array(numpy.array(attribute.f if dtype == "float32" else attribute.i, dtype), name)
        for field, dtype in (("value_floats", "float32"), ("value_ints", "int64")):
            if attribute.name == field:
                values = attribute.floats if dtype == "float32" else attribute.ints
                return from_array(numpy.array(values, dtype), name)
    raise UnsuitableLayersError("holds texts or sparse arrays")


def _all_nodes(graph: "GraphProto") -> "Iterator[NodeProto]":
    for node in graph.node:
        yield node
        for inner in graphs_inside(node):
            yield from _all_nodes(inner)
