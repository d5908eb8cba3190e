"""Work of the workbench that takes time; its screen runs it in threads."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from textual.worker import get_current_worker

from dlbricks_tui.errors import UserError
from dlbricks_tui.tui.workbench.estimate_rows import EstimateView, next_step

if TYPE_CHECKING:
    from dlbricks_tui.answers.choices import Choices
    from dlbricks_tui.answers.model_reading import ModelReader, Refusal
    from dlbricks_tui.answers.open_models import ModelSpec
    from dlbricks_tui.answers.session import Session
    from dlbricks_tui.bricks.decomposition import Decomposition
    from dlbricks_tui.documents.outline import Outline
    from dlbricks_tui.documents.part_latencies import PartLatencies
    from dlbricks_tui.models.graph import LayerGraph
    from dlbricks_tui.models.library import ModelSource


def is_wanted() -> bool:
    """Return whether the result of the work in this thread is still wanted."""
    return not get_current_worker().is_cancelled


@dataclass(frozen=True, slots=True, eq=False)
class OpenModel:
    """A model that has been read, cut and divided into regions."""

    spec: ModelSpec
    outline: Outline

    @property
    def decomposition(self) -> Decomposition:
        return self.outline.decomposition

    @property
    def graph(self) -> LayerGraph:
        return self.outline.decomposition.graph


class Listing(NamedTuple):
    """The models of the library, the one that was just added or removed, and the reason why one was not added."""

    sources: tuple[ModelSource, ...]
    # To be opened.
    added: ModelSource | None = None
    removed: ModelSource | None = None
    refusal: UserError | None = None
    # The number of language models that another screen shows.
    language_models: int = 0


def list_models(reader: ModelReader) -> Listing:
    return Listing(reader.library.sources(), language_models=reader.language_models())


def add_path(reader: ModelReader, path: Path) -> Listing:
    """Add a file or a folder to the library."""
    if path.is_dir():
        reader.library.add_folder(path)
        return list_models(reader)
    added = reader.add_model(path)
    return list_models(reader)._replace(added=added)


def open_first(reader: ModelReader, model: ModelSource | Path) -> Listing:
    """Open a model, or add a file or a folder, at the start; the models are listed even if it is refused."""
    try:
        return add_path(reader, model) if isinstance(model, Path) else list_models(reader)._replace(added=model)
    except UserError as error:
        return list_models(reader)._replace(refusal=error)


def remove_model(reader: ModelReader, source: ModelSource) -> Listing:
    """Remove a model from the library; its file stays."""
    reader.library.remove(source.path)
    return list_models(reader)._replace(removed=source)


def read_model(session: Session, spec: ModelSpec, choices: Choices) -> OpenModel | Refusal:
    """Read a model as the runtime of its answer does, and divide it into regions."""
    from dlbricks_tui.answers.model_reading import Refusal
    from dlbricks_tui.documents.outline import Outline

    found = session.read(spec, choices)
    return found if isinstance(found, Refusal) else OpenModel(spec, Outline(found))


class OpenModelEstimate(NamedTuple):
    """The answer of the open model, the latencies of its parts, and the model as the runtime of the answer reads it."""

    view: EstimateView
    latencies: PartLatencies
    opened: OpenModel


def estimate_model(
    session: Session, spec: ModelSpec, opened: OpenModel, choices: Choices, refresh: bool, own_models: int
) -> OpenModelEstimate:
    """Answer for the open model; `refresh` reads new results first. `own_models` counts those that the user added."""
    from dlbricks_tui.documents.estimate import EstimateDocument
    from dlbricks_tui.documents.outline import Outline
    from dlbricks_tui.documents.part_latencies import PartLatencies

    estimator = session.estimator
    if refresh:
        estimator.refresh()
    answer = session.answer(spec, choices)
    if answer.decomposition is not opened.decomposition:
        # Another runtime answers now, and reads the model in its own way.
        opened = OpenModel(spec, Outline(session.reader.open(spec.read_as(answer.reading))))
    document = EstimateDocument(answer.decomposition.graph, answer.found, answer.is_chosen, answer.fastest)
    document.prepare()
    known = estimator.known_about(opened.graph.name, choices)._replace(own_models=own_models)
    view = EstimateView(document, estimator.other_systems(answer), next_step(known))
    return OpenModelEstimate(view, PartLatencies(opened.outline, document.one.estimate), opened)
