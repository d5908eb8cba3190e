"""The results of dlbricks as a TinyDB database."""

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
from tinydb import TinyDB
from tinydb.queries import QueryInstance

from dlbricks_tui.folders import data_folder
from dlbricks_tui.recorded_host import Processors
from dlbricks_tui.runtime.runtime import THREADS_OF_FRAMEWORK, numbered_identity
from dlbricks_tui.runtime.variant import stated_threads
from dlbricks_tui.store.columns import ResultFields, Summary, TableFields, matching_rows, values_of
from dlbricks_tui.store.documents import TABLE_OF, DamagedResultError, Document, StoreError, fields_of
from dlbricks_tui.store.files import Damage, EntryKind, JournalEntry
from dlbricks_tui.store.generation import Generation
from dlbricks_tui.store.index import ORIGIN_COLUMN, OWN, Rows, origin_of, signer_of, since_epoch, to_iso, trust_in
from dlbricks_tui.store.journal import JournalStorage
from dlbricks_tui.store.records import (
    Import,
    LoadTest,
    Peaks,
    Proof,
    Provenance,
    Record,
    Run,
    RuntimeRecord,
    System,
    latest_date,
    utc_now,
)
from dlbricks_tui.store.selections import (
    FIGURES,
    NEWEST_FIRST,
    Selection,
    SortOrder,
    all_of,
    by_id,
    columns_in,
    equal,
    parse_filter,
    parsed_orders,
)
from dlbricks_tui.store.tables import IndexedTable

AnyRecord = TypeVar("AnyRecord", bound=Record)


def numbered(records: Iterable[AnyRecord], systems: Iterable[System] = ()) -> Iterator[AnyRecord]:
    """Yield records with the numbers of threads of their systems, which come before them or are given.

    The description of a runtime becomes one for each number. Records of an unknown system stay as they are.
    """
    known = {it.id: it for it in systems}
    for record in records:
        if isinstance(record, System):
            known[record.id] = record
        if isinstance(record, RuntimeRecord) and THREADS_OF_FRAMEWORK in record.id:
            identities = dict.fromkeys(numbered_identity(record.id, _processors_then(it)) for it in known.values())
            for identity in identities or (record.id,):
                threads = stated_threads(identity) or record.threads
                yield cast(AnyRecord, replace(record, id=identity, threads=threads))
        else:
            stated = {name: getattr(record, name, "") for name in ("runtime", "changed_runtime")}
            changed: dict[str, Any] = {
                name: numbered_identity(identity, _processors_then(known.get(cast(Any, record).system)))
                for name, identity in stated.items()
                if THREADS_OF_FRAMEWORK in identity
            }
            yield replace(record, **changed) if changed else record


def _processors_then(system: System | None) -> Processors | None:
    """Return the processors of a system, as far as they are known, without the limit that was disregarded then."""
    found = None if system is None else Processors.of(system.cores, dict(system.facts))
    return None if found is None else found._replace(quota=None)


class _RowByDefault(NamedTuple):
    row: int
    runtime: str
    # Empty for the description of a runtime.
    system: str


class Source(NamedTuple):
    """A file of results: its name, and its verified signer (empty: none)."""

    file: str
    signer: str = ""

    @property
    def origin(self) -> str:
        """The origin of records in it, as in the column."""
        return origin_of(self.signer)


class ResultsDatabase(TinyDB):
    """A TinyDB database with a table for each kind of record, beside any others. Use it from one thread at a time.

    All calls of TinyDB see what other processes have stored. `select` and `records` read the state of the last
    `refresh`, so that several of them agree.
    """

    table_class = IndexedTable  # type: ignore[assignment]
    default_storage_class = JournalStorage  # type: ignore[assignment]

    def __init__(self, folder: Path, **options: Any) -> None:
        super().__init__(Path(folder), **options)
        # The results without a filter, kept for the next question, with the index length and records they are of.
        self._everything: tuple[int, Selection, Selection] | None = None
        self.refresh()
        # A store that cannot be written stays as it is.
        with suppress(StoreError):
            self._number_threads()

    def __enter__(self) -> "ResultsDatabase":
        return self

    @property
    def storage(self) -> JournalStorage:  # type: ignore[override]
        """The storage."""
        return cast(JournalStorage, self._storage)

    @property
    def generation(self) -> Generation:
        """The files and the index as of the last refresh."""
        return self.storage.generation

    @property
    def damage(self) -> Sequence[Damage]:
        """The lines that cannot be read and were set aside."""
        return self.generation.damage

    @property
    def from_the_future(self) -> Sequence[str]:
        """The dates of the records that no clock can have given, as they are stored."""
        index = self.generation.index
        return [to_iso(int(index.stored("when")[row])) for row in index.dated_after(latest_date()).tolist()]

    def refresh(self) -> bool:
        """Read the changes that this and other processes have made since, and return True if there were any."""
        return self.storage.refresh()

    def select(self, *filters: str | QueryInstance, order: Sequence[str | SortOrder] = NEWEST_FIRST) -> Selection:
        """Return the results that pass all filters, newest first unless another order is given.

        A filter is a query on the columns of `dlbricks results list`, or the text of one, such as `system=c5.xlarge`.
        """
        queries = [parse_filter(it) if isinstance(it, str) else it for it in filters]
        found = Selection(self.generation, matching_rows(all_of(queries), ResultFields(self.generation)))
        return found.sorted_by(parsed_orders(order))

    def results(self, *filters: str | QueryInstance, order: Sequence[str | SortOrder] = NEWEST_FIRST) -> Selection:
        """Return the results as people count them: one for each run and brick or model; see `select`.

        Filters select whole results, by their own latency and time.
        """
        queries = [parse_filter(it) if isinstance(it, str) else it for it in filters]
        of_records = [it for it in queries if not columns_in(it) & FIGURES]
        if any("id" in columns_in(it) for it in of_records):
            found = self._all_results().holding(self.select(*of_records, order=()).rows)
        elif of_records:
            found = self.select(*of_records, order=()).one_per_run()
        else:
            found = self._all_results()
        for query in queries:
            found = found if query in of_records else found.by_figures(query)
        return found.sorted_by(parsed_orders(order))

    def _all_results(self) -> Selection:
        records = self.select(order=())
        length, before, found = self._everything or (-1, records, records)
        is_same = before.generation is records.generation and np.array_equal(before.rows, records.rows)
        if length != self.generation.index.rows or not is_same:
            found = records.one_per_run()
            self._everything = self.generation.index.rows, records, found
        return found

    def result_of(self, record: Summary) -> Selection:
        """Return the one result that a record is part of."""
        same = {name: getattr(record, name) for name in ("run", "brick", "context", "model", "system", "runtime")}
        found = self.results(equal(**same), order=())
        return next(
            one for place in range(len(found)) if record.id in (one := found[place : place + 1]).records.values("id")
        )

    def records(
        self, kind: type[AnyRecord], query: QueryInstance | None = None, *, own: bool = False
    ) -> list[AnyRecord]:
        """Return the records of a kind that match a query on their fields, in the order in which they were stored.

        Imported records come before the own ones, which count. `own` leaves them out.
        """
        rows = self._rows_of(kind, query)
        trust = self.generation.index.trust(rows)
        rows = rows[trust == trust_in(OWN)] if own else rows[np.argsort(trust, kind="stable")]
        return self._read(kind, rows)

    def least_first(self, kind: type[AnyRecord], query: QueryInstance | None = None) -> list[AnyRecord]:
        """Return dated records by precedence, the last of which counts: own ones before imported ones, then newer ones.

        See `LEAST_FIRST`.
        """
        rows, index = self._rows_of(kind, query), self.generation.index
        return self._read(kind, rows[np.lexsort((index.column("when")[rows], index.trust(rows)))])

    def _rows_of(self, kind: type[Any], query: QueryInstance | None) -> Rows:
        return matching_rows(query or all_of([]), TableFields(self.generation, TABLE_OF[kind]))

    def _read(self, kind: type[AnyRecord], rows: Rows) -> list[AnyRecord]:
        found: list[AnyRecord] = []
        for row in rows.tolist():
            # The store reports damaged records.
            with suppress(DamagedResultError):
                found.append(cast(AnyRecord, self.generation.record(row)))
        return found

    def samples_ms(self, result: Summary) -> tuple[float, ...]:
        """Return the samples of a result."""
        return self.select(equal(id=result.id)).result(0).samples_ms

    def systems(self) -> tuple[System, ...]:
        """Return the systems, each as described last."""
        return tuple({it.id: it for it in self.records(System)}.values())

    def runtimes(self) -> tuple[RuntimeRecord, ...]:
        """Return the runtimes, each as described last."""
        return tuple({it.id: it for it in self.records(RuntimeRecord)}.values())

    def peaks(self) -> tuple[Peaks, ...]:
        """Return the peaks of each system at each number of threads, as measured last."""
        return tuple({(it.system, it.threads): it for it in self.least_first(Peaks)}.values())

    def proofs_on(self, system: str) -> tuple[Proof, ...]:
        """Return the what-ifs that were proved on a system, the newest proof first."""
        return tuple(reversed(self.least_first(Proof, equal(system=system))))

    def load_tests_of(self, model: str, system: str) -> tuple[LoadTest, ...]:
        """Return the scenarios of a model, by its key, that were measured on a system, the newest first."""
        return tuple(reversed(self.least_first(LoadTest, equal(model=model, system=system))))

    def load_test(self, uuid: str) -> LoadTest | None:
        """Return a measured scenario by its UUID; None if there is none."""
        row = self.generation.index.row_of_uuid(uuid)
        found = None if row is None else self.generation.record(row)
        return found if isinstance(found, LoadTest) else None

    def provenance_of(self, run: str, runtime: str) -> Provenance | None:
        """Return where the results of a run on a runtime come from, as recorded last.

        Proofs and load tests have their own UUID as their run. None: the store does not know.
        """
        return next(reversed(self.least_first(Provenance, equal(run=run, runtime=runtime))), None)

    def source_of(self, uuid: str) -> Source | None:
        """Return the file that a record was imported from; None if it was not imported."""
        found = [it for it in self.records(Import) if uuid in it.records]
        return Source(found[-1].file, found[-1].signer) if found else None

    def runs(self) -> tuple[Run, ...]:
        """Return the runs, each in its last state."""
        return tuple({it.id: it for it in self.least_first(Run)}.values())

    def add(self, *records: Record) -> int:
        """Store records durably, skip those whose UUID is known, and return the number of new ones."""
        return self.add_imported(records, None)

    def add_imported(self, records: Iterable[Record], source: Source | None) -> int:
        """Store records of a file like `add`, and in the same step that they come from it."""
        with self.storage.locked() as generation:
            new: dict[str, JournalEntry] = {}
            for record in records:
                document = fields_of(record)
                if document["uuid"] not in new and generation.index.row_of_uuid(document["uuid"]) is None:
                    new[document["uuid"]] = self._entry(record, document)
            entries = list(new.values())
            # The key of a brick is the hash of its form: it is the same wherever it comes from.
            if source is not None and (marked := [uuid for uuid, it in new.items() if it.table != "bricks"]):
                come = Import(when=utc_now(), file=source.file, signer=source.signer, records=tuple(marked))
                stated = self._entry(come, fields_of(come))
                # First, as only the beginning of a torn write stays; and last, where earlier versions look for it.
                entries = [stated, *entries, stated]
            self.storage.append(entries)
        return len(new)

    def _entry(self, record: Record, document: Document) -> JournalEntry:
        table = TABLE_OF[type(record)]
        return JournalEntry(EntryKind.PUT, table, self.table(table).next_id(), document)

    def ids(self, *tables: str) -> list[str]:
        """Return the UUIDs of the records in these tables."""
        index = self.generation.index
        return [uuid.hex() for uuid in index.column("uuid")[index.rows_of(*tables)].tolist()]

    def delete(self, uuids: Iterable[str]) -> int:
        """Remove records durably and return how many there were.

        Runs stay with their provenance. That of a proof or a load test goes with it.
        """
        with self.storage.locked() as generation:
            index = generation.index
            rows = {uuid: row for uuid in uuids if (row := index.row_of_uuid(uuid)) is not None}
            own = [code for it in rows if (code := index.vocabularies["run"].code(it)) is not None]
            about = index.rows_of("provenance") if own else np.zeros(0, np.intp)
            about = about[np.isin(index.column("run")[about], own)]
            removed = sorted({*rows.values(), *about.tolist()})
            self.storage.append(JournalEntry(EntryKind.REMOVE, *generation.key(row)) for row in removed)
        return len(rows)

    def correct_dates(self) -> int:
        """Date the records from the future like those that were stored before them, and return how many there were."""
        with self.storage.locked() as generation:
            index, now = generation.index, datetime.now(timezone.utc)
            rows = generation.readable(index.dated_after(now).tolist())
            entries = []
            for row in rows:
                entry, when = generation.entry(row), to_iso(min(int(index.column("when")[row]), since_epoch(now)))
                document = {**(entry.document or {}), "when": when}
                if "started" in document:
                    document["started"] = min(when, document["started"])
                entries.append(entry._replace(document=document))
            self.storage.append(entries)
        return len(rows)

    def restore(self, deleted: Selection) -> int:
        """Store the records of deleted results again and return how many; damaged ones are left out.

        A deletion only marks a record. Its generation keeps its files open, even over a compaction.
        """
        known = {uuid: Source(it.file, it.signer) for it in self.records(Import) for uuid in it.records}
        found: dict[Source | None, list[Record]] = {}
        for row, uuid, origin in zip(deleted.rows.tolist(), *map(deleted.values, ("id", ORIGIN_COLUMN)), strict=True):
            with suppress(DamagedResultError):
                record = deleted.generation.stored_record(row)
                source = None if origin == OWN else known.get(uuid, Source("", signer_of(origin)))
                found.setdefault(source, []).append(record)
        return sum(self.add_imported(records, source) for source, records in found.items())

    def _number_threads(self) -> None:
        """Replace records of earlier versions, which left the number of threads to the framework."""
        if not self._unnumbered():
            return
        with self.storage.locked() as generation:
            unnumbered, systems = self._unnumbered(), by_id(self.systems())
            for old in self.records(RuntimeRecord):
                used_on = {it.system for it in unnumbered if it.runtime == old.id}
                self.add(*(each for name in used_on for each in numbered([old], [systems[name]])))
            entries = []
            for it in unnumbered:
                with suppress(DamagedResultError):
                    (record,) = numbered([generation.stored_record(it.row)], [systems[it.system]])
                    entries.append(JournalEntry(EntryKind.PUT, *generation.key(it.row), fields_of(record)))
            self.storage.append(entries)
            left = self._by_default()
            unused = {it.runtime for it in left} - {it.runtime for it in left if it.system}
            self.storage.append(
                JournalEntry(EntryKind.REMOVE, *generation.key(it.row)) for it in left if it.runtime in unused
            )

    def _unnumbered(self) -> list[_RowByDefault]:
        """Return the rows of results and the like that are to get the number of threads of a known system."""
        found = self._by_default()
        systems = by_id(self.systems()) if found else {}
        return [
            it for it in found if numbered_identity(it.runtime, _processors_then(systems.get(it.system))) != it.runtime
        ]

    def _by_default(self) -> list[_RowByDefault]:
        """Return the rows with a runtime that left the number of threads to the framework."""
        index = self.generation.index
        codes = [code for code, text in enumerate(index.vocabularies["runtime"].texts) if THREADS_OF_FRAMEWORK in text]
        rows = np.flatnonzero(np.isin(index.column("runtime"), codes) & index.column("alive"))
        ways = (values_of(index, name, rows) for name in ("runtime", "system"))
        return list(map(_RowByDefault, rows.tolist(), *ways))

    def compact(self) -> Path:
        """Write everything into one file that plain TinyDB opens, and return its path."""
        return self.storage.compact()

    def table(self, name: str, **options: Any) -> IndexedTable:
        """Return a table; those of dlbricks take records only."""
        return cast(IndexedTable, super().table(name, **options))

    def tables(self) -> set[str]:
        """Return the names of all tables."""
        self.refresh()
        return self.generation.index.tables

    def drop_tables(self) -> None:
        """Remove all tables."""
        for name in self.tables():
            self.drop_table(name)
        self._tables.clear()

    def drop_table(self, name: str) -> None:
        """Remove a table."""
        self._tables.pop(name, None)
        with self.storage.locked() as generation:
            if name in generation.index.tables:
                self.storage.append([JournalEntry(EntryKind.DROP, name)])


def open_results(data: os.PathLike[str] | str | None = None) -> ResultsDatabase:
    """Open the results of a data folder, the user's own by default, as a TinyDB database that is live and durable."""
    return ResultsDatabase(data_folder(None if data is None else os.fspath(data)).store)
