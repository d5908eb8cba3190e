import pytest

from dlbricks_tui.measure.jobs import Job, JobKey
from dlbricks_tui.measure.warming import untimed_runs
from tests.bricks.graphs import chain


@pytest.mark.parametrize(
    ("latency_ms", "brick", "whole"),
    [
        (0.0, 3, 20),
        (0.02, 3, 20),
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


@pytest.mark.parametrize(("context", "runs"), [("conv", 3), ("conv:kept;cold", 0)])
def test_the_context_of_a_brick_decides_its_untimed_runs(context: str, runs: int) -> None:
    job = Job(JobKey("brick", context), "", "", chain("conv"), (0,), (), 1.0, 0)
    assert job.untimed_runs(0.5) == runs
