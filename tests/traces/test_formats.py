"""Traces in the formats of other programs."""

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings

from dlbricks_tui.traces.formats import chrome_json, perfetto_bytes
from dlbricks_tui.traces.trace import Trace, TraceSpan, Track, TrackKind
from tests.traces.perfetto_files import Read, values
from tests.traces.sample_traces import sample_trace, traces


def read(trace: Trace) -> dict[str, Any]:
    found = json.loads(chrome_json(trace), parse_constant=pytest.fail)
    assert isinstance(found, dict)
    return found


def events(trace: Trace, kind: str) -> list[dict[str, Any]]:
    return [it for it in read(trace)["traceEvents"] if it["ph"] == kind]


class Slice(NamedTuple):
    """A slice of either format."""

    name: str
    start_ns: float
    duration_ns: float
    categories: list[str]
    told: dict[str, Any]


def of_chrome(trace: Trace) -> list[Slice]:
    found = [it for it in events(trace, "X") if it["cat"].startswith("layers")]
    return [Slice(it["name"], 1e3 * it["ts"], 1e3 * it["dur"], it["cat"].split(","), it["args"]) for it in found]


def of_perfetto(trace: Trace) -> list[Slice]:
    read = Read(perfetto_bytes(trace))
    return [
        Slice(event.name, start_ns, duration_ns, list(event.categories), values(event.debug_annotations))
        for start_ns, duration_ns, event in read.slices[read.of_level("2 layer")["layers"]]
    ]


@pytest.mark.parametrize("slices_of", [of_chrome, of_perfetto])
def test_layers_carry_their_bricks_once_in_each_inference(slices_of: Callable[[Trace], list[Slice]]) -> None:
    found = slices_of(sample_trace(inferences=3))
    assert Counter((it.told["inference"], it.told["layer"]) for it in found) == Counter(
        (inference, layer) for inference in range(3) for layer in range(3)
    )
    assert found[1][:4] == ("pool0", 600_000, 150_000, ["layers", "pooling"])
    about = {"inference": 0, "layer": 0, "layer_name": "conv0", "kind": "convolution", "brick": "0" * 16}
    measured = {"context": "warm", "brick_ms": 0.6, "details": {"kernel": "jit:avx2", "calls": 1}}
    assert found[0].told == {**about, **measured}
    assert "brick_ms" not in found[1].told


def test_levels_are_named_processes_and_tracks_threads_in_order_and_the_file_states_its_own_distortion() -> None:
    named = {(it["pid"], it["tid"], it["name"]): it["args"] for it in events(sample_trace(), "M")}
    assert named[2, 0, "process_name"] == {"name": "2 layer level: 1.200 ms per inference, +0.200 ms"}
    assert [named[pid, 0, "process_sort_index"]["sort_index"] for pid in (1, 2, 3)] == [1, 2, 3]
    tracks = [named[2, tid, "thread_name"]["name"] for tid in range(4)]
    assert tracks == ["about", "inferences", "layers", "added by the runtime"]
    assert [named[2, tid, "thread_sort_index"]["sort_index"] for tid in range(4)] == [0, 1, 2, 3]
    first, second = events(sample_trace(), "C")
    assert (first["name"], first["ts"], first["args"]) == ("page faults", 0.0, {"faults": 0.0})
    assert (second["ts"], second["args"]) == (1000.0, {"faults": 12.0})
    found = read(sample_trace())
    assert found["displayTimeUnit"] == "ms"
    told = found["otherData"]
    assert (told["model"], told["layer_overhead_ms"], told["primitive_overhead_ms"]) == ("three layers", 0.2, 0.1)
    assert told["thread_is_missing"] == "/proc is not readable here"


def test_no_two_spans_of_a_track_end_in_the_same_microsecond() -> None:
    """The viewer draws a span below another one that ends in the same microsecond."""
    times = [(0, 9000), (9000, 0), (9000, 400), (9400, 5000)]
    spans = tuple(TraceSpan(name=str(at), start_ns=start, duration_ns=ns) for at, (start, ns) in enumerate(times))
    trace = sample_trace()
    track = replace(trace.levels[0].tracks[0], spans=spans)
    found = events(replace(trace, levels=(replace(trace.levels[0], tracks=(track,)),)), "X")[1:]
    assert [it["ts"] for it in found] == [0.0, 8.0, 9.0, 9.4]
    assert [round(it["ts"] + it["dur"], 3) for it in found] == [7.0, 8.0, 9.4, 14.4]


def test_numbers_that_javascript_would_round_are_texts() -> None:
    level = replace(sample_trace().levels[0], totals=(("cycles", (1 << 53) + 1), ("share", float("nan"))))
    about = [it for it in events(sample_trace(levels=(level,)), "X") if it["cat"] == "about"][-1]
    assert about["args"]["totals"] == {"cycles": "9007199254740993", "share": "nan"}


@given(trace=traces())
@settings(max_examples=25)
def test_any_trace_is_complete_and_printable(trace: Trace) -> None:
    assert chrome_json(trace).isascii()
    found, read = events(trace, "X"), Read(perfetto_bytes(trace))
    spans = sum(len(track.spans) for level in trace.levels for track in level.tracks)
    assert len(found) == sum(map(len, read.slices.values())) == spans + len(trace.levels)
    assert all(it["ts"] >= 0 and it["dur"] >= 0 and it["name"].isprintable() for it in found)
    assert len(events(trace, "C")) == sum(len(it.times_ns) for level in trace.levels for it in level.counters)
    assert all(it.name.isprintable() for it in read.tracks.values())
    assert all(it[2].name.isprintable() for each in read.slices.values() for it in each)


def test_each_level_is_a_group_whose_title_states_its_overhead() -> None:
    read = Read(perfetto_bytes(sample_trace()))
    assert [it.name for it in read.levels] == [
        "1 model level: 1.000 ms per inference",
        "2 layer level: 1.200 ms per inference, +0.200 ms",
        "3 primitive level: 1.300 ms per inference, +0.100 ms",
    ]
    assert list(read.of_level("2 layer")) == ["about", "inferences", "layers", "added by the runtime"]
    assert list(read.of_level("3 primitive")) == ["about", "inferences", "primitives", "page faults"]
    counter = read.of_level("3 primitive")["page faults"]
    assert read.tracks[counter].counter.unit_name == "faults"
    assert read.readings[counter] == [(0, 0.0), (1_000_000, 12.0)]
    assert perfetto_bytes(sample_trace()) == perfetto_bytes(sample_trace())


def test_each_level_tells_what_it_is_about() -> None:
    read = Read(perfetto_bytes(sample_trace()))
    ((start_ns, duration_ns, event),) = read.slices[read.of_level("3 primitive")["about"]]
    assert (start_ns, duration_ns) == (0, 3_300_000)
    assert event.name == "three layers on onnxruntime-1.32.0 python-3.11 threads-1"
    told = values(event.debug_annotations)
    assert (told["model"], told["overhead_ms"], told["system"]) == ("three layers", 0.1, "5" * 16)
    assert told["totals"] == {"cycles": 3_000_000, "instructions": "none"}


def test_times_before_the_first_inference_move_all_levels_alike() -> None:
    ran = TraceSpan(name="runs", start_ns=-500, duration_ns=100)
    early = Track(name="threads", kind=TrackKind.THREAD, spans=(ran,))
    trace = sample_trace()
    levels = (trace.levels[0], replace(trace.levels[1], tracks=(*trace.levels[1].tracks, early)))
    read = Read(perfetto_bytes(replace(trace, levels=levels)))
    assert read.slices[read.of_level("2 layer")["threads"]][0][:2] == (0, 100)
    assert read.slices[read.of_level("1 model")["inferences"]][0][0] == 500
    assert read.slices[read.of_level("2 layer")["inferences"]][0][0] == 500
