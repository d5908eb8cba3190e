"""Runs that measure only as many bricks as a target needs."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from dlbricks_tui.bricks.decomposition import decompose
from dlbricks_tui.estimate.knowledge import Latency, Unmeasured
from dlbricks_tui.estimate.prediction import stored
from dlbricks_tui.estimate.prediction.nearest import NearestBricks
from dlbricks_tui.jobs.folder import State
from dlbricks_tui.measure.stopping import FixedRuns
from dlbricks_tui.runs.control import create_run
from dlbricks_tui.runs.request import read_request, write_request
from dlbricks_tui.runs.run import execute
from tests.runs.runs import BRICKS, Site


class Sure(NearestBricks):
    """Predicts a millisecond for every brick, within a tenth."""

    def predict(self, bricks: Sequence[Unmeasured]) -> list[Latency | None]:
        return [Latency(1.0, 0.9, 1.1) for _ in bricks]

    from_alike = predict


def test_a_run_measures_only_as_many_bricks_as_its_target_needs(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored, "prior_of", lambda *_: Sure({}, (), 1.0))
    asked = site.request(target=0.3, rule=FixedRuns(5))
    outcome = execute(create_run(asked, site.data), asked, site.place, site.queue)
    assert outcome.state.state is State.FINISHED
    assert outcome.estimates is not None
    ((model, found),) = outcome.estimates
    coverage = found.estimate.coverage
    assert 0 < len(site.contents().measurements) < BRICKS
    assert coverage.predicted == coverage.missing > 0
    composed = found.estimate.composed
    assert composed is not None
    assert composed.doubt.predicted_above_ms <= 0.3 * composed.sequential_ms
    assert model == decompose(model.graph, asked.cutting)


def test_a_run_with_an_unreachable_target_measures_everything(site: Site) -> None:
    state = site.run(site.request(target=1e-6, rule=FixedRuns(5)))
    assert (state.state, state.bricks.measured) == (State.FINISHED, BRICKS)
    assert len(site.contents().measurements) == BRICKS


def test_a_run_within_its_target_measures_nothing_more(known: Site) -> None:
    before = known.contents().measurements
    assert known.run(known.request(target=0.5)).state is State.FINISHED
    assert known.contents().measurements == before


def test_a_request_keeps_its_target(site: Site, tmp_path: Path) -> None:
    for target in (None, 0.05):
        write_request(tmp_path / "request.json", site.request(target=target))
        assert read_request(tmp_path / "request.json").target == target
