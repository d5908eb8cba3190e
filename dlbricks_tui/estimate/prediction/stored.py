"""The predictor of a way of measuring: trained from the results of a store, and kept in a file."""

import hashlib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from statistics import fmean

from tinydb import where

from dlbricks_tui.estimate.knowledge import Pair, Predictor, Unmeasured
from dlbricks_tui.estimate.prediction.measured import results_of, state_of
from dlbricks_tui.estimate.prediction.nearest import NearestBricks
from dlbricks_tui.estimate.prediction.other_systems import with_others
from dlbricks_tui.estimate.prediction.saved import Trained, WithPrior, prior_of, read_trained, speed_by, write_trained
from dlbricks_tui.estimate.prediction.training import Example, train
from dlbricks_tui.runtime.variant import USUAL_KERNELS, Precision, stated_kernels, stated_precision
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.errors import DamagedResultError
from dlbricks_tui.store.records import ANY_CONTEXT, BrickForm
from dlbricks_tui.store.selections import Selection, Way


def predictor_of(store: ResultsDatabase, folder: Path, way: Way, framework: str) -> Predictor:
    """Return the predictor of a way of measuring: the one in the folder, unless results have changed since."""
    # Priors were measured in the usual precision, with any kernels.
    is_usual = stated_precision(way.runtime) is Precision.F32 and stated_kernels(way.runtime) == USUAL_KERNELS
    prior = prior_of(framework, way.level) if is_usual else None
    name = hashlib.sha256(repr((*way[:2], way.level.value, way.protocol)).encode()).hexdigest()[:32]
    path, results = folder / f"{name}.npz", results_of(store, way)
    state = state_of(results)
    trained = read_trained(path, state)
    if trained is None:
        trained = _trained(_examples(store, results), prior)
        with suppress(OSError):
            write_trained(path, trained, state)
    usual = trained.own if prior is None else WithPrior(trained.own, prior, trained.speed)
    return with_others(store, way, usual, path.with_suffix(".json"))


def _trained(examples: Iterable[Example], prior: NearestBricks | None) -> Trained:
    measured = list(examples)
    pairs = [(Unmeasured(each.canonical, each.context), each.latency_ms) for each in measured]
    return Trained(train(measured), speed_by(prior, pairs))


def examples_of(store: ResultsDatabase, way: Way) -> Iterator[Example]:
    """Yield each brick in each context that was measured in one way, by its newest good result, oldest first.

    A method without contexts has several results of a brick, one for each occurrence: their mean counts.
    """
    return _examples(store, results_of(store, way))


def _examples(store: ResultsDatabase, found: Selection) -> Iterator[Example]:
    bricks = where("key").one_of(list(found.distinct("brick")))
    forms = {form.key: form.canonical for form in store.records(BrickForm, bricks)}
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
