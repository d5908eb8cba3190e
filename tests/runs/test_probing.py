"""Probes: runs that measure a few bricks, and predict all others from a system that the store already knows."""

import os
import signal
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from dlbricks_tui.estimate.prediction.other_systems import FEWEST_IN_COMMON
from dlbricks_tui.measure.events import Event
from dlbricks_tui.measure.method import Method
from dlbricks_tui.runs.errors import RunError
from dlbricks_tui.runs.events import Planned, ProgramMeasured
from dlbricks_tui.runs.launch import create_run
from dlbricks_tui.runs.probing import PROBE_RULE
from dlbricks_tui.runs.request import read_request
from dlbricks_tui.runs.run import RunOutcome, execute
from dlbricks_tui.runs.run_folder import State
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.records import BrickForm, Measurement, Runtime
from dlbricks_tui.store.statistics import summarise
from tests.runs.runs import BRICKS, Site
from tests.store.samples import system

ELSEWHERE = "c5.xlarge"
# Long ones, so that their carriers are not the whole models.
MODELS = ("resnet18_v1", "vgg11")


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path / "data")


def known_elsewhere(site: Site, method: Method, *models: str, times: float = 2.0) -> dict[str, float]:
    """Fill the store with results of another system, on which each brick takes so many times as long as here.

    Return the estimates of the models here, by a run that measures everything.
    """
    there = Site(site.path.parent / "there")
    request = there.request(*models, method=method)
    outcome = execute(create_run(request, there.data), request, there.place, there.queue)
    site.path.mkdir(exist_ok=True)
    with ResultsDatabase(there.data.store) as store, ResultsDatabase(site.data.store) as here:
        here.add(system(ELSEWHERE), *store.records(BrickForm), *store.records(Runtime))
        here.add(*[slower(it, times) for it in store.records(Measurement)])
    assert outcome.estimates is not None
    return {one.estimate.model: one.sequential_ms or 0.0 for _, one in outcome.estimates}


def slower(measurement: Measurement, times: float) -> Measurement:
    samples_ms = tuple(times * sample for sample in measurement.samples_ms)
    return replace(measurement, system=ELSEWHERE, samples_ms=samples_ms, statistics=summarise(samples_ms))


def probed(site: Site, method: Method, bricks: int, *models: str) -> tuple[RunOutcome, Sequence[Event]]:
    events: list[Event] = []
    request = site.request(*models, method=method, rule=PROBE_RULE, probe_bricks=bricks)
    return execute(create_run(request, site.data), request, site.place, site.queue, events.append), events


def test_a_probe_measures_a_few_bricks_and_predicts_all_others(site: Site) -> None:
    truth = known_elsewhere(site, Method.ALONE)
    outcome, events = probed(site, Method.ALONE, 6)
    assert outcome.state.state is State.FINISHED
    assert (outcome.state.bricks.total, outcome.state.bricks.measured) == (6, 6)
    assert [event.bricks for event in events if isinstance(event, Planned)] == [6]
    assert outcome.estimates is not None
    ((_, one),) = outcome.estimates
    assert one.estimate.coverage.predicted > 0
    assert not one.estimate.is_partial
    assert one.sequential_ms == pytest.approx(truth[one.estimate.model], rel=0.05)


def test_a_probe_inside_of_carriers_stores_all_bricks_that_they_hold(site: Site) -> None:
    truth = known_elsewhere(site, Method.INSIDE, *MODELS)
    outcome, _ = probed(site, Method.INSIDE, 6, *MODELS)
    assert outcome.state.state is State.FINISHED
    assert outcome.state.bricks.measured == outcome.state.bricks.total >= 6
    assert outcome.estimates is not None
    for _, one in outcome.estimates:
        assert one.sequential_ms == pytest.approx(truth[one.estimate.model], rel=0.05)


def test_another_probe_measures_other_bricks(site: Site) -> None:
    known_elsewhere(site, Method.ALONE)
    probed(site, Method.ALONE, 6)
    probed(site, Method.ALONE, 6)
    own = [(it.brick, it.context) for it in site.contents().measurements if it.system != ELSEWHERE]
    assert len(own) == len(set(own)) == 12


def test_a_run_after_a_probe_measures_what_is_left(site: Site) -> None:
    known_elsewhere(site, Method.ALONE)
    probed(site, Method.ALONE, 6)
    state = site.run(site.request())
    assert state.bricks.total == BRICKS
    assert state.bricks.measured + state.bricks.reused == BRICKS


@pytest.mark.parametrize("known", [False, True], ids=["nothing", "another method"])
def test_a_probe_without_a_system_to_compare_with_is_refused(site: Site, known: bool) -> None:
    if known:
        known_elsewhere(site, Method.INSIDE)
    with pytest.raises(RunError, match="results import"):
        probed(site, Method.ALONE, 6)


def test_a_probe_is_resumed_as_a_probe(site: Site) -> None:
    request = site.request(probe_bricks=7)
    assert read_request(create_run(request, site.data).request_file) == request


def test_an_interrupted_probe_keeps_its_results_and_predicts_from_them(site: Site) -> None:
    known_elsewhere(site, Method.ALONE)
    measured = 0

    def interrupt(event: Event) -> None:
        nonlocal measured
        measured += isinstance(event, ProgramMeasured)
        if measured == FEWEST_IN_COMMON:
            os.kill(os.getpid(), signal.SIGINT)

    request = site.request(method=Method.ALONE, rule=PROBE_RULE, probe_bricks=BRICKS)
    outcome = execute(create_run(request, site.data), request, site.place, site.queue, interrupt)
    assert outcome.state.state is State.INTERRUPTED
    own = [it for it in site.contents().measurements if it.system != ELSEWHERE]
    assert FEWEST_IN_COMMON <= len(own) < BRICKS
    assert outcome.estimates is not None
    ((_, one),) = outcome.estimates
    assert one.estimate.coverage.predicted > 0


def test_a_probe_takes_what_fits_in_its_time(site: Site) -> None:
    """A long brick elsewhere is not chosen if it would take most of the time."""
    known_elsewhere(site, Method.ALONE, times=1000.0)
    request = site.request(method=Method.ALONE, rule=PROBE_RULE, probe_bricks=BRICKS, time_budget_seconds=20.0)
    outcome = execute(create_run(request, site.data), request, site.place, site.queue)
    assert 0 < outcome.state.bricks.total < BRICKS
