"""Language models on the hosts of a fleet: their sizes travel, and bricks, peaks and estimates come back."""

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from dlbricks_tui.api.documents import document
from dlbricks_tui.api.fleets import FleetJob, FleetOptions, fleet_request, fleet_result
from dlbricks_tui.api.language_answers import LanguageOptions
from dlbricks_tui.api.language_measuring import measure_models
from dlbricks_tui.api.language_models import language_on_systems
from dlbricks_tui.documents.fleet import fleet_parts
from dlbricks_tui.fleet import answering
from dlbricks_tui.fleet.at_host import carry_out_task
from dlbricks_tui.fleet.driver import FleetPlace, execute_fleet
from dlbricks_tui.fleet.folder import FleetFolder, create_fleet, read_fleet_request
from dlbricks_tui.fleet.messages import HostMessage, Task, message_in, text_of
from dlbricks_tui.fleet.request import FleetHostState, FleetRequest, HostEntry, MessageError
from dlbricks_tui.fleet.scheduler import Certificates
from dlbricks_tui.fleet.workload import LanguagePart
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.host.fingerprint import fingerprint
from dlbricks_tui.host.queue import HostQueue
from dlbricks_tui.jobs.folder import JobFolder, State
from dlbricks_tui.jobs.process import work_on
from dlbricks_tui.language.architecture import LanguageError, WeightPrecision
from dlbricks_tui.language.composing import PROTOCOL
from dlbricks_tui.language.opening import NamedModel, open_language_model
from dlbricks_tui.language.orders import LANGUAGE, LanguageQuestion
from dlbricks_tui.language.predicting import HostRates, usual_ms, work_of
from dlbricks_tui.measure.method import Method
from dlbricks_tui.models.graph import Level
from dlbricks_tui.runs.request import RunRequest
from dlbricks_tui.runs.work import Workplace
from dlbricks_tui.runtime.registry import Registry
from dlbricks_tui.runtime.runtime import Runtime
from dlbricks_tui.settings.measuring import Question
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.records import Measurement, Peaks
from tests.documents.test_language import text_of as drawn
from tests.fleet.cluster import Cluster
from tests.fleet.fake_engine import FakeEngine, FakeHost, another_system, record_text
from tests.fleet.fake_hosts import records
from tests.language.bench import TINY
from tests.language.conftest import _few_rounds  # noqa: F401 - a fixture
from tests.language.stored import peaks_of
from tests.store.samples import measurement

MODEL = open_language_model("smollm2-135m")
RATES = HostRates(15e6, 60e6)


@pytest.fixture
def data(tmp_path: Path) -> DataFolder:
    return DataFolder(tmp_path / "home")


def runtime_here(data: DataFolder) -> Runtime:
    return Registry(data.path).find("onnxruntime").with_threads(1)


def question(data: DataFolder, model: NamedModel = MODEL) -> LanguageQuestion:
    return LanguageQuestion(model, runtime_here(data), WeightPrecision.INT4, 24, 9)


def run_without_models(data: DataFolder) -> RunRequest:
    return RunRequest(models=(), runtime=runtime_here(data), method=Method.INSIDE)


def part_of(data: DataFolder, model: NamedModel = MODEL) -> LanguagePart:
    return LanguagePart.of(question(data, model), run_without_models(data))


def task_of(data: DataFolder, model: NamedModel = TINY, *, is_probe: bool = False) -> Task:
    part = part_of(data, model)
    bricks = tuple(job.key.brick for job in part.chosen(part.jobs, is_probe=is_probe))
    order = part.order(is_probe=is_probe)
    return Task(id="task-1", request=part.request, bricks=bricks, language=order)


def test_the_sizes_of_a_model_travel_and_its_name_stays(data: DataFolder) -> None:
    secret = NamedModel("secret-plan", TINY.architecture, "Secret Plan", "me/secret")
    task = task_of(data, secret)
    text = text_of(task)
    assert "secret" not in text.casefold() and json.dumps(runtime_here(data).python) not in text
    found = message_in(text, Task)
    assert found.language is not None and task.language is not None
    assert found.language.questions[0].model.architecture == secret.architecture
    assert found.language.steps == task.language.steps and found.bricks == task.bricks
    impossible = text.replace('"blocks":8', '"blocks":-8')
    assert impossible != text
    with pytest.raises(MessageError, match="number of blocks"):
        message_in(impossible, Task)


# On a host.


@dataclass
class Host:
    """A host whose jobs are done in this process."""

    data: DataFolder
    queue: HostQueue
    started: int = 0

    def carry_out(self, task: Task) -> list[Any]:
        told: list[HostMessage] = []
        ended = carry_out_task(self.data, message_in(text_of(task), Task), [], told.append, self.start, lambda: None)
        return [*told, ended]

    def start(self, folder: JobFolder, data: DataFolder) -> None:
        self.started += 1
        place = Workplace(data)
        work_on(
            LANGUAGE, folder, data, lambda job: measure_models(job.request, place, job.tell, job.signals, self.queue)
        )


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    monkeypatch.setattr("dlbricks_tui.language.predicting.quick_peaks", peaks_of)
    return Host(DataFolder(tmp_path / "host"), HostQueue(tmp_path / "host.lock"))


def test_a_host_measures_once_and_sends_bricks_and_peaks(data: DataFolder, host: Host) -> None:
    probe, task = task_of(data, is_probe=True), task_of(data)
    assert 0 < len(probe.bricks) < len(task.bricks)
    *told, ended = host.carry_out(probe)
    assert (ended.state, host.started) == ("finished", 1)
    assert {it["brick"] for it in records(told, "measurements")} == {*probe.bricks}
    (peaks,) = records(told, "peaks")
    assert (peaks["system"], peaks["threads"]) == (fingerprint().id, 1)

    *told, ended = host.carry_out(replace(task, id="task-2"))
    assert (ended.state, host.started) == ("finished", 2)
    assert {it["brick"] for it in records(told, "measurements")} == {*task.bricks}
    assert {it["protocol"] for it in records(told, "measurements")} == {PROTOCOL}

    *told, ended = host.carry_out(replace(task, id="task-3"))
    assert (ended.state, host.started) == ("finished", 2), "its store has everything"
    assert {it["brick"] for it in records(told, "measurements")} == {*task.bricks}


def test_what_a_host_cannot_measure_is_told(data: DataFolder, host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise LanguageError("no room")

    monkeypatch.setattr("dlbricks_tui.api.language_measuring.carrier_jobs", refuse)
    ended = host.carry_out(task_of(data))[-1]
    assert (ended.state, ended.note) == ("finished", "model, ONNX Runtime, int4, 1 thread: not measured: no room")


# At home.


@dataclass(slots=True)
class Measurer(FakeHost):
    """A host whose bricks take so many times the usual latency."""

    times: float = 1.0
    forms: Any = None

    def result(self, brick: str, **changes: Any) -> Measurement:
        ms = self.times * usual_ms(work_of(self.forms[brick]), RATES)
        runtime = self.changes["runtimes"][0]
        way = {"system": self.system.id, "runtime": runtime, "protocol": PROTOCOL, "level": Level.FUSED}
        return measurement(ms, brick=brick, context="", run=f"run on {self.name}", **way)


def fleet(data: DataFolder, *hosts: Measurer, model: NamedModel = MODEL, **changes: Any) -> tuple[FleetFolder, Any]:
    """Drive a fleet run to its end; return its folder and its result."""
    entries = tuple(HostEntry(name=it.name, price_per_hour=it.times * 0.36) for it in hosts)
    request = FleetRequest(run=run_without_models(data), hosts=entries, language=(question(data, model),), **changes)
    folder = create_fleet(request, data)
    engine = FakeEngine(hosts)
    execute_fleet(folder, FleetPlace(data, reach_hosts=lambda *_: engine, clock=engine.clock))
    return folder, fleet_result(folder.state(), folder.progress())


def measurer(data: DataFolder, name: str, times: float, memory_bytes: int = 64 << 30) -> Measurer:
    # In another version of Python.
    there = replace(runtime_here(data), python_version="3.13")
    report = there.identity
    forms = {job.key.brick: job.canonical for job in part_of(data).jobs.values()}
    described = replace(another_system(name), memory_bytes=memory_bytes)
    return Measurer(name, described, times=times, forms=forms, changes={"runtimes": (report,)})


def test_estimates_of_hosts_have_tokens_per_second_and_their_cost(data: DataFolder) -> None:
    folder, found = fleet(data, measurer(data, "quick", 1.0), measurer(data, "slow", 2.0))
    assert folder.state().state is State.FINISHED and folder.state().models == (MODEL.name,)
    (model,) = found.models
    assert model.model == "smollm2-135m, int4, per token"
    quick, slow = model.estimates
    assert (quick.host, quick.predicted_layers, quick.fits) == ("quick", 0, True)
    assert slow.sequential_ms == pytest.approx(2 * quick.sequential_ms, rel=1e-6)
    assert slow.first_token_ms == pytest.approx(2 * quick.first_token_ms, rel=1e-6)
    # Dollars an hour over tokens an hour.
    for it, price in ((quick, 0.36), (slow, 0.72)):
        assert it.per_second == pytest.approx(1000 / it.sequential_ms)
        assert it.dollars_per_million == pytest.approx(price / (3600 * it.per_second) * 1e6)
    assert (model.order, model.settled) == ((("quick",), ("slow",)), True)
    # Each host had its probe, then the rest; the results are in the store here.
    with ResultsDatabase(data.store) as store:
        assert {it.protocol for it in store.records(Measurement)} == {PROTOCOL}
    options = LanguageOptions(prompt=24, generate=9, threads=(1,))
    here = {it.system: it for it in language_on_systems([MODEL], options, data, ["quick-4c", "slow-4c"])}
    assert here["quick-4c"].decode_tokens_per_second == pytest.approx(quick.per_second)
    assert document(found)["models"][0]["estimates"][0]["first_token_ms"] == quick.first_token_ms


def test_the_question_which_host_ends_after_the_probes_of_hosts_that_differ_much(
    data: DataFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The hosts of this test take no time, and estimates do.
    monkeypatch.setattr(answering, "_SHARE_OF_TIME", 1e9)
    hosts = [measurer(data, "quick", 1.0), measurer(data, "slow", 9.0)]
    folder, found = fleet(data, *hosts, question=Question.WHICH_HOST)
    assert found.models[0].settled and found.models[0].order == (("quick",), ("slow",))
    assert folder.state().state is State.FINISHED
    assert {it.message for it in folder.progress().hosts.values()} == {"the order of the hosts is settled"}
    assert all(it.predicted_layers for it in found.models[0].estimates), "the rest was not measured"


def test_words_name_tokens_and_what_does_not_fit(data: DataFolder) -> None:
    folder, found = fleet(data, measurer(data, "quick", 1.0), measurer(data, "tiny", 2.0, memory_bytes=1 << 26))
    text = drawn([*fleet_parts(found, tuple(folder.progress().hosts.values()))], 80)
    assert max(map(len, text.splitlines())) <= 80
    assert "TOKENS/S" in text.upper() and "does not fit" in text
    assert "prices are of a million generated tokens" in " ".join(text.split())
    tiny = next(it for it in found.models[0].estimates if it.host == "tiny")
    assert (tiny.fits, tiny.per_second, tiny.dollars_per_million) == (False, None, None)


def test_peaks_of_another_system_are_distrusted(data: DataFolder) -> None:
    def lie(host: FakeHost, task: Task, brick: str) -> list[str]:
        return [record_text(replace(peaks_of("another", 1), uuid="c" * 32))]

    liar = replace(measurer(data, "liar", 1.0), lie=lie)
    folder, _ = fleet(data, liar, measurer(data, "honest", 1.0))
    row = folder.progress().hosts["liar"]
    assert row.state is FleetHostState.DISTRUSTED and "another system" in row.message
    with ResultsDatabase(data.store) as store:
        assert not store.records(Peaks)


# The request.


def test_options_become_a_request_that_is_read_back(data: DataFolder) -> None:
    options = FleetOptions(
        scheduler="tcp://127.0.0.1:1",
        language_models=("smollm2-135m", "qwen2.5-0.5b", "smollm2-135m"),
        language=LanguageOptions(prompt=64, generate=16, precisions=(WeightPrecision.INT8, WeightPrecision.F32)),
    )
    request = fleet_request(options, (), data)
    assert request.model_names == ("smollm2-135m", "qwen2.5-0.5b")
    assert [it.precision.value for it in request.language] == ["int8", "f32"] * 2
    # Each host starts its usual number of threads.
    assert {it.runtime.settings.threads for it in request.language} == {None}
    assert read_fleet_request(create_fleet(request, data).request_file) == request


@pytest.mark.soak
def test_real_hosts_measure_over_tls(tmp_path: Path, data: DataFolder) -> None:
    certificates = Certificates(data.certificates)
    certificates.create()
    (tmp_path / "cluster").mkdir()
    cluster = Cluster(tmp_path / "cluster", certificates)
    try:
        cluster.start(2)
        options = FleetOptions(scheduler=cluster.address, language_models=("smollm2-135m",))
        request = fleet_request(options, (), data)
        asked = replace(request.language[0], model=TINY, prompt=24, generate=9)
        folder = create_fleet(replace(request, language=(asked,)), data)
        state = FleetJob(folder, data).drive(None)
    finally:
        cluster.stop()
    assert (state.state, state.message) == (State.FINISHED, "")
    assert {it.state for it in folder.progress().hosts.values()} == {FleetHostState.DONE}
    (model,) = fleet_result(state, folder.progress()).models
    assert {it.host for it in model.estimates if it.per_second and not it.predicted_layers} == {"one", "two"}
    with ResultsDatabase(data.store) as store:
        assert {it.threads for it in store.peaks()} == {1, 2}
