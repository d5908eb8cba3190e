"""Work of the workbench that takes time; its screen runs it in threads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from textual.worker import get_current_worker

from dlbricks_tui.errors import UserError
from dlbricks_tui.tui.workbench.estimate import EstimateView, next_step

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from dlbricks_tui.api.model_reading import ModelReader, Refusal
    from dlbricks_tui.api.open_models import Choices, ModelSpec
    from dlbricks_tui.api.session import WorkbenchSession
    from dlbricks_tui.bricks.decomposition import Decomposition
    from dlbricks_tui.documents.outline import Outline
    from dlbricks_tui.documents.part_details import PartLatencies
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
    """The models of the library, one to open that was just added, and why a change was refused."""

    sources: tuple[ModelSource, ...]
    added: ModelSource | None
    refusal: UserError | None
    # The number of language models that another screen shows.
    language_models: int


def change_library(reader: ModelReader, change: Callable[[ModelReader], ModelSource | None]) -> Listing:
    """Change the library, and list its models, even if the change is refused."""
    added, refusal = None, None
    try:
        added = change(reader)
    except UserError as error:
        refusal = error
    return Listing(reader.library.sources(), added, refusal, reader.language_models())


def add_path(reader: ModelReader, path: Path) -> ModelSource | None:
    """Add a file or a folder to the library; return the model in the file."""
    if not path.is_dir():
        return reader.add_model(path)
    reader.library.add_folder(path)
    return None


def read_model(session: WorkbenchSession, spec: ModelSpec, choices: Choices) -> OpenModel | Refusal:
    """Read a model as the runtime of its answer does, and divide it into regions."""
    from dlbricks_tui.api.model_reading import Refusal
    from dlbricks_tui.documents.outline import Outline

    found = session.read(spec, choices)
    return found if isinstance(found, Refusal) else OpenModel(spec, Outline(found))


class OpenModelEstimate(NamedTuple):
    """The answer of the open model, the latencies of its parts, and the model as the runtime of the answer reads it."""

    view: EstimateView
    latencies: PartLatencies
    opened: OpenModel


def estimate_model(
    session: WorkbenchSession, spec: ModelSpec, opened: OpenModel, choices: Choices, refresh: bool, own_models: int
) -> OpenModelEstimate:
    """Answer for the open model; `refresh` reads new results first. `own_models` counts those that the user added."""
    from dlbricks_tui.documents.estimate import EstimateDocument
    from dlbricks_tui.documents.outline import Outline
    from dlbricks_tui.documents.part_details import PartLatencies

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
