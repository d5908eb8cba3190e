"""The predictors of a store. The modules that predict load when a brick lacks a measurement, not before."""

from pathlib import Path

from dlbricks_tui.estimate.knowledge import Predictor
from dlbricks_tui.estimate.system_estimate import Way
from dlbricks_tui.runtime.traits import Traits
from dlbricks_tui.store.database import ResultsDatabase

_FOLDER = "predictions"


class Predictors:
    """The predictors of a store, one for each way of measuring: trained when they are needed first, and then cached."""

    def __init__(self, store: ResultsDatabase, cache: Path) -> None:
        self._store = store
        self._folder = cache / _FOLDER
        self._known: dict[Way, tuple[dict[str, int], Predictor]] = {}

    def of(self, way: Way, traits: Traits) -> Predictor:
        """Return the predictor of a way of measuring, which the framework with these traits has made possible."""
        from dlbricks_tui.estimate.prediction.stored import predictor_of

        covered = self._store.generation.covered
        known = self._known.get(way)
        if known is None or known[0] != covered:
            known = self._known[way] = covered, predictor_of(self._store, self._folder, way, traits.framework)
        return known[1]
