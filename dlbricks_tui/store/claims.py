"""Claims of different files, or of a file and this store, that contradict each other."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np

from dlbricks_tui.store.change import MOST_APART, SIGNIFICANT
from dlbricks_tui.store.columns import Summary, summaries_of
from dlbricks_tui.store.database import ResultsDatabase, Source
from dlbricks_tui.store.documents import DamagedResultError
from dlbricks_tui.store.index import ORIGIN_COLUMN, RESULT_TABLES
from dlbricks_tui.store.records import Import, Timed
from dlbricks_tui.store.selections import numbered
from dlbricks_tui.store.statistics import adjusted, rank_sum_p_value

# Claims are about the same latency if these columns agree.
_SAME = ("brick", "context", "model", "system", "runtime", "level", "protocol", "batch_size")
# Samples are read from the disk: only so many of the largest differences are tested.
_MOST_TESTED = 2000
_NO_FILE = Source("", "")


@dataclass(frozen=True, slots=True)
class Claimed:
    """The newest good result of a file, or of this store itself: its file is empty."""

    result: Summary
    file: str


@dataclass(frozen=True, slots=True)
class Claim:
    """A latency that several sources claim differently; the first of them counts in estimates."""

    claimed: tuple[Claimed, ...]
    # Of the highest and the lowest one, adjusted for the number of comparisons; None for too few samples to tell.
    p_value: float | None

    @property
    def subject(self) -> Summary:
        """The result that counts."""
        return self.claimed[0].result

    @property
    def ratio(self) -> float:
        """The highest latency divided by the lowest."""
        latencies = [it.result.trimmed_mean_ms for it in self.claimed]
        return max(latencies) / min(latencies)


def conflicting_claims(store: ResultsDatabase, sources: Mapping[str, Source]) -> tuple[Claim, ...]:
    """Return the claims in some files that contradict each other, or others in the store; the largest ratio first.

    `sources` has the results of the files by their ids. The claims of a file are its good results. Two contradict each
    other if they differ significantly and by at least `MOST_APART`.
    """
    index = store.generation.index
    rows = index.rows_of(*RESULT_TABLES)
    rows = rows[index.column("good")[rows]]
    origins = index.column(ORIGIN_COLUMN)
    # A store without imports has no claims of others.
    if not origins[rows].any():
        return ()
    asked: dict[int | None, Source] = {
        row: source for uuid, source in sources.items() if (row := index.row_of_uuid(uuid)) is not None
    }
    # Beside them the files of earlier imports.
    files = {index.row_of_uuid(uuid): Source(it.file, it.signer) for it in store.records(Import) for uuid in it.records}
    files.update(asked)
    rows = rows[np.argsort(index.column("when")[rows], kind="stable")]
    # The newest row of each subject and source.
    newest: defaultdict[int, dict[Source, int]] = defaultdict(dict)
    for row, subject in zip(rows.tolist(), numbered(index, _SAME, rows).tolist(), strict=True):
        # Own results that a file has, too, are no claims of others.
        newest[subject][files.get(row, _NO_FILE) if origins[row] else _NO_FILE] = row
    found = []
    for claimed in newest.values():
        if len(claimed) > 1 and not asked.keys().isdisjoint(claimed.values()):
            low, high, mean = (index.column(it)[[*claimed.values()]] for it in ("low_ms", "high_ms", "trimmed_mean_ms"))
            ratio = mean.max() / mean.min() if mean.min() else 0.0
            if low.max() > high.min() and ratio >= 1 + MOST_APART:
                found.append((ratio, claimed))
    found.sort(key=lambda it: it[0], reverse=True)
    return tuple(_tested(store, [claimed for _, claimed in found[:_MOST_TESTED]]))


def _tested(store: ResultsDatabase, found: Iterable[Mapping[Source, int]]) -> Iterator[Claim]:
    """Yield the subjects whose samples differ significantly."""
    claims: list[Claim] = []
    generation = store.generation
    for rows in found:
        summaries = summaries_of(generation.index, np.array([*rows.values()], dtype=np.intp))
        claimed = [Claimed(it, source.file) for it, source in zip(summaries, rows, strict=True)]
        by_latency = sorted(zip(claimed, rows.values(), strict=True), key=lambda it: it[0].result.trimmed_mean_ms)
        # The store reports damaged results.
        with suppress(DamagedResultError):
            lowest, highest = (generation.record(row) for _, row in (by_latency[0], by_latency[-1]))
            if isinstance(lowest, Timed) and isinstance(highest, Timed):
                p_value = rank_sum_p_value(lowest.samples_ms, highest.samples_ms)
                claimed.sort(key=lambda it: it.result.precedence, reverse=True)
                claims.append(Claim(tuple(claimed), p_value))
    corrected = iter(adjusted([it.p_value for it in claims if it.p_value is not None]))
    for claim in claims:
        p_value = None if claim.p_value is None else next(corrected)
        # With too few samples for the test, the intervals decide.
        if p_value is None or p_value < SIGNIFICANT:
            yield replace(claim, p_value=p_value)
