"""The types of all tensors of a graph as a framework tells them: by type inference, and then by running it once."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import TYPE_CHECKING, Protocol

from dlbricks_tui.models.graph import UNKNOWN_TYPE, Numbers, TensorType
from dlbricks_tui.models.onnx.inputs import set_shapes
from dlbricks_tui.models.onnx.model_file import OnnxFile, reads
from dlbricks_tui.models.onnx.stored_arrays import is_external, type_of_weight
from dlbricks_tui.models.onnx.writer import model_text
from dlbricks_tui.models.type_cache import CachedTypes
from dlbricks_tui.runtime.errors import WorkerRefusedError
from dlbricks_tui.runtime.protocol import Held

if TYPE_CHECKING:
    from onnx import NodeProto

_WHOLE_NUMBERS = frozenset({"int64", "int32", "bool"})
# More elements are data.
_FEW_NUMBERS = 64


class TellsTypes(Protocol):
    """The interface of a framework that tells types."""

    def output_types(self, model: str) -> Sequence[TensorType]:
        """Return the types of a model's outputs, without optimising or running it."""

    def recorded(
        self,
        model: str,
        inputs: Mapping[str, TensorType],
        weights: Mapping[str, TensorType],
        values: Mapping[str, Numbers],
    ) -> Sequence[Held | None]:
        """Run a model once, and return its outputs."""


@dataclass(frozen=True, slots=True)
class Tensors:
    """The types of tensors by name, and the numbers of small ones in one run.

    Types of the `recorded` tensors are those of that run. Where the run failed, `failure` says why.
    """

    types: dict[str, TensorType]
    numbers: dict[str, Numbers] = field(default_factory=dict)
    recorded: frozenset[str] = frozenset()
    failure: str = ""

    def cached(self, file: OnnxFile, framework: str, symbol: str | None = None) -> CachedTypes:
        """Return the tensors by node and output."""
        places = {name: (node, output) for node, output, name in _places(file)}
        types = tuple([tuple([self.types[name] for name in node.output if name]) for node in file.nodes])
        numbers = tuple([(*places[name], held) for name, held in self.numbers.items()])
        recorded = tuple(sorted(places[name] for name in self.recorded))
        return CachedTypes(
            types, framework=framework, symbol=symbol, numbers=numbers, recorded=recorded, failure=self.failure
        )

    @classmethod
    def of(cls, file: OnnxFile, cached: CachedTypes) -> "Tensors":
        """Return cached tensors by name."""
        names = {(node, output): name for node, output, name in _places(file)}
        return cls(
            {name: cached.types[node][output] for (node, output), name in names.items()},
            {names[node, output]: held for node, output, held in cached.numbers},
            frozenset(names[place] for place in cached.recorded),
            cached.failure,
        )


def _places(file: OnnxFile) -> Iterator[tuple[int, int, str]]:
    for number, node in enumerate(file.nodes):
        yield from ((number, output, name) for output, name in enumerate(filter(None, node.output)))


def tensors_of(
    file: OnnxFile, inputs: Mapping[str, TensorType], values: Mapping[str, Numbers], framework: TellsTypes
) -> Tensors:
    """Return the tensors that the nodes of a graph write, for inputs of these types.

    The graph is run only if type inference leaves a shape open, or a shape is set by a computed tensor: a part of the
    graph that begins behind that tensor needs its numbers. Raise WorkerRefusedError if the framework rejects it.
    """
    written = [name for node in file.nodes for name in node.output if name]
    try:
        types = _inferred(file, inputs, written, framework)
        fixed: Mapping[str, TensorType] = inputs
    except WorkerRefusedError:
        # A branch that does not run may contradict the shapes of the inputs.
        types = _inferred(file, {}, written, framework)
        fixed = {}
    computed = set(written)
    setting = {name for node in file.nodes for name in set_shapes(node) if name in computed}
    if not setting and all(it.shape is not None for it in types.values()):
        return Tensors(types)
    read = {name for node in file.nodes for name in reads(node)}
    unsized = [name for name, found in types.items() if found.shape is None and found != UNKNOWN_TYPE]
    few = [
        name
        for name, found in types.items()
        if _may_be_few(found) and (name in setting or _is_index(found, name, read))
    ]
    model = model_text(
        replace(file, nodes=(*file.nodes, *_shape_nodes(unsized))), fixed, [*map(_shape_of, unsized), *few]
    )
    # ONNX Runtime drops the weights of a branch that was cut, and then takes no values for them.
    weights = {it.name: type_of_weight(it) for it in file.weights if is_external(it) and it.name in read}
    try:
        held = framework.recorded(model, inputs, weights, values)
    except WorkerRefusedError as refused:
        return Tensors(types, failure=str(refused))
    for name, shape in zip(unsized, held, strict=False):
        if shape is not None:
            types[name] = TensorType(tuple(map(int, shape.numbers)), types[name].dtype)
    numbers: dict[str, Numbers] = {
        name: it.numbers for name, it in zip(few, held[len(unsized) :], strict=True) if it and it.numbers
    }
    return Tensors(types, numbers, frozenset(unsized))


def conditions_in_a_run(
    file: OnnxFile,
    names: Sequence[str],
    inputs: Mapping[str, TensorType],
    values: Mapping[str, Numbers],
    framework: TellsTypes,
) -> dict[str, bool]:
    """Return those of some conditions that are single flags in one run of the graph.

    Raise WorkerRefusedError if the framework rejects it.
    """
    if not names:
        return {}
    weights = {weight.name: type_of_weight(weight) for weight in file.weights if is_external(weight)}
    # A branch that does not run may contradict the shapes of the inputs, so inputs stay as the file declares them.
    held = framework.recorded(model_text(file, {}, names), inputs, weights, values)
    return {name: bool(it.numbers[0]) for name, it in zip(names, held, strict=True) if it and len(it.numbers) == 1}


def _inferred(
    file: OnnxFile, inputs: Mapping[str, TensorType], written: Sequence[str], framework: TellsTypes
) -> dict[str, TensorType]:
    # Only the types of large weights count here, and an input needs no values.
    found = framework.output_types(model_text(file, inputs, written, weights_as_inputs=True))
    return dict(zip(written, found, strict=True))


def _may_be_few(found: TensorType) -> bool:
    return found != UNKNOWN_TYPE and (found.shape is None or prod(found.shape) <= _FEW_NUMBERS)


def _is_index(found: TensorType, name: str, read: set[str]) -> bool:
    return found.dtype in _WHOLE_NUMBERS and name in read


def _shape_nodes(names: Sequence[str]) -> "list[NodeProto]":
    """Return nodes that read shapes: as an output, a tensor itself would stay in memory until the end."""
    from onnx import NodeProto

    return [NodeProto(op_type="Shape", name=_shape_of(it), input=[it], output=[_shape_of(it)]) for it in names]


def _shape_of(name: str) -> str:
    return f"shape of {name}"
