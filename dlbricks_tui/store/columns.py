"""The columns by which results are listed, filtered and sorted, and the fields of documents that have columns."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dlbricks_tui.models.graph import Level
from dlbricks_tui.models.kinds import Kind
from dlbricks_tui.store.documents import TABLES, Document
from dlbricks_tui.store.generation import Generation
from dlbricks_tui.store.index import (
    FIELD_OF_COLUMN,
    REFERENCE_COLUMN,
    RESULT_TABLES,
    STATISTIC_COLUMNS,
    TEXT_COLUMNS,
    UUID_BYTES,
    Column,
    Index,
    Rows,
    to_iso,
)
from dlbricks_tui.store.labels import kind_of_label
from dlbricks_tui.store.query_masks import Numbers, Path, Texts, Times, Values


class Content(Enum):
    """The type of a column's values."""

    TEXT = "text"
    # A long hexadecimal text, which users shorten.
    KEY = "key"
    NUMBER = "number"
    TIME = "time"
    FLAG = "flag"


# The order of the lists.
COLUMNS: Mapping[str, Content] = {
    "id": Content.KEY,
    "of": Content.TEXT,
    "name": Content.TEXT,
    "kind": Content.TEXT,
    "brick": Content.KEY,
    "context": Content.TEXT,
    "model": Content.KEY,
    "system": Content.TEXT,
    "runtime": Content.TEXT,
    "level": Content.TEXT,
    "protocol": Content.TEXT,
    "batch_size": Content.NUMBER,
    "dtype": Content.TEXT,
    "kernel_variant": Content.TEXT,
    "trimmed_mean_ms": Content.NUMBER,
    "median_ms": Content.NUMBER,
    "minimum_ms": Content.NUMBER,
    "spread_ms": Content.NUMBER,
    "low_ms": Content.NUMBER,
    "high_ms": Content.NUMBER,
    "samples": Content.NUMBER,
    REFERENCE_COLUMN: Content.NUMBER,
    "when": Content.TIME,
    "run": Content.TEXT,
    "good": Content.FLAG,
    "models": Content.TEXT,
}
# Other names that filters and orders accept for a column: the headings of the results table.
_ALIASES: Mapping[str, str] = {
    "ms": "trimmed_mean_ms",
    "median": "median_ms",
    "minimum": "minimum_ms",
    "spread": "spread_ms",
    "low": "low_ms",
    "high": "high_ms",
    "batch": "batch_size",
    "type": "dtype",
    "kernel": "kernel_variant",
    "n": "samples",
    "reference": REFERENCE_COLUMN,
}
# The subject of a result by its table.
_OF = {"measurements": "brick", "end_to_end": "model"}
_DIGITS = frozenset("0123456789abcdef")
# A whole model has no kind.
_KINDS = ("", *(kind.value for kind in Kind))


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """A result without its samples: of a brick in a context, or of a whole model (brick and context empty)."""

    id: str
    of: str
    name: str
    kind: str
    brick: str
    context: str
    model: str
    system: str
    runtime: str
    level: Level
    protocol: str
    batch_size: int
    dtype: str
    kernel_variant: str
    trimmed_mean_ms: float
    median_ms: float
    minimum_ms: float
    spread_ms: float
    low_ms: float
    high_ms: float
    samples: int
    reference_ms: float
    when: str
    run: str
    good: bool
    # The models of its run.
    models: str

    @property
    def key(self) -> str:
        """The argument for `dlbricks results show`: the brick's key, or the id of a whole model's result."""
        return self.brick or self.id


def column_named(name: str) -> str | None:
    """Return the column of that name or alias, None if there is none."""
    return name if name in COLUMNS else _ALIASES.get(name)


def column_of(index: Index, column: str, rows: Rows) -> Values:
    """Return the values of a column, or of one that is derived from other records."""
    if column == "id":
        ids = [uuid.hex() for uuid in index.column("uuid")[rows].tolist()]
        return Texts(ids, np.arange(len(ids)))
    if column == "when":
        return Times(index.column(column)[rows], to_iso)
    if column == "of":
        return Texts([_OF.get(table, table) for table in index.known_tables], index.column("table")[rows])
    if column == "kind":
        return Texts(list(_KINDS), _kind_codes(index, rows))
    if column == "models":
        # One text per run; results have the number of their run.
        return Texts(index.models_of_runs(), index.column("run")[rows])
    if column in TEXT_COLUMNS:
        codes = _name_codes(index, rows) if column == "name" else index.column(column)[rows]
        return Texts(index.vocabularies[column].texts, codes, index.vocabularies[column].code)
    return Numbers(index.column(column)[rows])


def values_of(index: Index, column: str, rows: Rows) -> list[Any]:
    """Return the values of a column as Python objects."""
    found = column_of(index, column, rows)
    if isinstance(found, Texts):
        return [found.texts[code] for code in found.codes.tolist()]
    values: list[Any] = found.values.tolist()
    return [found.text_of(value) for value in values] if isinstance(found, Times) else values


def sorting_keys(index: Index, column: str, rows: Rows) -> Column:
    """Return numbers in the order in which users expect the values."""
    if column == "id":
        return index.column("uuid")[rows].view(">u8").reshape(-1, 2)[:, 0]
    found = column_of(index, column, rows)
    if not isinstance(found, Texts):
        return found.values
    if column in TEXT_COLUMNS:
        return index.vocabularies[column].ranks()[found.codes]
    # Equal texts, such as those of two runs of the same models, get equal ranks.
    _, ranks = np.unique(np.array(found.texts, dtype=np.object_), return_inverse=True)
    return ranks[found.codes]


class TableFields:
    """The fields of a table, or of tables with the same columns, for queries."""

    def __init__(self, generation: Generation, *tables: str, columns: Mapping[Path, str]) -> None:
        self._generation = generation
        self._index = generation.index
        self._tables = tables
        self._columns = columns

    def rows(self) -> Rows:
        return self._index.rows_of(*self._tables)

    def in_order(self, rows: Rows) -> Rows:
        return rows[np.argsort(self._index.column("order")[rows])]

    def rows_with(self, path: Path, value: Any) -> Rows | None:
        column = self._columns.get(path)
        if column == "brick" and isinstance(value, str) and value:
            found = np.fromiter(self._index.rows_of_brick(value), dtype=np.intp)
        elif column == "id" and isinstance(value, str) and len(value) == 2 * UUID_BYTES and set(value) <= _DIGITS:
            row = self._index.row_of_uuid(value)
            found = np.array([] if row is None else [row], dtype=np.intp)
        else:
            return None
        known = self._index.known_tables
        return found[
            np.isin(self._index.column("table")[found], [known[it].code for it in self._tables if it in known])
        ]

    def values(self, path: Path, rows: Rows) -> Values | None:
        column = self._columns.get(path)
        return None if column is None else column_of(self._index, column, rows)

    def document(self, row: int) -> Document:
        return self._generation.document(row)


class ResultFields(TableFields):
    """Bricks and whole models that were timed, in one list, or some of them.

    Their documents also have the columns of the list.
    """

    def __init__(self, generation: Generation, only: Rows | None = None) -> None:
        super().__init__(generation, *RESULT_TABLES, columns={(name,): name for name in COLUMNS})
        self._only = only

    def rows(self) -> Rows:
        return super().rows() if self._only is None else self._only

    def rows_with(self, path: Path, value: Any) -> Rows | None:
        return super().rows_with(path, value) if self._only is None else None

    def document(self, row: int) -> Document:
        rows = np.array([row])
        return super().document(row) | {name: values_of(self._index, name, rows)[0] for name in COLUMNS}


def columns_of_table(table: str) -> Mapping[Path, str]:
    """Return the fields of a table that have columns; a table that is not one of dlbricks has none."""
    if table not in TABLES:
        return {}
    found: dict[Path, str] = {("uuid",): "id"}
    names = {field: column for column, field in FIELD_OF_COLUMN.get(table, {}).items()}
    for each in fields(TABLES[table]):
        column = names.get(each.name, each.name)
        if column in TEXT_COLUMNS:
            found[(each.name,)] = column
    if table in RESULT_TABLES:
        found |= {("statistics", name): name for name in STATISTIC_COLUMNS}
        found |= {("statistics", "count"): "samples", ("batch_size",): "batch_size"}
    return found


def summaries_of(index: Index, rows: Rows) -> list[Summary]:
    """Return the rows as summaries."""
    columns = [values_of(index, column, rows) for column in COLUMNS]
    columns[list(COLUMNS).index("level")] = [Level(level) for level in values_of(index, "level", rows)]
    names = tuple(COLUMNS)
    return [Summary(**dict(zip(names, values, strict=True))) for values in zip(*columns, strict=True)]


def _name_codes(index: Index, rows: Rows) -> Column:
    """Return the number of each row's name; a measurement has the name of its brick."""
    named = np.frombuffer(index.name_of_brick, dtype=np.int32)[index.column("brick")[rows]]
    return np.where(named == 0, index.column("name")[rows], named)


def _kind_codes(index: Index, rows: Rows) -> NDArray[np.intp]:
    """Return the number of each row's kind, which follows from the brick's name."""
    names, codes = np.unique(_name_codes(index, rows), return_inverse=True)
    texts = index.vocabularies["name"].texts
    kinds = np.array([_KINDS.index(kind_of_label(texts[name]).value) for name in names.tolist()], dtype=np.intp)
    return np.where(index.column("brick")[rows] == 0, 0, kinds[codes] if len(names) else codes)
