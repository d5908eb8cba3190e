"""Two selections of results: what names select, and how they compare, as `dlbricks results compare` prints it."""

import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tinydb.queries import QueryInstance

from dlbricks_tui.store.contrast import Contrast, Paired, Verdict
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.errors import QueryError
from dlbricks_tui.store.selections import Selection, by_id, equal, is_filter, parse_filter

_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_MOST_LISTED = 6


class NamedSelection(NamedTuple):
    """Results, and what they are: `system c5.xlarge, threads=1`."""

    name: str
    selection: Selection


class _Meaning(NamedTuple):
    """The meaning of a word, and the query for its results."""

    words: str
    query: QueryInstance


def select_named(store: ResultsDatabase, text: str, where: Sequence[str] = ()) -> NamedSelection:
    """Return the results that a text names, which pass the filters too.

    The text has words and filters between blanks. A word is a day, or the id or name of a system, a runtime or a run.
    It has to stand for one of them among the results that pass the filters.
    """
    words = _words_of(text)
    filters = [word for word in words if is_filter(word)]
    selection = store.results(*where, *filters)
    named: list[str] = []
    for word in (word for word in words if not is_filter(word)):
        meaning = _only_meaning(word, store, selection)
        selection = selection.matching(meaning.query)
        named.append(meaning.words)
    if not len(selection):
        raise QueryError(f"no results are {text!r}{_also(where)}; `dlbricks results list` shows those there are")
    return NamedSelection(", ".join([*named, *filters]), selection)


def _words_of(text: str) -> list[str]:
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise QueryError(f"{text!r}: {error}; close the quotation marks") from None
    if not words:
        raise QueryError("an empty text names no results: give a system, a runtime, a day, a run, or filters")
    return words


def _only_meaning(word: str, store: ResultsDatabase, selection: Selection) -> _Meaning:
    # An id is clear, whatever else is called the same.
    exact = list(_meanings(word, store, selection, lambda name: name == word))
    alike = [_Meaning(f"day {word}", parse_filter(f"when={word}"))] if _DAY.fullmatch(word) else exact
    alike = alike or list(_meanings(word, store, selection, lambda name: name.casefold() == word.casefold()))
    alike = alike or list(_runs(word, selection))
    if len(alike) == 1:
        return alike[0]
    if alike:
        raise QueryError(
            f"{word!r} stands for several: {_listed([it.words for it in alike])}; name one of them, or add a filter "
            "such as threads=1"
        )
    known = [f"{column}s {_listed(sorted(selection.distinct(column)))}" for column in ("system", "runtime", "run")]
    raise QueryError(
        f"{word!r} is no system, runtime, run or day with results; there are {'; '.join(known)}; a part of a name is "
        f"found by a filter such as name~{word[:20]}"
    )


def _meanings(
    word: str, store: ResultsDatabase, selection: Selection, fits: Callable[[str], bool]
) -> Iterator[_Meaning]:
    """Yield the systems, runtimes and runs of these results with a fitting id or name."""
    systems, runtimes = by_id(store.systems()), by_id(store.runtimes())
    for identity in sorted(selection.distinct("system")):
        system = systems.get(identity)
        names = (identity,) if system is None else (identity, system.name, system.instance_type)
        if any(map(fits, names)):
            yield _Meaning(f"system {identity}", equal(system=identity))
    for identity in sorted(selection.distinct("runtime")):
        runtime = runtimes.get(identity)
        names = (identity,) if runtime is None else (identity, runtime.name, runtime.framework)
        if any(map(fits, (*names, identity.split(" ")[0]))):
            yield _Meaning(f"runtime {identity}", equal(runtime=identity))
    if word in selection.distinct("run"):
        yield _Meaning(f"run {word}", equal(run=word))


def _runs(word: str, selection: Selection) -> Iterator[_Meaning]:
    for run in sorted(selection.distinct("run")):
        if run.startswith(word):
            yield _Meaning(f"run {run}", equal(run=run))


def _listed(names: Sequence[str]) -> str:
    more = len(names) - _MOST_LISTED
    return ", ".join(names[:_MOST_LISTED]) + (f" and {more} more" if more > 0 else "") if names else "none"


def _also(where: Sequence[str]) -> str:
    return f" and pass {' '.join(where)}" if where else ""


@dataclass(frozen=True, slots=True)
class ComparedSelection:
    """One side of a comparison: what it is, and the number of its results."""

    name: str
    results: int
    # The sum of the latencies that both sides have.
    total_ms: float
    # The bricks and models that only this side has.
    alone: int


@dataclass(frozen=True, slots=True)
class ComparedPair:
    """A brick in a context, or a whole model, that both sides have."""

    name: str
    # `brick` or `model`.
    of: str
    # The keys; `brick` and `context` are empty for a whole model, and `model` for a brick.
    brick: str
    context: str
    model: str
    # The ids of the results.
    a: str
    b: str
    a_ms: float
    b_ms: float
    # The share by which B takes longer.
    change: float
    # Corrected for the number of pairs; null if there are too few samples.
    p_value: float | None
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class ComparedResults:
    """Two selections of results, and all pairs of them: significant changes first, the greatest first."""

    a: ComparedSelection
    b: ComparedSelection
    # The geometric mean of B over A, and its 95 % interval; null without pairs.
    ratio: float | None
    interval: tuple[float, float] | None
    # The number of pairs by verdict.
    slower: int
    faster: int
    alike: int
    too_few: int
    # The changes beyond the limit, such as `resnet50_v1`; `all pairs` stands for the ratio.
    failures: tuple[str, ...]
    pairs: tuple[ComparedPair, ...]


OVERALL = "all pairs"


def compared_results(
    first: NamedSelection, second: NamedSelection, found: Contrast, limit: float | None
) -> ComparedResults:
    """Return a comparison as plain values; changes beyond the limit are failures."""
    first_ms, second_ms = found.total_ms
    return ComparedResults(
        a=ComparedSelection(first.name, len(first.selection), first_ms, found.only_first),
        b=ComparedSelection(second.name, len(second.selection), second_ms, found.only_second),
        ratio=found.ratio,
        interval=None if found.ratio is None else (found.low, found.high),
        slower=found.count(Verdict.SLOWER),
        faster=found.count(Verdict.FASTER),
        alike=found.count(Verdict.ALIKE),
        too_few=found.count(Verdict.TOO_FEW),
        failures=() if limit is None else _failures(found, limit),
        pairs=tuple(map(_pair, sorted(found.pairs, key=_greatest_first))),
    )


def _failures(found: Contrast, limit: float) -> tuple[str, ...]:
    """Return what is significantly slower by more than the limit: all pairs together, and whole models."""
    overall = found.ratio is not None and found.ratio - 1.0 > limit and found.low > 1.0
    models = [
        pair.name
        for pair in found.pairs
        if not pair.second.brick and pair.verdict is Verdict.SLOWER and pair.ratio - 1.0 > limit
    ]
    return (*((OVERALL,) if overall else ()), *models)


def _greatest_first(pair: Paired) -> tuple[bool, float, str]:
    is_significant = pair.verdict in (Verdict.SLOWER, Verdict.FASTER)
    return not is_significant, -abs(pair.ratio - 1.0), pair.name


def _pair(pair: Paired) -> ComparedPair:
    one = pair.second
    return ComparedPair(
        name=pair.name,
        of=one.of,
        brick=one.brick,
        context=one.context,
        model=one.model,
        a=pair.first.id,
        b=one.id,
        a_ms=pair.first.trimmed_mean_ms,
        b_ms=one.trimmed_mean_ms,
        change=pair.ratio - 1.0,
        p_value=pair.p_value,
        verdict=pair.verdict,
    )
