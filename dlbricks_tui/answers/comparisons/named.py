"""Results by the names that a user gives: a system, a runtime, a day, a run, or filters."""

import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from tinydb.queries import QueryInstance

from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.errors import QueryError
from dlbricks_tui.store.selections import Selection, equal, is_filter, parse_filter

_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_MOST_LISTED = 6


class PairKind:
    """The kind of both things that are compared: A and B are of the same kind."""

    MODEL = "model"
    VARIANT = "variant"
    SYSTEM = "system"
    RUNTIME = "runtime"
    DAY = "day"
    RUN = "run"
    RESULT = "result"
    # Of several words, such as a run and a filter.
    SELECTION = "selection"


class Naming(NamedTuple):
    """Names of results: the column whose values are names, and other names of a value by it."""

    column: str
    others: Callable[[ResultsDatabase], Mapping[str, tuple[str, ...]]] = lambda _: {}


def _names_of_systems(store: ResultsDatabase) -> Mapping[str, tuple[str, ...]]:
    return {it.id: (it.name, it.instance_type) for it in store.systems()}


def _names_of_runtimes(store: ResultsDatabase) -> Mapping[str, tuple[str, ...]]:
    return {it.id: (it.name, it.framework, it.id.split(" ")[0]) for it in store.runtimes()}


# The kinds of results that a word names, besides days and the beginnings of runs.
KINDS: dict[str, Naming] = {
    PairKind.SYSTEM: Naming("system", _names_of_systems),
    PairKind.RUNTIME: Naming("runtime", _names_of_runtimes),
    PairKind.RUN: Naming("run"),
}


class NamedSelection(NamedTuple):
    """Results, what they are, such as `c5.xlarge` or `system c5.xlarge, threads=1`, and their kind."""

    name: str
    selection: Selection
    kind: str = PairKind.SELECTION

    @property
    def words(self) -> str:
        """The name with the kind: `system c5.xlarge`."""
        return self.name if self.kind == PairKind.SELECTION else f"{self.kind} {self.name}"


class _Meaning(NamedTuple):
    """The meaning of a word, and the query for its results."""

    kind: str
    name: str
    query: QueryInstance

    @property
    def words(self) -> str:
        return f"{self.kind} {self.name}"


def select_named(store: ResultsDatabase, text: str, where: Sequence[str] = ()) -> NamedSelection:
    """Return the results that a text names, which pass the filters too.

    The text has words and filters between blanks. A word is a day, or the id or name of a system, a runtime or a run.
    It has to stand for one of them among the results that pass the filters.
    """
    words = _words_of(text)
    filters = [word for word in words if is_filter(word)]
    selection = store.results(*where, *filters)
    named: list[_Meaning] = []
    for word in (word for word in words if not is_filter(word)):
        meaning = _only_meaning(word, store, selection)
        selection = selection.matching(meaning.query)
        named.append(meaning)
    if not len(selection):
        raise QueryError(f"no results are {text!r}{_also(where)}; `dlbricks results list` shows those there are")
    if len(words) == len(named) == 1:
        return NamedSelection(named[0].name, selection, named[0].kind)
    return NamedSelection(", ".join([*(it.words for it in named), *filters]), selection)


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
    exact = list(_meanings(store, selection, lambda name: name == word))
    alike = [_Meaning(PairKind.DAY, word, parse_filter(f"when={word}"))] if _DAY.fullmatch(word) else exact
    alike = alike or list(_meanings(store, selection, lambda name: name.casefold() == word.casefold()))
    alike = alike or list(_runs(word, selection))
    if len(alike) == 1:
        return alike[0]
    if alike:
        raise QueryError(
            f"{word!r} stands for several: {_listed([it.words for it in alike])}; name one of them, or add a filter "
            "such as threads=1"
        )
    known = [f"{kind}s {_listed(sorted(selection.distinct(it.column)))}" for kind, it in KINDS.items()]
    raise QueryError(
        f"{word!r} is no {', '.join(KINDS)} or day with results; there are {'; '.join(known)}; a part of a name is "
        f"found by a filter such as name~{word[:20]}"
    )


def _meanings(store: ResultsDatabase, selection: Selection, fits: Callable[[str], bool]) -> Iterator[_Meaning]:
    """Yield what has a fitting name among these results."""
    for kind, naming in KINDS.items():
        others = naming.others(store)
        for value in sorted(selection.distinct(naming.column)):
            if any(map(fits, (value, *others.get(value, ())))):
                yield _Meaning(kind, value, equal(**{naming.column: value}))


def _runs(word: str, selection: Selection) -> Iterator[_Meaning]:
    for run in sorted(selection.distinct("run")):
        if run.startswith(word):
            yield _Meaning(PairKind.RUN, run, equal(run=run))


def _listed(names: Sequence[str]) -> str:
    more = len(names) - _MOST_LISTED
    return ", ".join(names[:_MOST_LISTED]) + (f" and {more} more" if more > 0 else "") if names else "none"


def _also(where: Sequence[str]) -> str:
    return f" and pass {' '.join(where)}" if where else ""
