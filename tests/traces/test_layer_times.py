"""Layers in the model beside their bricks."""

from dataclasses import replace

import pytest

from dlbricks_tui.traces.trace import (
    LevelTrace,
    TraceSpan,
    Track,
    TrackKind,
    by_kind,
    layer_times,
    shown_inference_ms,
    slowest_first,
    times_by_layer,
    together,
)
from tests.traces.sample_traces import sample_trace


def layer_level(*spans: TraceSpan) -> LevelTrace:
    track = Track(name="layers", kind=TrackKind.LAYERS, spans=spans)
    return replace(sample_trace().levels[1], tracks=(track,))


def span(start_ns: int, duration_ns: int, inference: int, apart_ms: float | None = None) -> TraceSpan:
    details = () if apart_ms is None else (("apart_ms", apart_ms),)
    return TraceSpan(
        name="l", start_ns=start_ns, duration_ns=duration_ns, inference=inference, layer=0, details=details
    )


def test_each_layer_has_its_time_and_the_difference_to_its_brick() -> None:
    conv, pool, dense = layer_times(sample_trace())
    assert (conv.layer.name, conv.in_model_ms, conv.difference_ms) == ("conv0", 0.6, 0.0)
    assert (pool.in_model_ms, pool.difference_ms) == (0.15, None)
    assert [it.layer.name for it in slowest_first((pool, dense, conv))] == ["conv0", "dense0", "pool0"]


def test_kinds_compare_the_layers_with_bricks_only() -> None:
    trace = sample_trace()
    conv, pool, dense = layer_times(trace)
    found = by_kind((pool, conv, dense, replace(conv, layer=replace(conv.layer, brick_ms=None))))
    assert [(it.kind, it.layers) for it in found] == [("convolution", 2), ("dense", 1), ("pooling", 1)]
    assert (found[0].in_model_ms, found[0].compared_in_model_ms, found[0].brick_ms) == (1.2, 0.6, 0.6)
    assert (found[0].compared, found[2].compared, found[2].brick_ms) == (1, 0, 0.0)
    assert together("all", (conv, pool)).in_model_ms == pytest.approx(0.75)
    assert shown_inference_ms(trace) == 1.2
    assert shown_inference_ms(replace(trace, levels=trace.levels[:1])) is None


def test_the_median_of_the_inferences_counts() -> None:
    level = layer_level(span(0, 1_000_000, 0), span(2_000_000, 9_000_000, 1), span(20_000_000, 2_000_000, 2))
    assert times_by_layer(level) == {0: 2.0}


def test_parts_of_a_layer_that_ran_apart_count_together() -> None:
    assert times_by_layer(layer_level(span(0, 1_000_000, 0, 0.25)))[0] == pytest.approx(1.25)
    assert times_by_layer(layer_level(span(0, 1_000_000, 0), span(2_000_000, 500_000, 0)))[0] == pytest.approx(1.5)


def test_without_the_layer_level_there_are_no_times() -> None:
    assert layer_times(sample_trace(levels=sample_trace().levels[:1])) == ()
