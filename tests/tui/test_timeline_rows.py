"""The rows of a timeline and the place in it, without a terminal."""

from collections.abc import Callable
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from dlbricks_tui.traces.trace import Trace, TraceLevel, TrackKind
from dlbricks_tui.tui.trace.rows import TimelineState
from tests.traces.sample_traces import traces
from tests.tui.traces import trace_of, with_threads

WIDTH = 100


def state_of(trace: Trace | None = None) -> TimelineState:
    return TimelineState(trace or trace_of())


def names(state: TimelineState) -> list[str]:
    return [it.level.level.value if it.track is None else it.track.name for it in state.rows]


def layers_row(state: TimelineState) -> int:
    found = state.row_of(TraceLevel.LAYER, TrackKind.LAYERS)
    assert found is not None
    return found


def test_each_level_has_its_tracks_below_it_and_threads_are_closed_at_first() -> None:
    state = state_of(with_threads(trace_of()))
    assert names(state) == [
        *("model", "inferences"),
        *("layer", "inferences", "layers", "added"),
        *("primitive", "inferences", "layers", "added", "primitives"),
        "thread",
    ]
    assert state.open(11) == 11
    assert names(state)[12:] == ["inferences", "layers", "added", "primitives", "thread 0", "thread 1", "page faults"]


def test_closing_a_level_from_one_of_its_tracks_leads_to_the_level() -> None:
    state = state_of()
    assert state.close(layers_row(state)) == 2
    assert names(state)[:4] == ["model", "inferences", "layer", "primitive"]
    # A closed level shows its own track.
    shown = state.rows[2].shown
    assert shown is not None and shown.kind is TrackKind.LAYERS


def test_it_begins_with_the_layers_and_shows_the_first_inference() -> None:
    state = state_of()
    assert state.first_row() == layers_row(state)
    window = state.window(WIDTH)
    first = state.levels[2].inferences[0]
    assert window.start_ns == 0 and window.cell(first.duration_ns - 1) == WIDTH - 1


def test_levels_are_aligned_at_the_inference_in_view() -> None:
    state = state_of()
    row = layers_row(state)
    state.go_to_inference(row, 1, WIDTH)
    assert state.anchor == 1
    for level in state.levels:
        assert level.start_of(1) == level.inferences[1].start_ns
    # Slower levels start it later, and yet it is at the left end of each.
    assert state.levels[0].start_of(1) < state.levels[1].start_of(1) < state.levels[2].start_of(1)
    assert state.window(WIDTH).start_ns == 0


def test_inferences_end_at_the_first_and_the_last() -> None:
    state = state_of()
    state.go_to_inference(1, -1, WIDTH)
    assert state.anchor == 0
    for _ in range(5):
        state.go_to_inference(1, 1, WIDTH)
    assert state.anchor == 2


def test_the_next_inference_selects_the_same_layer() -> None:
    state = state_of()
    row = layers_row(state)
    state.select_layer(7, WIDTH)
    state.go_to_inference(row, 1, WIDTH)
    span = state.selected_span(row)
    assert span is not None and (span.layer, span.inference) == (7, 1)


def test_steps_go_from_span_to_span_and_into_the_next_inference() -> None:
    state = state_of()
    row, count = layers_row(state), len(state.layers)
    seen = []
    state.select_layer(0, WIDTH)
    for _ in range(count + 2):
        span = state.selected_span(row)
        assert span is not None
        seen.append((span.inference, span.layer))
        state.step(row, 1, WIDTH)
    assert seen == [*((0, layer) for layer in range(count)), (1, 0), (1, 1)]
    assert state.anchor == 1
    for _ in range(count + 5):
        state.step(row, -1, WIDTH)
    span = state.selected_span(row)
    assert span is not None and (span.inference, span.layer) == (0, 0) and state.anchor == 0


def test_other_rows_select_what_ran_at_the_same_time_of_the_inference() -> None:
    state = state_of()
    state.select_layer(9, WIDTH)
    row = state.row_of(TraceLevel.PRIMITIVE, TrackKind.LAYERS)
    assert row is not None
    span = state.selected_span(row)
    # Its level is slower, so the layer of the same time is this one or one before it.
    assert span is not None and span.layer in (7, 8, 9) and span.inference == 0


def test_the_slowest_span_is_of_the_inference_in_view() -> None:
    state = state_of()
    row = layers_row(state)
    state.go_to_inference(row, 1, WIDTH)
    state.select_slowest(row, WIDTH)
    span = state.selected_span(row)
    assert span is not None and (span.layer, span.inference) == (0, 1)


def test_a_layer_is_found_in_a_closed_level_and_an_unknown_one_is_not() -> None:
    state = state_of()
    state.close(2)
    row = state.select_layer(5, WIDTH)
    assert row == layers_row(state) and state.selected_layer(row) == 5
    assert state.select_layer(9999, WIDTH) is None


def test_zooming_in_and_out_keeps_the_selected_span_in_view() -> None:
    state = state_of()
    row = layers_row(state)
    state.select_layer(30, WIDTH)
    widths = []
    for _ in range(12):
        state.zoom(row, 1, WIDTH)
        window, span = state.window(WIDTH), state.selected_span(row)
        assert span is not None
        middle = span.start_ns + span.duration_ns // 2
        assert 0 <= window.cell(middle) < WIDTH
        widths.append(window.cell_ns)
    assert widths == sorted(widths, reverse=True) and widths[-1] < widths[0] // 500
    for _ in range(40):
        state.zoom(row, -1, WIDTH)
    start, end = state.extent_ns
    window = state.window(WIDTH)
    assert window.cell_ns * WIDTH >= end - start > window.cell_ns * WIDTH // 4


def test_a_span_can_fill_the_row_and_everything_can_be_shown() -> None:
    state = state_of()
    row = layers_row(state)
    state.select_layer(30, WIDTH)
    state.fit_span(row, WIDTH)
    span, window = state.selected_span(row), state.window(WIDTH)
    assert span is not None and window.start_ns == span.start_ns
    assert window.cell(span.start_ns + span.duration_ns - 1) == WIDTH - 1
    state.fit_everything()
    window = state.window(WIDTH)
    assert window.start_ns == 0 and window.cell(state.extent_ns[1] - 1) == WIDTH - 1
    state.fit_inference()
    assert state.window(WIDTH).cell_ns < window.cell_ns


def test_a_selected_span_out_of_view_is_brought_into_view() -> None:
    state = state_of()
    row = layers_row(state)
    state.select_layer(0, WIDTH)
    for _ in range(4):
        state.zoom(row, 1, WIDTH)
    for _ in range(60):
        state.step(row, 1, WIDTH)
        span, window = state.selected_span(row), state.window(WIDTH)
        assert span is not None
        began = span.start_ns - state.levels[1].start_of(state.anchor)
        assert 0 <= window.cell(began) < WIDTH


def test_a_cell_selects_the_span_that_it_shows() -> None:
    state = state_of()
    row = layers_row(state)
    state.select_at(row, 0, WIDTH)
    assert state.selected_layer(row) == 0
    state.select_at(row, WIDTH - 20, WIDTH)
    found = state.selected_layer(row)
    assert found is not None and found > len(state.layers) // 2


def test_counters_step_from_reading_to_reading() -> None:
    state = state_of(with_threads(trace_of()))
    state.open(11)
    row = len(state.rows) - 1
    assert state.selected(row) == 0 and state.selected_span(row) is None
    state.step(row, 1, WIDTH)
    assert state.selected(row) == 1
    state.step(row, 5, WIDTH)
    assert state.selected(row) == 2


def test_a_level_with_fewer_inferences_shows_its_last_one() -> None:
    short, long = trace_of(inferences=1), trace_of(inferences=3)
    state = state_of(replace(long, levels=(short.levels[0], *long.levels[1:])))
    state.go_to_inference(layers_row(state), 2, WIDTH)
    assert state.levels[0].start_of(2) == 0


KEYS: tuple[Callable[[TimelineState, int, int], object], ...] = (
    lambda state, row, _: state.open(row),
    lambda state, row, _: state.close(row),
    lambda state, row, width: state.step(row, 1, width),
    lambda state, row, width: state.step(row, -1, width),
    lambda state, row, width: state.zoom(row, 1, width),
    lambda state, row, width: state.zoom(row, -1, width),
    lambda state, _, width: state.pan(0.5, width),
    lambda state, _, width: state.pan(-0.5, width),
    lambda state, row, width: state.go_to_inference(row, 1, width),
    lambda state, row, width: state.select_slowest(row, width),
    lambda state, row, width: state.fit_span(row, width),
    lambda state, *_: state.fit_everything(),
    lambda state, row, width: state.select_at(row, width // 2, width),
)


@given(traces(), st.lists(st.tuples(st.sampled_from(KEYS), st.integers(0, 30)), max_size=12), st.integers(1, 120))
def test_any_keys_on_any_trace_keep_some_of_it_in_view(
    trace: Trace, steps: list[tuple[Callable[[TimelineState, int, int], object], int]], width: int
) -> None:
    state = TimelineState(trace)
    for press_key, place in steps:
        if not state.rows:
            return
        press_key(state, place % len(state.rows), width)
        start, end = state.extent_ns
        window = state.window(width)
        assert window.cell(start) < width and window.cell(end) >= 0
        for index in range(len(state.rows)):
            state.selected_span(index)
