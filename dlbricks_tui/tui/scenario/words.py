"""The head of the scenario screen in words."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

from dlbricks_tui.documents.lines import Line, Span, line
from dlbricks_tui.documents.load_curve import FAILED, PASSED
from dlbricks_tui.documents.scenario import load_answer
from dlbricks_tui.tui.keys.keymap import Hint
from dlbricks_tui.wording.ages import measured_ago
from dlbricks_tui.wording.scenarios import execution_line, message_line, progress_line, scenario_line

if TYPE_CHECKING:
    from dlbricks_tui.scenarios.messages import LoadTestDone
    from dlbricks_tui.scenarios.scenario import Scenario
    from dlbricks_tui.tui.scenario.measuring import Measuring
    from dlbricks_tui.tui.scenario.work import ScenarioView


def answer_line(model: str, view: ScenarioView | None, refusal: str) -> Line:
    """Return the answer to a scenario as a sentence: what a test has found, and what is predicted."""
    name = Span(f" {model}: ", "strong")
    answer = None if view is None else view.answer
    told = [] if answer is None else load_answer(answer.scenario, answer.best_test, answer.prediction)
    if not told:
        return line(name, Span(refusal, "warn") if refusal else Span("how much load can it serve?"))
    return line(name, Span("; ".join(told), "strong"))


def state_line(view: ScenarioView | None, measuring: Measuring | None, failure: str) -> Line:
    """Return how far the measurement is, or what the scenario is."""
    if measuring is not None:
        return line(Span(" "), *_state_of(measuring))
    if failure:
        return line(Span(f" The measurement failed: {failure}", "bad"))
    if view is None:
        return line(Span(" "))
    answer, measured = view.answer, measured_ago(view.results)
    where = execution_line(answer.system, answer.execution)
    return line(Span(f" {scenario_line(answer.scenario)}; {where}{f', {measured}' if measured else ''}", "muted"))


def ended_line(test: LoadTestDone, scenario: Scenario) -> Line:
    """Return what a test of a measurement has found."""
    sign, style = (PASSED, "good") if test.passed else (FAILED, "bad")
    return line(Span(f"{sign} ", style), message_line(test, scenario))


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
