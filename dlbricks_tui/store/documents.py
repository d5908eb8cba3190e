"""Records as the JSON documents of TinyDB, which the store holds, and back; and the errors of the store."""

import errno
import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, NamedTuple, get_type_hints

from dlbricks_tui.errors import UserError
from dlbricks_tui.models.graph import Level
from dlbricks_tui.store.records import (
    BrickForm,
    Constants,
    EndToEnd,
    Facts,
    Failure,
    Import,
    LoadTest,
    Measurement,
    Peaks,
    Proof,
    Provenance,
    Record,
    Run,
    RuntimeRecord,
    Statistics,
    System,
)

_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


class StoreError(UserError):
    """The store cannot do what was asked."""


class OtherVersionError(StoreError):
    """A store or a file of results that another version of dlbricks wrote."""


def written_before_0_2(path: Path, cure: str) -> OtherVersionError:
    """Return the error for a file of an unreleased version."""
    return OtherVersionError(
        f"{path} was written by a dlbricks before version 0.2.0, which this version cannot read; nothing was changed: "
        f"{cure}"
    )


def written_by_newer(path: Path, schema: int, known: int) -> OtherVersionError:
    """Return the error for a file of a newer version."""
    return OtherVersionError(
        f"{path} was written by a newer dlbricks (schema {schema}, this version reads {known}); nothing was changed: "
        "update dlbricks, or choose another data folder with --data-dir"
    )


class NoRoomError(StoreError):
    """The disk of the store is full, or a quota is used up."""


class StoreBusyError(StoreError):
    """Another process keeps the store locked."""


class DamagedResultError(StoreError):
    """A result in the index that can no longer be read."""


class QueryError(StoreError):
    """A wrong filter, column or order."""


class ExchangeError(StoreError):
    """A file that cannot be imported or exported."""


def cannot_write(path: Path, error: OSError) -> StoreError:
    """Return the error for a store that cannot be written, with what to do about the cause."""
    kind, cure = (NoRoomError, "free some space") if error.errno in _NO_ROOM else (StoreError, "make it writable")
    return kind(
        f"cannot write {path}: {error.strerror}; the store stays as it was: {cure}, or choose another data folder"
    )


def cannot_read(path: Path, error: OSError) -> StoreError:
    """Return the error for a store file that exists and cannot be read."""
    return StoreError(f"cannot read {path}: {error.strerror}; make it readable, or choose another data folder")


Document = dict[str, Any]

# The schema of every document. A store of another schema is refused and left as it is.
SCHEMA = 1

# The order of a compacted file: definitions come before the records that refer to them.
TABLES: Mapping[str, type[Record]] = {
    "bricks": BrickForm,
    "systems": System,
    "runtimes": RuntimeRecord,
    "peaks": Peaks,
    "runs": Run,
    "provenance": Provenance,
    "failures": Failure,
    "proofs": Proof,
    "load_tests": LoadTest,
    "end_to_end": EndToEnd,
    "measurements": Measurement,
    # Last: it refers to records of all other tables.
    "imports": Import,
}
# Earlier versions kept constants in it. A store leaves it as it is, like tables of other programs.
FORMER_TABLE = "calibrations"
# The tables that travel in files of results. A file cannot tell where a store has its records from.
EXCHANGED = tuple(name for name in TABLES if name != "imports")
TABLE_OF: Mapping[type[Record], str] = {record: table for table, record in TABLES.items()}
SAMPLES = ("samples_ms", "changed_samples_ms", "latencies")


class BrokenDocumentError(Exception):
    """Bytes or values that are no document of dlbricks; the message completes "it ..."."""


def hash_of(content: Any) -> str:
    """Return an id that follows from JSON values, so that two stores have the same one for the same content."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:32]


def fields_of(record: Record) -> Document:
    """Return a record as the JSON values that its table holds."""
    content = _write_fields(record)
    # Samples are long and rarely read: they come last.
    samples = {name: content.pop(name) for name in SAMPLES if name in content}
    identity = content.pop("uuid", "") or hash_of(content)
    return {"uuid": identity, **content, **samples}


def record_of(table: str, document: Mapping[str, Any]) -> Record:
    """Return the record in a document of a table."""
    try:
        kind = TABLES[table]
        return kind(**_read_fields(kind, document))
    except KeyError as error:
        raise BrokenDocumentError(f"lacks {error}") from error
    except (TypeError, ValueError, OverflowError) as error:
        # A whole number may be too large for a latency.
        raise BrokenDocumentError(f"has a wrong value: {error}") from error


def to_document(record: Record) -> Document:
    """Return a record as JSON values that name its table and schema, for other programs."""
    return {"table": TABLE_OF[type(record)], "schema": SCHEMA, **fields_of(record)}


def to_record(document: Mapping[str, Any]) -> Record:
    """Return the record in a document that names its table and schema."""
    if document.get("schema") != SCHEMA:
        raise BrokenDocumentError(f"has the unknown schema {document.get('schema')!r}")
    return record_of(document.get("table", "table"), document)


class _Codec(NamedTuple):
    """Functions that read and write the values of one type; reading refuses everything that is never written."""

    read: Callable[[Any], Any]
    write: Callable[[Any], Any] = lambda value: value


def _write_fields(value: Any) -> Document:
    return {name: codec.write(getattr(value, name)) for name, codec in _FIELDS[type(value)].items()}


def _read_fields(kind: type[Any], document: Mapping[str, Any]) -> dict[str, Any]:
    return {name: codec.read(document[name]) for name, codec in _FIELDS[kind].items()}


def _reader(kind: Any, otherwise: str) -> Callable[[Any], Any]:
    def read(value: Any) -> Any:
        # True is an int in Python.
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise TypeError(f"{value!r} is {otherwise}")
        return value

    return read


_text = _reader(str, "not a text")
_fact = _reader((bool, int, float, str, type(None)), "not a single value")


def _number(value: Any) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise TypeError(f"{value!r} is not a number")
    return float(value)


def _numbers(value: Any) -> tuple[float, ...]:
    # Samples are many, and nearly always numbers of this type.
    return tuple(value) if isinstance(value, list) and set(map(type, value)) == {float} else tuple(map(_number, value))


def _pairs(value: Any, read: Callable[[Any], Any]) -> tuple[tuple[str, Any], ...]:
    if not isinstance(value, dict):
        raise TypeError(f"{value!r} is not an object")
    return tuple((_text(name), read(each)) for name, each in value.items())


_CODECS: Mapping[Any, _Codec] = {
    str: _Codec(_text),
    int: _Codec(_reader(int, "not a whole number")),
    float: _Codec(_number),
    float | None: _Codec(lambda value: None if value is None else _number(value)),
    bool: _Codec(_reader(bool, "neither true nor false")),
    Level: _Codec(Level, lambda level: level.value),
    tuple[str, ...]: _Codec(lambda value: tuple(map(_text, value)), list),
    tuple[float, ...]: _Codec(_numbers, list),
    Facts: _Codec(lambda value: _pairs(value, _fact), dict),
    Constants: _Codec(lambda value: _pairs(value, _number), dict),
    Statistics: _Codec(lambda value: Statistics(**_read_fields(Statistics, value)), _write_fields),
}

_FIELDS: Mapping[type[Any], Mapping[str, _Codec]] = {
    kind: {each.name: _CODECS[hints[each.name]] for each in fields(kind)}
    for kind in (Statistics, *TABLES.values())
    if (hints := get_type_hints(kind))
}
