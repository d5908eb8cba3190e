from collections.abc import Iterator, Sequence

import pytest

from dlbricks_tui.bricks.cutting import Cut
from dlbricks_tui.bricks.decomposition import Cutting, decompose
from dlbricks_tui.estimate.estimate import Composed, Options, estimate
from dlbricks_tui.models.graph import LayerGraph
from tests.estimate.knowledge_of import measured
from tests.estimate.table1 import table1

# VGG and VDSR: one layer after another.
CHAINS = {"2", "5", "17", "18", "38"}
HALF = Cutting(2)
# Of each family; the others differ from these in their sizes.
SEVERAL = ("2", "38", "14", "16", "42")
several_networks = pytest.mark.parametrize(
    "numbers", [SEVERAL, pytest.param(tuple(table1()), marks=pytest.mark.soak)], ids=["several", "all"]
)


def composed(graph: LayerGraph, cutting: Cutting, *workers: int) -> Iterator[Composed]:
    """Return the estimate for each number of workers."""
    decomposition = decompose(graph, cutting)
    known = measured(decomposition)
    for each in workers:
        found = estimate(decomposition, known, Options(each))
        assert found.coverage.complete
        assert found.composed is not None
        yield found.composed


def test_all_fifty_models_are_estimated() -> None:
    assert len(table1()) == 37
    assert table1().keys() >= CHAINS


@several_networks
@pytest.mark.parametrize("cutting", [Cutting(1), Cutting(4, Cut.OVERLAP)], ids=["1", "overlap"])
def test_workers_lie_between_the_sum_and_the_critical_path(cutting: Cutting, numbers: Sequence[str]) -> None:
    for number in numbers:
        graph = table1()[number]
        one, three, as_many_as_layers = composed(graph, cutting, 1, 3, len(graph.layers))
        assert three.workers_ms is not None
        assert three.sequential_ms >= three.workers_ms >= three.parallel_ms, number
        assert one.workers_ms == three.sequential_ms, number
        assert as_many_as_layers.workers_ms == three.parallel_ms, number


@several_networks
def test_chains_gain_nothing_from_running_in_parallel_and_the_others_do(numbers: Sequence[str]) -> None:
    gains = {
        number for number in numbers for it in composed(table1()[number], HALF, 2) if it.parallel_ms < it.sequential_ms
    }
    assert not gains & CHAINS
    assert {"14", "42"} <= gains


@several_networks
def test_removing_half_of_the_bricks_never_makes_an_estimate_complete_or_narrower(numbers: Sequence[str]) -> None:
    for number in numbers:
        graph = table1()[number]
        decomposition = decompose(graph)
        whole = estimate(decomposition, measured(decomposition))
        gone = sorted(measured(decomposition).measured)[::2]
        half = estimate(decomposition, measured(decomposition, without=gone), Options(any_part=True))
        assert whole.composed is not None
        assert half.composed is not None
        assert not half.coverage.complete, number
        assert half.coverage.measured + half.coverage.missing == len(graph.layers), number
        assert half.composed.interval.width_ms > whole.composed.interval.width_ms, number
        assert half.composed.interval.high_ms > whole.composed.sequential_ms, number
        assert set(half.remaining.pairs) == set(gone), number
