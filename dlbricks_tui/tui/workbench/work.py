"""Work of the workbench that takes time: worker threads do it and post what they have found."""

from __future__ import annotations

import time
from collections import defaultdict
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from textual.message import Message
from textual.worker import get_current_worker

from dlbricks_tui.errors import UserError
from dlbricks_tui.models.errors import FusionRefusedError, MissingShapeError
from dlbricks_tui.tui.workbench.models import known_latency

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from dlbricks_tui.bricks.decomposition import Cutting, Decomposition
    from dlbricks_tui.estimate.knowledge import Pair
    from dlbricks_tui.estimate.system_estimate import Way
    from dlbricks_tui.models.graph import Level, Shape
    from dlbricks_tui.models.library import ModelSource
    from dlbricks_tui.tui.choices import Available, Choices
    from dlbricks_tui.tui.open_model import AskedShape, ModelSpec, OpenModel
    from dlbricks_tui.tui.session import Session
    from dlbricks_tui.tui.workbench.estimate_rows import EstimateView
    from dlbricks_tui.tui.workbench.models import KnownLatency
    from dlbricks_tui.tui.workbench.parts import Measurements, PartLatencies


class IndexKey(NamedTuple):
    """Bricks are comparable at the same level and cutting only."""

    level: Level
    cutting: Cutting


class BrickIndex:
    """The models that contain each brick."""

    def __init__(self, how: IndexKey) -> None:
        self.how = how
        self._models: defaultdict[str, dict[str, None]] = defaultdict(dict)

    def add(self, decomposition: Decomposition) -> None:
        for brick in decomposition.bricks:
            self._models[brick][decomposition.graph.name] = None

    def models_with(self, brick: str, but: Iterable[str] = ()) -> Sequence[str]:
        """Return the names of the other models that contain a brick."""
        left_out = set(but)
        return [name for name in self._models.get(brick, ()) if name not in left_out]


class LibraryListed(Message):
    """The models of the library."""

    def __init__(self, sources: tuple[ModelSource, ...]) -> None:
        super().__init__()
        self.sources = sources


class ModelAdded(Message):
    """A file was added to the library."""

    def __init__(self, source: ModelSource) -> None:
        super().__init__()
        self.source = source


class ModelRemoved(Message):
    """A model was removed from the library."""

    def __init__(self, source: ModelSource) -> None:
        super().__init__()
        self.source = source


class ModelOpened(Message):
    """A model was read and decomposed."""

    def __init__(self, opened: OpenModel) -> None:
        super().__init__()
        self.opened = opened


class ModelRefused(Message):
    """A model could not be read; `inputs` are those whose shapes would help, with examples.

    `next_step` says what to do; it may name actions in place of keys.
    """

    def __init__(
        self, spec: ModelSpec, reason: str, inputs: Mapping[str, Shape] | None = None, next_step: str = ""
    ) -> None:
        super().__init__()
        self.spec = spec
        self.reason = reason
        self.inputs = inputs or {}
        self.next_step = next_step


class ModelEstimated(Message):
    """The open model was estimated."""

    def __init__(self, opened: OpenModel, choices: Choices, view: EstimateView, latencies: PartLatencies) -> None:
        super().__init__()
        self.opened = opened
        self.choices = choices
        self.view = view
        self.latencies = latencies


class LatencyFound(Message):
    """A model of the library was estimated."""

    def __init__(self, source: ModelSource, choices: Choices, latency: KnownLatency) -> None:
        super().__init__()
        self.source = source
        self.choices = choices
        self.latency = latency


class BrickMeasured(Message):
    """The stored samples of a brick in a context."""

    def __init__(self, pair: Pair, measured: Measurements | None) -> None:
        super().__init__()
        self.pair = pair
        self.measured = measured


class BricksIndexed(Message):
    """The bricks of the library were indexed."""

    def __init__(self, index: BrickIndex) -> None:
        super().__init__()
        self.index = index


class ChoicesAvailable(Message):
    """The systems and runtimes to choose from."""

    def __init__(self, available: Available) -> None:
        super().__init__()
        self.available = available


# A user who holds a key in the settings starts one scan, not one per setting.
SETTLED_SECONDS = 0.15
# Yields the interpreter to the user interface during scans.
BREATH_SECONDS = 0.02
_SHOW_AS_WRITTEN = "Press {workbench.other_level} for layers as written."


class WorkbenchWork:
    """Reads and estimates models, and posts the outcome as messages to one screen."""

    def __init__(self, session: Session, post: Callable[[Message], object]) -> None:
        self._session = session
        self._post = post

    def list_models(self) -> None:
        """List all models of the library."""
        self._post(LibraryListed(self._session.reader.library.sources()))

    def add_folder(self, folder: Path) -> None:
        self._session.reader.library.add_folder(folder)
        self.list_models()

    def add_model(self, path: Path) -> None:
        source = self._session.reader.add_model(path)
        self.list_models()
        self._post(ModelAdded(source))

    def remove_model(self, source: ModelSource) -> None:
        """Remove a model from the library; its file stays."""
        self._session.reader.library.remove(source.path)
        self.list_models()
        self._post(ModelRemoved(source))

    def list_choices(self) -> None:
        """List the systems and runtimes of the store."""
        self._session.estimator.refresh()
        self._post(ChoicesAvailable(self._session.estimator.available()))

    def open(self, spec: ModelSpec) -> None:
        """Read and decompose a model."""
        try:
            self._post(ModelOpened(self._session.reader.open(spec)))
        except MissingShapeError as error:
            self._post(ModelRefused(spec, str(error), error.examples))
        except FusionRefusedError as error:
            self._post(ModelRefused(spec, str(error), next_step=_SHOW_AS_WRITTEN))
        except UserError as error:
            self._post(ModelRefused(spec, str(error)))

    def read_inputs(self, spec: ModelSpec) -> Mapping[str, AskedShape]:
        """Return the inputs of a model with what is known of their shapes."""
        return self._session.reader.inputs(spec)

    def estimate_model(self, opened: OpenModel, choices: Choices) -> None:
        """Estimate the open model."""
        from dlbricks_tui.tui.workbench.parts import PartLatencies

        view = self._session.estimator.explain(opened.decomposition, choices)
        self._post(ModelEstimated(opened, choices, view, PartLatencies(opened, view.system_estimate.estimate)))

    def read_measurements(self, pair: Pair, way: Way) -> None:
        """Read the samples of a brick."""
        self._post(BrickMeasured(pair, self._session.estimator.measurements(pair, way)))

    def index_bricks(self, specs: Iterable[ModelSpec], how: IndexKey) -> None:
        """Index the bricks of the models that need no framework to be read."""
        worker = get_current_worker()
        time.sleep(SETTLED_SECONDS)
        index = BrickIndex(how)
        for spec in specs:
            if worker.is_cancelled:
                return
            decomposition = self._session.reader.decompose_cached(spec)
            if decomposition is not None:
                index.add(decomposition)
            time.sleep(BREATH_SECONDS)
        self._post(BricksIndexed(index))

    def refresh_estimate(self, opened: OpenModel, choices: Choices) -> None:
        """Estimate the open model from the current results."""
        self._session.estimator.refresh()
        self.estimate_model(opened, choices)

    def estimate_library(self, specs: Iterable[ModelSpec], choices: Choices) -> None:
        """Estimate the models that need no framework to be read; cached estimates come first."""
        worker, kept = get_current_worker(), self._session.latencies
        time.sleep(SETTLED_SECONDS)
        kept.begin(self._session.estimator.state(), *self._session.reader.frameworks)
        unknown: list[ModelSpec] = []
        for spec in specs:
            latency = kept.of(spec, choices)
            if latency is None:
                unknown.append(spec)
            else:
                self._post_latency(spec, choices, latency)
        for spec in unknown:
            if worker.is_cancelled:
                return
            decomposition = self._session.reader.decompose_cached(spec)
            if decomposition is not None:
                latency = known_latency(self._session.estimator.estimate(decomposition, choices))
                kept.keep(spec, choices, latency)
                self._post_latency(spec, choices, latency)
            time.sleep(BREATH_SECONDS)
        if unknown:
            kept.save()

    def _post_latency(self, spec: ModelSpec, choices: Choices, latency: KnownLatency) -> None:
        if latency.sequential_ms is not None:
            self._post(LatencyFound(spec.source, choices, latency))


class LibraryScan:
    """Scans the library for estimates and bricks; one screen starts the threads and gets their messages."""

    def __init__(self, work: WorkbenchWork, run_in_thread: Callable[[Callable[[], None], str], None]) -> None:
        self._work = work
        self._ask = run_in_thread
        # Without results there is nothing to estimate.
        self.has_results = False
        # The index of bricks; None until it is complete.
        self.index: BrickIndex | None = None
        self._how: IndexKey | None = None

    def look_for_results(self, specs: Sequence[ModelSpec], choices: Choices) -> None:
        """Estimate the models, if there are any results."""
        if self.has_results:
            self._ask(partial(self._work.estimate_library, specs, choices), "library")

    def look_for_bricks(self, specs: Sequence[ModelSpec], choices: Choices) -> None:
        """Index the bricks of the models, unless the index is up to date."""
        how = IndexKey(choices.level, choices.cutting)
        if how != self._how:
            self.index, self._how = None, how
            self._ask(partial(self._work.index_bricks, specs, how), "index")

    def take(self, index: BrickIndex) -> None:
        """Keep an index, unless the settings have changed since."""
        if index.how == self._how:
            self.index = index

    def forget(self) -> None:
        """Drop the index: the library has changed."""
        self.index, self._how = None, None
