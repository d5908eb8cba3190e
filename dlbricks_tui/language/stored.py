"""Stored results of the bricks of language models."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from dlbricks_tui.store.columns import Summary
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.filters import equal
from dlbricks_tui.store.index import SHARED_COLUMN
from dlbricks_tui.store.selections import OLDEST_FIRST

# The id of the method under which bricks of language models are stored.
PROTOCOL = "decoder-1"


@dataclass(frozen=True, slots=True)
class BrickTime:
    """The latency of a brick, and half of its 95 % interval: by itself, and in common with bricks of its rounds."""

    ms: float
    half_ms: float
    shared_half_ms: float
    # Of the measurement; empty for a prediction.
    when: str = ""

    @property
    def is_predicted(self) -> bool:
        return not self.when


def known_bricks(
    store: ResultsDatabase, system: str, runtime: str, keys: Collection[str] | None = None
) -> Mapping[str, BrickTime]:
    """Return the newest results of these bricks, or of all bricks of language models, by key."""
    query = equal(system=system, runtime=runtime, protocol=PROTOCOL, good=True)
    found = store.select(query, order=OLDEST_FIRST)
    shares = found.numbers(SHARED_COLUMN)
    wanted = None if keys is None else frozenset(keys)
    # The results of the newest run, one for each place of the brick.
    newest: dict[str, tuple[str, list[tuple[Summary, float]]]] = {}
    for summary, share in zip(found, shares, strict=True):
        if wanted is not None and summary.brick not in wanted:
            continue
        run, places = newest.get(summary.brick, ("", []))
        if run != summary.run:
            places = []
        places.append((summary, float(share)))
        newest[summary.brick] = summary.run, places
    return {brick: _time_of(places) for brick, (_, places) in newest.items()}


def _time_of(places: list[tuple[Summary, float]]) -> BrickTime:
    count = len(places)
    ms = sum(it.trimmed_mean_ms for it, _ in places) / count
    half_ms = sum((it.high_ms - it.low_ms) / 2 for it, _ in places) / count
    shared = max(max(0.0, share) for _, share in places)
    return BrickTime(ms, half_ms, shared * ms, places[-1][0].when)
