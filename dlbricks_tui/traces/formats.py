"""A trace in the Trace Event Format of chrome://tracing, and in Perfetto's protobuf format."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from itertools import count
from typing import Any

from dlbricks_tui.store.records import Fact, Facts
from dlbricks_tui.traces.spans import (
    Annotations,
    ShownSpan,
    about_trace,
    first_ns,
    level_title,
    shown,
    slices_of,
    trace_title,
)
from dlbricks_tui.traces.trace import LevelTrace, Trace, TraceError

Event = dict[str, Any]
# Whole numbers that JavaScript holds exactly.
_MOST_INTEGER = 1 << 53


def chrome_json(trace: Trace) -> str:
    """Return the text of a file: a process for each level, all starting at zero, and a thread for each track.

    The levels lie above one another, so that the same inference at several levels can be compared by eye.
    """
    zero_ns = first_ns(trace)
    events = [
        event
        for number, level in enumerate(trace.levels, start=1)
        for event in _level_events(trace, level, number, zero_ns)
    ]
    document = {"displayTimeUnit": "ms", "otherData": _arguments(about_trace(trace)), "traceEvents": events}
    return json.dumps(document, allow_nan=False, separators=(",", ":"))


def _level_events(trace: Trace, level: LevelTrace, number: int, zero_ns: int) -> Iterator[Event]:
    tracks = list(slices_of(trace, level))
    yield _named("process_name", number, name=level_title(number, level))
    yield _named("process_sort_index", number, sort_index=number)
    for thread, (name, _) in enumerate(tracks):
        yield _named("thread_name", number, thread, name=shown(name))
        yield _named("thread_sort_index", number, thread, sort_index=thread)
    for thread, (_, slices) in enumerate(tracks):
        for it, (start_ns, end_ns) in zip(slices, _side_by_side(slices, zero_ns), strict=True):
            yield {
                "ph": "X",
                "pid": number,
                "tid": thread,
                "name": shown(it.name),
                # A comma separates categories.
                "cat": ",".join(shown(group).replace(",", " ") for group in it.groups),
                "ts": start_ns / 1000,
                "dur": (end_ns - start_ns) / 1000,
                "args": _arguments(it.facts),
            }
    for counter in level.counters:
        for time_ns, value in zip(counter.times_ns, counter.values, strict=True):
            yield {
                "ph": "C",
                "pid": number,
                "name": shown(counter.name),
                "ts": (time_ns - zero_ns) / 1000,
                "args": {shown(counter.unit): value},
            }


def _side_by_side(spans: Sequence[ShownSpan], zero_ns: int) -> list[tuple[int, int]]:
    """Return the start and the end of each span; no two spans end in the same microsecond.

    chrome://tracing rounds ends to microseconds, and draws a span below another one that ends in the same one. So spans
    before one of less than a microsecond end up to a microsecond sooner.
    """
    found: list[tuple[int, int]] = []
    latest_ns: int | None = None
    for span in reversed(spans):
        start_ns = span.start_ns - zero_ns
        end_ns = start_ns + span.duration_ns
        if latest_ns is not None and _rounded(end_ns) > latest_ns:
            end_ns = max(0, latest_ns)
        found.append((min(start_ns, end_ns), end_ns))
        latest_ns = _rounded(end_ns) - 1000
    return found[::-1]


def _rounded(time_ns: int) -> int:
    return (time_ns + 500) // 1000 * 1000


def _named(what: str, process: int, thread: int = 0, **arguments: object) -> Event:
    return {"ph": "M", "pid": process, "tid": thread, "name": what, "args": arguments}


def _arguments(annotations: Annotations) -> Event:
    return {
        shown(name): {shown(key): _json_value(each) for key, each in value}
        if isinstance(value, tuple)
        else _json_value(value)
        for name, value in annotations
    }


def _json_value(value: Fact) -> Fact:
    """Return a value that JSON and JavaScript hold exactly."""
    if isinstance(value, str):
        return shown(value)
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if type(value) is int and abs(value) > _MOST_INTEGER:
        return str(value)
    return value


# All events are in one sequence, as if one program had written them.
_SEQUENCE = 1
_MOST_INT64 = 1 << 63


def perfetto_bytes(trace: Trace) -> bytes:
    """Return the content of a file: a group of tracks for each level, all starting at zero.

    The levels lie above one another, so that the same inference at several levels can be compared by eye.
    """
    writer = _Writer(trace)
    for number, level in enumerate(trace.levels, start=1):
        writer.add_level(number, level)
    return writer.content()


class _Writer:
    """Puts tracks and events into one builder."""

    def __init__(self, trace: Trace) -> None:
        try:
            # Loaded here: its definitions take a while, and only this format needs them.
            from perfetto.protos.perfetto.trace import perfetto_trace_pb2
            from perfetto.trace_builder.proto_builder import TraceProtoBuilder
        except ImportError as error:
            raise TraceError(
                "Perfetto's format needs the package perfetto: pip install 'perfetto', or choose --format chrome"
            ) from error
        self._kinds: Any = perfetto_trace_pb2.TrackEvent
        self._explicit: Any = perfetto_trace_pb2.TrackDescriptor.EXPLICIT
        self._cleared: Any = perfetto_trace_pb2.TracePacket.SEQ_INCREMENTAL_STATE_CLEARED
        self._builder: Any = TraceProtoBuilder()
        self._trace = trace
        # Perfetto has no times below zero.
        self._zero_ns = first_ns(trace)
        self._ids = count(1)
        # Perfetto shows processes in an order of its own. Tracks below one track keep theirs.
        self._root = self._track(None, 0, trace_title(trace))

    def content(self) -> bytes:
        content: bytes = self._builder.serialize()
        return content

    def add_level(self, number: int, level: LevelTrace) -> None:
        group = self._track(self._root, number, level_title(number, level))
        for rank, (name, slices) in enumerate(slices_of(self._trace, level)):
            uuid = self._track(group, rank, name)
            for it in slices:
                self._slice(uuid, it)
        for rank, counter in enumerate(level.counters, start=len(level.tracks) + 1):
            uuid = self._track(group, rank, counter.name, unit=counter.unit)
            for time_ns, value in zip(counter.times_ns, counter.values, strict=True):
                event = self._event(uuid, self._kinds.TYPE_COUNTER, time_ns)
                event.double_counter_value = value

    def _track(self, parent: int | None, rank: int, name: str, unit: str | None = None) -> int:
        """Add a track below another one, a counter if it has a unit, and return its id."""
        descriptor = self._builder.add_packet().track_descriptor
        descriptor.uuid = next(self._ids)
        descriptor.name = shown(name)
        descriptor.child_ordering = self._explicit
        descriptor.sibling_order_rank = rank
        if parent is not None:
            descriptor.parent_uuid = parent
        if unit is not None:
            descriptor.counter.unit_name = shown(unit)
        uuid: int = descriptor.uuid
        return uuid

    def _slice(self, track: int, it: ShownSpan) -> None:
        event = self._event(track, self._kinds.TYPE_SLICE_BEGIN, it.start_ns)
        event.name = shown(it.name)
        event.categories.extend(map(shown, it.groups))
        for key, value in it.facts:
            _annotate(event.debug_annotations.add(), key, value)
        # Before the next slice, which may begin at the same time.
        self._event(track, self._kinds.TYPE_SLICE_END, it.start_ns + it.duration_ns)

    def _event(self, track: int, kind: int, time_ns: int) -> Any:
        packet = self._builder.add_packet()
        packet.timestamp = time_ns - self._zero_ns
        packet.trusted_packet_sequence_id = _SEQUENCE
        event = packet.track_event
        event.type = kind
        event.track_uuid = track
        return event


def _annotate(annotation: Any, name: str, value: Fact | Facts) -> None:
    annotation.name = shown(name)
    if isinstance(value, tuple):
        for key, each in value:
            _annotate(annotation.dict_entries.add(), key, each)
    elif isinstance(value, bool):
        annotation.bool_value = value
    elif isinstance(value, int) and -_MOST_INT64 <= value < _MOST_INT64:
        annotation.int_value = value
    elif isinstance(value, float):
        annotation.double_value = value
    else:
        # Perfetto has no null.
        annotation.string_value = "none" if value is None else shown(str(value))
