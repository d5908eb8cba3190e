from dataclasses import replace

import pytest

from dlbricks_tui.documents.load_pictures import LoadCurve, MeasuredRate, load_plot
from dlbricks_tui.scenarios.scenario import Scenario, ScenarioKind
from tests.documents.snapshots import check
from tests.documents.test_drawing import text_of

SERVER = Scenario(kind=ScenarioKind.SERVER, percentile=99.0, bound_ms=50.0)
# A queue that serves at most 90 requests per second.
CURVE = tuple((float(rate), 20.0 / (1.0 - rate / 90.0)) for rate in range(5, 90, 5))
TESTS = (MeasuredRate(50.0, 40.0, True), MeasuredRate(70.0, 95.0, False))
LOAD = LoadCurve(predicted=CURVE, bound_ms=50.0, highest=54.0, highest_ms=50.0, tests=TESTS, running=(57.0, 30.0))


def points_of(curve: LoadCurve) -> dict[str, tuple[tuple[float, float], ...]]:
    return {it.mark: it.points for it in load_plot(curve, SERVER).series}


def test_tests_that_passed_and_failed_and_the_one_in_progress_differ_by_shape() -> None:
    cases = {
        "all": LOAD,
        "no test in progress": replace(LOAD, running=None),
        "no latency at the highest rate": replace(LOAD, highest_ms=None, tests=()),
        "no highest rate": replace(LOAD, highest=None, highest_ms=None, bound_ms=None),
        "tests alone": LoadCurve(tests=TESTS),
        "a test in progress alone": LoadCurve(running=(57.0, 30.0), bound_ms=5.0),
    }
    check("load-curve", {name: load_plot(curve, SERVER) for name, curve in cases.items()})
    text = "   ".join(line.strip() for line in text_of(load_plot(LOAD, SERVER), 80, 14)[:2])
    assert text == (
        "ms by requests per second   ~ predicted p99   x failed   o passed   ? now   ─ bound 50 ms   "
        "│ highest rate ~54.00"
    )


def test_an_impossible_bound_is_below_the_curve() -> None:
    found = load_plot(LoadCurve(predicted=CURVE, bound_ms=2.0), SERVER)
    assert found.up.low < 2.0 < min(ms for _, ms in CURVE) < found.up.high


def test_tests_beyond_the_picture_stand_at_its_upper_edge() -> None:
    slow = LoadCurve(predicted=CURVE, bound_ms=50.0, tests=[MeasuredRate(80.0, 90_000.0, False)])
    _, first, *others = text_of(load_plot(slow, SERVER), 80, 14)
    assert "x" in first and not any("x" in line for line in others)


@pytest.mark.parametrize("predicted", [(), CURVE])
def test_tests_are_drawn_without_a_prediction(predicted: tuple[tuple[float, float], ...]) -> None:
    assert points_of(LoadCurve(predicted=predicted, tests=TESTS))["x"] == ((70.0, 95.0),)
