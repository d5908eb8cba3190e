"""What is found out before a run measures; the worker is a fake, everything else is real."""

import json
from collections import Counter
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dlbricks_tui.bricks.coldness import Caches
from dlbricks_tui.bricks.contexts import caches_in
from dlbricks_tui.bricks.decomposition import decompose
from dlbricks_tui.estimate.errors import CalibrationError
from dlbricks_tui.estimate.lookup import MOST_CALIBRATIONS
from dlbricks_tui.host.contention import Contention
from dlbricks_tui.measure.calibrating import ENOUGH_NETWORKS, Notes, calibrate, example_of
from dlbricks_tui.measure.calibration_nets import NETWORKS, SUFFIXES, calibration_nets
from dlbricks_tui.measure.events import Calibrated, Calibrating, CalibrationFailed, Event, RoundRepeated
from dlbricks_tui.measure.jobs import Job, subject_of
from dlbricks_tui.measure.known import Conditions, Known
from dlbricks_tui.measure.noise import NULL_CALL_MS
from dlbricks_tui.measure.plan import keys_of, plan
from dlbricks_tui.measure.stopping import Adaptive, StoppingRule, samples_of
from dlbricks_tui.measure.supervised_worker import SupervisedWorker
from dlbricks_tui.measure.time_left import SECONDS_PER_NETWORK
from dlbricks_tui.models.graph import Level
from dlbricks_tui.models.kinds import Kind
from dlbricks_tui.models.library import source_of
from dlbricks_tui.models.loading import Loader
from dlbricks_tui.runs.calibration import levels_due
from dlbricks_tui.runs.control import Control
from dlbricks_tui.runs.events import Planned
from dlbricks_tui.runs.request import CalibrationPolicy
from dlbricks_tui.runs.run_folder import State, Tally
from dlbricks_tui.runtime.traits import MXNET, Format
from dlbricks_tui.store.queries import records_of
from dlbricks_tui.store.records import Calibration
from dlbricks_tui.store.store import Store
from tests.bricks.graphs import chain, weighing
from tests.models.table_framework import TableFramework
from tests.runs.runs import BRICKS, FAKE, Site
from tests.store.samples import calibration

# What a batch says of the machine.
MOOD = ((NULL_CALL_MS, 0.1),)


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path / "data")


def nobody(folder: Path) -> AbstractContextManager[Loader]:
    """Reads no models."""
    raise NotImplementedError(folder)


def calibrations(site: Site) -> Sequence[Calibration]:
    with Store(site.data.store) as store:
        return records_of(store.generation, Calibration)


def test_the_networks_are_always_the_same_and_no_two_are_alike() -> None:
    for form in Format:
        nets = calibration_nets(form)
        assert nets == calibration_nets(form)
        assert len(set(nets.values())) == len(nets) >= 6
        assert tuple(nets) == NETWORKS
    for content in calibration_nets(Format.MXNET).values():
        assert any(node["op"] == "Convolution" for node in json.loads(content)["nodes"])


def test_the_networks_of_one_name_compute_the_same_in_each_format(tmp_path: Path) -> None:
    onnx, mxnet = calibration_nets(Format.ONNX), calibration_nets(Format.MXNET)
    assert onnx.keys() == mxnet.keys()
    loader = Loader(tmp_path / "cache", TableFramework())
    for name, content in onnx.items():
        path = tmp_path / f"{name}{SUFFIXES[Format.ONNX]}"
        path.write_bytes(content)
        layers = loader.load(source_of(path)).layers
        written = [node["op"] for node in json.loads(mxnet[name])["nodes"] if node["op"] != "null"]
        assert len(layers) == len(written), name
        assert Counter(layer.kind for layer in layers)[Kind.CONVOLUTION] == written.count("Convolution"), name
        assert all(layer.unmeasurable is None for layer in layers), name


def test_what_is_cold_has_enough_networks_of_its_own(tmp_path: Path) -> None:
    loader = Loader(tmp_path / "cache", TableFramework())
    cold: dict[str, int] = {}
    staying: dict[str, int] = {}
    evicted: dict[str, int] = {}
    for name, content in calibration_nets(Format.ONNX).items():
        path = tmp_path / f"{name}{SUFFIXES[Format.ONNX]}"
        path.write_bytes(content)
        decomposition = decompose(replace(loader.load(source_of(path)), traits=MXNET))
        states = Counter((caches_in(it.context), it.twin is not None) for it in decomposition.occurrences)
        staying[name] = states[Caches.COLD, True]
        cold[name] = states[Caches.COLD, False]
        evicted[name] = states[Caches.WARM, True]
    told = [name for name, count in cold.items() if name.startswith("cold") and count]
    assert len(told) >= 3
    assert not any(staying[name] for name in told)
    # And so has what may stay in a cache.
    doubtful = [name for name, count in staying.items() if name.startswith("staying") and count]
    assert len(doubtful) == 2
    # Where time is short, some of each are among those that are measured.
    assert {told[0], doubtful[0]} <= set(NETWORKS[:ENOUGH_NETWORKS])
    assert all(evicted[name] >= 10 for name in NETWORKS if name.startswith("small"))


@pytest.mark.parametrize("twin_ms", [None, 0.7])
@pytest.mark.parametrize("cold", [True, False])
def test_a_network_tells_what_its_bricks_and_their_twins_take(cold: bool, twin_ms: float | None) -> None:
    mebibytes = 3 if cold else 1
    graph = weighing(weighing(chain("conv", "pool"), 0, mebibytes), 1, mebibytes + cold)
    subject = subject_of(decompose(graph))
    own = Caches.COLD if cold else Caches.WARM
    assert {caches_in(it.context) for it in subject.decomposition.occurrences} == {own}
    rule = Adaptive()
    found = {
        target: samples_of(
            [2.5 if target.model else 1.0 if caches_in(target.context) is own else twin_ms or 0.0] * 20, rule
        )
        for target in keys_of((subject,), end_to_end=True)
        if twin_ms is not None or target.model or caches_in(target.context) is own
    }
    assert len(found) == (3 if twin_ms is None else 5)
    statistics = {target: series.statistics for target, series in found.items()}
    example = example_of(subject, statistics, ("per_cold_sequence_ms", "stays_share", "evicted_share"))
    assert (example.composed_ms, example.measured_ms) == (2.0, 2.5)
    apart_ms = 2 * (0.7 - 1.0)
    if cold:
        # What is timed in one way is cold for sure.
        assert example.terms == pytest.approx((2.0, 0.0, 0.0) if twin_ms is None else (0.0, apart_ms, 0.0))
    else:
        assert example.terms == pytest.approx((0.0, 0.0, 0.0 if twin_ms is None else apart_ms))


def test_where_nothing_can_be_found_out_the_run_goes_on_and_says_so(site: Site) -> None:
    # The fake worker infers no types, so that no network can be read.
    events: list[Event] = []
    ended = site.run(site.request(calibration=CalibrationPolicy.ONCE), events.append)
    assert (ended.state, ended.bricks) == (State.FINISHED, Tally(BRICKS, measured=BRICKS))
    assert [event for event in events if isinstance(event, CalibrationFailed)]
    assert not calibrations(site)


@pytest.mark.parametrize(("left_seconds", "gives_up"), [(40.0, True), (90.0, True), (99.0, False)])
def test_a_calibration_leaves_half_of_a_time_budget_to_what_was_asked_for(
    left_seconds: float, gives_up: bool, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    networks = [subject_of(decompose(chain(*kinds))) for kinds in (["conv", "relu"], ["conv", "pool"])]
    monkeypatch.setattr("dlbricks_tui.measure.calibrating.networks", lambda *_: networks)
    monkeypatch.setattr(Control, "seconds_left", property(lambda _: left_seconds))
    events: list[Event] = []
    request = site.request(calibration=CalibrationPolicy.ONCE, time_budget_seconds=100.0)
    ended = site.run(request, events.append)
    told = [event.reason for event in events if isinstance(event, CalibrationFailed)]
    assert any("half of the time budget" in reason for reason in told) == gives_up
    # What cannot come to its end in time is not begun.
    assert bool([event for event in events if isinstance(event, Calibrating)]) is not gives_up
    assert (ended.state, ended.bricks) == (State.FINISHED, Tally(BRICKS, measured=BRICKS))


@pytest.mark.parametrize("in_time", [7, 8, 11])
def test_half_of_the_networks_are_enough_where_there_is_no_time_for_all(
    in_time: int, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    # They touch so much that each layer pays the whole constant.
    graph = weighing(chain("conv", "pool"), 0, 50)
    networks = [subject_of(decompose(replace(graph, name=f"network {number}"))) for number in range(11)]
    monkeypatch.setattr("dlbricks_tui.measure.calibrating.networks", lambda *_: networks)
    asked: list[StoppingRule] = []

    def measure(jobs: Sequence[Job], rule: StoppingRule, notes: Notes) -> None:
        asked.append(rule)
        if len(asked) > in_time:
            raise CalibrationError("no more time")
        for job in jobs:
            notes.keep([(job, samples_of([2.6 if job.whole else 1.0] * 20, rule))], MOOD)

    events: list[Event] = []
    found = calibrate(site.path, MXNET, nobody, Level.WRITTEN, measure, events.append)
    assert len(asked) == min(in_time + 1, 11)
    if in_time < ENOUGH_NETWORKS:
        assert found is None
        assert [event.reason for event in events if isinstance(event, CalibrationFailed)] == ["no more time"]
        return
    assert found is not None
    correction, names = found
    assert names == tuple(f"network {number}" for number in range(in_time))
    # Two bricks of a millisecond in a model of two and a half, but for the call: a quarter for each.
    call, lost, *others = MXNET.calibration_constants
    assert dict(correction.constants) == {call: 0.1, lost: pytest.approx(0.25), **dict.fromkeys(others, 0.0)}
    assert len(correction.residuals) == in_time


def test_the_foretold_time_has_that_of_the_networks_in_it(site: Site) -> None:
    foretold = []
    for policy in (CalibrationPolicy.NEVER, CalibrationPolicy.ONCE):
        events: list[Event] = []
        other = Site(site.path / policy.value)
        other.path.mkdir(parents=True)
        other.run(other.request(calibration=policy), events.append)
        foretold += [event.expected_seconds for event in events if isinstance(event, Planned)]
    without, with_it = foretold
    assert with_it - without == pytest.approx(SECONDS_PER_NETWORK * len(NETWORKS))


def test_a_level_is_calibrated_once_unless_it_is_asked_for_anew(site: Site) -> None:
    graph = chain("conv", "relu")
    subjects = [subject_of(decompose(graph))]
    jobs = plan(subjects, Known(), Adaptive()).jobs
    here, elsewhere = Conditions("s1", "x", "p"), Conditions("s2", "x", "p")
    way = {"system": "s1", "runtime": "x", "level": graph.level, "protocol": "p"}
    today = tuple((name, 0.01) for name in MXNET.calibration_constants)
    outdated = calibration(**way, constants=(("per_sequence_ms", 0.01),))
    of_any_density = calibration(**way, when="2026-11-22T07:00:00.000000+00:00", constants=today, densities=())
    residuals = tuple((name, 0.01) for name in NETWORKS)
    known = calibration(**way, when="2026-11-22T08:00:00.000000+00:00", constants=today, residuals=residuals)
    with Store(site.data.store) as store:

        def due(policy: CalibrationPolicy, conditions: Conditions, of: Sequence[Job] = jobs) -> Sequence[Level]:
            return levels_due(site.request(calibration=policy), subjects, of, conditions, store.generation, 5.0)

        assert due(CalibrationPolicy.ONCE, here) == (graph.level,)
        for before in (outdated, of_any_density):
            store.add(before)
            assert due(CalibrationPolicy.ONCE, here) == (graph.level,)
        store.add(known)
        assert due(CalibrationPolicy.ONCE, here) == ()
        assert due(CalibrationPolicy.ONCE, elsewhere) == due(CalibrationPolicy.ANEW, here) == (graph.level,)
        assert due(CalibrationPolicy.NEVER, elsewhere) == ()
        # With nothing to measure it is found out only if somebody wants to know.
        assert due(CalibrationPolicy.ONCE, elsewhere, of=()) == ()
        assert due(CalibrationPolicy.ANEW, here, of=()) == (graph.level,)


def test_what_a_time_budget_cut_short_is_found_out_again_where_there_is_time(site: Site) -> None:
    subjects = [subject_of(decompose(chain("conv", "relu")))]
    jobs = plan(subjects, Known(), Adaptive()).jobs
    here = Conditions("s1", "x", "p")
    way = {"system": "s1", "runtime": "x", "level": jobs[0].graph.level, "protocol": "p"}
    constants = tuple((name, 0.01) for name in MXNET.calibration_constants)

    def due(when: int, networks: Sequence[str], **fields: Any) -> bool:
        residuals = tuple((name, 0.01) for name in networks)
        with Store(site.data.store) as store:
            store.add(
                calibration(**way, when=f"2026-11-22T0{when}:00:00+00:00", constants=constants, residuals=residuals)
            )
            request = site.request(calibration=CalibrationPolicy.ONCE, **fields)
            return bool(levels_due(request, subjects, jobs, here, store.generation, 5.0))

    assert due(1, NETWORKS[:ENOUGH_NETWORKS])
    assert not due(2, NETWORKS[:ENOUGH_NETWORKS], time_budget_seconds=60.0)
    assert not due(3, NETWORKS)
    # A network that cannot be measured here would not be next time either.
    assert not due(4, (*NETWORKS[:3], *NETWORKS[4:]))
    # By an older version, which had not as many.
    assert due(5, NETWORKS[3:])


def test_what_takes_longer_than_to_calibrate_calibrates_once_more_until_that_was_done_five_times(site: Site) -> None:
    subjects = [subject_of(decompose(chain("conv", "relu")))]
    jobs = plan(subjects, Known(), Adaptive()).jobs
    way = {"system": "s1", "runtime": "x", "level": jobs[0].graph.level, "protocol": "p"}
    found = {"constants": tuple((name, 0.01) for name in MXNET.calibration_constants)}
    found["residuals"] = tuple((name, 0.01) for name in NETWORKS)
    calibrating = SECONDS_PER_NETWORK * len(NETWORKS)
    with Store(site.data.store) as store:

        def due(seconds: float, **fields: Any) -> bool:
            request = site.request(calibration=CalibrationPolicy.ONCE, **fields)
            return bool(levels_due(request, subjects, jobs, Conditions("s1", "x", "p"), store.generation, seconds))

        for hour in range(1, MOST_CALIBRATIONS + 1):
            assert due(calibrating)
            store.add(calibration(**way, when=f"2026-11-22T0{hour}:00:00.000000+00:00", **found))
            assert not due(calibrating - 1)
            assert not due(calibrating, time_budget_seconds=3600.0)
        assert not due(10 * calibrating)


def test_by_itself_a_request_calibrates_nothing(site: Site) -> None:
    events: list[Event] = []
    site.run(site.request(), events.append)
    assert not [event for event in events if isinstance(event, Calibrating | Calibrated | CalibrationFailed)]


@pytest.mark.parametrize(("policy", "calibrates"), [(CalibrationPolicy.ONCE, False), (CalibrationPolicy.ANEW, True)])
def test_a_run_that_measures_nothing_calibrates_only_if_asked_to(
    policy: CalibrationPolicy, calibrates: bool, site: Site
) -> None:
    site.run(site.request())
    events: list[Event] = []
    site.run(site.request(calibration=policy), events.append)
    assert [event for event in events if isinstance(event, Planned)]
    # That of the fake worker fails, as it infers no types.
    assert bool([event for event in events if isinstance(event, CalibrationFailed)]) == calibrates


def test_a_round_in_which_others_computed_is_repeated(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    # A shorter round tells nothing of others.
    monkeypatch.setenv("FAKE_NAP", "0.06")
    asked = 0

    def counted(_: SupervisedWorker) -> Contention:
        nonlocal asked
        asked += 1
        # Between the third and the fourth question, which is within the second round, somebody came.
        return Contention(10.0, 10**6) if asked >= 4 else Contention(0.0, 0)

    monkeypatch.setattr(SupervisedWorker, "contention", counted)
    events: list[Event] = []
    ended = site.run(site.request(), events.append)
    repeated = [event for event in events if isinstance(event, RoundRepeated)]
    assert len(repeated) == 1
    assert "others took the processor" in repeated[0].reason
    assert (ended.state, ended.bricks) == (State.FINISHED, Tally(BRICKS, measured=BRICKS))
    noise = [dict(result.noise) for result in site.contents().measurements]
    assert [facts["repeated_rounds"] for facts in noise if "repeated_rounds" in facts]


def test_networks_run_their_operators_one_after_another_where_models_do_not(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    def one_network(*about: Any) -> None:
        *_, measure, _ = about
        subject = subject_of(decompose(chain("conv", "relu")))
        measure(plan((subject,), Known(), Adaptive(), end_to_end=True).jobs, Adaptive(), Notes())

    diary = site.data.path / "diary"
    monkeypatch.setenv("FAKE_DIARY", str(diary))
    monkeypatch.setattr("dlbricks_tui.runs.calibration.calibrate", one_network)
    runtime = replace(FAKE, framework="mxnet").side_by_side(2)
    site.run(site.request(end_to_end=True, runtime=runtime, calibration=CalibrationPolicy.ANEW))
    ways = {way for operators, *_, way in map(str.split, diary.read_text().splitlines()) if operators == "conv+relu"}
    assert ways == {"in-turn"}
    assert "abreast" in diary.read_text()
