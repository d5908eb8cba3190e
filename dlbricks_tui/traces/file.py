"""Traces as files: gzipped JSON with the spans of a track in columns, checked when it is read.

The first line of the JSON text has the header, so that a list of many traces reads no spans.
"""

import gzip
import json
import math
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from enum import Enum
from pathlib import Path
from types import NoneType
from typing import Any, TypeVar

from dlbricks_tui.files import check_fields, open_regular, parsed_document, replace_file
from dlbricks_tui.host.fingerprint import fingerprint
from dlbricks_tui.models.graph import Level
from dlbricks_tui.recorded_host import processors_here
from dlbricks_tui.runtime.runtime import numbered_identity
from dlbricks_tui.store.records import Facts
from dlbricks_tui.traces.trace import (
    Counter,
    LevelTrace,
    MissingLevel,
    Trace,
    TracedLayer,
    TraceError,
    TraceHeader,
    TraceLevel,
    TraceSpan,
    Track,
    TrackKind,
)

SUFFIX = ".json.gz"
FORMAT = "dlbricks-trace"
SCHEMA = 1
# The most that a file may hold once it is unpacked. A trace of 100,000 spans has about 3 MB.
MOST_BYTES = 1 << 27
# Times up to about 100 days, which all formats hold exactly.
_MOST_NS = 1 << 53
_MOST_INTEGER = 1 << 63
_MOST_LAYERS = 1 << 31
# Names in a header may be long.
_LONGEST_HEADER = 1 << 20
_CURE = "trace the model again, or use the version that wrote the trace"

_HEADER: Mapping[str, type] = {it.name: int if it.type is int else str for it in fields(TraceHeader)}
_LAYER_COLUMNS = ("index", "name", "kind", "brick", "context", "brick_ms")
_COUNTER = ("name", "unit", "times_ns", "values")
_SPAN_COLUMNS = ("start_ns", "duration_ns", "inference", "layer")
_Member = TypeVar("_Member", bound=Enum)
_Found = TypeVar("_Found")


def write_trace(trace: Trace, path: Path) -> None:
    """Write a trace completely or not at all."""
    try:
        # The same trace is the same file.
        content = gzip.compress(rendered(trace).encode("ascii"), mtime=0)
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, lambda file: file.write(content))
    except ValueError as error:
        raise TraceError(f"the trace {error}; this is a fault of dlbricks") from error
    except OSError as error:
        raise TraceError(f"cannot write {path}: {error.strerror}") from error


def rendered(trace: Trace) -> str:
    """Return the text of a file; raise ValueError, whose message completes "it ...", for an impossible trace."""
    for level in trace.levels:
        for track in level.tracks:
            _check_order(track)
    header = {"format": FORMAT, "schema": SCHEMA, **{name: getattr(trace, name) for name in _HEADER}}
    body = {
        "layers": _columns(trace.layers, _LAYER_COLUMNS),
        "levels": [_level_document(it) for it in trace.levels],
        "missing": [[it.level, it.reason] for it in trace.missing],
    }
    return f"{_text(header)[:-1]},\n{_text(body)[1:]}\n"


def read_trace(path: Path) -> Trace:
    """Return the trace in a file, each part of it checked to be possible."""
    return _read(path, MOST_BYTES, _whole)


def read_header(path: Path) -> TraceHeader:
    """Return the header of a trace; the rest of the file is neither read nor checked."""

    def header(line: bytes) -> TraceHeader:
        # It ends with the comma before the rest.
        return _header(parsed_document(line.rstrip().removesuffix(b",") + b"}", FORMAT, SCHEMA, _CURE))

    return _read(path, _LONGEST_HEADER, header, line=True)


def _text(document: object) -> str:
    return json.dumps(document, allow_nan=False, separators=(",", ":"))


def _columns(items: Iterable[object], names: Sequence[str]) -> dict[str, list[Any]]:
    return {name: [getattr(item, name) for item in items] for name in names}


def _level_document(level: LevelTrace) -> dict[str, Any]:
    return {
        "level": level.level,
        "inference_ms": level.inference_ms,
        "overhead_ms": [] if level.overhead_ms is None else [level.overhead_ms],
        "tracks": [_track_document(it) for it in level.tracks],
        "counters": [{name: getattr(it, name) for name in _COUNTER} for it in level.counters],
        "totals": level.totals,
        "notes": level.notes,
    }


def _track_document(track: Track) -> dict[str, Any]:
    # Names and details are the same in each inference: columns refer to each by its number.
    names, name = _numbered([span.name for span in track.spans])
    details, detail = _numbered([span.details for span in track.spans])
    spans = {"names": names, "details": details, "name": name, "detail": detail}
    return {"name": track.name, "kind": track.kind, "spans": spans | _columns(track.spans, _SPAN_COLUMNS)}


def _numbered(values: Sequence[Any]) -> tuple[list[Any], list[int]]:
    """Return the different values, and the number of each value among them."""
    different: dict[str, Any] = {}
    numbers: dict[str, int] = {}
    found = []
    for value in values:
        # By the spelling: 1, 1.0 and true are equal in Python.
        spelled = repr(value)
        if spelled not in numbers:
            numbers[spelled] = len(numbers)
            different[spelled] = value
        found.append(numbers[spelled])
    return list(different.values()), found


def _read(path: Path, limit: int, parse: Callable[[bytes], _Found], *, line: bool = False) -> _Found:
    """Return what a file holds, or its first line; nothing of a file that is too large is parsed."""
    try:
        with open_regular(path) as packed, gzip.open(packed) as file:
            content = file.readline(limit + 1) if line else file.read(limit + 1)
        if len(content) > limit:
            raise ValueError(f"holds more than {limit >> 20} MiB")
        return parse(content)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise TraceError(f"{path} is no {FORMAT} file, or is damaged: {error}; {_CURE}") from None
    except OSError as error:
        raise TraceError(f"cannot read {path}: {error.strerror}") from error
    except ValueError as error:
        raise TraceError(f"{path} {error}") from None


def _whole(content: bytes) -> Trace:
    document = parsed_document(content, FORMAT, SCHEMA, _CURE)
    check_fields(document, {**_HEADER, "layers": dict, "levels": list, "missing": list})
    header = _header({name: document[name] for name in _HEADER})
    layers = _layers(document["layers"])
    known = {layer.index for layer in layers}
    if len(known) != len(layers):
        raise ValueError("has two layers of the same index")
    levels = tuple(_level(each, known) for each in document["levels"])
    missing = []
    for each in document["missing"]:
        if type(each) is not list or [type(it) for it in each] != [str, str]:
            raise ValueError("has a missing level without a reason")
        missing.append(MissingLevel(level=_member(TraceLevel, each[0]), reason=each[1]))
    named = [*(it.level for it in levels), *(it.level for it in missing)]
    if len(set(named)) != len(named):
        raise ValueError("has a level twice")
    named_fields = {name: getattr(header, name) for name in _HEADER}
    return Trace(**named_fields, layers=layers, levels=levels, missing=tuple(missing))


def _header(document: dict[str, Any]) -> TraceHeader:
    check_fields(document, _HEADER)
    try:
        datetime.fromisoformat(document["when"])
    except ValueError:
        raise ValueError("has a time that is no date") from None
    if document["batch_size"] < 1:
        raise ValueError("has a batch size below 1")
    # Earlier versions left the number of threads to the framework.
    here = processors_here()._replace(quota=None) if document["system"] == fingerprint().id else None
    runtime, level = numbered_identity(document["runtime"], here), _member(Level, document["graph_level"])
    return TraceHeader(**{**document, "runtime": runtime, "graph_level": level})


def _layers(document: Any) -> tuple[TracedLayer, ...]:
    check_fields(document, dict.fromkeys(_LAYER_COLUMNS, list))
    texts = [_column(document, name, str) for name in ("name", "kind", "brick", "context")]
    columns = [_column(document, "index", int), *texts, _milliseconds(document, "brick_ms", NoneType)]
    _check_lengths(columns)
    if not all(0 <= index < _MOST_LAYERS for index in columns[0]):
        raise ValueError("has a layer of an impossible index")
    return tuple(TracedLayer(**dict(zip(_LAYER_COLUMNS, row, strict=True))) for row in zip(*columns, strict=True))


def _level(document: Any, layers: set[int]) -> LevelTrace:
    lists = dict.fromkeys(("inference_ms", "overhead_ms", "tracks", "counters", "totals", "notes"), list)
    check_fields(document, {"level": str, **lists})
    inference_ms = tuple(_milliseconds(document, "inference_ms"))
    # A list of one number or none: fields have one type each.
    overheads_ms = _column(document, "overhead_ms", float, int)
    if len(overheads_ms) > 1:
        raise ValueError("has a level with several overheads")
    return LevelTrace(
        level=_member(TraceLevel, document["level"]),
        inference_ms=inference_ms,
        overhead_ms=overheads_ms[0] if overheads_ms else None,
        tracks=tuple(_track(each, layers, len(inference_ms)) for each in document["tracks"]),
        counters=tuple(map(_counter, document["counters"])),
        totals=_facts(document["totals"]),
        notes=tuple(_column(document, "notes", str)),
    )


def _track(document: Any, layers: set[int], inferences: int) -> Track:
    check_fields(document, {"name": str, "kind": str, "spans": dict})
    columns = document["spans"]
    check_fields(columns, dict.fromkeys(("names", "details", "name", "detail", *_SPAN_COLUMNS), list))
    names, details = _column(columns, "names", str), list(map(_facts, columns["details"]))
    starts, durations = _column(columns, "start_ns", int), _column(columns, "duration_ns", int)
    inference_of = _within(columns, "inference", range(inferences), NoneType)
    layer_of = _within(columns, "layer", layers, NoneType)
    name_of = _within(columns, "name", range(len(names)))
    detail_of = _within(columns, "detail", range(len(details)))
    _check_lengths((starts, durations, inference_of, layer_of, name_of, detail_of))
    rows = zip(name_of, starts, durations, inference_of, layer_of, detail_of, strict=True)
    spans = [
        TraceSpan(name=names[name], start_ns=start, duration_ns=ns, inference=number, layer=layer, details=details[at])
        for name, start, ns, number, layer, at in rows
    ]
    track = Track(name=document["name"], kind=_member(TrackKind, document["kind"]), spans=tuple(spans))
    _check_order(track)
    return track


def _check_lengths(columns: Sequence[Sequence[Any]]) -> None:
    if len(set(map(len, columns))) != 1:
        raise ValueError("has columns that differ in length")


def _check_order(track: Track) -> None:
    """Raise ValueError if spans overlap or lie outside of all sensible times."""
    end = -_MOST_NS
    for span in track.spans:
        if span.duration_ns < 0 or abs(span.start_ns) + span.duration_ns > _MOST_NS:
            raise ValueError(f"has a span of an impossible time in the track {track.name[:80]!r}")
        if span.start_ns < end:
            raise ValueError(f"has spans that overlap in the track {track.name[:80]!r}")
        end = span.start_ns + span.duration_ns


def _counter(document: Any) -> Counter:
    check_fields(document, {"name": str, "unit": str, "times_ns": list, "values": list})
    times, values = _column(document, "times_ns", int), _column(document, "values", float, int)
    if len(times) != len(values) or times != sorted(times) or any(abs(time) > _MOST_NS for time in times):
        raise ValueError(f"has impossible times in the counter {document['name'][:80]!r}")
    return Counter(name=document["name"], unit=document["unit"], times_ns=tuple(times), values=tuple(values))


def _facts(document: Any) -> Facts:
    if type(document) is not list:
        raise ValueError("has details that are no list")
    for pair in document:
        if type(pair) is not list or len(pair) != 2 or type(pair[0]) is not str or not _is_fact(pair[1]):
            raise ValueError("has details that are no pairs of a name and a value")
    return tuple((name, value) for name, value in document)


def _column(document: Mapping[str, Any], name: str, *kinds: type) -> list[Any]:
    """Return a column whose values all have one of the types."""
    column: list[Any] = document[name]
    if not set(map(type, column)) <= set(kinds) or not all(map(_is_fact, column)):
        raise ValueError(f"has a column {name} with values of other types")
    return column


def _milliseconds(document: Mapping[str, Any], name: str, *kinds: type) -> list[Any]:
    column = _column(document, name, float, int, *kinds)
    if not all(value is None or value >= 0 for value in column):
        raise ValueError(f"has a column {name} with values that are no times")
    return column


def _within(document: Mapping[str, Any], name: str, allowed: range | set[int], *kinds: type) -> list[Any]:
    """Return a column of numbers that are allowed."""
    column = _column(document, name, int, *kinds)
    if not all(value in allowed for value in set(column) - {None}):
        raise ValueError(f"has a column {name} with a number that stands for nothing")
    return column


def _member(kind: type[_Member], value: str) -> _Member:
    try:
        return kind(value)
    except ValueError:
        known = ", ".join(it.value for it in kind)
        raise ValueError(f"has the word {value[:40]!r} where one of {known} belongs") from None


def _is_fact(value: Any) -> bool:
    """Return whether it is a value of JSON and no list or object; numbers are finite, and whole ones have 64 bits."""
    if type(value) is int:
        return -_MOST_INTEGER <= value < _MOST_INTEGER
    return value is None or type(value) in (str, bool) or (type(value) is float and math.isfinite(value))


_LIST = "`dlbricks trace --list` shows those there are"


@dataclass(frozen=True, slots=True)
class StoredTrace:
    """A trace in the data folder, by its header."""

    header: TraceHeader
    path: Path
    size_bytes: int


@dataclass(frozen=True, slots=True)
class StoredTraces:
    """The traces of a data folder, the newest last, and a line for each file that cannot be read."""

    traces: tuple[StoredTrace, ...]
    unreadable: tuple[str, ...]


def trace_path(folder: Path, trace: str) -> Path:
    """Return the file of a trace."""
    return folder / f"{trace}{SUFFIX}"


def stored_traces(folder: Path) -> StoredTraces:
    """Return the traces in a folder."""
    found: list[StoredTrace] = []
    unreadable: list[str] = []
    for path in _files(folder):
        try:
            found.append(StoredTrace(read_header(path), path, path.stat().st_size))
        except FileNotFoundError:
            # The user has deleted it meanwhile.
            continue
        except TraceError as error:
            unreadable.append(str(error))
    return StoredTraces(tuple(sorted(found, key=lambda it: it.header.when)), tuple(unreadable))


def find_trace(folder: Path, wanted: str) -> Path:
    """Return the file of a trace by its id, or by the beginning of its id if that is unique; `last` is the newest."""
    if wanted == "last":
        stored = stored_traces(folder)
        if stored.traces:
            return stored.traces[-1].path
        if stored.unreadable:
            raise TraceError(stored.unreadable[0])
    files = {path.name.removesuffix(SUFFIX): path for path in _files(folder)}
    found = [it for it in files if it == wanted] or [it for it in files if wanted and it.startswith(wanted)]
    if len(found) == 1:
        return files[found[0]]
    what = f"{len(found)} traces begin with" if found else "no trace is called"
    raise TraceError(f"{what} {wanted[:80]!r}; {_LIST}")


def _files(folder: Path) -> list[Path]:
    try:
        return sorted(path for path in folder.iterdir() if path.name.endswith(SUFFIX))
    except FileNotFoundError:
        return []
    except OSError as error:
        raise TraceError(f"cannot read {folder}: {error.strerror}") from error
