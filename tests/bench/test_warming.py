from dataclasses import replace

import pytest

from dlbricks_tui.bench.jobs import Job, Target
from dlbricks_tui.bench.warming import untimed_runs
from tests.bricks.graphs import chain, weighing


@pytest.mark.parametrize(
    ("latency_ms", "brick", "whole"),
    [(0.02, 3, 3), (3.0, 1, 3), (49.0, 1, 3), (50.0, 0, 3), (150.0, 0, 1), (1e3, 0, 0)],
)
def test_what_is_short_needs_most_of_them(latency_ms: float, brick: int, whole: int) -> None:
    assert (untimed_runs(latency_ms, whole=False), untimed_runs(latency_ms, whole=True)) == (brick, whole)


def test_a_brick_that_the_caches_are_swept_for_needs_none() -> None:
    graph = weighing(weighing(weighing(chain("conv", "conv", "conv", "conv"), 1, 2), 2, 7), 3, 7)
    jobs = [Job(Target("brick"), "", "", graph, (layer,), (), 1.0, 0) for layer in range(3)]
    assert [job.untimed_runs(0.5) for job in jobs] == [3, 0, 0]
    assert [replace(job, cold=job is jobs[0]).untimed_runs(0.5) for job in jobs] == [0, 3, 3]
