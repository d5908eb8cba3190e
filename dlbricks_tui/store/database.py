"""The results of dlbricks as a TinyDB database."""

import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np
from tinydb import TinyDB
from tinydb.queries import QueryInstance

from dlbricks_tui.folders import data_folder
from dlbricks_tui.store.columns import Summary
from dlbricks_tui.store.documents import TABLE_OF, TABLES, fields_of
from dlbricks_tui.store.entries import EntryKind, JournalEntry
from dlbricks_tui.store.errors import DamagedResultError
from dlbricks_tui.store.files import Damage
from dlbricks_tui.store.filters import all_of, equal, parse_filter
from dlbricks_tui.store.generation import Generation
from dlbricks_tui.store.journal import JournalStorage
from dlbricks_tui.store.middlewares import ChecksumMiddleware, SchemaMiddleware
from dlbricks_tui.store.query_masks import TableFields, matching_rows
from dlbricks_tui.store.records import LoadTest, Peaks, Proof, Provenance, Record, Run, Runtime, System
from dlbricks_tui.store.selections import NEWEST_FIRST, Selection, SortOrder, parse_order, select
from dlbricks_tui.store.tables import IndexedTable, RecordTable

AnyRecord = TypeVar("AnyRecord", bound=Record)


def results_storage(folder: Path) -> JournalStorage:
    """Return the storage of a results database: a journal whose lines have a checksum and a schema."""
    return cast(JournalStorage, SchemaMiddleware(ChecksumMiddleware(JournalStorage))(folder))


class ResultsDatabase(TinyDB):
    """A TinyDB database with a table for each kind of record, beside any others. Use it from one thread at a time.

    All calls of TinyDB see what other processes have stored. `select` and `records` read the state of the last
    `refresh`, so that several of them agree.
    """

    table_class = IndexedTable  # type: ignore[assignment]
    default_storage_class = staticmethod(results_storage)  # type: ignore[assignment]

    def __init__(self, folder: Path, **options: Any) -> None:
        super().__init__(Path(folder), **options)
        self.refresh()

    def __enter__(self) -> "ResultsDatabase":
        return self

    @property
    def storage(self) -> JournalStorage:
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

    def refresh(self) -> bool:
        """Read the changes that this and other processes have made since, and return True if there were any."""
        return self.storage.refresh()

    def select(self, *filters: str | QueryInstance, order: Sequence[str | SortOrder] = NEWEST_FIRST) -> Selection:
        """Return the results that pass all filters, newest first unless another order is given.

        A filter is a query on the columns of `dlbricks results list`, or the text of one, such as `system=c5.xlarge`.
        """
        queries = [parse_filter(it) if isinstance(it, str) else it for it in filters]
        orders = [parse_order(it) if isinstance(it, str) else it for it in order]
        return select(self.generation, all_of(queries), orders)

    def records(self, kind: type[AnyRecord], query: QueryInstance | None = None) -> list[AnyRecord]:
        """Return the records of a kind that match a query on their fields, in the order in which they were stored."""
        table = TABLE_OF[cast(type[Record], kind)]
        found: list[AnyRecord] = []
        fields = TableFields(self.generation, table)
        for row in matching_rows(query or all_of([]), fields).tolist():
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

    def runtimes(self) -> tuple[Runtime, ...]:
        """Return the runtimes, each as described last."""
        return tuple({it.id: it for it in self.records(Runtime)}.values())

    def peaks(self) -> tuple[Peaks, ...]:
        """Return the peaks of each system at each number of threads, as measured last."""
        measured = sorted(self.records(Peaks), key=lambda peaks: peaks.when)
        return tuple({(it.system, it.threads): it for it in measured}.values())

    def proofs_of(self, model: str, system: str) -> tuple[Proof, ...]:
        """Return the what-ifs of a model, by its key, that were proved on a system, the newest proof first."""
        found = self.records(Proof, equal(model=model, system=system))
        return tuple(sorted(found, key=lambda proof: proof.when, reverse=True))

    def load_tests_of(self, model: str, system: str) -> tuple[LoadTest, ...]:
        """Return the scenarios of a model, by its key, that were measured on a system, the newest first."""
        found = self.records(LoadTest, equal(model=model, system=system))
        return tuple(sorted(found, key=lambda test: test.when, reverse=True))

    def load_test(self, uuid: str) -> LoadTest | None:
        """Return a measured scenario by its UUID; None if there is none."""
        row = self.generation.index.row_of_uuid(uuid)
        found = None if row is None else self.generation.record(row)
        return found if isinstance(found, LoadTest) else None

    def provenance_of(self, run: str, runtime: str) -> Provenance | None:
        """Return where the results of a run on a runtime come from, as recorded last.

        Proofs and load tests have their own UUID as their run. None: the store does not know.
        """
        found = self.records(Provenance, equal(run=run, runtime=runtime))
        return max(found, key=lambda it: it.when, default=None)

    def runs(self) -> tuple[Run, ...]:
        """Return the runs, each in its last state."""
        return tuple({it.id: it for it in sorted(self.records(Run), key=lambda run: run.when)}.values())

    def add(self, *records: Record) -> int:
        """Store records durably, skip those whose UUID is known, and return the number of new ones."""
        with self.storage.locked() as generation:
            new: dict[str, JournalEntry] = {}
            for record in records:
                table, document = TABLE_OF[type(record)], fields_of(record)
                uuid = document["uuid"]
                if uuid not in new and generation.index.row_of_uuid(uuid) is None:
                    new[uuid] = JournalEntry(EntryKind.PUT, table, self.table(table).next_id(), document)
            self.storage.append(new.values())
        return len(new)

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

    def restore(self, deleted: Selection) -> int:
        """Store deleted results again and return how many; damaged ones are left out.

        A deletion only marks a record. Its generation keeps its files open, even over a compaction.
        """
        found: list[Record] = []
        for position in range(len(deleted)):
            with suppress(DamagedResultError):
                found.append(deleted.result(position))
        return self.add(*found)

    def compact(self) -> Path:
        """Write everything into one file that plain TinyDB opens, and return its path."""
        return self.storage.compact()

    def table(self, name: str, **options: Any) -> IndexedTable:
        """Return a table; those of dlbricks take records only."""
        if name in TABLES and name not in self._tables:
            self._tables[name] = RecordTable(self.storage, name, **options)
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
