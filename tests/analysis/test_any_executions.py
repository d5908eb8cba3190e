"""Properties of the analysis of any executions of any graph. Executions are drawn once for all properties."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlbricks_tui.analysis.bounds import best_measured, fastest, gap_of, savings
from dlbricks_tui.analysis.groups import MeasuredExecution, are_comparable, groups_of
from dlbricks_tui.analysis.roofline import Roof, roofline_ms, works_of
from dlbricks_tui.analysis.whole_models import written_times
from dlbricks_tui.estimate.compositions import milliseconds, picoseconds
from tests.analysis.executions import some_executions, with_nodes

ROOF = Roof(2, {"avx512": 100.0, "avx2": 50.0}, 10.0, 40.0, 32 << 20, 2 << 20)


@given(some_executions(), st.data())
def test_groups_bounds_gaps_and_savings_of_any_executions_add_up(
    executions: list[MeasuredExecution], data: st.DataObject
) -> None:
    each_part_and_each_node_belongs_to_one_group_and_is_computed_by_one_winner(executions)
    more_executions_never_raise_the_best_which_no_execution_beats(executions)
    more_executions_never_raise_the_roofline(executions)
    the_parts_of_a_gap_add_up_to_the_latency_minus_the_best(data.draw(st.sampled_from(executions)), executions)
    savings_add_up_to_the_difference_without_conversions_and_calls(executions[0], executions[-1])
    one = data.draw(st.sampled_from(executions))
    times_of_written_layers_add_up(one, data.draw(st.none() | st.sampled_from(executions)))


def each_part_and_each_node_belongs_to_one_group_and_is_computed_by_one_winner(
    executions: Sequence[MeasuredExecution],
) -> None:
    found = groups_of(executions)
    for number, one in enumerate(executions):
        held = [part for group in found.groups for part in group.parts[number]]
        converting = [part for part, nodes in enumerate(one.nodes_of_parts) if not nodes]
        assert sorted([*held, *converting]) == list(range(len(one.parts)))
    won = fastest(found, [[part.paid_ps for part in it.parts] for it in executions])
    for nodes in ([node for it in some for node in it.nodes] for some in (found.groups, won)):
        assert len(nodes) == len(set(nodes))


def more_executions_never_raise_the_best_which_no_execution_beats(executions: Sequence[MeasuredExecution]) -> None:
    bests = [best_measured(executions[: number + 1]) for number in range(len(executions))]
    latencies_ps = [it.latency_ps for it in bests]
    assert latencies_ps == sorted(latencies_ps, reverse=True)
    best, latency = bests[-1], bests[-1].latency
    for one in executions:
        if one.estimate.composed is not None:
            assert best.latency_ps <= picoseconds(one.estimate.composed.sequential_ms)
            assert best.parallel_ps <= picoseconds(one.estimate.composed.parallel_ms)
    assert best.parallel_ps <= best.latency_ps
    assert 0.0 <= latency.low_ms <= latency.value_ms <= latency.high_ms


def more_executions_never_raise_the_roofline(executions: Sequence[MeasuredExecution]) -> None:
    held = [works_of(one, executions[0].graph) for one in executions]
    least = [
        roofline_ms(executions[:count], groups_of(executions[:count]), held[:count], ROOF)
        for count in range(1, len(executions) + 1)
    ]
    assert least == sorted(least, reverse=True)


def the_parts_of_a_gap_add_up_to_the_latency_minus_the_best(
    baseline: MeasuredExecution, executions: Sequence[MeasuredExecution]
) -> None:
    best = best_measured(executions)
    gap = gap_of(baseline, best)
    measured, composed = baseline.found.end_to_end, baseline.estimate.composed
    if measured is not None:
        assert gap.total_ps == picoseconds(measured.value_ms) - best.latency_ps
    elif composed is not None:
        assert gap.unexplained_ps is None
        assert gap.total_ps == picoseconds(composed.sequential_ms) - best.latency_ps
    assert min(gap.slower_layers_ps, gap.conversions_ps) >= 0


def savings_add_up_to_the_difference_without_conversions_and_calls(
    before: MeasuredExecution, after: MeasuredExecution
) -> None:
    found = savings(before, after)
    if not are_comparable(before, after):
        assert found == ()
        return
    assert sum(it.before_ms for it in found) == pytest.approx(compared_ms(before))
    assert sum(it.saved_ms for it in found) == pytest.approx(compared_ms(before) - compared_ms(after), abs=1e-9)


def compared_ms(one: MeasuredExecution) -> float:
    """The time of the parts that belong to nodes, for an item."""
    parts = [part for part, nodes in zip(one.parts, one.nodes_of_parts, strict=True) if nodes]
    return milliseconds(sum(part.paid_ps for part in parts)) / one.graph.batch_size


def times_of_written_layers_add_up(one: MeasuredExecution, shares: MeasuredExecution | None) -> None:
    found = written_times(one, with_nodes(one.graph), shares, ROOF)
    assert found.total_ps == sum(part.paid_ps for part in one.parts)
    assert min(it.latency_ps for it in found.layers) >= 0
