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
from dlbricks_tui.documents.part_details import PartDetails, PartLatencies, PartLatency
from dlbricks_tui.estimate.estimate import estimate
from dlbricks_tui.estimate.knowledge import Knowledge
from dlbricks_tui.models.graph import LayerGraph, Level
from dlbricks_tui.store.records import Measurement
from dlbricks_tui.store.statistics import summarise
from dlbricks_tui.wording import numbers
from tests.bricks.graphs import DATA, Spec, after, built, chain, graphs
from tests.documents.outlines import estimated, leaf_of, nodes_of, outline_of, sample, unable
from tests.documents.snapshots import check
from tests.estimate.knowledge_of import measured, with_predictions


def timed(*samples_ms: float, flags: tuple[str, ...] = ()) -> Measurement:
    return Measurement(
        brick="b" * 64,
        context="plain",
        system="s",
        runtime="r",
        level=Level.WRITTEN,
        protocol="hot-1",
        run="r1",
        when="2026-11-21T08:00:00+00:00",
        statistics=summarise(samples_ms),
        samples_ms=samples_ms,
        flags=flags,
    )


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


def test_layers_are_counted_by_what_is_known_of_them() -> None:
    outline = outline_of(FORKED)
    relu = outline.decomposition.occurrences[1]
    latencies = estimated(outline, measured(outline.decomposition, [(relu.brick.key, relu.context)]))
    tally = of_all(latencies)
    assert (tally.layers, tally.known, tally.missing, tally.coverage) == (4, 3, 1, 0.75)
    assert [outline.sequences[place] for place in latencies.missing] == [1]
    # Without measurements no part has a latency.
    latencies = estimated(outline)
    tally = of_all(latencies)
    assert (tally.known, tally.missing, tally.latency_ms, tally.share) == (0, 4, 0.0, 0.0)
    assert latencies.critical == () and len(latencies.missing) == 4
    # Layers that cannot run are counted apart.
    outline = outline_of(unable(FORKED, 2))
    latencies = estimated(outline, measured(outline.decomposition))
    tally, part = of_all(latencies), latencies.part(2)
    assert (tally.known, tally.missing, tally.unmeasurable) == (3, 0, 1)
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
    assert (tally.known, tally.latency_ms, latencies.missing) == (1, 0.0, ())


def test_only_one_of_two_branches_is_on_the_critical_path() -> None:
    outline = outline_of(FORKED)
    latencies = estimated(outline, measured(outline.decomposition))
    on_path = [latencies.of(outline.leaf(number)).critical for number in range(4)]
    assert on_path[0] and on_path[3] and sorted(on_path[1:3]) == [False, True]
    assert len(latencies.critical) == 3 and of_all(latencies).critical


def test_sequences_outside_the_cover_have_no_part() -> None:
    outline = outline_of(chain("conv", "relu", "pool", "relu"), Cutting(4, Cut.OVERLAP))
    latencies = estimated(outline, measured(outline.decomposition))
    assert [number for number in range(4) if latencies.part(number) is not None] == [0]
    assert latencies.of(outline.leaf(1)).layers == 0
    # Those without measurements are missing.
    latencies = estimated(outline_of(chain("conv", "relu", "pool"), Cutting(2, Cut.OVERLAP)), Knowledge())
    assert of_all(latencies).missing == len(latencies.missing) == 3
