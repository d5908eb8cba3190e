"""Load in sentences: the same as the pictures of a scenario."""

from bisect import bisect_right
from collections.abc import Sequence

from dlbricks_tui.scenarios.outcome import MeasuredLoad, PredictedLoad, Range, is_positive, percentile_ms, percentile_of
from dlbricks_tui.scenarios.scenario import Kind, Scenario
from dlbricks_tui.store.records import LoadTest
from dlbricks_tui.wording.ages import ago
from dlbricks_tui.wording.numbers import PREDICTED, counted, percent
from dlbricks_tui.wording.scenarios import in_us, percentile_name, rate_in_words

_SO_FAR = (50.0, 90.0, 99.0)


def load_question(model: str) -> str:
    """Return the question that a scenario answers."""
    return f"How much load can {model} serve?"


def load_answer(scenario: Scenario, tested: LoadTest | None, predicted: PredictedLoad | None) -> list[str]:
    """Return the answer to a scenario in up to two phrases; none if it was neither tested nor predicted.

    A tested figure comes first, with its age: `38.04 requests/s with p99 within 50 ms, measured 4 min ago`, `predicted
    ~48.63/s (40.12 to 55.20)`.
    """
    if tested is None:
        return [] if predicted is None else [_predicted(scenario, predicted)]
    name = percentile_name(scenario.percentile)
    if scenario.seeks_rate:
        told = f"{_rate(tested.rate or 0.0, ' requests/s')} with {name}{_bound(scenario)}"
    elif scenario.kind is Kind.OFFLINE:
        told = f"{_rate(tested.per_second, ' samples/s')} at batch size {tested.batch_size}"
    else:
        told = f"{name} {_latency(percentile_ms(tested))}{_verdict(scenario, is_met=is_positive(tested))}"
    told += f", measured {ago(tested.when)}"
    return [told] if predicted is None else [told, f"predicted {_second(scenario, tested, predicted)}"]


def _second(scenario: Scenario, tested: LoadTest, predicted: PredictedLoad) -> str:
    """Return the predicted figure that stands behind a tested one."""
    if scenario.seeks_rate:
        return _rate(predicted.per_second, "/s")
    if scenario.kind is Kind.OFFLINE:
        size = predicted.batch_size
        return _rate(predicted.per_second, "/s") + ("" if size == tested.batch_size else f" at batch size {size}")
    found = predicted.at(scenario.percentile)
    return f"median {_latency(predicted.p50_ms)}" if found is None else _latency(found)


def _predicted(scenario: Scenario, found: PredictedLoad) -> str:
    name = percentile_name(scenario.percentile)
    if scenario.seeks_rate:
        return f"{_rate(found.per_second, ' requests/s')} with {name}{_bound(scenario)}"
    if scenario.kind is Kind.OFFLINE:
        return f"{_rate(found.per_second, ' samples/s')} at batch size {found.batch_size}"
    latency, verdict = found.at(scenario.percentile), _verdict(scenario, is_met=found.valid)
    return f"median {_latency(found.p50_ms)}{verdict}" if latency is None else f"{name} {_latency(latency)}{verdict}"


def _bound(scenario: Scenario) -> str:
    return "" if scenario.bound_ms is None else f" within {scenario.bound_ms:g} ms"


def _verdict(scenario: Scenario, *, is_met: bool) -> str:
    at = "" if scenario.rate is None else f" at {rate_in_words(scenario.rate)}"
    return at + ("" if scenario.bound_ms is None else f",{'' if is_met else ' not'}{_bound(scenario)}")


def _rate(found: Range | float, unit: str) -> str:
    if not isinstance(found, Range):
        return f"{rate_in_words(found).removesuffix('/s')}{unit}"
    value, low, high = (rate_in_words(it).removesuffix("/s") for it in (found.value, found.low, found.high))
    return f"{PREDICTED}{value}{unit} ({low} to {high})"


def _latency(found: Range | float) -> str:
    if not isinstance(found, Range):
        return in_us(found)
    low, high = (in_us(it).removesuffix(" ms") for it in (found.low, found.high))
    return f"{PREDICTED}{in_us(found.value)} ({low} to {high})"


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
