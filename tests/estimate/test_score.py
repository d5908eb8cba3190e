from pathlib import Path
from typing import Any

import pytest

from dlbricks_tui.bricks.decomposition import decompose
from dlbricks_tui.estimate.score import PredictionBasis, Score, scores, scores_on
from dlbricks_tui.models.graph import Level
from dlbricks_tui.store.records import Measurement
from dlbricks_tui.store.selections import Way
from tests.estimate.simulated import lawful_records
from tests.estimate.stored import store_of
from tests.estimate.table1 import table1
from tests.store.samples import WAY, runtime, system

ON: dict[str, Any] = {"system": WAY["system"], "runtime": WAY["runtime"], "protocol": WAY["protocol"]}
WRITTEN = Way(ON["system"], ON["runtime"], Level.WRITTEN, ON["protocol"])
SQUEEZENET, VGG, RESNET = (decompose(table1()[number]) for number in ("16", "17", "14"))


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


@pytest.mark.parametrize(("measured_ms", "holds"), [(9.9, False), (10.0, True), (12.0, True), (12.1, False)])
def test_an_interval_holds_a_latency_inside_of_it(measured_ms: float, holds: bool) -> None:
    score = Score("a", PredictionBasis.HISTORY, 11.0, 10.0, 12.0, 0.5, measured_ms, 0.0)
    assert score.holds is holds
    assert score.error == pytest.approx(11.0 / measured_ms - 1)
