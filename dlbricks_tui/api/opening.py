"""The models of a data folder: the library, loaders with a framework where needed, cuts, and the command to run one."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from dlbricks_tui.api.documents import attributes_of
from dlbricks_tui.api.session import SILENT, Remarks
from dlbricks_tui.bricks.cutting import Cut, LayerOrder
from dlbricks_tui.bricks.decomposition import (
    Corpus,
    Cutting,
    Decomposition,
    Occurrence,
    corpus_of_bricks,
    decompose,
    model_bricks,
)
from dlbricks_tui.errors import UserError
from dlbricks_tui.folders import SAMPLE_MODELS, DataFolder
from dlbricks_tui.models import frameworks
from dlbricks_tui.models.errors import ModelError, UnknownModelError, WrongRuntimeError
from dlbricks_tui.models.graph import Layer, LayerGraph, Level, Numbers, Shape, unmeasurable_layers
from dlbricks_tui.models.input_shapes import ShapeMemory, listed, parse_input, parse_value_option, spelled
from dlbricks_tui.models.library import MODEL_SUFFIXES, Library, ModelSource, looks_like_path, shared_formats, source_of
from dlbricks_tui.models.loading import UNLOADABLE, Loader, UnloadedModels
from dlbricks_tui.printable import shell_words
from dlbricks_tui.runtime.registry import Registry
from dlbricks_tui.runtime.runtime import Runtime
from dlbricks_tui.runtime.traits import Format
from dlbricks_tui.runtime.variant import AskedVariant, Precision, stated_variant
from dlbricks_tui.wording.answers import options_of
from dlbricks_tui.wording.numbers import counted

if TYPE_CHECKING:
    from dlbricks_tui.store.database import ResultsDatabase

# Of the files that can be opened.
FILE_ENDINGS = MODEL_SUFFIXES


@dataclass(frozen=True, kw_only=True)
class InputOptions:
    """Shapes and values of inputs, by input name, for model files that lack them."""

    inputs: Mapping[str, Shape] = field(default_factory=dict)
    # The numbers in inputs that are settings, such as a sampling rate.
    values: Mapping[str, Numbers] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class RuntimeOptions(AskedVariant):
    """A runtime and the variant in which it runs a model."""

    # A registered runtime by its name; for estimates also one of the store.
    runtime: str | None = None
    # That of the settings, which counts only for models that it runs.
    usual_runtime: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CutOptions(InputOptions):
    """Options of everything that cuts models into bricks."""

    granularity: int = 1
    cut: Cut = Cut.CHAIN
    order: LayerOrder = LayerOrder.BRANCH
    # The cutting of runs whose command does not name it.
    usual_cutting: Cutting = field(default_factory=Cutting)

    @property
    def cutting(self) -> Cutting:
        """Granularity, cut and order."""
        return Cutting(self.granularity, self.cut, self.order)


class _UsersLibrary(Library):
    """The models of a user, which tells what to type for a model that `dlbricks llm` knows."""

    def find(self, name: str) -> tuple[ModelSource, ...]:
        try:
            return super().find(name)
        except UnknownModelError:
            from dlbricks_tui.language.opening import model_in_library

            if (known := model_in_library(name)) is None:
                raise
            told = f"{known.name} is a language model: `dlbricks llm {known.name}` tells its speed"
            raise UnknownModelError(told) from None


def library(data: DataFolder, preferred: Format | None = None) -> Library:
    """Return the library of a user: the samples, and what the user has added.

    Without a preferred format, models with files of several formats have that of the preferred runtime.
    """
    return _UsersLibrary(SAMPLE_MODELS, data.path, preferred or Registry(data.path).preferred_format)


def model_named(name: str, data: DataFolder) -> ModelSource:
    """Return the one model of a name or path; raise ModelError if it stands for several, or for none."""
    found = library(data).find(name)
    if len(found) != 1:
        raise ModelError(f"{name} stands for {len(found)} models; name one, such as table1:14")
    return found[0]


def model_or_none(name: str, data: DataFolder) -> ModelSource | None:
    """Return the one model of a name or path; None for a word that names something else."""
    try:
        return model_named(name, data)
    except UnknownModelError:
        if looks_like_path(name):
            raise
        return None


def model_or_path(word: str, data: DataFolder, refusal: Callable[[str], UserError]) -> ModelSource | Path:
    """Return the path or the model that a word names; raise the error that `refusal` makes of a reason."""
    if looks_like_path(word):
        # `Path.exists` raises an error for a word that is too long for a name.
        if not os.path.exists(word):  # noqa: PTH110
            raise refusal(f"{word}: no such file; `dlbricks models` lists the models of the library")
        return Path(word).absolute()
    try:
        return model_named(word, data)
    except ModelError as error:
        raise refusal(str(error)) from None


def runtime_here(name: str | None, data: DataFolder) -> Runtime | None:
    """Return a runtime of this host by its name; None for None."""
    return None if name is None else Registry(data.path).find(name)


def files_named(
    names: Sequence[str], runtime: Runtime | None, data: DataFolder, *, is_usual: bool = False
) -> tuple[ModelSource, ...]:
    """Return models of the library with the files that a runtime reads; one that is only usual may read none."""
    sources = library(data, None if runtime is None else runtime.traits.format).find_all(names)
    return sources if runtime is None or is_usual else files_for(sources, runtime)


def parsed_inputs(shapes: Iterable[str], values: Iterable[str]) -> dict[str, Any]:
    """Return texts such as `data=1,3,224,224` and `rate=16000` by the fields of InputOptions."""
    return {"inputs": dict(map(parse_input, shapes)), "values": dict(map(parse_value_option, values))}


@contextmanager
def open_store(data: DataFolder, tell: Callable[[str], None]) -> Iterator[ResultsDatabase]:
    """Open the store, and tell of its damage at the end."""
    # Loaded here: models need no store.
    from dlbricks_tui.store.database import ResultsDatabase

    with ResultsDatabase(data.store) as store:
        yield store
        for line in store_doubts(store):
            tell(line)


def store_doubts(store: ResultsDatabase) -> Iterator[str]:
    """Yield a line about dates in the future and one about damaged lines of a store, if there are any."""
    if dates := store.from_the_future:
        yield (
            f"{counted(len(dates), 'record')} of the store have a date in the future, up to {max(dates)[:10]}: a clock "
            "was ahead, or that of this host is behind. They count as older than those stored after them; "
            "`dlbricks results verify --correct-dates` corrects the dates"
        )
    if damage := store.damage:
        verb, first = ("is", ":") if len(damage) == 1 else ("are", ", the first of which is")
        yield (
            f"{counted(len(damage), 'damaged line')} of the store {verb} set aside{first} {damage[0]}; "
            "`dlbricks results verify` reads everything"
        )


def files_for(sources: Sequence[ModelSource], runtime: Runtime) -> tuple[ModelSource, ...]:
    """Return the models with the files that a runtime reads; raise WrongRuntimeError for a model without one."""
    needed = runtime.traits.format
    for source in sources:
        if needed not in source.formats:
            raise WrongRuntimeError(
                f"{source.name} is an {source.format.value} model, and runtime {runtime.name} runs those of "
                f"{needed.value}; choose another runtime, or none"
            )
    return tuple([source.in_format(needed) for source in sources])


class ModelLoaders(ExitStack):
    """Loaders of models, one for each runtime that reads them; each is opened at its first use."""

    def __init__(self, data: DataFolder, remarks: Remarks, *runtimes: Runtime, most_bytes: int | None = None) -> None:
        """The runtimes read the models of their formats if no other one is named.

        `most_bytes` is the memory for the tensors of a model at a given batch size.
        """

        def tell_inputs(source: ModelSource, given: Mapping[str, Numbers]) -> None:
            # Loaded here: few models have such inputs.
            from dlbricks_tui.wording.events import inputs_given_before

            remarks.inputs_used(inputs_given_before(source.name, spelled(given)))

        super().__init__()
        named = {it.traits.format: it for it in runtimes}
        self.usual: Mapping[Format, Runtime] = {**Registry(data.path).one_of_each_format(), **named}
        memory, log = ShapeMemory(data.path, tell_inputs), data.log / "framework.log"
        self._how = data.cache, log, memory, most_bytes, remarks.tell
        self._loaders: dict[Runtime | None, Loader] = {}

    def loader(self, runtime: Runtime | None = None) -> Loader:
        """Return the loader of models as a runtime has them; None is the usual one of each format.

        Its process starts when the first unknown model needs it.
        """
        if runtime not in self._loaders:
            taken = self.usual if runtime is None else {**self.usual, runtime.traits.format: runtime}
            opened = self.enter_context(closing(frameworks.Frameworks(taken, *self._how)))
            self._loaders[runtime] = opened.loader
        return self._loaders[runtime]


def loader_from_cache(data: DataFolder) -> Loader:
    """Return a loader that starts no framework; it refuses models that need one."""
    runtimes = Registry(data.path).one_of_each_format()
    return frameworks.Frameworks(runtimes, data.cache, data.log / "framework.log").loader_from_cache


def load_all(
    sources: Sequence[ModelSource],
    load: Callable[[ModelSource], LayerGraph],
    remarks: Remarks = SILENT,
) -> list[tuple[ModelSource, LayerGraph]]:
    """Return several models with their layer graphs, which have the names of the models.

    Tell of those that cannot be loaded; raise the first refusal where none can.
    """
    models: list[tuple[ModelSource, LayerGraph]] = []
    left_out = UnloadedModels(remarks.word_error)
    # Some models of Table 1 are the same network, in one file.
    known: dict[object, LayerGraph] = {}
    for source in sources:
        network = (source.path, *source.inputs.items())
        try:
            graph = known.get(network) or load(source)
        except UNLOADABLE as refusal:
            left_out.add(source, refusal)
        else:
            known[network] = graph
            models.append((source, graph.named(source.name)))
    left_out.conclude(models, remarks.tell)
    return models


def reference_to(source: ModelSource, *, has_name: bool) -> str:
    """Return a model as commands name it: by its number in Table 1, its name if they know it, or its path."""
    if source.table1_id:
        return f"table1:{source.table1_id}"
    return source.name if has_name else str(source.path)


def run_command(named: str, runtime: Runtime, level: Level, batch: int | None, options: CutOptions, *more: str) -> str:
    """Return the `dlbricks run` for a model of that name, cut and with inputs as the options say, and more words."""
    variant = AskedVariant(**stated_variant(runtime.identity).parts | {"batch": batch})
    words = options_of(runtime.name, variant, level, options.cutting, options.usual_cutting)
    return shell_words(["dlbricks", "run", named, *words, *input_words(options), *more])


def input_words(options: InputOptions) -> Iterator[str]:
    """Yield the options of a command that give the same shapes and values of inputs."""
    for option, numbers in (("--input", options.inputs), ("--value", options.values)):
        for name, value in numbers.items():
            yield from (option, spelled({name: value}))


class DecomposedModel(NamedTuple):
    """A model and its layer sequences."""

    source: ModelSource
    decomposition: Decomposition


def cut_all(
    loader: Loader,
    sources: Sequence[ModelSource],
    level: Level,
    cutting: Cutting,
    inputs: Mapping[str, Any],
    remarks: Remarks,
) -> list[DecomposedModel]:
    """Return models cut into layer sequences; `inputs` are the fields of InputOptions.

    Models that cannot be loaded are left out, with a remark; where none can, the first refusal is raised.
    """
    loaded = load_all(sources, lambda it: loader.load(it, level, inputs["inputs"], inputs["values"]), remarks)
    return [DecomposedModel(source, decompose(graph, cutting, loader.cache)) for source, graph in loaded]


def decomposed_model(
    loader: Loader, source: ModelSource, level: Level, cutting: Cutting, inputs: Mapping[str, Any]
) -> Decomposition:
    """Return a model cut into layer sequences, under the name in its file."""
    return decompose(loader.load(source, level, inputs["inputs"], inputs["values"]), cutting, loader.cache)


def runtime_in_precision(
    named: Runtime | None, precision: Precision, sources: Sequence[ModelSource], data: DataFolder, *, is_usual: bool
) -> Runtime:
    """Return a runtime in a precision: the named one, or the usual one of those that have the precision."""
    registry, formats = Registry(data.path), shared_formats(sources)
    if named is None or (is_usual and not named.computes_in(precision)):
        named = registry.preferred_for(formats, AskedVariant(precision=precision)) or registry.runtime_for(formats)
    return named.with_precision(precision)


def unmeasurable_lines(graph: LayerGraph) -> Iterator[str]:
    """Yield the layers that cannot be measured, one line for each reason."""
    for reason, layers in unmeasurable_layers(graph).items():
        named = listed([f"{layer.index} {layer.name!r} ({layer.op})" for layer in layers])
        yield f"unmeasurable: {'layer' if len(layers) == 1 else 'layers'} {named}: {reason}"


def tree_document(decomposition: Decomposition) -> dict[str, Any]:
    """Return the layer sequences of a model as a JSON document."""
    graph, how = decomposition.graph, decomposition.cutting
    return {
        "model": graph.name,
        "level": graph.level,
        **attributes_of(how, "granularity", "cut", "order"),
        "layers": len(graph.layers),
        "unique_layers": len(decomposition.bricks),
        "contexts": len(decomposition.pairs),
        "inputs": {entry.name: entry.type.shape for entry in graph.inputs},
        "sequences": [_sequence(graph, occurrence) for occurrence in decomposition.occurrences],
        "edges": graph.edges,
    }


def _sequence(graph: LayerGraph, occurrence: Occurrence) -> dict[str, Any]:
    return {
        "index": occurrence.sequence.index,
        "brick": occurrence.brick.key,
        "context": occurrence.context,
        "layers": [_layer(graph.layers[index]) for index in occurrence.sequence.layers],
    }


def _layer(layer: Layer) -> dict[str, Any]:
    return {
        **attributes_of(layer, "index", "name", "op", "kind", "times"),
        "in_shapes": [it.shape for it in layer.data],
        "out_shapes": [it.shape for it in layer.outputs],
        "unmeasurable": layer.unmeasurable,
        "recorded": layer.is_recorded,
    }


def corpus_of(models: Sequence[DecomposedModel]) -> Corpus:
    """Return how much of these models is the same."""
    return corpus_of_bricks([model_bricks(it.decomposition) for it in models])


def speedup_here(
    models: Sequence[DecomposedModel], data: DataFolder, runtime: str | None, threads: int | None
) -> float | None:
    """Return the time of models on this host over that of their unique bricks; None if either is unmeasured."""
    # Loaded here: other commands about models need no estimates.
    from dlbricks_tui.api.estimating import estimates_here
    from dlbricks_tui.estimate.comparison import speedup

    found = estimates_here(data, runtime, threads, [it.decomposition for it in models])
    return speedup([estimate for estimate in found if estimate is not None])


def corpus_document(models: Sequence[DecomposedModel], corpus: Corpus, speedup: float | None) -> dict[str, Any]:
    """Return a comparison of models as a JSON document."""
    layers = [len(it.decomposition.graph.layers) for it in models]
    return {
        "layers": sum(layers),
        "sequences": corpus.layers,
        **attributes_of(corpus, "unique_layers", "contexts"),
        "models": [
            {
                "model": it.source.name,
                "table1_id": it.source.table1_id,
                "layers": count,
                "sequences": model.layers,
                **attributes_of(model, "unique_layers", "contexts", "share"),
            }
            for it, count, model in zip(models, layers, corpus.models, strict=True)
        ],
        **attributes_of(corpus, "jaccard", "repeated_types"),
        "speedup": speedup,
    }


def with_counts(source: ModelSource, loader: Loader) -> ModelSource:
    """Return a model with its layer counts, which the manifest has for the samples; raise UserError if unreadable."""
    graph = loader.load(source)
    return replace(
        source,
        layers=len(graph.layers),
        unique_layers=len(decompose(graph, cache=loader.cache).bricks),
        inputs={it.name: it.type.shape for it in graph.inputs if it.type.shape is not None},
    )


def add_to_library(path: Path, data: DataFolder) -> int:
    """Add a model file to the library, or make it look into one more folder; return the number of models."""
    if not path.is_file():
        return library(data).add_folder(path)
    loader_from_cache(data).refuse_no_model(source_of(path))
    library(data).add_model(path)
    return 1


def forget_inputs(name: str, data: DataFolder) -> Iterator[str]:
    """Forget the shapes and values that were given for the inputs of models, and yield a line about each."""
    memory = ShapeMemory(data.path)
    for source in library(data).find(name):
        given = " ".join(filter(None, map(spelled, (memory.recall_shapes(source), memory.recall_values(source)))))
        memory.forget(source)
        yield f"{source.name}: forgot {given}" if given else f"{source.name}: nothing was given for its inputs"


def model_document(source: ModelSource) -> dict[str, Any]:
    """Return a model of the library as a JSON document."""
    return {
        **attributes_of(source, "name", "path", "task", "table1_id", "layers", "unique_layers"),
        "formats": [form.value for form in source.formats],
        "inputs": dict(source.inputs),
    }
