"""Records as documents, the JSON values that the store holds, and back."""

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from typing import Any, NamedTuple, get_type_hints

from dlbricks_tui.models.graph import Level
from dlbricks_tui.store.records import (
    BrickForm,
    Constants,
    EndToEnd,
    Fact,
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


def fields_of(record: Record) -> Document:
    """Return a record as the JSON values that its table holds."""
    content = _write_fields(record)
    # Samples are long and rarely read: they come last.
    samples = {name: content.pop(name) for name in SAMPLES if name in content}
    identity = content.pop("uuid") if "uuid" in content else _content_uuid(content)
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


def _content_uuid(content: Document) -> str:
    # Two stores have the same uuid for the same brick, system or runtime.
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:32]


class _Codec(NamedTuple):
    """Functions that write and read the values of one type; reading refuses everything that is never written."""

    write: Callable[[Any], Any]
    read: Callable[[Any], Any]


def _write_fields(value: Any) -> Document:
    return {name: codec.write(getattr(value, name)) for name, codec in _FIELDS[type(value)].items()}


def _read_fields(kind: type[Any], document: Mapping[str, Any]) -> dict[str, Any]:
    return {name: codec.read(document[name]) for name, codec in _FIELDS[kind].items()}


def _as_it_is(value: Any) -> Any:
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not a text")
    return value


def _whole(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{value!r} is not a whole number")
    return value


def _number(value: Any) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise TypeError(f"{value!r} is not a number")
    return float(value)


def _number_if_any(value: Any) -> float | None:
    return None if value is None else _number(value)


def _truth(value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"{value!r} is neither true nor false")
    return value


def _texts(value: Any) -> tuple[str, ...]:
    return tuple(map(_text, value))


def _numbers(value: Any) -> tuple[float, ...]:
    # Samples are many, and nearly always numbers of this type.
    return tuple(value) if isinstance(value, list) and set(map(type, value)) == {float} else tuple(map(_number, value))


def _fact(value: Any) -> Fact:
    if not isinstance(value, bool | int | float | str | None):
        raise TypeError(f"{value!r} is not a single value")
    return value


def _items(value: Any) -> Iterable[tuple[str, Any]]:
    if not isinstance(value, dict):
        raise TypeError(f"{value!r} is not an object")
    return ((_text(name), each) for name, each in value.items())


def _facts(value: Any) -> Facts:
    return tuple((name, _fact(fact)) for name, fact in _items(value))


def _constants(value: Any) -> Constants:
    return tuple((name, _number(constant)) for name, constant in _items(value))


def _statistics(value: Any) -> Statistics:
    return Statistics(**_read_fields(Statistics, value))


_CODECS: Mapping[Any, _Codec] = {
    str: _Codec(_as_it_is, _text),
    int: _Codec(_as_it_is, _whole),
    float: _Codec(_as_it_is, _number),
    float | None: _Codec(_as_it_is, _number_if_any),
    bool: _Codec(_as_it_is, _truth),
    Level: _Codec(lambda level: level.value, Level),
    tuple[str, ...]: _Codec(list, _texts),
    tuple[float, ...]: _Codec(list, _numbers),
    Facts: _Codec(dict, _facts),
    Constants: _Codec(dict, _constants),
    Statistics: _Codec(_write_fields, _statistics),
}

_FIELDS: Mapping[type[Any], Mapping[str, _Codec]] = {
    kind: {each.name: _CODECS[hints[each.name]] for each in fields(kind)}
    for kind in (Statistics, *TABLES.values())
    if (hints := get_type_hints(kind))
}
