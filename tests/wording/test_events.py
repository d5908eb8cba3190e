"""The events of runs, traces, fleets and load tests."""

from dataclasses import replace
from typing import Any

import pytest

from dlbricks_tui.fleet.request import FleetHostState, FleetProgress, HostBrickFailed, HostChanged, HostRow
from dlbricks_tui.host.noise import HostLoad
from dlbricks_tui.host.queue import Place
from dlbricks_tui.jobs.events import Event, Paused, Resumed, Waiting
from dlbricks_tui.jobs.folder import State
from dlbricks_tui.measure.events import BatchStarted, DriftNoted, RoundRepeated
from dlbricks_tui.runs.events import (
    Disturbances,
    EstimateChanged,
    FailedBefore,
    LayerUnmeasurable,
    LevelLowered,
    ModelLeftOut,
    ModelLoading,
    PartStarted,
    Planned,
    ProgramFailed,
    ProgramLoaded,
    RunEnded,
    RunProgress,
    RunStarted,
    ShapesRemembered,
    WorkerReplaced,
)
from dlbricks_tui.scenarios.scenario import LoadReady, LoadTestsKept, LoadTestStarted, Scenario, ScenarioKind
from dlbricks_tui.traces.trace import LevelDone, LevelStarted, RoundStarted, TraceLevel
from dlbricks_tui.wording.events import (
    all_combinations,
    counts_of,
    doing_now,
    estimate_so_far,
    noise_counts,
    noise_note,
    note_of,
)
from dlbricks_tui.wording.events import measured as timed
from dlbricks_tui.wording.jobs import (
    fleet_line,
    histogram_below,
    host_line,
    in_us,
    message_line,
    note_line,
    progress_line,
    scenario_line,
    settled_line,
    trace_line,
    trace_question,
)
from dlbricks_tui.wording.numbers import signed_ms
from dlbricks_tui.wording.runs import NONE_DONE, Done, Tone, host_in_words, how_far, line_of_work, load_in_words
from tests.runs.live_runs import at, estimate, in_the_middle, loaded, measured, planned, round_done
from tests.store.samples import load_test

ABOUT: dict[str, Any] = {"program": 0, "brick": "b" * 64, "context": "plain", "model": "", "label": "conv"}
COUNTS: dict[str, Any] = {
    "bricks": 3,
    "bricks_reused": 1,
    "bricks_failed_before": 0,
    "models": 2,
    "models_reused": 1,
    "models_failed_before": 0,
}
NO_COUNTS: dict[str, Any] = dict.fromkeys(COUNTS, 0)
ENDED: dict[str, Any] = {
    "bricks": 1,
    "bricks_measured": 0,
    "bricks_reused": 0,
    "bricks_failed": 0,
    "models_failed": 0,
    "seconds": 100.0,
}

PLANNED_AGAIN = Planned(
    system="s",
    runtime="x",
    expected_seconds=200.0,
    bricks=9,
    bricks_reused=1,
    bricks_failed_before=2,
    models=5,
    models_reused=1,
    models_failed_before=2,
    bricks_imprecise=2,
    bricks_of_slow_host=3,
    combination="two threads",
)
AGAIN = (
    "9 bricks: 1 known, 6 to measure (2 again: too imprecise so far; 3 again: measured while the host was slower); "
    "2 of 5 models to time end to end; about 3 min"
)


@pytest.mark.parametrize(
    ("event", "tone", "text"),
    [
        (
            RunStarted(run="r", pid=7, models=("m",), runtime="x", level="fused", granularity=1, end_to_end=False),
            Tone.ASIDE,
            "run r of 1 model, process 7",
        ),
        (ModelLoading(model="m", number=1, of=2), Tone.ASIDE, "reading m, 1 of 2"),
        (ModelLeftOut(model="m", reason="it is empty"), Tone.FAILURE, "left out: m: it is empty"),
        (ShapesRemembered(model="m", shapes="d=1,3"), Tone.ASIDE, "inputs as given before: m: d=1,3"),
        (
            LevelLowered(model="m", reason="why"),
            Tone.DOUBT,
            "cannot fuse m (why); its layers are measured as written in the file",
        ),
        (LayerUnmeasurable(model="m", layer="fc", reason="why"), Tone.DOUBT, "unmeasurable: m: fc: why"),
        (Waiting(holder="run x of ada"), Tone.COURSE, "waiting for run x of ada"),
        (
            Planned(system="s", runtime="x", expected_seconds=200.0, **COUNTS),
            Tone.COURSE,
            "3 bricks: 1 known, 2 to measure; 1 of 2 models to time end to end; about 3 min",
        ),
        (PLANNED_AGAIN, Tone.COURSE, f"two threads: {AGAIN}"),
        (
            Planned(system="s", runtime="x", expected_seconds=200.0, **{**COUNTS, "bricks_reused": 3}),
            Tone.COURSE,
            "3 bricks: 3 known, 0 to measure; 1 of 2 models to time end to end; about 3 min",
        ),
        (
            Planned(system="s", runtime="x", expected_seconds=200.0, **NO_COUNTS),
            Tone.COURSE,
            "0 bricks: 0 known, 0 to measure",
        ),
        (PartStarted(part="two threads", number=1, of=2, later_seconds=9), Tone.COURSE, "part 1 of 2: two threads"),
        (
            ProgramFailed(reason="crashed", message="SIGSEGV", **ABOUT),
            Tone.FAILURE,
            "failed: conv (bbbbbbbbbbbb): crashed: SIGSEGV",
        ),
        (
            FailedBefore(brick="b", context="", model="", label="conv", reason="hung"),
            Tone.DOUBT,
            "failed in an earlier run, not tried again: conv: hung",
        ),
        (
            ProgramLoaded(first_run_ms=1.0, used_by=("m",), allocates=True, **{**ABOUT, "brick": "", "label": "voice"}),
            Tone.DOUBT,
            "new outputs in each run: voice: their sizes vary, or differ from the file; the latency includes their "
            "allocation, as that of a plain call does",
        ),
        (WorkerReplaced(message="it died"), Tone.DOUBT, "new worker: it died"),
        (Paused(), Tone.COURSE, "paused: other runs may measure"),
        (Resumed(), Tone.COURSE, "resumed"),
        (RunEnded(state="finished", message="", **ENDED), Tone.COURSE, "finished after 2 min"),
        (RunEnded(state="failed", message="why", **ENDED), Tone.FAILURE, "failed after 2 min: why"),
    ],
)
def test_an_event_has_a_sentence(event: Event, tone: Tone, text: str) -> None:
    note = note_of(event)
    assert note is not None
    assert (note.when, note.tone, note.text) == (event.when, tone, text)


def test_events_shown_by_lists_and_counters_have_no_sentence() -> None:
    events: list[Event] = [estimate("m", 0.1), RoundRepeated(reason="noise", seconds_left=1.0)]
    assert [note_of(event) for event in events] == [None, None]


def test_noise_is_one_sentence_with_its_counts() -> None:
    noise = Disturbances()
    assert noise_note(noise) == ""
    noise.take(RoundRepeated(when=at(1), reason="others", seconds=2.0, seconds_left=9.0))
    noise.take(DriftNoted(when=at(2), reference_ms=1.08, usual_ms=1.0))
    assert noise_note(noise) == (
        "noise: 1 round repeated (2 s), host 8 % slower than at first; "
        "close other programs, or measure when the host is quiet"
    )


def test_a_run_does_one_thing_at_a_time() -> None:
    progress = RunProgress()
    done = []
    for event in in_the_middle():
        progress.take(event)
        done.append(doing_now(progress))
    assert "reading resnet18_v1, 1 of 3" in done
    assert done[-1].endswith("samples so far")
    progress.take(RunEnded(state=State.FINISHED.value, message="", **ENDED))
    assert doing_now(progress) == ""


def test_what_a_run_waits_for_has_words_of_its_own() -> None:
    progress = RunProgress()
    assert counts_of(progress) == (NONE_DONE, NONE_DONE) and doing_now(progress) == ""
    progress.take(planned(bricks=2, reused=0))
    assert counts_of(progress) == (Done(0, 2), Done(0, 2)) and doing_now(progress) == "starting a worker"
    progress.take(BatchStarted(number=1, of=1, programs=2))
    progress.take(loaded(1))
    progress.take(round_done([1], 0))
    assert doing_now(progress) == "Convolution 3x3 1x8x56x56, 1 sample so far"
    progress.take(loaded(2))
    progress.take(round_done([1, 2], 1))
    assert doing_now(progress) == "Convolution 3x3 1x8x56x56 and 1 other, 2 samples so far"


def test_an_estimate_so_far_has_its_gaps() -> None:
    known: dict[str, Any] = {"model": "m", "parallel_ms": 1.0, "sequential_ms": 5.8, "low_ms": 5.6, "high_ms": 5.9}
    counts: dict[str, Any] = {"measured_layers": 3, "missing_layers": 0, "unmeasurable_layers": 0}
    assert estimate_so_far(EstimateChanged(**known, **counts)) == "5.800 ms (5.600 to 5.900)"
    gaps = {**counts, "missing_layers": 1, "unmeasurable_layers": 2, "sampled_layers": 4}
    told = "5.800 ms (5.600 to 5.900, without 3 of its layers, 4 still being sampled)"
    assert estimate_so_far(EstimateChanged(**known, **gaps)) == told
    foretold: dict[str, Any] = {
        "measured_layers": 3,
        "predicted_layers": 2,
        "missing_layers": 2,
        "unmeasurable_layers": 0,
    }
    assert estimate_so_far(EstimateChanged(**known, **foretold)) == "~5.800 ms (5.600 to 5.900, 2 predicted)"
    for name in ("sequential_ms", "low_ms", "high_ms"):
        assert estimate_so_far(EstimateChanged(**{**known, name: None}, **counts)) is None


def test_the_whole_run_and_each_model_have_a_sentence() -> None:
    assert all_combinations(2, PLANNED_AGAIN) == f"2 combinations together: {AGAIN}"
    assert timed(measured(1)).startswith("measured: ") and timed(measured(1)).endswith(")")
    noise = Disturbances(batches=1, slower=-0.1)
    assert noise_counts(noise) == "1 batch restarted, host 10 % faster than at first"
    noise.batches, noise.slower = 2, None
    assert noise_counts(noise) == "2 batches restarted"


def test_the_progress_leaves_out_what_is_zero_or_unknown() -> None:
    def words(*counts: Any) -> list[str]:
        return [phrase.text for phrase in how_far(*counts)]

    assert words(NONE_DONE, NONE_DONE) == []
    assert words(Done(8, 42), NONE_DONE) == ["8 of 42 bricks"]
    assert words(Done(8, 42), Done(0, 1)) == ["8 of 42 bricks", "0 of 1 model"]
    told = ["8 of 42 bricks", "1 failed", "2 noisy", "2 min left"]
    assert words(Done(8, 42), NONE_DONE, 1, 100.0, 2) == told


def test_the_work_on_a_host_is_one_line() -> None:
    running = Place(1, title="squeezenet1.1", measures=True, share=0.41, seconds_left=120.0)
    waiting = [Place(2, title="alexnet"), Place(3, title="vgg16")]
    assert line_of_work([running, *waiting]) == "squeezenet1.1 41 %, 2 min; then alexnet, vgg16"
    assert line_of_work(waiting) == "waiting: alexnet, vgg16"
    assert line_of_work([Place(1, title="alexnet", measures=True)]) == "alexnet"


def test_the_load_of_a_host_counts_busy_cores_and_what_other_guests_take() -> None:
    assert load_in_words(HostLoad((0.9, 1.0), (0.0, 0.0))) == "1.9 of 2 cores busy"
    assert host_in_words(HostLoad((0.1, 0.05), (0.0, 0.0))) == "host quiet"
    assert host_in_words(HostLoad((0.4, 0.05), (0.0, 0.0))) == "host busy: 1 of 2 cores"
    assert host_in_words(HostLoad((0.0,), (0.3,))) == "other guests take host time"
    assert load_in_words(HostLoad((1.0,), (0.01,))) == "1.0 of 1 core busy, 1 % taken by other guests"


LAYER = TraceLevel.LAYER


@pytest.mark.parametrize(
    ("message", "line"),
    [
        (Waiting(holder="run x"), "waiting for run x"),
        (RoundStarted(number=1, rounds=2), "round 1 of 2"),
        (RoundStarted(number=1, rounds=1), ""),
        (LevelStarted(level=LAYER), ""),
        (LevelDone(level=LAYER, inference_ms=3.6, overhead_ms=0.2), "layer level: 3.600 ms per inference, +0.2000 ms"),
        (LevelDone(level=LAYER, inference_ms=3.6, overhead_ms=None), "layer level: 3.600 ms per inference"),
        (LevelDone(level=LAYER, inference_ms=None, overhead_ms=None, missing="why"), "layer level: not traced: why"),
    ],
)
def test_a_message_of_a_trace_is_a_line(message: Event, line: str) -> None:
    assert trace_line(message) == line


def test_a_trace_has_a_question_and_differences_have_signs() -> None:
    assert trace_question("net\n") == "Where does the time of net\\n go, layer by layer?"
    assert [signed_ms(it) for it in (-0.2, 0.0, 0.2)] == ["-0.2000 ms", "+0 ms", "+0.2000 ms"]


def test_the_orders_that_are_settled_are_counted() -> None:
    assert settled_line([True, False]) == "the order of hosts is sure for 1 of 2 models"


def test_a_host_has_time_left_only_while_it_measures() -> None:
    row = HostRow("a", state=FleetHostState.MEASURING, bricks=3, of=1200, failed=2, seconds_left=100.0)
    assert host_line(row) == "a measuring, 3 of 1,200 bricks, 2 failed, 2 min left"
    assert (
        host_line(HostRow("a", state=FleetHostState.IDLE, bricks=3, of=4, seconds_left=100.0))
        == "a idle, 3 of 4 bricks"
    )


def test_a_line_of_many_hosts_counts_the_others() -> None:
    progress = FleetProgress()
    assert fleet_line(progress) == "waiting for hosts"
    progress.hosts = {name: HostRow(name) for name in "abcdef"}
    assert fleet_line(progress).endswith("d connecting; and 2 more hosts")
    progress.hosts = {name: HostRow(name) for name in "abcd"}
    assert fleet_line(progress).endswith("; d connecting")


def test_what_a_user_should_know_has_a_line_and_attempts_to_reach_a_host_have_one_together() -> None:
    progress = FleetProgress()
    assert note_line(ModelLeftOut(model="m", reason="why"), progress) == "m is left out: why"
    failed = HostBrickFailed(host="a", brick="b", label="conv", reason="why")
    assert note_line(failed, progress) == "a: conv failed: why"
    lost = HostChanged(host="a", state="lost", message="no answer")
    assert note_line(lost, progress) == "a lost: no answer"
    for before, told in (
        (HostRow("a", state=FleetHostState.MEASURING, message="x"), "a lost: no answer"),
        (HostRow("a", state=FleetHostState.LOST), "a lost: no answer"),
        (HostRow("a", state=FleetHostState.LOST, message="x"), ""),
    ):
        progress.hosts = {"a": before}
        assert note_line(lost, progress) == told
    assert note_line(HostChanged(host="a", state="lost"), progress) == ""
    assert note_line(HostChanged(host="a", state="measuring", message="x"), progress) == ""


SERVER = Scenario(kind=ScenarioKind.SERVER, percentile=99.0, bound_ms=50.0)


@pytest.mark.parametrize(
    ("scenario", "sentence"),
    [
        (SERVER, "server: the highest rate with p99 within 50 ms"),
        (replace(SERVER, rate=41.25), "server: 41.25/s, p99 within 50 ms"),
        (replace(SERVER, rate=5.0, bound_ms=None, percentile=99.9), "server: 5.000/s, p99.9"),
        (
            replace(SERVER, batch_sizes=(1, 2, 4), instances=2, full=True),
            "server: the highest rate with p99 within 50 ms, batches of up to 4, 2 instances, as long as MLPerf asks",
        ),
        (Scenario(kind=ScenarioKind.SINGLE, percentile=90.0), "single stream: p90"),
        (
            Scenario(kind=ScenarioKind.MULTI, percentile=99.0, bound_ms=80.0),
            "multi stream, 8 samples a request: p99 within 80 ms",
        ),
        (
            Scenario(kind=ScenarioKind.OFFLINE, percentile=99.0, batch_sizes=(1, 2, 4)),
            "offline: the highest throughput, batch 1 or 2 or 4",
        ),
    ],
)
def test_a_scenario_is_a_sentence(scenario: Scenario, sentence: str) -> None:
    assert scenario_line(scenario) == sentence


def test_latencies_are_written_to_the_microsecond() -> None:
    assert [in_us(it) for it in (0.0004, 12.3456, 1234.5678)] == ["0.000 ms", "12.346 ms", "1,234.568 ms"]


def test_the_histogram_has_the_bound_as_a_line() -> None:
    assert sum("bound" in line for line in histogram_below(load_test(bound_ms=10.0), 80)) == 1
    assert max(map(len, histogram_below(load_test(bound_ms=10.0), 80))) <= 80


def test_tests_that_are_kept_are_counted() -> None:
    assert message_line(LoadTestsKept(tests=1), SERVER) == "stored 1 test that had ended"
    assert message_line(LoadTestsKept(tests=5), SERVER) == "stored 5 tests that had ended"


def test_progress_says_how_many_requests_are_over_the_bound_and_when_the_rest_is_answered() -> None:
    started = LoadTestStarted(number=2, rate=None, batch_size=4, queries=64, seconds_left=None)
    assert message_line(started, SERVER) == "test 2: batch 4, at least 64 requests"
    assert progress_line(started, SERVER, 0, 0, 1.0) == "test 2: batch 4, 0 of 64 requests"
    assert progress_line(started, SERVER, 16, 4, 2.0) == (
        "test 2: batch 4, 16 of 64 requests, 25.00 % over 50 ms, about 6 s left"
    )
    search = replace(started, number=3, rate=41.25, tests=7, seconds_left=60.0)
    # Four more as long as this one of 8 s.
    assert progress_line(search, SERVER, 16, 0, 2.0) == (
        "test 3 of about 7: 41.25/s, 16 of 64 requests, 0.00 % over 50 ms, about 38 s left"
    )
    assert progress_line(search, SERVER, 0, 0, 0.0).endswith("0 of 64 requests, about 60 s left")
    offline = Scenario(kind=ScenarioKind.OFFLINE, percentile=99.0)
    assert progress_line(started, offline, 100, 0, 3.0) == "test 2: batch 4, 100 of 100 samples"


def test_an_offline_test_has_no_histogram() -> None:
    assert histogram_below(load_test(kind="offline", rate=None, sought=False), 80) == []


def test_several_instances_are_named() -> None:
    ready = LoadReady(service_ms=8.0, passing_ms=0.1234, wake_up_ms=0.9, logs="")
    line = message_line(ready, replace(SERVER, instances=2))
    assert line == "2 instances are loaded: a request takes 8.000 ms, and passing it 0.123 ms"
