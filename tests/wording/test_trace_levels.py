from dataclasses import replace

from dlbricks_tui.traces.layer_times import layer_times, slowest_first
from dlbricks_tui.wording.trace_levels import beside_brick, level_answer, overhead_of, share_of_inference
from tests.traces.sample_traces import sample_trace


def test_a_level_says_what_it_takes_what_it_adds_and_its_slowest_layer() -> None:
    trace = sample_trace()
    model, layer, primitive = trace.levels
    assert level_answer(model) == "1.000 ms per inference"
    assert level_answer(layer, slowest_first(layer_times(trace))[0]) == (
        "1.200 ms per inference, +0.2000 ms (+20 %) by the profiler; slowest layer conv0, 50.0 %"
    )
    assert (
        level_answer(primitive, slowest_first(layer_times(trace))[0])
        == "1.300 ms per inference, +0.1000 ms (+8 %) by the output of oneDNN"
    )


def test_a_level_that_is_faster_than_the_one_below_has_a_negative_overhead() -> None:
    level = replace(sample_trace().levels[1], inference_ms=(0.98,), overhead_ms=-0.02)
    assert overhead_of(level) == "-0.02000 ms (-2 %) by the profiler"


def test_a_level_without_inferences_says_so() -> None:
    level = replace(sample_trace().levels[1], inference_ms=())
    assert level_answer(level) == "no inference was timed" and overhead_of(level) == ""


def test_a_layer_is_compared_with_its_brick() -> None:
    conv, pool, _ = sample_trace().layers
    assert beside_brick(conv, 0.612) == "+0.01200 ms, +2.0 %"
    assert beside_brick(conv, 0.6) == "+0 ms, +0.0 %"
    assert beside_brick(conv, 0.57) == "-0.03000 ms, -5.0 %"
    assert beside_brick(pool, 0.6) == ""


def test_a_span_has_a_share_of_its_own_inference() -> None:
    level = sample_trace().levels[1]
    _, layers, added = level.tracks
    assert share_of_inference(layers.spans[0], level) == "50.0 %"
    assert share_of_inference(added.spans[0], level) == "2.5 %"
    assert share_of_inference(replace(added.spans[0], inference=None), level) == ""
