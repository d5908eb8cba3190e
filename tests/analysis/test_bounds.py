from dataclasses import replace

import pytest

from dlbricks_tui.analysis.bounds import best_measured, over_best, ratio_of
from dlbricks_tui.estimate.compositions import picoseconds
from dlbricks_tui.estimate.knowledge import Latency
from tests.analysis.executions import executed, with_nodes
from tests.bricks.graphs import DATA, Spec, after, built, chain


def test_each_group_has_the_execution_that_was_fastest() -> None:
    graph = with_nodes(chain("conv", "relu", "pool"))
    one, other = executed(graph, {0: 3.0, 1: 1.0, 2: 2.0}), executed(graph, {0: 1.0, 1: 2.0, 2: 2.0})
    best = best_measured([one, other])
    assert [winner.execution for winner in best.winners] == [1, 0, 0]
    assert best.latency_ms == pytest.approx(4.0)


def test_the_parallel_best_is_the_longest_path_through_the_groups() -> None:
    fork = built([Spec("conv", DATA), Spec("relu", after(0)), Spec("pool", after(0)), Spec("add", after(1, 2))])
    best = best_measured([executed(with_nodes(fork), {0: 1.0, 1: 2.0, 2: 3.0, 3: 1.0})])
    assert best.latency_ms == pytest.approx(7.0)
    assert best.parallel_ps == picoseconds(5.0)


def test_groups_that_wait_for_one_another_are_on_the_path_together() -> None:
    """The second execution computes the first and the last layer at once."""
    graph = with_nodes(chain("conv", "relu", "conv"))
    joined = with_nodes(chain("conv", "relu"))
    joined = replace(joined, layers=(replace(joined.layers[0], nodes=(0, 2)), joined.layers[1]))
    best = best_measured([executed(graph, {0: 1.0, 1: 2.0, 2: 1.0}), executed(joined, {0: 5.0, 1: 5.0})])
    assert [winner.nodes for winner in best.winners] == [(0, 2), (1,)]
    assert best.parallel_ps == picoseconds(4.0)


def test_the_headline_is_the_end_to_end_latency_over_the_best() -> None:
    graph = with_nodes(chain("conv", "relu"))
    baseline = executed(graph, {0: 3.0, 1: 1.0}, end_to_end=Latency(6.0, 5.8, 6.2))
    found = over_best(baseline, best_measured([baseline, executed(graph, {0: 2.0, 1: 1.0})]))
    assert found is not None
    assert found.value == pytest.approx(2.0)
    assert 1.8 < found.low < 2.0 < found.high < 2.2


def test_the_errors_of_a_ratio_are_independent() -> None:
    found = ratio_of(Latency(2.0, 1.9, 2.1), Latency(1.0, 0.95, 1.05))
    assert found.value == 2.0
    assert 1.0 - found.low / 2.0 == pytest.approx(0.05 * 2**0.5, rel=0.1)
    assert ratio_of(Latency(0.0, 0.0, 0.0), Latency(1.0, 0.0, 2.0)) == (0.0, 0.0, 0.0)
    assert ratio_of(Latency(1.0, 1.0, 1.0), Latency(1.0, 0.0, 2.0)).high < 1e4


def test_an_execution_that_fuses_more_does_not_keep_others_from_competing_over_single_layers() -> None:
    graph = with_nodes(chain("conv", "relu"))
    one, other = executed(graph, {0: 1.0, 1: 3.0}), executed(graph, {0: 3.0, 1: 1.0})
    fused = executed(graph, {0: 10.0}, granularity=2)
    assert best_measured([one, other]).latency_ms == pytest.approx(2.0)
    assert best_measured([one, other, fused]).latency_ms == pytest.approx(2.0)
    assert best_measured([one, other, executed(graph, {0: 1.5}, granularity=2)]).latency_ms == pytest.approx(1.5)


def test_an_execution_of_few_layers_counts_where_another_one_fuses_them() -> None:
    graph = with_nodes(chain("conv", "relu"))
    (conv, relu) = graph.layers
    only_conv = replace(graph, layers=(conv,), heads=())
    only_relu = replace(graph, layers=(replace(relu, index=0, feeds=conv.feeds),), heads=())
    apart = [executed(only_conv, {0: 1.0}), executed(only_relu, {0: 1.0})]
    fused = executed(graph, {0: 5.0}, granularity=2)
    assert best_measured([*apart, fused]).latency_ps <= best_measured(apart).latency_ps
