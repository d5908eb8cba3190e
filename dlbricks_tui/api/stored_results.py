"""Stored results: list, find, read, delete, restore, export, import and verify them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from tinydb import where
from tinydb.queries import QueryInstance

from dlbricks_tui.api.documents import document
from dlbricks_tui.runtime.variant import remarks_on, stated_precision
from dlbricks_tui.store.columns import COLUMNS, Content
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.documents import TABLES, DamagedResultError, ExchangeError, QueryError, fields_of, to_document
from dlbricks_tui.store.exchange import export_all, export_format, export_selection
from dlbricks_tui.store.index import OWN, RESULT_TABLES
from dlbricks_tui.store.records import BrickForm, LoadTest, Provenance
from dlbricks_tui.store.selections import (
    NEWEST_FIRST,
    OLDEST_FIRST,
    Selection,
    SortOrder,
    checked_columns,
    equal,
    parse_filter,
    parse_order,
)
from dlbricks_tui.store.verification import Verification
from dlbricks_tui.store.verification import verify as verify
from dlbricks_tui.wording.numbers import counted

if TYPE_CHECKING:
    from dlbricks_tui.api.session import SharedStore
    from dlbricks_tui.folders import DataFolder
    from dlbricks_tui.store.columns import Summary
    from dlbricks_tui.store.records import Result

# A quoted value may contain blanks; the closing quote may still be missing.
_WORD = re.compile(r'(?:[^\s"]|"[^"]*"?)+')
_BEGUN = re.compile(r"\w+(==|!=|<=|>=|=|<|>|~)")
# Later orders would only decide between a few equal results.
_MOST_ORDERS = 3


class ResultQuery(NamedTuple):
    """The search text and the sort orders of the wanted results, the first order first."""

    text: str = ""
    orders: tuple[SortOrder, ...] = NEWEST_FIRST

    def sorted_by(self, column: str) -> ResultQuery:
        """Return the query sorted by a column; the current one is reversed."""
        first = self.orders[0]
        # Users mostly look for the greatest number and the newest time.
        begins = COLUMNS[column] in (Content.NUMBER, Content.TIME)
        descending = not first.descending if first.column == column else begins
        rest = [order for order in self.orders if order.column != column]
        return self._replace(orders=(SortOrder(column, descending), *rest)[:_MOST_ORDERS])


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
    with shared.held(refresh=True) as store:
        total = len(store.results(order=()))
        try:
            return QueriedResults(query, store.results(*queries_of(query.text), order=query.orders), total)
        except QueryError as error:
            return QueriedResults(query, None, total, str(error))


class Overview(NamedTuple):
    """The number of results and of their models, and the time of the newest."""

    results: int
    models: int
    newest: str


def overview(shared: SharedStore) -> Overview | None:
    """Return what there is; None without results."""
    with shared.held(refresh=True) as store:
        found = store.results(order=())
        if not found:
            return None
        names = {name for text in found.distinct("models") for name in text.split(", ") if name}
        return Overview(len(found), len(names), found[int(np.argmax(found.numbers("when")))].when)


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
        result, layers = None, tuple[tuple[str, float], ...]()
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


def whole(results: Selection) -> Selection:
    """Return the same results with all of their records, also those that did not pass a filter."""
    generation = results.generation
    every = Selection(generation, generation.index.rows_of(*RESULT_TABLES)).one_per_run()
    return every.holding(results.rows)


def delete(shared: SharedStore, selection: Selection) -> Selection:
    """Delete results with all of their records, and return them."""
    deleted = whole(selection)
    with shared.held() as store:
        store.delete(deleted.records.values("id"))
    return deleted


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


def export_problem(path: Path) -> str:
    """Return why no file of this ending can be exported; empty if it can."""
    try:
        export_format(path)
    except ExchangeError as error:
        return str(error)
    return ""


class ImportTold(NamedTuple):
    """The outcome of an import in words, and whether something is wrong or missing."""

    text: str
    is_warning: bool
    # Of the results of a suite: the system that measured them, and the models that they are about.
    system: str = ""
    models: tuple[str, ...] = ()


def import_file(shared: SharedStore, path: Path, data: DataFolder) -> ImportTold:
    """Import a file that was exported on any host, or the results of a suite that was exported here."""
    # Loaded here: imports are rare.
    from dlbricks_tui.api.store_contents import imported
    from dlbricks_tui.api.suites import import_suite_results
    from dlbricks_tui.share.results_file import has_suite_results
    from dlbricks_tui.wording.jobs import import_outcome

    # An import takes long, so it opens the store a second time instead of locking the shared one.
    with ResultsDatabase(shared.folder) as store:
        if has_suite_results(path):
            suite = import_suite_results(store, path, data)
            return ImportTold(
                f"{import_outcome(suite)}.", bool(suite.failed or suite.missing), suite.system, suite.models
            )
        done = imported(store, [path], data)
    files = [it for one in done.paths for it in one.files]
    reports = [it.report for it in files]
    told = f"{counted(sum(it.new for it in reports), 'new record')} in {path.name}, "
    told += f"{sum(it.known for it in reports):,} known."
    if signers := sorted({it.signer for it in files if it.signer}):
        told += f" Signed by {', '.join(signers)}."
    if conflicts := sum(len(it.conflicts) for it in reports):
        told += f" {conflicts:,} differ from those in the store; both are kept."
    if done.claims:
        told += f" {counted(len(done.claims), 'result')} contradict others: `dlbricks results import` lists them."
    refused = [str(each) for it in reports for each in it.refused] + [it.refusal for it in files if it.refusal]
    if refused:
        told += f" {len(refused):,} cannot be read: {refused[0]}"
    return ImportTold(told, bool(refused or done.claims))


_BY_ID = "id="


def columns_named(names: Sequence[str] = ()) -> Sequence[str]:
    """Return columns of results by their names, by default all; refuse an unknown one."""
    return checked_columns(names or COLUMNS)


def listed_results(store: ResultsDatabase, filters: Sequence[str], orders: Sequence[str]) -> Selection:
    """Return the results that pass all filters, in an order such as `-when`."""
    return store.results(*filters, order=[parse_order(text) for text in orders])


def rows_of(results: Selection, columns: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    """Yield the values of each result."""
    return zip(*(results.values(column) for column in columns), strict=True)


def objects_of(results: Selection, columns: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield the values of each result by column."""
    return (dict(zip(columns, row, strict=True)) for row in rows_of(results, columns))


def precision_remarks(results: Selection) -> list[str]:
    """Return what a user should know of the precisions of results."""
    return remarks_on(stated_precision(it) for it in sorted(results.distinct("runtime")))


@dataclass(frozen=True, slots=True)
class ShownResult:
    """A result, or all results of a brick, the newest last, or a load test, and where it comes from."""

    selection: Selection | None
    # The key of the brick.
    brick: str = ""
    canonical: str | None = None
    test: LoadTest | None = None
    origin: Provenance | None = None
    # The file that the result was imported from.
    file: str = ""

    def document(self) -> dict[str, Any]:
        """Return it as a JSON document."""
        provenance = {"provenance": None if self.origin is None else fields_of(self.origin)}
        if self.test is not None:
            return {**to_document(self.test), **provenance}
        results = [] if self.selection is None else list(objects_of(self.selection, tuple(COLUMNS)))
        if self.selection is None or self.brick:
            return {"brick": self.brick, "canonical": self.canonical, "results": results}
        return {**to_document(self.selection.result(0)), **provenance, "origin": self.selection[0].origin}


def found_result(store: ResultsDatabase, text: str) -> ShownResult:
    """Return the result, brick or load test whose id or key begins with a text; raise QueryError unless it is one."""
    if not set(text) <= set("0123456789abcdef") or not text:
        raise QueryError(f"{text!r} is no id or brick key; `dlbricks results list --columns id,brick` has them")
    found = store.select(f"id={text}")
    bricks = store.select(f"brick={text}").distinct("brick")
    if len(found) + len(bricks) > 1:
        ids = f"{counted(len(found), 'result id')} and {counted(len(bricks), 'brick key')}"
        raise QueryError(f"{ids} begin with {text}: give more characters")
    if len(found):
        one = store.result_of(found[0])
        summary, result = one.summaries()[0], one.result(0)
        source = None if summary.origin == OWN else store.source_of(summary.id)
        origin = store.provenance_of(result.run, result.runtime)
        return ShownResult(one, origin=origin, file=source.file if source else "")
    if bricks:
        brick = bricks.pop()
        form = next(iter(store.records(BrickForm, equal(key=brick))), None)
        history = store.results(equal(brick=brick), order=OLDEST_FIRST)
        return ShownResult(history, brick, form.canonical if form else None)
    tests = [it for it in store.records(LoadTest) if it.uuid.startswith(text)]
    if len(tests) != 1:
        raise QueryError(
            f"{len(tests)} load tests begin with {text}: give more characters"
            if tests
            else f"no id of a result or load test and no brick key begins with {text}"
        )
    return ShownResult(None, test=tests[0], origin=store.provenance_of(tests[0].uuid, tests[0].runtime))


def require_new_export(file: Path, *, replace: bool) -> None:
    """Raise ExchangeError if a file has no format of an export, or is there and must not be replaced."""
    export_format(file)
    if file.is_file() and not replace:
        raise ExchangeError(f"{file} is there already: name another file, or replace it with --force")


def export_results(
    store: ResultsDatabase, file: Path, filters: Sequence[str], key: Path | None
) -> tuple[int, Path | None]:
    """Write the results that pass the filters; return their number, and the signature by a private key."""
    # Loaded here: nothing else in this module needs signatures.
    from dlbricks_tui.share.signatures import export_signed, remove_signatures

    def export(path: Path) -> int:
        if filters:
            return export_selection(store.results(*filters, order=OLDEST_FIRST), path)
        return export_all(store, path)

    if key is not None:
        return export_signed(file, key, export)
    results = export(file)
    if file.is_file():
        remove_signatures(file)
    return results, None


class Deletion(NamedTuple):
    """The number of results, load tests and proofs to delete, and the ids of their records."""

    number: int
    ids: list[str]


def to_delete(store: ResultsDatabase, filters: Sequence[str]) -> Deletion:
    """Return the results, load tests and proofs that pass the filters.

    Load tests and proofs are listed by other commands. Filters find them by their id or its beginning, and records of
    any other kind, which `verify` may name, by their whole id: results need the forms of their bricks.
    """
    for text in filters:
        # Such as those of a shell whose variable is not set.
        if not text.strip() or _BEGUN.fullmatch(text):
            raise QueryError(f"the filter {text!r} has no value, so nothing was deleted: give it one, or leave it out")
    tables = [it for it in TABLES if it not in RESULT_TABLES] if names_ids(filters) else ["proofs", "load_tests"]
    apart, tests = list(store.ids(*tables)), set(store.ids("proofs", "load_tests"))
    for text in filters:
        wanted = tuple(filter(None, text.removeprefix(_BY_ID).split(","))) if text.startswith(_BY_ID) else ()
        apart = [uuid for uuid in apart if uuid in wanted or (uuid in tests and uuid.startswith(wanted))]
    # Otherwise the rest of a result would come to light, under another id.
    found = whole(store.results(*filters))
    return Deletion(len(found) + len(apart), [*found.records.values("id"), *apart])


def names_ids(filters: Sequence[str]) -> bool:
    """Return whether filters name results by their ids."""
    return any(text.startswith(_BY_ID) for text in filters)


def correct_dates(data: DataFolder) -> int:
    """Date records from the future like those stored before them, and return their number."""
    with ResultsDatabase(data.store) as store:
        return store.correct_dates()


def verification_document(found: Verification) -> dict[str, Any]:
    """Return a verification as a JSON document."""
    implausible = [{"table": it.table, "id": it.uuid, "reason": it.reason} for it in found.implausible]
    return {**document(found), "damage": [str(each) for each in found.damage], "implausible": implausible}
