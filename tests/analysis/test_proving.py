"""Proofs, and the jobs of an analysis."""

import math
import os
import random
import signal
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from onnx.helper import make_node

from dlbricks_tui.analysis.proving import (
    ModelSample,
    ProofDone,
    ProofError,
    ProofOrder,
    ProofRule,
    Prover,
    RoundsDone,
    TimedModel,
    paired_gain,
    thinned,
    time_in_turns,
    with_placement,
)
from dlbricks_tui.analysis.what_if import Execution, Gain, WhatIf, WhatIfKind, measured_gain, newest_proofs
from dlbricks_tui.analysis.whole_models import job_of, load_whole
from dlbricks_tui.bricks.decomposition import decompose
from dlbricks_tui.host.fingerprint import fingerprint
from dlbricks_tui.host.queue import Ticket
from dlbricks_tui.jobs.control import JobStopped, StopSignals
from dlbricks_tui.jobs.events import Event, Waiting
from dlbricks_tui.jobs.folder import store_request, stored_request
from dlbricks_tui.measure.jobs import cut_model
from dlbricks_tui.measure.noise import NoiseMonitor
from dlbricks_tui.models.graph import Level
from dlbricks_tui.models.library import ModelSource, source_of
from dlbricks_tui.runtime.process import INSIDE
from dlbricks_tui.runtime.protocol import Loaded, Network, Program
from dlbricks_tui.runtime.registry import Registry
from dlbricks_tui.runtime.runtime import Runtime
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.records import Proof, Provenance, new_uuid
from dlbricks_tui.store.verification import verify
from tests.bricks.graphs import chain
from tests.host.lines import turn_of
from tests.jobs.carrying import Bench, fake
from tests.models.onnx_models import floats, model, saved
from tests.runs.runs import MODEL, Site

QUICK = ProofRule(least=4, most=4)


def faster(times: int = 1, **variables: str) -> Execution:
    """Return the fake worker, slower than it is by this factor."""
    return fake(FAKE_FACTOR=str(times), **variables)


def what_if(change: Execution | None, baseline: Execution | None = None, name: str = "threads-1") -> WhatIf:
    predicted = Gain(0.45, 0.4, 0.5)
    return WhatIf(name, WhatIfKind.THREADS, baseline or faster(2), change, 1.0, predicted, (), "--threads 1")


class Lab(Bench):
    """A data folder in which what-ifs are proved."""

    def prove(self, *what_ifs: WhatIf, source: ModelSource | None = None) -> list[ProofDone]:
        order = ProofOrder(source or self.source, what_ifs)
        with StopSignals(ignore_hangup=False) as signals:
            prover = Prover(order=order, place=self.site.place, signals=signals, tell=self.take, rule=QUICK)
            prover.prove_all(self.site.queue)
        return self.messages(ProofDone)[-len(what_ifs) :]

    def proofs(self) -> list[Proof]:
        with ResultsDatabase(self.site.data.store) as store:
            return store.records(Proof)


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    site = Site(tmp_path / "data")
    site.path.mkdir()
    return Lab(site)


def test_a_proof_waits_for_its_turn_and_is_stored_with_its_gains_and_origins(lab: Lab) -> None:
    other = turn_of(lab.site.queue, "20261126-0800-aa", lab.site.data.path)
    lab.act = lambda event: other.leave() if isinstance(event, Waiting) and "20261126" in event.holder else None
    change = faster()
    (done,) = lab.prove(what_if(change))
    assert len(lab.messages(Waiting)) == 1
    assert [it.rounds for it in lab.messages(RoundsDone)] == [1, 2, 3, 4]
    with ResultsDatabase(lab.site.data.store) as store:
        (stored,), origins = store.records(Proof), store.records(Provenance)
        assert store.provenance_of(stored.uuid, stored.changed_runtime) in origins
    assert done.gain == measured_gain(stored) and done.rounds == 4
    assert stored.gain == pytest.approx(0.5, abs=0.01)
    assert stored.before.trimmed_mean_ms == pytest.approx(2 * stored.after.trimmed_mean_ms, rel=0.01)
    assert stored.gain_low < stored.gain < stored.gain_high
    assert (stored.predicted_gain, stored.predicted_low, stored.predicted_high) == (0.45, 0.4, 0.5)
    assert (stored.name, stored.what_if, stored.kind, stored.level) == (MODEL, "threads-1", "threads", Level.WRITTEN)
    assert stored.changed_runtime == change.runtime.identity != stored.runtime
    assert len(stored.samples_ms) == len(stored.changed_samples_ms) == 4
    assert sorted(it.runtime for it in origins) == sorted({stored.runtime, stored.changed_runtime})
    assert {name for it in origins for name, _ in it.models} == {stored.model}
    assert all(dict(it.packages)["mxnet"] == "1.9.1" for it in origins)
    assert verify(lab.site.data.store).implausible == ()
    newest = replace(stored, when="2999-01-01T00:00:00+00:00", uuid=new_uuid())
    assert newest_proofs([newest, stored], what_if(change)) == {stored.model: newest}
    for asked in (what_if(change, name="threads-4"), what_if(faster(3)), what_if(None)):
        assert newest_proofs([newest, stored], asked) == {}


def test_the_line_of_the_host_hears_the_time_of_all_proofs(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[tuple[float, float]] = []
    monkeypatch.setattr(Ticket, "progress", lambda _, share, left: told.append((share, left)))
    lab.prove(what_if(faster()), what_if(faster(), name="second"))
    # At the ends of both.
    assert dict(told)[0.5] > 0.0 and dict(told)[1.0] == 0.0


def test_what_ifs_that_cannot_be_proved_fail_alone(lab: Lab) -> None:
    lost, refused = (faster(FAKE_MANNERS=f'{{"Convolution": "{it}"}}') for it in ("crash on sample", "unbuildable"))
    openvino = Execution(Runtime("ov", "python", "openvino", "2026.4", "3.11"), Level.WRITTEN)
    bad: list[Execution | None] = [lost, refused, None, openvino, replace(openvino, level=Level.FUSED)]
    *failed, good = lab.prove(*map(what_if, bad), what_if(faster()))
    assert [it.gain for it in failed] == [None] * 5
    assert all(it.failure and "\n" not in it.failure for it in failed)
    assert failed[2].failure == "no runtime can run it: it is a bound"
    # A model of another format has no file for this runtime, or its interpreter does not exist.
    assert "OpenVINO always fuses layers" in failed[3].failure
    (stored,) = lab.proofs()
    assert good.gain == measured_gain(stored)


def test_the_keyboard_ends_a_proof_and_keeps_those_before(lab: Lab) -> None:
    def interrupt(event: Event) -> None:
        if isinstance(event, RoundsDone) and event.what_if == "second":
            os.kill(os.getpid(), signal.SIGINT)

    lab.act = interrupt
    with pytest.raises(JobStopped):
        lab.prove(*(what_if(faster(), name=name) for name in ("first", "second", "third")))
    assert [it.what_if for it in lab.proofs()] == ["first"]
    turn_of(lab.site.queue, "next", lab.site.data.path).leave()


def test_the_settings_are_those_of_measurements_unless_the_change_is_about_them(lab: Lab, tmp_path: Path) -> None:
    # Measurements have the settings for profiling, with which this baseline takes three times as long.
    diary = tmp_path / "diary"
    baseline, abreast = faster(FAKE_FACTOR_TO_PROFILE="3"), faster(FAKE_DIARY=str(diary))
    by_default = baseline.runtime.with_default_engine()
    assert by_default is not None
    changes = (replace(baseline, runtime=by_default), replace(abreast, runtime=abreast.runtime.side_by_side(2)))
    found = [it.gain for it in lab.prove(*(what_if(change, baseline) for change in changes))]
    assert [round(it.gain, 2) for it in found if it is not None] == [0.67, 0.67]
    assert {line.split()[-1] for line in diary.read_text().splitlines()} == {"abreast"}


def test_a_model_that_the_memory_does_not_hold_for_both_executions_is_refused(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = fingerprint()
    monkeypatch.setattr("dlbricks_tui.analysis.proving.fingerprint", lambda: replace(host, memory_bytes=1 << 20))
    (done,) = lab.prove(what_if(faster()))
    assert done.failure == "the memory of this host does not hold the model twice, for both executions"


# The fake worker proves a setting; a real runtime with other threads is the same one with another setting.
def test_real_runtimes_prove_fusion_batch_and_another_runtime_at_once(tmp_path: Path) -> None:
    registry = Registry(tmp_path / "data")
    onnxruntime, openvino = (registry.find(name).with_threads(1) for name in ("onnxruntime", "openvino"))
    # Two matrix products and a relu, for any number of rows.
    layers = (("MatMul", "xu", "a"), ("Relu", "a", "b"), ("MatMul", "bd", "y"))
    nodes = [make_node(op, [*read], [made]) for op, read, made in layers]
    net = model(nodes, {"x": ("batch", 16)}, ["y"], [floats("u", (16, 64)), floats("d", (64, 16))])
    before, change = Execution(onnxruntime, Level.WRITTEN), Execution(openvino, Level.FUSED, batch_size=4)
    lab = Lab(Site(tmp_path / "data", INSIDE))
    (done,) = lab.prove(what_if(change, before, "all at once"), source=source_of(saved(tmp_path, net)))
    assert not done.failure
    (proof,) = lab.proofs()
    assert (proof.level, proof.changed_level, proof.changed_batch_size) == (Level.WRITTEN, Level.FUSED, 4)
    assert verify(tmp_path / "data" / "store").implausible == ()


class Host:
    """A host whose speed drifts, and the order in which it ran models."""

    def __init__(self, seed: int = 1, noise: float = 0.02, drift: float = 0.05) -> None:
        self.chance, self.noise, self.drift = random.Random(seed), noise, drift
        self.speed = 0.0
        self.order: list[str] = []
        self.disturbed: set[int] = set()

    def run(self, name: str, latency_ms: float) -> ModelSample:
        self.speed = 0.95 * self.speed + self.chance.gauss(0, self.drift)
        self.order.append(name)
        taken_ms = latency_ms * math.exp(self.speed + self.chance.gauss(0, self.noise))
        return ModelSample(taken_ms, 0.1, len(self.order) in self.disturbed)


class Model(TimedModel):
    """A model that takes a known time."""

    def __init__(self, host: Host, name: str, latency_ms: float) -> None:
        self.host, self.name, self.latency_ms = host, name, latency_ms

    def sample(self, number: int, noise: NoiseMonitor) -> ModelSample:
        return self.host.run(self.name, self.latency_ms)


def timed(host: Host, before_ms: float, after_ms: float, rule: ProofRule | None = None) -> tuple[int, Gain]:
    found = time_in_turns(Model(host, "A", before_ms), Model(host, "B", after_ms), rule or ProofRule(), lambda *_: None)
    return len(found), paired_gain(found)


# A noisy host needs many rounds.
@pytest.mark.parametrize(("noise", "hosts"), [(0.01, 6), (0.05, 4), pytest.param(0.1, 30, marks=pytest.mark.soak)])
def test_the_interval_holds_the_true_gain_on_a_host_whose_speed_drifts(noise: float, hosts: int) -> None:
    found = [timed(Host(seed, noise), 4.0, 3.0)[1] for seed in range(hosts)]
    inside = sum(gain.low <= 0.25 <= gain.high for gain in found)
    assert inside >= 0.9 * hosts
    assert abs(sum(gain.value for gain in found) / len(found) - 0.25) < 0.02


def test_the_rounds_end_when_the_gain_is_known_and_go_on_while_it_is_not() -> None:
    assert timed(Host(noise=0.002, drift=0.002), 2.0, 1.0)[0] == 12
    assert timed(Host(noise=0.5, drift=0.0), 2.0, 1.0, ProofRule(most=40))[0] == 40


def test_slow_models_get_fewer_rounds_and_the_time_limit_ends_any_proof() -> None:
    narrow, wide = Gain(0.2, 0.19, 0.21), Gain(0.2, 0.0, 0.4)
    rule = ProofRule()
    assert rule.is_done(4, 20.0, narrow)
    assert not rule.is_done(4, 20.0, wide)
    assert not rule.is_done(4, 2.0, narrow)
    assert rule.is_done(4, 60.0, wide)
    assert not rule.is_done(2, 600.0, narrow)


def test_the_models_take_turns_in_an_order_that_changes_and_repeat_a_round_that_others_disturb() -> None:
    calm, host = Host(), Host()
    host.disturbed = {3}
    for each in (calm, host):
        assert timed(each, 2.0, 1.0, ProofRule(least=4, most=4))[0] == 4
    assert "".join(calm.order) == "ABBAABBA"
    assert len(host.order) == 10


def test_gains_are_means_of_logarithms_for_an_item_in_intervals_that_hold_for_other_loads_too() -> None:
    # Of the ratios themselves, the mean of 2 and 1/2 would be above 1.
    assert paired_gain([(1.0, 2.0), (2.0, 1.0)] * 10).value == pytest.approx(0.0)
    assert paired_gain([(10.0, 20.0)] * 5, items=1 / 4).value == pytest.approx(0.5)
    exact = with_placement(Gain(0.2, 0.2, 0.2))
    assert exact.high - exact.value == pytest.approx(0.027 * 0.8)
    assert with_placement(Gain(0.2, 0.1, 0.3)).low < 0.1


class StubWorker:
    """A worker in which each run takes the same time; it keeps the names of the programs that it ran."""

    def __init__(self, latency_ms: float, most: int) -> None:
        self.latency_ms, self.most = latency_ms, most
        self.ran: list[str] = []

    def load(self, name: str, *_: object) -> Loaded | None:
        return Loaded(self.latency_ms / 1000) if name <= f"copy {self.most}" else None

    def sample(self, names: Sequence[str], _: int, timed: int) -> dict[str, tuple[float, ...]]:
        self.ran += names
        return dict.fromkeys(names, (self.latency_ms,) * timed)


@pytest.mark.parametrize(
    ("latency_ms", "copies", "held", "loaded"),
    [(5.0, 2, 2, 2), (5.0, 1, 2, 1), (400.0, 2, 2, 1), (5.0, 2, 1, 1)],
    ids=["quick", "without memory for two", "slow", "the second copy is lost"],
)
def test_quick_models_are_loaded_twice_where_the_memory_holds_them(
    latency_ms: float, copies: int, held: int, loaded: int
) -> None:
    worker: Any = StubWorker(latency_ms, held)
    TimedModel(worker, Program(Network("", {}, {})), latency_ms, copies)
    assert worker.ran == ["copy 1", "copy 2"][:loaded]


@pytest.mark.parametrize(("reason", "attempts"), [("it does not run", 2), ("it was killed by SIGKILL", 1)])
def test_a_kill_from_outside_says_nothing_about_the_file_of_a_model(reason: str, attempts: int) -> None:
    job, loaded = job_of(cut_model(decompose(chain("conv")), Path("net.onnx"))), list[Program]()

    def load(program: Program) -> None:
        loaded.append(program)
        raise ProofError(reason)

    with pytest.raises(ProofError, match=reason):
        load_whole(job, faster(), load)
    assert len(loaded) == attempts


GAIN = Gain(0.25, 0.2, 0.3)


def test_an_order_is_stored_with_its_what_ifs(lab: Lab, tmp_path: Path) -> None:
    order = ProofOrder(lab.source, (what_if(None), what_if(faster())))
    store_request(tmp_path / "request.json", order)
    assert stored_request(tmp_path / "request.json", ProofOrder) == order


def test_rounds_are_told_at_most_once_a_second() -> None:
    told: list[Event] = []
    times = iter([10.0, 10.3, 10.6, 11.2, 11.3, 20.0])
    tell = thinned(told.append, lambda: next(times))
    given = [RoundsDone("threads-1", rounds, GAIN, 3.0 if rounds > 1 else None) for rounds in (1, 2, 3, 4, 5)]
    given.append(RoundsDone("batch-8", 1, GAIN))
    for event in given:
        tell(event)
    assert told == [given[0], given[3], given[5]]


@pytest.mark.parametrize(
    ("rounds", "seconds", "half", "expected"),
    [
        # The least number of rounds, half of them done.
        (6, 6.0, 0.01, 6.0),
        # Twice as wide as it should be: four times as many rounds.
        (12, 6.0, 0.04, 18.0),
        # At most so many rounds, and at most so long.
        (50, 10.0, 0.5, 10.0),
        (12, 24.0, 0.5, 36.0),
        # A slow model gets fewer rounds.
        (3, 30.0, 0.01, 0.0),
        (20, 10.0, 0.02, 0.0),
    ],
)
def test_the_time_left_follows_from_the_interval_so_far(
    rounds: int, seconds: float, half: float, expected: float
) -> None:
    gain = Gain(0.2, 0.2 - half, 0.2 + half)
    assert ProofRule().seconds_left(rounds, seconds, gain) == pytest.approx(expected)
