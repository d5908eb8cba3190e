"""Tests of sentences and pictures about load."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pytest

from dlbricks_tui.api.scenarios import ScenarioAnswer
from dlbricks_tui.documents.load_pictures import (
    MeasuredRate,
    histogram_plot,
    load_plot,
    percentiles_plot,
    progress_plot,
    throughput_rows,
)
from dlbricks_tui.documents.parts import Part, Sentence, Table
from dlbricks_tui.documents.scenario import (
    load_question,
    load_test_columns,
    load_test_parts,
    outcome_table,
    scenario_parts,
    stored_parts,
    verdict_parts,
)
from dlbricks_tui.models.library import ModelSource
from dlbricks_tui.scenarios.kinds import ScenarioKind
from dlbricks_tui.scenarios.scenario import LoadFigures, PredictedLoad, Range, Scenario
from dlbricks_tui.store.records import LoadTest
from dlbricks_tui.store.statistics import pack_latencies
from dlbricks_tui.wording import numbers
from tests.documents.snapshots import check
from tests.documents.test_drawing import text_of
from tests.store.samples import WHEN, load_test

SERVER = Scenario(kind=ScenarioKind.SERVER, percentile=99.0, bound_ms=50.0)
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


def test_a_scenario_has_its_answer_figures_and_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numbers, "now", lambda: datetime.fromisoformat(WHEN).timestamp() + 3600)
    test, other = load_test(uuid="1d" * 16), load_test(uuid="2d" * 16, sought=False, wake_up_ms=0.4, instances=2)
    offline = load_test(kind="offline", rate=None, sought=False, batch_size=4, bound_ms=None, per_second=300.0)
    single = load_test(kind="single", rate=None, sought=False, bound_ms=9.0)

    def answer(scenario: Scenario, *stored: LoadTest, at_rates: bool = False) -> ScenarioAnswer:
        return ScenarioAnswer(
            source=ModelSource("net", Path("net.onnx")),
            system="c5",
            execution=None,
            scenario=scenario,
            prediction=None,
            service=None,
            refusal="",
            cure="",
            order=None,
            load_tests=() if at_rates else stored,
            load_tests_of_model=(),
            load_tests_at_rates=stored if at_rates else (),
            notes=(),
        )

    def told(scenario: Scenario, test: LoadTest | None, predicted: PredictedLoad | None = PREDICTED) -> Iterator[Part]:
        return scenario_parts(answer(scenario), predicted, test, is_new=test is not other, logs="/logs" * bool(test))

    at_rate = replace(SERVER, rate=40.0)
    batches = replace(PREDICTED, batch_size=4)
    check(
        "scenario",
        {
            "server": told(SERVER, test),
            "server at a rate, measured before": told(at_rate, other),
            "server predicted": told(SERVER, None),
            "server at a rate, the bound not met": told(at_rate, None, replace(PREDICTED, valid=False)),
            "nothing": told(SERVER, None, None),
            "single stream": told(Scenario(kind=ScenarioKind.SINGLE, percentile=90.0, bound_ms=9.0), single, None),
            "offline": told(Scenario(kind=ScenarioKind.OFFLINE, percentile=99.0), offline, batches),
            "offline at another batch size": told(Scenario(kind=ScenarioKind.OFFLINE, percentile=99.0), offline),
            "offline predicted": told(Scenario(kind=ScenarioKind.OFFLINE, percentile=99.0), None),
            "a percentile that is not predicted": told(Scenario(kind=ScenarioKind.SINGLE, percentile=95.0), None),
            "stored": stored_parts(answer(SERVER, test, other)),
            "one stored": stored_parts(answer(SERVER, test)),
            "one stored at a rate": stored_parts(answer(SERVER, test, at_rates=True)),
            "one test": load_test_parts(test),
        },
    )
    many = [it.text for it in stored_parts(answer(SERVER, *[test] * 21)) if isinstance(it, Sentence)]
    assert many[1] == "21 stored tests of this scenario, the newest 20:"
    assert load_question("net") == "How much load can net serve?"


def test_load_tests_have_figures_verdicts_and_rows() -> None:
    few = load_test(queries=100, latencies=pack_latencies([10_000_000] * 100), seconds=2.5)
    failed = load_test(valid=False, reasons=("early stopping not satisfied",), bound_ms=9.0)
    offline = load_test(uuid="3d" * 16, kind="offline", rate=None, sought=False, batch_size=4)
    tests = [load_test(uuid="1d" * 16), load_test(uuid="2d" * 16, sought=False), offline]
    own, multi = load_test(percentile=95.0), load_test(kind="multi", sought=False, per_second=80.0)
    check(
        "load-tests",
        {
            "a percentile of its own": [outcome_table(replace(SERVER, percentile=95.0), None, own)],
            "streams count samples": [outcome_table(Scenario(kind=ScenarioKind.MULTI, percentile=99.0), None, multi)],
            "too few requests": verdict_parts(few),
            "a negative verdict": verdict_parts(failed),
            "of one scenario": [Table(load_test_columns(SERVER), tests)],
        },
        width=80,
    )
    several = Table(load_test_columns(), [tests[0], replace(offline, batch_size=1)])
    check("load-tests-wide", {"of several scenarios": [several]}, width=110)
    check("load-tests-narrow", {"of several scenarios": [several]}, width=45)


MEASURED = LoadFigures(p50_ms=10.0, p90_ms=12.0, p99_ms=15.0, p999_ms=20.0, per_second=50.0)


def latencies(*in_ms: int) -> str:
    return pack_latencies([1_000_000 * it for it in in_ms])


def test_percentiles_and_throughputs_are_predicted_beside_measured() -> None:
    check(
        "load-pictures",
        {
            "percentiles": percentiles_plot(PREDICTED, MEASURED, 16.0),
            "percentiles measured": percentiles_plot(None, MEASURED, None),
            "percentiles predicted within a high bound": percentiles_plot(PREDICTED, None, 30.0),
            "no percentiles": percentiles_plot(None, None, 16.0),
            "throughput": throughput_rows((1, 2, 4), {1: 60.0, 4: 90.0}, {1: 55.0}),
            "no throughput": throughput_rows((1, 2), {}, {}),
            "histogram": histogram_plot(load_test(bound_ms=3.5, latencies=latencies(1, 1, 2, 4)), PREDICTED),
            "histogram without a bound": histogram_plot(load_test(bound_ms=None, latencies=latencies(1, 2)), None),
            "no histogram": histogram_plot(load_test(kind="offline"), None),
            "nothing in it": histogram_plot(load_test(latencies=latencies()), None),
            "in progress": progress_plot([1.0, 2.0, 2.0, 9.0], [1.0, 2.0, 2.0, 9.0], 8, SERVER),
            "in progress without a bound": progress_plot(
                [1.0] * 3, [1.0] * 3, 1, Scenario(kind=ScenarioKind.SINGLE, percentile=90.0)
            ),
        },
    )


def test_the_picture_of_a_test_in_progress_fills_from_the_left() -> None:
    def filled(answered: int) -> float:
        latencies = [10.0 + each % 7 for each in range(answered)]
        found = progress_plot(latencies, sorted(latencies), 662, SERVER)
        return max(x for it in found.series for x, _ in it.points) / found.across.high

    assert filled(100) < filled(300) < filled(662) <= 1.0
    # More requests than expected do not leave the picture.
    assert filled(2000) <= 1.0


def test_slow_requests_stand_above_the_bound_and_crowds_have_other_signs() -> None:
    found = progress_plot([10.0] * 3000 + [200.0], [10.0] * 3000 + [200.0], 662, SERVER)
    by_mark = {it.mark: [y for _, y in it.points] for it in found.series}
    assert all(y > 50.0 for y in by_mark["."][-1:]) and all(y < 50.0 for y in by_mark[":"])
    assert found.says == "3,001 requests so far: p50 10.00 ms, p90 10.00 ms, p99 10.00 ms, bound 50 ms."


# A queue that serves at most 90 requests per second.
CURVE = tuple((float(rate), 20.0 / (1.0 - rate / 90.0)) for rate in range(5, 90, 5))
TESTS = (MeasuredRate(50.0, 40.0, True), MeasuredRate(70.0, 95.0, False))
EXPECTED = replace(PREDICTED, per_second=Range(54.0, 50.0, 58.0), p99_ms=Range(50.0, 45.0, 55.0))
RUNNING = (57.0, 30.0)


def test_tests_that_passed_and_failed_and_the_one_in_progress_differ_by_shape() -> None:
    everything, unbound = load_plot(SERVER, CURVE, EXPECTED, TESTS, RUNNING), replace(SERVER, bound_ms=None)
    cases = {
        "all": everything,
        "no test in progress": load_plot(SERVER, CURVE, EXPECTED, TESTS),
        "no latency at the highest rate": load_plot(replace(SERVER, percentile=95.0), CURVE, EXPECTED, (), RUNNING),
        "no highest rate": load_plot(unbound, CURVE, None, TESTS, RUNNING),
        "tests alone": load_plot(unbound, tests=TESTS),
        "a test in progress alone": load_plot(replace(SERVER, bound_ms=5.0), running=RUNNING),
        "an impossible bound": load_plot(replace(SERVER, bound_ms=2.0), CURVE),
    }
    check("load-curve", cases)
    text = "   ".join(line.strip() for line in text_of(everything, 80, 14)[:2])
    assert text == (
        "ms by requests per second   ~ predicted p99   x failed   o passed   ? now   ─ bound 50 ms   "
        "│ highest rate ~54.00"
    )


def test_tests_beyond_the_picture_stand_at_its_upper_edge() -> None:
    slow = load_plot(SERVER, CURVE, tests=[MeasuredRate(80.0, 90_000.0, False)])
    _, first, *others = text_of(slow, 80, 14)
    assert "x" in first and not any("x" in line for line in others)
