"""Results that a user selects by a few words: a system, a runtime, a day, a run, or filters."""

import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from tinydb.queries import QueryInstance

from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.errors import QueryError
from dlbricks_tui.store.filters import equal, is_filter, parse_filter
from dlbricks_tui.store.selections import Selection, by_id

_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_MOST_LISTED = 6


class NamedSelection(NamedTuple):
    """Results, and what they are: `system c5.xlarge, threads=1`."""

    name: str
    selection: Selection


class _Meaning(NamedTuple):
    """What a word stands for, and the query for its results."""

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
