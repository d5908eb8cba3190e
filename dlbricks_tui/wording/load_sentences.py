"""Load in sentences: the same as the pictures of a scenario."""

from bisect import bisect_right
from collections.abc import Sequence

from dlbricks_tui.scenarios.outcome import MeasuredLoad, PredictedLoad, Range, percentile_of
from dlbricks_tui.wording.load_charts import LoadCurve
from dlbricks_tui.wording.numbers import PREDICTED, counted, percent
from dlbricks_tui.wording.scenarios import in_us, percentile_name, rate_in_words

_SO_FAR = (50.0, 90.0, 99.0)


def load_question(model: str) -> str:
    """Return the question that a scenario answers."""
    return f"How much load can {model} serve?"


def load_sentence(curve: LoadCurve, name: str) -> str:
    """Return how the latency of a percentile grows with the rate, and how many tests have passed."""
    words = []
    if curve.predicted:
        (low, first_ms), *_ = curve.predicted
        words.append(f"{name} is {PREDICTED}{in_us(first_ms)} at {rate_in_words(low)}")
        if curve.highest is not None:
            there = "" if curve.highest_ms is None else f"{PREDICTED}{in_us(curve.highest_ms)} at "
            words[-1] += f" and {there}the highest rate{',' if there else ' is'} {rate_in_words(curve.highest)}"
    if curve.tests:
        passed = sum(it.passed for it in curve.tests)
        words.append(f"{passed} of {counted(len(curve.tests), 'test')} passed")
    if curve.running is not None:
        words.append(f"now {in_us(curve.running[1])} at {rate_in_words(curve.running[0])}")
    return "; ".join(words) + "."


def percentiles_sentence(predicted: PredictedLoad | None, measured: MeasuredLoad | None, bound_ms: float | None) -> str:
    """Return the median and the 99th percentile, predicted and measured."""
    words = [
        f"{name}: p50 {sign}{_in_us(load.p50_ms)}, p99 {sign}{_in_us(load.p99_ms)}"
        for name, sign, load in (("predicted", PREDICTED, predicted), ("measured", "", measured))
        if load is not None
    ]
    return "; ".join([*words, *([] if bound_ms is None else [f"bound {bound_ms:g} ms"])]) + "."


def histogram_sentence(
    ordered_ms: Sequence[float], percentile: float, bound_ms: float | None, predicted_ms: float | None
) -> str:
    """Return the median, the percentile beside the predicted one, and how many requests exceed the bound."""
    name = percentile_name(percentile)
    words = [
        f"{counted(len(ordered_ms), 'request')}: median {in_us(percentile_of(ordered_ms, 50.0))}",
        f"{name} {in_us(percentile_of(ordered_ms, percentile))}"
        + ("" if predicted_ms is None else f" (predicted {PREDICTED}{in_us(predicted_ms)})"),
    ]
    if bound_ms is not None:
        above = len(ordered_ms) - bisect_right(ordered_ms, bound_ms)
        words.append(f"{above:,} above the bound of {bound_ms:g} ms, {percent(above / len(ordered_ms), 2)}")
    return ", ".join(words) + "."


def so_far_sentence(ordered_ms: Sequence[float], bound_ms: float | None) -> str:
    """Return the percentiles of a test in progress."""
    words = [f"{percentile_name(it)} {in_us(percentile_of(ordered_ms, it))}" for it in _SO_FAR]
    bound = "" if bound_ms is None else f", bound {bound_ms:g} ms"
    return f"{counted(len(ordered_ms), 'request')} so far: {', '.join(words)}{bound}."


def _in_us(value: Range | float) -> str:
    return in_us(value.value if isinstance(value, Range) else value)
