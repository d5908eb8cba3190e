"""Export results as one TinyDB file with all that they refer to, or as a table for other programs; and import files.

An import checks every record, and stores what is new.
"""

import csv
import gzip
import hashlib
import io
import json
import os
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from enum import Enum
from itertools import islice
from pathlib import Path
from tempfile import TemporaryFile
from typing import BinaryIO, cast

import numpy as np

from dlbricks_tui.files import open_regular, write_named
from dlbricks_tui.printable import printable
from dlbricks_tui.store.columns import COLUMNS, Mask
from dlbricks_tui.store.database import ResultsDatabase, Source, numbered
from dlbricks_tui.store.documents import (
    EXCHANGED,
    FORMER_TABLE,
    SCHEMA,
    TABLE_OF,
    TABLES,
    BrokenDocumentError,
    DamagedResultError,
    Document,
    ExchangeError,
    StoreError,
    fields_of,
    hash_of,
    record_of,
    written_before_0_2,
    written_by_newer,
)
from dlbricks_tui.store.files import (
    END,
    FORMAT,
    HEAD,
    Damage,
    Line,
    all_lines,
    are_alike,
    document_on,
    entry_on,
    head_of,
    line_of,
    record_on,
    renumbered,
    sealed,
    unsealed,
    write_tinydb_file,
)
from dlbricks_tui.store.generation import Generation
from dlbricks_tui.store.index import RESULT_TABLES, Index, Rows
from dlbricks_tui.store.records import BrickForm, DatedRecord, Import, Record, Timed
from dlbricks_tui.store.selections import OLDEST_FIRST, Selection
from dlbricks_tui.store.verification import References, check_plausible

# The tables of the records that results refer to, with the columns that both have in common.
_REFERENCES: Mapping[str, tuple[str, ...]] = {
    "bricks": ("brick",),
    "systems": ("system",),
    "peaks": ("system",),
    "runtimes": ("runtime",),
    "runs": ("run",),
    "failures": ("system", "runtime", "run"),
    "proofs": ("model", "system", "runtime"),
    "load_tests": ("model", "system", "runtime"),
}
# The tables of records that belong to no run: their provenance is found by their own UUIDs.
_WITHOUT_RUN = ("proofs", "load_tests")
# The rows that are read from the columns at once.
_ROWS = 10_000
# The records of a file between two calls that tell how many were read.
_RECORDS_PER_STEP = 1000


class ExportFormat(Enum):
    """The format of a file of results."""

    # Everything, for `results import`; plain or packed by gzip.
    JSON = ".json"
    PACKED_JSON = ".json.gz"
    # A row per result without its samples, for other programs.
    CSV = ".csv"
    JSON_LINES = ".jsonl"

    @property
    def is_table(self) -> bool:
        """True for a row per result, without the records that results refer to."""
        return self in (ExportFormat.CSV, ExportFormat.JSON_LINES)


def export_format(path: Path) -> ExportFormat:
    """Return the format for a file's ending; without an ending it is JSON."""
    name = path.name.lower()
    # The longest ending first.
    for each in sorted(ExportFormat, key=lambda it: -len(it.value)):
        if name.endswith(each.value):
            return each
    if path.suffix:
        raise ExchangeError(
            f"{path} ends in {path.suffix}, which is no format of an export: name a .json or .json.gz file, which can "
            "be imported, or a .csv or .jsonl file with a row per result"
        )
    return ExportFormat.JSON


def export_all(results: ResultsDatabase, path: Path) -> int:
    """Write all results in the format of the path's ending, and return how many; a JSON file has all records."""
    selection, generation = results.results(order=OLDEST_FIRST), results.generation
    if export_format(path).is_table:
        return export_selection(selection, path)
    _write(generation, generation.index.rows_of(*EXCHANGED), path)
    return len(selection)


def export_selection(selection: Selection, path: Path) -> int:
    """Write these results in the format of the path's ending, and return how many.

    A table has a row per result. A JSON file has all records of the results, and those that these refer to. The same
    records give the same bytes, whatever store they come from.
    """
    form = export_format(path)
    if form.is_table:
        _replace(path, lambda file: write_rows(file, selection, form))
    else:
        _write(selection.generation, _with_references(selection.generation, selection.records.rows), path)
    return len(selection)


def _write(generation: Generation, rows: Rows, path: Path) -> None:
    index, names = generation.index, list(EXCHANGED)
    uuids = index.column("uuid")[rows].view(">u8").reshape(-1, 2)
    places = np.zeros(len(index.known_tables) + 1, dtype=np.intp)
    for name, table in index.known_tables.items():
        places[table.code] = names.index(name) if name in names else -1
    tables = places[index.column("table")[rows]]
    order = np.lexsort((uuids[:, 1], uuids[:, 0], index.stored("when")[rows], tables))

    def documents() -> Iterator[tuple[str, int, bytes]]:
        yield HEAD, 1, sealed(line_of(head_of(documents=len(rows))))
        numbers = dict.fromkeys(names, 0)
        for row, place in zip(rows[order].tolist(), tables[order].tolist(), strict=True):
            numbers[table := names[place]] += 1
            line = renumbered(generation.line(row), numbers[table])
            yield table, numbers[table], sealed(line)

    def write(file: BinaryIO) -> None:
        is_packed = export_format(path) is ExportFormat.PACKED_JSON
        # The same content gives the same bytes.
        packing = gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0) if is_packed else nullcontext(file)
        with packing as target:
            write_tinydb_file(cast(BinaryIO, target), documents())

    _replace(path, write)


def _with_references(generation: Generation, results: Rows) -> Rows:
    index = generation.index
    rows = {"": results}
    for table, columns in _REFERENCES.items():
        described = index.rows_of(table)
        for column in columns:
            described = described[_shared(index, column, described, results)]
        rows[table] = described
    tests = np.concatenate([rows[table] for table in _WITHOUT_RUN])
    return np.concatenate([*rows.values(), _provenance(index, results, tests)])


def _provenance(index: Index, results: Rows, tests: Rows) -> Rows:
    """Return the rows that tell where results, and proofs and load tests beside them, come from."""
    rows = index.rows_of("provenance")
    # A proof is on two runtimes, of which the results may have one.
    rows = rows[_shared(index, "system", rows, results) & _shared(index, "runtime", rows, results)]
    ids = (index.column("uuid")[row].tobytes().hex() for row in tests.tolist())
    codes = [code for it in ids if (code := index.vocabularies["run"].code(it)) is not None]
    return rows[_shared(index, "run", rows, results) | np.isin(index.column("run")[rows], codes)]


def _shared(index: Index, column: str, rows: Rows, results: Rows) -> Mask:
    """Return for each row whether a result has its value of a column."""
    return np.isin(index.column(column)[rows], np.unique(index.column(column)[results]))


def _replace(path: Path, write: Callable[[BinaryIO], None]) -> None:
    try:
        write_named(path, write)
    except OSError as error:
        raise ExchangeError(f"cannot write {path}: {error.strerror}; nothing was exported") from error


def write_rows(file: BinaryIO, results: Selection, form: ExportFormat) -> None:
    """Write a row per result with all columns, like `results list --csv` and `--jsonl`."""
    columns = tuple(COLUMNS)
    text = io.TextIOWrapper(file, encoding="utf-8", newline="", write_through=True)
    writer = csv.writer(text, lineterminator="\n")
    if form is ExportFormat.CSV:
        writer.writerow(columns)
    for start in range(0, len(results), _ROWS):
        part = results[start : start + _ROWS]
        rows = zip(*(part.values(column) for column in columns), strict=True)
        if form is ExportFormat.CSV:
            writer.writerows([printable(cell) if isinstance(cell, str) else cell for cell in row] for row in rows)
        else:
            text.writelines(json.dumps(dict(zip(columns, row, strict=True)), allow_nan=False) + "\n" for row in rows)
    # The caller closes the file.
    text.detach()


# Small enough to release the lock often, large enough to need few disk writes.
_BATCH = 1000
_GZIP = b"\x1f\x8b"
_CHECKED = b'{"check"'
_CURE = "measure again with this version"
_CHUNK = 1 << 20
# The head of a file comes first; checksums mark the lines of one whose head is missing.
_BEGIN_BYTES = 4096
_MARKS = (b'"dlbricks"', b'{"check":"')
# Results shrink to a third or a tenth. A file that unpacks to far more is taken for a decompression bomb.
_MOST_EXPANSION = 30
_SMALL_BYTES = 64 << 20
_MOST_UNPACKED_BYTES = 4 << 30
# Plain TinyDB writes the whole file on one line. Small values take 30 times the memory of their text.
_LONGEST_LINE = 128 << 20
_MOST_WHOLE_VALUES = 8_000_000
_MOST_REFUSED = 10_000


@dataclass(frozen=True, slots=True)
class Conflict:
    """A record with another content than the stored one; both are kept, the imported one under a new id."""

    table: str
    stored: str
    imported: str


@dataclass(slots=True)
class ImportReport:
    """The outcome for each record of a file; conflicts count as new."""

    new: int = 0
    known: int = 0
    conflicts: list[Conflict] = field(default_factory=list)
    refused: list[Damage] = field(default_factory=list)
    # The ids under which the store has the results of the file, new ones and known ones.
    results: list[str] = field(default_factory=list)


def import_file(
    store: ResultsDatabase,
    path: Path,
    content: BinaryIO | None = None,
    source: Source | None = None,
    known: References | None = None,
) -> ImportReport:
    """Store the records of an exported file, packed by gzip or not, or rewritten by plain TinyDB.

    The report names refused records: those that cannot come from a measurement or refer to something unknown.
    `content` is the file if it is open, `source` names it in the store, and `known` has the references of the store.
    """
    report = ImportReport()
    source = source or Source(printable(path.name))
    # Each file disputes systems for itself.
    known = replace(known or References.of(store.generation), disputed=set())
    records = _records(path, report, known, store, content)
    while batch := list(islice(records, _BATCH)):
        store.refresh()
        side_by_side = [_beside(store.generation, record, report) for record in batch]
        report.results += [it.uuid for it in side_by_side if isinstance(it, Timed)]
        try:
            new = store.add_imported(side_by_side, source)
        except StoreError as error:
            if not report.new:
                raise
            raise type(error)(f"after {report.new} new records of {path} were imported: {error}") from error
        report.new += new
        report.known += len(batch) - new
    if report.refused and not report.new + report.known:
        raise ExchangeError(
            f"nothing was imported, as nothing in {path} can be read: {report.refused[0]}; name a .json or "
            ".json.gz file of `dlbricks results export`: a .csv or .jsonl file is for other programs"
        )
    return report


def read_export(
    path: Path, kinds: tuple[type[Record], ...], tell: Callable[[int], object] = lambda _: None
) -> tuple[list[Record], list[Damage]]:
    """Return the records of these kinds in an exported file, and the lines that an import would refuse.

    `tell` gets the number of records that were read, often: a large file takes seconds.
    """
    report, records = ImportReport(), list[Record]()
    for number, it in enumerate(_records(path, report, References())):
        if not number % _RECORDS_PER_STEP:
            tell(number)
        if isinstance(it, kinds):
            records.append(it)
    if report.refused and not records:
        raise ExchangeError(f"nothing in {path} can be read: {report.refused[0]}")
    return records, report.refused


@contextmanager
def unpacked(file: BinaryIO, path: Path) -> Iterator[BinaryIO]:
    """Return the contents of an open file, unpacked if it is packed."""
    file.seek(0)
    packed = file.read(len(_GZIP)) == _GZIP
    file.seek(0)
    if not packed:
        yield file
        return
    most = min(_MOST_UNPACKED_BYTES, max(_SMALL_BYTES, _MOST_EXPANSION * os.fstat(file.fileno()).st_size))
    with TemporaryFile() as plain:
        try:
            with gzip.open(file) as content:
                while (chunk := content.read(_CHUNK)) and plain.tell() + len(chunk) <= most:
                    plain.write(chunk)
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise ExchangeError(f"{path} is packed and incomplete: export or copy it again") from error
        if chunk:
            raise ExchangeError(f"{path} unpacks to more than {most >> 20} MiB, unlike any export")
        plain.flush()
        yield plain


def is_export(file: BinaryIO) -> bool:
    """Return True if an open file, packed or not, begins like an export, or cannot be unpacked."""
    file.seek(0)
    begin = file.read(_BEGIN_BYTES)
    if begin.startswith(_GZIP):
        with suppress(zlib.error):
            begin = zlib.decompressobj(wbits=31).decompress(begin, _BEGIN_BYTES)
            return any(mark in begin for mark in _MARKS)
        return True
    return any(mark in begin for mark in _MARKS)


def _beside(generation: Generation, record: Record, report: ImportReport) -> Record:
    # The id of a definition is the hash of its content.
    stored = _stored(generation, record.uuid) if isinstance(record, DatedRecord) else None
    if stored is None or not isinstance(record, DatedRecord) or stored == (document := fields_of(record)):
        return record
    # The id is a hash of the content, so that importing the same file again finds it.
    own = replace(record, uuid=hash_of(document))
    if _stored(generation, own.uuid) is None:
        report.conflicts.append(Conflict(TABLE_OF[type(record)], record.uuid, own.uuid))
    return own


def _stored(generation: Generation, uuid: str) -> Document | None:
    row = generation.index.row_of_uuid(uuid)
    return None if row is None else generation.document(row)


def _records(
    path: Path,
    report: ImportReport,
    known: References,
    store: ResultsDatabase | None = None,
    content: BinaryIO | None = None,
) -> Iterator[Record]:
    """Yield the records of a file that the store may not have, each checked; those that it has are counted.

    `content` is the file if it is open.
    """
    try:
        with open_regular(path) if content is None else nullcontext(content) as file, unpacked(file, path) as plain:
            yield from numbered(_read(plain, path, report, known, store), () if store is None else store.systems())
    except BrokenDocumentError as error:
        imported = "" if store is None else f"; {report.new} new records before it were imported"
        raise ExchangeError(f"{path} {error}{imported}") from error
    except OSError as error:
        raise ExchangeError(f"cannot read {path}: {error.strerror}") from error


def _read(
    file: BinaryIO, path: Path, report: ImportReport, known: References, store: ResultsDatabase | None
) -> Iterator[Record]:
    found, ended = False, False
    line, before, promised = Line(0, 0, b""), 0, ""
    for line in all_lines(file.fileno(), _LONGEST_LINE):
        ended = ended or line.text == END
        try:
            here = document_on(line)
            if here is None:
                continue
            if line.number == 1 and line.text.startswith(_CHECKED):
                raise ExchangeError(f"{path} is part of a store; write a file to import by `dlbricks results export`")
            before += line.complete
            text = unsealed(here.text, path, _CURE)
            if found and store is not None and _is_known(text, report, store.generation):
                continue
            entry = entry_on(text)
            found = True
            if entry.table == HEAD and isinstance(documents := (entry.document or {}).get("documents"), int):
                promised = f" of {documents}"
            yield from _accepted(entry.table, entry.document or {}, path, known)
        except BrokenDocumentError as error:
            # Of a file that is cut off, all that is missing is named below.
            if line.complete or ended or not found:
                _refuse(report, path, Damage(path.name, line.number, line.offset, len(line.text), str(error)))
    if found and not ended:
        reason = f"is cut off ({before - 1}{promised} documents come before it)"
        number, offset = (line.number + 1, line.end) if line.complete else line[:2]
        _refuse(report, path, Damage(path.name, number, offset, 0, reason))
    if store is not None and not os.fstat(file.fileno()).st_size:
        raise ExchangeError(f"{path} is empty; name a file of `dlbricks results export`")
    if not found and (rewritten := _read_whole(file)):
        report.refused.clear()
        yield from _rewritten(rewritten, path, report, known)


def _is_known(text: bytes, report: ImportReport, generation: Generation) -> bool:
    """Count a document that the store has; it was checked when it was stored."""
    table, uuid = record_on(text)
    row = generation.index.row_of_uuid(uuid) if uuid else None
    with suppress(DamagedResultError):
        if row is not None and are_alike(text, generation.line(row)):
            report.known += 1
            report.results += [uuid] if table in RESULT_TABLES else []
            return True
    return False


def _refuse(report: ImportReport, path: Path, damage: Damage) -> None:
    report.refused.append(damage)
    if len(report.refused) >= _MOST_REFUSED:
        raise ExchangeError(
            f"{path} has {_MOST_REFUSED:,} lines that cannot be imported, the first: {report.refused[0]}; "
            f"{report.new} new records before them were imported"
        )


def _read_whole(file: BinaryIO) -> dict[str, dict[str, Document]]:
    """Return the tables of a file that plain TinyDB has rewritten as one line."""
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
) -> Iterator[Record]:
    """Yield the records of a file of plain TinyDB, in which any document may be changed, renumbered or new."""
    # Definitions come before the records that refer to them.
    for table in sorted(tables, key=lambda name: list(TABLES).index(name) if name in TABLES else -1):
        for number, document in tables[table].items():
            try:
                if isinstance(schema := document.get("schema"), int) and schema > SCHEMA:
                    raise written_by_newer(path, schema, SCHEMA)
                named = document if "uuid" in document else {"uuid": hash_of(document), **document}
                yield from _accepted(table, named, path, known, changed=True)
            except BrokenDocumentError as error:
                _refuse(report, path, Damage(path.name, 1, 0, 0, f"(document {number} of table {table}) {error}"))


def _accepted(table: str, document: Document, path: Path, known: References, changed: bool = False) -> Iterator[Record]:
    """Yield the record in a document; nothing for the head of a file.

    The uuid of a definition is the hash of its content: in a document that was changed, it is out of date.
    """
    if table == HEAD:
        if document.get("format") != FORMAT:
            raise written_before_0_2(path, _CURE)
        return
    if table == FORMER_TABLE:
        return
    if table not in TABLES:
        raise BrokenDocumentError(f"is of a table that dlbricks does not have: {table[:40]}")
    record = record_of(table, document)
    if isinstance(record, Import):
        # The file of a compacted store has them. They are about that store, and no evidence for this one.
        return
    if isinstance(record, BrickForm) and hashlib.sha256(record.canonical.encode()).hexdigest() != record.key:
        raise BrokenDocumentError("has a brick key that is not the hash of its canonical form")
    uuid = record.uuid if isinstance(record, DatedRecord) else fields_of(record)["uuid"]
    if not changed and uuid != document.get("uuid"):
        raise BrokenDocumentError("has a uuid that is not the hash of its content")
    check_plausible(record)
    known.check(record)
    known.take(record)
    yield record
