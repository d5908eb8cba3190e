"""The backend of OpenVINO, on its CPU plugin, and the plugin's profiler.

OpenVINO always optimises a graph. So a network of several layers runs fused, at either level.

The profiler counts whole microseconds, and tells the mean of all runs since the model was compiled, rounded down. So
the model is compiled again after a few runs, and the time of a request is the difference of two totals.

A line that its oneDNN prints does not name its node. Nodes run in a fixed order, each with one primitive of its kind at
most, so lines and nodes of a kind correspond in order. Conversions of layouts also run inside of other nodes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from time import perf_counter
from typing import Any

from dlbricks_tui.runtime import protocol
from dlbricks_tui.runtime.inside.backend import BoundNetwork, ProfiledNetwork, RefusalError, Watch
from dlbricks_tui.runtime.inside.measuring import lines_printed
from dlbricks_tui.runtime.inside.onnx_backend import Filling, OnnxBackend, OnnxNetwork, numpy_values
from dlbricks_tui.runtime.inside.openvino_decoders import ModelRequest, decoder_extensions, with_state
from dlbricks_tui.runtime.inside.openvino_models import (
    Executed,
    ModelText,
    ask,
    compiled,
    effective_settings,
    executed_nodes,
    model_in_file,
    numbers_of,
    refuse_missing_precision,
)
from dlbricks_tui.runtime.protocol import Reason, Said, TracedOperator

# The totals are known to this many microseconds after as many runs.
_MOST_RUNS = 16
_NANOSECONDS_PER_MICROSECOND = 1000
# Rounding down takes away this much on average, from each duration and from each mean (docs/log/openvino.md).
_ROUNDED_OFF_US = 0.5
# Nodes of these kinds may only pass on memory, which takes no time.
_PASSING = ("Reshape", "Squeeze", "Unsqueeze", "Flatten", "Split", "Concatenation", "StridedSlice")


class _ProfiledModel(ProfiledNetwork):
    """A model that is compiled with counters, and again when these have become coarse."""

    has_starts = False

    def __init__(self, bound: _BoundModel, text: ModelText) -> None:
        self._bound = bound
        self._text = text
        self._request: Any = None
        self._runs = 0
        # The executed nodes, and for each the number of a node of the network.
        self._executed: Sequence[Executed] = ()
        self._numbers: Sequence[int] = ()

    def run(self, warm: int, repeat: int, before: Callable[[], Any], watch: Watch) -> list[list[TracedOperator]]:
        """Run the model; return the mean times of the last `repeat` runs as those of one run."""
        begin, taken_us = self._begun(warm, repeat, before), 0.0
        for _ in range(repeat):
            before()
            began = perf_counter()
            watch(self._run)
            taken_us += (perf_counter() - began) * 1e6
        row = self._row(begin, repeat)
        return [_with_overhead(row, taken_us / repeat) if self._request.has_caches else row]

    def with_owners(self, lines: tuple[Said, ...]) -> tuple[Said, ...]:
        return with_owners(lines, [it.kind for it in self._executed], self._numbers)

    def _begun(self, warm: int, repeat: int, before: Callable[[], Any]) -> dict[str, float]:
        """Run the model untimed, with counters fine enough for more runs, and return their totals after that."""
        if self._request is None or self._runs + warm + repeat > _MOST_RUNS:
            self._compile()
        self._runs += ask(self._request.begin, Reason.UNBUILDABLE)
        for _ in range(warm):
            before()
            self._run()
        return self._totals_us()

    def _compile(self) -> None:
        # Frees the memory of the one before.
        self._request = None
        bound = self._bound
        found = compiled(bound.core, bound.model, Reason.UNBUILDABLE, profiled=True)
        self._request = ModelRequest(bound.model, found.create_infer_request())
        self._request.feed(range(len(bound.inputs)), bound.inputs, bound.in_place)
        self._executed = executed_nodes(found, self._text.nodes)
        self._numbers = numbers_of(self._executed, self._text.conversions, self._text.nodes)
        self._runs = 0
        self._run()

    def _run(self) -> None:
        ask(self._request.run, Reason.UNBUILDABLE)
        self._runs += 1

    def _totals_us(self) -> dict[str, float]:
        """Return the time of each node in all runs; 0 if it takes less than a microsecond."""
        means = {it.node_name: round(it.real_time.total_seconds() * 1e6) for it in self._request.request.profiling_info}
        most_rounded_off = self._runs - 1
        return {name: mean * self._runs + most_rounded_off / 2 if mean else 0.0 for name, mean in means.items()}

    def _row(self, begin: Mapping[str, float], runs: int) -> list[TracedOperator]:
        """Return the nodes that ran, one after another, with the mean of their times in the last runs."""
        row: list[TracedOperator] = []
        at, end = 0, self._totals_us()
        for place, it in enumerate(self._executed):
            total = end.get(it.name, 0.0)
            if total or it.kind not in _PASSING:
                taken_us = max(0.0, total - begin.get(it.name, 0.0)) / runs + _ROUNDED_OFF_US
                taken_ns = round(taken_us * _NANOSECONDS_PER_MICROSECOND)
                row.append(TracedOperator(self._numbers[place], it.kind, at, taken_ns))
                at += taken_ns
        return row


def _with_overhead(row: list[TracedOperator], taken_us: float) -> list[TracedOperator]:
    """Return operators that take as long as the whole run.

    Where sizes are open until it runs, each node also takes time that the profiler does not count, which hardly depends
    on its work: a third of a step of 135 million weights.
    """
    rest_ns = taken_us * _NANOSECONDS_PER_MICROSECOND - sum(it.duration_ns for it in row)
    each_ns = max(0, round(rest_ns / max(1, len(row))))
    return [it._replace(duration_ns=it.duration_ns + each_ns) for it in row]


# Kinds of nodes, and oneDNN's primitives that they run. Kinds that share a primitive are counted together.
_PRIMITIVES = (
    (("Convolution", "Deconvolution"), ("convolution", "deconvolution")),
    (("FullyConnected", "MatMul"), ("inner_product", "matmul")),
    (("Pooling",), ("pooling", "pooling_v2")),
    (("Lrn",), ("lrn",)),
    (("Softmax",), ("softmax", "softmax_v2")),
    (("RNNCell", "RNNSeq"), ("rnn",)),
    (("Eltwise",), ("eltwise", "binary")),
)
_CONVERSION, _REORDER = "Reorder", "reorder"
_CONVOLUTION, _CONVOLUTIONS = "Convolution", ("convolution", "deconvolution")


def with_owners(lines: Sequence[Said], kinds: Sequence[str], numbers: Sequence[int]) -> tuple[Said, ...]:
    """Return the lines of one run with the numbers of their nodes, None where lines and nodes do not correspond.

    `kinds` are those of the executed nodes in order, and `numbers` what each is known by.
    """
    ran = [_primitive(it.line) for it in lines]
    missing = sum(kind == _CONVOLUTION for kind in kinds) - sum(primitive in _CONVOLUTIONS for primitive in ran)
    if missing > 0:
        # In some versions, oneDNN fails to compute convolutions while it prints.
        message = (
            f"oneDNN prints nothing about {missing} convolutions: this version of OpenVINO leaves them out while it "
            "prints, or computes them without oneDNN"
        )
        raise RefusalError(Reason.UNBUILDABLE, message)
    places = _places_of_computing(ran, kinds)
    places.update(_places_of_conversions(ran, kinds, places))
    return tuple(
        Said(it.line, numbers[places[number]] if number in places else None) for number, it in enumerate(lines)
    )


def _primitive(line: str) -> str:
    """Return the primitive that a line tells of: `...,exec,cpu,PRIMITIVE,...`; empty for other lines."""
    words = line.split(",")
    place = words.index("exec") + 2 if "exec" in words else len(words)
    return words[place] if place < len(words) else ""


def _places_of_computing(ran: Sequence[str], kinds: Sequence[str]) -> dict[int, int]:
    """Return the place of the node by the number of the line, for each kind with as many lines as nodes."""
    found: dict[int, int] = {}
    for alike, primitives in _PRIMITIVES:
        nodes = [place for place, kind in enumerate(kinds) if kind in alike]
        printed = [number for number, primitive in enumerate(ran) if primitive in primitives]
        if len(nodes) == len(printed):
            found.update({number: nodes[place] for place, number in enumerate(printed)})
    return found


def _places_of_conversions(ran: Sequence[str], kinds: Sequence[str], known: Mapping[int, int]) -> dict[int, int]:
    """Return the place of the node of each conversion, between the nodes of the lines before and after it.

    It is a node of its own, or belongs to the node that computes next.
    """
    found: dict[int, int] = {}
    before = -1
    for number, primitive in enumerate(ran):
        if number in known:
            before = known[number]
        elif primitive == _REORDER:
            after = next((known[it] for it in range(number, len(ran)) if it in known), None)
            until = len(kinds) if after is None else after
            own = next((place for place in range(before + 1, until) if kinds[place] == _CONVERSION), after)
            if own is not None:
                found[number] = own
                before = max(before, own if kinds[own] == _CONVERSION else before)
    return found


# OpenVINO's names of the data types that numpy lacks, and numpy's names of others.
_ONNX_ONLY = {"bfloat16": "bf16", "float8e4m3fn": "f8e4m3", "float8e5m2": "f8e5m2", "uint4": "u4", "int4": "i4"}
_NUMPYS = {"f16": "float16", "f32": "float32", "f64": "float64", "boolean": "bool", "string": "object"}
_NAMES = {**_NUMPYS, **{theirs: ours for ours, theirs in _ONNX_ONLY.items()}}


class OpenVino(OnnxBackend):
    """OpenVINO."""

    falls_asleep = True

    def __init__(self, openvino: Any) -> None:
        self._openvino = openvino
        # That of the package, without the number of the build.
        self.version = openvino.__version__.split("-")[0]
        self._core = openvino.Core()
        self._decoding_core: Any = None
        refuse_missing_precision(self._core)

    def chosen(self) -> dict[str, str]:
        return effective_settings(self._openvino, self._core)

    def infer(self, request: protocol.Infer) -> protocol.Inferred:
        found = []
        for output in ModelText(request.symbol).read(self._core, {}, {}, protocol.Reason.INCONSISTENT).outputs:
            shape, dtype = output.get_partial_shape(), _numpys_name(output.get_element_type())
            found.append((protocol.Tensor(tuple(shape.to_shape()) if shape.is_static else None, dtype),))
        return protocol.Inferred(tuple(found), ())

    def fuse(self, request: protocol.Fuse) -> protocol.Fused:
        """Return the nodes that OpenVINO executes, as a list in JSON."""
        network = request.network
        text, shapes = ModelText(network.symbol), {name: it.shape for name, it in network.inputs.items()}
        model = text.read(self._core, shapes, network.weights, protocol.Reason.UNFUSABLE)
        found = executed_nodes(compiled(self._core, model, protocol.Reason.UNFUSABLE), text.nodes)
        return protocol.Fused(json.dumps([asdict(it) for it in found]), (), ())

    def explain(self, request: protocol.Explain) -> protocol.Explained:
        """Return what oneDNN prints while OpenVINO compiles a network, which is when it chooses kernels."""
        return protocol.Explained(lines_printed(lambda: self.bind(request.network)))

    def array(self, found: protocol.ArrayType, filling: Filling) -> Any:
        values = numpy_values(found, filling)
        if found.dtype not in _ONNX_ONLY:
            return ask(lambda: self._openvino.Tensor(values), protocol.Reason.UNBUILDABLE)
        declared = getattr(self._openvino.Type, _ONNX_ONLY[found.dtype])
        return ask(lambda: self._openvino.Tensor(values, list(found.shape), declared), protocol.Reason.UNBUILDABLE)

    def bind_to_record(self, network: protocol.Network) -> OnnxNetwork:
        return _BoundModel(self._core, network)

    def bind(
        self, network: protocol.Network, fed: Sequence[Any] | None = None, *, side_by_side: bool = False
    ) -> BoundNetwork:
        """Compile a network or a model file. OpenVINO runs its operators one after another."""
        if side_by_side:
            raise RefusalError(protocol.Reason.UNBUILDABLE, "OpenVINO runs the operators of a model one after another")
        bound = _BoundModel(self._core_for(network), network)
        bound.feed(self.filled(network) if fed is None else fed)
        return bound

    def _core_for(self, network: protocol.Network) -> Any:
        """Return the core that reads a network: parts of language models become what the plugin fuses."""
        if not network.distinct:
            return self._core
        if self._decoding_core is None:
            self._decoding_core = self._openvino.Core()
            for extension in decoder_extensions(self._openvino):
                self._decoding_core.add_extension(extension)
        return self._decoding_core


class _BoundModel(OnnxNetwork):
    def __init__(self, core: Any, network: protocol.Network) -> None:
        # OpenVINO keeps the caches of a language model itself.
        keeps_caches = network.distinct and bool(network.in_place)
        network = replace(network, in_place={}) if keeps_caches else network
        super().__init__(network)
        self.core = core
        self.text: ModelText | None = None
        shapes = {name: it.shape for name, it in network.inputs.items()}
        if network.file:
            self.model = model_in_file(core, network.file, shapes)
        else:
            self.text = ModelText(network.symbol)
            self.model = self.text.read(core, shapes, network.weights, protocol.Reason.UNBUILDABLE)
            if keeps_caches:
                self.model = with_state(self.model)
        found = compiled(core, self.model, protocol.Reason.UNBUILDABLE)
        self._request = ModelRequest(self.model, ask(found.create_infer_request, protocol.Reason.UNBUILDABLE))
        self._results = len(found.outputs)

    def _bind_arrays(self) -> None:
        names = list(self.network.inputs)
        # Inputs of a file are known by name, and those of our networks by place, as some lose their names.
        keys = names if self.text is None else range(len(names))
        ask(lambda: self._request.feed(keys, self.inputs, self.in_place), protocol.Reason.UNBUILDABLE)

    def run(self) -> None:
        ask(self._run, protocol.Reason.UNBUILDABLE)

    def _run(self) -> None:
        self._request.run()
        if not self.outputs:
            self.outputs = [self._request.request.get_output_tensor(number) for number in range(self._results)]

    def prepare(self) -> None:
        ask(self._request.prepare, protocol.Reason.UNBUILDABLE)

    def begin(self) -> None:
        ask(self._request.begin, protocol.Reason.UNBUILDABLE)

    def profiled(self) -> ProfiledNetwork:
        if self.text is None:
            raise RefusalError(protocol.Reason.UNBUILDABLE, "the nodes of a model file have no numbers")
        return _ProfiledModel(self, self.text)

    def _types(self) -> list[protocol.ArrayType]:
        return [protocol.ArrayType(tuple(it.shape), _numpys_name(it.element_type)) for it in self.outputs]

    def _numbers(self, place: int) -> Any:
        return self.outputs[place].data


def _numpys_name(declared: Any) -> str:
    """Return numpy's name for a data type: `int64` for `i64`."""
    name = str(declared.get_type_name())
    whole = {"i": "int", "u": "uint"}.get(name[0]) if name[1:].isdecimal() else None
    return _NAMES.get(name, f"{whole}{name[1:]}" if whole else name)
