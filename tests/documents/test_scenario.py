from dataclasses import replace

from dlbricks_tui.documents.look import TEXT
from dlbricks_tui.documents.parts import Table
from dlbricks_tui.documents.scenario import load_test_columns, outcome_table, prediction_sentence, verdict_parts
from dlbricks_tui.scenarios.outcome import PredictedLoad, Range
from dlbricks_tui.scenarios.scenario import Kind, Scenario
from dlbricks_tui.store.packed_latencies import pack_latencies
from dlbricks_tui.store.records import LoadTest
from tests.documents.test_layout import texts
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


def verdict_of_test(test: LoadTest) -> list[str]:
    return [it.text for it in verdict_parts(test)]


def test_predicted_and_measured_figures_stand_beside_one_another() -> None:
    assert texts(80, outcome_table(SERVER, PREDICTED, load_test()), look=TEXT)[:5] == [
        "                  PREDICTED                    95 %   MEASURED  DIFFERENCE",
        "highest rate       ~44.00/s          40.00 to 48.00    40.00/s     +10.0 %",
        "p50              ~10.000 ms         9.900 to 10.100  10.000 ms      +0.0 %",
        "p90              ~11.000 ms        10.900 to 11.100  11.601 ms      -5.2 %",
        "p99              ~12.500 ms        12.000 to 13.000  12.000 ms      +4.2 %",
    ]


def test_a_percentile_of_its_own_has_a_row() -> None:
    test = load_test(percentile=95.0)
    lines = texts(80, outcome_table(replace(SERVER, percentile=95.0), None, test))
    assert [line.split()[0] for line in lines[2:]] == ["p50", "p90", "p95", "p99", "p99.9"]
    assert lines[4] == "p95           11.801 ms"


def test_streams_count_samples() -> None:
    multi = Scenario(kind=Kind.MULTI, percentile=99.0)
    test = load_test(kind="multi", sought=False, per_second=80.0)
    assert texts(80, outcome_table(multi, None, test))[1] == "samples/s    80.00/s"


def test_a_prediction_says_whether_the_bound_is_met() -> None:
    def told(predicted: PredictedLoad, scenario: Scenario = SERVER) -> str:
        return prediction_sentence(scenario, predicted).text

    assert told(PREDICTED).startswith("predicted: the bound is met; from 132,400 simulated requests")
    assert "is not met" in told(replace(PREDICTED, valid=False))
    assert told(PREDICTED, replace(SERVER, bound_ms=None, rate=1.0)).startswith("predicted from")


def test_a_verdict_has_its_confidence_the_bound_and_the_cost_of_passing() -> None:
    assert verdict_of_test(load_test()) == [
        "LoadGen: VALID, 700 requests in 18 s, enough for 99 % confidence in p99",
        "the bound of 20 ms is met: p99 is 12.000 ms",
        "40.00/s were sent, 39.60/s answered",
        "batch 1; passing a request to the worker and back costs 0.150 ms",
    ]


def test_too_few_requests_are_said_to_be_too_few() -> None:
    latencies = pack_latencies([10_000_000] * 100)
    (verdict, *_) = verdict_of_test(load_test(queries=100, latencies=latencies, seconds=2.5))
    assert verdict.endswith("too few for 99 % confidence in p99, which needs 662")


def test_a_negative_verdict_has_its_reasons_and_no_confidence() -> None:
    lines = verdict_of_test(load_test(valid=False, reasons=("early stopping not satisfied",), bound_ms=9.0))
    assert lines[:3] == [
        "LoadGen: INVALID, 700 requests in 18 s",
        "  early stopping not satisfied",
        "the bound of 9 ms is not met: p99 is 12.000 ms",
    ]


def test_stored_tests_are_rows_that_tell_what_was_tested() -> None:
    offline = load_test(kind="offline", rate=None, sought=False, batch_size=4)
    tests = [load_test(uuid="1d" * 16), load_test(sought=False), offline]
    header, *rows = texts(80, Table(load_test_columns(SERVER), tests), look=TEXT)
    assert header.split() == ["WHEN", "(UTC)", "TEST", "PER", "SECOND", "p99", "(ms)", "REQUESTS", "VERDICT", "ID"]
    assert rows[0].startswith("2026-11-21 08:00  highest ")
    assert rows[0].endswith("VALID    1d1d1d1d")
    assert [row[18:26].strip() for row in rows] == ["highest", "at rate", "batch 4"]


def test_stored_tests_of_several_scenarios_tell_which_where_there_is_little_room() -> None:
    tests = [load_test(), load_test(kind="offline", rate=None, sought=False)]
    wide, narrow = (texts(width, Table(load_test_columns(), tests)) for width in (110, 45))
    assert wide[0].split() == ["when", "scenario", "per", "second", "ms", "requests", "verdict", "id"]
    assert "11-21  server: the highest rate with p99 within 20 ms " in wide[1]
    assert narrow[1:] == [
        "11-21  server: …       40.00  12.000  VALID",
        "11-21  offline:…       39.60  12.000  VALID",
    ]
