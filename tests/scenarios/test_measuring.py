"""Scenarios measured by the real LoadGen, with requests to the fake worker."""

import json
import os
import signal
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dlbricks_tui.host.contention import Contention
from dlbricks_tui.host.fingerprint import fingerprint
from dlbricks_tui.scenarios.load_tests import Clocks
from dlbricks_tui.scenarios.loadgen import LoadGenTest
from dlbricks_tui.scenarios.measuring import LoadRule
from dlbricks_tui.scenarios.messages import (
    LoadDone,
    LoadFailed,
    LoadMessage,
    LoadProgress,
    LoadReady,
    LoadTestDone,
    LoadTestsKept,
    LoadTestStarted,
    LoadWaits,
)
from dlbricks_tui.scenarios.outcome import measured_load
from dlbricks_tui.scenarios.scenario import Kind, ScenarioError, fewest_queries
from dlbricks_tui.scenarios.serving import Instance, Serving
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.errors import NoRoomError, StoreError
from dlbricks_tui.store.packed_latencies import unpack_latencies
from dlbricks_tui.store.records import Record
from dlbricks_tui.store.verification import verify
from tests.host.lines import turn_of
from tests.runs.runs import MODEL, Site
from tests.scenarios.load import PERCENTILE, QUERIES, QUICK, Host, fake, logs_of, scenario, workers

# The latency that the fake worker invents.
INFERENCE_MS = 8.066

pytest.importorskip("mlperf_loadgen")


@pytest.fixture
def host(tmp_path: Path, shared_cache: None) -> Host:
    return Host(Site(tmp_path / "data"))


@pytest.fixture
def large_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Double the rate from test to test.

    LoadGen goes on with a cancelled search, in which every rate passes, until the rate is too large for a number.
    """
    monkeypatch.setattr("dlbricks_tui.scenarios.rate_search._STEP", 1.0)


def why(host: Host) -> str:
    """Return the one line that tells why a scenario was not measured, if nothing was left behind."""
    assert isinstance(host.told[-1], LoadFailed)
    # Not even a zombie.
    assert workers(host) == []
    turn_of(host.site.queue, "next", host.site.data.path).leave()
    assert "\n" not in host.told[-1].reason
    return host.told[-1].reason


def test_a_single_stream_is_stored_with_the_latency_of_each_query_and_the_verdict(host: Host) -> None:
    assert fewest_queries(PERCENTILE) == QUERIES
    assert host.measure(scenario(Kind.SINGLE))
    (record,) = host.records()
    assert (record.name, record.kind, record.valid, record.reasons) == (MODEL, "single", True, ())
    assert (record.percentile, record.batch_size, record.instances) == (PERCENTILE, 1, 1)
    assert len(unpack_latencies(record.latencies)) == record.queries >= QUERIES
    assert (record.rate, record.sought) == (None, False)
    assert [it.uuid for it in host.messages(LoadDone)] == [record.uuid]
    assert verify(host.site.data.store).implausible == ()


def test_the_messages_tell_the_way_from_the_loaded_model_to_the_record(host: Host) -> None:
    host.measure(scenario(Kind.SINGLE))
    kinds = [type(it) for it in host.told]
    assert kinds == [LoadReady, LoadTestStarted, LoadProgress, LoadTestDone, LoadDone]
    ready, started, progress, done, _ = host.told
    assert isinstance(ready, LoadReady) and isinstance(progress, LoadProgress) and isinstance(done, LoadTestDone)
    assert isinstance(started, LoadTestStarted)
    assert (started.number, started.rate, started.batch_size, started.queries) == (1, None, 1, QUERIES)
    assert progress.queries == len(progress.latencies_ms) == host.records()[0].queries
    assert done.passed
    assert done.per_second == host.records()[0].per_second


def test_a_server_gets_requests_at_the_rate_and_the_fewest_that_decide(host: Host) -> None:
    assert host.measure(scenario(Kind.SERVER, rate=500.0, bound_ms=1000.0))
    (record,) = host.records()
    assert (record.rate, record.sought, record.queries, record.valid) == (500.0, False, QUERIES, True)
    (started,) = host.messages(LoadTestStarted)
    assert (started.rate, started.queries) == (500.0, QUERIES)
    assert started.seconds_left == pytest.approx(QUERIES / 500.0)


def test_a_server_over_its_bound_is_stored_with_the_verdict_of_loadgen(host: Host) -> None:
    assert host.measure(scenario(Kind.SERVER, rate=500.0, bound_ms=0.001))
    (record,) = host.records()
    assert not record.valid
    assert record.reasons[0] == "performance constraints not satisfied"
    assert "more queries within the bound would be needed to decide" in record.reasons[-1]
    (done,) = host.messages(LoadTestDone)
    assert not done.passed
    assert verify(host.site.data.store).implausible == ()


def test_latency_counts_from_when_a_request_was_due(host: Host) -> None:
    # Each request takes longer than the time between two of them: they wait for longer and longer.
    host.measure(scenario(Kind.SERVER, rate=1000.0), fake(FAKE_NAP="0.02"))
    (record,) = host.records()
    latencies_ns = unpack_latencies(record.latencies)
    assert min(latencies_ns) >= 20e6
    assert latencies_ns[-1] >= 0.8 * QUERIES * 20e6
    assert measured_load(record).p99_ms >= 0.8 * QUERIES * 20


def test_the_logs_of_loadgen_are_kept(host: Host) -> None:
    host.measure(scenario(Kind.SINGLE))
    (record,) = host.records()
    folder = logs_of(host.told)
    assert folder == host.site.data.scenarios / record.uuid
    kept = sorted(it.name for it in (folder / "loadgen-1").iterdir())
    assert kept == [
        "mlperf_log_accuracy.json",
        "mlperf_log_detail.txt",
        "mlperf_log_summary.txt",
        "mlperf_log_trace.json.gz",
    ]


def test_passing_a_request_costs_what_the_round_trip_adds_to_the_inference(host: Host) -> None:
    # The nap is no part of the inference that the worker reports.
    host.measure(scenario(Kind.SINGLE), fake(FAKE_NAP="0.03"))
    (ready,) = host.messages(LoadReady)
    assert ready.service_ms == pytest.approx(INFERENCE_MS, rel=0.01)
    assert ready.passing_ms >= 29.0 - INFERENCE_MS
    assert host.records()[0].passing_ms == ready.passing_ms


def test_a_request_after_a_pause_tells_what_waking_up_costs(host: Host) -> None:
    # After an idle half a second the fake worker is slow; a busy host makes no request that late.
    host.rule = replace(host.rule, pause_seconds=0.6)
    host.measure(scenario(Kind.SINGLE), fake(FAKE_WAKE_UP="0.1"))
    (ready,) = host.messages(LoadReady)
    assert ready.wake_up_ms == pytest.approx(100.0, rel=0.5)
    assert host.records()[0].wake_up_ms == ready.wake_up_ms


@pytest.mark.mxnet
def test_requests_that_wait_are_served_in_batches(host: Host) -> None:
    asked = scenario(Kind.SERVER, rate=10_000.0, batch_sizes=(1, 2, 4))
    assert host.measure(asked, fake(FAKE_NAP="0.01"))
    (record,) = host.records()
    assert record.batch_size == 4
    # One by one they would take 110 ms.
    assert record.seconds < 0.1


def test_several_instances_serve_at_the_same_time(host: Host) -> None:
    host.measure(scenario(Kind.SERVER, rate=10_000.0, instances=3), fake(FAKE_NAP="0.05"))
    (record,) = host.records()
    assert record.instances == 3
    # Eleven requests in four rounds.
    assert 0.2 <= record.seconds < 0.5


@pytest.mark.mxnet
def test_the_best_batch_size_counts_offline(host: Host) -> None:
    # A batch of four takes as long as a single request.
    assert host.measure(scenario(Kind.OFFLINE, batch_sizes=(1, 4)), fake(FAKE_NAP="0.005"))
    (record,) = host.records()
    done = host.messages(LoadTestDone)
    assert [it.batch_size for it in done] == [1, 4]
    assert (record.kind, record.batch_size, record.per_second) == ("offline", 4, done[1].per_second)
    assert record.per_second > 2 * done[0].per_second
    assert record.queries == len(unpack_latencies(record.latencies)) >= QUICK.offline_samples
    assert verify(host.site.data.store).implausible == ()


def test_an_offline_test_of_a_host_that_became_faster_is_repeated_until_it_is_long_enough(
    host: Host, tmp_path: Path
) -> None:
    slow = tmp_path / "slow"
    slow.touch()

    def hurry(message: LoadMessage) -> None:
        if isinstance(message, LoadReady):
            slow.unlink()

    host.act = hurry
    host.rule = replace(QUICK, seconds=0.5)
    assert host.measure(scenario(Kind.OFFLINE), fake(FAKE_SLOW=str(slow), FAKE_NAP="0.05"))
    (record,) = host.records()
    done = host.messages(LoadTestDone)
    # A test that LoadGen calls invalid has not passed.
    assert [it.passed for it in done] == [*[False] * (len(done) - 1), True] != [True]
    assert record.valid and record.seconds >= 0.5


def test_a_query_of_a_multi_stream_ends_with_its_last_sample(host: Host) -> None:
    assert host.measure(scenario(Kind.MULTI), fake(FAKE_NAP="0.002"))
    (record,) = host.records()
    latencies_ns = unpack_latencies(record.latencies)
    assert len(latencies_ns) == record.queries >= QUERIES
    assert min(latencies_ns) >= 8 * 2e6
    assert record.per_second == pytest.approx(8 * record.queries / record.seconds)
    (started,) = host.messages(LoadTestStarted)
    assert started.queries == 8 * QUERIES
    assert verify(host.site.data.store).implausible == ()


def test_the_highest_rate_is_found_and_confirmed(host: Host) -> None:
    # Two hundred a second in the long run. A rate that is expected far too high is not tried.
    assert host.measure(scenario(Kind.SERVER, bound_ms=40.0), fake(FAKE_NAP="0.005"), first_rate=1e6)
    (record,) = host.records()
    assert record.sought
    assert record.valid
    assert record.rate is not None and 1.0 < record.rate < 400.0
    done = host.messages(LoadTestDone)
    assert len(done) >= 3
    assert [it.number for it in done] == list(range(1, len(done) + 1))
    assert {it.passed for it in done} == {True, False}
    assert record.rate in [it.rate for it in done if it.passed]
    assert [it.rate for it in host.messages(LoadTestStarted)] == [it.rate for it in done]
    assert verify(host.site.data.store).implausible == ()


@pytest.mark.usefixtures("large_steps")
def test_the_tests_of_a_cancelled_search_are_stored_as_tests_at_their_rates(host: Host) -> None:
    def cancel(message: LoadMessage) -> None:
        if isinstance(message, LoadTestStarted) and message.number == 3:
            os.kill(os.getpid(), signal.SIGTERM)

    host.act = cancel
    assert not host.measure(scenario(Kind.SERVER, bound_ms=40.0), fake(FAKE_NAP="0.005"), first_rate=100.0)
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
    assert verify(host.site.data.store).implausible == ()


@pytest.mark.usefixtures("large_steps")
@pytest.mark.usefixtures("large_steps")
def test_the_tests_of_a_search_that_fails_are_stored(host: Host) -> None:
    def kill(message: LoadMessage) -> None:
        if isinstance(message, LoadTestStarted) and message.number == 2:
            for pid in workers(host):
                os.kill(pid, signal.SIGKILL)

    host.act = kill
    assert not host.measure(scenario(Kind.SERVER, bound_ms=40.0), fake(FAKE_NAP="0.005"), first_rate=100.0)
    assert "was killed by SIGKILL" in why(host)
    (record,), (done,) = host.records(), host.messages(LoadTestDone)
    assert (record.rate, record.valid, record.sought) == (done.rate, done.passed, False)


@pytest.mark.mxnet
def test_the_batch_sizes_before_a_cancelled_one_are_stored_as_no_answer_to_the_scenario(
    host: Host, tmp_path: Path
) -> None:
    slow = tmp_path / "slow"

    def cancel(message: LoadMessage) -> None:
        if isinstance(message, LoadTestDone):
            slow.touch()
        if isinstance(message, LoadTestStarted) and message.number == 2:
            os.kill(os.getpid(), signal.SIGTERM)

    host.act = cancel
    asked = scenario(Kind.OFFLINE, batch_sizes=(1, 2, 4))
    assert not host.measure(asked, fake(FAKE_SLOW=str(slow), FAKE_NAP="600"))
    (record,) = host.records()
    assert (record.batch_size, record.valid) == (1, False)
    assert record.reasons == ("the measurement ended before it tested batch size 2, 4",)


@pytest.mark.soak
@pytest.mark.usefixtures("large_steps")
def test_tests_that_cannot_be_stored_are_told_with_the_reason_why_the_search_ended(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise StoreError("cannot write the journal: free some space")

    def cancel(message: LoadMessage) -> None:
        if isinstance(message, LoadTestStarted) and message.number == 2:
            monkeypatch.setattr("dlbricks_tui.scenarios.measuring.ResultsDatabase", refuse)
            os.kill(os.getpid(), signal.SIGTERM)

    host.act = cancel
    assert not host.measure(scenario(Kind.SERVER, bound_ms=40.0), fake(FAKE_NAP="0.005"), first_rate=100.0)
    reason = "it was cancelled; the test that had ended could not be stored: cannot write the journal: free some space"
    assert why(host) == reason


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
    assert host.measure(scenario(Kind.SINGLE))
    assert len(host.records()) == 1
    (done,) = host.messages(LoadDone)
    assert done.warnings[-1] == "the disk is full: LoadGen's traces were deleted to store the result"
    assert traces() == []


@pytest.mark.parametrize("kind", list(Kind))
def test_a_full_scenario_asks_loadgen_for_the_durations_of_mlperf(
    host: Host, monkeypatch: pytest.MonkeyPatch, kind: Kind
) -> None:
    asked: list[Any] = []

    def start(test: LoadGenTest) -> None:
        asked.append(test.settings)
        raise ScenarioError("it takes too long")

    monkeypatch.setattr(LoadGenTest, "start", start)
    full = scenario(kind, full=True, bound_ms=1000.0 if kind is Kind.SERVER else None)
    host.rule = replace(LoadRule.of(full), warm_seconds=0.0, pause_seconds=0.0)
    assert not host.measure(full)
    (settings,) = asked
    assert settings.min_duration_ms == 600_000
    assert settings.min_query_count == (24_576 if kind is Kind.OFFLINE else QUERIES)


def test_a_full_test_goes_on_for_its_duration(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dlbricks_tui.scenarios.scenario.FULL_SECONDS", 0.5)
    full = scenario(Kind.SINGLE, full=True)
    host.rule = replace(LoadRule.of(full), warm_seconds=0.0, pause_seconds=0.0)
    assert host.measure(full, fake(FAKE_NAP="0.02"))
    (record,) = host.records()
    assert record.seconds >= 0.5
    assert record.queries > QUERIES


def test_a_bound_below_the_time_of_a_single_request_is_told_at_once(host: Host) -> None:
    assert not host.measure(scenario(Kind.SERVER, bound_ms=2.0), fake(FAKE_NAP="0.005"))
    assert why(host).startswith("bound 2 ms: a request that never waits takes ")
    assert host.messages(LoadTestStarted) == []


def test_a_scenario_waits_until_the_other_run_has_ended(host: Host) -> None:
    other = turn_of(host.site.queue, "20261126-0800-aa", host.site.data.path)
    host.act = lambda message: other.leave() if isinstance(message, LoadWaits) else None
    assert host.measure(scenario(Kind.SINGLE))
    assert "20261126-0800-aa" in host.messages(LoadWaits)[0].holder


@pytest.mark.parametrize(
    ("manner", "reason"),
    [
        ("crash on load", "was killed by SIGSEGV"),
        ("unbuildable", "the operator is unbuildable"),
        ("crash on sample", "was killed by SIGSEGV"),
        ("garbage on sample", "wrote an invalid answer"),
    ],
)
def test_a_model_that_does_not_run_is_told_in_one_line(host: Host, manner: str, reason: str) -> None:
    assert not host.measure(scenario(Kind.SINGLE), fake(FAKE_MANNERS=json.dumps({"Convolution": manner})))
    assert reason in why(host)
    assert host.records() == []


def test_a_worker_that_dies_under_load_ends_the_scenario_and_leaves_nothing(host: Host) -> None:
    def kill(message: LoadMessage) -> None:
        if isinstance(message, LoadTestStarted):
            for pid in workers(host):
                os.kill(pid, signal.SIGKILL)

    host.act = kill
    assert not host.measure(scenario(Kind.SERVER, rate=20.0, instances=2))
    assert "was killed by SIGKILL" in why(host)


def test_a_model_that_hangs_under_load_ends_the_scenario(host: Host, tmp_path: Path) -> None:
    slow = tmp_path / "slow"
    host.act = lambda message: slow.touch() if isinstance(message, LoadReady) else None
    host.hung_after(0.2)
    assert not host.measure(scenario(Kind.SINGLE), fake(FAKE_SLOW=str(slow), FAKE_NAP="600"))
    assert "did not answer within" in why(host)


@pytest.mark.parametrize("moment", [LoadReady, LoadTestStarted])
def test_the_keyboard_ends_a_scenario_and_its_workers(host: Host, moment: type[LoadMessage]) -> None:
    host.act = lambda message: os.kill(os.getpid(), signal.SIGINT) if isinstance(message, moment) else None
    assert not host.measure(scenario(Kind.SERVER, rate=20.0))
    assert why(host) == "it was interrupted from the keyboard"
    assert host.records() == []


def test_a_worker_that_hangs_does_not_keep_a_scenario_from_being_cancelled(host: Host, tmp_path: Path) -> None:
    slow = tmp_path / "slow"

    def cancel(message: LoadMessage) -> None:
        if isinstance(message, LoadReady):
            slow.touch()
        if isinstance(message, LoadTestStarted):
            os.kill(os.getpid(), signal.SIGTERM)

    host.act = cancel
    assert not host.measure(scenario(Kind.SINGLE), fake(FAKE_SLOW=str(slow), FAKE_NAP="600"))
    assert why(host) == "it was cancelled"


class SetClock:
    """A clock of a host that is set when a test has started."""

    def __init__(self, step: float) -> None:
        self.step = step
        self.ahead = 0.0

    def __call__(self) -> float:
        return Clocks().host() + self.ahead

    def set(self, message: LoadMessage) -> None:
        if isinstance(message, LoadTestStarted):
            self.ahead = self.step


def test_a_clock_that_jumps_is_told(host: Host) -> None:
    clock = SetClock(3600.0)
    host.act, host.clocks = clock.set, Clocks(host=clock)
    assert host.measure(scenario(Kind.SINGLE))
    (done,) = host.messages(LoadDone)
    # A busy host adds warnings.
    (warning,) = [it for it in done.warnings if "clock" in it]
    assert warning.startswith("the clock of this host jumped by +3,600.0 s during a test")
    (record,) = host.records()
    assert not record.valid
    assert record.reasons[-1] == warning


def test_a_clock_that_is_set_back_ends_the_scenario(host: Host) -> None:
    clock = SetClock(-3600.0)
    host.act, host.clocks = clock.set, Clocks(host=clock)
    assert not host.measure(scenario(Kind.SERVER, rate=20.0))
    assert "was set back by 3,600.0 s" in why(host)


def test_other_programs_that_take_the_processor_are_told(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    waited = iter([0.0, 60.0])
    monkeypatch.setattr(Serving, "contention", lambda _: [Contention(next(waited), 0)])
    assert host.measure(scenario(Kind.SINGLE))
    (done,) = host.messages(LoadDone)
    assert any(it.startswith("the model had to wait for a processor for ") for it in done.warnings)


def test_a_fault_of_dlbricks_is_one_line_with_a_traceback_in_the_log(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Serving, "contention", lambda _: 1 / 0)
    assert not host.measure(scenario(Kind.SINGLE))
    assert why(host).startswith("internal error: division by zero; the traceback is in ")
    assert "ZeroDivisionError" in (host.site.data.log / "errors.log").read_text()


def test_a_fault_in_the_thread_of_an_instance_ends_the_scenario_too(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Instance, "run", lambda _, size, untimed=0, timed=1: [1.0] if untimed else [size / 0])
    assert not host.measure(scenario(Kind.SINGLE))
    assert why(host).startswith("internal error: division by zero")


def test_without_loadgen_one_line_names_the_extra(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mlperf_loadgen", None)
    assert not host.measure(scenario(Kind.SINGLE))
    assert "pip install 'dlbricks-tui[scenarios]'" in why(host)


def test_a_disk_without_room_for_the_logs_is_refused_before_the_test(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage: Any = type("Usage", (), {"free": 1 << 20})
    monkeypatch.setattr("dlbricks_tui.scenarios.loadgen.shutil.disk_usage", lambda _: usage)
    assert not host.measure(scenario(Kind.SINGLE))
    assert "1 MiB are free there: make room, or choose another data folder" in why(host)


def test_instances_that_the_memory_does_not_hold_are_refused(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    small = replace(fingerprint(), memory_bytes=1 << 20)
    monkeypatch.setattr("dlbricks_tui.scenarios.measuring.fingerprint", lambda: small)
    assert not host.measure(scenario(Kind.SINGLE, instances=4))
    assert "4 instances, each with the model at 1 batch sizes, need" in why(host)


def test_loadgen_reads_no_settings_from_the_working_folder(
    host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "audit.config").write_text("*.SingleStream.min_query_count = 100\n*.SingleStream.min_duration = 9000\n")
    monkeypatch.chdir(tmp_path)
    assert host.measure(scenario(Kind.SINGLE))
    assert host.records()[0].queries < 100


def test_a_scenario_is_stored_with_where_it_comes_from(host: Host) -> None:
    assert host.measure(scenario(Kind.SINGLE), evaluation="nightly", unmet=("turbo is on",))
    (record,) = host.records()
    with ResultsDatabase(host.site.data.store) as store:
        found = store.provenance_of(record.uuid, record.runtime)
    assert found is not None and dict(found.packages)["onednn"] == "2.4.0"
    assert record.model in dict(found.models)
    assert (found.evaluation, found.unmet) == ("nightly", ("turbo is on",))
    assert verify(host.site.data.store).implausible == ()
