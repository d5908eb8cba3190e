from dataclasses import replace

import pytest

from dlbricks_tui.bench.jobs import Job, Target
from dlbricks_tui.bench.warming import untimed_runs
from dlbricks_tui.models.graph import TensorType
from tests.bricks.graphs import chain


@pytest.mark.parametrize(
    ("latency_ms", "brick", "whole"),
    [(0.02, 3, 3), (3.0, 1, 3), (49.0, 1, 3), (50.0, 0, 3), (150.0, 0, 1), (1e3, 0, 0)],
)
def test_what_is_short_needs_most_of_them(latency_ms: float, brick: int, whole: int) -> None:
    assert (untimed_runs(latency_ms, whole=False), untimed_runs(latency_ms, whole=True)) == (brick, whole)


def test_weights_that_no_cache_holds_are_not_brought_nearer_than_they_are_in_a_model() -> None:
    layers = [replace(chain("conv").layers[0], weights=(TensorType((mebibytes, 256, 1024)),)) for mebibytes in (6, 7)]
    jobs = [Job(Target("brick"), "", "", replace(chain("conv"), layers=(layer,)), (0,), (), 1.0, 0) for layer in layers]
    assert [job.untimed_runs(0.5) for job in jobs] == [3, 1]
