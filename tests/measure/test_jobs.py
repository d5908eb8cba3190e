"""The memory and the untimed runs of programs."""

from dataclasses import replace

import pytest

from dlbricks_tui.measure.jobs import Job, JobKey, memory_bytes, timed_runs, untimed_runs
from dlbricks_tui.models.graph import Feed
from tests.bricks.convolutions import convolving
from tests.bricks.graphs import DATA, Spec, after, built, chain

SHAPE = (1, 16, 10, 10)
TENSOR, WEIGHT = 4 * 16 * 100, 4 * 16 * 16 * 9


def test_tensors_between_layers_take_memory_once() -> None:
    graph = built([Spec("conv", DATA), Spec("conv", after(0)), Spec("add", after(0, 1))])
    for index in (0, 1):
        graph = convolving(graph, index, SHAPE, (16, 16, 3, 3), SHAPE)
    first, second, third = graph.layers
    assert memory_bytes([first]) == memory_bytes([second]) == 2 * TENSOR + WEIGHT
    assert memory_bytes([first, second]) == 3 * TENSOR + 2 * WEIGHT
    # What two of them are fed is there once, too.
    again = replace(second, feeds=(Feed(None, 0),))
    assert memory_bytes([first, again]) == 3 * TENSOR + 2 * WEIGHT
    assert memory_bytes([]) == 0
    small = sum(tensor.size_bytes for tensor in third.operators[0].outputs)
    assert memory_bytes(graph.layers) == 3 * TENSOR + 2 * WEIGHT + small


@pytest.mark.parametrize(
    ("latency_ms", "brick", "whole"),
    [
        (0.0, 3, 2000),
        (0.02, 3, 2000),
        (3.0, 1, 14),
        (8.0, 1, 5),
        (15.0, 1, 3),
        (49.0, 1, 3),
        (50.0, 0, 3),
        (150.0, 0, 1),
        (1e3, 0, 0),
    ],
)
def test_short_programs_need_most_untimed_runs(latency_ms: float, brick: int, whole: int) -> None:
    assert (untimed_runs(latency_ms, whole=False), untimed_runs(latency_ms, whole=True)) == (brick, whole)


@pytest.mark.parametrize(("latency_ms", "runs"), [(0.0, 9), (0.05, 9), (2.0, 5), (9.0, 1), (500.0, 1)])
def test_short_networks_run_several_times_in_a_round(latency_ms: float, runs: int) -> None:
    assert timed_runs(latency_ms) == runs


@pytest.mark.parametrize(("context", "runs"), [("conv", 3), ("conv:kept;cold", 0)])
def test_the_context_of_a_brick_decides_its_untimed_runs(context: str, runs: int) -> None:
    job = Job(JobKey("brick", context), "", "", chain("conv"), (0,), (), 1.0, 0)
    assert job.untimed_runs(0.5) == runs
