"""The layer sequences of models, and how much of one model, or of several, is the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from dlbricks_tui.api.opening import library, load_all, loader_from_cache
from dlbricks_tui.bricks.decomposition import (
    Corpus,
    Cutting,
    Decomposition,
    Occurrence,
    compare,
    decompose,
    model_bricks,
)
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.models.graph import Layer, LayerGraph, Level, unmeasurable_layers
from dlbricks_tui.models.input_shapes import ShapeMemory, listed, spelled
from dlbricks_tui.models.library import ModelSource, shared_formats, source_of
from dlbricks_tui.models.loading import Loader
from dlbricks_tui.runtime.registry import Registry
from dlbricks_tui.runtime.runtime import Runtime
from dlbricks_tui.runtime.variant import Precision


class ModelCut(NamedTuple):
    """A model and its layer sequences."""

    source: ModelSource
    decomposition: Decomposition


def cut_all(
    loader: Loader,
    sources: Sequence[ModelSource],
    level: Level,
    cutting: Cutting,
    inputs: Mapping[str, Any],
    tell: Callable[[str], None],
) -> list[ModelCut]:
    """Return models cut into layer sequences; `inputs` are the fields of InputOptions.

    Models that cannot be loaded are left out, with a remark; where none can, the first refusal is raised.
    """
    loaded = load_all(
        sources, lambda it: loader.load(it, level, inputs["inputs"], inputs["values"]), lambda error: error.in_command
    )
    for line in loaded.left_out:
        tell(f"left out: {line}")
    return [ModelCut(source, decompose(graph, cutting, loader.cache)) for source, graph in loaded.models]


def cut_model(
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
        named = registry.preferred_for(formats, precision) or registry.runtime_for(formats)
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
        "level": graph.level.value,
        "granularity": how.granularity,
        "cut": how.cut.value,
        "order": how.order.value,
        "layers": len(graph.layers),
        "unique_layers": len(decomposition.bricks),
        "contexts": len(decomposition.suite),
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
        "index": layer.index,
        "name": layer.name,
        "op": layer.op,
        "kind": layer.kind.value,
        "times": layer.times,
        "in_shapes": [it.shape for it in layer.data],
        "out_shapes": [it.shape for it in layer.outputs],
        "unmeasurable": layer.unmeasurable,
        "recorded": layer.is_recorded,
    }


def corpus_of(models: Sequence[ModelCut]) -> Corpus:
    """Return how much of these models is the same."""
    return compare([model_bricks(it.decomposition) for it in models])


def speedup_here(
    models: Sequence[ModelCut], data: DataFolder, runtime: str | None, threads: int | None
) -> float | None:
    """Return the time of models on this host over that of their unique bricks; None if either is unmeasured."""
    if not data.store.exists():
        return None
    # Loaded here: models are compared without a store, too.
    from dlbricks_tui.api.estimating import estimates_here
    from dlbricks_tui.estimate.comparison import speedup

    found = estimates_here(data, runtime, threads, [it.decomposition for it in models])
    return speedup([estimate for estimate in found if estimate is not None])


def corpus_document(models: Sequence[ModelCut], corpus: Corpus, speedup: float | None) -> dict[str, Any]:
    """Return a comparison of models as a JSON document."""
    layers = [len(it.decomposition.graph.layers) for it in models]
    return {
        "layers": sum(layers),
        "sequences": corpus.layers,
        "unique_layers": corpus.unique_layers,
        "contexts": corpus.contexts,
        "models": [
            {
                "model": it.source.name,
                "table1_id": it.source.table1_id,
                "layers": count,
                "sequences": model.layers,
                "unique_layers": model.unique_layers,
                "contexts": model.contexts,
                "share": model.share,
            }
            for it, count, model in zip(models, layers, corpus.models, strict=True)
        ],
        "jaccard": corpus.jaccard,
        "repeated_types": corpus.repeated_types,
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
        "name": source.name,
        "path": source.path,
        "task": source.task,
        "table1_id": source.table1_id,
        "layers": source.layers,
        "unique_layers": source.unique_layers,
        "formats": [form.value for form in source.formats],
        "inputs": dict(source.inputs),
    }
