from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dlbricks_tui.bricks.decomposition import Decomposition, decompose
from dlbricks_tui.estimate.estimate import Options
from dlbricks_tui.estimate.inquiry import Inquiry
from dlbricks_tui.estimate.lookup import BrickResults, correction_of, levels_measured
from dlbricks_tui.estimate.parts import Standing
from dlbricks_tui.estimate.system_estimate import SystemEstimate, Way
from dlbricks_tui.models.graph import Level
from dlbricks_tui.store.dlbricks_2019 import PROTOCOL
from dlbricks_tui.store.records import ANY_CONTEXT, BrickForm, Calibration, Measurement, Record, new_uuid
from tests.bricks.graphs import chain
from tests.estimate.stored import brick_records, model_record, store_of, timed
from tests.estimate.test_lookup import GRAPH, convolution
from tests.store.samples import calibration, failure, measurement

MODEL = decompose(chain("conv", "relu", "pool", "relu"))
SYSTEM, RUNTIME = "c5.xlarge", "mxnet-1.9.1"
LATER = "2026-11-22T08:00:00.000000+00:00"


def pair(layer: int, model: Decomposition = MODEL) -> tuple[str, str]:
    found = model.occurrences[layer]
    return found.brick.key, found.context


def form_of(layer: int) -> BrickForm:
    brick = MODEL.occurrences[layer].brick
    return BrickForm(key=brick.key, canonical=brick.canonical)


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


def test_everywhere_lists_every_system_once(tmp_path: Path) -> None:
    found = asked(tmp_path, [*brick_records(MODEL), *brick_records(MODEL, system="a1", protocol="other")])
    assert [each.way.system for each in found.everywhere()] == ["a1", SYSTEM]


def test_a_failed_brick_is_unmeasurable_until_it_is_measured(tmp_path: Path) -> None:
    brick, context = pair(2)
    tried = failure(brick=brick, context=context, level=Level.WRITTEN, reason="crashed", message="signal 11")
    found = on_system(tmp_path / "failed", [tried, *brick_records(MODEL, without=[pair(2)])])
    assert found.estimate.parts[2].reason == "crashed: signal 11"
    assert found.estimate.coverage.unmeasurable == 1
    mended = on_system(tmp_path / "mended", [tried, *brick_records(MODEL)])
    assert mended.estimate.coverage.complete


def calibrated(day: int, hour: int, value_ms: float, **fields: Any) -> Calibration:
    when = f"2026-11-{day:02}T{hour:02}:00:00.000000+00:00"
    found = {"constants": (("warm_brick_ms", value_ms),), "residuals": (("net-1", value_ms),)}
    return calibration(**{"level": Level.WRITTEN, "when": when, **found, "densities": (("net-1", 3.0),), **fields})


MANY = tuple((f"net-{number}", 0.01) for number in range(4))


@pytest.mark.parametrize(
    ("records", "value_ms", "residuals"),
    [
        # The newest day of the same way.
        ([calibrated(22, 8, 0.5), calibrated(20, 8, 9.0), calibrated(22, 8, 7.0, system="a1")], 0.5, (0.5,)),
        # Constants of another version are not used.
        ([calibrated(21, 9, 0.3), calibrated(21, 10, 1.0, constants=(("magic_ms", 1.0),))], 0.3, (0.3,)),
        # The medians of a day: one odd hour among them moves nothing.
        (
            [
                calibrated(21, 9, 9.0),
                calibrated(21, 10, 0.7),
                calibrated(21, 12, 8.0, constants=(("cold_brick_ms", 8.0),)),
                calibrated(21, 22, 0.2),
                calibrated(22, 10, 0.3),
            ],
            0.3,
            (0.3, 0.2, 0.7),
        ),
        # One on few networks does not count beside a full one.
        (
            [calibrated(21, 9, 0.1, residuals=MANY, densities=MANY), calibrated(21, 10, 5.0)],
            0.1,
            (0.01, 0.01, 0.01, 0.01),
        ),
        # The five newest.
        ([calibrated(21, hour, float(hour)) for hour in range(1, 9)], 6.0, (8.0, 7.0, 6.0, 5.0, 4.0)),
    ],
)
def test_the_newest_calibrations_of_the_same_way_are_applied(
    tmp_path: Path, records: list[Calibration], value_ms: float, residuals: tuple[float, ...]
) -> None:
    with store_of(tmp_path / "store", *records) as store:
        found = correction_of(store, Way(SYSTEM, RUNTIME, Level.WRITTEN, "hot"))
        assert correction_of(store, Way(SYSTEM, "other", Level.WRITTEN, "hot")) is None
    assert found is not None
    assert (found.constants, found.residuals) == ((("warm_brick_ms", value_ms),), residuals)
    assert len(found.densities) == len(residuals)


def test_isolated_bricks_of_a_system_without_calibration_are_corrected_by_a_prior(tmp_path: Path) -> None:
    for protocol, is_prior in (("alone-12345678", True), ("inside-12345678", False)):
        with store_of(tmp_path / protocol, *brick_records(MODEL, protocol=protocol)) as store:
            results = BrickResults(store, MODEL)
            correction = results.knowledge(Way(SYSTEM, RUNTIME, Level.WRITTEN, protocol)).correction
            assert correction.is_prior == bool(correction.constants) == is_prior
            assert (correction.relative_doubt(1.0) > 0.1) == is_prior
            store.add(calibrated(21, 9, 0.3, protocol=protocol))
            correction = BrickResults(store, MODEL).knowledge(results.offers[0].way).correction
            assert (correction.is_prior, correction.constants) == (False, (("warm_brick_ms", 0.3),))


def test_calibrations_of_another_batch_size_are_shared_with_wider_intervals(tmp_path: Path) -> None:
    way = Way(SYSTEM, RUNTIME, Level.WRITTEN, "hot")
    eight = (("warm_brick_ms", 0.5), ("batch_size", 8.0))
    with store_of(tmp_path / "store", calibrated(21, 9, 0.3), calibrated(20, 9, 0.5, constants=eight)) as store:
        found = {size: correction_of(store, way, size) for size in (1, 2, 8, 64)}
    assert all(correction is not None for correction in found.values())
    told = {size: (it.constants, it.of_other_batch, it.unsure_ms(1.0, cold=False)) for size, it in found.items() if it}
    assert told == {
        1: ((("warm_brick_ms", 0.3),), False, 0.0),
        2: ((("warm_brick_ms", 0.3),), True, 0.3),
        8: ((("warm_brick_ms", 0.5),), False, 0.0),
        64: ((("warm_brick_ms", 0.5),), True, 0.5),
    }


@pytest.mark.parametrize(("protocol", "expected"), [("hot", (40.0, 39.6, 40.4)), (PROTOCOL, (30.0, 29.7, 30.3))])
def test_equal_models_share_the_newest_result_under_any_name_unless_it_was_published(
    tmp_path: Path, protocol: str, expected: tuple[float, float, float]
) -> None:
    bricks = brick_records(MODEL, protocol=protocol)
    twin = model_record(MODEL, 40.0, name="twin", when=LATER, protocol=protocol)
    both = on_system(tmp_path / "both", [*bricks, model_record(MODEL, 30.0, protocol=protocol), twin])
    assert both.end_to_end == expected
    alone = on_system(tmp_path / "twin", [*bricks, twin])
    assert alone.end_to_end == (40.0, 39.6, 40.4)


def test_the_measured_levels_are_listed(tmp_path: Path) -> None:
    fused = measurement(level=Level.FUSED, runtime="other")
    doubtful = measurement(level=Level.FUSED, flags=("drift",))
    with store_of(tmp_path / "store", *brick_records(MODEL), fused, doubtful) as store:
        assert levels_measured(store, SYSTEM) == (Level.FUSED, Level.WRITTEN)
        assert levels_measured(store, SYSTEM, RUNTIME) == (Level.WRITTEN,)
        assert levels_measured(store, "a1") == ()


@pytest.mark.parametrize("system", [SYSTEM, "nowhere"])
def test_without_results_everything_is_left_to_run(tmp_path: Path, system: str) -> None:
    found = asked(tmp_path, [])
    assert found.on(system, None) is None
    empty = found.empty(system, RUNTIME)
    assert empty.sequential_ms is None
    assert set(empty.estimate.remaining.pairs) == MODEL.suite
