"""The settings of a scenario, as the rows of their panel."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, replace

from dlbricks_tui.answers.scenarios.predicting import MOST_BOUND_MS, MOST_INSTANCES, MOST_RATE, MOST_REQUESTS_IN_A_BATCH
from dlbricks_tui.runtime.runtime import MOST_THREADS
from dlbricks_tui.scenarios.scenario import Kind, usual_percentile
from dlbricks_tui.tui.choices import BATCH_SIZES, with_own
from dlbricks_tui.tui.dialogs.writing import WritingError, number_up_to, one_number, whole_numbers
from dlbricks_tui.tui.widgets.form import FormSetting, Written

BOUNDS_MS = tuple(step * 10.0**power for power in range(4) for step in (1, 2, 5))
PERCENTILES = (90.0, 95.0, 99.0, 99.9)
_BATCHES = tuple((size,) for size in BATCH_SIZES)
_CORES = os.cpu_count() or 1
_USUAL = "usual"


@dataclass(frozen=True, slots=True)
class ScenarioSettings:
    """A scenario as the user has chosen it; None is the usual value."""

    # The names of the runtimes to choose from, the usual one first.
    runtimes: tuple[str, ...] = ()
    kind: Kind = Kind.SERVER
    # None: ten times the estimate of a server, and no bound of the other kinds.
    bound_ms: float | None = None
    percentile: float | None = None
    # None: the highest rate within the bound.
    rate: float | None = None
    # The largest batch of waiting requests, or several sizes: these ones.
    batch_sizes: tuple[int, ...] = ()
    instances: int = 1
    threads: int | None = None
    runtime: str | None = None
    full: bool = False


def _percentile(text: str) -> float | None:
    if not text:
        return None
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0.0 < number < 100.0:
        raise WritingError("Write a percentile between 0 and 100, such as 99 or 99.9")
    return number


class ScenarioSetting(FormSetting):
    """The settings of a scenario."""

    KIND = (
        "kind",
        "kind",
        "how requests arrive",
        lambda it: it.kind.value,
        lambda _: Kind,
    )
    BOUND = (
        "bound",
        "bound_ms",
        "of the percentile",
        lambda it: (_USUAL if it.kind is Kind.SERVER else "none") if it.bound_ms is None else f"{it.bound_ms:g} ms",
        lambda it: (None, *with_own(BOUNDS_MS, it.bound_ms)),
        Written("12.5", "The bound in milliseconds.", lambda text: number_up_to(text, MOST_BOUND_MS, "ms")),
    )
    PERCENTILE = (
        "percentile",
        "percentile",
        "of the latencies",
        lambda it: f"p{usual_percentile(it.kind) if it.percentile is None else it.percentile:g}",
        lambda it: with_own(PERCENTILES, usual_percentile(it.kind) if it.percentile is None else it.percentile),
        Written("99", "The percentile of the latencies that the bound is about.", _percentile),
    )
    RATE = (
        "rate",
        "rate",
        "requests per second",
        lambda it: "highest" if it.rate is None else f"{it.rate:g}/s",
        lambda it: (None,) if it.rate is None else (None, it.rate),
        Written(
            "25",
            "Requests per second; an empty line seeks the highest rate within the bound.",
            lambda text: number_up_to(text, MOST_RATE, "requests per second"),
        ),
    )
    BATCHES = (
        "batch",
        "batch_sizes",
        "most requests together",
        lambda it: ",".join(map(str, it.batch_sizes)) or _USUAL,
        lambda it: ((), *_BATCHES, *((it.batch_sizes,) if it.batch_sizes not in ((), *_BATCHES) else ())),
        Written(
            "4",
            "The largest batch: smaller ones are served if fewer requests wait. Several sizes: these ones.",
            lambda text: whole_numbers(text, MOST_REQUESTS_IN_A_BATCH),
        ),
    )
    INSTANCES = (
        "instances",
        "instances",
        "copies of the model",
        lambda it: f"{it.instances}",
        lambda it: with_own(range(1, _CORES + 1), it.instances),
        Written("2", "Copies of the model.", lambda text: one_number(text, MOST_INSTANCES) or 1),
    )
    THREADS = (
        "threads",
        "threads",
        "of each instance",
        lambda it: _USUAL if it.threads is None else f"{it.threads}",
        lambda it: (None, *with_own(range(1, _CORES + 1), it.threads)),
        Written("1", "Threads of each instance.", lambda text: one_number(text, MOST_THREADS)),
    )
    RUNTIME = (
        "runtime",
        "runtime",
        "that serves",
        lambda it: it.runtime or _USUAL,
        lambda it: (None, *it.runtimes),
    )
    LENGTH = (
        "length",
        "full",
        "of the tests",
        lambda it: "MLPerf" if it.full else "short",
        lambda _: (False, True),
    )

    def stepped(self, settings: ScenarioSettings, step: int) -> ScenarioSettings:
        """Return the settings with the next value of this one, or the previous one for `step` -1."""
        if self is ScenarioSetting.PERCENTILE and settings.percentile is None:
            settings = replace(settings, percentile=usual_percentile(settings.kind))
        stepped: ScenarioSettings = super().stepped(settings, step)
        return stepped
