"""Proofs by the fake worker, and by the real runtimes on a tiny model."""

import os
import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from onnx import ModelProto
from onnx.helper import make_node

from dlbricks_tui.analysis.proving import Outcome, ProofRule, Prover, RoundsDone
from dlbricks_tui.analysis.what_if import Execution, Gain, WhatIf, WhatIfKind, newest_proofs
from dlbricks_tui.folders import SAMPLE_MODELS
from dlbricks_tui.host.fingerprint import fingerprint
from dlbricks_tui.jobs.control import JobStopped, StopSignals
from dlbricks_tui.jobs.events import Event, Waiting
from dlbricks_tui.models.graph import Level
from dlbricks_tui.models.library import Library, ModelSource, source_of
from dlbricks_tui.runtime.process import INSIDE
from dlbricks_tui.runtime.registry import Registry
from dlbricks_tui.runtime.runtime import Runtime
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.records import Proof, Provenance, new_uuid
from dlbricks_tui.store.verification import verify
from tests.host.lines import turn_of
from tests.models.onnx_models import floats, model, saved
from tests.runs.runs import FAKE, MODEL, Site

QUICK = ProofRule(least=4, most=4)


def faster(times: int = 1, **variables: str) -> Execution:
    """Return the fake worker, slower than it is by this factor."""
    told = {"FAKE_NOISE": "0.001", "FAKE_FACTOR": str(times), **variables}
    settings = replace(FAKE.settings, environment=tuple(told.items()))
    return Execution(replace(FAKE, settings=settings), Level.WRITTEN)


def what_if(change: Execution | None, baseline: Execution | None = None, name: str = "threads-1") -> WhatIf:
    predicted = Gain(0.45, 0.4, 0.5)
    return WhatIf(name, WhatIfKind.THREADS, baseline or faster(2), change, 1.0, predicted, (), "--threads 1")


class Notes:
    """Keeps what it is told, and does something once a proof has begun."""

    def __init__(self, act: Callable[[str], None] = lambda _: None) -> None:
        self.told: list[RoundsDone] = []
        self.holders: list[str] = []
        self.act = act

    def take(self, event: Event) -> None:
        if isinstance(event, Waiting):
            self.holders.append(event.holder)
            self.act(event.holder)
        elif isinstance(event, RoundsDone):
            self.told.append(event)
            self.act(event.what_if)


@dataclass(frozen=True)
class Lab:
    """A data folder in which what-ifs are proved."""

    site: Site
    source: ModelSource
    notes: Notes

    def prove(self, *what_ifs: WhatIf, rule: ProofRule = QUICK) -> list[Outcome]:
        self.site.path.mkdir(exist_ok=True)
        with StopSignals(ignore_hangup=False) as signals:
            prover = Prover(source=self.source, place=self.site.place, signals=signals, tell=self.notes.take, rule=rule)
            return list(prover.prove_all(what_ifs, self.site.queue))

    def proofs(self) -> list[Proof]:
        with ResultsDatabase(self.site.data.store) as store:
            return store.records(Proof)


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    (source,) = Library(SAMPLE_MODELS, tmp_path).find(MODEL)
    return Lab(Site(tmp_path / "data"), source, Notes())


def test_a_proof_waits_for_its_turn_and_is_stored_with_its_gains_and_origins(lab: Lab) -> None:
    lab.site.path.mkdir()
    other = turn_of(lab.site.queue, "20261126-0800-aa", lab.site.data.path)
    lab.notes.act = lambda told: other.leave() if "20261126" in told else None
    change = faster()
    (outcome,) = lab.prove(what_if(change))
    assert len(lab.notes.holders) == 1
    assert [it.rounds for it in lab.notes.told] == [1, 2, 3, 4]
    with ResultsDatabase(lab.site.data.store) as store:
        (stored,), origins = store.records(Proof), store.records(Provenance)
        assert store.provenance_of(stored.uuid, stored.changed_runtime) in origins
    assert stored == outcome.proof
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


def test_what_ifs_that_cannot_be_proved_fail_alone(lab: Lab) -> None:
    lost, refused = (faster(FAKE_MANNERS=f'{{"Convolution": "{it}"}}') for it in ("crash on sample", "unbuildable"))
    openvino = Execution(Runtime("ov", "python", "openvino", "2026.4", "3.11"), Level.WRITTEN)
    bad: list[Execution | None] = [lost, refused, None, openvino, replace(openvino, level=Level.FUSED)]
    *failed, good = lab.prove(*map(what_if, bad), what_if(faster()))
    assert [it.proof for it in failed] == [None] * 5
    assert all(it.failure and "\n" not in it.failure for it in failed)
    assert failed[2].failure == "no runtime can run it: it is a bound"
    # A model of another format has no file for this runtime, or its interpreter does not exist.
    assert "OpenVINO always fuses layers" in failed[3].failure
    assert good.proof is not None
    assert lab.proofs() == [good.proof]


def test_the_keyboard_ends_a_proof_and_keeps_those_before(lab: Lab) -> None:
    def interrupt(told: str) -> None:
        if told == "second":
            os.kill(os.getpid(), signal.SIGINT)

    lab.notes.act = interrupt
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
    found = [it.proof for it in lab.prove(*(what_if(change, baseline) for change in changes))]
    assert [round(it.gain, 2) for it in found if it is not None] == [0.67, 0.67]
    assert {line.split()[-1] for line in diary.read_text().splitlines()} == {"abreast"}


def open_batch() -> ModelProto:
    """Return two matrix products and a relu, for any number of rows."""
    nodes = [
        make_node("MatMul", ["x", "u"], ["up"]),
        make_node("Relu", ["up"], ["active"]),
        make_node("MatMul", ["active", "d"], ["y"]),
    ]
    return model(nodes, {"x": ("batch", 16)}, ["y"], [floats("u", (16, 64)), floats("d", (64, 16))])


def test_a_model_that_the_memory_does_not_hold_for_both_executions_is_refused(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = fingerprint()
    monkeypatch.setattr("dlbricks_tui.analysis.proving.fingerprint", lambda: replace(host, memory_bytes=1 << 20))
    (outcome,) = lab.prove(what_if(faster()))
    assert outcome.failure == "the memory of this host does not hold the model twice, for both executions"


def by_real_runtimes(tmp_path: Path, changes: Mapping[str, tuple[Execution, Execution]]) -> dict[str, Outcome]:
    lab = Lab(Site(tmp_path / "data", INSIDE), source_of(saved(tmp_path, open_batch())), Notes())
    found = lab.prove(*(what_if(after, before, name) for name, (before, after) in changes.items()))
    return {it.what_if.id: it for it in found}


# The fake worker proves a setting; a real runtime with other threads is the same one with another setting.
@pytest.mark.parametrize(
    "names",
    [
        ("all at once",),
        pytest.param(("fusion", "runtime-openvino", "threads-2", "parallel-2", "batch-4"), marks=pytest.mark.soak),
    ],
    ids=" ".join,
)
def test_real_runtimes_prove_fusion_batch_and_another_runtime(tmp_path: Path, names: Sequence[str]) -> None:
    registry = Registry(tmp_path / "data")
    onnxruntime, openvino = (registry.find(name).with_threads(1) for name in ("onnxruntime", "openvino"))
    written, usual = Execution(onnxruntime, Level.WRITTEN), Execution(onnxruntime, Level.FUSED)
    changes = {
        "all at once": (written, Execution(openvino, Level.FUSED, batch_size=4)),
        "fusion": (written, usual),
        "runtime-openvino": (usual, Execution(openvino, Level.FUSED)),
        "threads-2": (usual, Execution(onnxruntime.with_threads(2), Level.FUSED)),
        "parallel-2": (usual, Execution(onnxruntime.side_by_side(2), Level.FUSED)),
        "batch-4": (usual, replace(usual, batch_size=4)),
    }
    found = by_real_runtimes(tmp_path, {name: changes[name] for name in names})
    assert {name: it.failure for name, it in found.items() if it.proof is None} == {}
    proofs = {name: it.proof for name, it in found.items() if it.proof is not None}
    assert [it.level for it in proofs.values()] == [Level.WRITTEN, *[Level.FUSED] * (len(names) - 1)]
    assert {it.changed_level for it in proofs.values()} == {Level.FUSED}
    assert [name for name, it in proofs.items() if it.changed_batch_size == 4] == [names[-1]]
    assert verify(tmp_path / "data" / "store").implausible == ()
