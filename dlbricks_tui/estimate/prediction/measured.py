"""The results of one way of measuring, from which other bricks are predicted."""

import hashlib
from collections.abc import Collection
from statistics import fmean

import numpy as np
from tinydb import where

from dlbricks_tui import __version__
from dlbricks_tui.estimate.knowledge import Pair
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.records import ANY_CONTEXT
from dlbricks_tui.store.selections import LEAST_FIRST, Selection, Way, equal


def results_of(store: ResultsDatabase, way: Way, bricks: Collection[str] | None = None) -> Selection:
    """Return the good results of all bricks, or of some, that were measured in one way; the last one of each counts."""
    asked = equal(of="brick", good=True) & way.query
    if bricks is not None:
        asked &= where("brick").one_of(list(bricks))
    return store.select(asked, order=LEAST_FIRST)


def state_of(*selections: Selection) -> str:
    """Return a text that changes with the results, with the bricks whose forms are known, and with the version."""
    digest = hashlib.sha256(__version__.encode())
    for results in selections:
        index, rows = results.generation.index, results.rows
        names = np.frombuffer(index.name_of_brick, dtype=np.int32)[index.column("brick")[rows]]
        columns = [index.column(name)[rows] for name in ("uuid", "trimmed_mean_ms", "when")]
        for column in (np.array([len(rows)]), names > 0, *columns):
            digest.update(column.tobytes())
    return digest.hexdigest()


def latencies_ms(store: ResultsDatabase, way: Way, bricks: Collection[str] | None = None) -> dict[Pair, float]:
    """Return the newest latencies of all bricks, or of some, that were measured in one way, the oldest first.

    A method without contexts has several results of a brick, one for each occurrence: the mean of its newest run
    counts.
    """
    found = results_of(store, way, bricks)
    pairs = zip(found.values("brick"), found.values("context"), strict=True)
    taken_ms: dict[Pair, list[float]] = {}
    runs: dict[Pair, str] = {}
    for pair, run, latency_ms in zip(pairs, found.values("run"), found.values("trimmed_mean_ms"), strict=True):
        before = taken_ms.pop(pair, [])
        same_run = pair[1] == ANY_CONTEXT and runs.get(pair) == run
        taken_ms[pair] = [*before, latency_ms] if same_run else [latency_ms]
        runs[pair] = run
    return {pair: fmean(of_one) for pair, of_one in taken_ms.items()}
