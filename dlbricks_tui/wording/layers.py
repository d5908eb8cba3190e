"""Layers in words: their names, the slowest of them, and which run in parallel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from dlbricks_tui.wording.numbers import PREDICTED, counted, in_ms, percent
from dlbricks_tui.wording.titles import layer_title

if TYPE_CHECKING:
    from dlbricks_tui.estimate.parts import Slowest, SlowPart
    from dlbricks_tui.estimate.system_estimate import SystemEstimate
    from dlbricks_tui.models.graph import LayerGraph


def common_beginning(names: Sequence[str]) -> str:
    """Return the words that all names begin with; nothing for a single name."""
    if len(set(names)) < 2:
        return ""
    first, last = min(names), max(names)
    same = next((at for at, (one, other) in enumerate(zip(first, last, strict=False)) if one != other), len(first))
    return first[: max(first.rfind(sign, 0, same) for sign in "_/.") + 1]


def usual_beginning(names: Sequence[str]) -> str:
    """Return the words that at least four fifths of the names begin with; nothing for a single name."""
    ordered, odd = sorted(names), len(names) // 10
    # Names with the same beginning are neighbours.
    return common_beginning(ordered[odd : len(ordered) - odd])


def bricks_words(granularity: int) -> str:
    """Return the size of bricks: `bricks of 1 layer`, `bricks of up to 3 layers`."""
    return f"bricks of {'up to ' * (granularity > 1)}{counted(granularity, 'layer')}"


def title_of(graph: LayerGraph, slow: SlowPart) -> str:
    """Return the titles of its layers: `conv 3x3 64 > pool 2x2`."""
    return " > ".join(layer_title(graph.layers[index]) for index in slow.part.layers)


def name_of(graph: LayerGraph, slow: SlowPart) -> str:
    """Return the name of its layer in the file, or of the first and the last one."""
    first, last = slow.part.layers[0], slow.part.layers[-1]
    name = graph.layers[first].name
    return name if first == last else f"{name} .. {graph.layers[last].name}"


def sign_of_part(slow: SlowPart) -> str:
    """Return the mark of a predicted latency; nothing for a measured one."""
    return PREDICTED if slow.part.predicted else ""


def slowest_in_words(slow: Slowest) -> str:
    """Return the share that the slowest sequences take together."""
    if not slow.parts:
        return "no layer has a latency"
    single = all(len(it.part.layers) == 1 for it in slow.parts)
    of = f"{len(slow.parts)} of {counted(slow.sequences, 'layer' if single else 'sequence')}"
    takes = "takes" if len(slow.parts) == 1 else "take"
    return f"{of} {takes} {percent(slow.parts[-1].cumulative)} of {in_ms(slow.total_ms)}"


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
