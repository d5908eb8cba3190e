from dataclasses import replace

import pytest

from dlbricks_tui.scenarios.scenario import LoadReady, LoadTestsKept, LoadTestStarted, Scenario, ScenarioKind
from dlbricks_tui.wording.scenarios import histogram_below, in_us, message_line, progress_line, scenario_line
from tests.store.samples import load_test

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
