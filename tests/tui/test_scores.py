"""The box that tells how good predictions have been."""

from pathlib import Path
from typing import Any

from dlbricks_tui.bricks.decomposition import decompose
from dlbricks_tui.estimate.prediction.score import PredictionBasis
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.models.graph import Level
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.tui.choices import Choices
from dlbricks_tui.tui.estimator import ThreadSafeEstimator
from dlbricks_tui.tui.session import SharedStore
from dlbricks_tui.tui.workbench.suites import ScoresScreen
from tests.estimate.prediction.stored_models import lawful_records
from tests.estimate.table1 import table1
from tests.store.samples import runtime, system
from tests.tui.application import app_on, press, running, screen_text


async def test_a_key_opens_the_scores(measured: DataFolder) -> None:
    async with running(app_on(measured)) as pilot:
        await press(pilot, "P")
        assert isinstance(pilot.app.screen, ScoresScreen)
        shown = screen_text(pilot)
        assert "resnet18_v1" in shown and "1 predicted from the results of other models" in shown
        await press(pilot, "escape")
        assert not isinstance(pilot.app.screen, ScoresScreen)


def test_models_are_scored_on_the_chosen_system(tmp_path: Path) -> None:
    on: dict[str, Any] = {"system": "c5.xlarge", "runtime": "mxnet-1.9.1", "level": Level.WRITTEN}
    models = [decompose(table1()[number]) for number in ("16", "17")]
    data = DataFolder(tmp_path)
    with ResultsDatabase(data.store) as store:
        store.add(
            system(), runtime(), *(it for hour, each in enumerate(models) for it in lawful_records(each, hour, **on))
        )
    estimator = ThreadSafeEstimator(SharedStore(data.store), data)
    found = estimator.scores(models, Choices(system="c5.xlarge"))
    assert {score.basis for score in found} == {PredictionBasis.HISTORY, PredictionBasis.LEFT_OUT}
    assert estimator.scores(models, Choices(system="elsewhere")) == []
