"""The formats that results are exported in; the ending of the file says which."""

import csv
import gzip
import io
import json
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum
from pathlib import Path
from typing import Any, BinaryIO, cast

from dlbricks_tui.printable import printable
from dlbricks_tui.store.columns import COLUMNS
from dlbricks_tui.store.errors import ExchangeError
from dlbricks_tui.store.queries import Selection

# Rows that are taken from the columns at once.
_ROWS = 10_000


class ExportFormat(Enum):
    """What a file of results holds."""

    # Everything, for `results import`; packed by gzip or not.
    JSON = ".json"
    PACKED_JSON = ".json.gz"
    # A row per result without its samples, for other programs.
    CSV = ".csv"
    JSON_LINES = ".jsonl"

    @property
    def is_table(self) -> bool:
        """Whether it has a row per result, and not all that the results refer to."""
        return self in (ExportFormat.CSV, ExportFormat.JSON_LINES)


def export_format(path: Path) -> ExportFormat:
    """Return the format that the ending of a file stands for; a file without an ending gets JSON."""
    name = path.name.lower()
    # The longest ending counts: .json.gz ends in .gz, too.
    for each in sorted(ExportFormat, key=lambda it: -len(it.value)):
        if name.endswith(each.value):
            return each
    if path.suffix:
        raise ExchangeError(
            f"{path} ends in {path.suffix}, which is no format of an export: name a .json or .json.gz file, which can "
            "be imported, or a .csv or .jsonl file with a row per result"
        )
    return ExportFormat.JSON


def write_rows(file: BinaryIO, results: Selection, form: ExportFormat) -> None:
    """Write a row per result with all columns, as `results list --csv` and `--jsonl` do."""
    columns = tuple(COLUMNS)
    text = io.TextIOWrapper(file, encoding="utf-8", newline="", write_through=True)
    writer = csv.writer(text, lineterminator="\n")
    if form is ExportFormat.CSV:
        writer.writerow(columns)
    for start in range(0, len(results), _ROWS):
        part = results.part(start, start + _ROWS)
        rows = zip(*(part.values(column) for column in columns), strict=True)
        if form is ExportFormat.CSV:
            writer.writerows([_printable_cell(cell) for cell in row] for row in rows)
        else:
            text.writelines(json.dumps(dict(zip(columns, row, strict=True)), allow_nan=False) + "\n" for row in rows)
    # The file belongs to the caller.
    text.detach()


@contextmanager
def packed(file: BinaryIO) -> Iterator[BinaryIO]:
    """Open a gzip file in a file; the same content gives the same bytes, whatever the time and the name."""
    with gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0) as packing:
        yield cast(BinaryIO, packing)


def _printable_cell(cell: Any) -> Any:
    return printable(cell) if isinstance(cell, str) else cell
