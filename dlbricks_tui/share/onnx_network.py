"""Writes an ONNX model as a file that travels: without its names and texts, and without the values of its weights.

- Nodes and open axes stay: the optimiser of a runtime treats a model of known shapes in another way.
- A weight is a node that fills an array of its shape with a made-up number. Any program can read the file.
- Numbers that decide shapes, indices, and single numbers beside a tensor stay: runtimes recognise layers by them.
- A layer whose attributes hold weights or texts, such as trees of decisions, cannot travel.
"""

import gzip
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING, Any

from dlbricks_tui.bricks.carriers import carrier_of
from dlbricks_tui.models.composites import KIND_ATTRIBUTE, LAYER_ATTRIBUTE, TIMES_ATTRIBUTE
from dlbricks_tui.models.graph import Feed, GraphInput, LayerGraph, needed_for
from dlbricks_tui.models.input_shapes import names_a_batch, names_a_length
from dlbricks_tui.models.onnx_arrays import dtype_name, is_external
from dlbricks_tui.models.onnx_constants import COMPUTED, INDEX_DTYPES, ZERO_POINTS, is_if
from dlbricks_tui.models.onnx_file import OnnxFile, graphs_inside, parse_onnx, read_onnx, reads
from dlbricks_tui.models.onnx_inputs import KEY, shape_places, stating
from dlbricks_tui.models.onnx_layers import BESIDE_SCALARS, QUANTISED, SHAPE_FLOATS
from dlbricks_tui.runtime.traits import Format
from dlbricks_tui.share.errors import UnsuitableLayersError
from dlbricks_tui.share.mxnet_network import packed_network

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
# What networks declare, unless an operator of theirs is another one in that version.
_USUAL_VERSION = 17
_PACKED_FROM, _IR_VERSION = 1 << 16, 8
ANNOTATIONS = (LAYER_ATTRIBUTE, KIND_ATTRIBUTE, TIMES_ATTRIBUTE)


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
        for it in types_inside(found):
            it.denotation = ""
            for axis in it.tensor_type.shape.dim:
                axis.denotation = ""
                if name := axis.dim_param:
                    what = "batch" if names_a_batch(name) else "length" if names_a_length(name) else "axis"
                    axis.dim_param = self._axes.setdefault(name, f"{what}{len(self._axes)}")

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


def types_inside(found: "TypeProto") -> "Iterator[TypeProto]":
    """Yield a type, and those of what it holds."""
    yield found
    for kind in ("sequence_type", "optional_type"):
        if found.HasField(kind):
            yield from types_inside(getattr(found, kind).elem_type)
    if found.HasField("map_type"):
        yield from types_inside(found.map_type.value_type)


def _declared_attributes(node: "NodeProto", opsets: Mapping[str, int]) -> frozenset[str] | None:
    """Return the attributes that ONNX declares for an operator; None for operators of ONNX Runtime."""
    from onnx import defs

    if node.domain == "com.microsoft":
        return None
    try:
        return frozenset(defs.get_schema(node.op_type, opsets.get(node.domain, 1), node.domain).attributes)
    except defs.SchemaError:
        raise UnsuitableLayersError(f"holds {node.op_type[:40]}, which is no operator of the installed onnx") from None


def _version_of(nodes: "Sequence[NodeProto]", stated: int) -> int:
    """Return the usual version if these operators are the same in it: others tell which program wrote a model."""
    from onnx import defs

    ops = {node.op_type for node in _all_nodes(nodes) if not node.domain}
    versions = (stated, _USUAL_VERSION)
    with suppress(defs.SchemaError):
        if all(len({defs.get_schema(op, it).since_version for it in versions}) == 1 for op in ops):
            return _USUAL_VERSION
    return stated


def onnx_network(file: OnnxFile, inputs: Mapping[str, GraphInput]) -> bytes:
    """Return a graph without names, texts and weights as a file, which states the shapes and values of these inputs.

    Raise UnsuitableLayersError for layers that cannot travel.
    """
    from onnx import GraphProto, ModelProto, ValueInfoProto
    from onnx.helper import make_opsetid, make_tensor_value_info

    opsets = {**file.opsets, "": _version_of(file.nodes, file.opsets.get("", 1))}
    weights = Weights(file.nodes, opsets[""])
    cleaner = Cleaner(opsets, weights)
    nodes = [node for node in file.nodes if not _is_constant(node)]
    stored = {array.name: array for array in (*file.weights, *map(_array_of, filter(_is_constant, file.nodes)))}
    used = {name for node in nodes for name in reads(node)}.union(file.outputs)
    tensors = {given.name: f"input{number}" for number, given in enumerate(file.inputs)}
    tensors |= {name: f"weight{number}" for number, name in enumerate(it for it in stored if it in used)}
    outputs = ((number, *each) for number, node in enumerate(nodes) for each in enumerate(node.output))
    tensors |= {name: f"t{number}_{place}" for number, place, name in outputs if name}
    kept = KeptArrays(nodes)
    graph = GraphProto(name="layers")
    for given in file.inputs:
        cleaner.clean_type(graph.input.add(name=tensors[given.name], type=given.type).type)
    arrays: list[TensorProto] = []
    written_out = is_written_out(nodes, (stored[name] for name in stored if name in used))
    for name, array in stored.items():
        if name in used:
            if kept.keeps(array):
                arrays.append(as_it_is(array, tensors[name]))
            elif kept.is_zero_point(array):
                arrays.append(zero_points(array, tensors[name]))
            elif written_out or name in file.replaceable:
                arrays.append(weights.written_out(array, tensors[name]))
            else:
                weights.fill(array, tensors[name], graph.node, arrays)
    for number, node in enumerate(nodes):
        weights.change_filled_scale(node)
        cleaner.clean(node, tensors)
        cleaner.annotate(node)
        node.name = f"node{number}"
        graph.node.append(node)
    graph.initializer.extend(arrays)
    replaceable = {tensors[name] for name in file.replaceable & used}
    graph.input.extend(
        make_tensor_value_info(it.name, it.data_type, list(it.dims)) for it in arrays if it.name in replaceable
    )
    graph.output.extend(ValueInfoProto(name=tensors[name]) for name in file.outputs)
    domains = {node.domain for node in _all_nodes(graph.node)} | {""}
    model = ModelProto(
        ir_version=_IR_VERSION,
        graph=graph,
        opset_import=[make_opsetid(domain, opsets.get(domain, 1)) for domain in sorted(domains)],
    )
    stated = {tensors[name]: given for name, given in inputs.items() if name in tensors}
    model.metadata_props.add(key=KEY, value=stating(stated))
    content: bytes = model.SerializeToString(deterministic=True)
    return gzip.compress(content, mtime=0) if len(content) > _PACKED_FROM else content


def file_of(written: LayerGraph) -> OnnxFile:
    """Return the graph of a model, given by its written layers."""
    if written.file is None:
        raise UnsuitableLayersError("has no file that is known")
    return parse_onnx(read_onnx(written.file, written.name), written.name)


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


def _all_nodes(nodes: "Iterable[NodeProto]") -> "Iterator[NodeProto]":
    for node in nodes:
        yield node
        for inner in graphs_inside(node):
            yield from _all_nodes(inner.node)


def network_of(written: LayerGraph) -> bytes:
    """Return written layers as a model file of their format; raise UnsuitableLayersError if they cannot travel."""
    if written.format is Format.ONNX:
        return onnx_network(file_of(written), {given.name: given for given in written.inputs})
    return packed_network(written)


def short_network_of(written: LayerGraph) -> bytes | None:
    """Return the network of a model without repeated modules; None if no module can be left out."""
    if written.format is Format.ONNX:
        short = _shortened(file_of(written), written)
        return None if short is None else onnx_network(short, {given.name: given for given in written.inputs})
    carrier = carrier_of(written)
    return None if carrier is None or carrier.is_whole else packed_network(carrier.graph)


def _shortened(file: OnnxFile, written: LayerGraph) -> OnnxFile | None:
    """Return the nodes of the carrier of a model; None if that is the whole model, or if nodes are no layers."""
    carrier = carrier_of(written)
    if carrier is None or carrier.is_whole or any(map(is_if, file.nodes)):
        return None
    if any(len(layer.operators) != 1 or len(layer.nodes) != 1 for layer in written.layers):
        return None

    def tensor(feed: Feed) -> str:
        if feed.layer is None:
            return file.inputs[feed.output].name
        layer = written.layers[feed.layer]
        names = [name for name in file.nodes[layer.nodes[0]].output if name]
        return str(names[layer.results[feed.output].output])

    def in_model(feed: Feed) -> Feed:
        return feed if feed.layer is None else Feed(carrier.origin[feed.layer], feed.output)

    # The tensors that kept layers read in the place of those of layers that are left out.
    instead: dict[str, str] = {}
    for place, index in enumerate(carrier.origin):
        feeds = zip(written.layers[index].feeds, carrier.graph.layers[place].feeds, strict=True)
        instead.update((tensor(old), tensor(in_model(new))) for old, new in feeds if old != in_model(new))
    left_out = {layer.nodes[0] for layer in written.layers if layer.index not in set(carrier.origin)}
    outputs = tuple(dict.fromkeys(tensor(in_model(head)) for head in carrier.graph.heads))
    writers = {name: number for number, node in enumerate(file.nodes) for name in node.output if name}

    def sources(names: Iterable[str]) -> list[int]:
        return [writers[it] for it in (instead.get(name, name) for name in names) if it in writers]

    needed = needed_for(sources(outputs), [sources(reads(node)) for node in file.nodes])
    if needed & left_out:
        return None
    nodes = [file.nodes[number] for number in sorted(needed)]
    for node in nodes:
        if any(name in instead for name in reads(node)):
            if any(True for _ in graphs_inside(node)):
                return None
            for place, name in enumerate(node.input):
                node.input[place] = instead.get(name, name)
    return replace(file, nodes=tuple(nodes), outputs=outputs)
