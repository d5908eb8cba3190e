"""The lines of a check: its verdicts in words."""

from datetime import datetime
from typing import TYPE_CHECKING

from dlbricks_tui.answers.checks.results import CheckedModel
from dlbricks_tui.runtime.variant import Kernels, Variant
from dlbricks_tui.wording.checks import change_words, combination_words, unmeasured_line, verdict_line

if TYPE_CHECKING:
    from dlbricks_tui.answers.checks.checking import CheckPlan


def label_of(one: CheckedModel) -> str:
    """Return a model with its combination: `squeezenet1.1 (onnxruntime, 1 thread)`."""
    if (
        one.framework is None
        or one.batch is None
        or one.precision is None
        or one.instructions is None
        or one.optimisation is None
        or one.level is None
    ):
        return one.model
    variant = Variant(one.threads, one.batch, one.precision, Kernels(one.instructions, one.optimisation))
    return f"{one.model} ({combination_words(one.framework, variant, one.level)})"


def line_of(one: CheckedModel) -> str:
    """Return the verdict on a model in one line, with the differences between the measurements."""
    if one.was_ms is None or one.is_ms is None or one.change is None or one.interval is None:
        return unmeasured_line(label_of(one), one.reason)
    change = change_words(one.change, *one.interval)
    notes = [*([one.reason] if one.reason else []), *(it.in_words for it in one.differences)]
    return verdict_line(one.verdict, label_of(one), one.was_ms, one.is_ms, change, one.p_value, notes)


def other_system(plan: "CheckPlan", here: str) -> str:
    """Return the remark that another system has measured the baseline; empty if it was this one, or is not known."""
    there = plan.baselines.system
    if there is None or there.id == here:
        return ""
    return f"{plan.file.name} was measured on another system, {there.id}, and this is {here}: systems differ in speed"


def days_of(plan: "CheckPlan") -> str:
    """Return the days on which the baselines were measured: `2026-11-20`, `2026-11-20 to 2026-11-22`."""
    whens = [item.baseline.result.when for item in plan.items if item.baseline is not None]
    days = sorted({datetime.fromisoformat(when).date().isoformat() for when in whens if when})
    return " to ".join(dict.fromkeys([*days[:1], *days[-1:]]))
