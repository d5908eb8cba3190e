"""The predictors of a store: trained from its results when they are needed first, and kept in the cache."""

import hashlib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from statistics import fmean

from dlbricks_tui import __version__
from dlbricks_tui.estimate.knowledge import Pair, Predictor, Unmeasured
from dlbricks_tui.estimate.prediction.nearest import NearestBricks
from dlbricks_tui.estimate.prediction.other_systems import with_others
from dlbricks_tui.estimate.prediction.prior import WithPrior, prior_of, speed_by
from dlbricks_tui.estimate.prediction.saved import Trained, read_trained, write_trained
from dlbricks_tui.estimate.prediction.training import Example, train
from dlbricks_tui.estimate.system_estimate import Way
from dlbricks_tui.runtime.traits import Traits
from dlbricks_tui.runtime.variant import USUAL_KERNELS, Precision, stated_kernels, stated_precision
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.errors import DamagedResultError
from dlbricks_tui.store.filters import equal
from dlbricks_tui.store.records import ANY_CONTEXT, BrickForm
from dlbricks_tui.store.selections import OLDEST_FIRST

_FOLDER = "predictions"


class Predictors:
    """The predictors of a store, one for each way of measuring."""

    def __init__(self, store: ResultsDatabase, cache: Path) -> None:
        self._store = store
        self._folder = cache / _FOLDER
        self._trained: dict[Way, tuple[str, Predictor]] = {}

    def of(self, way: Way, traits: Traits) -> Predictor:
        """Return the predictor of a way of measuring, which the framework with these traits has made possible."""
        state = repr((__version__, self._store.generation.covered))
        known = self._trained.get(way)
        if known is None or known[0] != state:
            known = self._trained[way] = state, self._predictor(way, traits.framework, state)
        return known[1]

    def _predictor(self, way: Way, framework: str, state: str) -> Predictor:
        # Priors were measured in the usual precision, with any kernels.
        is_usual = stated_precision(way.runtime) is Precision.F32 and stated_kernels(way.runtime) == USUAL_KERNELS
        prior = prior_of(framework, way.level) if is_usual else None
        name = hashlib.sha256(repr((*way[:2], way.level.value, way.protocol)).encode()).hexdigest()[:32]
        path = self._folder / f"{name}.npz"
        trained = read_trained(path, state)
        if trained is None:
            trained = _trained(examples_of(self._store, way), prior)
            with suppress(OSError):
                write_trained(path, trained, state)
        usual = trained.own if prior is None else WithPrior(trained.own, prior, trained.speed)
        return with_others(self._store, way, usual)


def _trained(examples: Iterable[Example], prior: NearestBricks | None) -> Trained:
    measured = list(examples)
    pairs = [(Unmeasured(each.canonical, each.context), each.latency_ms) for each in measured]
    return Trained(train(measured), speed_by(prior, pairs))


def examples_of(store: ResultsDatabase, way: Way) -> Iterator[Example]:
    """Yield each brick in each context that was measured in one way, by its newest good result, oldest first.

    A method without contexts has several results of a brick, one for each occurrence: their mean counts.
    """
    forms = {form.key: form.canonical for form in store.records(BrickForm)}
    asked = equal(of="brick", good=True, system=way.system, runtime=way.runtime, protocol=way.protocol)
    found = store.select(asked & equal(level=way.level.value), order=OLDEST_FIRST)
    latencies_ms, runs = found.values("trimmed_mean_ms"), found.values("run")
    results: dict[Pair, list[int]] = {}
    begins: dict[str, int] = {}
    since: dict[Pair, int] = {}
    pairs = zip(found.values("brick"), found.values("context"), strict=True)
    for place, (pair, when) in enumerate(zip(pairs, found.numbers("when").tolist(), strict=True)):
        since.setdefault(pair, begins.setdefault(runs[place], when))
        before = results.pop(pair, [])
        same_run = pair[1] == ANY_CONTEXT and before and runs[before[-1]] == runs[place]
        results[pair] = [*before, place] if same_run else [place]
    for (brick, context), places in results.items():
        with suppress(DamagedResultError):
            document = found.generation.document(int(found.rows[places[0]]))
            # A run measures bricks for its models. Some methods also note the model.
            group = document["occurrence"].get("model") or runs[places[0]]
            if brick in forms:
                latency_ms = fmean(latencies_ms[place] for place in places)
                yield Example(brick, context, forms[brick], latency_ms, str(group), since[brick, context])
