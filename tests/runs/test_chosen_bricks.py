"""Runs that measure a few bricks: probes, which predict all others from another system, and runs with a target."""

import math
import os
import signal
from collections.abc import Sequence
from dataclasses import replace

import pytest

from dlbricks_tui.bricks.decomposition import decompose
from dlbricks_tui.estimate import predictors
from dlbricks_tui.estimate.knowledge import Latency, Unmeasured
from dlbricks_tui.estimate.nearest import NearestBricks
from dlbricks_tui.estimate.predictors import FEWEST_IN_COMMON
from dlbricks_tui.jobs.errors import JobError
from dlbricks_tui.jobs.events import Event
from dlbricks_tui.jobs.folder import State, Tally
from dlbricks_tui.measure.method import Method
from dlbricks_tui.measure.stopping import FixedRuns
from dlbricks_tui.runs.control import create_run
from dlbricks_tui.runs.events import Planned, ProgramMeasured
from dlbricks_tui.runs.planning import PROBE_RULE
from dlbricks_tui.runs.run import RunOutcome, execute
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.records import BrickForm, Measurement, RuntimeRecord, new_uuid
from dlbricks_tui.store.statistics import summarise
from tests.runs.runs import BRICKS, Measured, Site
from tests.store.samples import system

ELSEWHERE = "c5.xlarge"


def known_elsewhere(site: Site, there: Measured, times: float = 2.0) -> dict[str, float]:
    """Fill the store with results of another system, on which each brick takes so many times as long as here.

    Return the estimates of the models here, by a run that measures everything.
    """
    site.path.mkdir(exist_ok=True)
    with ResultsDatabase(there.site.data.store) as store, ResultsDatabase(site.data.store) as here:
        here.add(system(ELSEWHERE), *store.records(BrickForm), *store.records(RuntimeRecord))
        here.add(*[slower(it, times) for it in store.records(Measurement)])
    assert there.outcome.estimates is not None
    return {one.estimate.model: one.sequential_ms or 0.0 for _, one in there.outcome.estimates}


def slower(measurement: Measurement, times: float) -> Measurement:
    samples_ms = tuple(times * sample for sample in measurement.samples_ms)
    return replace(measurement, system=ELSEWHERE, samples_ms=samples_ms, statistics=summarise(samples_ms))


def probed(site: Site, method: Method, bricks: int, *models: str) -> tuple[RunOutcome, Sequence[Event]]:
    events: list[Event] = []
    request = site.request(*models, method=method, rule=PROBE_RULE, probe_bricks=bricks)
    return execute(create_run(request, site.data), request, site.place, site.queue, events.append), events


def test_a_probe_measures_a_few_bricks_predicts_all_others_and_the_next_run_measures_what_is_left(
    site: Site, measured: Measured
) -> None:
    truth = known_elsewhere(site, measured)
    outcome, events = probed(site, Method.ALONE, 6)
    assert outcome.state.state is State.FINISHED
    assert (outcome.state.bricks.total, outcome.state.bricks.measured) == (6, 6)
    assert [event.bricks for event in events if isinstance(event, Planned)] == [6]
    assert outcome.estimates is not None
    ((_, one),) = outcome.estimates
    assert one.estimate.coverage.predicted > 0
    assert not one.estimate.is_partial
    assert one.sequential_ms == pytest.approx(truth[one.estimate.model], rel=0.05)

    # Another probe measures other bricks.
    probed(site, Method.ALONE, 6)
    own = [(it.brick, it.context) for it in site.contents().measurements if it.system != ELSEWHERE]
    assert len(own) == len(set(own)) == 12
    state = site.run(site.request(rule=PROBE_RULE))
    assert state.bricks == Tally(BRICKS, measured=BRICKS - 12, reused=12)


def test_a_probe_inside_of_carriers_stores_all_bricks_that_they_hold(site: Site, measured_repeats: Measured) -> None:
    truth = known_elsewhere(site, measured_repeats)
    outcome, _ = probed(site, Method.INSIDE, 6, "resnet18_v1")
    assert outcome.state.state is State.FINISHED
    assert outcome.state.bricks.measured == outcome.state.bricks.total >= 6
    assert outcome.estimates is not None
    ((_, one),) = outcome.estimates
    assert one.sequential_ms == pytest.approx(truth[one.estimate.model], rel=0.05)


@pytest.mark.parametrize("is_known", [False, True], ids=["nothing", "another method"])
def test_a_probe_without_a_system_to_compare_with_is_refused(
    site: Site, measured_inside: Measured, is_known: bool
) -> None:
    if is_known:
        known_elsewhere(site, measured_inside)
    with pytest.raises(JobError, match="results import"):
        probed(site, Method.ALONE, 6)


def test_an_interrupted_probe_keeps_its_results_and_predicts_from_them(site: Site, measured: Measured) -> None:
    known_elsewhere(site, measured)
    results = 0

    def interrupt(event: Event) -> None:
        nonlocal results
        results += isinstance(event, ProgramMeasured)
        if results == FEWEST_IN_COMMON:
            os.kill(os.getpid(), signal.SIGINT)

    request = site.request(method=Method.ALONE, rule=PROBE_RULE, probe_bricks=BRICKS)
    outcome = execute(create_run(request, site.data), request, site.place, site.queue, interrupt)
    assert outcome.state.state is State.INTERRUPTED
    own = [it for it in site.contents().measurements if it.system != ELSEWHERE]
    assert FEWEST_IN_COMMON <= len(own) < BRICKS
    assert outcome.estimates is not None
    ((_, one),) = outcome.estimates
    assert one.estimate.coverage.predicted > 0


def test_a_probe_takes_what_fits_in_its_time(site: Site, measured: Measured) -> None:
    """A long brick elsewhere is not chosen if it would take most of the time."""
    known_elsewhere(site, measured, times=1000.0)
    request = site.request(method=Method.ALONE, rule=PROBE_RULE, probe_bricks=BRICKS, time_budget_seconds=20.0)
    outcome = execute(create_run(request, site.data), request, site.place, site.queue)
    assert 0 < outcome.state.bricks.total < BRICKS


class Sure(NearestBricks):
    """Predicts a millisecond for every brick, within a tenth."""

    def from_alike(self, bricks: Sequence[Unmeasured], vaguest: float = math.inf) -> list[Latency | None]:
        return [Latency(1.0, 0.9, 1.1) for _ in bricks]


def test_a_run_measures_only_as_many_bricks_as_its_target_needs(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(predictors, "prior_of", lambda *_: Sure({}, (), 1.0))
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


def test_results_of_another_method_do_not_reach_the_target_of_a_run(known: Site) -> None:
    with ResultsDatabase(known.data.store) as store:
        measured = store.records(Measurement)
        store.add(*[replace(it, protocol="inside-of-old", uuid=new_uuid()) for it in measured])
        store.delete(it.uuid for it in measured)
    state = known.run(known.request(target=1e-6, rule=FixedRuns(5)))
    assert (state.bricks.measured, state.bricks.reused) == (BRICKS, 0)
