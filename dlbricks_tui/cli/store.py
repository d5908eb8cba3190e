"""The user's store and models as commands open them: damage and models left out are narrated."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from dlbricks_tui.cli.output import narrate, narrate_once, worded
from dlbricks_tui.wording.numbers import counted

if TYPE_CHECKING:
    from dlbricks_tui.answers.estimating import Estimator, Remarks
    from dlbricks_tui.answers.opening import LoadedModel
    from dlbricks_tui.answers.scope import EstimateOptions
    from dlbricks_tui.folders import DataFolder
    from dlbricks_tui.models.graph import Level, Numbers, Shape
    from dlbricks_tui.models.library import ModelSource
    from dlbricks_tui.models.loading import Loader
    from dlbricks_tui.runtime.runtime import Runtime
    from dlbricks_tui.store.database import ResultsDatabase


@contextmanager
def open_store(data: DataFolder) -> Iterator[ResultsDatabase]:
    """Open the store, and narrate its damage at the end."""
    from dlbricks_tui.store.database import ResultsDatabase

    with ResultsDatabase(data.store) as store:
        yield store
        narrate_state(store)


@contextmanager
def open_estimator(options: EstimateOptions, data: DataFolder) -> Iterator[Estimator]:
    """Open the store to estimate models, and narrate its damage at the end."""
    from dlbricks_tui.answers import estimating

    with estimating.open_estimator(options, data, narrated_remarks()) as estimator:
        yield estimator
        narrate_state(estimator.store)


def narrated_remarks() -> Remarks:
    """Return remarks on estimates that are narrated."""
    from dlbricks_tui.answers.estimating import Remarks

    return Remarks(narrate, worded, _narrate_inputs)


@contextmanager
def open_loader(data: DataFolder, runtime: Runtime | None = None) -> Iterator[Loader]:
    """Open a loader of models, and narrate which inputs are as given before."""
    from dlbricks_tui.answers import opening

    with opening.open_loader(data, _narrate_inputs, *([] if runtime is None else [runtime]), tell=narrate) as loader:
        yield loader


def load_all(
    loader: Loader,
    sources: Sequence[ModelSource],
    level: Level,
    shapes: Mapping[str, Shape],
    values: Mapping[str, Numbers],
) -> tuple[LoadedModel, ...]:
    """Load several models, and narrate which are left out; raise the first refusal where none can be loaded."""
    from dlbricks_tui.answers import opening

    loaded = opening.load_all(sources, lambda source: loader.load(source, level, shapes, values), worded)
    for line in loaded.left_out:
        narrate(f"left out: {line}")
    return loaded.models


def narrate_state(store: ResultsDatabase) -> None:
    """Narrate the damaged lines of a store, and dates in the future, if there are any."""
    if dates := store.from_the_future:
        narrate(
            f"{counted(len(dates), 'record')} of the store have a date in the future, up to {max(dates)[:10]}: a clock "
            "was ahead, or that of this host is behind. They count as older than those stored after them; "
            "`dlbricks results verify --correct-dates` corrects the dates"
        )
    if damage := store.damage:
        verb, first = ("is", ":") if len(damage) == 1 else ("are", ", the first of which is")
        narrate(
            f"{counted(len(damage), 'damaged line')} of the store {verb} set aside{first} {damage[0]}; "
            "`dlbricks results verify` reads everything"
        )


def _narrate_inputs(source: ModelSource, given: Mapping[str, Numbers]) -> None:
    from dlbricks_tui.models.input_shapes import spelled
    from dlbricks_tui.wording.events import inputs_given_before

    narrate_once(f"{inputs_given_before(source.name, spelled(given))}; --input or --value gives others")
