"""Logs of LoadGen, in the format of LoadGen 6."""

from pathlib import Path

import pytest

from dlbricks_tui.scenarios.loadgen import LoadGenLog, LoadgenVerdict, read_latencies, read_verdict
from dlbricks_tui.scenarios.scenario import ScenarioError, ScenarioKind

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


def test_a_search_whose_first_rate_fails_has_no_highest_rate(tmp_path: Path) -> None:
    lines = message("generated_query_count", "662")
    lines += message("error_runtime", '"FindPeakPerformance: Initial lower bound does not satisfy performance, msg: x"')
    (tmp_path / "mlperf_log_detail.txt").write_text(lines)
    log = LoadGenLog(tmp_path, 30.0)
    log.follow()
    assert [(it.rate, it.passed) for it in log.tests] == [(30.0, False)]
    assert log.highest is None
