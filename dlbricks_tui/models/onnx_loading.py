"""Loads ONNX models at either level.

A framework tells the types that inference leaves open: by its own inference, and then by running the model once.
"""

import time
from base64 import b64decode
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from dlbricks_tui.models.cache import FUSED, INFERRED, Cache, GraphAnswer, ReadModel, answer_key
from dlbricks_tui.models.composites import with_composites
from dlbricks_tui.models.content import without_cycle_search
from dlbricks_tui.models.errors import (
    FlawError,
    FusionRefusedError,
    MissingShapeError,
    ModelError,
    UnreadableModelError,
)
from dlbricks_tui.models.graph import UNKNOWN_TYPE, GraphInput, LayerGraph, Level, Numbers, Shape, TensorType
from dlbricks_tui.models.input_shapes import StatedInputs, example_shape, refuse_unfit, value_advice
from dlbricks_tui.models.library import ModelSource
from dlbricks_tui.models.onnx_arrays import (
    checked_array_file_sizes,
    is_external,
    stored_bytes,
    type_of_weight,
)
from dlbricks_tui.models.onnx_constants import ConstantAnalysis, analyse, is_if
from dlbricks_tui.models.onnx_file import (
    DEEPEST_NESTING,
    OnnxFile,
    parse_onnx,
    read_onnx,
    reads,
    refuse_too_many_parts,
)
from dlbricks_tui.models.onnx_inputs import (
    candidates,
    compared_numbers,
    depending_on_data,
    implied_axes,
    input_types,
    set_shapes,
    stated_inputs,
    stored_settings,
    whole_settings,
)
from dlbricks_tui.models.onnx_layers import OnnxGraph, OnnxGraphBuilder, executed_graph, written_layers_behind
from dlbricks_tui.models.onnx_writer import large_arrays, model_text
from dlbricks_tui.recorded_host import host_name
from dlbricks_tui.runtime.errors import FrameworkMissingError, WorkerRefusedError
from dlbricks_tui.runtime.traits import Format, Traits, usual_traits

if TYPE_CHECKING:
    from dlbricks_tui.models.frameworks import WorkerFramework

# The worker creates all constants of a model, including those that the file only describes.
_MOST_COMPUTED_BYTES = 2**30
# Characters of all nodes as text, each with a copy of the small values that it reads.
_MOST_NODE_TEXT = 64 * 2**20
# Trials of shapes end after so long.
_MOST_SECONDS_OF_TRIALS = 20.0
_WHOLE_NUMBERS = frozenset({"int64", "int32", "bool"})
# More elements are data.
_FEW_NUMBERS = 64


@dataclass(frozen=True, slots=True)
class Tensors:
    """The types of tensors by name, and the numbers of small ones in one run.

    Types of the `recorded` tensors are those of that run. Where the run failed, `failure` says why.
    """

    types: dict[str, TensorType]
    numbers: dict[str, Numbers] = field(default_factory=dict)
    recorded: frozenset[str] = frozenset()
    failure: str = ""

    def cached(self, file: OnnxFile, framework: str, symbol: str | None = None) -> GraphAnswer:
        """Return the tensors by node and output."""
        places = {name: (node, output) for node, output, name in _places(file)}
        types = tuple([tuple([self.types[name] for name in node.output if name]) for node in file.nodes])
        numbers = tuple([(*places[name], held) for name, held in self.numbers.items()])
        recorded = tuple(sorted(places[name] for name in self.recorded))
        return GraphAnswer(
            types, framework=framework, symbol=symbol, numbers=numbers, recorded=recorded, failure=self.failure
        )

    @classmethod
    def of(cls, file: OnnxFile, cached: GraphAnswer) -> "Tensors":
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
    file: OnnxFile, inputs: Mapping[str, TensorType], values: Mapping[str, Numbers], framework: "WorkerFramework"
) -> Tensors:
    """Return the tensors that the nodes of a graph write, for inputs of these types.

    The graph is run only if type inference leaves a shape open, or a shape is set by a computed tensor: a part of the
    graph that begins behind that tensor needs its numbers. Raise WorkerRefusedError if the framework rejects it.
    """
    written = [name for node in file.nodes for name in node.output if name]
    if not written:
        # All of it was constant.
        return Tensors({})
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
        if found != UNKNOWN_TYPE
        and (found.shape is None or prod(found.shape) <= _FEW_NUMBERS)
        and (name in setting or (found.dtype in _WHOLE_NUMBERS and name in read))
    ]
    from onnx import NodeProto

    # Nodes that read shapes: as an output, a tensor itself would stay in memory until the end.
    shapes = {name: f"shape of {name}" for name in unsized}
    nodes = [NodeProto(op_type="Shape", name=it, input=[name], output=[it]) for name, it in shapes.items()]
    model = model_text(replace(file, nodes=(*file.nodes, *nodes)), fixed, [*shapes.values(), *few])
    # ONNX Runtime drops the weights of a branch that was cut, and then takes no values for them.
    weights = {name: type_of_weight(it) for name, it in large_arrays(file).items() if name in read}
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
    framework: "WorkerFramework",
) -> dict[str, bool]:
    """Return those of some conditions that are single flags in one run of the graph.

    Raise WorkerRefusedError if the framework rejects it.
    """
    if not names:
        return {}
    weights = {name: type_of_weight(it) for name, it in large_arrays(file).items()}
    # A branch that does not run may contradict the shapes of the inputs, so inputs stay as the file declares them.
    held = framework.recorded(model_text(file, {}, names), inputs, weights, values)
    return {name: bool(it.numbers[0]) for name, it in zip(names, held, strict=True) if it and len(it.numbers) == 1}


def _inferred(
    file: OnnxFile, inputs: Mapping[str, TensorType], written: Sequence[str], framework: "WorkerFramework"
) -> dict[str, TensorType]:
    # Only the types of large weights count here, and an input needs no values.
    large = large_arrays(file)
    computed = [name for name in written if name not in large]
    found = framework.output_types(model_text(file, inputs, computed, weights_as_inputs=True))
    types = dict(zip(computed, found, strict=True))
    return types | {name: type_of_weight(large[name]) for name in written if name in large}


class _Model(NamedTuple):
    """A model file as it was read."""

    name: str
    path: Path
    content: bytes
    inputs: Mapping[str, TensorType]
    # The values of some inputs.
    values: Mapping[str, Numbers]
    batch_size: int
    # The names of axes whose size is assumed, by input.
    assumed: Mapping[str, tuple[str, ...]]
    # The values of inputs that are part of the layers that read them.
    settings: dict[str, Numbers]

    def analysis(self, file: OnnxFile, conditions: Mapping[str, bool]) -> ConstantAnalysis:
        """Return the analysis of a graph of the model, given the known conditions of each `If`."""
        found = analyse(file, self.inputs, stored_settings(self.values, self.inputs), conditions)
        found.numbers = self.settings
        return found

    def failure(self, told: Tensors) -> str:
        """Return why the model failed on synthetic inputs, with the advice to give values; empty if it ran."""
        inputs = [GraphInput(name, found, self.values.get(name, ())) for name, found in self.inputs.items()]
        advised = f"{told.failure}{value_advice(inputs, told.failure)}"
        return f"the model does not run on synthetic inputs: {advised}" if told.failure else ""

    def graph(self, found: OnnxGraph, level: Level) -> LayerGraph:
        """Return the layers at a level."""
        graph = OnnxGraphBuilder(found, self.name, level).graph()
        inputs = [
            GraphInput(name, found, self.values.get(name, ()), self.assumed.get(name, ()))
            for name, found, *_ in graph.inputs
        ]
        return replace(graph, inputs=tuple(inputs), batch_size=self.batch_size)


@dataclass(frozen=True, slots=True)
class OnnxLoader:
    """Loads ONNX models at either level. Only the fused level needs a framework."""

    cache: Cache
    optimiser: "WorkerFramework | None"

    def read(self, source: ModelSource) -> bytes:
        """Return the content of a model file without its large arrays."""
        return read_onnx(source.path, source.name)

    def facts(self, source: ModelSource, level: Level) -> tuple[object, ...]:
        """Return the facts beside the file and its shapes on which a layer graph depends."""
        # Loaded here: it takes long, and other formats do without.
        from importlib.metadata import PackageNotFoundError, version

        try:
            onnx = version("onnx")
        except PackageNotFoundError:
            onnx = ""
        framework = None if self.optimiser is None else self.optimiser.identity
        # The layouts of fused tensors depend on the processor, and machines may share a cache folder.
        return framework, onnx, host_name() if level is Level.FUSED else ""

    @without_cycle_search()
    def load(
        self, source: ModelSource, content: bytes, level: Level, stated: StatedInputs, batch_size: int | None
    ) -> ReadModel:
        """Return the layer graph of a model file."""
        name = source.name
        try:
            refuse_too_many_parts(content, name)
            file = parse_onnx(content, name)
            beside = checked_array_file_sizes(file, source.path, name)
            model = _model(source, content, file, stated, batch_size)
            found = _written(file, model, self._analysed(file, model, Level.WRITTEN), self._traits)
            written = model.graph(found, Level.WRITTEN)
            if level is Level.FUSED:
                return ReadModel(self._fused(model, found, written, stored_bytes(file)), beside)
            if self._complete(model, found, written):
                written = model.graph(found, Level.WRITTEN)
            # The optimiser gets the nodes as they are: some layers stand for several repetitions of them.
            said = [{it.key: it.value for it in node.metadata_props} for node in found.analysis.layers]
            layers = with_composites(written, said)
        except MissingShapeError as missing:
            axes = implied_axes(file)
            raise MissingShapeError(str(missing), {it: example_shape(axes[it]) for it in missing.examples}) from None
        except UnicodeDecodeError:
            raise UnreadableModelError(f"{name} contains a name that is not valid text: the file is damaged") from None
        except FlawError as damaged:
            raise UnreadableModelError(f"{name}: {damaged}") from None
        return ReadModel(layers, beside)

    def suggested(
        self, source: ModelSource, content: bytes, asked: Iterable[str], stated: StatedInputs
    ) -> Mapping[str, Shape]:
        """Return shapes of these inputs with which the model runs; none if it runs with none of those tried."""
        axes, began = implied_axes(parse_onnx(content, source.name)), time.monotonic()
        for shapes in candidates({name: axes[name] for name in asked if name in axes}):
            if not self.failure(source, content, stated._replace(shapes={**stated.shapes, **shapes})):
                return shapes
            if time.monotonic() - began > _MOST_SECONDS_OF_TRIALS:
                break
        return {}

    def failure(self, source: ModelSource, content: bytes, stated: StatedInputs) -> str:
        """Return why a model fails in a run with inputs of these shapes; empty if it does not."""
        if self.optimiser is None:
            return ""
        file = parse_onnx(content, source.name)
        weights = {name: type_of_weight(it) for name, it in large_arrays(file).items()}
        try:
            model = _model(source, content, file, stated, None)
        except ModelError as error:
            return str(error)
        try:
            self.optimiser.recorded(model_text(file, {}, file.outputs), model.inputs, weights, model.values)
        except WorkerRefusedError as refused:
            return str(refused)
        return ""

    @property
    def _traits(self) -> Traits:
        return usual_traits(Format.ONNX) if self.optimiser is None else self.optimiser.traits

    def _complete(self, model: _Model, found: OnnxGraph, written: LayerGraph) -> bool:
        """Ask the framework for the types that inference leaves open. Return false if that adds none."""
        if self.optimiser is None or all(layer.unmeasurable is None for layer in written.layers):
            return False
        key = self._key(model, Level.WRITTEN, self.optimiser)
        cached = self.cache.read_types(INFERRED, key)
        if cached is None:
            try:
                tensors = tensors_of(found.file, model.inputs, model.values, self.optimiser)
            except FrameworkMissingError:
                return False
            except WorkerRefusedError as refused:
                found.analysis.failure = f"the model cannot be read: {refused}"
                return True
            cached = tensors.cached(found.file, self.optimiser.identity)
            self.cache.write_types(INFERRED, key, cached)
        told, analysis = Tensors.of(found.file, cached), found.analysis
        unknown = [name for name in told.types if not analysis.type_of(name).is_known]
        analysis.types.update((name, told.types[name]) for name in unknown)
        analysis.numbers, analysis.failure = model.settings | told.numbers, model.failure(told)
        analysis.recorded = depending_on_data(found.file, unknown, model.values)
        return True

    def _fused(self, model: _Model, found: OnnxGraph, written: LayerGraph, stored: int) -> LayerGraph:
        name = model.name
        if self.optimiser is None:
            raise ModelError(
                f"{name}: fusing an ONNX model needs {self._traits.title}: {self._traits.install_here}, "
                "or register an interpreter that has it: `dlbricks runtimes add PATH`"
            )
        operators = [operator for layer in written.layers for operator in layer.operators]
        if sum(len(text) for it in operators for _, text in it.native.attributes) > _MOST_NODE_TEXT:
            raise FusionRefusedError(f"{name} has too many long values in its nodes; read its layers as written")
        constants = sum(found.analysis.type_of(constant).size_bytes for constant in found.analysis.constants)
        if constants > stored + _MOST_COMPUTED_BYTES:
            most = f"{_MOST_COMPUTED_BYTES // 2**30} GiB"
            raise FusionRefusedError(
                f"{name} computes constants of more than {most} from shapes; read its layers as written"
            )
        key = self._key(model, Level.FUSED, self.optimiser)
        if self.optimiser.traits.always_fuses:
            if self._complete(model, found, written):
                written = model.graph(found, Level.WRITTEN)
            return self._executed_layers(written, self.optimiser, key)
        cached = self.cache.read_types(FUSED, key)
        if cached is None or cached.symbol is None:
            try:
                symbol = self._optimised(model, self.optimiser)
                file = self._executed(symbol, model)
                tensors = tensors_of(file, model.inputs, model.values, self.optimiser)
            except WorkerRefusedError as refused:
                raise FusionRefusedError(f"{name}: {refused}") from None
            cached = tensors.cached(file, self.optimiser.identity, symbol)
            self.cache.write_types(FUSED, key, cached)
        else:
            file = self._executed(cached.symbol, model)
        return model.graph(_fused_graph(file, Tensors.of(file, cached), model, found.file, written), Level.FUSED)

    def _optimised(self, model: _Model, optimiser: "WorkerFramework") -> str:
        """Return the graph that the framework executes, which is the same for inputs of all shapes."""
        from dlbricks_tui.runtime.protocol import Network

        key = answer_key(model.content, {}, "onnx", "optimised", optimiser.identity, host_name())
        network = Network("", {}, {}, str(model.path.absolute()))
        return self._symbol(key, optimiser, lambda: optimiser.executed(network))

    def _symbol(self, key: str, framework: "WorkerFramework", ask: Callable[[], str]) -> str:
        """Return a graph that the framework tells, from the cache if it is known."""
        known = self.cache.read_types(FUSED, key)
        if known is None or known.symbol is None:
            known = GraphAnswer((), framework=framework.identity, symbol=ask())
            self.cache.write_types(FUSED, key, known)
        return known.symbol or ""

    def _executed_layers(self, written: LayerGraph, framework: "WorkerFramework", key: str) -> LayerGraph:
        reasons = [f"layer {it.name[:80]!r}: {it.unmeasurable}" for it in written.layers if it.unmeasurable is not None]
        if reasons:
            raise FusionRefusedError(f"{written.name}: {reasons[0]}")
        # Loaded here: networks need the protocol of workers.
        from dlbricks_tui.models.networks import whole_network

        network, owners = whole_network(written)
        try:
            nodes = self._symbol(key, framework, lambda: framework.executed(network))
        except WorkerRefusedError as refused:
            raise FusionRefusedError(f"{written.name}: {refused}") from None
        return executed_graph(written, owners, nodes)

    def _executed(self, symbol: str, model: _Model) -> OnnxFile:
        """Return the graph that a framework executes, with the branch that runs in place of each `If`."""
        file = parse_onnx(b64decode(symbol), f"{model.name}, fused")
        if not any(map(is_if, file.nodes)):
            return file
        return self._analysed(file, model, Level.FUSED).chosen(file)

    def _analysed(self, file: OnnxFile, model: _Model, level: Level) -> ConstantAnalysis:
        """Analyse a graph, with the branch that runs in place of each `If`.

        Where a condition depends on data, run the model on synthetic inputs: the branch that runs then is taken.
        """
        conditions: dict[str, bool] = {}
        analysis = model.analysis(file, conditions)
        if self.optimiser is None or not analysis.open_conditions:
            return analysis
        key = f"{self._key(model, level, self.optimiser)}-branches"
        known = self.cache.read(key)
        if known is not None:
            return model.analysis(file, known)
        try:
            # Within a branch there may be further ones.
            for _ in range(DEEPEST_NESTING):
                asked, graph = analysis.open_conditions, analysis.chosen(file)
                told = conditions_in_a_run(graph, asked, model.inputs, model.values, self.optimiser)
                if not told:
                    break
                conditions.update(told)
                analysis = model.analysis(file, conditions)
        except FrameworkMissingError:
            return analysis
        except WorkerRefusedError:
            # The model does not run on synthetic inputs: the `If` stays a layer.
            pass
        self.cache.write(key, conditions)
        return analysis

    def _key(self, model: _Model, level: Level, framework: "WorkerFramework") -> str:
        given = repr([sorted(it.items()) for it in (model.inputs, model.values)])
        # The fused graph depends on the processor, and machines may share a cache folder.
        host = host_name() if level is Level.FUSED else ""
        return answer_key(model.content, {}, "onnx", level.value, given, framework.identity, host)


def _model(source: ModelSource, content: bytes, file: OnnxFile, stated: StatedInputs, batch_size: int | None) -> _Model:
    name, in_file = source.name, stated_inputs(file.metadata)
    values, known = {**in_file.values, **stated.values}, {**in_file.shapes, **source.inputs}
    inputs, batch, assumed = input_types(file.inputs, stated._replace(values=values), known, batch_size, name)
    refuse_unfit(values, inputs, name)
    compared = compared_numbers(file, inputs)
    # A number that the file names chooses a branch, and no layer takes longer for it.
    settings = whole_settings({it: numbers for it, numbers in values.items() if compared.get(it) != numbers}, inputs)
    return _Model(name, source.path, content, inputs, {**compared, **values}, batch, assumed, settings)


def _written(file: OnnxFile, model: _Model, analysis: ConstantAnalysis, traits: Traits) -> OnnxGraph:
    file = analysis.chosen(file)
    numbers = {name: number for number, node in enumerate(file.nodes) for name in node.output if name}
    parts = [numbers[next(filter(None, node.output))] for node in analysis.layers]
    names = [
        node.name or f"{node.op_type.lower()}{number}" for number, node in zip(parts, analysis.layers, strict=True)
    ]
    return OnnxGraph(analysis, model.inputs, file, names, [(number,) for number in parts], traits)


def _fused_graph(file: OnnxFile, told: Tensors, model: _Model, original: OnnxFile, written: LayerGraph) -> OnnxGraph:
    inputs = model.inputs
    failure = model.failure(told)
    analysis = ConstantAnalysis(
        {**told.types, **inputs}, layers=list(file.nodes), numbers=model.settings | told.numbers, failure=failure
    )
    for weight in file.weights:
        analysis.types[weight.name] = type_of_weight(weight)
        analysis.constants.add(weight.name)
        if not is_external(weight):
            analysis.values[weight.name] = weight
    analysis.recorded = depending_on_data(file, told.recorded, model.values)
    stands_for = written_layers_behind(file, written, original)
    names = [
        written.layers[found[-1]].name if found else node.name or f"{node.op_type.lower()}{number}"
        for number, (node, found) in enumerate(zip(file.nodes, stands_for, strict=True))
    ]
    parts = [tuple(sorted({part for index in found for part in written.layers[index].nodes})) for found in stands_for]
    return OnnxGraph(analysis, inputs, file, names, parts, written.traits)
