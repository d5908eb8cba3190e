"""Scenarios measured by the real LoadGen: with the fake worker, and in a process of its own with ONNX Runtime."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from onnx.helper import make_node

from dlbricks_tui.analysis.what_if import Execution
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.host.fingerprint import fingerprint
from dlbricks_tui.host.noise import Contention
from dlbricks_tui.host.queue import Ticket
from dlbricks_tui.jobs.events import Event, JobEnded, Waiting, follow
from dlbricks_tui.models.graph import Level
from dlbricks_tui.models.library import source_of
from dlbricks_tui.models.loading import Loader
from dlbricks_tui.runtime.registry import Registry
from dlbricks_tui.scenarios.kinds import ScenarioKind
from dlbricks_tui.scenarios.load_tests import Clocks, LoadFinding, LoadTests
from dlbricks_tui.scenarios.loadgen import LoadSettings
from dlbricks_tui.scenarios.measuring import LoadRule
from dlbricks_tui.scenarios.scenario import (
    LOAD_TEST,
    LoadDone,
    LoadProgress,
    LoadReady,
    LoadTestDone,
    LoadTestsKept,
    LoadTestStarted,
    ScenarioOrder,
    fewest_queries,
    measured_load,
)
from dlbricks_tui.scenarios.serving import Serving
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.documents import NoRoomError, StoreError
from dlbricks_tui.store.records import LoadTest, Record
from dlbricks_tui.store.statistics import unpack_latencies
from dlbricks_tui.store.verification import verify
from tests.host.lines import turn_of
from tests.jobs.carrying import fake
from tests.models.onnx_models import floats, model, saved
from tests.models.table_framework import TableFramework
from tests.runs.runs import MODEL, ROOT, Site
from tests.scenarios.load import PERCENTILE, QUERIES, QUICK, Host, logs_of, scenario, workers

# The latency that the fake worker invents.
INFERENCE_MS = 8.066

pytest.importorskip("mlperf_loadgen")


@pytest.fixture
def host(tmp_path: Path, shared_cache: None) -> Host:
    return Host(Site(tmp_path / "data"))


@pytest.fixture
def batch_host(host: Host) -> Host:
    """The host with the model at several batch sizes: the fake worker infers no types, so they are in the cache."""
    for size in (2, 4):
        Loader(host.site.data.cache, TableFramework("mxnet-1.9.1")).load(host.source, Level.WRITTEN, batch_size=size)
    return host


@pytest.fixture
def short_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let each test of a search be short, and the second rate be far too high.

    LoadGen goes on with a search that has ended early, in which every rate passes, until it has found the highest.
    """
    monkeypatch.setattr("dlbricks_tui.scenarios.load_tests._STEP", 30.0)
    monkeypatch.setattr("dlbricks_tui.scenarios.load_tests._BOUNDS_IN_A_TEST", 1.25)


def why(host: Host) -> str:
    """Return the one line that tells why a scenario was not measured, if nothing was left behind."""
    assert isinstance(host.told[-1], JobEnded)
    # Not even a zombie.
    assert workers(host) == []
    turn_of(host.site.queue, "next", host.site.data.path).leave()
    assert "\n" not in host.told[-1].message
    return host.told[-1].message


def test_a_single_stream_is_told_and_stored_with_its_latencies_its_verdict_its_logs_and_its_origin(
    host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # LoadGen would read its settings from there.
    (tmp_path / "audit.config").write_text("*.SingleStream.min_query_count = 100\n*.SingleStream.min_duration = 9000\n")
    monkeypatch.chdir(tmp_path)
    told_in_line: list[tuple[float, float]] = []
    monkeypatch.setattr(Ticket, "progress", lambda _, share, left: told_in_line.append((share, left)))
    assert fewest_queries(PERCENTILE) == QUERIES
    assert host.measure(scenario(ScenarioKind.SINGLE), evaluation="nightly", unmet=("turbo is on",))
    # Its figures are final then.
    assert told_in_line[0][1] > 0 and told_in_line[-2:] == [(0.99, 0.0)] * 2
    (record,) = host.records()
    assert (record.name, record.kind, record.valid, record.reasons) == (MODEL, "single", True, ())
    assert (record.percentile, record.batch_size, record.instances) == (PERCENTILE, 1, 1)
    assert 100 > len(unpack_latencies(record.latencies)) == record.queries >= QUERIES
    assert (record.rate, record.sought) == (None, False)

    ready, started, progress, done, ended = host.told
    assert isinstance(ready, LoadReady) and isinstance(progress, LoadProgress) and isinstance(done, LoadTestDone)
    assert isinstance(started, LoadTestStarted) and isinstance(ended, LoadDone)
    assert (started.number, started.rate, started.batch_size, started.queries) == (1, None, 1, QUERIES)
    assert progress.queries == len(progress.latencies_ms) == record.queries
    assert (done.passed, done.per_second, ended.uuid) == (True, record.per_second, record.uuid)
    assert ready.service_ms == pytest.approx(INFERENCE_MS, rel=0.01)
    assert (max(0.0, ready.passing_ms), ready.wake_up_ms) == (record.passing_ms, record.wake_up_ms)

    folder = logs_of(host.told)
    assert folder == host.site.data.scenarios / record.uuid
    kept = sorted(it.name for it in (folder / "loadgen-1").iterdir())
    assert kept == [f"mlperf_log_{it}" for it in ("accuracy.json", "detail.txt", "summary.txt", "trace.json.gz")]

    with ResultsDatabase(host.site.data.store) as store:
        found = store.provenance_of(record.uuid, record.runtime)
    assert found is not None and dict(found.packages)["onednn"] == "2.4.0"
    assert record.model in dict(found.models)
    assert (found.evaluation, found.unmet) == ("nightly", ("turbo is on",))


def test_a_server_waits_for_its_turn_and_gets_requests_at_the_rate_and_the_fewest_that_decide(host: Host) -> None:
    other = turn_of(host.site.queue, "20261126-0800-aa", host.site.data.path)
    host.act = lambda message: other.leave() if isinstance(message, Waiting) else None
    assert host.measure(scenario(ScenarioKind.SERVER, rate=500.0, bound_ms=1000.0))
    assert "20261126-0800-aa" in host.messages(Waiting)[0].holder
    (record,) = host.records()
    assert (record.rate, record.sought, record.queries, record.valid) == (500.0, False, QUERIES, True)
    (started,) = host.messages(LoadTestStarted)
    assert (started.rate, started.queries) == (500.0, QUERIES)
    assert started.seconds_left == pytest.approx(QUERIES / 500.0)


def test_a_server_over_its_bound_is_stored_with_the_verdict_of_loadgen_and_latencies_since_requests_were_due(
    host: Host,
) -> None:
    # Each request takes longer than the time between two of them: they wait for longer and longer.
    assert host.measure(scenario(ScenarioKind.SERVER, rate=1000.0, bound_ms=0.001), fake(FAKE_NAP="0.02"))
    (record,) = host.records()
    assert not record.valid
    assert record.reasons[0] == "performance constraints not satisfied"
    assert "more requests within the bound would be needed to decide" in record.reasons[-1]
    (done,) = host.messages(LoadTestDone)
    assert not done.passed
    latencies_ns = unpack_latencies(record.latencies)
    assert min(latencies_ns) >= 20e6
    assert latencies_ns[-1] >= 0.8 * QUERIES * 20e6
    assert measured_load(record).p99_ms >= 0.8 * QUERIES * 20


def test_the_best_batch_size_counts_offline(batch_host: Host) -> None:
    host = batch_host
    # A batch of four takes as long as a single request.
    assert host.measure(scenario(ScenarioKind.OFFLINE, batch_sizes=(1, 4)), fake(FAKE_NAP="0.005"))
    (record,) = host.records()
    done = host.messages(LoadTestDone)
    assert [it.batch_size for it in done] == [1, 4]
    assert [it.tests - it.number for it in host.messages(LoadTestStarted)] == [1, 0]
    assert (record.kind, record.batch_size, record.per_second) == ("offline", 4, done[1].per_second)
    assert record.per_second > done[0].per_second
    assert record.queries == len(unpack_latencies(record.latencies)) >= QUICK.offline_samples


def test_an_offline_test_that_ends_too_early_is_repeated_with_more_samples(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, tried = LoadTests.run, list[LoadFinding]()

    def early(tests: LoadTests, settings: LoadSettings, batch_size: int) -> LoadFinding:
        found = run(tests, settings, batch_size)
        if len(tried) < 2:
            verdict = replace(found.verdict, valid=False, reasons=("min duration not satisfied",))
            latencies = replace(found.latencies, seconds=settings.seconds / 2)
            found = found._replace(verdict=verdict, latencies=latencies)
        tried.append(found)
        return found

    monkeypatch.setattr(LoadTests, "run", early)
    host.rule = replace(QUICK, seconds=0.05)
    assert host.measure(scenario(ScenarioKind.OFFLINE))
    (record,) = host.records()
    assert record.valid and record.seconds >= 0.05
    (ready,) = host.messages(LoadReady)
    assert tried[0].settings.expected_ms == pytest.approx((ready.service_ms + max(0.0, ready.passing_ms)) / 1.15)
    # A host that is busy may end a test too early as well.
    assert [it.verdict.valid for it in tried[:2]] == [False, False] and tried[-1].verdict.valid
    for attempt in (1, 2):
        # By the throughput of the test before, and some more each time.
        expected_ms = 1000 / tried[attempt - 1].per_second / 1.15 ** (attempt + 1)
        assert tried[attempt].settings.expected_ms == pytest.approx(expected_ms)


def test_the_highest_rate_is_found_and_confirmed(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"_STEP": 1.0, "_RESOLUTION": 0.5, "_BOUNDS_IN_A_TEST": 3, "_CONFIRM": 0.3}.items():
        monkeypatch.setattr(f"dlbricks_tui.scenarios.load_tests.{name}", value)
    # Two hundred a second in the long run. A rate that is expected far too high is not tried.
    assert host.measure(scenario(ScenarioKind.SERVER, bound_ms=40.0), fake(FAKE_NAP="0.005"), first_rate=1e6)
    (record,) = host.records()
    assert record.sought
    assert record.valid
    assert record.rate is not None and 1.0 < record.rate < 400.0
    done = host.messages(LoadTestDone)
    assert len(done) >= 3
    assert [it.number for it in done] == list(range(1, len(done) + 1))
    assert {it.passed for it in done} == {True, False}
    assert record.rate in [it.rate for it in done if it.passed]
    started = host.messages(LoadTestStarted)
    assert [it.rate for it in started] == [it.rate for it in done]
    assert [it.tests for it in started] == [max(7, it.number + 1) for it in started]


@pytest.mark.usefixtures("short_search")
def test_the_tests_of_a_cancelled_search_are_stored_as_tests_at_their_rates(host: Host) -> None:
    def cancel(message: Event) -> None:
        if isinstance(message, LoadTestStarted) and message.number == 3:
            os.kill(os.getpid(), signal.SIGTERM)

    host.act = cancel
    assert not host.measure(scenario(ScenarioKind.SERVER, bound_ms=40.0), fake(FAKE_NAP="0.005"), first_rate=100.0)
    assert why(host) == "it was cancelled"
    assert host.messages(LoadTestsKept) == [LoadTestsKept(tests=2)]
    done, records = host.messages(LoadTestDone), sorted(host.records(), key=lambda it: it.when)
    assert [(it.rate, it.valid, it.per_second) for it in records] == [
        (it.rate, it.passed, it.per_second) for it in done
    ]
    assert [(it.sought, it.bound_ms) for it in records] == [(False, 40.0)] * 2
    assert all(it.queries == len(unpack_latencies(it.latencies)) >= QUERIES for it in records)
    # The last one has the folder of LoadGen's logs.
    assert logs_of(host.told) == host.site.data.scenarios / records[-1].uuid


@pytest.mark.usefixtures("short_search")
def test_a_search_that_fails_and_whose_tests_cannot_be_stored_tells_both_reasons(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise StoreError("cannot write the journal: free some space")

    def kill(message: Event) -> None:
        if isinstance(message, LoadTestStarted) and message.number == 3:
            monkeypatch.setattr("dlbricks_tui.scenarios.measuring.ResultsDatabase", refuse)
            for pid in workers(host):
                os.kill(pid, signal.SIGKILL)

    host.act = kill
    assert not host.measure(scenario(ScenarioKind.SERVER, bound_ms=40.0), fake(FAKE_NAP="0.005"), first_rate=100.0)
    reason = why(host)
    assert "was killed by SIGKILL" in reason
    assert "; the 2 tests that had ended could not be stored: cannot write the journal: free some space" in reason


def test_on_a_full_disk_the_traces_make_room_for_the_result(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    def traces() -> list[Path]:
        return list(logs_of(host.told).glob("*/*trace*"))

    class FullDisk(ResultsDatabase):
        """A store on a disk that is full while LoadGen's traces are there."""

        def add(self, *records: Record) -> int:
            if traces():
                raise NoRoomError("cannot write the journal: No space left on device")
            return super().add(*records)

    monkeypatch.setattr("dlbricks_tui.scenarios.measuring.ResultsDatabase", FullDisk)
    assert host.measure(scenario(ScenarioKind.SINGLE))
    assert len(host.records()) == 1
    (done,) = host.messages(LoadDone)
    assert done.warnings[-1] == "the disk is full: LoadGen's traces were deleted to store the result"
    assert traces() == []


def test_a_full_test_goes_on_for_its_duration(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dlbricks_tui.scenarios.scenario.FULL_SECONDS", 0.2)
    full = scenario(ScenarioKind.SINGLE, full=True)
    host.rule = replace(LoadRule.of(full), warm_seconds=0.0, pause_seconds=0.0)
    assert host.measure(full, fake(FAKE_NAP="0.002"))
    (record,) = host.records()
    for kind in ScenarioKind:
        rule = LoadRule.of(scenario(kind, full=True, bound_ms=1000.0 if kind is ScenarioKind.SERVER else None))
        assert (rule.seconds, rule.offline_samples) == (0.2, 24_576)
        assert LoadRule.of(scenario(kind)).offline_samples == 24
    # LoadGen counts it from a moment before the first request.
    assert record.seconds >= 0.1
    assert record.queries > QUERIES


def test_a_bound_below_the_time_of_a_single_request_is_told_at_once(host: Host) -> None:
    assert not host.measure(scenario(ScenarioKind.SERVER, bound_ms=2.0), fake(FAKE_NAP="0.005"))
    assert why(host).startswith("bound 2 ms: a request that never waits takes ")
    assert host.messages(LoadTestStarted) == []


@pytest.mark.parametrize(
    ("manner", "reason"), [("unbuildable", "the operator is unbuildable"), ("crash on sample", "was killed by SIGSEGV")]
)
def test_a_model_that_does_not_run_is_told_in_one_line(host: Host, manner: str, reason: str) -> None:
    assert not host.measure(scenario(ScenarioKind.SINGLE), fake(FAKE_MANNERS=json.dumps({"Convolution": manner})))
    assert reason in why(host)
    assert host.records() == []


def test_a_worker_that_hangs_does_not_keep_a_scenario_from_being_cancelled(host: Host, tmp_path: Path) -> None:
    slow = tmp_path / "slow"

    def cancel(message: Event) -> None:
        if isinstance(message, LoadReady):
            slow.touch()
        if isinstance(message, LoadTestStarted):
            os.kill(os.getpid(), signal.SIGTERM)

    host.act = cancel
    assert not host.measure(scenario(ScenarioKind.SINGLE), fake(FAKE_SLOW=str(slow), FAKE_NAP="600"))
    assert why(host) == "it was cancelled"


def jumping(host: Host, step: float) -> None:
    """Let the clock of a host jump when a test has started."""
    ahead = [0.0]

    def jump(message: Event) -> None:
        if isinstance(message, LoadTestStarted):
            ahead[0] = step

    host.act, host.clocks = jump, Clocks(host=lambda: Clocks().host() + ahead[0])


def test_a_clock_that_jumps_and_programs_that_take_the_processor_are_told(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    waited = iter([0.0, 60.0])
    monkeypatch.setattr(Serving, "contention", lambda _: [Contention(next(waited), 0)])
    jumping(host, 3600.0)
    assert host.measure(scenario(ScenarioKind.SINGLE))
    (done,) = host.messages(LoadDone)
    # A busy host adds warnings.
    (warning,) = [it for it in done.warnings if "clock" in it]
    assert warning.startswith("the clock of this host jumped by +3,600.0 s during a test")
    (record,) = host.records()
    assert not record.valid
    assert record.reasons[-1] == warning
    assert any(it.startswith("the model had to wait for a processor for ") for it in done.warnings)


def test_a_clock_that_is_set_back_ends_the_scenario(host: Host) -> None:
    jumping(host, -3600.0)
    assert not host.measure(scenario(ScenarioKind.SERVER, rate=20.0))
    assert "was set back by 3,600.0 s" in why(host)


def test_without_loadgen_one_line_names_the_extra(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mlperf_loadgen", None)
    assert not host.measure(scenario(ScenarioKind.SINGLE))
    assert "pip install 'dlbricks-tui[scenarios]'" in why(host)


def test_instances_that_the_memory_does_not_hold_are_refused(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    small = replace(fingerprint(), memory_bytes=1 << 20)
    monkeypatch.setattr("dlbricks_tui.scenarios.measuring.fingerprint", lambda: small)
    assert not host.measure(scenario(ScenarioKind.SINGLE, instances=4))
    assert "4 instances, each with the model at 1 batch sizes, need" in why(host)


# The process that measures a scenario, with fewer single requests before its tests.
QUICK_PROCESS = """
import sys
from dataclasses import replace
from dlbricks_tui.scenarios import measuring
usual = measuring.LoadRule.of
measuring.LoadRule.of = lambda scenario: replace(usual(scenario), warm_seconds=0.05)
measuring.main(*sys.argv[1:])
"""


def test_a_real_model_is_measured_in_batches_on_two_instances(tmp_path: Path) -> None:
    asked = scenario(ScenarioKind.SERVER, rate=500.0, bound_ms=500.0, batch_sizes=(1, 2), instances=2)
    data = DataFolder(tmp_path / "data")
    # Two matrix products, for any number of rows.
    nodes = [make_node("MatMul", ["x", "u"], ["up"]), make_node("MatMul", ["up", "d"], ["y"])]
    net = model(nodes, {"x": ("batch", 16)}, ["y"], [floats("u", (16, 64)), floats("d", (64, 16))])
    execution = Execution(Registry(data.path).find("onnxruntime").with_threads(1), Level.FUSED)
    order = ScenarioOrder(source=source_of(saved(tmp_path, net)), execution=execution, scenario=asked)
    job = LOAD_TEST.create(data, (order.source.name,), order)
    command = [sys.executable, "-c", QUICK_PROCESS, str(job.path), str(data.path)]
    environment = {**os.environ, "DLBRICKS_HOST_LOCK": str(tmp_path / "host.lock")}
    process = subprocess.Popen(command, cwd=ROOT, env=environment)
    *_, done, _ = follow(LOAD_TEST.reader(job), lambda: process.poll() is None, lambda: time.sleep(0.05))
    assert process.wait() == 0
    assert isinstance(done, LoadDone)
    with ResultsDatabase(data.store) as store:
        (record,) = store.records(LoadTest)
    assert record.uuid == done.uuid
    assert (record.percentile, record.batch_size, record.instances, record.level) == (PERCENTILE, 2, 2, Level.FUSED)
    assert record.valid
    assert 0 < measured_load(record).p50_ms < 500
    assert verify(data.store).implausible == ()
