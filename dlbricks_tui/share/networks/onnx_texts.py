"""The nodes of an ONNX file that travels: with other names, without texts, and with checked attributes."""

import re
from collections.abc import Mapping
from math import prod
from typing import TYPE_CHECKING

from dlbricks_tui.models.composites import KIND_ATTRIBUTE, LAYER_ATTRIBUTE, TIMES_ATTRIBUTE
from dlbricks_tui.models.input_shapes import names_a_batch, names_a_length
from dlbricks_tui.models.onnx.model_file import graphs_inside
from dlbricks_tui.share.errors import UnsuitableLayersError
from dlbricks_tui.share.networks.onnx_weights import LONGEST_LIST, Weights, as_it_is, is_short_list_of_indices

if TYPE_CHECKING:
    from onnx import AttributeProto, GraphProto, NodeProto, TensorProto, TypeProto

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
                if axis.dim_param:
                    axis.dim_param = self._axis(axis.dim_param)
        elif found.HasField("sequence_type"):
            self.clean_type(found.sequence_type.elem_type)
        elif found.HasField("optional_type"):
            self.clean_type(found.optional_type.elem_type)
        elif found.HasField("map_type"):
            self.clean_type(found.map_type.value_type)

    def _axis(self, name: str) -> str:
        if name not in self._axes:
            what = "batch" if names_a_batch(name) else "length" if names_a_length(name) else "axis"
            self._axes[name] = f"{what}{len(self._axes)}"
        return self._axes[name]

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
        arrays = [self._inner_array(array, names[array.name]) for array in graph.initializer]
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

    def _inner_array(self, array: "TensorProto", name: str) -> "TensorProto":
        if prod(array.dims) < 2 or is_short_list_of_indices(array):
            return as_it_is(array, name)
        return self._weights.written_out(array, name)


def _declared_attributes(node: "NodeProto", opsets: Mapping[str, int]) -> frozenset[str] | None:
    """Return the attributes that ONNX declares for an operator; None for operators of ONNX Runtime."""
    from onnx import defs

    if node.domain == "com.microsoft":
        return None
    try:
        return frozenset(defs.get_schema(node.op_type, opsets.get(node.domain, 1), node.domain).attributes)
    except defs.SchemaError:
        raise UnsuitableLayersError(f"holds {node.op_type[:40]}, which is no operator of the installed onnx") from None
