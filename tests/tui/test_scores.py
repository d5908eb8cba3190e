"""The box that tells how good predictions have been."""

from pathlib import Path
from typing import Any

from dlbricks_tui.bricks.decomposition import decompose
from dlbricks_tui.estimate.prediction.score import Basis, Score
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.models.graph import Level
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.tui.choices import Choices
from dlbricks_tui.tui.estimator import ThreadSafeEstimator
from dlbricks_tui.tui.session import SharedStore
from dlbricks_tui.tui.workbench.scores import ScoresScreen
from tests.estimate.prediction.stored_models import lawful_records
from tests.estimate.table1 import table1
from tests.store.samples import runtime, system
from tests.tui.application import NARROW, app_on, press, running, screen_text
from tests.tui.snapshots import check_all, check_layout, check_sixteen_colours

SCORES = (
    Score("resnet50_v1", Basis.HISTORY, 31.0, 27.0, 36.0, 0.4, 30.0, 0.0),
    Score("mobilenet0.25", Basis.HISTORY, 2.0, 1.5, 2.6, 1.0, 2.9, 0.02),
    Score("squeezenet1.1", Basis.LEFT_OUT, 5.5, 4.9, 6.2, 0.9, 5.6, 0.0),
)


async def test_the_scores_match_their_snapshot(measured: DataFolder) -> None:
    async with running(app_on(measured)) as pilot:
        await pilot.app.push_screen(ScoresScreen(lambda: SCORES))
        await press(pilot)
        await check_all(pilot, "scores")


async def test_the_scores_fit_a_narrow_terminal(measured: DataFolder) -> None:
    measured.config.write_text('[workbench]\ntheme = "terminal"\n')
    async with running(app_on(measured), NARROW) as pilot:
        await pilot.app.push_screen(ScoresScreen(lambda: SCORES))
        await press(pilot)
        shown = screen_text(pilot)
        assert "the 95 % interval held 2 of 3 times" in " ".join(shown.replace("┃", " ").split())
        assert "-31.0 %" in shown
        check_layout(pilot.app)
        check_sixteen_colours(pilot.app)


async def test_a_key_opens_the_scores(measured: DataFolder) -> None:
    async with running(app_on(measured)) as pilot:
        await press(pilot, "9")
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
    assert {score.basis for score in found} == {Basis.HISTORY, Basis.LEFT_OUT}
    assert estimator.scores(models, Choices(system="elsewhere")) == []
