"""Load by rate: the latency of a server against requests per second, predicted and as tests have found it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from dlbricks_tui.documents.pictures import Axis, Level, Plot, Series
from dlbricks_tui.scenarios.outcome import percentile_ms
from dlbricks_tui.wording.numbers import PREDICTED, counted, milliseconds
from dlbricks_tui.wording.scenarios import in_us, percentile_name, rate_in_words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dlbricks_tui.answers.scenarios.predicting import ScenarioAnswer
    from dlbricks_tui.scenarios.messages import LoadTestDone
    from dlbricks_tui.scenarios.scenario import Scenario

# Requests per second with the latency of a percentile.
LoadPoint = tuple[float, float]

PASSED, FAILED = "o", "x"
_RUNNING = "?"
# The room of the vertical axis above the bound, above the least latency, and below it; that beyond the highest rate.
_OVER_BOUND, _OVER_LEAST, _UNDER_LEAST, _BEYOND_MOST = 2.5, 4.0, 1.25, 1.05


class MeasuredRate(NamedTuple):
    """The latency of a percentile at a rate, in requests per second, and whether the test has passed."""

    rate: float
    latency_ms: float
    passed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadCurve:
    """Latencies of a server at different rates, predicted and measured."""

    predicted: Sequence[LoadPoint] = ()
    bound_ms: float | None = None
    # The predicted highest rate within the bound, and the latency of the percentile there, if it is known.
    highest: float | None = None
    highest_ms: float | None = None
    tests: Sequence[MeasuredRate] = ()
    # The test in progress, with its latency so far.
    running: LoadPoint | None = None

    @classmethod
    def of(
        cls,
        answer: ScenarioAnswer,
        predicted: Sequence[LoadPoint],
        ended: Sequence[LoadTestDone] | None = None,
        running: LoadPoint | None = None,
    ) -> LoadCurve:
        """Return the predicted points, the bound and the highest rate of an answer, and tests.

        These are the tests of a measurement that have ended; without one the stored ones.
        """
        if ended is None:
            found = [(it.rate, percentile_ms(it), it.valid) for it in answer.stored_tests]
        else:
            found = [(it.rate, it.percentile_ms, it.passed) for it in ended]
        scenario, expected = answer.scenario, answer.prediction
        expected = expected if expected is not None and expected.valid and scenario.rate is None else None
        there = None if expected is None else expected.at(scenario.percentile)
        return cls(
            predicted=predicted,
            bound_ms=scenario.bound_ms,
            highest=None if expected is None else expected.per_second.value,
            highest_ms=None if there is None else there.value,
            tests=[MeasuredRate(rate, latency_ms, passed) for rate, latency_ms, passed in found if rate is not None],
            running=running,
        )

    @property
    def points(self) -> Sequence[LoadPoint]:
        """All points that are drawn."""
        return [*self.predicted, *((it.rate, it.latency_ms) for it in self.tests), *filter(None, [self.running])]


def load_plot(curve: LoadCurve, scenario: Scenario) -> Plot:
    """Return the latency of a percentile by requests per second; both axes begin where something is drawn."""
    across, up = _axes(curve)
    name = percentile_name(scenario.percentile)
    # The prediction leaves the picture at its upper edge; tests stay there.
    predicted = tuple((rate, ms) for rate, ms in curve.predicted if ms <= up.high)
    series = (
        Series(f"predicted {name}", PREDICTED, "accent", predicted, PREDICTED),
        Series("failed", FAILED, "bad", tuple((it.rate, it.latency_ms) for it in curve.tests if not it.passed)),
        Series("passed", PASSED, "good", tuple((it.rate, it.latency_ms) for it in curve.tests if it.passed)),
        Series("now", _RUNNING, "strong", () if curve.running is None else (curve.running,)),
    )
    levels = () if curve.bound_ms is None else (Level(f"bound {curve.bound_ms:g} ms", curve.bound_ms),)
    highest = curve.highest
    uprights = (
        () if highest is None else (Level(f"highest rate {PREDICTED}{milliseconds(highest)}", highest, "accent"),)
    )
    drawn = tuple(it for it in series if it.points)
    return Plot("ms by requests per second", _sentence(curve, name), across, up, drawn, levels, uprights)


def _axes(curve: LoadCurve) -> tuple[Axis, Axis]:
    least_ms = min(latency_ms for _, latency_ms in curve.points)
    most_ms = max((curve.bound_ms or 0.0) * _OVER_BOUND, least_ms * _OVER_LEAST)
    within = [rate for rate, latency_ms in curve.predicted if latency_ms <= most_ms]
    running = curve.running[0] if curve.running else 0.0
    most_rate = max([*within, *(it.rate for it in curve.tests), running, curve.highest or 0.0])
    lowest_ms = min(least_ms, curve.bound_ms or least_ms) / _UNDER_LEAST
    return Axis(0.0, most_rate * _BEYOND_MOST or 1.0), Axis(lowest_ms, most_ms, is_log=True)


def _sentence(curve: LoadCurve, name: str) -> str:
    """Return how the latency of a percentile grows with the rate, and how many tests have passed."""
    words = []
    if curve.predicted:
        (low, first_ms), *_ = curve.predicted
        words.append(f"{name} is {PREDICTED}{in_us(first_ms)} at {rate_in_words(low)}")
        if curve.highest is not None:
            there = "" if curve.highest_ms is None else f"{PREDICTED}{in_us(curve.highest_ms)} at "
            words[-1] += (
                f" and {there}the highest rate{',' if there else ' is'} {PREDICTED}{rate_in_words(curve.highest)}"
            )
    if curve.tests:
        passed = sum(it.passed for it in curve.tests)
        words.append(f"{passed} of {counted(len(curve.tests), 'test')} passed")
    if curve.running is not None:
        words.append(f"now {in_us(curve.running[1])} at {rate_in_words(curve.running[0])}")
    return "; ".join(words) + "."
