"""The gain of running independent layers at the same time, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dlbricks_tui.wording.numbers import PREDICTED, counted

if TYPE_CHECKING:
    from dlbricks_tui.estimate.system_estimate import SystemEstimate

# A smaller speed-up is shown as 1.00.
_LEAST_GAIN = 1.005


def parallel_sentences(one: SystemEstimate) -> str:
    """Return how much faster parallel layers could make the model, and why it may be less here; empty if unknown."""
    # Loaded here: the first screen needs no estimate.
    from dlbricks_tui.estimate.explanation import parallel_gain

    composed, workers = one.estimate.composed, one.estimate.options.workers
    if composed is None:
        return ""
    part = " for the part with a latency" if one.estimate.is_partial else ""
    gain = parallel_gain(composed)
    if composed.parallel_ms == composed.sequential_ms:
        return f"No two layers can run at the same time: parallel execution gains nothing{part}."
    if gain < _LEAST_GAIN:
        return f"Parallel layers gain less than 1 %{part}, even with cores of their own."
    sign = PREDICTED if one.estimate.coverage.predicted else ""
    most = f"At most {sign}{gain:.2f} times as fast{part}, if independent layers had cores of their own"
    told = f"{most}; {cores_in_words(one.variant.threads, one.cores)}."
    if composed.workers_ms is None or not composed.workers_ms or workers is None:
        return told
    with_workers = composed.sequential_ms / composed.workers_ms
    count = counted(workers, "worker")
    if f"{with_workers:.2f}" == f"{gain:.2f}":
        return f"{told} {count} {'is' if workers == 1 else 'are'} enough for that."
    return f"{told} With {count}: {sign}{with_workers:.2f} times."


def cores_in_words(threads: int | None, cores: int | None) -> str:
    """Return how many of the cores each brick used while it was timed."""
    if threads is None:
        return "here each brick used the default threads of the runtime"
    if cores is None:
        return f"here each brick used {counted(threads, 'thread')}"
    if threads < cores:
        return f"here each brick used {'one' if threads == 1 else threads} of {cores} cores"
    if cores == 1:
        return "this system has one core only"
    return f"here each brick already used {'both' if cores == 2 else f'all {cores}'} cores"
