import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlbricks_tui.bricks.cutting import Cut
from dlbricks_tui.bricks.decomposition import Cutting
from dlbricks_tui.documents.part_details import PartLatencies, PartLatency
from dlbricks_tui.estimate.estimate import estimate
from dlbricks_tui.estimate.knowledge import Knowledge
from dlbricks_tui.models.graph import LayerGraph
from tests.bricks.graphs import DATA, Spec, after, built, chain, graphs
from tests.documents.outlines import estimated, nodes_of, outline_of, sample, unable
from tests.estimate.knowledge_of import measured, with_predictions

FORKED = built([Spec("conv", DATA), Spec("relu", after(0)), Spec("pool", after(0), 16), Spec("add", after(1, 2))])


def of_all(latencies: PartLatencies) -> PartLatency:
    return latencies.of(latencies.outline.root.region)


@given(graphs(), st.integers(1, 3), st.sampled_from(Cut), st.booleans())
def test_the_latency_and_the_coverage_of_the_model_are_those_of_the_estimate_and_the_parts_add_up(
    graph: LayerGraph, granularity: int, cut: Cut, in_part: bool
) -> None:
    outline = outline_of(graph, Cutting(granularity, cut))
    suite = sorted(outline.decomposition.suite)
    found = estimate(outline.decomposition, measured(outline.decomposition, suite[::2] if in_part else ()))
    latencies = PartLatencies(outline, found)
    tally, coverage = of_all(latencies), found.coverage
    if cut is not Cut.OVERLAP:
        counts = coverage.measured, coverage.missing, coverage.unmeasurable
        assert (tally.known, tally.missing, tally.unmeasurable) == counts
        for node in nodes_of(outline):
            inside = [each for each in node.inside if each.layer is None]
            # Layers that cannot be measured may outweigh the others: the model has no figure, its parts have.
            if inside and (node.parent is not None or found.composed is not None):
                together = sum(latencies.of(each.region).latency_ms for each in inside)
                assert together == pytest.approx(latencies.of(node.region).latency_ms)
    if found.obstacle:
        # The parts have latencies, but no share of an unknown total.
        assert tally.share == 0.0
        return
    assert tally.latency_ms == pytest.approx(found.composed.sequential_ms if found.composed else 0.0)
    assert tally.share == pytest.approx(1.0 if tally.latency_ms else 0.0)


def test_unmeasured_sequences_are_missing_and_can_be_visited() -> None:
    outline = outline_of(FORKED)
    relu = outline.decomposition.occurrences[1]
    latencies = estimated(outline, measured(outline.decomposition, [(relu.brick.key, relu.context)]))
    tally = of_all(latencies)
    assert (tally.layers, tally.known, tally.missing) == (4, 3, 1)
    assert tally.coverage == 0.75
    assert [outline.sequences[place] for place in latencies.missing] == [1]


def test_layers_that_cannot_run_are_counted_apart() -> None:
    outline = outline_of(unable(FORKED, 2))
    latencies = estimated(outline, measured(outline.decomposition))
    tally = of_all(latencies)
    assert (tally.known, tally.missing, tally.unmeasurable) == (3, 0, 1)
    part = latencies.part(2)
    assert part is not None and part.reason == "no runtime knows it"


def test_predicted_layers_have_a_latency_and_are_not_covered() -> None:
    outline = sample("resnet18_v1")
    wanting = outline.decomposition.occurrences[10]
    known = measured(outline.decomposition, [(wanting.brick.key, wanting.context)])
    tally = estimated(outline, with_predictions(known)).of(outline.leaf(10))
    assert (tally.predicted, tally.known) == (1, 0) and tally.latency_ms > 0


def test_stored_arrays_take_no_time_and_are_covered() -> None:
    outline = outline_of(built([Spec("constant"), Spec("conv", DATA), Spec("add", after(0, 1))]))
    latencies = estimated(outline, measured(outline.decomposition))
    tally = latencies.of(outline.leaf(0))
    assert (tally.known, tally.latency_ms) == (1, 0.0)
    assert latencies.missing == ()


def test_only_one_of_two_branches_is_on_the_critical_path() -> None:
    outline = outline_of(FORKED)
    latencies = estimated(outline, measured(outline.decomposition))
    on_path = [latencies.of(outline.leaf(number)).critical for number in range(4)]
    assert on_path[0] and on_path[3] and sorted(on_path[1:3]) == [False, True]
    assert len(latencies.critical) == 3
    assert of_all(latencies).critical


def test_without_measurements_no_part_has_a_latency() -> None:
    outline = outline_of(FORKED)
    latencies = estimated(outline)
    tally = of_all(latencies)
    assert (tally.known, tally.missing, tally.latency_ms, tally.share) == (0, 4, 0.0, 0.0)
    assert latencies.critical == () and len(latencies.missing) == 4


def test_sequences_outside_the_cover_have_no_part() -> None:
    outline = outline_of(chain("conv", "relu", "pool", "relu"), Cutting(4, Cut.OVERLAP))
    latencies = estimated(outline, measured(outline.decomposition))
    used = [number for number in range(4) if latencies.part(number) is not None]
    assert used == [0]
    assert latencies.of(outline.leaf(1)).layers == 0


def test_overlapping_sequences_without_measurements_are_missing() -> None:
    outline = outline_of(chain("conv", "relu", "pool"), Cutting(2, Cut.OVERLAP))
    latencies = estimated(outline, Knowledge())
    assert of_all(latencies).missing == 3
    assert len(latencies.missing) == 3
