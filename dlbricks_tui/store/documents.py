"""Records as documents: one line of JSON each, with a checksum."""

import hashlib
import json
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from typing import Any, NamedTuple, cast, get_type_hints

from dlbricks_tui.models.graph import Level
from dlbricks_tui.store.records import (
    BrickForm,
    Calibration,
    Constants,
    EndToEnd,
    Fact,
    Facts,
    Failure,
    Measurement,
    Record,
    Run,
    Runtime,
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
    "runtimes": Runtime,
    "runs": Run,
    "calibrations": Calibration,
    "failures": Failure,
    "end_to_end": EndToEnd,
    "measurements": Measurement,
}
# Documents that are no records: the head of a file, and the mark that a record is deleted.
HEAD = "dlbricks"
# The format in the head of every file. Before version 0.2.0 it had another name, and schemas 1 to 3.
FORMAT = "dlbricks-results"
DELETED = "deleted"
SAMPLES = "samples_ms"

_TABLE_OF = {record: table for table, record in TABLES.items()}
_CHECK_START, _CHECK_END = b'{"check":"', b'",'
_BODY = len(_CHECK_START) + 8 + len(_CHECK_END)


class BrokenDocumentError(Exception):
    """Bytes that are not a document of dlbricks; the message completes "it ..."."""


class Sealed(NamedTuple):
    """A document and its bytes with the checksum."""

    document: Document
    text: bytes


def to_document(record: Record) -> Document:
    """Return a record as JSON values, with its table and schema."""
    content = _write_fields(record)
    # Samples are long and rarely needed: last, they can be left unparsed.
    samples = {SAMPLES: content.pop(SAMPLES)} if SAMPLES in content else {}
    identity = content.pop("uuid") if "uuid" in content else _content_uuid(content)
    return {"table": _TABLE_OF[type(record)], "schema": SCHEMA, "uuid": identity, **content, **samples}


def to_record(document: Document) -> Record:
    """Return the record in a document of this schema."""
    try:
        if document["schema"] != SCHEMA:
            raise BrokenDocumentError(f"has the unknown schema {document['schema']!r}")
        kind = TABLES[document["table"]]
        return kind(**_read_fields(kind, document))
    except KeyError as error:
        raise BrokenDocumentError(f"lacks {error}") from error
    except (TypeError, ValueError) as error:
        raise BrokenDocumentError(f"has a wrong value: {error}") from error


def deletion(uuid: str) -> Document:
    """Return the document that deletes a record."""
    return {"table": DELETED, "schema": SCHEMA, "uuid": uuid}


def seal(document: Document) -> Sealed:
    """Return a document and its bytes, which begin with the checksum of the rest."""
    body = json.dumps(document, separators=(",", ":"), allow_nan=False).encode("ascii")[1:]
    return Sealed(document, b"%s%08x%s%s" % (_CHECK_START, zlib.crc32(body), _CHECK_END, body))


def unseal(text: bytes) -> Document:
    """Return the document in these bytes; raise BrokenDocumentError if the checksum is wrong."""
    if not (text.startswith(_CHECK_START) and text[_BODY - len(_CHECK_END) : _BODY] == _CHECK_END):
        raise BrokenDocumentError("does not begin with a checksum")
    body = text[_BODY:]
    if b"%08x" % zlib.crc32(body) != text[len(_CHECK_START) : _BODY - len(_CHECK_END)]:
        raise BrokenDocumentError("does not agree with its checksum")
    try:
        return cast(Document, json.loads(b"{" + body))
    except (ValueError, RecursionError) as error:
        # A forged document: the checksum is right.
        raise BrokenDocumentError(f"is not JSON: {error}") from error


def resealed(document: Document) -> Sealed:
    """Return a document that another JSON writer has reformatted; raise if its values changed."""
    content = {name: value for name, value in document.items() if name != "check"}
    try:
        sealed = seal(content)
    except (TypeError, ValueError) as error:
        raise BrokenDocumentError(f"has wrong values: {error}") from error
    if not sealed.text.startswith(_CHECK_START + str(document.get("check")).encode("ascii", "replace") + _CHECK_END):
        raise BrokenDocumentError("does not agree with its checksum")
    return sealed


def _content_uuid(content: Document) -> str:
    # Two stores have the same uuid for the same brick, system or runtime.
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:32]


class _Codec(NamedTuple):
    """Functions that write and read the values of one type; reading refuses everything that is never written."""

    write: Callable[[Any], Any]
    read: Callable[[Any], Any]


def _write_fields(value: Any) -> Document:
    return {name: codec.write(getattr(value, name)) for name, codec in _FIELDS[type(value)].items()}


def _read_fields(kind: type[Any], document: Document) -> dict[str, Any]:
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


def _texts(value: Any) -> tuple[str, ...]:
    return tuple(map(_text, value))


def _numbers(value: Any) -> tuple[float, ...]:
    return tuple(map(_number, value))


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
