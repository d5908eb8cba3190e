"""Estimates of models whose bricks were not measured here: from the store, from the prior; and how good they were."""

import math
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dlbricks_tui.bricks.decomposition import Decomposition, decompose
from dlbricks_tui.estimate import predictors
from dlbricks_tui.estimate.estimate import Estimate, Options
from dlbricks_tui.estimate.explanation import unpredicted_operators
from dlbricks_tui.estimate.inquiry import Inquiry, Predictors
from dlbricks_tui.estimate.knowledge import Latency, Pair, Unmeasured
from dlbricks_tui.estimate.nearest import train
from dlbricks_tui.estimate.predictors import PRIORS, WithPrior, prior_of, speed_by
from dlbricks_tui.estimate.score import PredictionBasis, Score, scores, scores_on
from dlbricks_tui.estimate.system_estimate import SystemEstimate
from dlbricks_tui.models.graph import Level
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.records import Measurement, Record
from dlbricks_tui.store.selections import Way
from tests.estimate.simulated import form, law_ms, lawful_records
from tests.estimate.stored import store_of
from tests.estimate.table1 import table1
from tests.store.samples import WAY, runtime, system

ON: dict[str, Any] = {"system": WAY["system"], "runtime": WAY["runtime"], "protocol": WAY["protocol"]}
SQUEEZENET, VGG, RESNET = (decompose(table1()[number]) for number in ("16", "17", "14"))


def records_of(model: Decomposition, hour: int = 0, without: Collection[Pair] = (), **fields: Any) -> list[Record]:
    found = lawful_records(model, hour, **(ON | {"level": Level.WRITTEN} | fields))
    return [it for it in found if not (isinstance(it, Measurement) and (it.brick, it.context) in without)]


def asked(
    folder: Path, model: Decomposition, records: Sequence[Record], options: Options | None = None
) -> SystemEstimate:
    with store_of(folder / "store", system(), runtime(), *records) as store:
        inquiry = Inquiry(store, model, options, Predictors(store, folder / "cache"))
        return inquiry.on(ON["system"], ON["runtime"]) or inquiry.empty(ON["system"], ON["runtime"])


def test_missing_bricks_are_predicted_from_the_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(predictors, "prior_of", lambda *_: None)
    gone = sorted(SQUEEZENET.pairs)[::2]
    found = asked(tmp_path, SQUEEZENET, [*records_of(VGG), *records_of(SQUEEZENET, 1, gone)]).estimate
    predicted = [part for part in found.parts if part.predicted]
    assert len(predicted) == found.coverage.predicted > 20
    exact_ms = sum(law_ms(part.brick.canonical, part.context) for part in predicted)
    assert sum(part.latency.value_ms for part in predicted) == pytest.approx(exact_ms, rel=0.1)
    assert found.composed is not None
    assert found.composed.doubt.predicted_above_ms > 0
    # SqueezeNet has operators that VGG does not have.
    assert unpredicted_operators(SQUEEZENET.graph, found)


def test_a_model_without_any_result_is_predicted_from_those_of_other_models(tmp_path: Path) -> None:
    with store_of(tmp_path / "store", system(), runtime(), *records_of(SQUEEZENET)) as store:
        predictors = Predictors(store, tmp_path / "cache")
        found = Inquiry(store, VGG, None, predictors).empty(ON["system"], ON["runtime"])
        nowhere = Inquiry(store, VGG, Options(measured_only=True), predictors).empty(ON["system"], ON["runtime"])
    assert found.way.protocol == ON["protocol"]
    assert (found.estimate.coverage.measured, nowhere.estimate.coverage.predicted) == (0, 0)
    assert found.estimate.coverage.predicted > 0
    assert found.sequential_ms is not None


def test_a_measured_model_is_estimated_as_without_predictions_and_measured_only_predicts_nothing(
    tmp_path: Path,
) -> None:
    records = [*records_of(VGG), *records_of(SQUEEZENET, 1)]
    plain = asked(tmp_path / "plain", SQUEEZENET, records, Options(measured_only=True))
    found = asked(tmp_path / "predicting", SQUEEZENET, records)
    assert found.estimate.composed == plain.estimate.composed
    assert not (tmp_path / "predicting" / "cache").exists(), "nothing is trained for it"
    gone = sorted(SQUEEZENET.pairs)[::2]
    half = [*records_of(VGG), *records_of(SQUEEZENET, 1, gone)]
    lacking = asked(tmp_path / "half", SQUEEZENET, half, Options(measured_only=True)).estimate
    assert lacking.coverage.predicted == 0
    assert lacking.is_partial


WANTED = [Unmeasured(it.brick.canonical, it.context) for it in VGG.occurrences if "conv" in it.brick.canonical]
NOTHING = train([])


def empty(folder: Path, runtime: str) -> Estimate:
    """The estimate of VGG-16 in a store without any result."""
    with ResultsDatabase(folder / "store") as store:
        predictors = Predictors(store, folder / "cache")
        return Inquiry(store, VGG, Options(), predictors).empty("here", runtime).estimate


def known(latencies: Sequence[Latency | None]) -> list[Latency]:
    return [latency for latency in latencies if latency is not None]


def test_each_runtime_that_was_measured_has_a_prior_for_its_precision_alone(tmp_path: Path) -> None:
    for name in ("mxnet-written", "mxnet-fused", "onnxruntime-written", "onnxruntime-fused", "openvino-fused"):
        framework, level = name.split("-")
        found = prior_of(framework, Level(level))
        assert found is not None and len(found.operators) > 10
        assert (PRIORS / f"{name}.npz").stat().st_size < 100_000
    assert prior_of("openvino", Level.WRITTEN) is None
    assert prior_of("no such framework", Level.FUSED) is None
    assert empty(tmp_path, "mxnet-1.9.1 precision-bf16").composed is None


def test_a_model_in_an_empty_store_has_an_estimate_with_a_wide_interval(tmp_path: Path) -> None:
    found = empty(tmp_path, "mxnet-1.9.1")
    assert found.composed is not None
    assert (found.coverage.measured, found.coverage.predicted) == (0, found.coverage.missing)
    # A server of today takes some tens to some hundreds of milliseconds with few threads.
    assert 50 < found.composed.sequential_ms < 1000
    interval = found.composed.latency
    assert interval.low_ms < found.composed.sequential_ms / 3
    assert interval.high_ms > 3 * found.composed.sequential_ms
    assert unpredicted_operators(VGG.graph, found) == ()


def test_bricks_that_a_store_does_not_know_are_predicted_by_the_prior_at_the_speed_of_the_system() -> None:
    prior = prior_of("mxnet", Level.WRITTEN)
    assert prior is not None
    expected = prior.predict(WANTED)
    measured = [(brick, 2.5 * found.value_ms) for brick, found in zip(WANTED, expected, strict=True) if found]
    speed = speed_by(prior, measured)
    assert speed == pytest.approx(2.5)
    assert speed_by(prior, measured[:4]) is None, "too few to compare"
    scaled = known(WithPrior(NOTHING, prior, speed).predict(WANTED))
    assert [it.value_ms for it in scaled] == pytest.approx([2.5 * it.value_ms for it in known(expected)])


def test_an_operator_that_nobody_measured_may_be_as_fast_as_any_other() -> None:
    prior = prior_of("mxnet", Level.FUSED)
    assert prior is not None
    inside = {}
    for name, shape in (
        ("mxnet.LayerNorm", [1, 128, 768]),
        ("softmax", [1, 1000]),
        ("conv_transpose", [1, 64, 14, 14]),
    ):
        weights = [[64, 64, 4, 4]] if name == "conv_transpose" else []
        brick = [Unmeasured(form(name, shape, weights), "plain")]
        without = replace(prior, operators={each: held for each, held in prior.operators.items() if each != name})
        assert without.from_alike(brick) == [None]
        (by_all,) = known(WithPrior(NOTHING, without, 1.0).predict(brick))
        (itself,) = known(prior.predict(brick))
        assert by_all.high_ms > 5 * by_all.low_ms > 0, "wide, and never zero"
        inside[name] = by_all.low_ms <= itself.value_ms <= by_all.high_ms
    assert all(inside.values()), inside
    assert train([]).predict(WANTED[:1]) == [None], "no operator is known"


def test_nothing_known_of_a_system_widens_the_intervals_and_makes_all_errors_one() -> None:
    prior = prior_of("mxnet", Level.WRITTEN)
    assert prior is not None
    known_speed, unknown = WithPrior(NOTHING, prior, 1.0), WithPrior(NOTHING, prior, None)
    for one, other in zip(known(known_speed.predict(WANTED)), known(unknown.predict(WANTED)), strict=True):
        assert math.log(other.high_ms / other.value_ms) > max(math.log(3.0), math.log(one.high_ms / one.value_ms))
    assert unknown.shared == 1.0 > known_speed.shared


WRITTEN = Way(ON["system"], ON["runtime"], Level.WRITTEN, ON["protocol"])


def scored(folder: Path, *hours: int) -> dict[str, Score]:
    """The scores of three models by name, which were measured at these hours."""
    models = (SQUEEZENET, VGG, RESNET)
    pairs = zip(models, hours, strict=True)
    records = [record for model, hour in pairs for record in lawful_records(model, hour, **ON, level=Level.WRITTEN)]
    with store_of(folder / "store", *records) as store:
        return {score.model.partition(" ")[0]: score for score in scores(store, WRITTEN, models)}


def test_a_model_is_scored_by_the_results_from_before_its_run(tmp_path: Path) -> None:
    found = scored(tmp_path, 1, 2, 3)
    # Nothing was measured before SqueezeNet.
    expected = {
        "SqueezeNet": PredictionBasis.LEFT_OUT,
        "VGG-16": PredictionBasis.HISTORY,
        "ResNet-50": PredictionBasis.HISTORY,
    }
    assert {name: score.basis for name, score in found.items()} == expected
    for score in found.values():
        assert abs(score.error) < 0.2
        assert score.holds
        assert score.low_ms < score.predicted_ms < score.high_ms
    # Layers that could not be predicted do not count: neither of the others has batch norms.
    assert found["ResNet-50"].refused_share > 0
    # Models of one run are scored without their own bricks.
    assert {score.basis for score in scored(tmp_path / "one run", 1, 1, 1).values()} == {PredictionBasis.LEFT_OUT}


def test_models_that_were_not_measured_in_full_have_no_score(tmp_path: Path) -> None:
    records = lawful_records(SQUEEZENET, 1, **ON, level=Level.WRITTEN)
    others = lawful_records(VGG, 2, **ON, level=Level.WRITTEN)
    lacking = next(it for it in others if isinstance(it, Measurement) and it.brick not in SQUEEZENET.bricks)
    others.remove(lacking)
    with store_of(tmp_path / "empty") as store:
        assert list(scores(store, WRITTEN, (SQUEEZENET,))) == []
    with store_of(tmp_path / "store", *records, *others) as store:
        assert "VGG-16" not in {score.model.partition(" ")[0] for score in scores(store, WRITTEN, (SQUEEZENET, VGG))}


def test_models_that_their_usual_runtime_has_not_measured_are_scored_by_another(tmp_path: Path) -> None:
    models = (SQUEEZENET, VGG)
    records = [it for hour, model in enumerate(models) for it in lawful_records(model, hour, **ON, level=Level.WRITTEN)]
    asked = [(model, "mxnet-1.9.1 python-3.11 threads-7") for model in models]
    with store_of(tmp_path / "store", system(), runtime(), *records) as store:
        assert scores_on(store, ON["system"], asked) == []
        found = scores_on(store, ON["system"], asked, others=True)
    assert [way.runtime for way, _ in found] == [ON["runtime"]] * 2
