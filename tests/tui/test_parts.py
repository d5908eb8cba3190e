import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlbricks_tui.bricks.cutting import Cut
from dlbricks_tui.bricks.decomposition import Cutting
from dlbricks_tui.estimate.calibration import CALL_MS, Correction
from dlbricks_tui.estimate.estimate import estimate
from dlbricks_tui.estimate.knowledge import Knowledge
from dlbricks_tui.models.graph import LayerGraph
from dlbricks_tui.tui.workbench.outline import Outline
from dlbricks_tui.tui.workbench.parts import PartLatencies, PartLatency
from tests.bricks.graphs import DATA, Spec, after, built, chain, graphs
from tests.estimate.knowledge_of import measured, with_predictions
from tests.tui.opened_models import estimated, open_model, sample, unable

FORKED = built([Spec("conv", DATA), Spec("relu", after(0)), Spec("pool", after(0), 16), Spec("add", after(1, 2))])


def of_all(latencies: PartLatencies, outline: Outline) -> PartLatency:
    return latencies.of(outline.rows[0].region)


@given(graphs(), st.integers(1, 3), st.sampled_from(Cut), st.booleans())
def test_the_latency_of_the_model_is_that_of_the_estimate(
    graph: LayerGraph, granularity: int, cut: Cut, in_part: bool
) -> None:
    opened = open_model(graph, Cutting(granularity, cut))
    suite = sorted(opened.decomposition.suite)
    known = measured(opened.decomposition, suite[::2] if in_part else ())
    found = estimate(opened.decomposition, known)
    tally = of_all(estimated(opened, known), Outline(opened))
    if found.obstacle:
        # The parts have latencies, but no share of an unknown total.
        assert tally.share == 0.0
        return
    assert tally.latency_ms == pytest.approx(found.composed.sequential_ms if found.composed else 0.0)
    assert tally.share == pytest.approx(1.0 if tally.latency_ms else 0.0)


def test_the_call_overhead_counts_for_the_model_and_for_no_part() -> None:
    opened = open_model(chain("conv", "relu"))
    plain = measured(opened.decomposition)
    called = measured(opened.decomposition, correction=Correction(((CALL_MS, 0.5),)))
    outline = Outline(opened)
    outline.expand_below(0)
    parts = [node for node in outline.rows if node.parent is not None]
    composed = estimate(opened.decomposition, called).composed
    assert composed is not None
    assert of_all(estimated(opened, called), outline).latency_ms == pytest.approx(composed.sequential_ms)
    for node in parts:
        of_part = estimated(opened, plain).of(node.region).latency_ms
        assert estimated(opened, called).of(node.region).latency_ms == pytest.approx(of_part)


@given(graphs(), st.integers(1, 3), st.sampled_from([Cut.CHAIN, Cut.RUNNABLE]))
def test_the_coverage_of_the_model_is_that_of_the_estimate(graph: LayerGraph, granularity: int, cut: Cut) -> None:
    opened = open_model(graph, Cutting(granularity, cut))
    known = measured(opened.decomposition, sorted(opened.decomposition.suite)[::2])
    coverage = estimate(opened.decomposition, known).coverage
    tally = of_all(estimated(opened, known), Outline(opened))
    assert (tally.known, tally.missing, tally.unmeasurable) == (
        coverage.measured,
        coverage.missing,
        coverage.unmeasurable,
    )


@given(graphs(), st.integers(1, 3))
def test_the_latencies_of_parts_add_up(graph: LayerGraph, granularity: int) -> None:
    opened = open_model(graph, Cutting(granularity))
    known = measured(opened.decomposition)
    outline, latencies = Outline(opened), estimated(opened, known)
    has_estimate = estimate(opened.decomposition, known).composed is not None
    outline.expand_below(0)
    for node in outline.rows:
        if node.parent is None and not has_estimate:
            # Layers that cannot be measured may outweigh the others: the model has no figure, its parts have.
            assert latencies.of(node.region).latency_ms == 0.0
            continue
        inside = [each for each in outline.rows if each.parent is node and each.layer is None]
        if inside:
            together = sum(latencies.of(each.region).latency_ms for each in inside)
            assert together == pytest.approx(latencies.of(node.region).latency_ms)


def test_unmeasured_sequences_are_missing_and_can_be_visited() -> None:
    opened = open_model(FORKED)
    relu = opened.decomposition.occurrences[1]
    latencies = estimated(opened, measured(opened.decomposition, [(relu.brick.key, relu.context)]))
    tally = of_all(latencies, Outline(opened))
    assert (tally.layers, tally.known, tally.missing) == (4, 3, 1)
    assert tally.coverage == 0.75
    assert [opened.nesting.sequences[place] for place in latencies.missing] == [1]


def test_layers_that_cannot_run_are_counted_apart() -> None:
    opened = open_model(unable(FORKED, 2))
    latencies = estimated(opened, measured(opened.decomposition))
    tally = of_all(latencies, Outline(opened))
    assert (tally.known, tally.missing, tally.unmeasurable) == (3, 0, 1)
    part = latencies.part(2)
    assert part is not None and part.reason == "no runtime knows it"


def test_predicted_layers_have_a_latency_and_are_not_covered() -> None:
    opened = sample("resnet18_v1")
    wanting = opened.decomposition.occurrences[10]
    known = measured(opened.decomposition, [(wanting.brick.key, wanting.context)])
    tally = estimated(opened, with_predictions(known)).of(opened.nesting.leaf(10))
    assert (tally.predicted, tally.known) == (1, 0) and tally.latency_ms > 0


def test_stored_arrays_take_no_time_and_are_covered() -> None:
    opened = open_model(built([Spec("constant"), Spec("conv", DATA), Spec("add", after(0, 1))]))
    latencies = estimated(opened, measured(opened.decomposition))
    tally = latencies.of(opened.nesting.leaf(0))
    assert (tally.known, tally.latency_ms) == (1, 0.0)
    assert latencies.missing == ()


def test_only_one_of_two_branches_is_on_the_critical_path() -> None:
    opened = open_model(FORKED)
    latencies = estimated(opened, measured(opened.decomposition))
    on_path = [latencies.of(opened.nesting.leaf(number)).critical for number in range(4)]
    assert on_path[0] and on_path[3] and sorted(on_path[1:3]) == [False, True]
    assert len(latencies.critical) == 3
    assert of_all(latencies, Outline(opened)).critical


def test_without_measurements_no_part_has_a_latency() -> None:
    opened = open_model(FORKED)
    latencies = estimated(opened)
    tally = of_all(latencies, Outline(opened))
    assert (tally.known, tally.missing, tally.latency_ms, tally.share) == (0, 4, 0.0, 0.0)
    assert latencies.critical == () and len(latencies.missing) == 4


def test_sequences_outside_the_cover_have_no_part() -> None:
    opened = open_model(chain("conv", "relu", "pool", "relu"), Cutting(4, Cut.OVERLAP))
    latencies = estimated(opened, measured(opened.decomposition))
    used = [number for number in range(4) if latencies.part(number) is not None]
    assert used == [0]
    assert latencies.of(opened.nesting.leaf(1)).layers == 0


def test_overlapping_sequences_without_measurements_are_missing() -> None:
    opened = open_model(chain("conv", "relu", "pool"), Cutting(2, Cut.OVERLAP))
    latencies = estimated(opened, Knowledge())
    assert of_all(latencies, Outline(opened)).missing == 3
    assert len(latencies.missing) == 3
