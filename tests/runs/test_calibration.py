"""Calibrations of runs, with a fake worker and everything else real."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dlbricks_tui.bricks.contexts import is_cold_in
from dlbricks_tui.bricks.decomposition import decompose
from dlbricks_tui.estimate.calibration import Example, prior_of
from dlbricks_tui.estimate.errors import CalibrationError
from dlbricks_tui.estimate.lookup import MOST_CALIBRATIONS
from dlbricks_tui.host.contention import Contention
from dlbricks_tui.measure.calibration_nets import NETWORKS, SUFFIXES, calibration_nets
from dlbricks_tui.measure.events import Calibrated, Calibrating, CalibrationFailed, Event, RoundRepeated
from dlbricks_tui.measure.jobs import Job, cut_model
from dlbricks_tui.measure.known import Conditions, Known
from dlbricks_tui.measure.method import Method
from dlbricks_tui.measure.noise import NULL_CALL_MS
from dlbricks_tui.measure.plan import keys_of, plan
from dlbricks_tui.measure.stopping import Adaptive, FixedRuns, samples_of
from dlbricks_tui.measure.supervised_worker import SupervisedWorker
from dlbricks_tui.measure.time_left import SECONDS_PER_NETWORK
from dlbricks_tui.models.graph import LayerGraph
from dlbricks_tui.models.kinds import Kind
from dlbricks_tui.models.library import source_of
from dlbricks_tui.models.loading import Loader
from dlbricks_tui.runs.calibration import (
    FEWEST_NETWORKS,
    RULE,
    NetworkResults,
    Target,
    example_of,
    fit,
    in_time,
    jobs_of,
    targets_due,
    way_of,
)
from dlbricks_tui.runs.events import EstimateChanged, Planned, ProgramMeasured
from dlbricks_tui.runs.request import CalibrationPolicy
from dlbricks_tui.runs.run_folder import State, Tally
from dlbricks_tui.runs.work import RunSession
from dlbricks_tui.runtime.traits import MXNET, Format
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.records import Calibration, utc_now
from tests.bricks.graphs import chain, weighing
from tests.models.table_framework import TableFramework
from tests.runs.runs import BRICKS, FAKE, Measured, Site
from tests.store.samples import calibration

Graphs = Mapping[str, LayerGraph]
# The noise facts of a batch.
NOISE = ((NULL_CALL_MS, 0.1),)


@pytest.fixture(scope="module")
def nets() -> Mapping[Format, Mapping[str, bytes]]:
    """The calibration networks as files."""
    return {form: calibration_nets(form) for form in Format}


@pytest.fixture(scope="module")
def graphs(nets: Mapping[Format, Mapping[str, bytes]], tmp_path_factory: pytest.TempPathFactory) -> Graphs:
    """The calibration networks as they are read from ONNX files."""
    folder = tmp_path_factory.mktemp("networks")
    return {name: read(folder, name, content) for name, content in nets[Format.ONNX].items()}


def read(folder: Path, name: str, content: bytes) -> LayerGraph:
    path = folder / f"{name}{SUFFIXES[Format.ONNX]}"
    path.write_bytes(content)
    return Loader(folder / "cache", TableFramework()).load(source_of(path))


def calibrations(site: Site) -> Sequence[Calibration]:
    with ResultsDatabase(site.data.store) as store:
        return store.records(Calibration)


def test_the_networks_are_always_the_same_and_no_two_are_alike(nets: Mapping[Format, Mapping[str, bytes]]) -> None:
    for form, known in nets.items():
        assert calibration_nets(form) == known
        assert len(set(known.values())) == len(known) >= 6
        assert tuple(known) == NETWORKS
    for content in nets[Format.MXNET].values():
        assert any(node["op"] == "Convolution" for node in json.loads(content)["nodes"])


def test_the_networks_of_one_name_compute_the_same_in_each_format(
    nets: Mapping[Format, Mapping[str, bytes]], graphs: Graphs
) -> None:
    mxnet = nets[Format.MXNET]
    assert graphs.keys() == mxnet.keys()
    for name, graph in graphs.items():
        layers = graph.layers
        written = [node["op"] for node in json.loads(mxnet[name])["nodes"] if node["op"] != "null"]
        assert len(layers) == len(written), name
        assert Counter(layer.kind for layer in layers)[Kind.CONVOLUTION] == written.count("Convolution"), name
        assert all(layer.unmeasurable is None for layer in layers), name


def test_warm_and_cold_bricks_each_have_enough_networks(graphs: Graphs) -> None:
    cold = {
        name: sum(is_cold_in(it.context) for it in decompose(replace(graph, traits=MXNET)).occurrences)
        for name, graph in graphs.items()
    }
    telling = [name for name in NETWORKS if cold[name] >= 10]
    assert telling == [name for name in NETWORKS if name.startswith("cold")]
    # Where time is short, the first ones tell of both.
    assert len(set(telling).intersection(NETWORKS[:FEWEST_NETWORKS])) >= 2
    assert [cold[name] for name in NETWORKS[:FEWEST_NETWORKS]].count(0) >= 3


@pytest.mark.parametrize("cold", [True, False])
def test_the_terms_of_a_network_are_sums_over_its_bricks(cold: bool) -> None:
    mebibytes = 4 if cold else 1
    model = cut_model(decompose(weighing(weighing(chain("conv", "pool"), 0, mebibytes), 1, mebibytes)))
    assert {is_cold_in(it.context) for it in model.decomposition.occurrences} == {cold}
    rule = Adaptive()
    keys = keys_of((model,), end_to_end=True)
    statistics = {it: samples_of([2.5 if it.model else 1.0] * 20, rule).statistics for it in keys}
    example = example_of(model, statistics, ("call_ms", "warm_brick_ms", "cold_brick_ms"), 0.1)
    assert (example.composed_ms, example.measured_ms, example.call_ms) == (2.0, 2.5, 0.1)
    assert example.terms == ((0.0, 2.0) if cold else (2.0, 0.0))
    assert example_of(model, statistics, ("warm_brick_ms",), 0.1).call_ms == 0.0


def test_a_run_predicts_the_time_of_its_calibration_and_goes_on_if_it_fails(site: Site, measured: Measured) -> None:
    # The fake worker infers no types, so that no network can be read.
    events: list[Event] = []
    ended = site.run(site.request(end_to_end=True, calibration=CalibrationPolicy.ONCE), events.append)
    assert (ended.state, ended.bricks) == (State.FINISHED, Tally(BRICKS, measured=BRICKS))
    assert [event for event in events if isinstance(event, CalibrationFailed)]
    assert not calibrations(site)
    # By default there is none.
    assert not [event for event in measured.events if isinstance(event, Calibrating | Calibrated | CalibrationFailed)]
    with_it, without = (
        next(event.expected_seconds for event in told if isinstance(event, Planned))
        for told in (events, measured.events)
    )
    assert with_it - without == pytest.approx(SECONDS_PER_NETWORK * len(NETWORKS))


def test_a_calibration_follows_the_estimates_and_updates_them(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    def found(session: RunSession, target: Target, _: object) -> Calibration:
        constants = (("call_ms", 1.0), ("warm_brick_ms", 0.0), ("cold_brick_ms", 0.0))
        errors, densities = (("net", 0.01),), (("net", 1.0),)
        way = way_of(session.conditions, target.level)._asdict()
        return Calibration(when=utc_now(), run="r", constants=constants, residuals=errors, densities=densities, **way)

    monkeypatch.setattr("dlbricks_tui.runs.calibration.calibrate_level", found)
    events: list[Event] = []
    site.run(site.request(calibration=CalibrationPolicy.ONCE, rule=FixedRuns(8)), events.append)
    last_measured = max(number for number, event in enumerate(events) if isinstance(event, ProgramMeasured))
    before, after = [event for event in events[last_measured:] if isinstance(event, EstimateChanged)]
    prior = prior_of(MXNET, Method.ALONE.id)
    assert before.low_ms is not None and before.high_ms is not None and before.sequential_ms is not None
    assert after.sequential_ms is not None and after.high_ms is not None and after.low_ms is not None
    assert before.sequential_ms > 0 and after.sequential_ms > 1.0
    # By a prior an estimate is more doubtful.
    assert (before.high_ms - before.low_ms) / before.sequential_ms > prior.relative_doubt(0.0)
    assert (after.high_ms - after.low_ms) / after.sequential_ms < prior.relative_doubt(0.0)


@pytest.mark.parametrize("count", [FEWEST_NETWORKS - 1, FEWEST_NETWORKS, 9])
def test_a_calibration_ends_in_time(count: int) -> None:
    models = [cut_model(decompose(replace(chain("conv", "pool"), name=f"network {it}"))) for it in range(9)]
    seconds = 10.0 * count + 5.0
    examples: list[Example] = []
    # Each network takes ten seconds.
    for model in in_time(models, seconds, lambda: 10.0 * len(examples)):
        results = NetworkResults()
        for job in jobs_of(model):
            results.keep([(job, samples_of([2.6 if job.whole else 1.0] * 20, RULE))], NOISE)
        examples.append(example_of(model, results.found, MXNET.calibration_constants, results.call_ms))
    assert len(examples) == count
    if count < FEWEST_NETWORKS:
        reason = f"{count} networks could be measured in {seconds:.0f} s, and {FEWEST_NETWORKS} are needed"
        with pytest.raises(CalibrationError, match=reason):
            fit(examples, MXNET.calibration_constants, seconds)
        return
    correction = fit(examples, MXNET.calibration_constants, seconds)
    assert [example.name for example in examples] == [f"network {number}" for number in range(count)]
    # Two bricks of a millisecond in a model of two and a half, but for the call: a quarter for each.
    assert dict(correction.constants) == {"call_ms": 0.1, "warm_brick_ms": pytest.approx(0.25), "cold_brick_ms": 0.0}
    assert len(correction.residuals) == count


def test_a_calibration_with_large_errors_is_not_used() -> None:
    def examples(noise: float) -> list[Example]:
        return [
            Example(f"net {it}", (10.0 + it, 0.0), 5.0, (5.0 + 0.02 * (10.0 + it)) * (1 + noise * (-1) ** it))
            for it in range(6)
        ]

    assert fit(examples(0.05), ("warm_brick_ms", "cold_brick_ms"), 60.0).residuals
    with pytest.raises(CalibrationError, match="run again on a quieter host"):
        fit(examples(0.4), ("warm_brick_ms", "cold_brick_ms"), 60.0)


def test_a_level_is_calibrated_once_unless_requested_again(site: Site) -> None:
    graph = chain("conv", "relu")
    models = [cut_model(decompose(graph))]
    jobs = plan(models, Known(), Adaptive()).jobs
    here, elsewhere = Conditions("s1", "x", "p"), Conditions("s2", "x", "p")
    way = {"system": "s1", "runtime": "x", "level": graph.level, "protocol": "p"}
    today = tuple((name, 0.01) for name in MXNET.calibration_constants)
    outdated = calibration(**way, constants=(("warm_brick_ms", 0.01),))
    residuals = tuple((name, 0.01) for name in NETWORKS)
    known = calibration(**way, when="2026-11-22T08:00:00.000000+00:00", constants=today, residuals=residuals)
    with ResultsDatabase(site.data.store) as store:

        def due(policy: CalibrationPolicy, conditions: Conditions, of: Sequence[Job] = jobs) -> Sequence[Target]:
            return targets_due(site.request(calibration=policy), models, of, conditions, store, 5.0)

        assert due(CalibrationPolicy.ONCE, here) == (Target(graph.level, 1),)
        store.add(outdated)
        assert due(CalibrationPolicy.ONCE, here) == (Target(graph.level, 1),)
        store.add(known)
        assert due(CalibrationPolicy.ONCE, here) == ()
        assert due(CalibrationPolicy.ONCE, elsewhere) == due(CalibrationPolicy.ANEW, here) == (Target(graph.level, 1),)
        assert due(CalibrationPolicy.NEVER, elsewhere) == ()
        # With nothing to measure it is found out only if somebody wants to know.
        assert due(CalibrationPolicy.ONCE, elsewhere, of=()) == ()
        assert due(CalibrationPolicy.ANEW, here, of=()) == (Target(graph.level, 1),)


def test_other_batch_sizes_share_a_calibration_until_they_are_calibrated_on_request(site: Site) -> None:
    models = [cut_model(decompose(replace(chain("conv", "relu"), batch_size=size))) for size in (8, 4)]
    jobs = [job for model in models for job in plan([model], Known(), Adaptive()).jobs]
    level = jobs[0].graph.level
    constants = tuple((name, 0.01) for name in MXNET.calibration_constants)
    found: dict[str, Any] = {"system": "s1", "runtime": "x", "level": level, "protocol": "p"}
    found |= {"when": "2026-11-22T08:00:00.000000+00:00", "residuals": tuple((name, 0.01) for name in NETWORKS)}
    with ResultsDatabase(site.data.store) as store:

        def due(policy: CalibrationPolicy, seconds: float = 5.0) -> Sequence[Target]:
            here = Conditions("s1", "x", "p")
            return targets_due(site.request(calibration=policy), models, jobs, here, store, seconds)

        assert due(CalibrationPolicy.ONCE) == (Target(level, 4),)
        store.add(calibration(**found, constants=constants))
        assert due(CalibrationPolicy.ONCE) == ()
        assert due(CalibrationPolicy.ANEW) == (Target(level, 4), Target(level, 8))
        # A long run calibrates its own batch size.
        assert due(CalibrationPolicy.ONCE, 1e6) == (Target(level, 4),)
        for hour in range(MOST_CALIBRATIONS):
            when = f"2026-11-22T1{hour}:00:00.000000+00:00"
            store.add(calibration(**{**found, "when": when}, constants=(*constants, ("batch_size", 4.0))))
        assert due(CalibrationPolicy.ONCE, 1e6) == ()


def test_the_networks_have_the_batch_size_that_is_calibrated(tmp_path: Path) -> None:
    name, content = min(calibration_nets(Format.ONNX, 8).items(), key=lambda it: len(it[1]))
    graph = read(tmp_path, name, content)
    assert graph.batch_size == 8
    assert {(layer.outputs[0].shape or (0,))[0] for layer in graph.layers} == {8}
    symbols = calibration_nets(Format.MXNET, 8)
    assert all(b"(8, " in content for content in symbols.values())


def test_a_long_run_adds_a_calibration_until_there_are_five(site: Site) -> None:
    models = [cut_model(decompose(chain("conv", "relu")))]
    jobs = plan(models, Known(), Adaptive()).jobs
    way = {"system": "s1", "runtime": "x", "level": jobs[0].graph.level, "protocol": "p"}
    found = {"constants": tuple((name, 0.01) for name in MXNET.calibration_constants)}
    found["residuals"] = tuple((name, 0.01) for name in NETWORKS)
    calibrating = SECONDS_PER_NETWORK * len(NETWORKS)
    with ResultsDatabase(site.data.store) as store:

        def due(seconds: float, **fields: Any) -> bool:
            request = site.request(calibration=CalibrationPolicy.ONCE, **fields)
            return bool(targets_due(request, models, jobs, Conditions("s1", "x", "p"), store, seconds))

        for hour in range(1, MOST_CALIBRATIONS + 1):
            assert due(calibrating)
            store.add(calibration(**way, when=f"2026-11-22T0{hour}:00:00.000000+00:00", **found))
            assert not due(calibrating - 1)
            assert not due(calibrating, time_budget_seconds=3600.0)
        assert not due(10 * calibrating)


def test_a_run_without_measurements_calibrates_only_on_request(known: Site) -> None:
    for policy, calibrates in ((CalibrationPolicy.ONCE, False), (CalibrationPolicy.ANEW, True)):
        events: list[Event] = []
        known.run(known.request(calibration=policy), events.append)
        assert [event for event in events if isinstance(event, Planned)]
        # That of the fake worker fails, as it infers no types.
        assert bool([event for event in events if isinstance(event, CalibrationFailed)]) == calibrates


def test_a_round_disturbed_by_other_programs_is_repeated(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    # A shorter round tells nothing of others.
    monkeypatch.setattr("dlbricks_tui.measure.noise._SHORTEST_SECONDS", 0.0)
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


def test_calibration_networks_run_their_operators_sequentially(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    network = cut_model(decompose(chain("conv", "relu")))
    diary = site.data.path / "diary"
    monkeypatch.setenv("FAKE_DIARY", str(diary))
    monkeypatch.setattr("dlbricks_tui.runs.calibration.networks", lambda *_: [network])
    runtime = replace(FAKE, framework="mxnet").side_by_side(2)
    asked = {"bricks": False, "end_to_end": True, "runtime": runtime, "calibration": CalibrationPolicy.ANEW}
    site.run(site.request(rule=FixedRuns(5), **asked))
    ways = {way for operators, *_, way in map(str.split, diary.read_text().splitlines()) if operators == "conv+relu"}
    assert ways == {"in-turn"}
    assert "abreast" in diary.read_text()
