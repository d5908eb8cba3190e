from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import pytest

from dlbricks_tui.bricks.decomposition import Decomposition, decompose
from dlbricks_tui.estimate.estimate import Options
from dlbricks_tui.estimate.explanation import unpredicted_operators
from dlbricks_tui.estimate.inquiry import Inquiry, Predictors
from dlbricks_tui.estimate.knowledge import Pair
from dlbricks_tui.estimate.prediction import stored
from dlbricks_tui.estimate.system_estimate import SystemEstimate
from dlbricks_tui.models.graph import Level
from dlbricks_tui.store.records import Measurement, Record
from tests.estimate.prediction.stored_models import law_ms, lawful_records
from tests.estimate.stored import store_of
from tests.estimate.table1 import table1
from tests.store.samples import WAY, runtime, system

ON: dict[str, Any] = {"system": WAY["system"], "runtime": WAY["runtime"], "protocol": WAY["protocol"]}
SQUEEZENET, VGG = (decompose(table1()[number]) for number in ("16", "17"))


def records_of(model: Decomposition, hour: int = 0, without: Collection[Pair] = (), **fields: Any) -> list[Record]:
    found = lawful_records(model, hour, **(ON | {"level": Level.WRITTEN} | fields))
    return [it for it in found if not (isinstance(it, Measurement) and (it.brick, it.context) in without)]


def asked(
    folder: Path, model: Decomposition, records: Sequence[Record], options: Options | None = None
) -> SystemEstimate:
    with store_of(folder / "store", system(), runtime(), *records) as store:
        inquiry = Inquiry(store, model, options, Predictors(store, folder / "cache"))
        return inquiry.on(ON["system"], ON["runtime"]) or inquiry.empty(ON["system"], ON["runtime"])


def exact_ms(model: Decomposition) -> float:
    return sum(law_ms(it.brick.canonical, it.context) for it in model.occurrences)


def test_missing_bricks_are_predicted_from_the_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored, "prior_of", lambda *_: None)
    gone = sorted(SQUEEZENET.suite)[::2]
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
    gone = sorted(SQUEEZENET.suite)[::2]
    half = [*records_of(VGG), *records_of(SQUEEZENET, 1, gone)]
    lacking = asked(tmp_path / "half", SQUEEZENET, half, Options(measured_only=True)).estimate
    assert lacking.coverage.predicted == 0
    assert lacking.is_partial


def test_a_new_measurement_replaces_a_prediction_at_once(tmp_path: Path) -> None:
    gone = sorted(SQUEEZENET.suite)[::2]
    with store_of(tmp_path / "store", *records_of(VGG), *records_of(SQUEEZENET, 1, gone)) as store:
        predictors = Predictors(store, tmp_path / "cache")

        def estimate() -> SystemEstimate:
            found = Inquiry(store, SQUEEZENET, None, predictors).on(ON["system"], ON["runtime"])
            assert found is not None
            return found

        assert estimate().estimate.coverage.predicted > 0
        store.add(*records_of(SQUEEZENET, 2))
        found = estimate()
    assert (found.estimate.coverage.predicted, found.estimate.predicted_share) == (0, 0.0)
    assert found.estimate.coverage.complete
    assert found.sequential_ms == pytest.approx(exact_ms(SQUEEZENET))
