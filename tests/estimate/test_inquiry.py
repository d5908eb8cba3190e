from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dlbricks_tui.bricks.cutting import Cut, LayerOrder
from dlbricks_tui.bricks.decomposition import Cutting, Decomposition, decompose
from dlbricks_tui.bricks.identity import Brick, brick_of, carrier_keys
from dlbricks_tui.estimate.compositions import EstimateError
from dlbricks_tui.estimate.estimate import Options
from dlbricks_tui.estimate.inquiry import Inquiry
from dlbricks_tui.estimate.lookup import BrickResults, bias_counterpart, levels_measured
from dlbricks_tui.estimate.parts import Standing
from dlbricks_tui.estimate.system_estimate import (
    Offer,
    SystemEstimate,
    best_offer,
    find_runtime,
    find_system,
    preferred_level,
    what_is_there,
)
from dlbricks_tui.models.graph import Layer, Level, Origin, TensorType, Wire
from dlbricks_tui.store.records import ANY_CONTEXT, PUBLISHED, Measurement, Record, System, new_uuid
from dlbricks_tui.store.selections import Combination, Way
from dlbricks_tui.store.statistics import summarise
from tests.bricks.graphs import DATA, Spec, after, built, chain
from tests.estimate.stored import brick_records, model_record, store_of, timed
from tests.store.samples import failure, measurement, runtime, system

GRAPH = chain("conv")
CHANNELS = 16


def convolution(*, bias: bool) -> Layer:
    """A convolution of which the brick is that of a real one."""
    plain = GRAPH.layers[0]
    inputs = (Wire(Origin.DATA, 0), Wire(Origin.WEIGHT, 0), Wire(Origin.WEIGHT, 1))
    weights = (TensorType((CHANNELS, 8, 3, 3)), TensorType((CHANNELS,)))
    count = 2 if bias else 1
    return replace(plain, operators=(replace(plain.operators[0], inputs=inputs[: 1 + count]),), weights=weights[:count])


def brick(layer: Layer) -> Brick:
    return brick_of(replace(GRAPH, layers=(layer,)), (0,))


def test_a_brick_without_weights_and_a_sequence_have_no_counterpart() -> None:
    assert bias_counterpart(brick_of(chain("relu"), (0,)).canonical) is None
    assert bias_counterpart(brick_of(chain("conv", "relu"), (0, 1)).canonical) is None


MODEL = decompose(chain("conv", "relu", "pool", "relu"))
SYSTEM, RUNTIME = "c5.xlarge", "mxnet-1.9.1"
LATER = "2026-11-22T08:00:00.000000+00:00"


def pair(layer: int, model: Decomposition = MODEL) -> tuple[str, str]:
    found = model.occurrences[layer]
    return found.brick.key, found.context


def asked(folder: Path, records: Sequence[Record], options: Options | None = None) -> Inquiry:
    with store_of(folder / "store", *records) as store:
        return Inquiry(store, MODEL, options)


def on_system(folder: Path, records: Sequence[Record], options: Options | None = None) -> SystemEstimate:
    with store_of(folder / "store", *records) as store:
        found = Inquiry(store, MODEL, options).on(SYSTEM, RUNTIME)
        assert found is not None
        return found


def test_an_end_to_end_measurement_does_not_change_the_estimate(tmp_path: Path) -> None:
    bricks = brick_records(MODEL)
    without = on_system(tmp_path / "without", bricks)
    beside = on_system(tmp_path / "with", [*bricks, model_record(MODEL, 30.0)])
    assert without.end_to_end is None
    assert beside.end_to_end is not None
    assert beside.end_to_end.value_ms == 30.0
    assert repr(beside.estimate) == repr(without.estimate)
    assert beside.estimate == without.estimate


def test_the_newest_good_measurement_is_used_and_listed(tmp_path: Path) -> None:
    brick, context = pair(0)
    newer = measurement(brick=brick, context=context, level=Level.WRITTEN, statistics=timed(7.0), when=LATER)
    doubtful = replace(newer, statistics=timed(99.0), flags=("drift",), uuid=new_uuid())
    others = brick_records(MODEL)
    # Written down first, as results of another machine may come in late.
    found = on_system(tmp_path, [newer, doubtful, *others])
    assert found.estimate.parts[0].latency.value_ms == 7.0
    ids = {(it.brick, it.context): (it.uuid,) for it in (*others, newer) if isinstance(it, Measurement)}
    assert {part.pair: part.measured.results for part in found.estimate.parts if part.measured} == ids


def test_a_brick_measured_without_contexts_has_the_mean_of_its_results(tmp_path: Path) -> None:
    brick, context = pair(1)
    # What was measured in another context is not used.
    published = [
        measurement(brick=pair(0)[0], context="blocked", level=Level.WRITTEN),
        *(
            measurement(brick=brick, context=ANY_CONTEXT, level=Level.WRITTEN, statistics=timed(value))
            for value in (1.0, 3.0, 5.0)
        ),
    ]
    found = on_system(tmp_path / "published", published)
    assert [part.latency.value_ms for part in found.estimate.parts] == [0, 3.0, 0, 3.0]
    assert found.estimate.parts[0].standing is Standing.MISSING
    assert {part.source for part in found.estimate.parts if part.known} == {(brick, ANY_CONTEXT)}
    # What is known of occurrences that differ so is less sure than any one of them.
    low, high = found.estimate.parts[1].latency[1:]
    assert high - low > 2 * 5.0 * 0.01
    # What was measured in the very context is nearer.
    in_context = measurement(brick=brick, context=context, level=Level.WRITTEN, statistics=timed(9.0))
    both = on_system(tmp_path / "both", [in_context, *published])
    assert [part.latency.value_ms for part in both.estimate.parts] == [0, 9.0, 0, 3.0]


def test_an_estimate_says_what_other_models_tell_of_it(tmp_path: Path) -> None:
    own, other = carrier_keys(MODEL.graph), carrier_keys(chain("conv", "relu"))

    def timed_in(layer: int, ms: float, *carriers: str) -> list[Record]:
        how: dict[str, Any] = {"context": ANY_CONTEXT, "level": Level.WRITTEN, "statistics": timed(ms)}
        return [measurement(brick=pair(layer)[0], occurrence=(("carrier", it),), **how) for it in carriers]

    def told(*records: Record) -> tuple[int, int, float, float]:
        found = on_system(tmp_path / new_uuid(), records).estimate
        others = found.by_others
        return found.coverage.own_carrier, found.coverage.other_models, others.share, others.sequential_ms

    # The convolution takes 2 ms here, each relu 1 ms, and the pooling 4 ms.
    both = [*timed_in(0, 2.0, own.whole), *timed_in(2, 4.0, own.whole)]
    assert told(*both, *timed_in(1, 1.0, own.whole)) == (4, 0, 0.0, 8.0)
    assert told(*both, *timed_in(1, 1.0, other.part)) == (2, 2, 0.25, 8.0)
    # A mean of 1 ms, of which the other model says 0.5.
    mixed = [*timed_in(1, 1.5, own.part), *timed_in(1, 0.5, other.whole)]
    assert told(*both, *mixed) == (2, 0, 0.25, 7.0)
    # Old results of parts do not say of which model.
    assert told(*both, *timed_in(1, 1.0, "")) == (2, 0, 0.0, 8.0)


def test_published_layers_that_differ_in_a_bias_alone_are_one_brick(tmp_path: Path) -> None:
    both = {bias: convolution(bias=bias) for bias in (True, False)}
    models = {bias: decompose(replace(GRAPH, layers=(layer,))) for bias, layer in both.items()}
    how: dict[str, Any] = {"context": ANY_CONTEXT, "level": Level.WRITTEN}
    for protocol, expected in (("dlbricks-2019", {True: 2.0, False: 2.0}), ("other", {True: 1.0, False: 3.0})):
        records = [
            measurement(brick=model.occurrences[0].brick.key, protocol=protocol, statistics=timed(ms), **how)
            for model, ms in zip(models.values(), (1.0, 3.0), strict=True)
        ]
        with store_of(tmp_path / protocol, *records) as store:
            found = {bias: Inquiry(store, model).on(SYSTEM, RUNTIME) for bias, model in models.items()}
        assert {bias: it.sequential_ms for bias, it in found.items() if it} == expected
        sources = {part.source for it in found.values() if it for part in it.estimate.parts}
        assert len(sources) == len(set(expected.values()))


def test_the_runtime_with_the_highest_coverage_is_used_by_default(tmp_path: Path) -> None:
    half = brick_records(MODEL, without=[pair(0)], runtime="mxnet-1.5", when=LATER)
    found = asked(tmp_path, [*brick_records(MODEL), *half])
    most, wanted = found.on(SYSTEM, None), found.on(SYSTEM, "mxnet-1.5")
    assert most is not None
    assert wanted is not None
    assert (most.way.runtime, wanted.way.runtime) == (RUNTIME, "mxnet-1.5")
    assert found.on(SYSTEM, "mxnet-2") is None
    assert found.on("m5.large", None) is None


def test_a_failed_brick_is_unmeasurable_until_it_is_measured(tmp_path: Path) -> None:
    brick, context = pair(2)
    tried = failure(brick=brick, context=context, level=Level.WRITTEN, reason="crashed", message="signal 11")
    found = on_system(tmp_path / "failed", [tried, *brick_records(MODEL, without=[pair(2)])])
    assert found.estimate.parts[2].reason == "crashed: signal 11"
    assert found.estimate.coverage.unmeasurable == 1
    mended = on_system(tmp_path / "mended", [tried, *brick_records(MODEL)])
    assert mended.estimate.coverage.complete


@pytest.mark.parametrize(
    "cutting", [Cutting(2), Cutting(4), Cutting(3, Cut.RUNNABLE), Cutting(3, Cut.OVERLAP, LayerOrder.PAPER)]
)
def test_sequences_take_as_long_as_their_layers_inside_of_networks(tmp_path: Path, cutting: Cutting) -> None:
    # The second layer runs three times.
    graph = built(
        [
            Spec("conv", DATA),
            Spec("relu", after(0), times=3),
            Spec("pool", after(1)),
            Spec("conv", after(2)),
            Spec("relu", after(3)),
        ]
    )
    way: dict[str, Any] = {"protocol": "inside-12345678", "context": ANY_CONTEXT}
    records = brick_records(decompose(graph), **way)
    with store_of(tmp_path / "store", *records) as store:
        layers, sequences = (Inquiry(store, decompose(graph, it)).on(SYSTEM, RUNTIME) for it in (None, cutting))
    assert layers is not None and sequences is not None
    assert len(sequences.estimate.parts) < len(layers.estimate.parts)
    assert sequences.estimate.coverage == layers.estimate.coverage
    one, other = layers.estimate.composed, sequences.estimate.composed
    assert one is not None and other is not None
    assert other.sequential_ms == pytest.approx(one.sequential_ms)
    assert (other.latency.low_ms, other.latency.high_ms) == pytest.approx((one.latency.low_ms, one.latency.high_ms))


def test_a_sequence_is_not_composed_without_one_of_its_layers_nor_of_isolated_ones(tmp_path: Path) -> None:
    way: dict[str, Any] = {"protocol": "inside-12345678", "context": ANY_CONTEXT}
    sequences = decompose(MODEL.graph, Cutting(4))
    (whole,) = sequences.pairs
    some = brick_records(MODEL, without=[pair(2)], **way)
    failed = failure(brick=pair(2)[0], level=Level.WRITTEN, reason="crashed", message="", **way)
    for name, records, reasons in (
        ("missing", some, {}),
        ("failed", [*some, failed], {whole: "crashed"}),
        ("isolated", brick_records(MODEL), {}),
    ):
        with store_of(tmp_path / name, *records) as store:
            results = BrickResults(store, sequences)
            found = results.knowledge(Way(SYSTEM, RUNTIME, Level.WRITTEN, way["protocol"]))
            assert (found.measured, found.failed, results.offers) == ({}, reasons, ())


def test_only_isolated_bricks_have_an_error_of_their_method(tmp_path: Path) -> None:
    doubts = {}
    for protocol in ("alone-12345678", "inside-12345678", PUBLISHED):
        with store_of(tmp_path / protocol, *brick_records(MODEL, protocol=protocol)) as store:
            way = Way(SYSTEM, RUNTIME, Level.WRITTEN, protocol)
            doubts[protocol] = BrickResults(store, MODEL).knowledge(way).method_doubt
    assert doubts == {"alone-12345678": pytest.approx(0.188, abs=0.001), "inside-12345678": 0.0, PUBLISHED: 0.0}


@pytest.mark.parametrize(("protocol", "expected"), [("hot", (40.0, 39.6, 40.4)), (PUBLISHED, (30.0, 29.7, 30.3))])
def test_equal_models_share_the_newest_result_under_any_name_unless_it_was_published(
    tmp_path: Path, protocol: str, expected: tuple[float, float, float]
) -> None:
    bricks = brick_records(MODEL, protocol=protocol)
    twin = model_record(MODEL, 40.0, name="twin", when=LATER, protocol=protocol)
    both = on_system(tmp_path / "both", [*bricks, model_record(MODEL, 30.0, protocol=protocol), twin])
    assert both.end_to_end == expected
    alone = on_system(tmp_path / "twin", [*bricks, twin])
    assert alone.end_to_end == (40.0, 39.6, 40.4)


def test_the_warm_up_of_a_model_is_neither_compared_nor_an_inference_of_a_load(tmp_path: Path) -> None:
    steady = tuple([30.0, 30.1, 29.9] * 5)
    found = {"samples_ms": (90.0, *steady), "statistics": summarise(steady), "noise": (("warm_up", 1),)}
    with store_of(tmp_path / "store", model_record(MODEL, 30.0, **found)) as store:
        inquiry = Inquiry(store, MODEL)
        way = Way(SYSTEM, RUNTIME, Level.WRITTEN, "hot")
        timing = inquiry.timing(way)
        assert timing is not None and timing.samples_ms == steady
        timed = inquiry.timed(way)
        assert timed is not None and inquiry.steady_samples_ms(timed) == steady


def test_a_model_that_was_timed_on_a_busy_host_is_compared_by_the_interval_that_is_shown(tmp_path: Path) -> None:
    with store_of(tmp_path / "store", model_record(MODEL, 30.0, noise=(("shared", 0.2),))) as store:
        inquiry = Inquiry(store, MODEL)
        way = Way(SYSTEM, RUNTIME, Level.WRITTEN, "hot")
        shown, timing = inquiry.by(way).end_to_end, inquiry.timing(way)
    assert shown is not None and timing is not None
    assert timing.low_ms == pytest.approx(shown.low_ms) and shown.low_ms < 25 < 35 < shown.high_ms
    assert timing.high_ms == pytest.approx(shown.high_ms)


def test_the_measured_levels_are_listed(tmp_path: Path) -> None:
    fused = measurement(level=Level.FUSED, runtime="other")
    doubtful = measurement(level=Level.FUSED, flags=("drift",))
    with store_of(tmp_path / "store", *brick_records(MODEL), fused, doubtful) as store:
        assert levels_measured(store, SYSTEM) == (Level.FUSED, Level.WRITTEN)
        assert levels_measured(store, SYSTEM, RUNTIME) == (Level.WRITTEN,)
        assert levels_measured(store, "a1") == ()


def called(identity: str, name: str, instance_type: str = "") -> System:
    return replace(system(identity), name=name, instance_type=instance_type)


SYSTEMS = {
    it.id: it
    for it in (
        called("epyc-2c-ab12", "EPYC 7R13, 2 cores"),
        called("xeon-4c-cd34", "Xeon 8124M, 4 cores", "c5.xlarge"),
        called("c4.xlarge", "c4.xlarge"),
    )
}


def offer(system: str, runtime: str, sequences: int, newest: int = 0, protocol: str = "hot") -> Offer:
    return Offer(Way(system, runtime, Level.FUSED, protocol), sequences, 2, newest)


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ("epyc-2c-ab12", "epyc-2c-ab12"),
        ("C5.XLARGE", "xeon-4c-cd34"),
        ("Xeon 8124M, 4 cores", "xeon-4c-cd34"),
        ("epyc", "epyc-2c-ab12"),
    ],
)
def test_a_system_is_found_by_any_of_its_names_or_a_part_of_one(wanted: str, found: str) -> None:
    assert find_system(wanted, SYSTEMS) == found


def test_an_id_takes_precedence_over_names_and_a_whole_name_over_parts_of_others() -> None:
    host = called("c5.xlarge-4c-ef56", "c5.xlarge, 4 cores", "c5.xlarge")
    assert find_system("c5.xlarge", {it.id: it for it in (host, system("c5.xlarge"))}) == "c5.xlarge"
    assert find_system("c5", {it.id: it for it in (system("c5"), system("c5.xlarge"))}) == "c5"


@pytest.mark.parametrize(("wanted", "problem"), [("xlarge", "2 systems are called"), ("m5", "no system in the store")])
def test_ambiguous_or_unknown_names_are_refused_with_a_list(wanted: str, problem: str) -> None:
    with pytest.raises(EstimateError, match=problem) as refused:
        find_system(wanted, SYSTEMS)
    assert "c4.xlarge" in str(refused.value)
    with pytest.raises(EstimateError, match=f"called '{wanted}', as nothing was measured or imported yet"):
        find_system(wanted, {})


def test_a_runtime_is_found_by_id_or_name() -> None:
    known = {it.id: it for it in (runtime("mxnet-1.9.1 threads-2"), replace(runtime("mxnet-1.5.1"), name="old"))}
    assert find_runtime("old", known) == "mxnet-1.5.1"
    assert find_runtime("threads-2", known) == "mxnet-1.9.1 threads-2"


def test_the_series_with_the_highest_coverage_is_best_and_the_newest_breaks_ties() -> None:
    offers = [
        offer("a", "one", 5, newest=9),
        offer("a", "two", 7, newest=1),
        offer("a", "three", 7, newest=2),
        offer("b", "one", 9),
    ]
    assert best_offer(offers, "a", None) == offers[2]
    assert best_offer(offers, "a", "one") == offers[0]
    assert best_offer(offers, "a", "four") is None
    assert best_offer(offers, "c", None) is None


def test_fused_is_preferred_unless_only_written_has_results() -> None:
    assert preferred_level([]) is Level.FUSED
    assert preferred_level([Level.WRITTEN, Level.FUSED]) is Level.FUSED
    assert preferred_level([Level.WRITTEN]) is Level.WRITTEN


def test_available_results_are_listed_closest_first() -> None:
    def there(system: str, runtime: str, pairs: int) -> Combination:
        return Combination(system, runtime, Level.WRITTEN, "hot", pairs, pairs, 1)

    found = [there("a", "old", 90), there("b", "ours", 80), there("c5", "ours", 1), there("c5", "old", 2)]
    assert what_is_there(found[:1], "c5", "ours") == "the store has 90 bricks at level written on a by old"
    assert what_is_there(found, "c5", "ours") == (
        "the store has 1 brick at level written on c5 by ours, 2 bricks at level written on c5 by old, "
        "80 bricks at level written on b by ours, and 1 other set"
    )
    assert what_is_there([], "c5", None) == "the store has no results yet"
