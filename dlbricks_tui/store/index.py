"""The index: a row for each document of any table, with its place and the columns that people filter and sort by.

Columns that a table lacks are empty; the documents of a table that is not one of dlbricks have their numbers and places
only. Rows are only added: a removed document is a row that is no longer alive, and a changed document has a new row.
"""

import json
import zlib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta, timezone
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dlbricks_tui.files import open_regular, replace_file
from dlbricks_tui.models.kinds import KIND_OF_OP, Kind, heaviest, kind_of
from dlbricks_tui.store.documents import TABLES, Document
from dlbricks_tui.store.files import Damage

_MOST_OPERATORS = 4
# Labels leave out the prefixes of framework names.
_KIND_OF_WORD = {op.rpartition(".")[2].strip("_"): kind for op, kind in KIND_OF_OP.items()}

# An operator's neutral name and its parameters.
_Part = tuple[str, Mapping[str, Any]]


def label_of(canonical: str) -> str:
    """Return operators, kernel and input shape, `conv+relu 3x3/2 1x64x56x56`; empty for an unknown form."""
    try:
        form = json.loads(canonical)
        parts = [part for operator in form["operators"] for part in _parts(operator)]
        # An operator of a damaged file may have only its framework's name.
        names = [name.rpartition(".")[2].strip("_") or name for name, _ in parts[:_MOST_OPERATORS]]
        chain = "+".join(names) + ("+..." if len(parts) > _MOST_OPERATORS else "")
        window = next((params for _, params in parts if params.get("kernel")), {})
        words = [chain, _window(window), *(_size(shape) for shape, *_ in form["data"][:1])]
    except (ValueError, RecursionError, KeyError, IndexError, TypeError, AttributeError):
        return ""
    return " ".join(filter(None, words))


@lru_cache(maxsize=1 << 15)
def kind_of_label(label: str) -> Kind:
    """Return the kind of the brick with this label, as its operators tell."""
    chain = label.partition(" ")[0].removesuffix("+...")
    return heaviest(_KIND_OF_WORD.get(word, Kind.OTHER) for word in chain.split("+"))


def _parts(operator: Mapping[str, Any]) -> list[_Part]:
    """Return the parts of a fused operator; any other operator, loops too, is one part."""
    own: _Part = (str(operator["op"]), operator.get("params", {}))
    if kind_of(own[0]) is not Kind.OTHER:
        return [own]
    nodes = [node for text in operator.get("inner", ()) for node in json.loads(text)]
    # Variables are texts, and the heads are pairs of numbers.
    return [(node[0], dict(node[1])) for node in nodes if isinstance(node, list) and isinstance(node[0], str)] or [own]


def _window(params: Mapping[str, Any]) -> str:
    kernel, stride = params.get("kernel") or (), params.get("stride") or ()
    if not kernel:
        return ""
    step = "" if all(each == 1 for each in stride) else f"/{_size(stride[:1] if len(set(stride)) == 1 else stride)}"
    return _size(kernel) + step


def _size(shape: Sequence[int] | None) -> str:
    return "x".join(map(str, shape or ()))


RESULT_TABLES = ("measurements", "end_to_end")

ORIGIN_COLUMN = "origin"
OWN, UNSIGNED = "own", "unsigned"
_SIGNED_BY = "signed by "
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
    # The origin of a record: empty for those of this store itself. An import fills it, and no document has it.
    ORIGIN_COLUMN,
)
_COLUMNS_OF_FIELDS = tuple(name for name in TEXT_COLUMNS if name != ORIGIN_COLUMN)
STATISTIC_COLUMNS = ("trimmed_mean_ms", "median_ms", "minimum_ms", "spread_ms", "low_ms", "high_ms")
# The latency of the reference in the same rounds: how fast the host was. 0 if unknown.
REFERENCE_COLUMN = "reference_ms"
# The part of the interval's half that all results of the same rounds share, relative to the latency. Negative if
# unknown.
SHARED_COLUMN = "shared"

# Fields of tables whose column has another name.
FIELD_OF_COLUMN: Mapping[str, Mapping[str, str]] = {
    "bricks": {"brick": "key"},
    "systems": {"system": "id"},
    "runtimes": {"runtime": "id"},
    "runs": {"run": "id"},
}
UUID_BYTES = 16
COLUMN_TYPES: Mapping[str, Any] = {
    "table": np.int32,
    # The number of the document in its table.
    "id": np.int64,
    "alive": np.bool_,
    # Documents are in the order of these numbers: a changed document keeps that of its first row.
    "order": np.int32,
    # The place of the document: file, first byte, length.
    "part": np.int8,
    "offset": np.int64,
    "length": np.int32,
    "uuid": f"V{UUID_BYTES}",
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
_FIRST_CAPACITY = 1024
# A full index grows by this share: twice a million rows would take too much memory.
_GROWTH = 1.25

Column = NDArray[Any]
Rows = NDArray[np.intp]


class Vocabulary:
    """The distinct texts of a column by number; number 0 is the empty text."""

    def __init__(self, texts: list[str] | None = None) -> None:
        self.texts = texts or [""]

    @cached_property
    def _codes(self) -> dict[str, int]:
        return {text: code for code, text in enumerate(self.texts)}

    def code(self, text: str) -> int | None:
        """Return the number of a text, None if the column does not have it."""
        return self._codes.get(text)

    def code_or_new(self, text: str) -> int:
        """Return the number of a text; a new text is added."""
        code = self._codes.setdefault(text, len(self.texts))
        if code == len(self.texts):
            self.texts.append(text)
        return code


@dataclass(slots=True)
class KnownTable:
    """A table: its number in the index, the highest number that a document has had, and False once it is dropped."""

    code: int
    last_id: int = 0
    exists: bool = True


class Index:
    """The columns and their vocabularies."""

    def __init__(
        self,
        columns: Mapping[str, Column] | None = None,
        texts: Mapping[str, list[str]] | None = None,
        tables: Mapping[str, KnownTable] | None = None,
    ) -> None:
        self._columns: dict[str, Column] = dict(
            columns or {name: np.zeros(0, kind) for name, kind in COLUMN_TYPES.items()}
        )
        self.rows = len(self._columns["table"])
        self.vocabularies = {name: Vocabulary((texts or {}).get(name)) for name in TEXT_COLUMNS}
        self.known_tables: dict[str, KnownTable] = dict(tables or {})
        # The rows of tables, until there is a change.
        self._rows_of: dict[tuple[str, ...], Rows] = {}
        self._ids, self._uuids, self._bricks = _Finder(), _Finder(), _Finder()
        self._latest = int(self.stored("when").max(initial=0))
        # The dates without those in the future, and when the next of these is one no more; 0 after a change.
        self._past, self._past_until = np.zeros(0, np.int64), 0
        # The origins of the records that an import has announced and that come next, by their UUIDs.
        self.announced: dict[str, int] = {}

    def column(self, name: str) -> Column:
        """Return a view of a column, without rows that are added later.

        Dates in the future, which a clock gave that was ahead, are those of the document stored before.
        """
        if name == "when" and self._latest > (now := since_epoch(datetime.now(timezone.utc))):
            return self._dates_until(now)
        return self.stored(name)

    def stored(self, name: str) -> Column:
        """Return a view of a column as the documents have it."""
        return self._columns[name][: self.rows]

    def dated_after(self, moment: datetime) -> Rows:
        """Return the rows whose documents are dated after a moment."""
        microseconds = since_epoch(moment)
        if self._latest <= microseconds:
            return np.zeros(0, np.intp)
        return np.flatnonzero((self.stored("when") > microseconds) & self.stored("alive"))

    def value(self, name: str, row: int) -> Any:
        """Return one value of a column."""
        return self._columns[name][row]

    @property
    def tables(self) -> set[str]:
        """The tables that exist; a table without documents may be one of them."""
        return {name for name, table in self.known_tables.items() if table.exists}

    def rows_of(self, *tables: str) -> Rows:
        """Return the rows of the documents of these tables, in the order of the tables."""
        if (known := self._rows_of.get(tables)) is not None:
            return known
        wanted = np.zeros(len(self.known_tables) + 1, dtype=np.bool_)
        wanted[[self.known_tables[name].code for name in tables if name in self.known_tables]] = True
        rows = np.flatnonzero(wanted[self.column("table")] & self.column("alive"))
        order = self.column("order")[rows]
        found = rows if (order[1:] >= order[:-1]).all() else rows[np.argsort(order, kind="stable")]
        found.flags.writeable = False
        self._rows_of[tables] = found
        return found

    def row_of(self, table: str, document: int) -> int | None:
        """Return the row of a document, None if there is none."""
        known = self.known_tables.get(table)
        if known is None or document > known.last_id:
            return None
        for row in self._ids.rows(self.column("id"), document):
            if self._columns["alive"][row] and self._columns["table"][row] == known.code:
                return row
        return None

    def row_of_uuid(self, uuid: str) -> int | None:
        """Return the row of a record, None if it is not in the store."""
        wanted = bytes.fromhex(uuid)
        halves = self.column("uuid").view(">u8")
        for row in self._uuids.rows(halves[::2], int.from_bytes(wanted[:8], "big")):
            if self._columns["alive"][row] and self._columns["uuid"][row].tobytes() == wanted:
                return row
        return None

    def rows_of_brick(self, brick: str) -> Iterator[int]:
        """Yield the rows about a brick, newest first."""
        code = self.vocabularies["brick"].code(brick)
        for row in self._bricks.rows(self.column("brick"), code) if code else ():
            if self._columns["alive"][row]:
                yield row

    def names_of(self, table: str, column: str) -> NDArray[np.int32]:
        """Return the number of the name of each brick or run, by its number in a column; 0 where a table lacks it."""
        rows = self.rows_of(table)
        found = np.zeros(len(self.vocabularies[column].texts), dtype=np.int32)
        found[self.column(column)[rows]] = self.column("name")[rows]
        return found

    def last_id(self, table: str) -> int:
        """Return the highest number that a document of the table has had, 0 if there was none."""
        return self.known_tables[table].last_id if table in self.known_tables else 0

    def put(self, table: str, document_id: int, document: Document, part: int, offset: int, length: int) -> None:
        """Add a document that is stored in a file at these bytes; it replaces an earlier one with its number."""
        values = _values_of(table, document, self.vocabularies) if table in TABLES else {}
        before = self.row_of(table, document_id)
        known = self._existing(table)
        self._note_change()
        row = self.rows
        if row == len(self._columns["table"]):
            for name, column in self._columns.items():
                self._columns[name] = np.zeros(max(_FIRST_CAPACITY, int(_GROWTH * row)), column.dtype)
                self._columns[name][:row] = column
        order = row if before is None else self._columns["order"][before]
        about = {"table": known.code, "id": document_id, "alive": True, "order": order}
        about |= {"part": part, "offset": offset, "length": length}
        if before is not None:
            about[ORIGIN_COLUMN] = self._columns[ORIGIN_COLUMN][before]
        if table in TABLES and (announced := self.announced.pop(document["uuid"], None)) is not None:
            about[ORIGIN_COLUMN] = announced
        elif table != "bricks":
            # The write of the import was torn: this document is of another one.
            self.announced.clear()
        for name, value in {**values, **about}.items():
            self._columns[name][row] = value
        if before is not None:
            self.forget(before)
        known.last_id = max(known.last_id, document_id)
        self._latest = max(self._latest, int(values.get("when", 0)))
        self.rows = row + 1
        if table == "imports":
            code = self.vocabularies[ORIGIN_COLUMN].code_or_new(origin_of(document["signer"]))
            for uuid in document["records"]:
                if (imported := self.row_of_uuid(uuid)) is not None:
                    self._columns[ORIGIN_COLUMN][imported] = code
                elif before is None:
                    self.announced[uuid] = code

    def remove(self, table: str, document_id: int) -> None:
        """Remove a document."""
        row = self.row_of(table, document_id)
        if row is not None:
            self.forget(row)

    def clear(self, table: str) -> None:
        """Remove all documents of a table."""
        known = self._existing(table)
        self._columns["alive"][self.rows_of(table)] = False
        self._note_change()
        known.last_id = 0

    def drop(self, table: str) -> None:
        """Remove a table."""
        self.clear(table)
        self.known_tables[table].exists = False

    def forget(self, row: int) -> None:
        """Mark a row as removed."""
        self._columns["alive"][row] = False
        self._note_change()

    def trust(self, rows: Rows) -> NDArray[np.int64]:
        """Return a number for each row; records with a higher number count before those with a lower one."""
        trust = np.array([trust_in(origin) for origin in self.origins()], dtype=np.int64)
        found: NDArray[np.int64] = trust[self.column(ORIGIN_COLUMN)[rows]]
        return found

    def origins(self) -> list[str]:
        """Return the origins by their numbers in the column."""
        return [OWN, *self.vocabularies[ORIGIN_COLUMN].texts[1:]]

    def _dates_until(self, now: int) -> Column:
        if now >= self._past_until:
            self._past = self.stored("when").copy()
            self._past_until = int(np.min(self._past[self._past > now]))
            for table in self.known_tables:
                # The documents of a table are in the order in which they were stored, also after a compaction.
                rows = self.rows_of(table)
                dates = self._past[rows]
                known = dates <= now
                if known.any() and not known.all():
                    before = np.maximum.accumulate(np.where(known, dates, 0))
                    # Records stored before the first credible date are dated just before the earliest one.
                    self._past[rows] = np.where(known, dates, np.where(before, before, np.min(dates[known]) - 1))
        return self._past

    def _note_change(self) -> None:
        self._rows_of.clear()
        self._past_until = 0

    def _existing(self, table: str) -> KnownTable:
        known = self.known_tables.setdefault(table, KnownTable(len(self.known_tables)))
        known.exists = True
        return known


def _values_of(table: str, document: Document, vocabularies: Mapping[str, Vocabulary]) -> dict[str, Any]:
    """Return the values of a record's columns."""
    renamed = FIELD_OF_COLUMN.get(table, {})
    values: dict[str, Any] = {"uuid": bytes.fromhex(document["uuid"])}
    for name in _COLUMNS_OF_FIELDS:
        # A new row has the empty text in all columns.
        if text := document.get(renamed.get(name, name)):
            values[name] = vocabularies[name].code_or_new(text)
    if table == "runs":
        values["name"] = vocabularies["name"].code_or_new(", ".join(document["models"]))
    if table == "bricks":
        values["name"] = vocabularies["name"].code_or_new(label_of(document["canonical"]))
    if "when" in document:
        # A time without a time zone is refused.
        values["when"] = since_epoch(datetime.fromisoformat(document["when"]))
    if "statistics" in document:
        statistics, noise = document["statistics"], document["noise"]
        values.update((name, statistics[name]) for name in STATISTIC_COLUMNS)
        values["samples"] = statistics["count"]
        values["batch_size"] = document["batch_size"]
        values["good"] = not document["flags"]
        # Facts of these names may be of any type.
        reference_ms, shared = noise.get(REFERENCE_COLUMN), noise.get(SHARED_COLUMN)
        values[REFERENCE_COLUMN] = reference_ms if isinstance(reference_ms, float) else 0.0
        values[SHARED_COLUMN] = shared if isinstance(shared, float) else -1.0
        carrier = document.get("occurrence", {}).get("carrier")
        if isinstance(carrier, str):
            values["carrier"] = vocabularies["carrier"].code_or_new(carrier)
    return values


@dataclass(slots=True)
class _Finder:
    """Finds the rows with a number in a column: the older rows in a sorted copy, the newest in a dictionary."""

    _sorted: Column = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    _row_of: Rows = field(default_factory=lambda: np.zeros(0, dtype=np.intp))
    _recent: defaultdict[int, list[int]] = field(default_factory=lambda: defaultdict(list))
    _rows: int = 0

    def rows(self, numbers: Column, wanted: int) -> Iterator[int]:
        """Yield the rows with the wanted number, newest first; the column is the same at each call, but may grow."""
        if len(numbers) - self._rows > max(_FIRST_CAPACITY, len(numbers) // 8):
            self._row_of = np.argsort(numbers, kind="stable")
            self._sorted = numbers[self._row_of].astype(numbers.dtype.newbyteorder("="))
            self._recent.clear()
        else:
            for row, number in enumerate(numbers[self._rows :].tolist(), self._rows):
                self._recent[number].append(row)
        self._rows = len(numbers)
        yield from reversed(self._recent.get(wanted, ()))
        if len(self._sorted):
            key = self._sorted.dtype.type(wanted)
            begin, end = self._sorted.searchsorted(key), self._sorted.searchsorted(key, side="right")
            yield from reversed(self._row_of[begin:end].tolist())


def origin_of(signer: str) -> str:
    """Return the origin of records that were imported from a file of a signer; empty for an unsigned file."""
    return f"{_SIGNED_BY}{signer}" if signer else UNSIGNED


def signer_of(origin: str) -> str:
    """Return the signer of records of an origin, empty if nobody has signed them."""
    return origin.removeprefix(_SIGNED_BY) if origin.startswith(_SIGNED_BY) else ""


def trust_in(origin: str) -> int:
    """Return the rank of an origin: own records count before signed ones, and those before unsigned ones."""
    return {UNSIGNED: 0, OWN: 2}.get(origin, 1)


def since_epoch(moment: datetime) -> int:
    """Return a moment in microseconds since 1970."""
    return (moment - EPOCH) // _MICROSECOND


def to_iso(microseconds: int) -> str:
    """Return a time in UTC, as records have it."""
    return (EPOCH + timedelta(microseconds=microseconds)).isoformat(timespec="microseconds")


INDEX_NAME = "index.bin"
# Raise it with any change to the columns, or to how documents fill them.
_VERSION = 5


class IndexedPart(NamedTuple):
    """The part of a file that an index covers, and the file's size and time when the index was saved."""

    file: str
    covered: int
    lines: int
    size: int
    modified_ns: int


def save_index(folder: Path, index: Index, coverage: Sequence[IndexedPart], damage: Sequence[Damage]) -> None:
    """Save the index; a folder that cannot be written is no error."""
    columns: list[Any] = [index.stored(name).view(np.uint8) for name in COLUMN_TYPES]
    head = {
        "version": _VERSION,
        "rows": index.rows,
        "coverage": [each._asdict() for each in coverage],
        "damage": [asdict(each) for each in damage],
        "tables": {name: asdict(table) for name, table in index.known_tables.items()},
        "texts": {name: index.vocabularies[name].texts for name in TEXT_COLUMNS},
    }
    text = json.dumps(head).encode()
    check = zlib.crc32(text)
    for column in columns:
        check = zlib.crc32(column, check)

    # Without a saved index each opening builds it again.
    with suppress(OSError):
        replace_file(folder / INDEX_NAME, lambda file: file.writelines([b"%08x" % check, text, b"\n", *columns]))


def load_index(folder: Path) -> tuple[Index, list[IndexedPart], list[Damage]] | None:
    """Return the saved index, the files that it covers, and the damage in them; None if there is none to use."""
    try:
        with open_regular(folder / INDEX_NAME) as file:
            stated, text = file.read(8), file.readline()
            head = json.loads(text)
            if head["version"] != _VERSION:
                return None
            check = zlib.crc32(text.removesuffix(b"\n"))
            columns: dict[str, Any] = {}
            for name, kind in COLUMN_TYPES.items():
                columns[name] = np.fromfile(file, dtype=kind, count=head["rows"])
                check = zlib.crc32(columns[name].view(np.uint8), check)
            if stated != b"%08x" % check or file.read(1):
                return None
        index = Index(columns, head["texts"], {name: KnownTable(**table) for name, table in head["tables"].items()})
        return index, [IndexedPart(**each) for each in head["coverage"]], [Damage(**each) for each in head["damage"]]
    except (OSError, ValueError, KeyError, TypeError, IndexError, AttributeError, MemoryError, RecursionError):
        return None
