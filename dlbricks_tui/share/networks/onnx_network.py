"""Writes an ONNX model as a file that travels: without its names and texts, and without the values of its weights.

- Nodes and open axes stay: the optimiser of a runtime treats a model of known shapes in another way.
- A weight is a node that fills an array of its shape with a made-up number. Any program can read the file.
- Numbers that decide shapes, indices, and single numbers beside a tensor stay: runtimes recognise layers by them.
- A layer whose attributes hold weights or texts, such as trees of decisions, cannot travel.
"""

import gzip
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from dlbricks_tui.models.graph import GraphInput, LayerGraph
from dlbricks_tui.models.onnx.model_file import OnnxFile, graphs_inside, parse_onnx, reads
from dlbricks_tui.models.onnx.reading import read_onnx
from dlbricks_tui.models.onnx.stated_inputs import KEY, stating
from dlbricks_tui.share.errors import UnsuitableLayersError
from dlbricks_tui.share.networks.onnx_texts import Cleaner
from dlbricks_tui.share.networks.onnx_weights import KeptArrays, Weights, as_it_is, is_written_out, zero_points

if TYPE_CHECKING:
    from onnx import GraphProto, NodeProto, TensorProto, ValueInfoProto

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
