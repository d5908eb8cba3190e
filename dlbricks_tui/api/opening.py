"""The data folder and the models that a call names, and the log that takes remarks on them."""

import os
from collections.abc import Mapping, Sequence
from logging import getLogger

from dlbricks_tui.answers.estimating import Remarks
from dlbricks_tui.answers.opening import library
from dlbricks_tui.folders import DataFolder, data_folder
from dlbricks_tui.models.errors import ModelError
from dlbricks_tui.models.graph import Numbers
from dlbricks_tui.models.input_shapes import spelled
from dlbricks_tui.models.library import ModelSource
from dlbricks_tui.wording.events import inputs_given_before

# A path, a name of the library, or `table1:ID`.
Model = str | os.PathLike[str]
log = getLogger("dlbricks_tui")


def folder_at(data: os.PathLike[str] | str | None) -> DataFolder:
    """Return the data folder at a path, or the user's own for None."""
    return data_folder(None if data is None else os.fspath(data))


def source_of(model: Model, folder: DataFolder) -> ModelSource:
    """Return the source of one model; raise ModelError if the name stands for several."""
    found = library(folder).find(os.fspath(model))
    if len(found) != 1:
        raise ModelError(f"{model} stands for {len(found)} models; name one, such as table1:14")
    return found[0]


def sources_of(models: Model | Sequence[Model], folder: DataFolder) -> tuple[ModelSource, ...]:
    """Return the sources of all models that one name or several stand for."""
    return library(folder).find_all(names_of(models))


def names_of(models: Model | Sequence[Model]) -> list[str]:
    """Return the names or paths of one model or several."""
    named = [models] if isinstance(models, str | os.PathLike) else models
    return [os.fspath(model) for model in named]


def log_inputs_used(source: ModelSource, given: Mapping[str, Numbers]) -> None:
    """Log that a model is loaded with input shapes that were given before."""
    log.info(inputs_given_before(source.name, spelled(given)))


REMARKS = Remarks(log.info, str, log_inputs_used)
