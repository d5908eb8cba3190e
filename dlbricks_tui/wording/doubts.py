"""Doubts about figures in sentences: a slow host, a contradicted estimate, an unusual engine; and cures."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from typing import TYPE_CHECKING

from dlbricks_tui.bricks.decomposition import Cutting
from dlbricks_tui.measure.method import Method
from dlbricks_tui.models.graph import Level
from dlbricks_tui.runtime.traits import TRAITS
from dlbricks_tui.runtime.variant import AskedVariant, Precision, stated_threads
from dlbricks_tui.settings.cutting import CUTTING, LEVEL
from dlbricks_tui.settings.setting import options_in_words
from dlbricks_tui.settings.variant import EXECUTION, RUNTIME, THREADS, USUAL_EXECUTION
from dlbricks_tui.wording.numbers import counted, milliseconds, slower_words

if TYPE_CHECKING:
    from dlbricks_tui.estimate.explanation import Disagreement
    from dlbricks_tui.estimate.system_estimate import SystemEstimate

_USUAL_CUTTING = Cutting()
# What to doubt, by the one of two latencies that is suspected.
_SUSPECTS = {
    "estimate": "doubt its bricks: they",
    "measurement": "doubt the latency: its bricks",
    "either": "doubt it: its bricks",
}


def doubts_about(one: SystemEstimate, named: str = "") -> tuple[str, ...]:
    """Return a sentence for each reason to doubt the figures of a model, with the command that settles it.

    `named` is the model as commands name it, if not by its name.
    """
    # Loaded here: the first screen needs no estimate.
    from dlbricks_tui.estimate.explanation import disagreement

    command = settling_command(one, named)
    found, slow = disagreement(one), slow_host(one)
    if found is not None:
        return tuple(filter(None, (slow, _contradiction(one, found, command))))
    return (f"{slow} `{command}` on a quiet host replaces them.",) if slow else ()


def doubt_in_short(one: SystemEstimate) -> str:
    """Return the first reason to doubt the figures of a model in a few words; empty without one."""
    from dlbricks_tui.estimate.explanation import disagreement, slowdown

    composed, whole, slow = one.estimate.composed, one.end_to_end, slowdown(one)
    found = disagreement(one)
    if found is not None and composed is not None and whole is not None:
        low, high = milliseconds(composed.interval.low_ms), milliseconds(composed.interval.high_ms)
        return f"{_SUSPECTS[found.suspect.value]} add up to {low} to {high} ms"
    return "" if slow is None else f"doubt it: the host was {slower_words(slow.largest - 1)} than usual"


def slow_host(one: SystemEstimate) -> str:
    """Return by how much the host was slower than usual when the figures of a model were measured; empty if not."""
    from dlbricks_tui.estimate.explanation import slowdown

    found = slowdown(one)
    if found is None:
        return ""
    apart = min(found.bricks, found.model) < found.largest - 0.1
    if apart and one.end_to_end:
        what = "the model was" if found.model > found.bricks else "the bricks were"
    else:
        what = "this was"
    return (
        f"The host was {slower_words(found.largest - 1)} than usual when {what} measured: the figures may be too "
        "high by as much."
    )


def settling_command(one: SystemEstimate, named: str = "") -> str:
    """Return the command that measures a model and its bricks anew, together, in the variant of an estimate."""
    found, batch = one.estimate, one.variant.batch
    own = {"threads": stated_threads(one.way.runtime), "batch": batch if batch > 1 else None}
    words = options_of(one.runtime_name, AskedVariant(**one.variant.parts | own), found.level, found.cutting)
    return shlex.join(["dlbricks", "run", named or found.model, *words, "--again", "--end-to-end"])


def options_of(
    runtime: str, variant: AskedVariant, level: Level, cutting: Cutting, usual: Cutting = _USUAL_CUTTING
) -> list[str]:
    """Return the options of `dlbricks run` for a runtime, a variant and a cutting, without those that are usual."""
    given = (
        (RUNTIME, runtime or None),
        *((it, getattr(variant, it.field)) for it in (THREADS, *EXECUTION)),
        (LEVEL, level),
        *((it, getattr(cutting, it.field)) for it in CUTTING),
    )
    asked = ((it, value) for it, value in given if value is not Precision.FILE)
    return [*options_in_words(asked, {**USUAL_EXECUTION, **{it: getattr(usual, it.field) for it in CUTTING}})]


def _contradiction(one: SystemEstimate, found: Disagreement, command: str) -> str:
    from dlbricks_tui.estimate.explanation import Suspect

    composed, whole = one.estimate.composed, one.end_to_end
    if composed is None or whole is None:
        return ""
    low, high = milliseconds(composed.interval.low_ms), milliseconds(composed.interval.high_ms)
    outside = f"{milliseconds(whole.value_ms)} ms measured is outside of the estimate's {low} to {high} ms"
    if found.suspect is Suspect.EITHER:
        return f"{outside}, and nothing says which of the two is wrong: `{command}` measures both anew."
    return f"{outside}. Doubt the {found.suspect.value}: {_reason(one, found)}. `{command}` measures both anew."


def _reason(one: SystemEstimate, found: Disagreement) -> str:
    from dlbricks_tui.estimate.explanation import Clue, Suspect

    of_estimate = found.suspect is Suspect.ESTIMATE
    match found.clue:
        case Clue.SLOWER_HOST:
            while_what = "its bricks than for the model" if of_estimate else "the model than for its bricks"
            return f"the host was {found.times_slower:.2f} times as slow for {while_what}"
        case Clue.FEW_SAMPLES:
            return f"it has {counted(one.timed_samples, 'sample')} only"
        case Clue.WIDER_INTERVAL:
            return f"its interval is wider than that of the {'measurement' if of_estimate else 'estimate'}"
        case Clue.OTHER_NETWORKS:
            return "some of its bricks were timed in other networks"
        case _:
            return "it is older"


def engine_remarks(found: Iterable[SystemEstimate]) -> list[str]:
    """Return for each framework a line that says with which engine the end-to-end latencies hold; usually none."""
    told = {}
    for one in found:
        traits = TRAITS.get(one.way.runtime.partition("-")[0])
        if traits is None or one.end_to_end is None or one.way.protocol != Method.INSIDE.id:
            continue
        own = dict(word.split("=", 1) for word in one.way.runtime.split(" ") if "=" in word)
        # On one thread both are as fast.
        if one.variant.threads != 1 and any(name not in own for name, _ in traits.default_engine):
            settings = " ".join(f"{name}={value}" for name, value in traits.profiling_settings)
            told[traits.title] = f"end to end with {settings}; {traits.title}'s default can be slower"
    return list(told.values())
