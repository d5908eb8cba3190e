"""Records as documents: what TinyDB keeps, one line of JSON each, with a checksum that a flipped bit breaks."""

import hashlib
import json
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from typing import Any, NamedTuple, cast, get_type_hints

from dlbricks_tui.models.graph import Level
from dlbricks_tui.store.migrations import SCHEMA, Document, upgraded
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

# In the order in which a compacted file has them: what others refer to comes first.
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
# What is no record: the head of a file, and the mark that a record is gone.
HEAD = "dlbricks"
DELETED = "deleted"
SAMPLES = "samples_ms"

_TABLE_OF = {record: table for table, record in TABLES.items()}
_CHECK_START, _CHECK_END = b'{"check":"', b'",'
_BODY = len(_CHECK_START) + 8 + len(_CHECK_END)


class BrokenDocumentError(Exception):
    """These bytes are not a document as dlbricks writes them; the message completes "it ..."."""


class Sealed(NamedTuple):
    """A document beside the checked bytes that hold it."""

    document: Document
    text: bytes


def to_document(record: Record) -> Document:
    """The record as JSON values, under its table and schema."""
    content = _write_fields(record)
    # Samples are long and seldom wanted: standing last, they can be left unparsed.
    samples = {SAMPLES: content.pop(SAMPLES)} if SAMPLES in content else {}
    identity = content.pop("uuid") if "uuid" in content else _content_uuid(content)
    return {"table": _TABLE_OF[type(record)], "schema": SCHEMA, "uuid": identity, **content, **samples}


def to_record(document: Document) -> Record:
    """The record that a document of any known schema holds."""
    try:
        current = upgraded(document)
        kind = TABLES[current["table"]]
        return kind(**_read_fields(kind, current))
    except KeyError as error:
        raise BrokenDocumentError(f"lacks {error}") from error
    except (TypeError, ValueError) as error:
        raise BrokenDocumentError(f"has a wrong value: {error}") from error


def deletion(uuid: str) -> Document:
    """The document that takes a record out of the store."""
    return {"table": DELETED, "schema": SCHEMA, "uuid": uuid}


def seal(document: Document) -> Sealed:
    """The document's bytes, beginning with the checksum of all that follows it."""
    body = json.dumps(document, separators=(",", ":"), allow_nan=False).encode("ascii")[1:]
    return Sealed(document, b"%s%08x%s%s" % (_CHECK_START, zlib.crc32(body), _CHECK_END, body))


def unseal(text: bytes) -> Document:
    """The document in these bytes, without the checksum that it was found to agree with."""
    if not (text.startswith(_CHECK_START) and text[_BODY - len(_CHECK_END) : _BODY] == _CHECK_END):
        raise BrokenDocumentError("does not begin with a checksum")
    body = text[_BODY:]
    if b"%08x" % zlib.crc32(body) != text[len(_CHECK_START) : _BODY - len(_CHECK_END)]:
        raise BrokenDocumentError("does not agree with its checksum")
    try:
        return cast(Document, json.loads(b"{" + body))
    except (ValueError, RecursionError) as error:
        # Only a forger gets here: his checksum is right.
        raise BrokenDocumentError(f"is not JSON: {error}") from error


def resealed(document: Document) -> Sealed:
    """The bytes of a document that another JSON writer has laid out anew, if nothing else changed in it."""
    content = {name: value for name, value in document.items() if name != "check"}
    try:
        sealed = seal(content)
    except (TypeError, ValueError) as error:
        raise BrokenDocumentError(f"has wrong values: {error}") from error
    if not sealed.text.startswith(_CHECK_START + str(document.get("check")).encode("ascii", "replace") + _CHECK_END):
        raise BrokenDocumentError("does not agree with its checksum")
    return sealed


def _content_uuid(content: Document) -> str:
    # Two stores that meet must see that they speak of the same brick, system or runtime.
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:32]


class _Codec(NamedTuple):
    """How values of one type stand in JSON, and how they come back; reading refuses what writing never writes."""

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
        raise TypeError(f"{value!r} is no text")
    return value


def _whole(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{value!r} is no whole number")
    return value


def _number(value: Any) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise TypeError(f"{value!r} is no number")
    return float(value)


def _texts(value: Any) -> tuple[str, ...]:
    return tuple(map(_text, value))


def _numbers(value: Any) -> tuple[float, ...]:
    return tuple(map(_number, value))


def _fact(value: Any) -> Fact:
    if not isinstance(value, bool | int | float | str | None):
        raise TypeError(f"{value!r} is no single value")
    return value


def _items(value: Any) -> Iterable[tuple[str, Any]]:
    if not isinstance(value, dict):
        raise TypeError(f"{value!r} is no object")
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
