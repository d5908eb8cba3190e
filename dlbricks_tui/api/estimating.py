"""The functions of the public API that answer from stored results and read models."""

import os
from collections.abc import Callable, Mapping, Sequence
from logging import getLogger

from dlbricks_tui.answers.comparisons.combinations import CompareOptions
from dlbricks_tui.answers.comparisons.combinations import compare as ranking_of
from dlbricks_tui.answers.estimating import Remarks, open_estimator
from dlbricks_tui.answers.language.asking import measure as measure_models
from dlbricks_tui.answers.language.asking import stored_answers
from dlbricks_tui.answers.language.results import LanguageAnswer, LanguageOptions
from dlbricks_tui.answers.opening import inputs_used_line, library, model_named, open_loader
from dlbricks_tui.answers.results import Comparison, ModelEstimate, comparison, model_estimate
from dlbricks_tui.answers.scope import EstimateOptions
from dlbricks_tui.folders import DataFolder, data_folder
from dlbricks_tui.host.fingerprint import fingerprint
from dlbricks_tui.jobs.events import Event
from dlbricks_tui.language.opening import open_language_model
from dlbricks_tui.models.errors import ModelError
from dlbricks_tui.models.graph import LayerGraph, Level, Numbers, Shape
from dlbricks_tui.models.library import ModelSource
from dlbricks_tui.settings.variant import BATCH
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.wording.jobs import language_line

# A path, a name of the library, or `table1:ID`.
Model = str | os.PathLike[str]
log = getLogger("dlbricks_tui")


def folder_at(data: os.PathLike[str] | str | None) -> DataFolder:
    """Return the data folder at a path, or the user's own for None."""
    return data_folder(None if data is None else os.fspath(data))


def sources_of(models: Model | Sequence[Model], folder: DataFolder) -> tuple[ModelSource, ...]:
    """Return the sources of all models that one name or several stand for."""
    return library(folder).find_all(names_of(models))


def names_of(models: Model | Sequence[Model]) -> list[str]:
    """Return the names or paths of one model or several."""
    named = [models] if isinstance(models, str | os.PathLike) else models
    return [os.fspath(model) for model in named]


def log_inputs_used(source: ModelSource, given: Mapping[str, Numbers]) -> None:
    """Log that a model is loaded with input shapes that were given before."""
    log.info(inputs_used_line(source, given))


REMARKS = Remarks(log.info, str, log_inputs_used)


def load(
    model: Model,
    *,
    level: Level = Level.WRITTEN,
    inputs: Mapping[str, Shape] | None = None,
    values: Mapping[str, Numbers] | None = None,
    batch: int | None = None,
    data: os.PathLike[str] | str | None = None,
) -> LayerGraph:
    """Return the layer graph of a model.

    `inputs` are shapes by input name, for models whose files do not say them. `values` are the numbers in inputs that
    are settings, such as a sampling rate. `batch` is the number of images, sentences or rows in an inference, that of
    the file by default. `data` is a data folder, the user's own by default.
    """
    folder = folder_at(data)
    if batch is not None:
        BATCH.require(batch, ModelError)
    with open_loader(folder, log_inputs_used, most_bytes=fingerprint().memory_bytes) as loader:
        return loader.load(model_named(os.fspath(model), folder), level, inputs, values, batch)


def estimate(
    model: Model, options: EstimateOptions | None = None, *, data: os.PathLike[str] | str | None = None
) -> ModelEstimate:
    """Return a model's latency composed of stored results of its bricks; nothing is measured."""
    folder, options = folder_at(data), options or EstimateOptions()
    source = model_named(os.fspath(model), folder)
    with open_estimator(options, folder, REMARKS) as estimator:
        scope = estimator.scope_of([source])
        (found,) = estimator.answers([source], scope)
        return model_estimate(found.decomposition, found.found)


def compare(
    model: Model, options: CompareOptions | None = None, *, data: os.PathLike[str] | str | None = None
) -> Comparison:
    """Return what the store knows of a model by runtime, threads, batch size and precision, the best first."""
    folder = folder_at(data)
    source = model_named(os.fspath(model), folder)
    with ResultsDatabase(folder.store) as store:
        found = ranking_of(source, options or CompareOptions(), folder, store, REMARKS, named=os.fspath(model))
    return comparison(found)


def language(
    models: Model | Sequence[Model],
    options: LanguageOptions | None = None,
    *,
    measure: bool = True,
    end_to_end: bool = False,
    progress: Callable[[str], None] | None = None,
    data: os.PathLike[str] | str | None = None,
) -> tuple[LanguageAnswer, ...]:
    """Return how fast language models are on this host, and whether they fit: an answer for each in each variant.

    A model is a name that `dlbricks llm --list` shows, or the path of a config.json, a GGUF file, or a folder with
    either. What the store lacks is measured in a process of its own, or predicted if `measure` is false. `end_to_end`
    times the whole model as well, where it fits. `progress` is called with a line when something begins, ends or fails.
    An exception, such as KeyboardInterrupt, ends the measurement and its processes.
    """
    folder, options = folder_at(data), options or LanguageOptions()
    named = [open_language_model(it) for it in names_of(models)]
    for it in named:
        options.require_context(it.name, it.architecture.positions)
    if not measure:
        return stored_answers(named, options, folder)

    def take(event: Event) -> None:
        if progress is not None and (line := language_line(event)):
            progress(line)

    return measure_models(named, options, folder, take, end_to_end=end_to_end)
