from dataclasses import replace

import pytest

from dlbricks_tui.scenarios.messages import LoadReady, LoadTestsKept, LoadTestStarted
from dlbricks_tui.scenarios.outcome import MeasuredLoad, PredictedLoad, Range, measured_load
from dlbricks_tui.scenarios.scenario import Kind, Scenario
from dlbricks_tui.store.packed_latencies import pack_latencies
from dlbricks_tui.wording.scenarios import (
    histogram_below,
    in_us,
    load_test_lines,
    message_line,
    outcome_lines,
    prediction_line,
    progress_line,
    scenario_line,
    verdict_lines,
)
from tests.store.samples import load_test

SERVER = Scenario(kind=Kind.SERVER, percentile=99.0, bound_ms=50.0)
P99 = Range(12.5, 12.0, 13.0)
PREDICTED = PredictedLoad(
    p50_ms=Range(10.0, 9.9, 10.1),
    p90_ms=Range(11.0, 10.9, 11.1),
    p99_ms=P99,
    p999_ms=Range(1234.567, 1000.0, 2000.0),
    per_second=Range(44.0, 40.0, 48.0),
    valid=True,
    queries=132_400,
    batch_size=1,
)


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
        (Scenario(kind=Kind.SINGLE, percentile=90.0), "single stream: p90"),
        (
            Scenario(kind=Kind.MULTI, percentile=99.0, bound_ms=80.0),
            "multi stream, 8 samples a request: p99 within 80 ms",
        ),
        (
            Scenario(kind=Kind.OFFLINE, percentile=99.0, batch_sizes=(1, 2, 4)),
            "offline: the highest throughput, batch 1 or 2 or 4",
        ),
    ],
)
def test_a_scenario_is_a_sentence(scenario: Scenario, sentence: str) -> None:
    assert scenario_line(scenario) == sentence


def test_latencies_are_written_to_the_microsecond() -> None:
    assert [in_us(it) for it in (0.0004, 12.3456, 1234.5678)] == ["0.000 ms", "12.346 ms", "1,234.568 ms"]


def test_predicted_and_measured_figures_stand_beside_one_another() -> None:
    measured = measured_load(load_test())
    assert outcome_lines(SERVER, PREDICTED, measured)[:5] == [
        "                  PREDICTED                    95 %   MEASURED  DIFFERENCE",
        "highest rate       ~44.00/s          40.00 to 48.00    40.00/s     +10.0 %",
        "p50              ~10.000 ms         9.900 to 10.100  10.000 ms      +0.0 %",
        "p90              ~11.000 ms        10.900 to 11.100  11.601 ms      -5.2 %",
        "p99              ~12.500 ms        12.000 to 13.000  12.000 ms      +4.2 %",
    ]


def test_a_percentile_of_its_own_has_a_row() -> None:
    test = load_test(percentile=95.0)
    lines = outcome_lines(replace(SERVER, percentile=95.0), None, measured_load(test), test)
    assert [line.split()[0] for line in lines[2:]] == ["p50", "p90", "p95", "p99", "p99.9"]
    assert lines[4] == "p95           11.801 ms"


def test_streams_count_samples() -> None:
    multi = Scenario(kind=Kind.MULTI, percentile=99.0)
    measured = MeasuredLoad(
        p50_ms=1.0, p90_ms=1.0, p99_ms=1.0, p999_ms=1.0, per_second=80.0, valid=True, queries=662, batch_size=1
    )
    assert outcome_lines(multi, None, measured)[1] == "samples/s   80.00/s"


def test_a_prediction_says_whether_the_bound_is_met() -> None:
    assert prediction_line(SERVER, PREDICTED).startswith("predicted: the bound is met; from 132,400 simulated requests")
    assert "is not met" in prediction_line(SERVER, replace(PREDICTED, valid=False))
    assert prediction_line(replace(SERVER, bound_ms=None, rate=1.0), PREDICTED).startswith("predicted from")


def test_a_verdict_has_its_confidence_the_bound_and_the_cost_of_passing() -> None:
    assert verdict_lines(load_test()) == [
        "LoadGen: VALID, 700 requests in 18 s, enough for 99 % confidence in p99",
        "the bound of 20 ms is met: p99 is 12.000 ms",
        "40.00/s were sent, 39.60/s answered",
        "batch 1; passing a request to the worker and back costs 0.150 ms",
    ]


def test_too_few_requests_are_said_to_be_too_few() -> None:
    latencies = pack_latencies([10_000_000] * 100)
    (verdict, *_) = verdict_lines(load_test(queries=100, latencies=latencies, seconds=2.5))
    assert verdict.endswith("too few for 99 % confidence in p99, which needs 662")


def test_a_negative_verdict_has_its_reasons_and_no_confidence() -> None:
    lines = verdict_lines(load_test(valid=False, reasons=("early stopping not satisfied",), bound_ms=9.0))
    assert lines[:3] == [
        "LoadGen: INVALID, 700 requests in 18 s",
        "  early stopping not satisfied",
        "the bound of 9 ms is not met: p99 is 12.000 ms",
    ]


def test_the_histogram_has_the_bound_as_a_line() -> None:
    assert sum("bound" in line for line in histogram_below(load_test(bound_ms=10.0), 80)) == 1
    assert max(map(len, histogram_below(load_test(bound_ms=10.0), 80))) <= 80


def test_stored_tests_are_rows_that_tell_what_was_tested() -> None:
    offline = load_test(kind="offline", rate=None, sought=False, batch_size=4)
    header, *rows = load_test_lines([load_test(uuid="1d" * 16), load_test(sought=False), offline])
    assert header.split() == ["WHEN", "(UTC)", "TEST", "PER", "SECOND", "p99", "(ms)", "REQUESTS", "VERDICT", "ID"]
    assert rows[0].startswith("2026-11-21 08:00  highest ")
    assert rows[0].endswith("VALID    1d1d1d1d")
    assert [row[18:26].strip() for row in rows] == ["highest", "at rate", "batch 4"]


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
    offline = Scenario(kind=Kind.OFFLINE, percentile=99.0)
    assert progress_line(started, offline, 100, 0, 3.0) == "test 2: batch 4, 100 of 100 samples"


def test_an_offline_test_has_no_histogram() -> None:
    assert histogram_below(load_test(kind="offline", rate=None, sought=False), 80) == []


def test_several_instances_are_named() -> None:
    ready = LoadReady(service_ms=8.0, passing_ms=0.1234, wake_up_ms=0.9, logs="")
    line = message_line(ready, replace(SERVER, instances=2))
    assert line == "2 instances are loaded: a request takes 8.000 ms, and passing it 0.123 ms"
