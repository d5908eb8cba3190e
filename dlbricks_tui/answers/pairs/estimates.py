"""Two models, or one model in two variants, compared by what is known of their latencies."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import TYPE_CHECKING

from dlbricks_tui.answers.comparisons.named import PairKind
from dlbricks_tui.answers.estimating import open_estimator
from dlbricks_tui.answers.pairs.compared import (
    ComparedPart,
    ComparedSide,
    NotComparableError,
    compared_two,
    half_widths,
    largest_first,
)
from dlbricks_tui.estimate.compositions import milliseconds as in_milliseconds
from dlbricks_tui.printable import printable
from dlbricks_tui.runtime.variant import kernels_in_words, stated_threads, threads_in_words
from dlbricks_tui.store.change import Timing, all_compared, compared
from dlbricks_tui.store.labels import kind_of_label, label_of
from dlbricks_tui.wording.numbers import counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dlbricks_tui.answers.estimating import Remarks
    from dlbricks_tui.answers.pairs.compared import ComparedTwo
    from dlbricks_tui.answers.scope import EstimateOptions
    from dlbricks_tui.estimate.knowledge import Latency
    from dlbricks_tui.estimate.parts import Part
    from dlbricks_tui.estimate.system_estimate import SystemEstimate
    from dlbricks_tui.folders import DataFolder
    from dlbricks_tui.models.library import ModelSource

# Bricks are compared where they make up this share of the time of both, else kinds of layers.
_IN_COMMON = 0.5
_MEASURED, _ESTIMATED, _PREDICTED = "measured", "estimated", "estimated, partly predicted"


@dataclass(frozen=True, slots=True)
class EstimatedSide:
    """A model in a variant: its estimate, and its latency if it was timed end to end."""

    name: str
    found: SystemEstimate
    timing: Timing | None = None


def compare_estimates(of: str, first: EstimatedSide, second: EstimatedSide, *, cure: str = "") -> ComparedTwo:
    """Compare two models or variants; raise NotComparableError if one has no latency.

    `cure` tells what gives them one.
    """
    both = (first, second)
    batches = [it.found.variant.batch for it in both]
    items = batches if batches[0] != batches[1] else [1, 1]
    # Like is compared with like where that is possible.
    by_measured = all(it.found.end_to_end is not None for it in both) or any(
        _estimate_of(it.found) is None for it in both
    )
    known: list[Latency] = []
    for side in both:
        latency = _latency(side, by_measured=by_measured)
        if latency is None or not latency.value_ms > 0:
            raise NotComparableError(f"{side.name} has no latency yet{f': {cure}' if cure else ''}")
        known.append(latency)
    one, other = (_side(*it) for it in zip(both, known, items, strict=True))
    was, now = (_timing(*it) for it in zip(both, known, strict=True))
    return compared_two(
        of,
        (one, other),
        compared(was.per_item(items[0]), now.per_item(items[1])).around(other.ms / one.ms),
        _parts(first.found, second.found),
        dict(_differences(first.found, second.found)),
        _remarks(both, (one, other), batches),
    )


def _estimate_of(found: SystemEstimate) -> Latency | None:
    from dlbricks_tui.estimate.knowledge import Latency

    composed = found.estimate.composed
    if composed is None or found.estimate.is_partial or not composed.sequential_ms > 0:
        return None
    return Latency(composed.sequential_ms, composed.interval.low_ms, composed.interval.high_ms)


def _latency(side: EstimatedSide, *, by_measured: bool) -> Latency | None:
    """Return the measured latency or the estimate, whichever is wanted, or else the other one."""
    measured, estimated = side.found.end_to_end, _estimate_of(side.found)
    return (measured or estimated) if by_measured else (estimated or measured)


def _timing(side: EstimatedSide, known: Latency) -> Timing:
    is_measured = known is side.found.end_to_end
    if is_measured and side.timing is not None:
        return side.timing
    return known.timing(end_to_end=is_measured)


def _side(side: EstimatedSide, known: Latency, items: int) -> ComparedSide:
    found = side.found
    how = _PREDICTED if found.estimate.coverage.predicted else _ESTIMATED
    between = found.measured_between
    since = "" if between is None else datetime.fromtimestamp(between[0], timezone.utc).isoformat()
    value, low, high = (it / items for it in known)
    return ComparedSide(side.name, _MEASURED if known is found.end_to_end else how, value, (low, high), since)


def _remarks(both: Sequence[EstimatedSide], sides: Sequence[ComparedSide], batches: Sequence[int]) -> Iterator[str]:
    if batches[0] != batches[1]:
        yield f"Batch sizes differ ({batches[0]} and {batches[1]}): the latencies are those of one item."
    if [it.how for it in sides].count(_MEASURED) == 1:
        yield "One was measured end to end and the other is estimated: measure both for a fair comparison."
    for letter, side in zip("AB", both, strict=True):
        if predicted := side.found.estimate.coverage.predicted:
            yield f"{letter}: {counted(predicted, 'layer')} of {side.found.estimate.coverage.layers:,} predicted."


def _parts(first: SystemEstimate, second: SystemEstimate) -> tuple[str, tuple[ComparedPart, ...]]:
    """Return the bricks that both have, or the kinds of layers where they have few bricks in common."""
    ones, others = _by_brick(first), _by_brick(second)
    common = [it for it in ones if it in others]
    shares = [_share(common, held) for held in (ones, others)]
    if min(shares) >= _IN_COMMON:
        return "bricks", _of_bricks(ones, others)
    kinds = [_by_kind(it) for it in (first, second)]
    names = dict.fromkeys([*kinds[0], *kinds[1]])
    return "kinds of layers", largest_first(
        [ComparedPart(name, kinds[0].get(name), kinds[1].get(name)) for name in names]
    )


_ByBrick = dict[str, list["Part"]]


def _by_brick(found: SystemEstimate) -> _ByBrick:
    held: defaultdict[str, list[Part]] = defaultdict(list)
    for part in found.estimate.parts:
        if part.counts and part.paid_ps:
            held[part.brick.key].append(part)
    return dict(held)


def _share(keys: Sequence[str], held: _ByBrick) -> float:
    total = sum(part.paid_ps for some in held.values() for part in some)
    return sum(part.paid_ps for key in keys for part in held[key]) / total if total else 0.0


def _of_bricks(ones: _ByBrick, others: _ByBrick) -> tuple[ComparedPart, ...]:
    keys = list(dict.fromkeys([*ones, *others]))
    both = [key for key in keys if key in ones and key in others]
    timings = [(_sum_of(ones[key]), _sum_of(others[key])) for key in both]
    verdicts = {key: change.verdict for key, change in zip(both, all_compared(timings), strict=True)}
    return largest_first(
        [
            ComparedPart(_name_of(key, ones, others), _ms(ones.get(key)), _ms(others.get(key)), verdicts.get(key))
            for key in keys
        ]
    )


def _name_of(key: str, ones: _ByBrick, others: _ByBrick) -> str:
    parts = ones.get(key) or others[key]
    times = sum(part.times for part in parts)
    name = printable(label_of(parts[0].brick.canonical)) or key[:12]
    return f"{name}, {times} times" if times > 1 else name


def _ms(parts: list[Part] | None) -> float | None:
    return None if parts is None else in_milliseconds(sum(part.paid_ps for part in parts))


def _sum_of(parts: Sequence[Part]) -> Timing:
    """Return the latency of all parts of a brick together."""
    value = sum(part.times * part.latency.value_ms for part in parts)
    below, above = half_widths(
        [(it.times * it.latency.value_ms, it.times * it.latency.low_ms, it.times * it.latency.high_ms) for it in parts]
    )
    return Timing(value_ms=value, low_ms=max(0.0, value - below), high_ms=value + above)


def _by_kind(found: SystemEstimate) -> dict[str, float]:
    held: defaultdict[str, int] = defaultdict(int)
    for part in found.estimate.parts:
        if part.counts and part.paid_ps:
            held[kind_of_label(label_of(part.brick.canonical)).value] += part.paid_ps
    return {kind: in_milliseconds(paid_ps) for kind, paid_ps in held.items()}


def _differences(first: SystemEstimate, second: SystemEstimate) -> Iterator[tuple[str, tuple[str, str]]]:
    told = [list(_facts(it)) for it in (first, second)]
    for (name, one), (_, other) in zip(*told, strict=True):
        if one != other:
            yield name, (one, other)


def _facts(found: SystemEstimate) -> Iterator[tuple[str, str]]:
    variant, estimate, way = found.variant, found.estimate, found.way
    yield "system", way.system
    yield "runtime", way.runtime.partition(" ")[0] or "none"
    yield "threads", threads_in_words(stated_threads(way.runtime))
    yield "batch size", str(variant.batch)
    yield "precision", variant.precision.value
    yield "kernels", ", ".join(kernels_in_words(variant.kernels))
    yield "level", estimate.level.value
    yield "method", way.protocol
    yield "layers", f"{estimate.coverage.layers:,}"
    yield "measured", _days(found)


def _days(found: SystemEstimate) -> str:
    if found.measured_between is None:
        return "not at all"
    first, last = (datetime.fromtimestamp(it, timezone.utc).date().isoformat() for it in found.measured_between)
    return first if first == last else f"{first} to {last}"


def compare_models(
    first: ModelSource, second: ModelSource, options: EstimateOptions, data: DataFolder, remarks: Remarks
) -> ComparedTwo:
    """Compare two models as the options estimate them; raise NotComparableError where one has no latency."""
    if (first.path, first.name) == (second.path, second.name):
        raise NotComparableError(
            f"both are {first.name}: name two models, or `dlbricks compare {first.name}` for its runtimes and variants"
        )
    with open_estimator(options, data, remarks) as estimator:
        answers = estimator.answers([first, second], estimator.scope_of([first, second]))
        if len(answers) < 2:
            raise NotComparableError("one of the two models cannot be read, so there is nothing to compare")
        sides = [
            EstimatedSide(
                it.source.name,
                it.found,
                it.inquiry.timing(it.found.way),
            )
            for it in answers
        ]
    return compare_estimates(PairKind.MODEL, *sides, cure=f"`dlbricks run {first.name} {second.name}` measures both")
