"""The index: all records without their samples, as columns for look-ups, filters and sorting.

It has one row per record of any table; columns that a table lacks are empty. Rows are only added: removing a record
marks its row. The saved index is a cache: it is built again if it is missing, stale or damaged.
"""

import io
import json
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dlbricks_tui.atomic_write import replace_file
from dlbricks_tui.store.documents import TABLES, Document
from dlbricks_tui.store.files import Damage
from dlbricks_tui.store.labels import label_of

TABLE_NAMES = tuple(TABLES)
RESULT_TABLES = ("measurements", "end_to_end")

TEXT_COLUMNS = (
    "brick",
    "context",
    "model",
    "name",
    "system",
    "runtime",
    "level",
    "protocol",
    "dtype",
    "kernel_variant",
    "run",
    # The key of the model in which a brick was timed, where that was the whole model.
    "carrier",
)
STATISTIC_COLUMNS = ("trimmed_mean_ms", "median_ms", "minimum_ms", "spread_ms", "low_ms", "high_ms")
# The latency of the reference in the same rounds: how fast the host was. 0 if unknown.
REFERENCE_COLUMN = "reference_ms"
# The part of the interval's half that all results of the same rounds share, relative to the latency. Negative if
# unknown.
SHARED_COLUMN = "shared"

# Fields of tables whose column has another name.
_FIELDS: Mapping[str, Mapping[str, str]] = {
    "bricks": {"brick": "key"},
    "systems": {"system": "id"},
    "runtimes": {"runtime": "id"},
    "runs": {"run": "id"},
}
UUID_BYTES = 16
COLUMN_TYPES: Mapping[str, Any] = {
    "table": np.int8,
    "alive": np.bool_,
    "uuid": f"V{UUID_BYTES}",
    # The place of the record: file, first byte, length.
    "part": np.int8,
    "offset": np.int64,
    "length": np.int32,
    # The previous row about the same brick, -1 for none.
    "previous": np.int32,
    **dict.fromkeys(TEXT_COLUMNS, np.int32),
    **dict.fromkeys(STATISTIC_COLUMNS, np.float64),
    REFERENCE_COLUMN: np.float64,
    SHARED_COLUMN: np.float64,
    "samples": np.int32,
    "batch_size": np.int32,
    # Microseconds since 1970, UTC.
    "when": np.int64,
    "good": np.bool_,
}
EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_MICROSECOND = timedelta(microseconds=1)
_NO_ROW = -1
_FIRST_CAPACITY = 1024

Column = NDArray[Any]


class Vocabulary:
    """The distinct texts of a column by number; number 0 is the empty text."""

    def __init__(self, texts: list[str] | None = None) -> None:
        self.texts = texts or [""]
        self._codes = {text: code for code, text in enumerate(self.texts)}
        self._ranks = np.zeros(0, dtype=np.int64)

    def code(self, text: str) -> int | None:
        """Return the number of a text, None if the column does not have it."""
        return self._codes.get(text)

    def code_or_new(self, text: str) -> int:
        """Return the number of a text; a new text is added."""
        code = self._codes.setdefault(text, len(self.texts))
        if code == len(self.texts):
            self.texts.append(text)
        return code

    def ranks(self) -> NDArray[np.int64]:
        """Return, for each number, the place of its text in alphabetical order."""
        if len(self._ranks) != len(self.texts):
            self._ranks = np.empty(len(self.texts), dtype=np.int64)
            self._ranks[sorted(range(len(self.texts)), key=self.texts.__getitem__)] = np.arange(len(self.texts))
        return self._ranks


class Index:
    """The columns and their vocabularies."""

    def __init__(
        self, columns: Mapping[str, Column] | None = None, texts: Mapping[str, list[str]] | None = None
    ) -> None:
        self._columns: dict[str, Column] = dict(
            columns or {name: np.zeros(0, kind) for name, kind in COLUMN_TYPES.items()}
        )
        self.rows = len(self._columns["table"])
        self.vocabularies = {name: Vocabulary((texts or {}).get(name)) for name in TEXT_COLUMNS}
        # By the number of a brick: the last row about it, and the number of its name.
        self._newest_of_brick: list[int] = self._last_values(self.column("brick"), np.arange(self.rows)).tolist()
        forms = self.rows_of("bricks")
        named = self._last_values(self.column("brick")[forms], self.column("name")[forms])
        self.name_of_brick: list[int] = np.maximum(named, 0).tolist()
        # Built on demand: only writers need it.
        self._row_of_uuid: dict[bytes, int] | None = None

    def column(self, name: str) -> Column:
        """Return a view of a column, without rows that are added later."""
        return self._columns[name][: self.rows]

    def value(self, name: str, row: int) -> Any:
        """Return one value of a column."""
        return self._columns[name][row]

    def rows_of_brick(self, brick: str) -> Iterator[int]:
        """Yield the rows about a brick, newest first, in time that does not depend on the other rows."""
        code = self.vocabularies["brick"].code(brick)
        row = self._newest_of_brick[code] if code else _NO_ROW
        while row != _NO_ROW:
            if self._columns["alive"][row]:
                yield row
            row = int(self._columns["previous"][row])

    def rows_of(self, *tables: str) -> NDArray[np.intp]:
        """Return the rows of these tables in the order in which they were stored."""
        wanted = np.zeros(len(TABLE_NAMES), dtype=np.bool_)
        wanted[[TABLE_NAMES.index(table) for table in tables]] = True
        return np.flatnonzero(wanted[self.column("table")] & self.column("alive"))

    def models_of_runs(self) -> list[str]:
        """Return the names of the models of each run, by the number of the run; empty if the run is unknown."""
        found = [""] * len(self.vocabularies["run"].texts)
        rows = self.rows_of("runs")
        for run, name in zip(self.column("run")[rows].tolist(), self.column("name")[rows].tolist(), strict=True):
            found[run] = self.vocabularies["name"].texts[name]
        return found

    def row_of(self, uuid: str) -> int | None:
        """Return the row of a record, None if it is not in the store."""
        return self._rows_of_uuids().get(bytes.fromhex(uuid))

    def add(self, document: Document, part: int, offset: int, length: int) -> None:
        """Add a record that is stored at this place, unless it is in the index."""
        uuid = bytes.fromhex(document["uuid"])
        if self._row_of_uuid is not None and uuid in self._row_of_uuid:
            return
        values = self._values_of(document)
        row = self.rows
        if row == len(self._columns["table"]):
            self._grow()
        place = {"uuid": uuid, "part": part, "offset": offset, "length": length, "alive": True}
        for name, value in {**values, **place}.items():
            self._columns[name][row] = value
        self._chain(row)
        if self._row_of_uuid is not None:
            self._row_of_uuid[uuid] = row
        self.rows = row + 1

    def remove(self, uuid: str) -> None:
        """Mark a record as deleted."""
        row = self.row_of(uuid)
        if row is not None:
            self.forget(row)

    def forget(self, row: int) -> None:
        """Mark a row as deleted."""
        self._columns["alive"][row] = False
        if self._row_of_uuid is not None:
            self._row_of_uuid.pop(self._columns["uuid"][row].tobytes(), None)

    def track_uuids(self) -> None:
        """Leave out any record that is added a second time from now on."""
        self._rows_of_uuids()

    def _rows_of_uuids(self) -> dict[bytes, int]:
        if self._row_of_uuid is None:
            raw = self.column("uuid").tobytes()
            alive = np.flatnonzero(self.column("alive")).tolist()
            self._row_of_uuid = {raw[UUID_BYTES * row : UUID_BYTES * (row + 1)]: row for row in alive}
        return self._row_of_uuid

    def _values_of(self, document: Document) -> dict[str, int | float]:
        table = document["table"]
        renamed = _FIELDS.get(table, {})
        values: dict[str, int | float] = {"table": TABLE_NAMES.index(table)}
        for name in TEXT_COLUMNS:
            text = document.get(renamed.get(name, name))
            values[name] = self.vocabularies[name].code_or_new(text) if text else 0
        if table == "runs":
            values["name"] = self.vocabularies["name"].code_or_new(", ".join(document["models"]))
        if "canonical" in document:
            values["name"] = self.vocabularies["name"].code_or_new(label_of(document["canonical"]))
        if "when" in document:
            values["when"] = to_microseconds(document["when"])
        if "statistics" in document:
            statistics = document["statistics"]
            values.update((name, statistics[name]) for name in STATISTIC_COLUMNS)
            values["samples"] = statistics["count"]
            values["batch_size"] = document["batch_size"]
            values["good"] = not document["flags"]
            reference_ms = document["noise"].get(REFERENCE_COLUMN)
            # A fact of this name may be of any type.
            values[REFERENCE_COLUMN] = reference_ms if isinstance(reference_ms, float) else 0.0
            carrier = document.get("occurrence", {}).get("carrier")
            values["carrier"] = self.vocabularies["carrier"].code_or_new(carrier) if isinstance(carrier, str) else 0
            shared = document["noise"].get(SHARED_COLUMN)
            values[SHARED_COLUMN] = shared if isinstance(shared, float) else -1.0
        return values

    def _chain(self, row: int) -> None:
        brick = int(self._columns["brick"][row])
        # A document that was refused half-way may have added more than one new key.
        missing = len(self.vocabularies["brick"].texts) - len(self._newest_of_brick)
        self._newest_of_brick.extend([_NO_ROW] * missing)
        self.name_of_brick.extend([0] * missing)
        self._columns["previous"][row] = self._newest_of_brick[brick]
        self._newest_of_brick[brick] = row
        if self._columns["table"][row] == TABLE_NAMES.index("bricks"):
            self.name_of_brick[brick] = int(self._columns["name"][row])

    def _last_values(self, bricks: Column, values: Column) -> NDArray[np.int64]:
        """Return the last value of each brick."""
        last = np.full(len(self.vocabularies["brick"].texts), _NO_ROW, dtype=np.int64)
        # NumPy keeps the last of several assignments to one place.
        last[bricks] = values
        return last

    def _grow(self) -> None:
        capacity = max(_FIRST_CAPACITY, 2 * self.rows)
        for name, column in self._columns.items():
            grown = np.zeros(capacity, column.dtype)
            grown[: self.rows] = column[: self.rows]
            self._columns[name] = grown


def to_microseconds(when: str) -> int:
    """Return an ISO 8601 time in microseconds since 1970; refuse one without a time zone."""
    return since_epoch(datetime.fromisoformat(when))


def since_epoch(moment: datetime) -> int:
    """Return a moment in microseconds since 1970."""
    return (moment - EPOCH) // _MICROSECOND


def to_iso(microseconds: int) -> str:
    """Return a time as records have it."""
    return (EPOCH + timedelta(microseconds=microseconds)).isoformat(timespec="microseconds")


# Raise it with any change to the columns, or to how documents fill them.
_VERSION = 1
_META = "meta"


@dataclass(frozen=True, slots=True)
class Coverage:
    """The part of a file that an index covers, and the file's size and time when the index was saved."""

    file: str
    covered: int
    lines: int
    size: int
    modified_ns: int


@dataclass(frozen=True, slots=True)
class SavedIndex:
    """An index, the files it covers and the damage found in them."""

    index: Index
    coverage: tuple[Coverage, ...]
    damage: tuple[Damage, ...]


def save_index(path: Path, index: Index, coverage: Sequence[Coverage], damage: Sequence[Damage]) -> None:
    """Save the index; a folder that cannot be written is no error."""
    meta = {
        "version": _VERSION,
        "coverage": [asdict(each) for each in coverage],
        "damage": [asdict(each) for each in damage],
        "texts": {name: index.vocabularies[name].texts for name in TEXT_COLUMNS},
    }
    # Any: to the type stubs of NumPy 2 any keyword might be `allow_pickle`.
    columns: dict[str, Any] = {name: index.column(name) for name in COLUMN_TYPES}
    columns[_META] = np.frombuffer(json.dumps(meta).encode(), dtype=np.uint8)
    # Without a saved index each opening builds it again.
    with suppress(OSError):
        # In memory first: NumPy's archive prints an error of its own if the disk is full.
        archive = io.BytesIO()
        np.savez(archive, **columns)
        replace_file(path, lambda file: file.write(archive.getbuffer()))


def load_index(path: Path) -> SavedIndex | None:
    """Return the saved index, None if there is none or this version cannot use it."""
    try:
        with np.load(path, allow_pickle=False) as saved:
            meta = json.loads(saved[_META].tobytes())
            if meta["version"] != _VERSION:
                return None
            columns = {name: saved[name].astype(kind, copy=False) for name, kind in COLUMN_TYPES.items()}
        return SavedIndex(
            Index(columns, meta["texts"]),
            tuple(Coverage(**each) for each in meta["coverage"]),
            tuple(Damage(**each) for each in meta["damage"]),
        )
    except (OSError, EOFError, ValueError, KeyError, TypeError, IndexError, zipfile.BadZipFile, zlib.error):
        return None
