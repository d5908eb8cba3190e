"""The differences between two measured executions of a model: their gain, and what each layer saves."""

from typing import NamedTuple

from dlbricks_tui.analysis.bounds import ratio_of
from dlbricks_tui.analysis.groups import (
    MeasuredExecution,
    are_comparable,
    groups_of,
    is_conversion,
    latency_of,
    layer_names,
    paid_ps,
    split,
)
from dlbricks_tui.analysis.what_if import Gain
from dlbricks_tui.estimate.compositions import milliseconds
from dlbricks_tui.estimate.knowledge import Latency


def gain_between(before: Latency, after: Latency, speed_difference: float = 0.0) -> Gain:
    """Return the gain of a change, given both latencies.

    Their errors count as independent. The speed of the host differed between the two by a share.
    """
    half = speed_difference * after.value_ms
    ratio = ratio_of(Latency(after.value_ms, max(0.0, after.low_ms - half), after.high_ms + half), before)
    return Gain(1.0 - ratio.value, 1.0 - ratio.high, 1.0 - ratio.low)


def speed_difference(one: MeasuredExecution, other: MeasuredExecution) -> float:
    """Return the share by which the host was slower or faster during one measurement; 0 if it is not known.

    The reference shows it. Its latency depends on the runtime and its settings, so it tells nothing about two of them.
    """
    if one.found.way.runtime != other.found.way.runtime:
        return 0.0
    first, second = _reference_ms(one), _reference_ms(other)
    return abs(second / first - 1.0) if first and second else 0.0


class Saving(NamedTuple):
    """The layers of a group of nodes, and the time that a change saves in it; negative if it costs time."""

    layers: tuple[str, ...]
    before_ms: float
    saved_ms: float


def savings(before: MeasuredExecution, after: MeasuredExecution) -> tuple[Saving, ...]:
    """Return what a change saves in each group, per item of a batch; none if their files have no layers in common."""
    if not are_comparable(before, after):
        return ()
    one, other = before.graph.batch_size, after.graph.batch_size
    found = []
    for group in groups_of([before, after]).groups:
        first, second = (
            milliseconds(paid_ps(each, parts)) / size
            for each, parts, size in zip((before, after), group.parts, (one, other), strict=True)
        )
        shown, numbers = (before, group.parts[0]) if group.parts[0] else (after, group.parts[1])
        found.append(Saving(layer_names(shown, numbers), first, first - second))
    return tuple(found)


def by_layer_name(before: MeasuredExecution, after: MeasuredExecution) -> tuple[Saving, ...]:
    """Return what a change saves in the layers whose written layers have the same names in both files.

    The layers of a quantised copy have those of its model, and more.
    """
    if before.file == after.file:
        return savings(before, after)
    numbers: dict[str, int] = {}
    covers = [_named_cover(it, numbers) for it in (before, after)]
    found = []
    for group in split({0: range(len(covers[0])), 1: range(len(covers[1]))}, covers):
        first, second = group.parts
        if first and second:
            before_ms, after_ms = milliseconds(paid_ps(before, first)), milliseconds(paid_ps(after, second))
            found.append(Saving(layer_names(before, first), before_ms, before_ms - after_ms))
    return tuple(found)


def _named_cover(one: MeasuredExecution, numbers: dict[str, int]) -> list[tuple[int, ...]]:
    """Return numbers for the names of the written layers behind each part; without these for its own name."""
    written = {} if one.written is None else {node: it.name for it in one.written.layers for node in it.nodes}
    cover = []
    for part in one.parts:
        layers = [one.graph.layers[index] for index in part.layers]
        names = [written.get(node, "") for layer in layers for node in layer.nodes]
        names = list(filter(None, names)) or [layer.name for layer in layers]
        is_own = not any(map(is_conversion, layers))
        cover.append(tuple([numbers.setdefault(name, len(numbers)) for name in names]) if is_own else ())
    return cover


def latencies_per_item(before: MeasuredExecution, after: MeasuredExecution) -> tuple[Latency, Latency]:
    """Return the latencies that are compared: for each item of a batch if the batch sizes differ.

    They are those of the whole models if both were timed end to end, else the estimates of both.
    """
    first, second = before.found.end_to_end, after.found.end_to_end
    if first is None or second is None:
        first, second = latency_of(before), latency_of(after)
    return per_item(first, before, after), per_item(second, after, before)


def per_item(latency: Latency, of: MeasuredExecution, other: MeasuredExecution) -> Latency:
    """Return a latency for each item of a batch if the batch sizes of two executions differ, else as it is."""
    size = of.graph.batch_size
    return latency if size == other.graph.batch_size else Latency(*(it / size for it in latency))


def _reference_ms(one: MeasuredExecution) -> float:
    """Return the mean latency of the reference while the parts were measured, by their time; 0 if it is not known."""
    known = [(part.paid_ps, part.measured.reference_ms) for part in one.parts if part.measured is not None]
    weighed = [(paid, reference_ms) for paid, reference_ms in known if reference_ms and paid]
    paid_in_all = sum(paid for paid, _ in weighed)
    return sum(paid * reference_ms for paid, reference_ms in weighed) / paid_in_all if paid_in_all else 0.0
