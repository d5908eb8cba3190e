"""A trace in Perfetto's protobuf format."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count
from typing import TYPE_CHECKING, Any

from dlbricks_tui.store.records import Fact, Facts
from dlbricks_tui.traces.spans import (
    Annotations,
    about_level,
    categories,
    first_ns,
    level_ns,
    level_title,
    shown,
    span_annotations,
    trace_title,
)
from dlbricks_tui.traces.trace import TraceError

if TYPE_CHECKING:
    from dlbricks_tui.traces.trace import LevelTrace, Trace

# All events are in one sequence, as if one program had written them.
_SEQUENCE = 1
_MOST_INTEGER = 1 << 63


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
        self._layers = {layer.index: layer for layer in trace.layers}
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
        about = self._track(group, 0, "about")
        start_ns, end_ns = level_ns(level)
        title, facts = trace_title(self._trace), about_level(self._trace, level)
        self._slice(about, title, ("about",), start_ns, end_ns - start_ns, facts)
        for rank, track in enumerate(level.tracks, start=1):
            uuid = self._track(group, rank, track.name)
            for span in track.spans:
                groups = categories(track, span, self._layers)
                facts = span_annotations(span, self._layers)
                self._slice(uuid, span.name, groups, span.start_ns, span.duration_ns, facts)
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

    def _slice(
        self, track: int, name: str, groups: Iterable[str], start_ns: int, duration_ns: int, facts: Annotations
    ) -> None:
        event = self._event(track, self._kinds.TYPE_SLICE_BEGIN, start_ns)
        event.name = shown(name)
        event.categories.extend(map(shown, groups))
        for key, value in facts:
            _annotate(event.debug_annotations.add(), key, value)
        # Before the next slice, which may begin at the same time.
        self._event(track, self._kinds.TYPE_SLICE_END, start_ns + duration_ns)

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
    elif isinstance(value, int) and -_MOST_INTEGER <= value < _MOST_INTEGER:
        annotation.int_value = value
    elif isinstance(value, float):
        annotation.double_value = value
    else:
        # Perfetto has no null.
        annotation.string_value = "none" if value is None else shown(str(value))
