"""Models of OpenVINO: read with synthetic weights or from a file, and compiled, with error messages of one line.

It also says which nodes of the ONNX model are behind each node that OpenVINO executes. OpenVINO keeps the name of the
last node of those that it replaces by one, so some nodes are not named any more. Such a node belongs to the executed
node that its readers belong to. If these are several, it belongs to the one in front.
"""

from __future__ import annotations

import os
import re
import tempfile
from base64 import b64decode
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy

from dlbricks_tui.runtime.inside.backend import RefusalError, imported
from dlbricks_tui.runtime.inside.onnx_backend import (
    ONNX_ONLY,
    Node,
    Stored,
    nodes_of,
    numpy_values,
    source_of,
    unpacked,
    with_stored,
)
from dlbricks_tui.runtime.inside.values import THREADS_VARIABLE, learned_values
from dlbricks_tui.runtime.protocol import ArrayType, Reason

# Names of our nodes and tensors, possibly with a suffix. The numbers of nodes count.
_OUR_NAME = re.compile(r"(?:node|t)(\d+)(?:$|[/_])")
_OWN_NUMBER = re.compile(r"node(\d+)$")
_INPUT, _OUTPUT, _CONSTANT, _CONVERSION = "Input", "Output", "Const", "Reorder"

# Nodes of this domain stand for conversions of layouts, which OpenVINO inserts by itself.
CONVERSIONS = "openvino"
# The number for what belongs to no node.
NO_NODE = 1 << 30


@dataclass(frozen=True)
class Conversion:
    """A conversion of a layout in a network: its number, and the numbers of the nodes before and behind it.

    `source` is None for an input of the network, and there are no readers if the result is an output.
    """

    number: int
    source: int | None
    readers: frozenset[int]


@dataclass(frozen=True)
class Executed:
    """A node that OpenVINO executes in each run: its name, kind, kernel, and the layout and data type of its results.

    `reads` are the places of the nodes that it reads, None for an input of the model. `numbers` are those of the ONNX
    nodes behind it, and `leaves` is true if its result is an output of the model. A conversion of a layout has no ONNX
    nodes.
    """

    name: str
    kind: str
    kernel: str
    layout: str
    dtype: str
    reads: tuple[int | None, ...]
    leaves: bool = False
    numbers: tuple[int, ...] = ()

    @property
    def is_conversion(self) -> bool:
        return self.kind == _CONVERSION


def number_of(node: Node) -> int | None:
    """Return the number in the name of one of our nodes."""
    match = _OWN_NUMBER.match(node.name)
    return int(match[1]) if match else None


def separated(nodes: Sequence[Node]) -> tuple[list[Node], list[Conversion]]:
    """Return the nodes of a network as OpenVINO reads them, and the conversions among them."""
    passed_on = {node.outputs[0]: node.inputs[0] for node in nodes if node.domain == CONVERSIONS}
    kept = [
        node._replace(inputs=tuple([source_of(name, passed_on) for name in node.inputs]))
        for node in nodes
        if node.domain != CONVERSIONS
    ]
    makers = {name: number_of(node) for node in kept for name in node.outputs}
    found = []
    for node in nodes:
        if node.domain == CONVERSIONS:
            readers = (number_of(it) for it in nodes if node.outputs[0] in it.inputs)
            known = frozenset(number for number in readers if number is not None)
            source, number = makers.get(source_of(node.inputs[0], passed_on)), number_of(node)
            found.append(Conversion(-1 if number is None else number, source, known))
    return kept, found


def numbers_of(executed: Sequence[Executed], conversions: Sequence[Conversion], nodes: Sequence[Node]) -> list[int]:
    """Return for each executed node the number of a node of the network: of a product, if there is one in it.

    A conversion that the network does not name belongs to its reader. NO_NODE stands for conversions of an input or
    output that it does not name: where a part of a model begins or ends, the whole model has none.
    """
    products = {number_of(it) for it in nodes if it.op.startswith("MatMul")}
    readers: list[set[int]] = [set() for _ in executed]
    for it in executed:
        for place in it.reads:
            if place is not None:
                readers[place].update(it.numbers)
    found = []
    for place, it in enumerate(executed):
        if not it.is_conversion:
            last = it.numbers[-1] if it.numbers else NO_NODE
            found.append(next((number for number in it.numbers if number in products), last))
            continue
        source = it.reads[0]
        # None for a conversion of an input.
        before: Sequence[int | None] = (None,) if source is None else executed[source].numbers
        named = [each for each in conversions if each.source in before]
        same = (it_.number for it_ in named if it_.readers & readers[place] or (it.leaves and not it_.readers))
        found.append(next(same, max(readers[place], default=NO_NODE) if source is not None else NO_NODE))
    return found


def executed_nodes(compiled: Any, nodes: Sequence[Node]) -> list[Executed]:
    """Return what OpenVINO executes of a model, in order. Nodes that read only constants run once and are left out."""
    found: list[Executed] = []
    named: list[set[int]] = []
    # The place of each node; None for inputs. Constants have none.
    places: dict[str, int | None] = {}
    for op in sorted(compiled.get_runtime_model().get_ordered_ops(), key=lambda op: int(_fact(op, "execOrder"))):
        kind, name = _fact(op, "layerType"), op.get_friendly_name()
        sources = [op.input_value(place).get_node().get_friendly_name() for place in range(op.get_input_size())]
        reads = tuple([places[source] for source in sources if source in places])
        if kind == _INPUT:
            places[name] = None
        elif kind == _OUTPUT:
            for place in reads:
                if place is not None:
                    found[place] = replace(found[place], leaves=True)
        elif kind != _CONSTANT and reads:
            places[name] = len(found)
            known = _fact(op, "primitiveType"), _fact(op, "outputLayouts"), _fact(op, "outputPrecisions")
            found.append(Executed(name, kind, *known, reads))
            names = () if kind == _CONVERSION else (*_fact(op, "originalLayersNames").split(","), name)
            named.append({int(match[1]) for match in map(_OUR_NAME.match, names) if match})
    return _shared_out(found, named, [node for node in nodes if number_of(node) is not None])


def _fact(op: Any, key: str) -> str:
    info = op.get_rt_info()
    return str(info[key].astype(str)) if key in info else ""


def _shared_out(found: Sequence[Executed], named: Sequence[set[int]], nodes: Sequence[Node]) -> list[Executed]:
    """Return the executed nodes with all ONNX nodes shared out among them."""
    owners: dict[int, int] = {}
    for place, numbers in enumerate(named):
        owners.update((number, place) for number in numbers if number not in owners)
    behind = [set(numbers) for numbers in named]
    for number, place in _places_of_unnamed(nodes, owners).items():
        behind[place].add(number)
    _give_numbers(found, behind)
    return [replace(it, numbers=tuple(sorted(behind[place]))) for place, it in enumerate(found)]


def _places_of_unnamed(nodes: Sequence[Node], owners: Mapping[int, int]) -> dict[int, int]:
    """Return the executed nodes that the nodes without a name in the executed graph belong to."""
    numbers = {output: number_of(node) for node in nodes for output in node.outputs if output}
    readers: dict[int, list[int]] = {}
    for node in nodes:
        reader = number_of(node)
        for name in node.inputs:
            source = numbers.get(name)
            if source is not None and reader is not None:
                readers.setdefault(source, []).append(reader)
    placed = dict(owners)
    known = [(number_of(node), node) for node in nodes]
    waiting = [(number, node) for number, node in known if number is not None and number not in owners]
    # Readers come first, so that a row of unnamed nodes ends up in one place.
    for number, _ in reversed(waiting):
        candidates = {placed[it] for it in readers.get(number, ()) if it in placed}
        if len(candidates) == 1:
            placed[number] = candidates.pop()
    for number, node in waiting:
        if number not in placed:
            sources = [placed[it] for it in map(numbers.get, node.inputs) if it is not None and it in placed]
            behind = sources or [placed[it] for it in readers.get(number, ()) if it in placed]
            if behind:
                placed[number] = behind[0]
    return {number: place for number, place in placed.items() if number not in owners}


def _give_numbers(found: Sequence[Executed], behind: Sequence[set[int]]) -> None:
    """Give executed nodes that OpenVINO has added the ONNX nodes of a neighbour, a reader if there is one.

    Conversions between the two do not count.
    """
    sources = [_beyond_conversions(it.reads, found) for it in found]
    readers: list[list[int]] = [[] for _ in found]
    for place, it in enumerate(found):
        for source in sources[place] if not it.is_conversion else ():
            readers[source].append(place)
    added = [place for place, it in enumerate(found) if not it.is_conversion and not behind[place]]
    for place in reversed(added):
        behind[place].update(next((behind[it] for it in readers[place] if behind[it]), ()))
    for place in added:
        if not behind[place]:
            behind[place].update(next((behind[it] for it in sources[place] if behind[it]), ()))


def _beyond_conversions(places: Iterable[int | None], found: Sequence[Executed]) -> list[int]:
    """Return the nodes that make these results, before any conversions."""
    made: list[int] = []
    for place in places:
        if place is not None:
            it = found[place]
            made += _beyond_conversions(it.reads, found) if it.is_conversion else [place]
    return made


PRECISION_VARIABLE = "DLBRICKS_PRECISION"
CACHE_VARIABLE = "DLBRICKS_CACHE"
# A user can give it to a runtime: the activations that share a scale in products of packed weights, 32 by default.
GROUP_VARIABLE = "OV_DYNAMIC_QUANTIZATION_GROUP_SIZE"
# Of its settings, beside those of caches, those that change the speed of language models.
_TOLD = ("DYNAMIC_QUANTIZATION_GROUP_SIZE", "INFERENCE_PRECISION_HINT")
INSTRUCTIONS_VARIABLE = "DNNL_MAX_CPU_ISA"
# Limits with which OpenVINO compiles nothing but single precision, although it lists others.
_NARROW = ("sse41", "avx", "avx2", "avx2_vnni")
_SINGLE = "f32"
DEVICE = "CPU"

_ALIGNMENT = 64
# OpenVINO's names of the precisions of caches, where they differ.
_TYPES_OF_CACHES = {"int8": "u8"}
# Lines of an error message that name places in the source, or say nothing about the model.
_ROUTINE = (
    "Exception from",
    "Check '",
    "FrontEnd API failed",
    "While validating",
    "Model wasn't fully converted",
    "Summary:",
    "To facilitate",
    "Loading input model",
)
# The operators in the summary of a failed conversion.
_LACKING, _FAILED = "No conversion rule found for operations: ", "Conversion is failed for: "
_OUT_OF_MEMORY = ("bad_alloc", "Failed to allocate", "out of memory", "Cannot allocate memory")
# Inputs that hold zero points, by operator.
_ZERO_POINTS = {
    "QuantizeLinear": (2,),
    "DequantizeLinear": (2,),
    "QLinearConv": (2, 5, 7),
    "QLinearMatMul": (2, 5, 7),
    "ConvInteger": (2, 3),
    "MatMulInteger": (2, 3),
}

Found = TypeVar("Found")


def load_openvino() -> Any:
    """Import `openvino`."""
    return imported("openvino", "OpenVINO")


def refuse_missing_precision(core: Any) -> None:
    """Refuse a precision in which this processor would compute with single precision instead."""
    asked = _precision()
    limit = os.environ.get(INSTRUCTIONS_VARIABLE, "").lower()
    if asked != _SINGLE and limit in _NARROW:
        raise RefusalError(Reason.NO_PRECISION, f"OpenVINO has no {asked} arithmetic with {limit} kernels")
    if asked != _SINGLE and asked.upper() not in core.get_property(DEVICE, "OPTIMIZATION_CAPABILITIES"):
        raise RefusalError(Reason.NO_PRECISION, f"OpenVINO has no {asked} arithmetic on this processor")


def ask(question: Callable[[], Found], reason: Reason) -> Found:
    """Call a function of OpenVINO; turn its errors into refusals."""
    try:
        return question()
    except MemoryError as error:
        raise RefusalError(Reason.TOO_LARGE, f"out of memory: {error}") from error
    except (RuntimeError, TypeError, ValueError) as error:
        message = first_line(str(error)) or type(error).__name__
        large = any(sign in str(error) for sign in _OUT_OF_MEMORY)
        raise RefusalError(Reason.TOO_LARGE if large else reason, message) from error


def first_line(message: str) -> str:
    """Return in one line what an error message says about the model: the operators that fail, and why."""
    lines = [line.strip().lstrip("- ") for line in message.splitlines() if line.strip("- ")]
    lacking = [line.replace(_LACKING, "OpenVINO lacks ") for line in lines if line.startswith(_LACKING)]
    failed = [line.replace(_FAILED, "OpenVINO rejects ") for line in lines if line.startswith(_FAILED)]
    routine = (*_ROUTINE, _LACKING, _FAILED)
    telling = [line for line in lines if not line.startswith(routine) and not line.endswith("with a message:")]
    told = telling[:1] or ([] if lacking or failed else lines[:1])
    parts = [*lacking, ": ".join([*failed, *told])]
    return "; ".join(filter(None, parts))[:400]


class ModelText:
    """An ONNX model in base64, and its nodes. The conversions in it are not part of what OpenVINO reads."""

    def __init__(self, text: str) -> None:
        self.content = b64decode(text)
        self.nodes, self.conversions = separated(nodes_of(self.content))

    def read(
        self, core: Any, shapes: Mapping[str, tuple[int, ...]], weights: Mapping[str, ArrayType], reason: Reason
    ) -> Any:
        """Return the model with inputs of these shapes, in order, and with values for its weights.

        The values lie in a file, which OpenVINO maps into memory: inside of a model it would copy them several times.
        """
        # Other zero points than 0 lead to other kernels, and most weights have this one.
        places = [(node.inputs, place) for node in self.nodes for place in _ZERO_POINTS.get(node.op, ())]
        zeros = {names[place] for names, place in places if place < len(names)}
        try:
            with tempfile.TemporaryDirectory() as folder:
                stored = _written(Path(folder) / "weights", weights, zeros)
                path = Path(folder) / "model.onnx"
                path.write_bytes(with_stored(self.content, stored, CONVERSIONS))

                def read() -> Any:
                    # With open axes OpenVINO may run a model of contradicting shapes, without an error.
                    model = core.read_model(str(path))
                    if model.is_dynamic() and shapes:
                        model.reshape({place: list(shape) for place, shape in enumerate(shapes.values())})
                    return model

                return ask(read, reason)
        except OSError as error:
            where = error.filename or tempfile.tempdir or "the folder for temporary files"
            raise RefusalError(Reason.NO_ROOM, f"the weights cannot be written to {where}: {error.strerror}") from error


def _written(path: Path, weights: Mapping[str, ArrayType], zeros: Collection[str]) -> dict[str, Stored]:
    """Write the values of weights to a file, those of `zeros` as 0, and return the place of each."""
    stored: dict[str, Stored] = {}
    with path.open("wb") as file:
        for number, (name, found) in enumerate(weights.items()):
            parts = _weight(found, 0 if name in zeros else number + 1)
            file.write(bytes(-file.tell() % _ALIGNMENT))
            stored[name] = Stored(path.name, file.tell(), sum(part.nbytes for part in parts))
            file.writelines(part.data for part in parts)
    return stored


def model_in_file(core: Any, path: str, shapes: Mapping[str, tuple[int, ...]]) -> Any:
    """Return the model in a file, which may be gzipped, with its own weights and inputs of these shapes."""
    content = unpacked(path, Reason.UNBUILDABLE)

    def read() -> Any:
        model = core.read_model(content)
        model.reshape({name: list(shape) for name, shape in shapes.items()})
        return model

    return ask(read, Reason.UNBUILDABLE)


def compiled(core: Any, model: Any, reason: Reason, *, profiled: bool = False) -> Any:
    """Return a model as OpenVINO runs it: in one stream, and in the precision of the settings.

    By itself OpenVINO would compute in bfloat16 where the processor can.
    """
    given = {**settings(), "PERF_COUNT": "YES" if profiled else "NO"}
    return ask(lambda: core.compile_model(model, DEVICE, given), reason)


def settings() -> dict[str, str]:
    """Return the settings of the CPU plugin."""
    threads = os.environ.get(THREADS_VARIABLE, "")
    found = {
        "NUM_STREAMS": "1",
        # With 0, OpenVINO decides.
        "INFERENCE_NUM_THREADS": threads if threads.isdecimal() else "0",
        "INFERENCE_PRECISION_HINT": _precision(),
    }
    group = os.environ.get(GROUP_VARIABLE)
    if group:
        found["DYNAMIC_QUANTIZATION_GROUP_SIZE"] = group
    cache = os.environ.get(CACHE_VARIABLE)
    if cache:
        found["KV_CACHE_PRECISION"] = _TYPES_OF_CACHES.get(cache, cache)
    return found


def effective_settings(openvino: Any, core: Any) -> dict[str, str]:
    """Return what the plugin makes of these settings: the types and groups of caches, and of activations it rounds."""
    given = openvino.opset13.parameter([1], numpy.float32)
    found = compiled(core, openvino.Model([openvino.opset13.relu(given)], [given]), Reason.UNBUILDABLE)
    told = {}
    for name in found.get_property("SUPPORTED_PROPERTIES"):
        if name in _TOLD or "_CACHE_" in name:
            value = found.get_property(name)
            told[name] = str(value.get_type_name()) if hasattr(value, "get_type_name") else str(value)
    return told


def _precision() -> str:
    return os.environ.get(PRECISION_VARIABLE, _SINGLE)


def _weight(found: ArrayType, number: int) -> Sequence[Any]:
    """Return the values of a weight in parts; those of zero points are zero.

    OpenVINO runs equal layers on equal weights only once, so the values of each weight begin elsewhere.
    """
    values = numpy_values(found, learned_values).reshape(-1)
    if found.dtype in ONNX_ONLY:
        values = values[: -(-len(values) // ONNX_ONLY[found.dtype].per_byte)]
    if not number:
        return (numpy.zeros_like(values),)
    first = -number % max(1, len(values))
    return (values[first:], values[:first])
