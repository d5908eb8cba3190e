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
from dlbricks_tui.traces.file import TraceHeader
from dlbricks_tui.traces.layer_times import LayerTime, layer_times, slowest_first
from dlbricks_tui.traces.stored import StoredTrace
from dlbricks_tui.traces.trace import Counter, TrackKind
from tests.documents.snapshots import check
from tests.documents.test_layout import texts
from tests.traces.sample_traces import sample_trace


def test_a_trace_has_its_levels_and_the_slowest_layers_beside_their_bricks() -> None:
    assert texts(100, *trace_parts(sample_trace())) == [
        "three layers",
        "onnxruntime-1.32.0 python-3.11 threads-1, fused, batch size 1, trace 20261127-071",
        "",
        "level      inference              overhead  spans",
        "model       1.000 ms                     -      2",
        "layer       1.200 ms  +0.2000 ms (+20.0 %)      9",
        "primitive   1.300 ms   +0.1000 ms (+8.3 %)      4",
        "thread level: not traced: /proc is not readable here",
        "layer level: the runtime does not tell when layers start",
        "primitive level: cycles 3,000,000, instructions None",
        "",
        "kind of layer      layers   in model   share     bricks  difference",
        "convolution             1  0.6000 ms  50.0 %  0.6000 ms      +0.0 %",
        "dense                   1  0.2000 ms  16.7 %  0.2000 ms      +0.0 %",
        "pooling                 1  0.1500 ms  12.5 %          -           -",
        "all layers              3  0.9500 ms  79.2 %  0.8000 ms      +0.0 %",
        "outside of layers       -  0.2500 ms  20.8 %          -           -",
        "IN MODEL includes what the profiler adds to each layer; BRICKS is the layers measured alone; 1 layer",
        "without a stored brick left out",
        "",
        "slowest layers  kind          in model   share      brick  difference",
        "conv0           convolution  0.6000 ms  50.0 %  0.6000 ms      +0.0 %",
        "dense0          dense        0.2000 ms  16.7 %  0.2000 ms      +0.0 %",
        "pool0           pooling      0.1500 ms  12.5 %          -           -",
    ]


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
        f"model                trace        when (UTC)  {'runtime':40}  layers  batch   size",
        f"three layers  20261127-071  {when}  onnxruntime-1.32.0 python-3.11 threads-1   fused      1  21 kB",
    ]
    shown = stored_columns(stored[0].header.id)
    assert texts(120, Table(shown, stored))[1].startswith(f"*  20261127-071  {when}  onnx")
    assert texts(40, Table(shown, stored))[1] == f"*  {when}  onnxruntime…      1"
    assert texts(40, Table(stored_columns(""), stored))[1].startswith(when)


def test_a_level_says_what_it_takes_what_it_adds_and_its_slowest_layer() -> None:
    trace = sample_trace()
    model, layer, primitive = trace.levels
    assert level_answer(model) == "1.000 ms per inference"
    assert level_answer(layer, slowest_first(layer_times(trace))[0]) == (
        "1.200 ms per inference, +0.2000 ms (+20.0 %) by the profiler; slowest layer conv0, 50.0 %"
    )
    assert (
        level_answer(primitive, slowest_first(layer_times(trace))[0])
        == "1.300 ms per inference, +0.1000 ms (+8.3 %) by the output of oneDNN"
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
            "a counter": counter_parts(faults, 1),
            "its first reading": counter_parts(faults, 0),
        },
    )


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


def test_the_parts_of_a_span_tell_its_time_its_layer_and_its_details() -> None:
    trace = sample_trace()
    level, (conv, _, _) = trace.levels[1], trace.layers
    span, time = level.tracks[1].spans[3], layer_times(trace)[0]
    assert texts(60, *span_parts(span, TrackKind.LAYERS, level, conv, time)) == [
        "conv0",
        "a layer, layer level",
        "took        600.0 µs, 50.0 % of its inference",
        "began       0 ns after the start of inference 2",
        "layer       conv0, convolution",
        "in model    0.6000 ms (median at the layer level)",
        "brick time  0.6000 ms (stored, alone)",
        "difference  +0 ms, +0.0 %",
        "brick       000000000000",
        "context     warm",
        "",
        "kernel      jit:avx2",
        "calls       1",
    ]
    assert span_words(span, level, time) == "600.0 µs, 50.0 % of the inference, brick alone 0.6000 ms (+0.0 %)"


def test_a_span_without_an_inference_counts_from_the_first_one() -> None:
    level = sample_trace().levels[2]
    first, second = level.tracks[1].spans
    told = texts(60, *span_parts(second, TrackKind.PRIMITIVES, level, None, None))
    assert told[1:] == [
        "a primitive of oneDNN, primitive level",
        "took       0 ns",
        "began      590.0 µs after the start of the first inference",
    ]
    assert texts(60, *span_parts(first, TrackKind.PRIMITIVES, level, None, None))[5:] == [
        "implementation  jit:avx2",
        "threads         1",
        "share           1.0",
        "blocked         yes",
    ]


def test_a_counter_tells_a_reading_and_its_change() -> None:
    (faults,) = sample_trace().levels[2].counters
    assert texts(60, *counter_parts(faults, 1)) == [
        "page faults",
        "reading     2 of 2",
        "value       12 faults",
        "since last  +12 faults",
        "read        1.000 ms after the start of the first inference",
        "range       0 to 12 faults",
    ]
    assert texts(60, *counter_parts(Counter(name="c", unit="", times_ns=(), values=()), None)) == [
        "c",
        "It was never read.",
    ]


def test_a_level_tells_its_range_its_remarks_and_the_levels_that_are_missing() -> None:
    trace = sample_trace()
    told = texts(60, *level_parts(replace(trace.levels[1], inference_ms=(1.2, 1.1, 1.3)), trace.missing))
    assert told == [
        "layer level",
        "inference  1.200 ms (median of 3)",
        "range      1.100 ms to 1.300 ms, 16.7 % of it",
        "adds       +0.2000 ms (+20.0 %) by the profiler",
        "! the runtime does not tell when layers start",
        "! thread level: not traced: /proc is not readable here",
    ]
    assert "adds       nothing is below it to compare with" in texts(60, *level_parts(trace.levels[0], ()))
