"""The Trace Event Format: complete events, and JSON that JavaScript reads."""

import json
from collections import Counter
from dataclasses import replace
from typing import Any

from hypothesis import given, settings

from dlbricks_tui.traces.formats import chrome_json
from dlbricks_tui.traces.trace import Trace, TraceSpan
from tests.traces.sample_traces import sample_trace, traces


def read(trace: Trace) -> dict[str, Any]:
    def refuse(text: str) -> None:
        raise AssertionError(text)

    found = json.loads(chrome_json(trace), parse_constant=refuse)
    assert isinstance(found, dict)
    return found


def events(trace: Trace, kind: str) -> list[dict[str, Any]]:
    return [it for it in read(trace)["traceEvents"] if it["ph"] == kind]


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


def test_layers_carry_their_bricks_once_in_each_inference() -> None:
    slices = [it for it in events(sample_trace(inferences=3), "X") if it["cat"].startswith("layers")]
    assert Counter((it["args"]["inference"], it["args"]["layer"]) for it in slices) == Counter(
        (inference, layer) for inference in range(3) for layer in range(3)
    )
    # In microseconds.
    assert (slices[1]["name"], slices[1]["ts"], slices[1]["dur"]) == ("pool0", 600.0, 150.0)
    assert slices[1]["cat"] == "layers,pooling"
    assert slices[0]["args"]["brick"] == "0" * 16
    assert slices[0]["args"]["details"] == {"kernel": "jit:avx2", "calls": 1}


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
    trace = sample_trace()
    totals = (("cycles", (1 << 53) + 1), ("share", float("nan")))
    level = [it for it in events(_with_totals(trace, totals), "X") if it["cat"] == "about"][-1]
    assert level["args"]["totals"] == {"cycles": "9007199254740993", "share": "nan"}


def _with_totals(trace: Trace, totals: Any) -> Trace:
    return replace(trace, levels=(replace(trace.levels[0], totals=totals),))


@given(trace=traces())
@settings(max_examples=25)
def test_any_trace_is_complete_and_printable(trace: Trace) -> None:
    text = chrome_json(trace)
    assert text.isascii()
    found = events(trace, "X")
    spans = sum(len(track.spans) for level in trace.levels for track in level.tracks)
    assert len(found) == spans + len(trace.levels)
    assert all(it["ts"] >= 0 and it["dur"] >= 0 and it["name"].isprintable() for it in found)
    assert len(events(trace, "C")) == sum(len(it.times_ns) for level in trace.levels for it in level.counters)
