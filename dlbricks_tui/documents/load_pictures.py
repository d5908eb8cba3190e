"""The pictures of load: latencies by rate, percentiles, throughput by batch size, and the latencies of a test."""

from __future__ import annotations

import math
from bisect import bisect_right
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from dlbricks_tui.documents.pictures import Axis, BarRow, LegendSign, Plot, Rows, Series, StraightLine
from dlbricks_tui.scenarios.kinds import ScenarioKind
from dlbricks_tui.scenarios.scenario import latencies_ms, percentile_ms, percentile_of
from dlbricks_tui.wording.jobs import percentile_name, rate_in_words
from dlbricks_tui.wording.numbers import PREDICTED, counted, in_ms, milliseconds, percent

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from dlbricks_tui.api.scenarios import ScenarioAnswer
    from dlbricks_tui.scenarios.scenario import LoadFigures, LoadTestDone, PredictedLoad, Scenario
    from dlbricks_tui.store.records import LoadTest

_SO_FAR = (50.0, 90.0, 99.0)
_NAMES = ("p50", "p90", "p99", "p99.9")
_ABOVE = 1.1
# The bars of a histogram, and the cells of the picture of a test in progress.
_BARS, _COLUMNS, _ROWS = 48, 150, 40
# No latency is shorter; logarithms have no zero.
_LEAST_MS = 1e-6
# Up to 4, up to 24, and more requests in a cell.
_CROWDS = ((".", "muted", 5.0), (":", "accent", 25.0), ("#", "strong", math.inf))
# The share of the latencies whose range a histogram shows; slower ones are in its last bar.
_SHOWN_PERCENTILE = 99.0
# No more than so many times the latency of most requests.
_LONGEST, _USUAL_PERCENTILE = 4.0, 90.0


def percentiles_plot(
    predicted: PredictedLoad | None, measured: LoadFigures | None, bound_ms: float | None
) -> Plot | None:
    """Return the percentiles of the latency, predicted beside measured."""
    found = [
        (name, mark, style, percentiles_of(load))
        for name, mark, style, load in (
            ("predicted", PREDICTED, "accent", predicted),
            ("measured", PASSED, "good", measured),
        )
        if load is not None
    ]
    if not found:
        return None
    says = []
    for name, mark, _, (median, _, high, _) in found:
        sign = PREDICTED if mark == PREDICTED else ""
        says.append(f"{name}: p50 {sign}{in_ms(median)}, p99 {sign}{in_ms(high)}")
    says += [] if bound_ms is None else [f"bound {bound_ms:g} ms"]
    places = tuple((float(place), name) for place, name in enumerate(_NAMES))
    series = tuple(Series(name, mark, style, tuple(enumerate(values)), ".") for name, mark, style, values in found)
    most_ms = max(*(ms for it in series for _, ms in it.points), bound_ms or 0.0)
    return Plot(
        "ms by percentile",
        f"{'; '.join(says)}.",
        Axis(-0.2, len(_NAMES) - 0.8, ticks=places),
        Axis(0.0, _ABOVE * most_ms),
        series,
        () if bound_ms is None else (StraightLine(f"bound {in_ms(bound_ms)}", bound_ms),),
    )


def throughput_rows(sizes: Sequence[int], predicted: Mapping[int, float], measured: Mapping[int, float]) -> Rows | None:
    """Return the samples per second of each batch size as bars, measured ones where there are any."""
    legend = (LegendSign("=", "measured", "bar", "█"), LegendSign(PREDICTED, "predicted", "accent", "░"))
    rows = []
    for size in sizes:
        is_measured = size in measured
        value = measured.get(size, predicted.get(size))
        if value is not None:
            text = f"{'' if is_measured else PREDICTED}{milliseconds(value)}"
            rows.append(BarRow(f"batch {size}", (legend[not is_measured].piece(0.0, value),), text=text))
    if not rows:
        return None
    told = "; ".join(f"{row.name}: {row.text}" for row in rows)
    longest = max(row.pieces[0].high for row in rows)
    return Rows("Samples per second", f"{told} samples per second.", Axis(0.0, longest), tuple(rows), legend)


@lru_cache(maxsize=8)
def histogram_plot(test: LoadTest, predicted: PredictedLoad | None) -> Plot | None:
    """Return how many requests took how long, with the bound and the percentile, predicted and measured.

    Latencies of an offline test only say when its samples had their turn.
    """
    ordered = sorted(latencies_ms(test))
    if test.kind == ScenarioKind.OFFLINE.value or not ordered:
        return None
    import numpy as np

    at_ms, name = percentile_of(ordered, test.percentile), percentile_name(test.percentile)
    there = None if predicted is None else predicted.at(test.percentile)
    expected = None if there is None else there.value
    low_ms = ordered[0]
    ends = [percentile_of(ordered, _SHOWN_PERCENTILE), at_ms, *filter(None, [test.bound_ms, expected])]
    # A bound far away would leave one bar of everything.
    high_ms = min(_ABOVE * max(ends), _LONGEST * percentile_of(ordered, _USUAL_PERCENTILE))
    high_ms = high_ms if high_ms > low_ms else low_ms * _ABOVE + _LEAST_MS
    counts, edges = np.histogram(np.clip(ordered, low_ms, high_ms), bins=_BARS, range=(low_ms, high_ms))
    # Bars that touch are one series; none is drawn where there are no requests.
    steps: list[list[tuple[float, float]]] = [[]]
    for count, left, right in zip(counts.tolist(), edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        if count:
            steps[-1] += [(left, float(count)), (right, float(count))]
        elif steps[-1]:
            steps.append([])
    marks = [StraightLine(f"{name} {in_ms(at_ms)}", at_ms, "strong")]
    says = f"{counted(len(ordered), 'request')}: median {in_ms(percentile_of(ordered, 50.0))}, {name} {in_ms(at_ms)}"
    if expected is not None:
        marks.append(StraightLine(f"predicted {name} {PREDICTED}{in_ms(expected)}", expected, "accent"))
        says += f" (predicted {PREDICTED}{in_ms(expected)})"
    if test.bound_ms is not None:
        marks.append(StraightLine(f"bound {test.bound_ms:g} ms", test.bound_ms))
        above = len(ordered) - bisect_right(ordered, test.bound_ms)
        says += f", {above:,} above the bound of {test.bound_ms:g} ms, {percent(above / len(ordered), 2)}"
    return Plot(
        "Requests by ms",
        f"{says}.",
        Axis(low_ms, high_ms),
        Axis(0.0, _ABOVE * float(counts.max())),
        tuple(Series("", "#", "bar", tuple(each), "#", filled=True) for each in steps if each),
        uprights=tuple(it for it in marks if it.value <= high_ms),
    )


def progress_plot(
    latencies_ms: Sequence[float], ordered_ms: Sequence[float], expected: int, scenario: Scenario
) -> Plot:
    """Return the latencies of the test in progress in the order of its requests; the picture fills from the left."""
    import numpy as np

    latencies = np.maximum(np.asarray(latencies_ms, dtype=np.float64), _LEAST_MS)
    bound_ms = scenario.bound_ms
    low_ms, high_ms = float(latencies.min()) / _ABOVE, max(float(latencies.max()), bound_ms or 0.0) * _ABOVE
    requests = max(expected, latencies.size, 2)
    columns = np.rint(np.arange(latencies.size) * ((_COLUMNS - 1) / requests))
    rows = np.rint(np.log(latencies / low_ms) * ((_ROWS - 1) / math.log(high_ms / low_ms)))
    cells, counts = np.unique(columns * _ROWS + rows, return_counts=True)
    crowds: dict[str, list[tuple[float, float]]] = {sign: [] for sign, _, _ in _CROWDS}
    for cell, count in zip(cells.tolist(), counts.tolist(), strict=True):
        column, row = divmod(int(cell), _ROWS)
        place = column * requests / (_COLUMNS - 1), low_ms * math.exp(math.log(high_ms / low_ms) * row / (_ROWS - 1))
        crowds[next(sign for sign, _, below in _CROWDS if count < below)].append(place)
    names = dict(zip(crowds, ("few requests", "some", "many"), strict=True))
    series = [Series(names[sign], sign, style, tuple(crowds[sign])) for sign, style, _ in _CROWDS if crowds[sign]]
    told = ", ".join(f"{percentile_name(it)} {in_ms(percentile_of(ordered_ms, it))}" for it in _SO_FAR)
    bounds = [] if bound_ms is None else [StraightLine(f"bound {bound_ms:g} ms", bound_ms)]
    says = f"{counted(len(ordered_ms), 'request')} so far: {', '.join([told, *(it.name for it in bounds)])}."
    axes = Axis(0.0, float(requests)), Axis(low_ms, high_ms, is_log=True)
    return Plot("ms of each request", says, *axes, tuple(series), tuple(bounds))


def percentiles_of(load: PredictedLoad | LoadFigures) -> tuple[float, ...]:
    """Return the four percentiles in milliseconds."""
    found = (load.p50_ms, load.p90_ms, load.p99_ms, load.p999_ms)
    return tuple(it if isinstance(it, float) else it.value for it in found)


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


def server_plot(
    answer: ScenarioAnswer,
    predicted: Sequence[LoadPoint],
    ended: Sequence[LoadTestDone] | None = None,
    running: LoadPoint | None = None,
) -> Plot | None:
    """Return the latency of a server by the rate, predicted and in tests; None for other kinds, or if nothing is known.

    These are the tests of a measurement that have ended, and the one in progress; without one the stored ones.
    """
    if ended is None:
        found = [(it.rate, percentile_ms(it), it.valid) for it in answer.stored_tests]
    else:
        found = [(it.rate, it.percentile_ms, it.passed) for it in ended]
    tests = [MeasuredRate(rate, latency_ms, passed) for rate, latency_ms, passed in found if rate is not None]
    if answer.scenario.kind is not ScenarioKind.SERVER or not (predicted or tests or running):
        return None
    scenario, expected = answer.scenario, answer.prediction
    is_sought = expected is not None and expected.valid and scenario.rate is None
    return load_plot(scenario, predicted, expected if is_sought else None, tests, running)


def load_plot(
    scenario: Scenario,
    predicted: Sequence[LoadPoint] = (),
    expected: PredictedLoad | None = None,
    tests: Sequence[MeasuredRate] = (),
    running: LoadPoint | None = None,
) -> Plot:
    """Return the latency of a percentile by requests per second; `expected` has the highest rate within the bound."""
    bound_ms, name = scenario.bound_ms, percentile_name(scenario.percentile)
    measured = [*((it.rate, it.latency_ms) for it in tests), *filter(None, [running])]
    highest = [] if expected is None else [expected.per_second.value]
    # Both axes begin where something is drawn.
    least_ms = min(latency_ms for _, latency_ms in (*predicted, *measured))
    most_ms = max((bound_ms or 0.0) * _OVER_BOUND, least_ms * _OVER_LEAST)
    within = [rate for rate, latency_ms in predicted if latency_ms <= most_ms]
    most_rate = max([*within, *(rate for rate, _ in measured), *highest], default=0.0)
    lowest_ms = min(least_ms, bound_ms or least_ms) / _UNDER_LEAST
    across, up = Axis(0.0, most_rate * _BEYOND_MOST or 1.0), Axis(lowest_ms, most_ms, is_log=True)
    # The prediction leaves the picture at its upper edge; tests stay there.
    drawn = tuple((rate, ms) for rate, ms in predicted if ms <= up.high)
    series = (
        Series(f"predicted {name}", PREDICTED, "accent", drawn, PREDICTED),
        Series("failed", FAILED, "bad", tuple((it.rate, it.latency_ms) for it in tests if not it.passed)),
        Series("passed", PASSED, "good", tuple((it.rate, it.latency_ms) for it in tests if it.passed)),
        Series("now", _RUNNING, "strong", () if running is None else (running,)),
    )
    levels = () if bound_ms is None else (StraightLine(f"bound {bound_ms:g} ms", bound_ms),)
    uprights = tuple(StraightLine(f"highest rate {PREDICTED}{milliseconds(it)}", it, "accent") for it in highest)
    shown = tuple(it for it in series if it.points)
    says = "; ".join(_sentences(scenario, predicted, expected, tests, running))
    return Plot("ms by requests per second", f"{says}.", across, up, shown, levels, uprights)


def _sentences(
    scenario: Scenario,
    predicted: Sequence[LoadPoint],
    expected: PredictedLoad | None,
    tests: Sequence[MeasuredRate],
    running: LoadPoint | None,
) -> Iterator[str]:
    """Yield how the latency of a percentile grows with the rate, and how many tests have passed."""
    if predicted:
        (low, first_ms), *_ = predicted
        told = f"{percentile_name(scenario.percentile)} is {PREDICTED}{in_ms(first_ms)} at {rate_in_words(low)}"
        if expected is not None:
            there, most = expected.at(scenario.percentile), f"{PREDICTED}{rate_in_words(expected.per_second.value)}"
            at = "the highest rate is" if there is None else f"{PREDICTED}{in_ms(there.value)} at the highest rate,"
            told += f" and {at} {most}"
        yield told
    if tests:
        yield f"{sum(it.passed for it in tests)} of {counted(len(tests), 'test')} passed"
    if running is not None:
        yield f"now {in_ms(running[1])} at {rate_in_words(running[0])}"
