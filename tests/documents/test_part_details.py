"""The parts of a model: their latencies and details."""

from dataclasses import replace
from datetime import datetime, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlbricks_tui.api.estimating import Measurements
from dlbricks_tui.bricks.cutting import Cut
from dlbricks_tui.bricks.decomposition import Cutting
from dlbricks_tui.documents.layout import laid_out
from dlbricks_tui.documents.outline import Outline
from dlbricks_tui.documents.part_details import PartDetails, PartLatencies, PartLatency
from dlbricks_tui.estimate.estimate import estimate
from dlbricks_tui.estimate.knowledge import Knowledge
from dlbricks_tui.models.graph import LayerGraph
from dlbricks_tui.store.records import Measurement
from dlbricks_tui.store.statistics import summarise
from dlbricks_tui.wording import numbers
from tests.bricks.graphs import DATA, Spec, after, built, chain, graphs
from tests.documents.outlines import estimated, leaf_of, nodes_of, outline_of, unable
from tests.documents.snapshots import check
from tests.estimate.knowledge_of import measured, with_predictions
from tests.store.samples import measurement


def timed(*samples_ms: float, flags: tuple[str, ...] = ()) -> Measurement:
    return measurement(statistics=summarise(samples_ms), samples_ms=samples_ms, flags=flags)


def test_control_codes_in_names_are_escaped() -> None:
    graph = chain("conv", "relu")
    evil = outline_of(replace(graph, layers=tuple(replace(it, name="a\x1b[2Jb") for it in graph.layers)))
    parts = [*PartDetails(leaf_of(evil, 0)).whole(None, None), *PartDetails(evil.root).whole(None, None)]
    assert not any("\x1b" in span.text for line in laid_out(parts, 60) for span in line)


def test_the_details_of_parts_are_told_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numbers, "now", lambda: datetime(2026, 11, 21, 9, tzinfo=timezone.utc).timestamp())
    specs = [Spec("conv", DATA), Spec("relu", after(0), times=2), Spec("constant"), Spec("add", after(1, 2))]
    graph = unable(built([*specs, Spec("split", after(3)), Spec("relu", after(4)), Spec("relu", after(5))]), 5)
    outline = outline_of(graph)
    some = [(it.brick.key, it.context) for it in outline.decomposition.occurrences[3:4]]
    doubtful = estimated(outline, measured(outline.decomposition, some, doubt=0.2))
    predicted = estimated(outline, with_predictions(measured(outline.decomposition, some)))
    long = outline_of(chain(*["conv", "relu"] * 7), Cutting(14))
    newest = timed(1.0, 1.0, 1.5, flags=("slower than before",))
    outlier = Measurements(timed(*[1.0, 1.01, 1.02, 1.02, 1.03] * 5, 9.0), (1.02,))
    one = chain("conv", "relu")
    recorded = replace(one, layers=(one.layers[0], replace(one.layers[1], is_recorded=True)))
    impossible = outline_of(unable(one, 1, "the operator is not in this build"))
    overlapping, grouped = (
        outline_of(chain("conv", "relu", "pool"), Cutting(3, Cut.OVERLAP)),
        outline_of(one, Cutting(2)),
    )
    unable_to, left_out, together = (
        estimated(it, measured(it.decomposition)) for it in (impossible, overlapping, grouped)
    )
    history = Measurements(newest, (1.5, 1.0))
    cases = {f"layer {number}": (outline, number, doubtful) for number in range(7)}
    check(
        "part-details",
        {
            "the model": PartDetails(outline.root, doubtful).whole(None, None),
            "the model predicted": PartDetails(outline.root, predicted).facts(),
            "the model without latencies": PartDetails(outline.root).facts(),
            **{name: PartDetails(leaf_of(of, it), known).facts() for name, (of, it, known) in cases.items()},
            "a predicted layer": PartDetails(leaf_of(outline, 3), predicted).facts(tuple("abcdef")),
            "a layer with a history": PartDetails(leaf_of(outline, 0), doubtful).whole(history, ()),
            "a layer with an outlier": PartDetails(leaf_of(outline, 0), doubtful).whole(outlier, None),
            "a layer that cannot run": PartDetails(leaf_of(impossible, 1), unable_to).facts(),
            "a model with such a layer": PartDetails(impossible.root, unable_to).facts(),
            "a shape that depends on data": PartDetails(leaf_of(outline_of(recorded), 1)).facts(),
            "left out by the cover": PartDetails(leaf_of(overlapping, 1), left_out).facts(),
            # It has no latency of its own.
            "a layer among several": PartDetails(leaf_of(grouped, 0).inside[1], together).facts(),
            "a long sequence": PartDetails(leaf_of(long, 0)).layers(),
            "a row of layers": PartDetails(outline_of(chain("conv", *["relu"] * 3)).root.inside[1]).facts(),
        },
        width=80,
    )


FORKED = built([Spec("conv", DATA), Spec("relu", after(0)), Spec("pool", after(0), 16), Spec("add", after(1, 2))])


def of_all(latencies: PartLatencies) -> PartLatency:
    return latencies.of(latencies.outline.root.region)


@given(graphs(), st.integers(1, 3), st.sampled_from(Cut), st.booleans())
def test_the_latency_and_the_coverage_of_the_model_are_those_of_the_estimate_and_the_parts_add_up(
    graph: LayerGraph, granularity: int, cut: Cut, in_part: bool
) -> None:
    outline = outline_of(graph, Cutting(granularity, cut))
    suite = sorted(outline.decomposition.pairs)
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


def tallies(outline: Outline, known: Knowledge) -> list[str]:
    """Return a line for the model and for each sequence: its layers that are known, their latency and their share."""
    latencies = estimated(outline, known)
    places = [outline.root.region, *(outline.leaf(number) for number in range(len(outline.sequences)))]
    found = [latencies.of(it) for it in places]
    lines = [
        f"{it.layers} layers: {it.known} known, {it.predicted} predicted, {it.missing} missing, {it.unmeasurable} not "
        f"measurable, {it.latency_ms:.3g} ms, {it.share:.0%}, {it.coverage:.0%} covered{', critical' * it.critical}"
        for it in found
    ]
    parts = [number for number in range(len(outline.sequences)) if latencies.part(number) is not None]
    return [*lines, f"critical {[*latencies.critical]}, missing {[*latencies.missing]}, parts {parts}"]


def test_layers_are_counted_by_what_is_known_of_them() -> None:
    forked, unable_to = outline_of(FORKED), outline_of(unable(FORKED, 2))
    stored = outline_of(built([Spec("constant"), Spec("conv", DATA), Spec("add", after(0, 1))]))
    four = outline_of(chain("conv", "relu", "pool", "relu"), Cutting(4, Cut.OVERLAP))
    three = outline_of(chain("conv", "relu", "pool"), Cutting(2, Cut.OVERLAP))
    relu = forked.decomposition.occurrences[1]
    some = measured(forked.decomposition, [(relu.brick.key, relu.context)])
    check(
        "part-latencies",
        {
            # Only one of two branches is on the critical path.
            "measured": tallies(forked, measured(forked.decomposition)),
            "measured in part": tallies(forked, some),
            # Predicted layers have a latency, and are not covered.
            "predicted in part": tallies(forked, with_predictions(some)),
            "not measured": tallies(forked, Knowledge()),
            "a layer that cannot run": tallies(unable_to, measured(unable_to.decomposition)),
            # It takes no time and is covered.
            "a stored array": tallies(stored, measured(stored.decomposition)),
            # Sequences outside of the cover have no part.
            "overlapping": tallies(four, measured(four.decomposition)),
            "overlapping, not measured": tallies(three, Knowledge()),
        },
        width=140,
    )
    part = estimated(unable_to).part(2)
    assert part is not None and part.reason == "no runtime knows it"
