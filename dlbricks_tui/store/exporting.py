"""Export results: as one TinyDB file with all that they refer to, or as a table for other programs."""

import csv
import gzip
import io
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from enum import Enum
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np

from dlbricks_tui.files import write_named
from dlbricks_tui.printable import printable
from dlbricks_tui.store.columns import COLUMNS, Mask
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.documents import EXCHANGED
from dlbricks_tui.store.errors import ExchangeError
from dlbricks_tui.store.files import HEAD, NumberedDocument, head_of, line_of, renumbered, sealed, write_tinydb_file
from dlbricks_tui.store.generation import Generation
from dlbricks_tui.store.index import Index, Rows
from dlbricks_tui.store.selections import OLDEST_FIRST, Selection

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

    def documents() -> Iterator[NumberedDocument]:
        yield NumberedDocument(HEAD, 1, sealed(line_of(head_of(documents=len(rows)))))
        numbers = dict.fromkeys(names, 0)
        for row, place in zip(rows[order].tolist(), tables[order].tolist(), strict=True):
            numbers[table := names[place]] += 1
            line = renumbered(generation.line(row), numbers[table])
            yield NumberedDocument(table, numbers[table], sealed(line))

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
