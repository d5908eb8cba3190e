"""Compares the two marked rows; the screen does so in a thread."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from dlbricks_tui.answers.pairs.compared import Kind, NotComparableError
from dlbricks_tui.answers.pairs.estimates import EstimatedSide, compare_estimates
from dlbricks_tui.errors import UserError
from dlbricks_tui.models.library import ModelSource
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.filters import equal
from dlbricks_tui.tui.keys.keymap import key
from dlbricks_tui.tui.workbench.work import answer_for

if TYPE_CHECKING:
    from collections.abc import Callable

    from dlbricks_tui.answers.pairs.compared import ComparedTwo
    from dlbricks_tui.answers.pairs.naming import NamedSide
    from dlbricks_tui.tui.choices import Choices
    from dlbricks_tui.tui.marks.marks import ComparableRow
    from dlbricks_tui.tui.open_model import ModelSpec
    from dlbricks_tui.tui.session import Session


class Settings(NamedTuple):
    """The settings of the estimate, and how a model is read under them."""

    choices: Choices
    spec_of: Callable[[ModelSource], ModelSpec]


def compare_rows(
    session: Session, first: ComparableRow, second: ComparableRow, settings: Settings
) -> ComparedTwo | str:
    """Compare two rows; return the reason where that is not possible."""
    try:
        if first.kind in (Kind.MODEL, Kind.VARIANT):
            sides = [_estimated(session, row, settings) for row in (first, second)]
            cure = f"{key('workbench.start_run')} on the workbench measures it"
            return compare_estimates(first.kind, sides[0], sides[1], cure=cure)
        # Loaded here: most comparisons are of models. The store is opened a second time, as reading many results takes
        # long and other panels need the shared one meanwhile.
        from dlbricks_tui.answers.pairs.naming import compare_named

        with ResultsDatabase(session.data.store) as store:
            return compare_named(store, *(_named(store, row) for row in (first, second)))
    except UserError as error:
        return str(error)


def _estimated(session: Session, row: ComparableRow, settings: Settings) -> EstimatedSide:
    if isinstance(row.subject, EstimatedSide):
        return row.subject
    if not isinstance(row.subject, ModelSource):
        raise NotComparableError(f"{row.name} is no model")
    answer = answer_for(session, settings.spec_of(row.subject), settings.choices)
    return EstimatedSide(row.name, answer.found, session.estimator.samples_ms(answer))


def _named(store: ResultsDatabase, row: ComparableRow) -> NamedSide:
    from dlbricks_tui.answers.comparisons.selecting import NamedSelection
    from dlbricks_tui.answers.pairs.naming import NamedSide, result_side

    identity = str(row.subject)
    if row.kind is Kind.RESULT:
        return result_side(store, identity)
    query = equal(system=identity) if row.kind is Kind.SYSTEM else equal(run=identity)
    found = store.results(query)
    if not found:
        raise NotComparableError(f"{row.kind.value} {row.name} has no results of its own: nothing was measured in it")
    return NamedSide(row.kind, NamedSelection(row.name, found))
