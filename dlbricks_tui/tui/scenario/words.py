"""The head of the scenario screen in words."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

from dlbricks_tui.scenarios.scenario import Kind
from dlbricks_tui.tui.ages import measured_ago
from dlbricks_tui.tui.keys.keymap import Hint
from dlbricks_tui.tui.lines import Line, Span, line
from dlbricks_tui.wording.numbers import PREDICTED
from dlbricks_tui.wording.scenarios import in_us, percentile_name, progress_line, rate_in_words, scenario_line

if TYPE_CHECKING:
    from dlbricks_tui.scenarios.outcome import PredictedLoad, Range
    from dlbricks_tui.scenarios.scenario import Scenario
    from dlbricks_tui.tui.scenario.measuring import Measuring
    from dlbricks_tui.tui.scenario.work import ScenarioView


def answer_line(model: str, view: ScenarioView | None, refusal: str) -> Line:
    """Return what is predicted of a scenario as a sentence."""
    name = Span(f" {model}: ", "strong")
    if view is None or view.answer.prediction is None:
        return line(name, Span(refusal, "warn") if refusal else Span("how much load can it serve?"))
    return line(name, Span(_predicted(view.answer.scenario, view.answer.prediction), "strong"))


def _predicted(scenario: Scenario, found: PredictedLoad) -> str:
    name = percentile_name(scenario.percentile)
    bound = "" if scenario.bound_ms is None else f" within {scenario.bound_ms:g} ms"
    if scenario.seeks_rate:
        return f"{_rate(found.per_second, 'requests')} with {name}{bound}"
    if scenario.kind is Kind.OFFLINE:
        return f"{_rate(found.per_second, 'samples')} at batch size {found.batch_size}"
    verdict = "" if scenario.bound_ms is None else f", {'' if found.valid else 'not '}{bound.strip()}"
    at = "" if scenario.rate is None else f" at {rate_in_words(scenario.rate)}"
    latency = {50.0: found.p50_ms, 90.0: found.p90_ms, 99.0: found.p99_ms, 99.9: found.p999_ms}.get(scenario.percentile)
    if latency is None:
        return f"median {_latency(found.p50_ms)}{at}{verdict}"
    return f"{name} {_latency(latency)}{at}{verdict}"


def _rate(found: Range, what: str) -> str:
    value, low, high = (rate_in_words(it).removesuffix("/s") for it in (found.value, found.low, found.high))
    return f"{PREDICTED}{value} {what}/s ({low} to {high})"


def _latency(found: Range) -> str:
    low, high = (in_us(it).removesuffix(" ms") for it in (found.low, found.high))
    return f"{PREDICTED}{in_us(found.value)} ({low} to {high})"


def state_line(view: ScenarioView | None, measuring: Measuring | None, failure: str) -> Line:
    """Return how far the measurement is, or what the scenario is."""
    if measuring is not None:
        return line(Span(" "), *_state_of(measuring))
    if failure:
        return line(Span(f" The measurement failed: {failure}", "bad"))
    if view is None:
        return line(Span(" "))
    execution = view.answer.execution
    runtime = "" if execution is None else f"; {execution.runtime.identity}, {execution.level.value} layers"
    measured = measured_ago(view.results)
    return line(Span(f" {scenario_line(view.answer.scenario)}{runtime}{f', {measured}' if measured else ''}", "muted"))


def _state_of(measuring: Measuring) -> Line:
    progress, scenario = measuring.progress, measuring.scenario
    if measuring.cancelled:
        return (Span("cancelling", "warn"),)
    if measuring.paused:
        return (
            Span("paused; others may measure; ", "warn"),
            *Hint("{scenario.pause} repeats the test in progress", "muted").line,
        )
    if progress.waits_for:
        return (Span(f"waits for {progress.waits_for}", "warn"),)
    if progress.test is None:
        told = "loading the model" if progress.ready is None else "the next test starts"
        return (Span(told, "warn"),)
    answered = progress.ordered_ms
    slower = 0 if scenario.bound_ms is None else len(answered) - bisect_right(answered, scenario.bound_ms)
    return (Span(progress_line(progress.test, scenario, len(answered), slower, progress.seconds), "good"),)
