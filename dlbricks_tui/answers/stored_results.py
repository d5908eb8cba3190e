"""Stored results as a user lists, shows, exports, deletes and verifies them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from dlbricks_tui.answers.documents import document
from dlbricks_tui.runtime.variant import remarks_on, stated_precision
from dlbricks_tui.store.columns import COLUMNS
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.documents import TABLES, fields_of, to_document
from dlbricks_tui.store.errors import ExchangeError, QueryError
from dlbricks_tui.store.exporting import export_all, export_format, export_selection
from dlbricks_tui.store.index import OWN, RESULT_TABLES
from dlbricks_tui.store.records import BrickForm, LoadTest, Provenance
from dlbricks_tui.store.selections import OLDEST_FIRST, Selection, checked_columns, equal, parse_order
from dlbricks_tui.store.verification import Verification, verify
from dlbricks_tui.wording.numbers import counted

if TYPE_CHECKING:
    from dlbricks_tui.folders import DataFolder

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

    Load tests and proofs are listed by other commands. Filters find them by their id, and by that also records of any
    other kind, which `verify` may name.
    """
    tables = [it for it in TABLES if it not in RESULT_TABLES] if names_ids(filters) else ["proofs", "load_tests"]
    apart = list(store.ids(*tables))
    for text in filters:
        wanted = tuple(text.removeprefix(_BY_ID).split(",")) if text.startswith(_BY_ID) else ()
        apart = [uuid for uuid in apart if any(each and uuid.startswith(each) for each in wanted)]
    found = store.results(*filters)
    return Deletion(len(found) + len(apart), [*found.records.values("id"), *apart])


def names_ids(filters: Sequence[str]) -> bool:
    """Return whether filters name results by their ids."""
    return any(text.startswith(_BY_ID) for text in filters)


def correct_dates(data: DataFolder) -> int:
    """Date records from the future like those stored before them, and return their number."""
    with ResultsDatabase(data.store) as store:
        return store.correct_dates()


def verified_store(data: DataFolder) -> Verification:
    """Read all results, and return the damaged ones."""
    return verify(data.store)


def verification_document(found: Verification) -> dict[str, Any]:
    """Return a verification as a JSON document."""
    implausible = [{"table": it.table, "id": it.uuid, "reason": it.reason} for it in found.implausible]
    return {**document(found), "damage": [str(each) for each in found.damage], "implausible": implausible}
