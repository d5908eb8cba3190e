"""The store as a TinyDB database: all queries and changes of TinyDB, durably, on the live store.

TinyDB's own storage rewrites the whole file at each change, in place and without a lock. This one adds changes to the
journal. It reads everything at each call: use `Store` for frequent look-ups.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import tinydb

from dlbricks_tui.store.documents import (
    SCHEMA,
    TABLES,
    BrokenDocumentError,
    Document,
    Sealed,
    seal,
    to_document,
    to_record,
    unseal,
)
from dlbricks_tui.store.errors import StoreError
from dlbricks_tui.store.records import new_uuid
from dlbricks_tui.store.store import Store

Tables = dict[str, dict[str, Document]]

# The number of a document is made of this many digits of its UUID, so that it never changes.
_ID_DIGITS = 12


def open_tinydb(folder: Path) -> tinydb.TinyDB:
    """Return a TinyDB database on a store folder, with a table for each kind of record."""
    return tinydb.TinyDB(folder, storage=StoreStorage)


class StoreStorage(tinydb.Storage):
    """A TinyDB storage on a store folder."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._store = Store(folder)
        # The documents read last, by table and number. TinyDB's changes are the difference to them; records that
        # another process adds meanwhile stay.
        self._known: dict[tuple[str, str], bytes] = {}

    def read(self) -> Tables | None:
        """Return all tables; None if there are none, as TinyDB expects."""
        self._store.refresh()
        generation = self._store.generation
        self._known = {}
        tables: Tables = {}
        for row in generation.index.rows_of(*TABLES).tolist():
            document = generation.document(row)
            table, number = document["table"], _number_of(document)
            self._known[table, number] = generation.raw(row)
            tables.setdefault(table, {})[number] = document
        return tables or None

    def write(self, data: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> None:
        """Store the differences to the last read; documents must be records of their table."""
        if not data:
            # TinyDB drops all tables without reading them first.
            self.read()
        documents = {(table, number): dict(data[table][number]) for table in data for number in data[table]}
        known = {key: unseal(text) for key, text in self._known.items()}
        new = {key: document for key, document in documents.items() if document != known.get(key)}
        gone = [document["uuid"] for key, document in known.items() if document != documents.get(key)]
        self._store.change(add=list(_records(new)), delete=gone)

    def close(self) -> None:
        """Close the store."""
        self._store.close()


def _records(documents: Mapping[tuple[str, str], Document]) -> Iterator[Sealed]:
    for (table, number), document in documents.items():
        uuid = f"{int(number):0{_ID_DIGITS}x}{new_uuid()[_ID_DIGITS:]}"
        try:
            yield seal(to_document(to_record({"uuid": uuid, **document, "schema": SCHEMA, "table": table})))
        except BrokenDocumentError as error:
            raise StoreError(f"document {number} of table {table} is not a record of dlbricks: it {error}") from error


def _number_of(document: Document) -> str:
    return str(int(document["uuid"][:_ID_DIGITS], 16))
