"""The store as a TinyDB database: every TinyDB query and change, durably, on the live store.

TinyDB's own storage writes the whole file at each change, in place and without a lock. This one writes what changed to
the journal. It still reads everything at each call: what runs often asks `Store` itself.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import tinydb

from dlbricks_tui.store.documents import TABLES, BrokenDocumentError, Sealed, seal, to_document, to_record, unseal
from dlbricks_tui.store.errors import StoreError
from dlbricks_tui.store.migrations import SCHEMA, Document
from dlbricks_tui.store.records import new_uuid
from dlbricks_tui.store.store import Store

Tables = dict[str, dict[str, Document]]

# So many digits of its UUID number a document: they stay the same when others come and go.
_ID_DIGITS = 12


def open_tinydb(folder: Path) -> tinydb.TinyDB:
    """A TinyDB database on a store folder, with a table for each kind of record."""
    return tinydb.TinyDB(folder, storage=StoreStorage)


class StoreStorage(tinydb.Storage):
    """What TinyDB asks of a storage, on a store folder."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._store = Store(folder)
        # What was read last, by table and number: the difference to it is what TinyDB has changed. A record that
        # another process adds meanwhile is no difference, and stays.
        self._known: dict[tuple[str, str], bytes] = {}

    def read(self) -> Tables | None:
        """All tables; None, as TinyDB wants it, when there are none."""
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
        """Stores what differs from what was read; documents must be records of their table."""
        if not data:
            # TinyDB drops all tables without having read them.
            self.read()
        documents = {(table, number): dict(data[table][number]) for table in data for number in data[table]}
        known = {key: unseal(text) for key, text in self._known.items()}
        new = {key: document for key, document in documents.items() if document != known.get(key)}
        gone = [document["uuid"] for key, document in known.items() if document != documents.get(key)]
        self._store.change(add=list(_records(new)), delete=gone)

    def close(self) -> None:
        """Gives the store back."""
        self._store.close()


def _records(documents: Mapping[tuple[str, str], Document]) -> Iterator[Sealed]:
    for (table, number), document in documents.items():
        uuid = f"{int(number):0{_ID_DIGITS}x}{new_uuid()[_ID_DIGITS:]}"
        try:
            yield seal(to_document(to_record({"uuid": uuid, **document, "schema": SCHEMA, "table": table})))
        except BrokenDocumentError as error:
            raise StoreError(f"document {number} of table {table} is no record of dlbricks: it {error}") from error


def _number_of(document: Document) -> str:
    return str(int(document["uuid"][:_ID_DIGITS], 16))
