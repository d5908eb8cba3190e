"""MLPerf LoadGen: its settings, its logs (LoadGen 6) and its search for the highest rate; instances that serve."""

import threading
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from queue import Queue
from typing import Any

import pytest

from dlbricks_tui.scenarios.kinds import ScenarioKind
from dlbricks_tui.scenarios.load_tests import Clocks, LoadFinding, LoadTests, RateSearch, Searched
from dlbricks_tui.scenarios.loadgen import (
    Latencies,
    LoadGenLog,
    LoadGenTest,
    LoadgenVerdict,
    LoadSettings,
    Search,
    read_latencies,
    read_verdict,
)
from dlbricks_tui.scenarios.scenario import SCHEDULE_SEED, ScenarioError, percentile_of
from dlbricks_tui.scenarios.serving import Answered, Instance, Serving, SingleRequests, single_requests


def test_every_kind_has_settings_of_loadgen_with_the_schedule_of_predictions(tmp_path: Path) -> None:
    pytest.importorskip("mlperf_loadgen")
    for kind in ScenarioKind:
        settings = LoadSettings(kind=kind, percentile=99.0, queries=4, seconds=0.0, expected_ms=2.5, rate=9.0)
        found = LoadGenTest(settings, tmp_path, lambda _: None, threading.Event()).settings
        assert (found.min_query_count, found.min_duration_ms, found.schedule_rng_seed) == (4, 0, SCHEDULE_SEED)
        longer = LoadGenTest(replace(settings, seconds=600.0), tmp_path, lambda _: None, threading.Event()).settings
        assert longer.min_duration_ms == 600_000


STREAM = LoadSettings(kind=ScenarioKind.SINGLE, percentile=90.0, queries=64, seconds=2.0, expected_ms=100.0)


def test_a_long_test_needs_more_room_for_its_logs() -> None:
    assert STREAM.samples == 64
    assert replace(STREAM, seconds=600.0, expected_ms=1.0).samples == 600_000
    assert replace(STREAM, kind=ScenarioKind.MULTI).samples == 8 * 64
    server = replace(STREAM, kind=ScenarioKind.SERVER, rate=50.0, seconds=600.0)
    assert server.samples == 30_000
    assert replace(server, search=Search(0.15, 1, 99.7)).samples > 5 * 30_000


def test_a_disk_without_room_for_the_logs_is_refused_before_the_test(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("mlperf_loadgen")
    usage: Any = type("Usage", (), {"free": 1 << 20})
    monkeypatch.setattr("dlbricks_tui.scenarios.loadgen.shutil.disk_usage", lambda _: usage)
    monkeypatch.setattr(LoadGenTest, "_run", lambda _: None)
    with pytest.raises(ScenarioError, match="1 MiB are free there: make room, or choose another data folder"):
        LoadGenTest(STREAM, tmp_path, lambda _: None, threading.Event()).start()


VALID = "Result is : VALID\n  Min duration satisfied : Yes\n\nNo errors encountered during test.\n"
INVALID = """Result is : INVALID
  Performance constraints satisfied : NO
  Min duration satisfied : Yes
  Early stopping satisfied: NO
Early Stopping Result:
 * Run unsuccessful.
 * Processed 662 queries.
 * Would need to run at least 341 more queries,
 with the run being successful if every additional
 query were under latency.

2 ERRORS encountered. See detailed log.
"""


def summary(folder: Path, text: str) -> Path:
    (folder / "mlperf_log_summary.txt").write_text(text)
    return folder


def test_the_verdict_is_that_of_loadgen(tmp_path: Path) -> None:
    assert read_verdict(summary(tmp_path, VALID)) == LoadgenVerdict(True, (), 0)
    reasons = (
        "performance constraints not satisfied",
        "early stopping not satisfied",
        "341 more requests within the bound would be needed to decide",
    )
    assert read_verdict(summary(tmp_path, INVALID)) == LoadgenVerdict(False, reasons, 2)


def test_logs_that_a_full_disk_cut_short_are_told(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match=r"LoadGen gave no verdict: its logs are in .* on a disk that may be full"):
        read_verdict(summary(tmp_path, "====\nMLPerf Results Su"))
    (tmp_path / "mlperf_log_trace.json").write_text('{"traceEvents":[\n')
    with pytest.raises(ScenarioError, match="LoadGen traced no queries"):
        read_latencies(tmp_path, ScenarioKind.SERVER)


def sample(query: int, due_us: float, delay_ns: int, answer_ns: int) -> str:
    return (
        f'{{"name":"Sample","cat":"default","ph":"b","pid":1,"id":{query},"ts":{due_us},"args":{{"sample_seq":{query},'
        f'"query_seq":{query},"sample_idx":0,"issue_start_ns":{delay_ns},"complete_ns":{answer_ns}}}}},\n'
    )


def test_latencies_are_those_of_queries_in_their_order_since_they_were_due(tmp_path: Path) -> None:
    lines = [sample(1, 2_000.5, 30, 9_000), sample(0, 1_000.5, 10, 2_000_000), sample(1, 2_000.5, 30, 5_000)]
    (tmp_path / "mlperf_log_trace.json").write_text("".join(lines))
    found = read_latencies(tmp_path, ScenarioKind.MULTI)
    assert (found.latencies_ns, found.delays_ns) == ([2_000_000, 9_000], [10, 30])
    assert found.seconds == pytest.approx(2e-3)
    # Offline, all samples are of one query.
    assert len(read_latencies(tmp_path, ScenarioKind.OFFLINE).latencies_ns) == 3


def message(key: str, value: str) -> str:
    return f':::MLLOG {{"key": "{key}", "value": {value}, "time_ms": 0.1, "namespace": "mlperf::logging"}}\n'


def test_the_tests_of_a_search_are_followed_while_loadgen_logs_them(tmp_path: Path) -> None:
    path = tmp_path / "mlperf_log_detail.txt"
    log = LoadGenLog(tmp_path, 30.0)
    log.follow()
    assert log.tests == []
    steps = (
        ('"FindPeakPerformance: Check validity of the base settings field: 30.000000"', 30.0, None),
        ('"FindBoundaries: Checking fields [30.000000, 34.500000)"', 34.5, True),
        ('"FindPeakPerformance: Found boundaries: [30.000000, 34.500000)"', None, False),
        ('"FindPeakPerformanceBinarySearch: Testing the mid value of bounds [30.0, 34.5): 32.250000"', 32.25, False),
        ('"FindPeakPerformanceBinarySearch: Testing the mid value of bounds [32.250000, 34.5): 33.375"', 33.375, True),
    )
    for value, rate, passed in steps:
        before = len(log.tests)
        with path.open("a") as file:
            file.write(message("generic_message", value))
            if rate is not None:
                file.write(message("generated_query_count", "662"))
                # A line that LoadGen has not written to its end.
                file.write(':::MLLOG {"key": "generated_')
                file.flush()
                log.follow()
                file.write('samples_per_query", "value": 1, "time_ms": 0.1}\n')
        log.follow()
        if rate is not None:
            assert log.tests[-1].rate == rate
        if before:
            assert log.tests[before - 1].passed is passed
    with path.open("a") as file:
        file.write(message("generic_message", '"FindPeakPerformance: Found peak performance field: 32.250000"'))
    log.follow()
    assert [it.passed for it in log.tests] == [True, False, True, False]
    assert log.highest is log.tests[2]
    assert log.first_query_of(log.tests[2]) == 2 * 662


SETTINGS = LoadSettings(
    kind=ScenarioKind.SERVER, percentile=99.0, queries=662, seconds=0.0, expected_ms=20.0, bound_ms=100.0
)


class KnownServer(LoadTests):
    """Tests of a server that keeps its bound up to a rate; LoadGen's verdict is positive up to a lower one."""

    def __init__(self, highest: float, valid: float, inferences_ms: Sequence[float] = (20.0,)) -> None:
        self.highest, self.valid, self.inferences_ms = highest, valid, inferences_ms
        self.searched: list[LoadSettings] = []
        self.confirmed: list[float] = []

    def search(self, settings: LoadSettings, batch_size: int) -> Searched:
        self.searched.append(settings)
        rate = settings.rate or 0.0
        return Searched(self.highest if rate <= self.highest else None, self.inferences_ms)

    def run(self, settings: LoadSettings, batch_size: int) -> LoadFinding:
        rate = settings.rate or 0.0
        self.confirmed.append(rate)
        verdict = LoadgenVerdict(rate <= self.valid, (), 0)
        return LoadFinding("2026-11-27T08:00:00+00:00", settings, batch_size, verdict, Latencies([1], [0], 1.0))


def find(tests: KnownServer, expected: float | None, settings: LoadSettings = SETTINGS) -> LoadFinding:
    return RateSearch(tests, settings, 1, 50.0, 0.2).find(expected)


@pytest.mark.parametrize(
    ("highest", "valid", "searched", "confirmed", "rate"),
    [
        # A search begins a little below the expected rate.
        (35.0, 35.0, [30.6], [35.0, 36.05], 35.0),
        # A first rate that fails is lowered until one passes.
        (12.0, 12.0, [30.6, 21.42, 14.994, 10.4958], [12.0, 12.36], 12.0),
        # A rate that LoadGen does not call valid is lowered until it does.
        (35.0, 33.5, [30.6], [35.0, 33.95, 32.9315], 32.9315),
        # A disturbed test has ended the search too early: a valid rate is raised until one is not valid.
        (35.0, 37.5, [30.6], [35.0, 36.05, 37.1315, 38.245445], 37.1315),
    ],
)
def test_the_rate_of_a_search_is_confirmed_by_a_test_of_its_own(
    highest: float, valid: float, searched: list[float], confirmed: list[float], rate: float
) -> None:
    tests = KnownServer(highest, valid)
    found = find(tests, 34.0)
    assert [it.rate for it in tests.searched] == pytest.approx(searched)
    assert tests.confirmed == pytest.approx(confirmed)
    assert found.rate == pytest.approx(rate) and found.verdict.valid


def test_a_server_that_is_never_valid_shows_the_last_verdict() -> None:
    tests = KnownServer(35.0, 1.0)
    found = find(tests, 34.0)
    assert len(tests.confirmed) == 11
    assert not found.verdict.valid and found.rate == tests.confirmed[-1]


@pytest.mark.parametrize("expected", [None, 1e9])
def test_no_rate_is_tried_that_the_server_cannot_answer_in_the_long_run(expected: float | None) -> None:
    tests = KnownServer(35.0, 35.0)
    find(tests, expected)
    assert (tests.searched[0].rate or 0.0) < 50.0


def test_an_impossible_bound_is_refused_with_its_reason() -> None:
    with pytest.raises(
        ScenarioError, match=r"bound 10 ms: a request that never waits takes 20\.2 ms, so no rate keeps 99 %"
    ):
        find(KnownServer(0.0, 0.0), 34.0, replace(SETTINGS, bound_ms=10.0))
    # The median inference is short enough, and more than one in a hundred is not.
    slow = KnownServer(0.0, 0.0, [20.0] * 95 + [120.0] * 5)
    with pytest.raises(ScenarioError, match="a request that never waits takes 120 ms"):
        find(slow, 34.0)
    assert len(slow.searched) == 1


def test_a_search_ends_if_no_rate_passes() -> None:
    tests = KnownServer(0.0, 0.0)
    with pytest.raises(ScenarioError, match=r"bound 100 ms: no rate keeps .* not even 2\.52 per second"):
        find(tests, 34.0)


@pytest.mark.parametrize(("queries", "allowed"), [(662, 1), (1_307, 5)])
def test_a_rate_passes_the_search_if_the_verdict_would_be_positive(queries: int, allowed: int) -> None:
    tests = KnownServer(35.0, 35.0)
    find(tests, 34.0, replace(SETTINGS, queries=queries))
    search = tests.searched[0].search
    assert search is not None
    for slow, passes in ((allowed, True), (allowed + 1, False)):
        latencies_ms = [20.0] * (queries - slow) + [120.0] * slow
        assert (percentile_of(latencies_ms, search.percentile) <= 100.0) is passes


def test_a_test_is_so_long_that_a_queue_can_grow_beyond_the_bound() -> None:
    tests = KnownServer(35.0, 35.0)
    find(tests, 34.0, replace(SETTINGS, bound_ms=60_000.0))
    assert tests.searched[0].seconds == 600.0
    # It is as exact as a few percent.
    for expected, decimals in ((49.0, 0), (34.0, 1), (3.0, 2)):
        tests = KnownServer(50.0, 50.0)
        find(tests, expected)
        search = tests.searched[0].search
        assert search is not None and search.decimals == decimals


PATIENCE_SECONDS = 60.0


class Gated(Instance):
    """An instance that tells the size of each batch, and waits before it answers."""

    def __init__(self, sizes: Sequence[int]) -> None:
        self.sizes = list(sizes)
        self.begun: Queue[int] = Queue()
        self.gate: Queue[float] = Queue()
        self.interrupted = False

    def run(self, size: int, untimed: int = 0, timed: int = 1) -> Sequence[float]:
        self.begun.put(size)
        if (taken_ms := self.gate.get(timeout=PATIENCE_SECONDS)) < 0:
            raise ScenarioError("the worker was lost")
        return [taken_ms]

    def interrupt(self) -> None:
        self.interrupted = True
        self.gate.put(0.0)

    def next_batch(self) -> int:
        return self.begun.get(timeout=PATIENCE_SECONDS)


class Answers:
    """The requests that were answered, in the order of their answers."""

    def __init__(self) -> None:
        self.ids: list[int] = []
        self.told: Queue[int] = Queue()

    def __call__(self, ids: Sequence[int]) -> None:
        self.ids += ids
        self.told.put(len(ids))

    def next_count(self) -> int:
        return self.told.get(timeout=PATIENCE_SECONDS)


def test_requests_that_wait_are_served_in_the_largest_batch_that_they_fill() -> None:
    answers = Answers()
    instance = Gated([1, 2, 4])
    with Serving([instance], threading.Event()) as serving:
        serving.respond = answers
        serving.issue([0])
        assert instance.next_batch() == 1
        serving.issue(range(1, 8))
        for later in (4, 2, 1):
            instance.gate.put(1.5)
            assert instance.next_batch() == later
        # A smaller limit counts for the batches after it.
        serving.largest = 2
        serving.issue(range(8, 13))
        for later in (2, 2, 1):
            instance.gate.put(1.5)
            assert instance.next_batch() == later
        instance.gate.put(2.5)
        assert [answers.next_count() for _ in range(7)] == [1, 4, 2, 1, 2, 2, 1]
        # An answer arrives before it is noted.
        instance.gate.put(0.5)
        serving.issue([13])
        assert answers.next_count() == 1
        taken = serving.take_answered()
        assert [it.inference_ms for it in taken][:13] == [1.5] * 12 + [2.5]
        assert all(it.latency_ns > 0 for it in taken)
    assert answers.ids == list(range(14))


def test_instances_serve_at_the_same_time_and_what_waits_at_the_end_is_answered_without_them() -> None:
    answers = Answers()
    instances = [Gated([1]), Gated([1])]
    with Serving(instances, threading.Event()) as serving:
        serving.respond = answers
        serving.issue([0, 1, 2])
        assert [it.next_batch() for it in instances] == [1, 1]
    assert all(it.interrupted for it in instances)
    assert sorted(answers.ids) == [0, 1, 2]
    serving.issue([3, 4])
    assert answers.ids[-2:] == [3, 4]
    serving.raise_failure()


def test_an_instance_that_fails_answers_its_requests_and_leaves_its_reason() -> None:
    answers = Answers()
    instance, changed = Gated([1]), threading.Event()
    with Serving([instance], changed) as serving:
        serving.respond = answers
        serving.issue([0, 1])
        instance.gate.put(-1.0)
        assert answers.next_count() == 1
        assert changed.wait(PATIENCE_SECONDS)
        with pytest.raises(ScenarioError, match="the worker was lost"):
            serving.raise_failure()
    assert answers.ids == [0, 1]


class EndedTest:
    """A test that has ended before anybody looks."""

    ended, error = True, None

    def __init__(self, settings: LoadSettings, folder: Path, *_: object) -> None:
        self.folder = folder

    def start(self) -> None: ...

    def complete(self, queries: Sequence[int]) -> None: ...


def test_an_instance_that_fails_at_the_end_of_a_test_leaves_no_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dlbricks_tui.scenarios.load_tests.LoadGenTest", EndedTest)
    serving = Serving([Gated([1])], threading.Event())
    serving.failure = ScenarioError("the worker was lost")
    tests = LoadTests(serving, tmp_path, threading.Event(), lambda _: None, nullcontext, Clocks())
    with pytest.raises(ScenarioError, match="the worker was lost"):
        tests.search(SETTINGS, 1)


class Timed(Serving):
    """Answers requests at once, as if each took 9 ms, of which 8 ms are inference, and 5 ms more after a pause."""

    def __init__(self) -> None:
        super().__init__([Gated([1])], threading.Event())
        self.paused_seconds = 0.0
        self.requests = 0

    def issue(self, ids: Sequence[int]) -> None:
        self.requests += len(ids)
        latency_ns = 14_000_000 if self.paused_seconds else 9_000_000
        self._answered.append(Answered(0, latency_ns, 8.0))
        self.respond(ids)


@pytest.mark.parametrize(("seconds", "requests"), [(0.0, 10), (9.5, 20), (1e6, 400)])
def test_single_requests_tell_what_passing_them_and_a_pause_add(
    monkeypatch: pytest.MonkeyPatch, seconds: float, requests: int
) -> None:
    serving = Timed()
    monkeypatch.setattr(
        "dlbricks_tui.scenarios.serving.time.sleep", lambda pause: setattr(serving, "paused_seconds", pause)
    )
    # Each request takes a second.
    found = single_requests(serving, seconds, 0.05, lambda: float(serving.requests), nullcontext)
    assert found == SingleRequests(service_ms=8.0, passing_ms=1.0, wake_up_ms=5.0)
    assert serving.requests == requests
