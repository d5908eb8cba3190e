"""Constants of an ONNX model: stored arrays, and results that follow from short vectors and shapes alone.

They set up layers and are not layers: their results are weights of the layers that read them. Work on a stored matrix
is a layer, which an optimiser may remove. Where the condition of an `If` is known, its branch runs in its place.
"""

import re
import struct
from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from math import prod
from typing import TYPE_CHECKING

from dlbricks_tui.models.composites import LAYER_ATTRIBUTE
from dlbricks_tui.models.errors import FlawError
from dlbricks_tui.models.graph import UNKNOWN_DTYPE, UNKNOWN_TYPE, Numbers, TensorType, needed_for, topological_order
from dlbricks_tui.models.input_shapes import short_shape
from dlbricks_tui.models.onnx_arrays import (
    MOST_ELEMENTS,
    array_of,
    declared,
    inferred,
    is_whole,
    small_model,
    type_of_value,
    type_of_weight,
)
from dlbricks_tui.models.onnx_file import NAMES_OF_ONNX, OnnxFile, graphs_inside, reads, with_subgraphs

if TYPE_CHECKING:
    from onnx import GraphProto, NodeProto, TensorProto, TypeProto


class TakenNames:
    """The names of tensors and nodes so far."""

    def __init__(self, names: Iterable[str] = ()) -> None:
        self._names = set(names)
        # The next number for a path that occurs several times.
        self._numbers: Counter[str] = Counter()

    def add(self, names: Iterable[str]) -> None:
        """Take these names."""
        self._names.update(names)

    def fresh(self, name: str, path: str) -> str:
        """Take a name, and return it: with the path before it if it is taken already."""
        fresh, inside = name, f"{path}/{name}"
        while fresh in self._names:
            number = self._numbers[inside]
            self._numbers[inside] += 1
            fresh = f"{inside}_{number}" if number else inside
        self._names.add(fresh)
        return fresh


def is_if(node: "NodeProto") -> bool:
    """Return True for an `If` of ONNX itself."""
    return bool(node.op_type == "If") and not node.domain and len(node.input) == 1


def holds(condition: "TensorProto") -> bool | None:
    """Return the condition of an `If` as a flag; None if it is not a single number."""
    array = array_of(condition)
    return bool(array.reshape(-1)[0]) if array.size == 1 and array.dtype.kind in "biu" else None


def branch_of(
    node: "NodeProto", condition: bool, taken: TakenNames, domains: Container[str]
) -> "tuple[list[TensorProto], list[NodeProto]]":
    """Return the arrays and the nodes of the branch of an `If` that runs under a condition, and take its names.

    The nodes are in topological order, and write the outputs of the `If`. A name inside the branch that is taken
    already becomes a path, with the name of the `If` before it. `domains` are those whose version the file declares.
    """
    from onnx import NodeProto, TensorProto

    wanted_branch = "then_branch" if condition else "else_branch"
    graph = next((it.g for it in node.attribute if it.name == wanted_branch and it.HasField("g")), None)
    if graph is None:
        raise FlawError(f"{_label(node)} has no {wanted_branch}")
    outputs = list(node.output)
    if len(graph.output) != len(outputs):
        raise FlawError(f"a branch of {_label(node)} has another number of outputs than the node")
    for what, found in (("inputs", graph.input), ("sparse weights", graph.sparse_initializer)):
        if found:
            raise FlawError(f"a branch of {_label(node)} has {what}, which are not supported")
    taken.add(filter(None, outputs))
    written = [name for it in graph.node for name in it.output if name]
    if len(set(written)) < len(written):
        raise FlawError(f"a branch of {_label(node)} writes a tensor twice")
    path = node.name or next(filter(None, outputs), "if")
    # The names that tensors of the branch get outside of it. Each output of the `If` is one of them, or a copy.
    names: dict[str, str] = {}
    copies: list[tuple[str, str]] = []
    for made, wanted in zip(graph.output, outputs, strict=True):
        if wanted and made.name in written and made.name not in names:
            names[made.name] = wanted
        elif wanted:
            copies.append((made.name, wanted))
    weights = []
    for weight in graph.initializer:
        weights.append(TensorProto())
        weights[-1].CopyFrom(weight)
        weights[-1].name = names[weight.name] = names.get(weight.name) or taken.fresh(weight.name, path)
    for name in sorted(set(written).difference(names)):
        names[name] = taken.fresh(name, path)
    nodes = [_moved(it, names, taken.fresh(it.name, path) if it.name else "", domains) for it in graph.node]
    for number, (copied, wanted) in enumerate(copies):
        name, read = taken.fresh(f"copy{number}", path), names.get(copied, copied)
        nodes.append(NodeProto(op_type="Identity", name=name, input=[read], output=[wanted]))
    # The nodes that some output needs, in topological order.
    writers = {name: number for number, it in enumerate(nodes) for name in it.output if name}
    sources = [{writers[name] for name in reads(it) if name in writers} for it in nodes]
    order = topological_order(sources)
    if len(order) < len(nodes):
        raise FlawError(f"a branch of {_label(node)} has a cycle")
    needed = needed_for((writers[name] for name in outputs if name in writers), sources)
    return weights, [nodes[number] for number in order if number in needed]


def _moved(inner: "NodeProto", names: Mapping[str, str], name: str, domains: Container[str]) -> "NodeProto":
    """Return a copy of a node of a branch outside of it, by that name, with the new names of tensors."""
    from onnx import NodeProto

    moved = NodeProto()
    moved.CopyFrom(inner)
    if moved.domain in NAMES_OF_ONNX:
        moved.domain = ""
    if moved.domain not in domains:
        raise FlawError(
            f"{_label(inner)} is of the domain {moved.domain[:80]!r}, whose version the file does not declare"
        )
    moved.name = name
    _rename_all(moved.input, names)
    _rename_all(moved.output, names)
    for nested in graphs_inside(moved):
        rename_reads(nested, names)
    return moved


def rename_reads(graph: "GraphProto", names: Mapping[str, str]) -> None:
    """Rename the outer tensors that a subgraph reads. A name of its own hides the outer one."""
    own = {it.name for it in graph.input} | {it.name for it in graph.initializer}
    own |= {name for node in graph.node for name in node.output}
    outer = {old: new for old, new in names.items() if old not in own}
    if not outer:
        return
    for node in graph.node:
        _rename_all(node.input, outer)
        for inner in graphs_inside(node):
            rename_reads(inner, outer)
    for output in graph.output:
        output.name = outer.get(output.name, output.name)


def _rename_all(found: "list[str]", names: Mapping[str, str]) -> None:
    for place, name in enumerate(found):
        if name in names:
            found[place] = names[name]


def _label(node: "NodeProto") -> str:
    return repr((node.name or node.op_type)[:80])


# Larger values are weights: no real model has this many sizes, axes or indices.
_MOST_INTEGERS, _MOST_OTHERS = 2**16, 2**6
ZERO_POINTS = frozenset({"int8", "uint8"})
INDEX_DTYPES = frozenset({"int64", "int32", "bool", "object"})
# The elements that constant nodes may compute together. A small file could ask for any number.
_MOST_COMPUTED = 2**22
# Shapes and axes follow from short lists only.
_MOST_SIZES = 2**10
_RANDOM = frozenset(
    {"RandomNormal", "RandomUniform", "RandomNormalLike", "RandomUniformLike", "Multinomial", "Bernoulli"}
)
# Operators that read at most a shape. Their result counts as stored.
_STORED = frozenset({"Constant", "ConstantOfShape"})
_ONLY_THE_SHAPE = frozenset({"Shape", "Size"})
# Operators that are evaluated: those with which models compute shapes, axes and indices. Each takes time in proportion
# to the size of its inputs and outputs.
_NAMES_OF_COMPUTED = """
Abs Add And Cast CastLike Ceil Clip Concat Constant ConstantOfShape CumSum Div Equal Exp Expand Flatten Floor Gather
Greater GreaterOrEqual Identity Less LessOrEqual Log Max Min Mod Mul Neg NonZero Not Or Pad Pow Range Reciprocal
ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum Reshape Round Shape Sign Size Slice Split Sqrt Squeeze Sub Sum Tile
Transpose Trilu Unsqueeze Where Xor
"""
COMPUTED = frozenset(_NAMES_OF_COMPUTED.split())
# Errors of the reference evaluator for missing operators and inconsistent inputs. It is written in Python and checks
# little.
_EVALUATOR_ERRORS = (
    *(ArithmeticError, AssertionError, AttributeError, ImportError, LookupError, MemoryError, NameError, OSError),
    *(RuntimeError, TypeError, ValueError, re.error, struct.error),
)


@dataclass(slots=True)
class ConstantAnalysis:
    """The types of all tensors, the constants among them, and the values of small ones."""

    types: dict[str, TensorType]
    constants: set[str] = field(default_factory=set)
    values: dict[str, "TensorProto"] = field(default_factory=dict)
    layers: list["NodeProto"] = field(default_factory=list)
    # All nodes in topological order, with those of the branches that run in place of their `If`.
    nodes: list["NodeProto"] = field(default_factory=list)
    # The stored arrays of these branches, and the conditions that chose them.
    branch_weights: list["TensorProto"] = field(default_factory=list)
    conditions: list[str] = field(default_factory=list)
    # Stored arrays of two axes and more.
    matrices: set[str] = field(default_factory=set)
    # The numbers of small tensors in one run of the model, and the tensors whose shapes are those of that run.
    numbers: dict[str, Numbers] = field(default_factory=dict)
    recorded: frozenset[str] = frozenset()
    # The reason why there was no such run, as part of a sentence.
    failure: str = ""

    def chosen(self, file: OnnxFile) -> OnnxFile:
        """Return the file with the branch that runs in place of each `If`.

        The conditions are outputs, so that the layers that compute them stay.
        """
        made_inside = {name for node in self.nodes for name in node.output}
        outputs = tuple(dict.fromkeys((*file.outputs, *(it for it in self.conditions if it in made_inside))))
        weights = (*file.weights, *self.branch_weights)
        return replace(file, nodes=tuple(self.nodes), weights=weights, outputs=outputs)

    @property
    def open_conditions(self) -> list[str]:
        """The conditions of each `If` that is a layer."""
        return list(dict.fromkeys(node.input[0] for node in self.layers if is_if(node)))

    def type_of(self, name: str) -> TensorType:
        """Return the type of a tensor as far as it is known."""
        return self.types.get(name, UNKNOWN_TYPE)


def analyse(
    file: OnnxFile,
    inputs: Mapping[str, TensorType],
    settings: Iterable["TensorProto"] = (),
    conditions: Mapping[str, bool] | None = None,
) -> ConstantAnalysis:
    """Separate layers from constants and infer the types of all tensors.

    `settings` are the values of inputs that count as constants, and `conditions` those of `If`s that a run has told.
    One pass, as nodes are in topological order.
    """
    one_pass = _Pass(file.opsets, ConstantAnalysis(dict(inputs)), conditions or {})
    one_pass.store(file.weights)
    for setting in settings:
        one_pass.note(setting.name, setting)
    for node in file.nodes:
        one_pass.take(node)
    return one_pass.analysis


def declared_types(file: OnnxFile, inputs: Mapping[str, "TypeProto"]) -> "dict[str, TypeProto]":
    """Return the types of tensors as far as they follow from those of inputs, whose open axes may have names.

    Graphs inside of nodes count as parts of the file.
    """
    one_pass = _Pass(file.opsets, ConstantAnalysis({}), {})
    one_pass.declared.update(inputs)
    weights, nodes = with_subgraphs(file)
    with suppress(FlawError):
        one_pass.store(weights)
        for node in nodes:
            one_pass.take(node)
    known = {name: declared(found) for name, found in one_pass.analysis.types.items() if found.is_known}
    return {**one_pass.declared, **known}


class _Pass:
    def __init__(self, opsets: Mapping[str, int], analysis: ConstantAnalysis, conditions: Mapping[str, bool]) -> None:
        self.analysis = analysis
        self._conditions = conditions
        self._opsets = opsets
        self._taken = TakenNames(analysis.types)
        # Types in the form of the onnx package, possibly with unknown sizes.
        self.declared: dict[str, TypeProto] = {}
        self._computed_elements = 0

    def note(self, name: str, value: "TensorProto") -> None:
        """Keep the type of a stored array, and the value of a small one."""
        analysis = self.analysis
        self._set_type(name, type_of_weight(value))
        self._taken.add([name])
        analysis.constants.add(name)
        if _is_small(analysis.types[name]) and is_whole(value):
            if value.name != name:
                from onnx import TensorProto

                copy = TensorProto()
                copy.CopyFrom(value)
                copy.name, value = name, copy
            analysis.values[name] = value

    def take(self, node: "NodeProto") -> None:
        """Infer the types of a node's outputs, and classify it as layer or constant.

        If the condition of an `If` is known, take the branch that runs instead.
        """
        analysis = self.analysis
        if is_if(node):
            value = analysis.values.get(node.input[0])
            chosen = self._conditions.get(node.input[0]) if value is None else holds(value)
            if chosen is not None:
                weights, nodes = branch_of(node, chosen, self._taken, self._opsets)
                analysis.branch_weights += weights
                analysis.conditions.append(node.input[0])
                self.store(weights)
                for inner in nodes:
                    self.take(inner)
                return
        analysis.nodes.append(node)
        self._taken.add(filter(None, (node.name, *node.output)))
        for name, found in self._inferred(node).items():
            self.declared[name] = found
            self._set_type(name, type_of_value(found))
        if not _is_constant(node, analysis):
            analysis.layers.append(node)
            return
        outputs = list(filter(None, node.output))
        analysis.constants.update(outputs)
        for name, value in zip(outputs, self._values(node, outputs), strict=False):
            self.note(name, value)
        if node.op_type in _STORED:
            self._note_matrices(outputs)

    def store(self, weights: Iterable["TensorProto"]) -> None:
        """Keep the types of stored arrays, and the values of small ones."""
        for weight in weights:
            self.note(weight.name, weight)
            self._note_matrices([weight.name])

    def _note_matrices(self, names: Iterable[str]) -> None:
        self.analysis.matrices.update(name for name in names if is_matrix(self.analysis.type_of(name)))

    def _set_type(self, name: str, found: TensorType) -> None:
        if found.shape is not None and prod(found.shape) > MOST_ELEMENTS:
            shape = short_shape(found.shape)
            raise FlawError(f"the tensor {name[:80]!r} would have a shape of {shape}, which no machine can hold")
        self.analysis.types[name] = found

    def _inferred(self, node: "NodeProto") -> Mapping[str, "TypeProto"]:
        if _constant_value(node) is not None:
            return {}
        types: dict[str, TypeProto] = {}
        values: list[TensorProto] = []
        for name in filter(None, dict.fromkeys(reads(node))):
            found, value = self.analysis.type_of(name), self.analysis.values.get(name)
            if value is not None and prod(found.shape or ()) <= _MOST_SIZES:
                values.append(value)
            elif name in self.declared:
                types[name] = self.declared[name]
            elif found.dtype != UNKNOWN_DTYPE:
                types[name] = self.declared[name] = declared(found)
        return inferred(node, types, values, self._opsets)

    def _values(self, node: "NodeProto", outputs: Sequence[str]) -> Sequence["TensorProto"]:
        """Return the values of a constant node, if they are few."""
        analysis = self.analysis
        stored = _constant_value(node)
        if stored is not None:
            return (stored,)
        if _is_of_known_shape(node, analysis):
            from onnx import TensorProto
            from onnx.helper import make_tensor

            shape = analysis.type_of(node.input[0]).shape or ()
            if node.op_type == "Size":
                return (make_tensor("size", TensorProto.INT64, (), (prod(shape),)),)
            ends = {attribute.name: attribute.i for attribute in node.attribute}
            part = shape[ends.get("start") : ends.get("end")]
            return (make_tensor("shape", TensorProto.INT64, (len(part),), part),)
        # The result of NonZero has no more columns than its input has elements.
        types = [analysis.type_of(name) for name in (node.input if node.op_type == "NonZero" else outputs)]
        if node.op_type not in COMPUTED or not all(map(_is_small, types)):
            return ()
        if any(name not in analysis.values for name in node.input if name):
            return ()
        self._computed_elements += sum(prod(found.shape or ()) for found in types)
        if self._computed_elements > _MOST_COMPUTED:
            return ()
        return _computed(node, [analysis.values[name] for name in dict.fromkeys(node.input) if name], self._opsets)


def _constant_value(node: "NodeProto") -> "TensorProto | None":
    """Return the array of a node that only puts out an array."""
    if node.op_type != "Constant" or node.domain:
        return None
    return next((it.t for it in node.attribute if it.name == "value" and it.HasField("t")), None)


def _is_constant(node: "NodeProto", analysis: ConstantAnalysis) -> bool:
    if node.domain or node.op_type in _RANDOM or any(True for _ in graphs_inside(node)):
        return False
    # The author of the file calls such a node a layer, or a part of one.
    if any(it.key == LAYER_ATTRIBUTE for it in node.metadata_props):
        return False
    if _is_of_known_shape(node, analysis):
        return True
    read = [name for name in node.input if name]
    return all(name in analysis.constants and name not in analysis.matrices for name in read)


def _is_of_known_shape(node: "NodeProto", analysis: ConstantAnalysis) -> bool:
    """Return true if the node reads a shape or size that is known."""
    asks = node.op_type in _ONLY_THE_SHAPE and len(node.input) > 0
    return asks and analysis.type_of(node.input[0]).shape is not None


def _computed(node: "NodeProto", values: Sequence["TensorProto"], opsets: Mapping[str, int]) -> Sequence["TensorProto"]:
    import numpy
    from onnx import GraphProto, ValueInfoProto
    from onnx.numpy_helper import from_array, to_array
    from onnx.reference import ReferenceEvaluator

    names = list(dict.fromkeys(filter(None, node.input)))
    outputs = list(filter(None, node.output))
    graph = GraphProto(
        name="constant",
        node=[node],
        input=[ValueInfoProto(name=name) for name in names],
        output=[ValueInfoProto(name=name) for name in outputs],
    )
    try:
        fed = {name: to_array(value) for name, value in zip(names, values, strict=True)}
        with numpy.errstate(all="ignore"):
            found = ReferenceEvaluator(small_model(graph, opsets)).run(None, fed)
        return [from_array(numpy.asarray(value)) for value in found]
    except _EVALUATOR_ERRORS:
        # The tensor is a weight like any other.
        return ()


def is_matrix(found: TensorType) -> bool:
    """Return true if an array has more than one axis."""
    return sum(size > 1 for size in found.shape or ()) > 1


def _is_small(found: TensorType) -> bool:
    is_zero_points = found.dtype in ZERO_POINTS and not is_matrix(found)
    most = _MOST_INTEGERS if found.dtype in INDEX_DTYPES or is_zero_points else _MOST_OTHERS
    return found.shape is not None and prod(found.shape) <= most
