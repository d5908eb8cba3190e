"""Models, and what the store knows of them: their layers, estimates and comparisons; nothing is measured."""

import os
from collections.abc import Mapping

from dlbricks_tui.answers.comparisons.combinations import CompareOptions
from dlbricks_tui.answers.comparisons.combinations import compare as ranking_of
from dlbricks_tui.answers.estimating import open_estimator
from dlbricks_tui.answers.opening import open_loader
from dlbricks_tui.answers.results import Comparison, ModelEstimate, comparison, model_estimate
from dlbricks_tui.answers.scope import EstimateOptions
from dlbricks_tui.api.opening import REMARKS, Model, folder_at, log_inputs_used, source_of
from dlbricks_tui.host.fingerprint import fingerprint
from dlbricks_tui.models.errors import ModelError
from dlbricks_tui.models.graph import LayerGraph, Level, Numbers, Shape
from dlbricks_tui.settings.variant import BATCH
from dlbricks_tui.store.database import ResultsDatabase


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
        return loader.load(source_of(model, folder), level, inputs, values, batch)


def estimate(
    model: Model, options: EstimateOptions | None = None, *, data: os.PathLike[str] | str | None = None
) -> ModelEstimate:
    """Return a model's latency composed of stored results of its bricks; nothing is measured."""
    folder, options = folder_at(data), options or EstimateOptions()
    source = source_of(model, folder)
    with open_estimator(options, folder, REMARKS) as estimator:
        scope = estimator.scope_of([source])
        (found,) = estimator.answers([source], scope)
        return model_estimate(found.decomposition, found.found)


def compare(
    model: Model, options: CompareOptions | None = None, *, data: os.PathLike[str] | str | None = None
) -> Comparison:
    """Return what the store knows of a model by runtime, threads, batch size and precision, the best first."""
    folder = folder_at(data)
    source = source_of(model, folder)
    with ResultsDatabase(folder.store) as store:
        found = ranking_of(source, options or CompareOptions(), folder, store, REMARKS, named=os.fspath(model))
    return comparison(found)
