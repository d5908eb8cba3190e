"""Handing results on: one self-describing file, which is a TinyDB file like the store's own."""

import gzip
import hashlib
import json
import os
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from tempfile import TemporaryFile
from typing import BinaryIO

import numpy as np

from dlbricks_tui.atomic_write import replace_file
from dlbricks_tui.store.columns import Rows
from dlbricks_tui.store.conditions import Condition
from dlbricks_tui.store.documents import (
    HEAD,
    TABLES,
    BrokenDocumentError,
    Sealed,
    resealed,
    seal,
    to_document,
    to_record,
)
from dlbricks_tui.store.errors import ExchangeError, NewerStoreError
from dlbricks_tui.store.export_formats import ExportFormat, export_format, packed, write_rows
from dlbricks_tui.store.files import Damage, all_lines, document_on, write_tinydb_file
from dlbricks_tui.store.generation import Generation
from dlbricks_tui.store.migrations import SCHEMA, Document
from dlbricks_tui.store.plausibility import References, check_plausible
from dlbricks_tui.store.queries import Selection, select
from dlbricks_tui.store.records import BrickForm
from dlbricks_tui.store.store import Store

# Few enough that nobody waits long for the lock, many enough that the disk is not what takes the time.
_BATCH = 1000
_GZIP = b"\x1f\x8b"
_CHUNK = 1 << 20
# Results shrink to a third or a tenth. A file that unpacks to far more was made to fill the disk.
_MOST_EXPANSION = 30
_SMALL_BYTES = 64 << 20
_MOST_UNPACKED_BYTES = 4 << 30
# Plain TinyDB writes the whole file on one line. Small values take thirty times the memory of their text.
_LONGEST_LINE = 128 << 20
_MOST_WHOLE_VALUES = 8_000_000
_MOST_REFUSED = 10_000
# What a result refers to, and the table in which that is described.
_REFERENCES = {"brick": "bricks", "system": "systems", "runtime": "runtimes", "run": "runs"}


@dataclass(frozen=True, slots=True)
class Conflict:
    """A record that the store has in another form; both are kept, the imported one under an id of its own."""

    table: str
    stored: str
    imported: str


@dataclass(slots=True)
class ImportReport:
    """What became of the records of a file; conflicts are among the new ones."""

    new: int = 0
    known: int = 0
    conflicts: list[Conflict] = field(default_factory=list)
    refused: list[Damage] = field(default_factory=list)


def export_file(generation: Generation, conditions: Sequence[Condition], path: Path) -> int:
    """Write the results that meet the conditions in the format of the path's ending, and return how many.

    A JSON file has all that the results refer to, too, and without conditions everything that is stored. The same
    records give the same bytes, whatever store they come from.
    """
    form = export_format(path)
    results = select(generation, conditions)
    if form.is_table:
        _replace(path, lambda file: write_rows(file, results, form))
    elif conditions:
        _write(generation, _with_references(generation, results.rows), path, form)
    else:
        _write(generation, generation.index.rows_of(*TABLES), path, form)
    return len(results)


def export_selection(selection: Selection, path: Path) -> int:
    """Write these results in the format of the path's ending, and return how many."""
    form = export_format(path)
    if form.is_table:
        _replace(path, lambda file: write_rows(file, selection, form))
    else:
        _write(selection.generation, _with_references(selection.generation, selection.rows), path, form)
    return len(selection)


def _write(generation: Generation, rows: Rows, path: Path, form: ExportFormat) -> None:
    uuids = generation.index.column("uuid")[rows].view(">u8").reshape(-1, 2)
    times, tables = generation.index.column("when")[rows], generation.index.column("table")[rows]
    rows = rows[np.lexsort((uuids[:, 1], uuids[:, 0], times, tables))]

    def write(file: BinaryIO) -> None:
        with packed(file) if form is ExportFormat.PACKED_JSON else nullcontext(file) as target:
            write_tinydb_file(target, generation.texts(rows.tolist()), len(rows))

    _replace(path, write)


def _replace(path: Path, write: Callable[[BinaryIO], None]) -> None:
    try:
        replace_file(path, write)
    except OSError as error:
        raise ExchangeError(f"cannot write {path}: {error.strerror}; nothing was exported") from error


def import_file(store: Store, path: Path) -> ImportReport:
    """Store the records of an exported file, packed by gzip or not, or of one that plain TinyDB has written anew.

    A record that no measurement gives, or that refers to something unknown, is refused and named in the report.
    """
    report = ImportReport()
    try:
        with _opened(path) as file:
            documents = _documents(file, path, report, References.of(store.generation))
            while batch := list(islice(documents, _BATCH)):
                _take(store, batch, report)
    except BrokenDocumentError as error:
        raise ExchangeError(f"{path} {error}; {report.new} new records before it were imported") from error
    except OSError as error:
        raise ExchangeError(f"cannot read {path}: {error.strerror}") from error
    if report.refused and not report.new + report.known:
        raise ExchangeError(f"nothing was imported, as nothing in {path} can be read: {report.refused[0]}")
    return report


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    """Open the file, or what it holds where it is packed."""
    if not path.is_file() and path.exists() and not path.is_dir():
        # A pipe would keep the command waiting, a device would never end.
        raise ExchangeError(f"{path} is no regular file; name a file of `dlbricks results export`")
    with path.open("rb") as file:
        packed = file.read(len(_GZIP)) == _GZIP
        file.seek(0)
        if not packed:
            yield file
            return
        with TemporaryFile() as plain:
            _unpack(file, plain, path)
            yield plain


def _unpack(packed: BinaryIO, plain: BinaryIO, path: Path) -> None:
    packed_bytes = os.fstat(packed.fileno()).st_size
    most = min(_MOST_UNPACKED_BYTES, max(_SMALL_BYTES, _MOST_EXPANSION * packed_bytes))
    unpacked_bytes = 0
    try:
        with gzip.open(packed) as unpacked:
            while chunk := unpacked.read(_CHUNK):
                unpacked_bytes += len(chunk)
                if unpacked_bytes > most:
                    raise ExchangeError(
                        f"{path} unpacks to more than {most >> 20} MiB, which no export does; nothing was imported"
                    )
                plain.write(chunk)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise ExchangeError(f"{path} is packed, and not all of it is there; nothing was imported") from error
    plain.flush()


def _with_references(generation: Generation, results: Rows) -> Rows:
    index = generation.index
    rows = [results]
    for column, table in _REFERENCES.items():
        described = index.rows_of(table)
        wanted = np.isin(index.column(column)[described], np.unique(index.column(column)[results]))
        rows.append(described[wanted])
    return np.concatenate(rows)


def _take(store: Store, batch: list[Sealed], report: ImportReport) -> None:
    store.refresh()
    side_by_side = [_beside(store.generation, each, report) for each in batch]
    new = store.change(add=side_by_side).added
    report.new += new
    report.known += len(batch) - new


def _beside(generation: Generation, sealed: Sealed, report: ImportReport) -> Sealed:
    uuid = sealed.document["uuid"]
    if _stored(generation, uuid) in (None, sealed.text):
        return sealed
    # Named by what it says, so that importing the same file again finds it.
    own = hashlib.sha256(sealed.text).hexdigest()[: len(uuid)]
    if _stored(generation, own) is None:
        report.conflicts.append(Conflict(sealed.document["table"], uuid, own))
    return seal({**sealed.document, "uuid": own})


def _stored(generation: Generation, uuid: str) -> bytes | None:
    row = generation.index.row_of(uuid)
    return None if row is None else next(generation.texts([row]))[1]


def _documents(file: BinaryIO, path: Path, report: ImportReport, known: References) -> Iterator[Sealed]:
    found = False
    for line in all_lines(file.fileno(), _LONGEST_LINE):
        try:
            here = document_on(line)
            if here is None:
                continue
            if line.number == 1:
                raise ExchangeError(f"{path} is part of a store; write a file to import by `dlbricks results export`")
            found = True
            yield from _accepted(here.document, path, known)
        except BrokenDocumentError as error:
            _refuse(report, path, Damage(path.name, line.number, line.offset, len(line.text), str(error)))
    if not found and (rewritten := _read_whole(file)):
        report.refused.clear()
        yield from _rewritten(rewritten, path, report, known)


def _refuse(report: ImportReport, path: Path, damage: Damage) -> None:
    report.refused.append(damage)
    if len(report.refused) >= _MOST_REFUSED:
        raise ExchangeError(
            f"{path} has {_MOST_REFUSED:,} lines that cannot be imported, the first: {report.refused[0]}; "
            f"{report.new} new records before them were imported"
        )


def _read_whole(file: BinaryIO) -> dict[str, dict[str, Document]]:
    """Return the tables of a file that plain TinyDB has written: one line, and other spaces than ours."""
    file.seek(0)
    content = file.read(_LONGEST_LINE)
    if sum(content.count(sign) for sign in (b",", b"[", b"{")) > _MOST_WHOLE_VALUES:
        return {}
    try:
        tables = json.loads(content)
        return {table: {key: dict(document) for key, document in tables[table].items()} for table in tables}
    except (ValueError, TypeError, AttributeError, RecursionError):
        return {}


def _rewritten(
    tables: dict[str, dict[str, Document]], path: Path, report: ImportReport, known: References
) -> Iterator[Sealed]:
    for table, documents in tables.items():
        for key, document in documents.items():
            try:
                yield from _accepted(resealed(document).document, path, known)
            except BrokenDocumentError as error:
                _refuse(report, path, Damage(path.name, 1, 0, 0, f"(document {key} of table {table}) {error}"))


def _accepted(document: Document, path: Path, known: References) -> Iterator[Sealed]:
    """Yield the document in the form in which this dlbricks writes it; nothing for the head of a file."""
    schema, table = document.get("schema"), document.get("table")
    if isinstance(schema, int) and schema > SCHEMA:
        raise NewerStoreError(path, schema, SCHEMA)
    if table == HEAD:
        return
    record = to_record(document)
    if isinstance(record, BrickForm) and hashlib.sha256(record.canonical.encode()).hexdigest() != record.key:
        raise BrokenDocumentError("has a brick key that is not the hash of its canonical form")
    own = to_document(record)
    if own["uuid"] != document["uuid"]:
        raise BrokenDocumentError("does not say what its uuid stands for")
    check_plausible(record)
    known.check(record)
    try:
        sealed = seal(own)
    except ValueError as error:
        raise BrokenDocumentError(f"has a wrong value: {error}") from error
    known.take(record)
    yield sealed
