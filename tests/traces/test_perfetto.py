"""Perfetto's format, read by the definitions of its own package."""

from collections import Counter
from dataclasses import replace

from hypothesis import given, settings

from dlbricks_tui.traces.formats import perfetto_bytes
from dlbricks_tui.traces.trace import LevelTrace, Trace, TraceSpan, Track, TrackKind
from tests.traces.perfetto_files import Read, values
from tests.traces.sample_traces import sample_trace, traces


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


def test_layers_carry_their_bricks_once_in_each_inference() -> None:
    read = Read(perfetto_bytes(sample_trace(inferences=3)))
    slices = read.slices[read.of_level("2 layer")["layers"]]
    told = [values(event.debug_annotations) for *_, event in slices]
    assert Counter((it["inference"], it["layer"]) for it in told) == Counter(
        (inference, layer) for inference in range(3) for layer in range(3)
    )
    start_ns, duration_ns, event = slices[0]
    assert (start_ns, duration_ns, event.name) == (0, 600_000, "conv0")
    assert list(event.categories) == ["layers", "convolution"]
    assert told[0] == {
        "inference": 0,
        "layer": 0,
        "layer_name": "conv0",
        "kind": "convolution",
        "brick": "0" * 16,
        "context": "warm",
        "brick_ms": 0.6,
        "details": {"kernel": "jit:avx2", "calls": 1},
    }
    assert "brick_ms" not in told[1]


def test_each_level_tells_what_it_is_about() -> None:
    read = Read(perfetto_bytes(sample_trace()))
    ((start_ns, duration_ns, event),) = read.slices[read.of_level("3 primitive")["about"]]
    assert (start_ns, duration_ns) == (0, 3_300_000)
    assert event.name == "three layers on onnxruntime-1.32.0 python-3.11 threads-1"
    told = values(event.debug_annotations)
    assert (told["model"], told["overhead_ms"], told["system"]) == ("three layers", 0.1, "5" * 16)
    assert told["totals"] == {"cycles": 3_000_000, "instructions": "none"}


def test_times_before_the_first_inference_move_all_levels_alike() -> None:
    early = Track(
        name="threads", kind=TrackKind.THREAD, spans=(TraceSpan(name="runs", start_ns=-500, duration_ns=100),)
    )
    trace = sample_trace()
    levels = (trace.levels[0], replace(trace.levels[1], tracks=(*trace.levels[1].tracks, early)))
    read = Read(perfetto_bytes(replace(trace, levels=levels)))
    assert read.slices[read.of_level("2 layer")["threads"]][0][:2] == (0, 100)
    assert read.slices[read.of_level("1 model")["inferences"]][0][0] == 500
    assert read.slices[read.of_level("2 layer")["inferences"]][0][0] == 500


@given(trace=traces())
@settings(max_examples=25)
def test_any_trace_can_be_read(trace: Trace) -> None:
    read = Read(perfetto_bytes(trace))
    assert sum(map(len, read.slices.values())) == sum(map(_spans, trace.levels))
    assert all(it.name.isprintable() for it in read.tracks.values())
    assert all(it[2].name.isprintable() for each in read.slices.values() for it in each)


def _spans(level: LevelTrace) -> int:
    return 1 + sum(len(track.spans) for track in level.tracks)
