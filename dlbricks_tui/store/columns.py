"""The columns by which results are listed, filtered and sorted."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dlbricks_tui.models.graph import Level
from dlbricks_tui.models.kinds import Kind
from dlbricks_tui.store.index import REFERENCE_COLUMN, TABLE_NAMES, TEXT_COLUMNS, Column, Index, to_iso
from dlbricks_tui.store.labels import kind_of_label

Rows = NDArray[np.intp]


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
# Columns that are derived from other records.
DERIVED = ("of", "kind", "models")
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


def texts_of(index: Index, column: str, rows: Rows) -> tuple[list[str], NDArray[np.intp]]:
    """Return the distinct texts of a column, and the number of each row's text."""
    if column == "of":
        return [_OF.get(table, table) for table in TABLE_NAMES], index.column("table")[rows].astype(np.intp)
    if column == "name":
        return index.vocabularies["name"].texts, _name_codes(index, rows)
    if column == "kind":
        return list(_KINDS), _kind_codes(index, rows)
    if column == "models":
        # One text per run; results have the number of their run.
        return index.models_of_runs(), index.column("run")[rows].astype(np.intp)
    return index.vocabularies[column].texts, index.column(column)[rows].astype(np.intp)


def numbers_of(index: Index, column: str, rows: Rows) -> Column:
    """Return the values of a column that does not hold texts."""
    return index.column(column)[rows]


def values_of(index: Index, column: str, rows: Rows) -> list[Any]:
    """Return the values of a column as Python objects."""
    if column == "id":
        return [uuid.hex() for uuid in index.column("uuid")[rows].tolist()]
    if column in TEXT_COLUMNS or column in DERIVED:
        texts, codes = texts_of(index, column, rows)
        return [texts[code] for code in codes.tolist()]
    values: list[Any] = numbers_of(index, column, rows).tolist()
    return [to_iso(value) for value in values] if COLUMNS[column] is Content.TIME else values


def sorting_keys(index: Index, column: str, rows: Rows) -> Column:
    """Return numbers in the order in which users expect the values."""
    if column == "id":
        return index.column("uuid")[rows].view(">u8").reshape(-1, 2)[:, 0]
    if column in DERIVED:
        texts, codes = texts_of(index, column, rows)
        # Equal texts, such as those of two runs of the same models, get equal ranks.
        _, ranks = np.unique(np.array(texts, dtype=np.object_), return_inverse=True)
        return ranks[codes]
    if column in TEXT_COLUMNS:
        return index.vocabularies[column].ranks()[texts_of(index, column, rows)[1]]
    return numbers_of(index, column, rows)


def summaries_of(index: Index, rows: Rows) -> list[Summary]:
    """Return the rows as summaries."""
    columns = [values_of(index, column, rows) for column in COLUMNS]
    columns[list(COLUMNS).index("level")] = [Level(level) for level in values_of(index, "level", rows)]
    names = tuple(COLUMNS)
    return [Summary(**dict(zip(names, values, strict=True))) for values in zip(*columns, strict=True)]


def _name_codes(index: Index, rows: Rows) -> NDArray[np.intp]:
    """Return the number of each row's name; a measurement has the name of its brick."""
    bricks = index.column("brick")[rows].tolist()
    named = np.fromiter(map(index.name_of_brick.__getitem__, bricks), dtype=np.intp, count=len(bricks))
    return np.where(named == 0, index.column("name")[rows], named)


def _kind_codes(index: Index, rows: Rows) -> NDArray[np.intp]:
    """Return the number of each row's kind, which follows from the brick's name."""
    names, codes = np.unique(_name_codes(index, rows), return_inverse=True)
    texts = index.vocabularies["name"].texts
    kinds = np.array([_KINDS.index(kind_of_label(texts[name]).value) for name in names.tolist()], dtype=np.intp)
    return np.where(index.column("brick")[rows] == 0, 0, kinds[codes] if len(names) else codes)
