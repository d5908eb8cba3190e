"""Work of the results screens that takes time; they run it in threads."""

import re
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import numpy as np
from tinydb import where
from tinydb.queries import QueryInstance

from dlbricks_tui.documents.results import results_answer
from dlbricks_tui.store.columns import Summary
from dlbricks_tui.store.errors import DamagedResultError, QueryError
from dlbricks_tui.store.exporting import export_selection
from dlbricks_tui.store.records import Provenance, Result
from dlbricks_tui.store.selections import OLDEST_FIRST, Selection, SortOrder, equal, parse_filter
from dlbricks_tui.tui.session import SharedStore

# A quoted value may contain blanks; the closing quote may still be missing.
_WORD = re.compile(r'(?:[^\s"]|"[^"]*"?)+')
_BEGUN = re.compile(r"\w+(==|!=|<=|>=|=|<|>|~)")


class ResultQuery(NamedTuple):
    """The search text and the order of the wanted results."""

    text: str
    orders: tuple[SortOrder, ...]


def queries_of(text: str) -> tuple[QueryInstance, ...]:
    """Parse the filters of a search text; an incomplete filter is ignored."""
    words = [word.replace('"', "") for word in _WORD.findall(text)]
    return tuple(parse_filter(word) for word in words if word and not _BEGUN.fullmatch(word))


def quoted(column: str, value: str) -> str:
    """Return the filter for exactly this value."""
    return f'{column}=="{value}"' if re.search(r"[\s,]", value) else f"{column}=={value}"


class QueriedResults(NamedTuple):
    """The results of a query and the number of all results, or the problem with the query."""

    query: ResultQuery
    selection: Selection | None
    total: int
    problem: str = ""


def find(shared: SharedStore, query: ResultQuery) -> QueriedResults:
    """Find results, including those that were just stored."""
    with shared.held() as store:
        store.refresh()
        total = len(store.results(order=()))
        try:
            return QueriedResults(query, store.results(*queries_of(query.text), order=query.orders), total)
        except QueryError as error:
            return QueriedResults(query, None, total, str(error))


def overview(shared: SharedStore) -> str:
    """Return what there is in one sentence; empty without results."""
    with shared.held() as store:
        store.refresh()
        found = store.results(order=())
        if not found:
            return ""
        names = {name for text in found.distinct("models") for name in text.split(", ") if name}
        newest = int(np.argmax(found.numbers("when")))
        return results_answer(len(found), len(names), found[newest].when)


class ResultRead(NamedTuple):
    """A complete result, and the history of its brick or model in the same way, oldest first."""

    summary: Summary
    # None if its samples can no longer be read.
    result: Result | None
    history: tuple[Summary, ...]
    # The layers whose mean a result of a brick is, with their latencies; none for a single one.
    layers: tuple[tuple[str, float], ...]
    # Where it comes from; None if the store does not know.
    provenance: Provenance | None


def read_result(shared: SharedStore, one: Selection) -> ResultRead:
    (summary,) = one.summaries()
    with shared.held() as store:
        result: Result | None = None
        layers: tuple[tuple[str, float], ...] = ()
        # The store has recorded any damage; the summary is still valid.
        with suppress(DamagedResultError):
            result, layers = one.result(0), _layers(one.records)
        same = equal(brick=summary.brick, model=summary.model, context=summary.context, system=summary.system)
        same &= equal(runtime=summary.runtime, level=summary.level.value, protocol=summary.protocol)
        history = store.results(same, order=OLDEST_FIRST).summaries()
        origin = store.provenance_of(summary.run, summary.runtime)
    return ResultRead(summary, result, tuple(history), layers, origin)


def _layers(records: Selection) -> tuple[tuple[str, float], ...]:
    found = [records.result(place) for place in range(len(records))]
    named = [(dict(getattr(it, "occurrence", ())).get("layer"), it.statistics.trimmed_mean_ms) for it in found]
    return tuple([(str(name), latency_ms) for name, latency_ms in named if name]) if len(named) > 1 else ()


def read_again(shared: SharedStore, summary: Summary) -> ResultRead | None:
    """Read the result of a summary; None if it was deleted since."""
    with shared.held() as store:
        found = store.select(equal(id=summary.id))
        result = store.result_of(found[0]) if found else None
    return None if result is None else read_result(shared, result)


def delete(shared: SharedStore, selection: Selection) -> int:
    """Delete results, and return their number."""
    with shared.held() as store:
        store.delete(selection.records.values("id"))
    return len(selection)


def restore(shared: SharedStore, selection: Selection) -> frozenset[str]:
    """Restore deleted results, and return the ids of those that the store has again."""
    with shared.held() as store:
        store.restore(selection.records)
        store.refresh()
        return frozenset(store.select(where("id").one_of(selection.values("id")), order=()).values("id"))


def export(shared: SharedStore, selection: Selection, path: Path) -> int:
    """Export results to a file, and return their number."""
    # Loaded here: exports are rare.
    from dlbricks_tui.share.signatures import remove_signatures

    with shared.held():
        exported = export_selection(selection, path)
    remove_signatures(path)
    return exported
