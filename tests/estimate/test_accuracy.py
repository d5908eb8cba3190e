import math
from dataclasses import replace

import pytest

from dlbricks_tui.bricks.decomposition import Cutting, Decomposition, decompose
from dlbricks_tui.estimate.comparison import accuracy, by_group, speedup
from dlbricks_tui.estimate.estimate import estimate
from dlbricks_tui.estimate.knowledge import Knowledge, Latency, MeasuredLatency
from dlbricks_tui.estimate.system_estimate import SystemEstimate
from dlbricks_tui.models.graph import Level
from dlbricks_tui.store.selections import Way
from tests.bricks.graphs import chain

WAY = Way("c5.xlarge", "mxnet", Level.WRITTEN, "hot")


def all_taking(decomposition: Decomposition, ms: float) -> Knowledge:
    latency = Latency(ms, ms, ms)
    return Knowledge({pair: MeasuredLatency(latency, pair, 25) for pair in decomposition.suite})


def one(layers: int, end_to_end_ms: float | None, granularity: int = 1) -> SystemEstimate:
    """A model of so many equal layers of 1 ms."""
    decomposition = decompose(chain(*["relu"] * layers), Cutting(granularity))
    measured = None if end_to_end_ms is None else Latency(end_to_end_ms, end_to_end_ms, end_to_end_ms)
    return SystemEstimate(WAY, estimate(decomposition, all_taking(decomposition, 1.0)), measured)


def incomplete() -> SystemEstimate:
    decomposition = decompose(chain("relu", "pool"))
    known = dict(list(all_taking(decomposition, 1.0).measured.items())[:1])
    return SystemEstimate(WAY, estimate(decomposition, Knowledge(known)), Latency(9.0, 9.0, 9.0))


def test_the_figures_of_the_paper_follow_from_the_ratios() -> None:
    found = accuracy([one(4, 4.0), one(2, 2.0 / 1.04), one(3, 3.0 / 0.92), one(1, 1.0 / 1.2)])
    assert found is not None
    assert found.models == 4
    assert found.geometric_mean == pytest.approx(math.exp((math.log(1.04) + math.log(0.92) + math.log(1.2)) / 4))
    assert found.mean_absolute_error == pytest.approx((0.04 + 0.08 + 0.2) / 4)
    assert found.worst_error == pytest.approx(0.2)
    assert (found.within_5_percent, found.within_10_percent) == (0.5, 0.75)


def test_the_sign_of_an_error_shows_if_the_estimate_is_too_high() -> None:
    assert one(4, 5.0).error == pytest.approx(-0.2)
    assert one(5, 4.0).error == pytest.approx(0.25)
    assert one(5, None).error is None


def test_only_complete_models_measured_end_to_end_are_judged() -> None:
    found = accuracy([one(4, 4.0), one(4, None), incomplete()])
    assert found is not None
    assert found.models == 1
    assert accuracy([one(4, None), incomplete()]) is None
    assert accuracy([]) is None


def test_the_speedup_is_all_models_over_the_unique_bricks() -> None:
    # One brick of 1 ms stands for all layers of both models.
    assert speedup([one(4, 5.0), one(3, 3.0)]) == pytest.approx(8.0)
    assert speedup([one(4, None)]) is None


def test_estimates_measured_or_cut_differently_are_separate_groups() -> None:
    elsewhere = replace(one(4, 4.0), way=WAY._replace(system="a1"))
    groups = by_group([one(4, 4.0), one(2, 2.0), elsewhere, one(4, 4.0, granularity=2)])
    assert sorted((group.way.system, group.granularity, len(held)) for group, held in groups.items()) == [
        ("a1", 1, 1),
        ("c5.xlarge", 1, 2),
        ("c5.xlarge", 2, 1),
    ]
