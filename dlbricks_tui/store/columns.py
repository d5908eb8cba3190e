"""The columns by which results are listed, filtered and sorted, and tests of their values."""

import operator
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dlbricks_tui.models.graph import Level
from dlbricks_tui.models.kinds import Kind
from dlbricks_tui.runtime.variant import Variant, stated_precision, stated_threads, stated_variant
from dlbricks_tui.store.index import (
    ORIGIN_COLUMN,
    OWN,
    REFERENCE_COLUMN,
    SHARED_COLUMN,
    TEXT_COLUMNS,
    Column,
    Index,
    Rows,
    to_iso,
    trust_in,
)
from dlbricks_tui.store.labels import kind_of_label

Mask = NDArray[np.bool_]


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
    # Those of the runtime; 0: as many as the framework starts by default.
    "threads": Content.NUMBER,
    "precision": Content.TEXT,
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
    # `own`, `unsigned` or `signed by` somebody.
    ORIGIN_COLUMN: Content.TEXT,
}
_COMPARISONS: Mapping[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
# Whole numbers up to here are exact as floating-point numbers.
_EXACT = 1 << 53
# Other names that filters and orders accept for a column: the headings of the results table.
_ALIASES: Mapping[str, str] = {
    "part": "name",
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
    threads: int
    precision: str
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
    # Its model, or for a brick the models of its run.
    models: str
    # Where it comes from: `own`, `unsigned`, or `signed by` somebody.
    origin: str
    # Half of the interval as a share of the latency, for all results of the same rounds; negative if unknown.
    shared: float

    @property
    def precedence(self) -> tuple[int, str]:
        """The rank among results of the same subject: the highest one counts, as with `LEAST_FIRST`."""
        return trust_in(self.origin), self.when

    @property
    def variant(self) -> Variant:
        """The variant in which it was measured."""
        return replace(stated_variant(self.runtime, self.batch_size), threads=self.threads or None)

    @property
    def key(self) -> str:
        """The argument for `dlbricks results show`: the brick's key, or the id of a whole model's result."""
        return self.brick or self.id


def column_named(name: str) -> str | None:
    """Return the column of that name or alias, None if there is none."""
    return name if name in COLUMNS else _ALIASES.get(name)


class Numbers(NamedTuple):
    """The values of a column that holds numbers or truth values."""

    values: Column

    def mask(self, operation: str, operand: Any) -> Mask | None:
        """Return the rows that pass a test, None if a column cannot tell."""
        if operation == "one_of" and isinstance(operand, tuple | frozenset) and all(map(_is_number, operand)):
            return np.isin(self.values, list(operand))
        if operation not in _COMPARISONS or not _is_number(operand):
            return None
        mask: Mask = _COMPARISONS[operation](self.values, operand)
        return mask


class Texts(NamedTuple):
    """The values of a column that holds texts: the distinct texts, and the number of each row's text."""

    texts: list[str]
    codes: Column
    # Returns the number of a text without a search; None if several numbers may have one text.
    code: Callable[[str], int | None] | None = None

    def mask(self, operation: str, operand: Any) -> Mask | None:
        """Return the rows that pass a test, None if a column cannot tell."""
        if operation == "==" and isinstance(operand, str):
            operation, operand = "one_of", (operand,)
        if operation == "one_of" and isinstance(operand, tuple | frozenset):
            if self.code is None:
                return self._passing(lambda text: text in operand)
            codes = [self.code(text) for text in operand if isinstance(text, str)]
            return np.isin(self.codes, [code for code in codes if code is not None])
        if operation in _COMPARISONS and isinstance(operand, str):
            return self._passing(lambda text: _COMPARISONS[operation](text, operand))
        if operation == "test":
            test, arguments = operand
            # TinyDB keeps lists as tuples here: the test may tell one from the other.
            if all(isinstance(argument, str | int | float | None) for argument in arguments):
                return self._passing(lambda text: test(text, *arguments))
        return None

    def _passing(self, test: Callable[[str], Any]) -> Mask:
        # Each distinct text is tested once.
        passes = np.fromiter((bool(test(text)) for text in self.texts), dtype=np.bool_, count=len(self.texts))
        return passes[self.codes]


class Times(NamedTuple):
    """The values of a column that holds times; the documents have them as texts, all of the same length."""

    values: Column
    text_of: Callable[[int], str]

    def mask(self, operation: str, operand: Any) -> Mask | None:
        """Return the rows that pass a test, None if a column cannot tell."""
        if operation not in _COMPARISONS or not isinstance(operand, str):
            return None
        times = self.values
        # Texts of one length and one time zone are in the order of the times.
        every = range(int(times.min(initial=0)), int(times.max(initial=0)) + 1)
        begin = every.start + bisect_left(every, operand, key=self.text_of)
        end = every.start + bisect_right(every, operand, key=self.text_of)
        masks: Mapping[str, Mask] = {
            "<": times < begin,
            "<=": times < end,
            ">": times >= end,
            ">=": times >= begin,
            "!=": (times < begin) | (times >= end),
        }
        return masks.get(operation, (times >= begin) & (times < end))


Values = Numbers | Texts | Times


def _is_number(value: Any) -> bool:
    return isinstance(value, bool | float) or (isinstance(value, int) and abs(value) <= _EXACT)


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
        return _models(index, rows)
    if column in ("threads", "precision"):
        # Each distinct runtime is read once.
        identities, codes = index.vocabularies["runtime"].texts, index.column("runtime")[rows]
        if column == "precision":
            return Texts([stated_precision(identity).value for identity in identities], codes)
        return Numbers(np.array([stated_threads(identity) or 0 for identity in identities], dtype=np.int64)[codes])
    if column == ORIGIN_COLUMN:
        known = index.vocabularies[column]
        return Texts(index.origins(), index.column(column)[rows], lambda text: 0 if text == OWN else known.code(text))
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
    if column == ORIGIN_COLUMN:
        return index.trust(rows)
    found = column_of(index, column, rows)
    if not isinstance(found, Texts):
        return found.values
    if column in TEXT_COLUMNS:
        return index.vocabularies[column].ranks()[found.codes]
    # Equal texts, such as those of two runs of the same models, get equal ranks.
    _, ranks = np.unique(np.array(found.texts, dtype=np.object_), return_inverse=True)
    return ranks[found.codes]


def summaries_of(index: Index, rows: Rows) -> list[Summary]:
    """Return the rows as summaries."""
    names = (*COLUMNS, SHARED_COLUMN)
    columns = [values_of(index, column, rows) for column in names]
    columns[names.index("level")] = [Level(level) for level in values_of(index, "level", rows)]
    return [Summary(**dict(zip(names, values, strict=True))) for values in zip(*columns, strict=True)]


def _name_codes(index: Index, rows: Rows) -> Column:
    """Return the number of each row's name; a measurement has the name of its brick."""
    named = np.frombuffer(index.name_of_brick, dtype=np.int32)[index.column("brick")[rows]]
    return np.where(named == 0, index.column("name")[rows], named)


def _models(index: Index, rows: Rows) -> Texts:
    """Return the name of each row's model; a brick may belong to any model of its run."""
    runs, names = index.models_of_runs(), index.vocabularies["name"].texts
    is_whole = index.column("brick")[rows] == 0
    found = np.where(is_whole, len(runs) + index.column("name")[rows], index.column("run")[rows])
    distinct, codes = np.unique(found, return_inverse=True)
    return Texts([runs[it] if it < len(runs) else names[it - len(runs)] for it in distinct.tolist()], codes)


def _kind_codes(index: Index, rows: Rows) -> NDArray[np.intp]:
    """Return the number of each row's kind, which follows from the brick's name."""
    names, codes = np.unique(_name_codes(index, rows), return_inverse=True)
    texts = index.vocabularies["name"].texts
    kinds = np.array([_KINDS.index(kind_of_label(texts[name]).value) for name in names.tolist()], dtype=np.intp)
    return np.where(index.column("brick")[rows] == 0, 0, kinds[codes] if len(names) else codes)
