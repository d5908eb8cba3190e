from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given

from dlbricks_tui.bricks.decomposition import Cutting, decompose
from dlbricks_tui.estimate.estimate import estimate
from dlbricks_tui.estimate.explanation import (
    Clue,
    Suspect,
    by_region,
    by_type,
    costliest,
    disagreement,
    layer_latencies,
    residual,
    slowdown,
)
from dlbricks_tui.estimate.knowledge import Knowledge, Latency, MeasuredLatency
from dlbricks_tui.estimate.system_estimate import SystemEstimate
from dlbricks_tui.models.graph import LayerGraph
from tests.bricks.graphs import DATA, Spec, after, built, chain, graphs
from tests.estimate.knowledge_of import measured
from tests.estimate.test_ranking import WAY

TAKES_MS = {"conv": 4.0, "relu": 1.0, "pool": 2.0, "add": 1.0}


def knowledge_by_op(graph: LayerGraph, doubt: float = 0.0, method_doubt: float = 0.0) -> Knowledge:
    known = {}
    for it in decompose(graph).occurrences:
        ms = TAKES_MS[graph.layers[it.sequence.layers[0]].op]
        pair = (it.brick.key, it.context)
        known[pair] = MeasuredLatency(Latency(ms, ms * (1 - doubt), ms * (1 + doubt)), pair, 25)
    return Knowledge(known, method_doubt=method_doubt)


def module() -> LayerGraph:
    """conv, a fork of conv and relu, their sum, relu: 4 + (4 and 1) + 1 + 1."""
    return built(
        [
            Spec("conv", DATA),
            Spec("conv", after(0)),
            Spec("relu", after(0)),
            Spec("add", after(1, 2)),
            Spec("relu", after(3)),
        ]
    )


def test_latencies_per_type_are_listed_largest_first_and_several_kinds_together_are_one_of_their_own() -> None:
    graph = module()
    found = by_type(graph, estimate(decompose(graph), knowledge_by_op(graph)))
    assert [(it.label, it.layers, it.latency_ms) for it in found] == [
        ("convolution", 2, 8.0),
        ("elementwise", 2, 2.0),
        ("combine", 1, 1.0),
    ]
    assert found[0].share == pytest.approx(8 / 11)
    graph = chain("conv", "relu", "relu")
    decomposition = decompose(graph, Cutting(3))
    (only,) = by_type(graph, estimate(decomposition, measured(decomposition)))
    assert only.label == "convolution + elementwise"


def test_the_costliest_bricks_are_listed_with_their_uses() -> None:
    graph = chain("relu", "relu", "relu", "relu", "relu", "pool", "conv")
    found = costliest(estimate(decompose(graph), knowledge_by_op(graph)))
    assert [it.latency_ms for it in found][:2] == [5.0, 4.0]
    assert found[0].uses == 5
    assert found[0].share == pytest.approx(5 / 11)


def test_regions_are_listed_in_model_order() -> None:
    graph = module()
    decomposition = decompose(graph)
    found = by_region(graph, estimate(decomposition, knowledge_by_op(graph)))
    assert [(it.layers, it.repeats, it.latency_ms) for it in found] == [
        ((0,), 0, 4.0),
        ((1, 2), 1, 5.0),
        ((3, 4), 0, 2.0),
    ]


@given(graphs())
def test_layers_regions_and_types_add_up_to_the_sequential_latency(graph: LayerGraph) -> None:
    decomposition = decompose(graph, Cutting(3))
    found = estimate(decomposition, measured(decomposition))
    if found.composed is None:
        return
    whole_ms = pytest.approx(found.composed.sequential_ms, abs=1e-6)
    assert sum(layer_latencies(found).values()) == whole_ms
    assert sum(it.latency_ms for it in by_type(graph, found)) == whole_ms
    assert sum(it.latency_ms for it in by_region(graph, found)) == whole_ms


def judged(end_to_end_ms: float, knowledge: Knowledge) -> SystemEstimate:
    measured_whole = Latency(end_to_end_ms, end_to_end_ms - 0.03, end_to_end_ms + 0.03)
    return SystemEstimate(WAY, estimate(decompose(chain("conv", "pool")), knowledge), measured_whole)


def test_sampling_and_method_explain_only_their_part_of_a_residual() -> None:
    knowledge = knowledge_by_op(chain("conv", "pool"), doubt=0.01, method_doubt=0.04)
    found = residual(judged(8.0, knowledge))
    assert found is not None
    assert found.residual_ms == pytest.approx(2.0)
    assert found.sampling_ms == pytest.approx(((0.04 + 0.02) ** 2 + 0.03**2) ** 0.5)
    assert found.method_ms == pytest.approx(0.04 * 6)
    explained = (found.sampling_ms**2 + found.method_ms**2) ** 0.5
    assert found.unexplained_ms == pytest.approx(2.0 - explained)


@pytest.mark.parametrize(
    ("end_to_end_ms", "doubt", "residual_ms", "unexplained"),
    [(6.02, 0.01, 0.02, (0.0, 0.0)), (4.0, 0.001, -2.0, (-2.0, -1.9))],
)
def test_a_small_residual_is_explained_entirely_and_one_of_a_high_estimate_negative(
    end_to_end_ms: float, doubt: float, residual_ms: float, unexplained: tuple[float, float]
) -> None:
    found = residual(judged(end_to_end_ms, knowledge_by_op(chain("conv", "pool"), doubt=doubt)))
    assert found is not None
    assert found.residual_ms == pytest.approx(residual_ms)
    assert unexplained[0] <= found.unexplained_ms <= unexplained[1]


def test_missing_layers_explain_only_an_estimate_that_is_too_low() -> None:
    graph = chain("conv", "pool")
    whole = knowledge_by_op(graph)
    (conv, conv_measured), _ = whole.measured.items()
    lacking = Knowledge({conv: conv_measured})
    more, less = residual(judged(6.0, lacking)), residual(judged(3.0, lacking))
    assert more is not None
    assert less is not None
    assert more.lacking_ms > 0
    assert less.lacking_ms == 0


@pytest.mark.parametrize(
    ("bricks_ms", "model_ms", "end_to_end_ms", "explained_ms", "times_slower"),
    [
        (1.0, 0.8, 4.8, 0.2 * 6.0, 0.8),
        (1.0, 1.25, 7.5, 0.25 * 6.0, 1.25),
        # Within what the reference varies by anyway, it tells nothing.
        (1.0, 0.87, 4.8, 0.0, 1.0),
        # A host that was quicker for the model is no reason for a model that took longer, but worth knowing.
        (1.0, 0.8, 7.5, 0.0, 0.8),
        (0.0, 0.8, 4.8, 0.0, 1.0),
        (1.0, 0.0, 4.8, 0.0, 1.0),
    ],
)
def test_a_changed_host_explains_a_residual_in_proportion_to_its_reference(
    bricks_ms: float, model_ms: float, end_to_end_ms: float, explained_ms: float, times_slower: float
) -> None:
    knowledge = knowledge_by_op(chain("conv", "pool"))
    measured_then = {pair: it._replace(reference_ms=bricks_ms) for pair, it in knowledge.measured.items()}
    one = judged(end_to_end_ms, replace(knowledge, measured=measured_then))
    found = residual(replace(one, reference_ms=model_ms))
    assert found is not None
    assert found.host_ms == pytest.approx(explained_ms)
    assert found.times_slower == pytest.approx(times_slower)
    unexplained_ms = abs(end_to_end_ms - 6.0) - explained_ms - found.sampling_ms
    assert abs(found.unexplained_ms) == pytest.approx(max(0.0, unexplained_ms))


HOUR = 3_600_000_000


@pytest.mark.parametrize(
    ("end_to_end", "doubt", "about", "expected"),
    [
        (Latency(6.02, 6.0, 6.1), 0.01, {}, None),
        # The reference took 1 ms beside the bricks, 1.3 or 0.7 ms beside the model.
        (Latency(8.0, 7.9, 8.1), 0.01, {"reference_ms": 1.3}, (Suspect.MEASUREMENT, Clue.SLOWER_HOST)),
        (Latency(4.0, 3.9, 4.1), 0.01, {"reference_ms": 0.7}, (Suspect.ESTIMATE, Clue.SLOWER_HOST)),
        (Latency(8.0, 7.9, 8.1), 0.01, {"reference_ms": 0.7}, (Suspect.ESTIMATE, Clue.OTHER_NETWORKS)),
        (Latency(8.0, 7.9, 8.1), 0.01, {"timed_samples": 7}, (Suspect.MEASUREMENT, Clue.FEW_SAMPLES)),
        (Latency(8.0, 7.9, 8.1), 0.01, {"timed_samples": 8}, (Suspect.ESTIMATE, Clue.OTHER_NETWORKS)),
        (Latency(9.0, 8.9, 9.1), 0.2, {}, (Suspect.ESTIMATE, Clue.WIDER_INTERVAL)),
        (Latency(9.0, 7.0, 11.0), 0.01, {}, (Suspect.MEASUREMENT, Clue.WIDER_INTERVAL)),
        (Latency(8.0, 7.9, 8.1), 0.01, {"timed_when": 12 * HOUR}, (Suspect.ESTIMATE, Clue.OLDER)),
        (Latency(8.0, 7.9, 8.1), 0.01, {"timed_when": 8 * HOUR}, (Suspect.MEASUREMENT, Clue.OLDER)),
        (Latency(8.0, 7.9, 8.1), 0.01, {"timed_when": 10 * HOUR + 1}, (Suspect.ESTIMATE, Clue.OTHER_NETWORKS)),
    ],
)
def test_of_an_estimate_and_a_measurement_that_disagree_one_is_in_doubt(
    end_to_end: Latency, doubt: float, about: dict[str, Any], expected: tuple[Suspect, Clue] | None
) -> None:
    knowledge = knowledge_by_op(chain("conv", "pool"), doubt=doubt)
    measured_then = {pair: it._replace(reference_ms=1.0, when=10 * HOUR) for pair, it in knowledge.measured.items()}
    found = disagreement(
        replace(judged(6.0, replace(knowledge, measured=measured_then)), end_to_end=end_to_end, **about)
    )
    assert (found and found[:2]) == expected
    if found and found.clue is Clue.SLOWER_HOST:
        assert found.times_slower == pytest.approx(1.3 if found.suspect is Suspect.MEASUREMENT else 1 / 0.7)


def test_a_host_was_slower_than_usual_by_its_reference_at_each_measurement() -> None:
    knowledge = knowledge_by_op(chain("conv", "pool"))
    # The convolution takes 4 of 6 ms.
    references = dict(zip(knowledge.measured, (1.5, 1.0), strict=True))
    measured_then = {pair: it._replace(reference_ms=references[pair]) for pair, it in knowledge.measured.items()}
    one = replace(judged(6.0, replace(knowledge, measured=measured_then)), reference_ms=1.2, usual_reference_ms=1.0)
    found = slowdown(one)
    assert found is not None
    assert (found.bricks, found.model, found.largest) == pytest.approx((4 / 3, 1.2, 4 / 3))
    assert slowdown(replace(one, usual_reference_ms=1.4)) is None
    assert slowdown(replace(one, usual_reference_ms=0.0)) is None
