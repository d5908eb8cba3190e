from dataclasses import fields, replace
from pathlib import Path

from dlbricks_tui.documents.parts import Table
from dlbricks_tui.documents.trace import (
    beside_brick,
    counter_parts,
    level_answer,
    level_parts,
    overhead_of,
    share_of_inference,
    span_parts,
    span_words,
    stored_columns,
    trace_parts,
)
from dlbricks_tui.traces.file import StoredTrace
from dlbricks_tui.traces.trace import Counter, LayerTime, TraceHeader, TrackKind, layer_times, slowest_first
from tests.documents.snapshots import check
from tests.documents.test_layout import texts
from tests.traces.sample_traces import sample_trace


def test_what_holds_for_several_levels_is_told_once() -> None:
    trace = sample_trace()
    levels = tuple(replace(it, notes=("the host is busy",), totals=()) for it in trace.levels)
    told = texts(100, *trace_parts(replace(trace, levels=levels)))
    assert [it for it in told if "busy" in it] == ["model, layer, primitive levels: the host is busy"]


def test_only_the_slowest_of_many_layers_are_listed() -> None:
    trace = sample_trace()
    _, level, _ = trace.levels
    first = trace.layers[0]
    layers = tuple(replace(first, index=index, name=f"conv{index}") for index in range(14))
    span = level.tracks[1].spans[0]
    track = replace(level.tracks[1], spans=tuple(replace(span, layer=index) for index in range(14)))
    many = replace(trace, layers=layers, levels=(replace(level, tracks=(level.tracks[0], track)),))
    *_, last, told = texts(100, *trace_parts(many))
    assert last.startswith("conv11 ") and told == "and 2 faster layers, which --json lists"


def test_without_a_stored_brick_the_command_that_measures_them_is_named() -> None:
    trace = sample_trace()
    layers = tuple(replace(it, brick_ms=None) for it in trace.layers)
    told = texts(100, *trace_parts(replace(trace, layers=layers)))
    assert "no brick is stored under the same conditions: `dlbricks run three layers` measures them" in told


def test_stored_traces_of_one_model_have_a_mark_in_place_of_the_model() -> None:
    trace = sample_trace()
    header = TraceHeader(**{it.name: getattr(trace, it.name) for it in fields(TraceHeader)})
    stored = [StoredTrace(header, Path("x"), 21_400)]
    when = "2026-11-27 07:15"
    assert texts(120, Table(stored_columns(), stored)) == [
        f"model                trace        when (UTC)  {'runtime':29}  layers  batch   size",
        f"three layers  20261127-071  {when}  ONNX Runtime 1.32.0, 1 thread   fused      1  21 kB",
    ]
    shown = stored_columns(stored[0].header.id)
    assert texts(120, Table(shown, stored))[1].startswith(f"*  20261127-071  {when}  ONNX")
    assert texts(40, Table(shown, stored))[1] == f"*  {when}  ONNX Runtim…      1"
    assert texts(40, Table(stored_columns(""), stored))[1].startswith(when)


def test_a_level_says_what_it_takes_what_it_adds_and_its_slowest_layer() -> None:
    trace = sample_trace()
    model, layer, primitive = trace.levels
    assert level_answer(model) == "1.000 ms per inference"
    assert level_answer(layer, slowest_first(layer_times(trace))[0]) == (
        "1.200 ms per inference, +0.2000 ms (+20.0 %) added by the profiler; slowest layer conv0, 50.0 %"
    )
    assert (
        level_answer(primitive, slowest_first(layer_times(trace))[0])
        == "1.300 ms per inference, +0.1000 ms (+8.3 %) added by the output of oneDNN"
    )


def test_a_level_that_is_faster_than_the_one_below_has_a_negative_overhead() -> None:
    level = replace(sample_trace().levels[1], inference_ms=(0.98,), overhead_ms=-0.02)
    assert overhead_of(level) == "-0.02000 ms (-2.0 %)"


def test_a_level_without_inferences_says_so() -> None:
    level = replace(sample_trace().levels[1], inference_ms=())
    assert level_answer(level) == "no inference was timed" and overhead_of(level) == ""


def test_a_trace_its_levels_spans_and_counters_are_told_whole() -> None:
    trace = sample_trace()
    (faults,), level, (conv, pool, _) = trace.levels[2].counters, trace.levels[1], trace.layers
    (first, second), unread = trace.levels[2].tracks[1].spans, Counter(name="c", unit="", times_ns=(), values=())
    span, added = level.tracks[1].spans[3], level.tracks[2].spans[0]
    check(
        "trace",
        {
            "the trace": trace_parts(trace),
            **{f"{it.level.value} level": level_parts(it, trace.missing) for it in trace.levels},
            "a layer": span_parts(span, TrackKind.LAYERS, level, conv, layer_times(trace)[0]),
            "a layer without a brick": span_parts(span, TrackKind.LAYERS, level, pool, None),
            "an added operator": span_parts(added, TrackKind.ADDED, level, None, None),
            "an inference": span_parts(level.tracks[0].spans[0], TrackKind.INFERENCES, level, None, None),
            "without an inference": span_parts(second, TrackKind.PRIMITIVES, trace.levels[2], None, None),
            "with details of other types": span_parts(first, TrackKind.PRIMITIVES, trace.levels[2], None, None),
            "a level with a range": level_parts(replace(level, inference_ms=(1.2, 1.1, 1.3)), ()),
            "a counter": counter_parts(faults, 1),
            "its first reading": counter_parts(faults, 0),
            "a counter that was never read": counter_parts(unread, None),
        },
    )
    told = "600.0 µs, 50.0 % of the inference, brick alone 0.6000 ms (+0.0 %)"
    assert span_words(span, level, layer_times(trace)[0]) == told


def test_a_layer_is_compared_with_its_brick() -> None:
    conv, pool, _ = sample_trace().layers
    assert beside_brick(LayerTime(conv, 0.612)) == "+0.01200 ms, +2.0 %"
    assert beside_brick(LayerTime(conv, 0.6)) == "+0 ms, +0.0 %"
    assert beside_brick(LayerTime(conv, 0.57)) == "-0.03000 ms, -5.0 %"
    assert beside_brick(LayerTime(pool, 0.6)) == ""


def test_a_span_has_a_share_of_its_own_inference() -> None:
    level = sample_trace().levels[1]
    _, layers, added = level.tracks
    assert share_of_inference(layers.spans[0], level) == "50.0 %"
    assert share_of_inference(added.spans[0], level) == "2.5 %"
    assert share_of_inference(replace(added.spans[0], inference=None), level) == ""
