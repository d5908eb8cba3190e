"""Tables of the database: TinyDB's tables, whose calls use the index instead of reading the whole file."""

from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from contextlib import suppress
from typing import Any, cast

import numpy as np
from tinydb.queries import QueryLike
from tinydb.table import Document, Table

from dlbricks_tui.store.columns import TableFields, columns_of_table, matches, matching_rows
from dlbricks_tui.store.documents import BrokenDocumentError, DamagedResultError, StoreError, fields_of, record_of
from dlbricks_tui.store.files import EntryKind, JournalEntry, line_of
from dlbricks_tui.store.generation import Generation
from dlbricks_tui.store.index import Rows
from dlbricks_tui.store.journal import JournalStorage
from dlbricks_tui.store.records import new_uuid
from dlbricks_tui.store.selections import noop

Fields = Mapping[str, Any] | Callable[[MutableMapping[str, Any]], None]


class TableContents(MutableMapping[Any, dict[str, Any]]):
    """The documents of a table by number, read when asked for; changes are kept until they are stored.

    It iterates over those documents only that a change may concern.
    """

    def __init__(self, generation: Generation, table: str, concerned: Sequence[int]) -> None:
        self._generation = generation
        self._table = table
        self._concerned = concerned
        self._cleared = False
        # Documents that were read or set, None for removed ones.
        self._open: dict[int, dict[str, Any] | None] = {}

    def __contains__(self, key: object) -> bool:
        number = _number(key)
        if number is None:
            return False
        return self._open[number] is not None if number in self._open else self._row(number) is not None

    def __getitem__(self, key: Any) -> dict[str, Any]:
        number = _number(key)
        if number is not None and number not in self._open:
            row = self._row(number)
            # The store reports damaged documents.
            with suppress(DamagedResultError):
                self._open[number] = None if row is None else self._generation.document(row)
        document = None if number is None else self._open.get(number)
        if document is None:
            raise KeyError(key)
        return document

    def __setitem__(self, key: Any, document: dict[str, Any]) -> None:
        self._open[int(key)] = document

    def __delitem__(self, key: Any) -> None:
        if key not in self:
            raise KeyError(key)
        self._open[int(key)] = None

    def __iter__(self) -> Iterator[int]:
        return iter(self._concerned)

    def __len__(self) -> int:
        return len(self._concerned)

    def clear(self) -> None:
        self._cleared, self._open = True, {}

    def changes(self) -> Iterator[JournalEntry]:
        """Yield the changes that were made."""
        # A table without documents exists, too.
        if self._cleared or not (self._open or self._table in self._generation.index.tables):
            yield JournalEntry(EntryKind.CLEAR, self._table)
        for number, document in self._open.items():
            row = self._row(number)
            if document is None:
                if row is not None:
                    yield JournalEntry(EntryKind.REMOVE, self._table, number)
                continue
            entry = JournalEntry(EntryKind.PUT, self._table, number, document)
            if row is None or line_of(entry) != self._generation.line(row):
                yield entry

    def _row(self, number: int) -> int | None:
        return None if self._cleared else self._generation.index.row_of(self._table, number)


def _number(key: object) -> int | None:
    """Return the number that a key of TinyDB stands for, None if it is none."""
    try:
        return int(str(key))
    except ValueError:
        return None


class IndexedTable(Table):
    """A table of any documents."""

    def __init__(self, storage: Any, name: str, **options: Any) -> None:
        self._seen: object = None
        # The documents that the change in progress may concern.
        self._concerned: list[int] = []
        # The highest number after the last change by this table.
        self._last_id = 0
        super().__init__(storage, name, **options)

    def insert(self, document: Mapping[str, Any]) -> int:
        """Insert a document and return its number, which no other writer takes."""
        with self.storage.locked():
            return super().insert(document)

    def insert_multiple(self, documents: Iterable[Mapping[str, Any]]) -> list[int]:
        """Insert documents in one durable step, and return their numbers."""
        with self.storage.locked():
            return super().insert_multiple(documents)

    def search(self, cond: QueryLike) -> list[Document]:
        """Return the documents that match a query."""
        generation = self._latest()
        known = self._query_cache.get(cond)
        if known is not None:
            return known[:]
        found = list(self._documents(generation, cond))
        if getattr(cond, "is_cacheable", lambda: True)():
            self._query_cache[cond] = found[:]
        return found

    def get(self, cond: QueryLike | None = None, doc_id: int | None = None, doc_ids: list[int] | None = None) -> Any:
        """Return the document with a number, the documents with several numbers, or the first that matches a query."""
        generation = self._latest()
        if doc_id is not None:
            return next(self._numbered(generation, [doc_id]), None)
        if doc_ids is not None:
            return list(self._numbered(generation, doc_ids))
        if cond is not None:
            return next(self._documents(generation, cond), None)
        raise RuntimeError("You have to pass either cond or doc_id or doc_ids")

    def count(self, cond: QueryLike) -> int:
        """Return the number of documents that match a query."""
        if not columns_of_table(self.name):
            # The documents have to be read, so the cache of TinyDB keeps them.
            return super().count(cond)
        return len(self._rows(self._latest(), cond))

    def update(self, fields: Fields, cond: QueryLike | None = None, doc_ids: Iterable[int] | None = None) -> list[int]:
        """Change all documents, those that match a query, or those with these numbers; return their numbers."""
        with self.storage.locked() as generation:
            if doc_ids is None:
                doc_ids = self._ids(generation, [noop() if cond is None else cond])
            return super().update(fields, doc_ids=doc_ids)

    def update_multiple(self, updates: Iterable[tuple[Fields, QueryLike]]) -> list[int]:
        """Make each change to the documents that match its query; return their numbers."""
        updates = list(updates)
        with self.storage.locked() as generation:
            # A document that no query matches at first stays unchanged, so no query matches it later.
            self._concerned = self._ids(generation, [cond for _, cond in updates])
            try:
                return super().update_multiple(updates)
            finally:
                self._concerned = []

    def upsert(self, document: Mapping[str, Any], cond: QueryLike | None = None) -> list[int]:
        """Change the documents that match a query, or insert one if there are none; return their numbers."""
        with self.storage.locked():
            return super().upsert(document, cond)

    def remove(self, cond: QueryLike | None = None, doc_ids: Iterable[int] | None = None) -> list[int]:
        """Remove the documents that match a query, or those with these numbers; return their numbers."""
        with self.storage.locked() as generation:
            if cond is not None and doc_ids is None:
                rows = self._rows(generation, cond)
                return super().remove(doc_ids=generation.index.column("id")[rows].tolist())
            return super().remove(cond, doc_ids)

    def __len__(self) -> int:
        return len(self._latest().index.rows_of(self.name))

    def __iter__(self) -> Iterator[Document]:
        generation = self._latest()
        for row in generation.index.rows_of(self.name).tolist():
            with suppress(DamagedResultError):
                yield self._document(generation, row)

    @property
    def storage(self) -> JournalStorage:
        """The storage."""
        return cast(JournalStorage, self._storage)

    def _latest(self) -> Generation:
        """Return all documents of now; what others have changed is no longer in the cache of queries."""
        self.storage.refresh()
        generation = self.storage.generation
        seen = (generation, generation.covered)
        if self._seen != seen:
            self.clear_cache()
            self._seen = seen
        return generation

    def _fields(self, generation: Generation) -> TableFields:
        return TableFields(generation, self.name)

    def _rows(self, generation: Generation, cond: QueryLike) -> Rows:
        return matching_rows(cond, self._fields(generation))

    def _documents(self, generation: Generation, cond: QueryLike) -> Iterator[Document]:
        for match in matches(cond, self._fields(generation)):
            with suppress(DamagedResultError):
                yield self._document(generation, *match)

    def _numbered(self, generation: Generation, numbers: Iterable[int]) -> Iterator[Document]:
        rows = {generation.index.row_of(self.name, number) for key in numbers if (number := _number(key)) is not None}
        for row in sorted(rows - {None}, key=lambda row: int(generation.index.value("order", cast(int, row)))):
            with suppress(DamagedResultError):
                yield self._document(generation, cast(int, row))

    def _document(self, generation: Generation, row: int, known: dict[str, Any] | None = None) -> Document:
        document = generation.document(row) if known is None else known
        return self.document_class(document, self.document_id_class(_id_at(generation, row)))

    def _ids(self, generation: Generation, conditions: Iterable[QueryLike]) -> list[int]:
        """Return the numbers of the documents that match any of the queries and can be read, in their order."""
        found = [self._rows(generation, cond) for cond in conditions]
        rows = self._fields(generation).in_order(np.unique(np.concatenate(found))) if found else np.zeros(0, np.intp)
        return [_id_at(generation, row) for row in generation.readable(rows.tolist())]

    def next_id(self) -> int:
        """Return the number of the next document, and count on; the caller holds the lock."""
        index = self.storage.generation.index
        # TinyDB sets it to None where it is to be found anew.
        free: int | None = cast(Any, self)._next_id
        last = index.last_id(self.name)
        if free is None or (free <= last and (last != self._last_id or index.row_of(self.name, free) is not None)):
            # Unknown yet, or perhaps taken by another writer.
            numbers = index.column("id")[index.rows_of(self.name)]
            after = int(numbers.max()) + 1 if len(numbers) else 1
            free = after if free is None else max(after, free)
        cast(Any, self)._next_id = free + 1
        return free

    _get_next_id = next_id

    def _update_table(self, updater: Callable[[Any], None]) -> None:
        with self.storage.locked() as generation:
            contents = TableContents(generation, self.name, self._concerned)
            updater(contents)
            self.storage.append([self._checked(entry) for entry in contents.changes()])
            self._last_id = generation.index.last_id(self.name)
        self.clear_cache()

    def _checked(self, entry: JournalEntry) -> JournalEntry:
        return entry


class RecordTable(IndexedTable):
    """A table of records of dlbricks, one of `TABLES`: other documents are refused."""

    def _checked(self, entry: JournalEntry) -> JournalEntry:
        if entry.action is not EntryKind.PUT or entry.document is None:
            return entry
        refused = f"document {entry.doc_id} of table {self.name} is not a record of dlbricks: it"
        try:
            document = fields_of(record_of(self.name, {"uuid": new_uuid(), **entry.document}))
        except BrokenDocumentError as error:
            raise StoreError(f"{refused} {error}") from error
        row = self.storage.generation.index.row_of_uuid(document["uuid"])
        if row is not None and row != self.storage.generation.index.row_of(self.name, entry.doc_id):
            raise StoreError(f"{refused} has the uuid {document['uuid']}, which another document has")
        return entry._replace(document=document)


def _id_at(generation: Generation, row: int) -> int:
    return int(generation.index.value("id", row))
