"""Claims of different files, or of a file and this store, that contradict each other."""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dlbricks_tui.store.change import MOST_APART, SIGNIFICANT
from dlbricks_tui.store.columns import Summary, summaries_of
from dlbricks_tui.store.database import ResultsDatabase, Source
from dlbricks_tui.store.documents import DamagedResultError
from dlbricks_tui.store.index import ORIGIN_COLUMN, RESULT_TABLES, Index, Rows
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
    files = {row: source for uuid, source in sources.items() if (row := index.row_of_uuid(uuid)) is not None}
    # A store without imports has no claims of others.
    if not len(rows) or not index.column(ORIGIN_COLUMN)[rows].any():
        return ()
    listed = dict.fromkeys((_NO_FILE, *sources.values()))
    numbers = {source: number for number, source in enumerate(listed)}
    source_of_row = np.zeros(index.rows, dtype=np.int64)
    for row, source in files.items():
        source_of_row[row] = numbers[source]
    # Then the files of earlier imports.
    unknown = set(rows[(index.column(ORIGIN_COLUMN)[rows] > 0) & (source_of_row[rows] == 0)].tolist())
    for record in store.records(Import) if unknown else []:
        imported = Source(record.file, record.signer)
        for uuid in record.records:
            if (of_other := index.row_of_uuid(uuid)) in unknown and of_other is not None:
                source_of_row[of_other] = numbers.setdefault(imported, len(numbers))
    # Own results that a file has, too, are no claims of others.
    own = index.column(ORIGIN_COLUMN)[rows] == 0
    of_rows = np.where(own, 0, source_of_row[rows])
    asked = np.zeros(index.rows, dtype=np.bool_)
    asked[list(files)] = True
    found = _differing(index, rows, of_rows, asked)
    names = list(numbers)
    return tuple(_tested(store, [[(row, names[number].file) for row, number in it] for it in found]))


def _differing(
    index: Index, rows: Rows, sources: NDArray[np.int64], asked: NDArray[np.bool_]
) -> list[list[tuple[int, int]]]:
    """Return the newest result of each source, as row and source, of the subjects whose intervals contradict."""
    subjects = numbered(index, _SAME, rows)
    # The last row of each subject and source is the newest.
    order = np.lexsort((index.column("when")[rows], sources, subjects))
    last = np.ones(len(order), dtype=np.bool_)
    last[:-1] = (np.diff(subjects[order]) != 0) | (np.diff(sources[order]) != 0)
    newest = order[last]
    begins = np.flatnonzero(np.diff(subjects[newest], prepend=-1))
    low, high = index.column("low_ms")[rows][newest], index.column("high_ms")[rows][newest]
    mean = index.column("trimmed_mean_ms")[rows][newest]
    apart = np.maximum.reduceat(low, begins) > np.minimum.reduceat(high, begins)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.maximum.reduceat(mean, begins) / np.minimum.reduceat(mean, begins)
    concerned = np.logical_or.reduceat(asked[rows[newest]], begins)
    chosen = np.flatnonzero(apart & concerned & np.isfinite(ratios) & (ratios >= 1 + MOST_APART))
    chosen = chosen[np.argsort(-ratios[chosen], kind="stable")]
    ends = np.append(begins[1:], len(newest))
    return [
        [(int(rows[it]), int(sources[it])) for it in newest[begins[subject] : ends[subject]].tolist()]
        for subject in chosen.tolist()
    ]


def _tested(store: ResultsDatabase, found: list[list[tuple[int, str]]]) -> Iterator[Claim]:
    """Yield the subjects whose samples differ significantly."""
    claims: list[Claim] = []
    index = store.generation.index
    for places in found[:_MOST_TESTED]:
        rows = np.array([row for row, _ in places], dtype=np.intp)
        claimed = [Claimed(it, file) for it, (_, file) in zip(summaries_of(index, rows), places, strict=True)]
        by_latency = sorted(zip(claimed, rows.tolist(), strict=True), key=lambda it: it[0].result.trimmed_mean_ms)
        # The store reports damaged results.
        with suppress(DamagedResultError):
            lowest, highest = (store.generation.record(row) for _, row in (by_latency[0], by_latency[-1]))
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
