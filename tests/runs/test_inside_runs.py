"""Runs by the method `inside`, with a worker that speaks the real protocol and makes latencies up."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from dlbricks_tui.bricks.cutting import Cut
from dlbricks_tui.bricks.decomposition import Cutting, decompose
from dlbricks_tui.estimate.estimate import WIDEST_MS
from dlbricks_tui.estimate.inquiry import Inquiry
from dlbricks_tui.estimate.system_estimate import SystemEstimate
from dlbricks_tui.folders import SAMPLE_MODELS
from dlbricks_tui.jobs.events import Event
from dlbricks_tui.jobs.folder import State, Tally
from dlbricks_tui.measure.events import RoundDone, Stop
from dlbricks_tui.measure.method import Method
from dlbricks_tui.measure.stopping import FixedRuns
from dlbricks_tui.measure.supervised_worker import SupervisedWorker
from dlbricks_tui.models.frameworks import WorkerFramework
from dlbricks_tui.models.graph import Level
from dlbricks_tui.models.library import Library
from dlbricks_tui.models.loading import Loader
from dlbricks_tui.runs.control import create_run
from dlbricks_tui.runs.events import EstimateChanged, ProgramFailed, ProgramMeasured
from dlbricks_tui.runs.run import execute
from dlbricks_tui.runtime.protocol import Load, Profile, Request, Sample
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.records import Statistics
from dlbricks_tui.store.statistics import mean_statistics
from tests.runs.runs import BRICKS, FAKE, MODEL, Measured, Site, misbehaving

INSIDE = {"method": Method.INSIDE, "end_to_end": True}


def estimated(site: Site, model: str) -> SystemEstimate:
    library = Library(SAMPLE_MODELS, site.path)
    with WorkerFramework(FAKE, site.path / "log", site.worker_program) as framework:
        graph = Loader(site.path / "cache", framework, framework).load(library.find_all([model])[0], Level.WRITTEN)
    with ResultsDatabase(site.data.store) as store:
        (found,) = Inquiry(store, decompose(graph)).everywhere()
    return found


def test_the_model_is_reported_before_any_brick_is_timed_and_estimates_while_carriers_run(
    measured_inside: Measured,
) -> None:
    events = measured_inside.events
    measured = [event for event in events if isinstance(event, ProgramMeasured)]
    assert not measured[0].brick
    assert events.index(measured[0]) < min(i for i, it in enumerate(events) if isinstance(it, RoundDone))
    assert {it.stop for it in measured if it.brick} == {Stop.NARROW.value}
    told = [event for event in events if isinstance(event, EstimateChanged)]
    assert told[-1].sampled_layers == 0
    # The last one has the doubt of results in common, which only the store tells.
    assert measured_inside.outcome.estimates is not None
    (found,) = measured_inside.outcome.estimates
    latency = found.estimate.estimate.latency
    assert latency == (told[-1].sequential_ms, told[-1].low_ms, told[-1].high_ms)


def test_measured_bricks_are_reused_by_the_next_run(measured_inside: Measured, tmp_path: Path) -> None:
    assert measured_inside.state.bricks == Tally(BRICKS, measured=BRICKS)
    site = measured_inside.copied(tmp_path / "data")
    contents = site.contents()
    assert {it.protocol for it in contents.measurements} == {Method.INSIDE.id}
    assert {it.context for it in contents.measurements} == {""}
    again = site.run(site.request(method=Method.INSIDE))
    assert again.bricks == Tally(BRICKS, reused=BRICKS)
    assert site.contents().measurements == contents.measurements
    # Results of the two methods are never mixed.
    assert site.run(site.request(rule=FixedRuns(5))).bricks == Tally(BRICKS, measured=BRICKS)
    assert {it.protocol for it in site.contents().measurements} == {method.id for method in Method}
    assert estimated(site, MODEL).estimate.coverage.complete


@pytest.mark.parametrize("cutting", [Cutting(3), Cutting(10, Cut.RUNNABLE), Cutting(4, Cut.OVERLAP)])
def test_a_run_of_longer_sequences_measures_layers_and_estimates_the_same(
    measured_inside: Measured, tmp_path: Path, cutting: Cutting
) -> None:
    site = measured_inside.copied(tmp_path / "data")
    request = site.request(method=Method.INSIDE, cutting=cutting)
    folder = create_run(request, site.data)
    outcome = execute(folder, request, site.place, site.queue)
    assert outcome.state.bricks == Tally(BRICKS, reused=BRICKS)
    ((decomposition, found),) = outcome.estimates or ()
    assert decomposition.cutting == found.estimate.cutting == cutting
    assert found.estimate.coverage.complete
    assert found.sequential_ms == pytest.approx(estimated(site, MODEL).sequential_ms)
    assert found.estimate.coverage.own_carrier == found.estimate.coverage.layers


def test_an_estimate_equals_the_latency_of_the_model_also_of_one_with_repeated_modules(
    measured_inside: Measured, measured_repeats: Measured
) -> None:
    for measured, model in ((measured_inside, MODEL), (measured_repeats, "resnet18_v1")):
        found = estimated(measured.site, model)
        coverage = found.estimate.coverage
        assert coverage.complete
        assert found.error == pytest.approx(0, abs=0.01)
        assert coverage.own_carrier == (coverage.layers if model == MODEL else 0)
        assert coverage.other_models == 0


def test_a_brick_with_a_wide_interval_is_reported_although_its_carrier_is_known_well(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    def differing(found: Sequence[Statistics]) -> Statistics:
        mean = mean_statistics(found)
        return replace(mean, low_ms=0.7 * mean.trimmed_mean_ms, high_ms=1.3 * mean.trimmed_mean_ms)

    monkeypatch.setattr("dlbricks_tui.runs.results.mean_statistics", differing)
    events: list[Event] = []
    site.run(site.request(**INSIDE), events.append)
    told = [it for it in events if isinstance(it, ProgramMeasured) and it.brick]
    # Three microseconds are narrow enough, whatever share of a brick they are.
    wide = [it for it in told if it.high_ms - it.low_ms > 2 * WIDEST_MS]
    assert wide
    assert [it for it in told if it.stop == Stop.MOST_SAMPLES.value] == wide


def test_bricks_whose_carrier_does_not_run_are_timed_alone(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    rude = misbehaving(site, monkeypatch, Pooling="garbage on profile")
    state = rude.run(rude.request(**INSIDE))
    assert state.bricks == Tally(BRICKS, measured=BRICKS)
    assert {it.occurrence for it in rude.contents().measurements} == {()}


def test_bricks_that_no_carrier_measures_fail_for_the_reason_of_their_carrier(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    rude = misbehaving(site, monkeypatch, Pooling="not finite")
    monkeypatch.setattr("dlbricks_tui.runs.work.can_be_alone", lambda *_: False)
    events: list[Event] = []
    rude.run(rude.request(**INSIDE), events.append)
    failed = {(it.reason, it.message) for it in events if isinstance(it, ProgramFailed) and it.brick}
    assert failed == {("not finite", "no carrier of it runs: the operator is not finite")}


def killing(monkeypatch: pytest.MonkeyPatch, when: Callable[[Any], bool]) -> None:
    """Kill the worker, as the kernel does, when it is asked something."""
    ask = SupervisedWorker._ask

    def asked(worker: SupervisedWorker, request: Request[Any], seconds: float) -> Any:
        if when(request):
            worker.interrupt()
        return ask(worker, request, seconds)

    monkeypatch.setattr(SupervisedWorker, "_ask", asked)


def samples_a_model(request: Request[Any]) -> bool:
    """True if a whole model is to run: only these have such names here."""
    return isinstance(request, Sample) and request.programs[0].isdecimal()


def test_a_model_whose_worker_is_killed_in_later_rounds_stays_measured(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[Event] = []
    killing(monkeypatch, lambda request: samples_a_model(request) and any(isinstance(it, RoundDone) for it in told))
    state = site.run(site.request(**INSIDE), told.append)
    assert (state.bricks, state.whole_models) == (Tally(BRICKS, measured=BRICKS), Tally(1, measured=1))


@pytest.mark.usefixtures("quick_inside")
@pytest.mark.parametrize("moment", [Load, Sample, Profile])
def test_a_worker_that_is_killed_once_takes_no_model_and_no_brick_with_it(
    site: Site, monkeypatch: pytest.MonkeyPatch, moment: type[Request[Any]]
) -> None:
    # Nothing else times the bricks of a lost carrier.
    monkeypatch.setattr("dlbricks_tui.runs.work.can_be_alone", lambda *_: False)
    left = {"whole", "carrier"}

    def is_its_turn(request: Request[Any]) -> bool:
        names = {Load: "program_id", Sample: "programs", Profile: "program"}
        found = getattr(request, names.get(type(request), ""), "")
        name = found if isinstance(found, str) else found[0]
        kind = "whole" if name.isdecimal() else name.partition(" ")[0]
        is_due = isinstance(request, moment) and kind in left
        left.difference_update([kind] * is_due)
        return is_due

    killing(monkeypatch, is_its_turn)
    state = site.run(site.request(**INSIDE))
    assert left == ({"whole"} if moment is Profile else set())
    assert (state.bricks, state.whole_models) == (Tally(BRICKS, measured=BRICKS), Tally(1, measured=1))
    assert not site.contents().failures


@pytest.mark.usefixtures("quick_inside")
def test_a_worker_that_is_killed_while_the_reference_runs_costs_one_reading(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    readings = count()

    def is_first(request: Request[Any]) -> bool:
        return isinstance(request, Sample) and request.programs == ("reference",) and next(readings) == 0

    killing(monkeypatch, is_first)
    site.run(site.request(**INSIDE))
    contents = site.contents()
    assert next(readings) > 2
    assert all("reference_ms" in dict(it.noise) for it in (*contents.end_to_end, *contents.measurements))


@pytest.mark.usefixtures("quick_inside")
def test_a_model_that_is_lost_twice_has_failed_and_was_not_measured(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    samples = 0

    def is_second(request: Request[Any]) -> bool:
        nonlocal samples
        samples += samples_a_model(request)
        return samples_a_model(request) and not samples % 2

    killing(monkeypatch, is_second)
    state = site.run(site.request(**INSIDE))
    contents = site.contents()
    assert (state.bricks, state.whole_models) == (Tally(BRICKS, measured=BRICKS), Tally(1, failed=1))
    assert [it.reason for it in contents.failures] == ["crashed"]
    assert (samples, contents.end_to_end) == (4, [])


@pytest.mark.parametrize("samples", [1, 2])
def test_a_model_whose_worker_is_killed_between_its_first_samples_counts_once(
    samples: int, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = count()
    killing(monkeypatch, lambda request: samples_a_model(request) and next(taken) == samples)
    assert site.run(site.request(**INSIDE)).whole_models == Tally(1, measured=1)


def test_a_run_that_stops_keeps_the_samples_of_its_carriers(site: Site) -> None:
    request = site.request(**INSIDE)
    folder = create_run(request, site.data)
    rounds = 0

    def listen(event: Event) -> None:
        nonlocal rounds
        rounds += isinstance(event, RoundDone)

    place = replace(site.place, clock=lambda: 1e6 * (rounds >= 8))
    state = execute(folder, replace(request, time_budget_seconds=1e3), place, site.queue, listen).state
    assert state.bricks == Tally(BRICKS, unfinished=BRICKS)
    assert len(site.contents().measurements) == 21


def test_whole_models_are_timed_with_the_engine_that_a_runtime_names(
    site: Site, measured_inside: Measured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_FACTOR_TO_PROFILE", "3")
    by_default = FAKE.with_default_engine()
    assert by_default is not None
    state = site.run(site.request(**INSIDE, bricks=False))
    assert (state.state, state.bricks.total, state.whole_models) == (State.FINISHED, 0, Tally(1, measured=1))
    assert not site.contents().measurements
    site.run(site.request(**INSIDE, runtime=by_default))
    contents, quick = site.contents(), measured_inside.site.contents()
    whole = {it.runtime: it.statistics.trimmed_mean_ms for it in contents.end_to_end}
    assert whole[FAKE.identity] == pytest.approx(3 * whole[by_default.identity], rel=0.1)
    # Bricks need the engine of the profiler.
    slow = {it.brick: it.statistics.trimmed_mean_ms for it in contents.measurements}
    assert slow == pytest.approx({it.brick: 3 * it.statistics.trimmed_mean_ms for it in quick.measurements}, rel=0.2)
