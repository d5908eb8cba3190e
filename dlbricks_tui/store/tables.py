"""Tables of the database: TinyDB's tables, whose calls use the index instead of reading the whole file."""

from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from contextlib import suppress
from typing import Any, cast

import numpy as np
from tinydb.queries import QueryLike
from tinydb.table import Document, Table

from dlbricks_tui.store.columns import TableFields, matches, matching_rows
from dlbricks_tui.store.documents import (
    TABLES,
    BrokenDocumentError,
    DamagedResultError,
    StoreError,
    fields_of,
    record_of,
)
from dlbricks_tui.store.files import EntryKind, JournalEntry, line_of
from dlbricks_tui.store.generation import Generation
from dlbricks_tui.store.index import Rows
from dlbricks_tui.store.journal import JournalStorage
from dlbricks_tui.store.records import new_uuid
from dlbricks_tui.store.selections import noop

Fields = Mapping[str, Any] | Callable[[MutableMapping[str, Any]], None]


class IndexedTable(Table):
    """A table of records of dlbricks, one of `TABLES`, or of any other documents."""

    # The number of the next document; TinyDB sets it to None where it is to be found anew.
    _next_id: int | None  # type: ignore[assignment]

    def __init__(self, storage: Any, name: str, persist_empty: bool = False, **options: Any) -> None:
        # The highest number after the last change by this table.
        self._last_id = 0
        super().__init__(storage, name, **options)
        if persist_empty:
            self.truncate()

    def insert(self, document: Mapping[str, Any]) -> int:
        """Insert a document and return its number, which no other writer takes."""
        with self.storage.locked():
            if isinstance(document, self.document_class):
                # The number of the next document follows the highest one.
                self._next_id = None
            return self.insert_multiple([document])[0]

    def insert_multiple(self, documents: Iterable[Mapping[str, Any]]) -> list[int]:
        """Insert documents in one durable step, and return their numbers."""
        with self.storage.locked() as generation:
            numbers: list[int] = []
            added: dict[int, dict[str, Any]] = {}
            for document in documents:
                if not isinstance(document, Mapping):
                    raise ValueError("Document is not a Mapping")
                if isinstance(document, self.document_class):
                    number = document.doc_id
                    if number in added or generation.index.row_of(self.name, number) is not None:
                        raise ValueError(f"Document with ID {number} already exists")
                else:
                    number = self.next_id()
                numbers.append(number)
                added[number] = dict(document)
            self._store(JournalEntry(EntryKind.PUT, self.name, *it) for it in added.items())
            return numbers

    def search(self, cond: QueryLike) -> list[Document]:
        """Return the documents that match a query."""
        return list(self._matching(cond))

    def get(self, cond: QueryLike | None = None, doc_id: int | None = None, doc_ids: list[int] | None = None) -> Any:
        """Return the document with a number, the documents with several numbers, or the first that matches a query."""
        if doc_id is not None:
            return next(iter(self.get(doc_ids=[doc_id])), None)
        if doc_ids is not None:
            generation = self._latest()
            rows = np.unique(np.array(self._rows_with(generation, doc_ids), dtype=np.intp))
            return list(self._read(generation, TableFields(generation, self.name).in_order(rows).tolist()))
        if cond is not None:
            return next(self._matching(cond), None)
        raise RuntimeError("You have to pass either cond or doc_id or doc_ids")

    def count(self, cond: QueryLike) -> int:
        """Return the number of documents that match a query."""
        return len(self._rows(self._latest(), cond))

    def update(self, fields: Fields, cond: QueryLike | None = None, doc_ids: Iterable[int] | None = None) -> list[int]:
        """Change all documents, those that match a query, or those with these numbers; return their numbers."""
        if doc_ids is None:
            return self.update_multiple([(fields, noop() if cond is None else cond)])
        with self.storage.locked() as generation:
            return self._change(generation, self._rows_with(generation, doc_ids), [(fields, noop())])

    def update_multiple(self, updates: Iterable[tuple[Fields, QueryLike]]) -> list[int]:
        """Make each change to the documents that match its query; return their numbers."""
        updates = list(updates)
        with self.storage.locked() as generation:
            # A document that no query matches at first stays unchanged, so no query matches it later.
            found = [self._rows(generation, cond) for _, cond in updates]
            rows = np.unique(np.concatenate([*found, np.zeros(0, np.intp)]))
            in_order = TableFields(generation, self.name).in_order(rows)
            return self._change(generation, generation.readable(in_order.tolist()), updates)

    def upsert(self, document: Mapping[str, Any], cond: QueryLike | None = None) -> list[int]:
        """Change the documents that match a query, or insert one if there are none; return their numbers."""
        with self.storage.locked():
            return super().upsert(document, cond)

    def remove(self, cond: QueryLike | None = None, doc_ids: Iterable[int] | None = None) -> list[int]:
        """Remove the documents that match a query, or those with these numbers; return their numbers."""
        with self.storage.locked() as generation:
            if doc_ids is not None:
                rows = self._rows_with(generation, doc_ids)
            elif cond is not None:
                rows = self._rows(generation, cond).tolist()
            else:
                raise RuntimeError("Use truncate() to remove all documents")
            entries = [JournalEntry(EntryKind.REMOVE, *generation.key(row)) for row in rows]
            self._store(entries)
            return [it.doc_id for it in entries]

    def truncate(self) -> None:
        """Remove all documents."""
        with self.storage.locked():
            self._store([JournalEntry(EntryKind.CLEAR, self.name)])
            self._next_id = None

    def __len__(self) -> int:
        return len(self._latest().index.rows_of(self.name))

    def __iter__(self) -> Iterator[Document]:
        generation = self._latest()
        return self._read(generation, generation.index.rows_of(self.name).tolist())

    @property
    def storage(self) -> JournalStorage:  # type: ignore[override]
        """The storage."""
        return cast(JournalStorage, self._storage)

    def _latest(self) -> Generation:
        """Return all documents of now."""
        self.storage.refresh()
        return self.storage.generation

    def _rows(self, generation: Generation, cond: QueryLike) -> Rows:
        return matching_rows(cond, TableFields(generation, self.name))

    def _rows_with(self, generation: Generation, numbers: Iterable[object]) -> list[int]:
        """Return the rows of the documents with these numbers, as far as there are any."""
        # Callers of TinyDB may ask for anything.
        asked = (str(number) for number in numbers)
        rows = (generation.index.row_of(self.name, int(it)) for it in asked if it.removeprefix("-").isdecimal())
        return [row for row in rows if row is not None]

    def _matching(self, cond: QueryLike) -> Iterator[Document]:
        generation = self._latest()
        return self._read(generation, matches(cond, TableFields(generation, self.name)))

    def _read(self, generation: Generation, rows: Iterable[int]) -> Iterator[Document]:
        for row in rows:
            # The store reports damaged documents.
            with suppress(DamagedResultError):
                entry = generation.entry(row)
                yield self.document_class(entry.document or {}, self.document_id_class(entry.doc_id))

    def next_id(self) -> int:
        """Return the number of the next document, and count on; the caller holds the lock."""
        index = self.storage.generation.index
        free = self._next_id
        last = index.last_id(self.name)
        if free is None or (free <= last and (last != self._last_id or index.row_of(self.name, free) is not None)):
            # Unknown yet, or perhaps taken by another writer.
            numbers = index.column("id")[index.rows_of(self.name)]
            after = int(numbers.max()) + 1 if len(numbers) else 1
            free = after if free is None else max(after, free)
        self._next_id = free + 1
        return free

    def _change(
        self, generation: Generation, rows: Iterable[int], updates: Sequence[tuple[Fields, QueryLike]]
    ) -> list[int]:
        """Make each change to those of these documents that match its query; return their numbers."""
        numbers: list[int] = []
        changed: dict[int, JournalEntry] = {}
        for row in rows:
            entry = changed.setdefault(row, generation.entry(row))
            document = cast(dict[str, Any], entry.document)
            for fields, cond in updates:
                if cond(document):
                    numbers.append(entry.doc_id)
                    if callable(fields):
                        fields(document)
                    else:
                        document.update(fields)
        self._store(it for row, it in changed.items() if line_of(it) != generation.line(row))
        return numbers

    def _store(self, entries: Iterable[JournalEntry]) -> None:
        """Make changes durably; from then on the table exists, if only without documents."""
        index = self.storage.generation.index
        # The numbers of the changed documents, by their UUIDs.
        changed: dict[str, int] = {}
        checked = [self._checked(entry, changed) for entry in entries]
        if not checked and self.name not in index.tables:
            checked.append(JournalEntry(EntryKind.CLEAR, self.name))
        self.storage.append(checked)
        self._last_id = index.last_id(self.name)

    def _checked(self, entry: JournalEntry, changed: dict[str, int]) -> JournalEntry:
        """Return a change as it is stored; refuse what is no record in a table of dlbricks."""
        if self.name not in TABLES or entry.document is None:
            return entry
        refused = f"document {entry.doc_id} of table {self.name} is not a record of dlbricks: it"
        try:
            document = fields_of(record_of(self.name, {"uuid": new_uuid(), **entry.document}))
        except BrokenDocumentError as error:
            raise StoreError(f"{refused} {error}") from error
        index, uuid = self.storage.generation.index, document["uuid"]
        row = index.row_of_uuid(uuid)
        is_of_another = row is not None and row != index.row_of(self.name, entry.doc_id)
        if is_of_another or changed.setdefault(uuid, entry.doc_id) != entry.doc_id:
            raise StoreError(f"{refused} has the uuid {uuid}, which another document has")
        return entry._replace(document=document)
