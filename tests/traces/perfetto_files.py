"""Files in Perfetto's format, read by the definitions of its own package."""

from collections import defaultdict
from typing import Any

from perfetto.protos.perfetto.trace import perfetto_trace_pb2

definitions: Any = perfetto_trace_pb2
BEGIN = definitions.TrackEvent.TYPE_SLICE_BEGIN
END = definitions.TrackEvent.TYPE_SLICE_END
COUNTER = definitions.TrackEvent.TYPE_COUNTER


class Read:
    """A file as Perfetto reads it: tracks by their ids, and the slices and readings of each."""

    def __init__(self, content: bytes) -> None:
        self.trace = definitions.Trace()
        self.trace.ParseFromString(content)
        self.tracks: dict[int, Any] = {}
        self.slices: dict[int, list[tuple[int, int, Any]]] = defaultdict(list)
        self.readings: dict[int, list[tuple[int, float]]] = defaultdict(list)
        opened: dict[int, list[Any]] = defaultdict(list)
        for packet in self.trace.packet:
            if packet.HasField("track_descriptor"):
                assert packet.track_descriptor.uuid not in self.tracks
                self.tracks[packet.track_descriptor.uuid] = packet.track_descriptor
        # Perfetto sorts packets by their times, and keeps the order of those with the same time.
        for packet in sorted(self.trace.packet, key=lambda it: it.timestamp):
            if not packet.HasField("track_event"):
                continue
            event, track = packet.track_event, packet.track_event.track_uuid
            assert track in self.tracks
            assert packet.trusted_packet_sequence_id
            if event.type == BEGIN:
                assert not opened[track], "a slice begins inside of another one"
                opened[track].append(packet)
            elif event.type == END:
                begun = opened[track].pop()
                self.slices[track].append((begun.timestamp, packet.timestamp - begun.timestamp, begun.track_event))
            else:
                assert event.type == COUNTER
                self.readings[track].append((packet.timestamp, event.double_counter_value))
        assert not any(opened.values()), "a slice has no end"

    def of_level(self, title: str) -> dict[str, int]:
        """The tracks of a level by their names."""
        (level,) = (it for it in self.levels if it.name.startswith(title))
        return {it.name: it.uuid for it in self.below(level.uuid)}

    @property
    def levels(self) -> list[Any]:
        """The tracks of the levels, which are below that of the trace."""
        (root,) = (it for it in self.tracks.values() if not it.parent_uuid)
        return self.below(root.uuid)

    def below(self, uuid: int) -> list[Any]:
        """The tracks below another one, as Perfetto sorts them."""
        assert self.tracks[uuid].child_ordering == definitions.TrackDescriptor.EXPLICIT
        found = [it for it in self.tracks.values() if it.parent_uuid == uuid]
        return sorted(found, key=lambda it: int(it.sibling_order_rank))


def values(annotations: Any) -> dict[str, Any]:
    return {
        it.name: values(it.dict_entries) if it.dict_entries else getattr(it, it.WhichOneof("value"))
        for it in annotations
    }
