import pytest

from dlbricks_tui.bench.warming import untimed_runs


@pytest.mark.parametrize(
    ("latency_ms", "brick", "whole"), [(0.02, 1, 3), (49.0, 1, 3), (50.0, 0, 3), (150.0, 0, 1), (1e3, 0, 0)]
)
def test_what_is_short_needs_most_of_them(latency_ms: float, brick: int, whole: int) -> None:
    assert (untimed_runs(latency_ms, whole=False), untimed_runs(latency_ms, whole=True)) == (brick, whole)
