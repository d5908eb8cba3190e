"""Work of the workbench that takes time; its screen runs it in threads."""

from __future__ import annotations

import time
from collections import defaultdict
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from textual.worker import get_current_worker

from dlbricks_tui.errors import UserError
from dlbricks_tui.models.errors import (
    FusionRefusedError,
    MissingShapeError,
    ModelError,
    UnknownModelError,
    UnreadableModelError,
)
from dlbricks_tui.settings.cutting import CUTTING
from dlbricks_tui.settings.setting import fields_of
from dlbricks_tui.settings.variant import BATCH_SIZES, SYSTEM, THREADS_DOUBLED
from dlbricks_tui.tui.open_model import AskedShape
from dlbricks_tui.tui.workbench.estimate_rows import next_step
from dlbricks_tui.tui.workbench.model_columns import KnownLatency, known_latency

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from dlbricks_tui.answers.estimating import Answer, ModelReading
    from dlbricks_tui.bricks.decomposition import Decomposition
    from dlbricks_tui.documents.part_details import PartLatencies
    from dlbricks_tui.estimate.prediction.score import Score
    from dlbricks_tui.estimate.ranking import Ranking
    from dlbricks_tui.models.library import ModelSource
    from dlbricks_tui.tui.choices import Choices
    from dlbricks_tui.tui.model_reader import ModelReader
    from dlbricks_tui.tui.open_model import ModelSpec, OpenModel
    from dlbricks_tui.tui.session import Session
    from dlbricks_tui.tui.workbench.estimate_rows import EstimateView

# A user who holds a key in the settings starts one scan, not one per setting.
SETTLED_SECONDS = 0.15
# Yields the interpreter to the user interface during scans.
BREATH_SECONDS = 0.02
# While a run measures, scans compute for this share of the time, and never pause for longer.
SHARE_WHILE_MEASURING = 0.1
_LONGEST_PAUSE_SECONDS = 2.0
_SHOW_AS_WRITTEN = "Press {workbench.other_level} for layers as written."
_WITH_OTHER_BATCH = "{workbench.show_settings} goes to the settings: choose another batch there."


def pause_after(seconds: float, *, measuring: bool) -> None:
    """Pause a scan that has computed for so long; while a run measures, long enough not to disturb it."""
    wanted = seconds * (1.0 / SHARE_WHILE_MEASURING - 1.0) if measuring else 0.0
    time.sleep(min(max(BREATH_SECONDS, wanted), _LONGEST_PAUSE_SECONDS))


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
    # Loaded here, in a thread: the first screen appears without it.
    from dlbricks_tui.language.opening import library_models

    return Listing(reader.library.sources(), language_models=len(library_models()))


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


class Refusal(NamedTuple):
    """The reason why a model cannot be shown, what to do, and the inputs whose shapes would help, with examples."""

    reason: str
    # May name actions in place of keys.
    next_step: str = ""
    inputs: Mapping[str, AskedShape] = {}


def answer_for(session: Session, spec: ModelSpec, choices: Choices) -> Answer:
    """Return the answer of a model; the framework reads it if necessary. Raise UserError if it cannot be read."""
    return session.estimator.answer(
        spec.source, choices, lambda reading: session.reader.decompose_model(spec.read_as(reading))
    )


def read_model(session: Session, spec: ModelSpec, choices: Choices) -> OpenModel | Refusal:
    """Read a model as the runtime of its answer does, and decompose it."""
    try:
        return session.reader.open(spec.read_as(answer_for(session, spec, choices).reading))
    except MissingShapeError as error:
        # Examples that were not tried are guesses.
        known = error.examples if error.tried else spec.shapes
        asked = {name: AskedShape(known.get(name), example) for name, example in error.examples.items()}
        return Refusal(str(error), inputs=asked)
    except FusionRefusedError as error:
        return Refusal(str(error), _SHOW_AS_WRITTEN)
    except UserError as error:
        # No batch size makes a model of another file.
        is_cure = spec.batch_size is not None and not isinstance(error, UnreadableModelError | UnknownModelError)
        return Refusal(str(error), _WITH_OTHER_BATCH if is_cure else "")


class OpenModelEstimate(NamedTuple):
    """The answer of the open model, the latencies of its parts, and the model as the runtime of the answer reads it."""

    view: EstimateView
    latencies: PartLatencies
    opened: OpenModel


def estimate_model(
    session: Session, spec: ModelSpec, opened: OpenModel, choices: Choices, refresh: bool, own_models: int
) -> OpenModelEstimate:
    """Answer for the open model; `refresh` reads new results first. `own_models` counts those that the user added."""
    from dlbricks_tui.documents.part_details import PartLatencies

    if refresh:
        session.estimator.refresh()
    answer = answer_for(session, spec, choices)
    if answer.decomposition is not opened.decomposition:
        # Another runtime answers now, and reads the model in its own way.
        opened = session.reader.open(spec.read_as(answer.reading))
    view = session.estimator.explain(answer)
    known = session.estimator.known_about(opened.graph.name, choices)
    view = replace(view, step=next_step(known._replace(own_models=own_models)))
    return OpenModelEstimate(view, PartLatencies(opened.outline, view.document.one.estimate), opened)


def read_matrix(session: Session, spec: ModelSpec, choices: Choices) -> Iterator[Ranking]:
    """Compare a model in all combinations that were measured, at first without those that the matrix adds.

    Raise a UserError where that is not possible.
    """
    from dlbricks_tui.answers.combinations import CompareOptions, compare, to_be_read
    from dlbricks_tui.answers.estimating import Remarks
    from dlbricks_tui.runtime.registry import Registry
    from dlbricks_tui.store.database import ResultsDatabase

    worker = get_current_worker()
    silent = Remarks(lambda _: None, str, lambda *_: None)
    options = CompareOptions(
        **fields_of(choices, (*CUTTING, SYSTEM)), inputs=spec.shapes, measured_only=choices.measured_only
    )
    # A store of its own: reading models takes long, and other panels estimate meanwhile.
    with ResultsDatabase(session.data.store) as store:

        def compared(options: CompareOptions) -> Ranking:
            return compare(spec.source, options, session.data, store, silent, go_on=lambda: not worker.is_cancelled)

        known = compared(options)
        points = [it.point for it in known.combinations]
        threads = {it.threads for it in points if it.threads} | {choices.threads or 1, *THREADS_DOUBLED}
        is_open = any(it.threads is None and it.latency_ms is not None for it in points)
        here = [it for it in Registry(session.data.path).known() if it.traits.format in spec.source.formats]
        elsewhere = [it.found.way.runtime for it in points if it.found.is_measured]
        try:
            every = replace(
                options,
                runtime=(*[it.name for it in here], *elsewhere),
                # Numbers in place of one that is not known would hide its results.
                threads=() if is_open else tuple(sorted(threads)),
                batch=tuple(sorted({*BATCH_SIZES, *(it.batch_size for it in points)})),
            )
            # A comparison that is not wanted any more has none.
            yield to_be_read(known, here, every) if points else known
            yield compared(every)
        except UserError as refusal:
            yield replace(known, refusals=(*known.refusals, str(refusal)))


def read_scores(session: Session, specs: Sequence[ModelSpec], choices: Choices) -> tuple[Score, ...]:
    """Return how well the models of the library that were read before would have been predicted."""
    models = (session.reader.decompose_cached(spec) for spec in specs)
    return tuple(session.estimator.scores([model for model in models if model is not None], choices))


# The names of the models that contain each brick, in the order of the library.
BrickIndex = dict[str, dict[str, None]]


def index_bricks(reader: ModelReader, specs: Sequence[ModelSpec], *, measuring: bool = False) -> Iterator[BrickIndex]:
    """Index the bricks of the models whose tensor types are in the cache: they are read without a framework."""
    worker = get_current_worker()
    time.sleep(SETTLED_SECONDS)
    index: BrickIndex = defaultdict(dict)
    for spec in specs:
        if worker.is_cancelled:
            return
        began = time.monotonic()
        decomposition = reader.decompose_cached(spec)
        if decomposition is not None:
            for brick in decomposition.bricks:
                index[brick][decomposition.graph.name] = None
        pause_after(time.monotonic() - began, measuring=measuring)
    yield index


def estimate_library(
    session: Session, specs: Sequence[ModelSpec], choices: Choices, *, measuring: bool = False
) -> Iterator[tuple[ModelSource, KnownLatency | None]]:
    """Estimate the models whose tensor types are in the cache, so without a framework; cached estimates come first.

    While a run measures, the estimates of before stay: each of its results would change all of them.
    """
    cache = session.latencies
    time.sleep(SETTLED_SECONDS)
    cache.begin(session.estimator.state(), *session.reader.frameworks)
    unknown: list[ModelSpec] = []
    for spec in specs:
        latency = cache.of(spec, choices) or (cache.older(spec, choices) if measuring else None)
        if latency is None:
            unknown.append(spec)
        else:
            yield spec.source, latency
    for spec in unknown:
        began = time.monotonic()
        latency = None
        with suppress(UserError):
            answer = session.estimator.answer(spec.source, choices, partial(_read_cached, session, spec))
            latency = known_latency(answer.found)
            cache.keep(spec, choices, latency)
        yield spec.source, latency
        pause_after(time.monotonic() - began, measuring=measuring)
    if unknown:
        cache.save()


def _read_cached(session: Session, spec: ModelSpec, reading: ModelReading) -> Decomposition:
    found = session.reader.decompose_cached(spec.read_as(reading))
    if found is None:
        raise ModelError(f"{spec.source.name} is read by a framework, which takes too long for a list")
    return found
