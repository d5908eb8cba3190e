"""The spans of levels, and the times of layers."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx.helper import make_node

from dlbricks_tui.models.graph import LayerGraph
from dlbricks_tui.runtime.protocol import Said, TracedOperator, TracedRun, TracedRuns
from dlbricks_tui.traces import spans
from dlbricks_tui.traces.spans import TracedNetwork, inference_track, layer_tracks, primitive_track, shown_runs
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
from tests.models.onnx_models import loaded, model
from tests.traces.sample_traces import sample_trace

HOST = 1_700_000_000_000_000_000
MS = 1_000_000
# The layers of nodes.
OWNERS = {10: 0, 11: 0, 12: 1, 13: 2, 14: 3}


@pytest.fixture(scope="module")
def chain(tmp_path_factory: pytest.TempPathFactory) -> LayerGraph:
    """Four layers: two in a row, one beside them, and one that reads all."""
    nodes = [
        make_node("Relu", ["x"], ["a"], name="first"),
        make_node("Sigmoid", ["a"], ["b"], name="second"),
        make_node("Tanh", ["x"], ["c"], name="beside"),
        make_node("Concat", ["b", "c"], ["y"], name="joined", axis=1),
    ]
    return loaded(tmp_path_factory.mktemp("chain"), model(nodes, {"x": (1, 4)}, ["y"]))


def run(
    *operators: tuple[int, int, int], start: int = 0, duration: int = 1000, lines: tuple[Said, ...] = ()
) -> TracedRun:
    """Return a run with operators: node, start and duration."""
    ran = tuple(TracedOperator(node, f"kind{node}", at, taken) for node, at, taken in operators)
    return TracedRun(5_000 + start, HOST + start, duration, ran, lines)


def traced(*runs: TracedRun, has_starts: bool = True) -> TracedRuns:
    return TracedRuns(runs, has_starts)


def times(track: Track) -> list[tuple[str, int, int]]:
    return [(it.name, it.start_ns, it.duration_ns) for it in track.spans]


def test_inferences_count_from_the_start_of_the_first(chain: LayerGraph) -> None:
    track = inference_track(traced(run(), run(start=1500, duration=900)))
    assert track.kind is TrackKind.INFERENCES
    assert times(track) == [("inference 1", 0, 1000), ("inference 2", 1500, 900)]
    assert [it.inference for it in track.spans] == [0, 1]


def test_operators_of_a_layer_are_one_span_from_the_first_start_to_the_last_end(chain: LayerGraph) -> None:
    network = TracedNetwork(chain, OWNERS)
    found = traced(run((10, 100, 50), (11, 160, 40), (12, 200, 100), (13, 300, 10), (14, 310, 5)))
    (layers,) = layer_tracks(found, network)
    assert times(layers) == [("first", 100, 100), ("second", 200, 100), ("beside", 300, 10), ("joined", 310, 5)]
    assert layers.spans[0].details == (("operators", "kind10 + kind11"),)


def test_every_layer_is_there_once_for_each_inference_also_if_it_takes_no_time(chain: LayerGraph) -> None:
    network = TracedNetwork(chain, {10: 0, 13: 2})
    found = traced(run((10, 100, 50), (13, 400, 10)), run((10, 100, 70), (13, 400, 10), start=2000))
    (layers,) = layer_tracks(found, network)
    for number in (0, 1):
        assert sorted(it.layer for it in layers.spans if it.inference == number and it.layer is not None) == [
            0,
            1,
            2,
            3,
        ]
    # A layer without operators follows the layers that it reads at once.
    assert times(layers)[:4] == [("first", 100, 50), ("second", 150, 0), ("beside", 400, 10), ("joined", 410, 0)]
    assert [it.start_ns for it in layers.spans if it.name == "second"] == [150, 2170]


def test_a_layer_that_another_one_interrupts_is_its_longest_part_and_tells_of_the_rest(chain: LayerGraph) -> None:
    network = TracedNetwork(chain, OWNERS)
    found = traced(
        run((10, 100, 200_000), (12, 200_100, 100), (11, 200_200, 400_000), (13, 600_200, 1), duration=700_000)
    )
    (layers,) = layer_tracks(found, network)
    first = next(it for it in layers.spans if it.name == "first")
    assert (first.start_ns, first.duration_ns) == (200_200, 400_000)
    assert dict(first.details)["apart_ms"] == 0.2
    assert_apart(layers)


def test_operators_without_a_layer_go_to_a_track_of_their_own(chain: LayerGraph) -> None:
    network = TracedNetwork(chain, OWNERS)
    found = traced(run((1 << 30, 0, 90), (10, 100, 50), (12, 150, 50), (13, 200, 1), (14, 201, 1)))
    layers, added = layer_tracks(found, network)
    assert (layers.kind, added.kind) == (TrackKind.LAYERS, TrackKind.ADDED)
    assert times(added) == [(f"kind{1 << 30}", 0, 90)]
    assert added.spans[0].layer is None


def test_mean_times_take_the_share_of_their_inference(chain: LayerGraph) -> None:
    network = TracedNetwork(chain, OWNERS)
    means = ((10, 0, 100), (12, 100, 200), (13, 300, 50), (14, 350, 50))
    found = traced(run(*means, duration=500), run(*means, start=1000, duration=1500), has_starts=False)
    (layers,) = layer_tracks(found, network)
    assert [it.duration_ns for it in layers.spans] == [50, 100, 25, 25, 150, 300, 75, 75]
    assert layers.spans[4].start_ns == 1000
    # They never end after their inference.
    (layers,) = layer_tracks(traced(run(*means, duration=100), has_starts=False), network)
    assert max(it.start_ns + it.duration_ns for it in layers.spans) <= 100


def line(at_ns: int | None, taken_ms: float, node: int | None = None, primitive: str = "convolution") -> Said:
    stamp = "" if at_ns is None else f"{(HOST + at_ns) / 1e6:.6f},"
    layouts = "src_f32::blocked:aBcd8b:f0 dst_f32::blocked:acdb:f0"
    return Said(f"dnnl_verbose,{stamp}exec,cpu,{primitive},jit:avx2,forward,{layouts},,,mb1_ic3,{taken_ms}", node)


def test_a_primitive_belongs_to_the_operator_that_ran_at_its_time(chain: LayerGraph) -> None:
    network = TracedNetwork(chain, {10: 0, 12: 1})
    lines = (line(1 * MS, 0.5), line(3 * MS, 1.0, primitive="reorder"), line(9 * MS, 0.1))
    found = traced(run((10, 1 * MS, 2 * MS), (12, 3 * MS, 2 * MS), duration=10 * MS, lines=lines))
    track = primitive_track(found, network)
    assert [(it.name, it.layer) for it in track.spans] == [
        ("convolution jit:avx2", 0),
        ("reorder jit:avx2", 1),
        ("convolution jit:avx2", None),
    ]
    assert track.spans[1].start_ns == pytest.approx(3 * MS, abs=1000)
    assert track.spans[0].details == (("layouts", "aBcd8b -> acdb"), ("problem", "mb1_ic3"))
    # The node of a line decides where it is known; lines about anything else are no primitives.
    others = (Said("dnnl_verbose,info,oneDNN v2.4.0", None), Said("dnnl_verbose,exec,cpu,reorder", None))
    lines = (line(1 * MS, 0.5, node=12), *others)
    found = traced(run((10, 0, 2 * MS), (12, 3 * MS, MS), duration=10 * MS, lines=lines))
    assert [it.layer for it in primitive_track(found, network).spans] == [1]


def test_primitives_without_times_follow_one_another_within_their_layer(chain: LayerGraph) -> None:
    network = TracedNetwork(chain, {10: 0, 12: 1})
    lines = (line(None, 0.5, node=10), line(None, 0.25, node=10), line(None, 0.5, node=12))
    found = traced(run((10, MS, 2 * MS), (12, 3 * MS, 2 * MS), duration=10 * MS, lines=lines))
    assert [it.start_ns for it in primitive_track(found, network).spans] == [MS, MS + 500_000, 3 * MS]


def test_a_trace_shows_as_many_inferences_as_a_viewer_can_bear(
    chain: LayerGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spans, "MOST_SPANS", 10)
    network = TracedNetwork(chain, OWNERS)
    ran = ((10, 0, 100), (12, 100, 200), (13, 300, 50), (14, 350, 50))
    found = traced(*(run(*ran, start=2000 * number) for number in range(5)))
    assert shown_runs(found) == 2
    assert len(layer_tracks(found, network)[0].spans) == 8
    assert len(inference_track(found).spans) == 5
    assert shown_runs(traced(run(), run())) == 2


@given(
    st.lists(st.tuples(st.sampled_from([10, 11, 12, 13, 14, 99]), st.integers(0, 50), st.integers(0, 50)), max_size=12)
)
def test_spans_of_a_track_never_overlap(chain: LayerGraph, ran: list[tuple[int, int, int]]) -> None:
    """Operators in a row, of layers in any order, with gaps."""
    operators, at = [], 0
    for node, gap, taken in ran:
        operators.append((node, at + gap, taken))
        at += gap + taken
    network = TracedNetwork(chain, OWNERS)
    found = traced(run(*operators, duration=at + 1), run(*operators, start=at + 5, duration=at + 1))
    layers, *others = layer_tracks(found, network)
    for track in (layers, *others):
        assert_apart(track)
    assert [it.layer for it in sorted(layers.spans, key=by_inference_and_layer)] == [0, 1, 2, 3] * 2
    for it in layers.spans:
        assert it.inference is not None
        begin = it.inference * (at + 5)
        assert begin <= it.start_ns <= it.start_ns + it.duration_ns <= begin + at + 1


def by_inference_and_layer(span: TraceSpan) -> tuple[int, int]:
    return (span.inference or 0, -1 if span.layer is None else span.layer)


def assert_apart(track: Track) -> None:
    ends = 0
    for it in track.spans:
        assert it.start_ns >= ends
        assert it.duration_ns >= 0
        ends = it.start_ns + it.duration_ns


def test_a_graph_of_many_layers_takes_time_in_proportion(chain: LayerGraph) -> None:
    """A quadratic search would take half a minute."""
    layers = tuple(replace(chain.layers[0], index=number, name=f"layer{number}") for number in range(6_000))
    graph = replace(chain, layers=layers)
    lines = tuple(line(number * 10_000, 0.005) for number in range(6_000))
    ran = ((number, number * 10_000, 9_000) for number in range(6_000))
    found = traced(run(*ran, duration=60_000_000, lines=lines))
    network = TracedNetwork(graph, {number: number for number in range(6_000)})
    assert len(layer_tracks(found, network)[0].spans) == 6_000
    assert sum(it.layer is not None for it in primitive_track(found, network).spans) == 6_000


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
    assert layer_times(sample_trace(levels=sample_trace().levels[:1])) == ()


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


def test_the_median_of_the_inferences_counts_and_parts_that_ran_apart_count_together() -> None:
    level = layer_level(span(0, 1_000_000, 0), span(2_000_000, 9_000_000, 1), span(20_000_000, 2_000_000, 2))
    assert times_by_layer(level) == {0: 2.0}
    assert times_by_layer(layer_level(span(0, 1_000_000, 0, 0.25)))[0] == pytest.approx(1.25)
    assert times_by_layer(layer_level(span(0, 1_000_000, 0), span(2_000_000, 500_000, 0)))[0] == pytest.approx(1.5)
