"""Checks as plain values, the JSON documents of `dlbricks check`, and as lines."""

from dataclasses import dataclass, fields
from datetime import datetime
from typing import TYPE_CHECKING

from dlbricks_tui.evaluations.differences import Difference
from dlbricks_tui.host.fingerprint import fingerprint
from dlbricks_tui.models.graph import Level
from dlbricks_tui.runtime.variant import AskedVariant, Variant
from dlbricks_tui.store.change import Verdict
from dlbricks_tui.wording.checks import change_words, combination_words, unmeasured_line, verdict_line

if TYPE_CHECKING:
    from dlbricks_tui.answers.checks.checking import CheckPlan


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedModel(AskedVariant):
    """A model in one combination, measured again; latencies are None where there are none."""

    model: str
    # Today's runtime, by its identity, and the variant; None for a model that the file lacks.
    framework: str | None
    runtime: str | None
    level: Level | None
    was_ms: float | None
    is_ms: float | None
    # The share by which the latency has grown, and its 95 % interval.
    change: float | None
    interval: tuple[float, float] | None
    # Corrected for the number of models; None if there are too few samples.
    p_value: float | None
    significant: bool
    verdict: Verdict
    # Why the verdict is unknown; else empty.
    reason: str
    # False if the model could not be measured, or the file has no latency to compare with.
    compared: bool
    # What was different at the earlier measurement.
    differences: tuple[Difference, ...]
    # When the earlier latency was measured, and the numbers of samples.
    when: str | None
    was_samples: int
    is_samples: int
    # The runs that have measured it now.
    runs: tuple[str, ...]

    @property
    def is_failure(self) -> bool:
        """True if it is slower, or could not be compared."""
        return self.verdict is Verdict.SLOWER or not self.compared


def label_of(one: CheckedModel) -> str:
    """Return a model with its combination: `squeezenet1.1 (onnxruntime, 1 thread)`."""
    if one.framework is None or one.level is None:
        return one.model
    variant = Variant(**{it.name: getattr(one, it.name) for it in fields(AskedVariant)})
    return f"{one.model} ({combination_words(one.framework, variant, one.level)})"


def line_of(one: CheckedModel) -> str:
    """Return the verdict on a model in one line, with the differences between the measurements."""
    if one.was_ms is None or one.is_ms is None or one.change is None or one.interval is None:
        return unmeasured_line(label_of(one), one.reason)
    change = change_words(one.change, *one.interval)
    notes = [*([one.reason] if one.reason else []), *(it.in_words for it in one.differences)]
    return verdict_line(one.verdict, label_of(one), one.was_ms, one.is_ms, change, one.p_value, notes)


def other_system(plan: "CheckPlan") -> str:
    """Return the remark that another system has measured the baseline; empty if it was this one, or is not known."""
    there, here = plan.baselines.system, fingerprint().id
    if there is None or there.id == here:
        return ""
    return f"{plan.file.name} was measured on another system, {there.id}, and this is {here}: systems differ in speed"


def days_of(plan: "CheckPlan") -> str:
    """Return the days on which the baselines were measured: `2026-11-20`, `2026-11-20 to 2026-11-22`."""
    whens = [item.baseline.result.when for item in plan.items if item.baseline is not None]
    days = sorted({datetime.fromisoformat(when).date().isoformat() for when in whens if when})
    return " to ".join(dict.fromkeys([*days[:1], *days[-1:]]))
