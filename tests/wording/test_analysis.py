from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlbricks_tui.analysis.bounds import best_measured, over_best
from dlbricks_tui.analysis.gap import gap_of
from dlbricks_tui.analysis.groups import MeasuredExecution
from dlbricks_tui.estimate.knowledge import Latency
from dlbricks_tui.estimate.parts import Standing
from dlbricks_tui.wording.analysis import bound_lines, gap_lines, gap_parts, gap_sentence, headline, uneven_lines
from tests.analysis.executions import executed, some_executions, with_nodes
from tests.bricks.graphs import chain

GRAPH = with_nodes(chain("conv", "relu", "pool"))
BASELINE = executed(GRAPH, {0: 4.0, 1: 1.0, 2: 1.0}, end_to_end=Latency(6.5, 6.4, 6.6))
FASTER = executed(GRAPH, {0: 2.0, 1: 1.0, 2: 1.0}, threads=2)
BEST = best_measured([BASELINE, FASTER])


def timed_beside(one: MeasuredExecution, reference_ms: float) -> MeasuredExecution:
    """The execution, measured when the reference took so long."""
    parts = [
        replace(it, measured=it.measured._replace(reference_ms=reference_ms))
        for it in one.parts
        if it.measured is not None
    ]
    return replace(one, found=replace(one.found, estimate=replace(one.estimate, parts=tuple(parts))))


def without_a_layer(one: MeasuredExecution) -> MeasuredExecution:
    """The execution with an estimate that leaves its last layer out."""
    *parts, last = one.parts
    parts.append(replace(last, standing=Standing.MISSING, measured=None))
    return replace(one, found=replace(one.found, estimate=replace(one.estimate, parts=tuple(parts))))


def test_the_headline_says_how_many_times_the_best_a_model_takes() -> None:
    text = headline("model", BASELINE, BEST, over_best(BASELINE, BEST))
    assert text.startswith("model: 6.500 ms measured, 1.62 times the best measured (1.")


def test_without_an_end_to_end_latency_the_headline_is_of_the_estimate() -> None:
    one = executed(GRAPH, {0: 4.0, 1: 1.0, 2: 1.0})
    best = best_measured([one])
    assert headline("model", one, best, over_best(one, best)).startswith("model: 6.000 ms estimated, 1.00 times")


def test_an_estimate_that_leaves_layers_out_is_marked() -> None:
    one = without_a_layer(executed(GRAPH, {0: 4.0, 1: 1.0, 2: 1.0}))
    assert headline("model", one, None, None) == "model: …6.000 ms estimated"
    assert any("…6.000 ms" in line for line in bound_lines(one, None, None))


def test_a_model_without_an_estimate_says_why() -> None:
    found = executed(GRAPH).found
    impossible = replace(found.estimate, composed=None, obstacle="2 of 3 layers cannot be measured by themselves")
    one = replace(BASELINE, found=replace(found, estimate=impossible))
    assert headline("model", one, None, None) == f"model: no estimate is possible: {impossible.obstacle}"
    unknown = replace(one, found=replace(found, estimate=replace(impossible, obstacle="")))
    assert headline("model", unknown, None, None) == "model: nothing was measured"


def test_the_bounds_name_the_executions_that_won() -> None:
    (best,) = (line for line in bound_lines(BASELINE, BEST, None) if "best measured" in line)
    assert "4.000 ms" in best
    assert "50 % mxnet written on 2, 50 % mxnet written on 1" in best


def test_the_gap_is_drawn_as_a_bar_of_its_parts() -> None:
    heading, bar, *parts = gap_lines(gap_of(BASELINE, BEST), BEST, 80)
    assert heading == "gap to the best: 2.500 ms of the end-to-end latency"
    assert bar.count("#") == pytest.approx(40 * 2.0 / 6.5, abs=1)
    assert bar.count("?") == pytest.approx(40 * 0.5 / 6.5, abs=1)
    assert [line.split()[1] for line in parts] == ["slower", "conversions", "calls", "unexplained"]


def test_a_gap_is_told_in_a_sentence_also_where_there_is_none() -> None:
    told = gap_sentence(gap_parts(gap_of(BASELINE, BEST), BEST), BEST)
    assert told.startswith("The best measured takes 4.000 ms; above it are slower layers 2.000 ms")
    alone = best_measured([FASTER])
    told = gap_sentence(gap_parts(gap_of(FASTER, alone), alone), alone)
    assert told == "The best measured takes 4.000 ms; there is no gap above it."


def test_an_execution_that_was_measured_at_another_speed_of_the_host_is_named() -> None:
    calm, other = timed_beside(BASELINE, 1.0), executed(GRAPH, {0: 2.0, 1: 1.0, 2: 1.0})
    (line,) = uneven_lines(calm, best_measured([calm, timed_beside(other, 1.3)]))
    assert line.strip().startswith("mxnet written on 1 was measured when the host was 30 % faster or slower")
    assert uneven_lines(calm, best_measured([calm, timed_beside(other, 1.05)])) == []


def test_references_of_runtimes_with_other_settings_are_not_compared() -> None:
    calm, two_threads = timed_beside(BASELINE, 1.0), timed_beside(FASTER, 0.5)
    assert uneven_lines(calm, best_measured([calm, two_threads])) == []


@given(some_executions(), st.integers(60, 120))
def test_the_bar_keeps_to_the_width(executions: list[MeasuredExecution], width: int) -> None:
    best = best_measured(executions)
    (_, bar, *_) = gap_lines(gap_of(executions[0], best), best, width)
    assert len(bar) <= width
