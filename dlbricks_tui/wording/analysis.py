"""An analysis as lines of plain characters: bounds, gap and what-ifs."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from dlbricks_tui.analysis.bounds import BestMeasured, GroupTimes, Ratio
from dlbricks_tui.analysis.gap import Gap
from dlbricks_tui.analysis.groups import MeasuredExecution
from dlbricks_tui.analysis.savings import speed_difference
from dlbricks_tui.analysis.what_if import Doubt, Gain, WhatIf, WhatIfKind
from dlbricks_tui.estimate.compositions import milliseconds as from_picoseconds
from dlbricks_tui.estimate.system_estimate import Way
from dlbricks_tui.printable import printable
from dlbricks_tui.runtime.variant import Variant
from dlbricks_tui.wording.numbers import PREDICTED, in_ms, milliseconds, names_of, percent, sign_of, signed_percent
from dlbricks_tui.wording.tables import Column, justified, names_and_numbers, or_dash

_GAP = "  "
WIDEST_BAR = 40
# The best and the parts of a gap as a bar shows them.
BEST_MARK = "."
_MARKS = {"slower layers": "#", "conversions": "=", "calls": "c", "unexplained": "?"}
_LEAST_NAMES = 16
# The speed of a shared host varies by less from run to run.
_ANOTHER_SPEED = 0.15
NO_WHAT_IFS = "none, as no other execution has results of all layers"
# Where a proof and a prediction differ by more, the prediction is wrong. A proof with a wider interval cannot tell.
_AGREE_WITHIN = 0.10
# Larger losses are not told apart: the interval of a noisy latency may reach down to almost zero.
_LARGEST_LOSS = -9.99
# Why unproved what-ifs are not to be trusted: in a list, and as a sentence about one of them.
_DOUBTS = {
    Doubt.PARALLEL: ("parallel (never gained)", "Parallel layers gained in no proof so far."),
    Doubt.SMALL_GAIN: ("gains below 10 %", "A gain below 10 % can be a loss: prove it."),
    Doubt.LOSS: ("sizes of losses", "Sizes of losses are often wrong: prove it."),
}
# The gain of a proof by the id of its what-if.
Proved = Callable[[str], Gain | None]


def headline(model: str, baseline: MeasuredExecution, best: BestMeasured | None, ratio: Ratio | None) -> str:
    """Return the latency of a model, and how many times the best that is."""
    end_to_end, composed = baseline.found.end_to_end, baseline.estimate.composed
    name = printable(model)
    if end_to_end is not None:
        latency = f"{in_ms(end_to_end.value_ms)} measured"
    elif composed is not None:
        latency = f"{_sign_of(baseline)}{in_ms(composed.sequential_ms)} estimated"
    else:
        obstacle = baseline.estimate.obstacle
        return f"{name}: {f'no estimate is possible: {obstacle}' if obstacle else 'nothing was measured'}"
    if best is None or ratio is None:
        return f"{name}: {latency}"
    sign = PREDICTED if best.is_predicted else ""
    return f"{name}: {latency}, {sign}{ratio.value:.2f} times the best measured ({ratio.low:.2f} to {ratio.high:.2f})"


def execution_line(baseline: MeasuredExecution) -> str:
    """Return the execution that is analysed."""
    return way_line(baseline.found.way, baseline.found.variant)


def way_line(way: Way, variant: Variant) -> str:
    """Return the system, the runtime, the level and the variant of an execution."""
    return f"{way.system}, {way.runtime.partition(' ')[0]}, {way.level.value} layers, {variant.in_words}"


class Bound(NamedTuple):
    """A latency of a model, or a bound below it."""

    name: str
    latency_ms: float | None
    # The sign that stands before it if some of it is predicted or missing.
    sign: str
    note: str

    @property
    def text(self) -> str:
        """The latency with its unit, and a dash where it is unknown."""
        return or_dash(lambda it: f"{self.sign}{in_ms(it)}", self.latency_ms)


def bounds_of(baseline: MeasuredExecution, best: BestMeasured | None, roofline_ms: float | None) -> tuple[Bound, ...]:
    """Return the latencies of a model and the bounds below them, the highest first."""
    end_to_end, composed = baseline.found.end_to_end, baseline.estimate.composed
    best_sign = PREDICTED if best is not None and best.is_predicted else ""
    parallel_ms = None if best is None else from_picoseconds(best.parallel_ps)
    return (
        Bound("measured end to end", None if end_to_end is None else end_to_end.value_ms, "", ""),
        Bound("estimate", None if composed is None else composed.sequential_ms, _sign_of(baseline), ""),
        Bound("best measured", None if best is None else best.latency_ms, best_sign, _shares(best)),
        Bound("best in parallel", parallel_ms, best_sign, "along the critical path, with cores to spare"),
        Bound("roofline", roofline_ms, "", "arithmetic and bytes over the peaks"),
    )


def _sign_of(baseline: MeasuredExecution) -> str:
    return sign_of(partial=baseline.estimate.is_partial, predicted=baseline.estimate.predicted_share > 0)


def bound_lines(baseline: MeasuredExecution, best: BestMeasured | None, roofline_ms: float | None) -> list[str]:
    """Return the latencies and the bounds below them."""
    found = bounds_of(baseline, best, roofline_ms)
    width = max(len(it.text) for it in found)
    return [
        f"{_GAP}{it.name:<20}{it.text:>{width}}{_GAP}{it.note if it.latency_ms is not None else ''}".rstrip()
        for it in found
    ]


def uneven_lines(baseline: MeasuredExecution, best: BestMeasured) -> list[str]:
    """Return a line for each execution that the bound contains and that was measured at another speed of the host."""
    won = {winner.execution for winner in best.winners if winner.latency_ps}
    found = []
    for number, one in enumerate(best.executions):
        share = speed_difference(baseline, one)
        if number in won and share > _ANOTHER_SPEED:
            speed = f"the host was {percent(share)} faster or slower"
            found.append(f"{_GAP}{short_name(one)} was measured when {speed}: measure both in one run")
    return found


def _shares(best: BestMeasured | None) -> str:
    """Return how much of the best each execution has won, by time."""
    if best is None or not best.latency_ps:
        return ""
    won: dict[int, int] = {}
    for winner in best.winners:
        won[winner.execution] = won.get(winner.execution, 0) + winner.latency_ps
    several = sorted(((paid, number) for number, paid in won.items() if paid), reverse=True)
    told = [f"{percent(paid / best.latency_ps)} {short_name(best.executions[it])}" for paid, it in several[:3]]
    return ", ".join(told) + (f" and {len(several) - 3} more" if len(several) > 3 else "")


def short_name(one: MeasuredExecution) -> str:
    """Return an execution in few words: its framework, level, threads, and settings of kernels."""
    settings = one.execution.runtime.settings
    kernels = [value.lower() for _, value in settings.environment]
    threads = one.found.variant.threads
    told = [one.execution.runtime.framework, one.graph.level.value, *kernels]
    return " ".join([*told, f"on {threads}"] if threads else told)


class GapPart(NamedTuple):
    """A part of a gap, with its mark in the bar."""

    mark: str
    name: str
    latency_ms: float | None
    # Of the best and all parts together; None if the part is unknown.
    share: float | None

    @property
    def texts(self) -> tuple[str, str]:
        """The latency and the share."""
        latency = or_dash(lambda it: f"{milliseconds(it)} ms", self.latency_ms)
        return latency, "" if self.share is None else signed_percent(self.share)


def gap_heading(gap: Gap) -> str:
    """Return the size of a gap, and the latency that has it."""
    against = "the end-to-end latency"
    if gap.unexplained_ms is None:
        against = "the estimate, as nothing is timed end to end"
    return f"gap to the best: {in_ms(from_picoseconds(gap.total_ps))} of {against}"


def gap_parts(gap: Gap, best: BestMeasured) -> tuple[GapPart, ...]:
    """Return the parts of a gap."""
    parts = {
        "slower layers": gap.slower_layers_ms,
        "conversions": gap.conversions_ms,
        "calls": gap.calls_ms,
        "unexplained": gap.unexplained_ms,
    }
    whole_ms = best.latency_ms + sum(max(0.0, it or 0.0) for it in parts.values())
    return tuple(
        GapPart(_MARKS[name], name, ms, None if ms is None or not whole_ms else ms / whole_ms)
        for name, ms in parts.items()
    )


def gap_bar(parts: Sequence[GapPart], room: int) -> list[tuple[str, str]]:
    """Return the best and the parts as pieces of a bar of so many cells, each with the name of its part."""
    pieces = [(it.mark * round(max(0.0, it.share or 0.0) * room), it.name) for it in parts]
    best = BEST_MARK * max(0, room - sum(len(text) for text, _ in pieces))
    return [(best, "best measured"), *pieces]


def gap_lines(gap: Gap, best: BestMeasured, width: int) -> list[str]:
    """Return the parts of a gap as a bar and as numbers."""
    parts = gap_parts(gap, best)
    bar = "".join(text for text, _ in gap_bar(parts, max(10, min(WIDEST_BAR, width - 4))))
    lines = [gap_heading(gap), f"{_GAP}[{bar}]"]
    for it in parts:
        latency, share = it.texts
        lines.append(f"{_GAP}{it.mark} {it.name:<18}{latency:>12}{share:>9}".rstrip())
    return lines


def interval_of(gain: Gain) -> str:
    """Return the 95 % interval of a gain in percent: `-21 to +1`; `<-999` for the end of a larger loss.

    It ends at 100 %, since no change saves more time than there is.
    """
    if gain.high < _LARGEST_LOSS:
        return "below -999"
    low = "<-999" if gain.low < _LARGEST_LOSS else _in_points(gain.low)
    return f"{low} to {_in_points(min(gain.high, 1.0))}"


def _in_points(share: float) -> str:
    """Return a share in percent, without the unit: `+3`."""
    return f"{round(100 * share):+}"


def gain_with_interval(gain: Gain) -> str:
    """Return a gain with its interval: `-9.4 % (-21 to +1)`."""
    return f"{signed_percent(gain.value)} ({interval_of(gain)})"


def largest_gain(found: Sequence[WhatIf], proved: Proved) -> str:
    """Return the change that saves most, by its proof if it has one; empty if none saves anything for certain."""

    def saved(it: WhatIf) -> float:
        proof = proved(it.id)
        gain = it.gain if proof is None else proof
        return gain.value if gain.low > 0 else 0.0

    best = max((it for it in found if it.change is not None), key=saved, default=None)
    if best is None or saved(best) <= 0:
        return ""
    proof = proved(best.id)
    gain = gain_with_interval(best.gain) if proof is None else f"{gain_with_interval(proof)}, proved"
    told = ", to be proved" if proof is None and best.doubt is not None else ""
    return f"largest gain: {best.id}, {gain}{told}"


def remarks_on(found: WhatIf, changed: MeasuredExecution | None, proof: Gain | None) -> list[str]:
    """Return why the prediction of a what-if is to be trusted or not, in sentences."""
    remarks = []
    if proof is not None:
        remarks.append(_judged(found.gain, proof))
    elif found.doubt is not None:
        remarks.append(_DOUBTS[found.doubt][1])
    if found.change is None:
        remarks.append("It is a bound that no runtime reaches, so it cannot be proved.")
    known = proof or found.gain
    if known.low <= 0 <= known.high:
        remarks.append("The interval contains 0: the change may gain nothing.")
    if found.kind is WhatIfKind.PARALLEL:
        remarks.append("The layers were timed one at a time: side by side they compete for caches and bandwidth.")
    if changed is not None and proof is None:
        measured = changed.found.end_to_end
        if measured is None:
            remarks.append("It compares sums of layers: the whole model was not timed after the change.")
        else:
            remarks.append(f"The whole model took {in_ms(measured.value_ms)} after the change, in another run.")
    return remarks


def _judged(predicted: Gain, proof: Gain) -> str:
    """Return whether a proof agrees with a prediction, in a sentence."""
    if proof.high - proof.low > 2 * _AGREE_WITHIN:
        return f"The proof is noisy: its interval is {interval_of(proof)}. Repeat it on a quiet host."
    points = abs(proof.value - predicted.value)
    judged = "agrees with" if points <= _AGREE_WITHIN else "refutes"
    return f"The proof {judged} the prediction: they differ by {100 * points:.0f} points."


def what_if_lines(found: Sequence[WhatIf], proved: Proved, width: int) -> list[str]:
    """Return a row for each what-if, and under it the setting and the layers that are responsible.

    The interval of a measured gain is left out where the lines would be too long.
    """
    if not found:
        return [f"what-ifs: {NO_WHAT_IFS}"]
    rows = [("WHAT IF", "GAIN", "95 %", "MS", "PROVED", "95 %")]
    for it in found:
        proof = proved(it.id)
        rows.append(
            (
                it.id,
                signed_percent(it.gain.value),
                interval_of(it.gain),
                milliseconds(it.estimate_ms),
                "bound" if it.change is None else "-" if proof is None else signed_percent(proof.value),
                "" if proof is None else interval_of(proof),
            )
        )
    table = names_and_numbers(rows)
    if not any(proved(it.id) for it in found) or len(table[0]) > width:
        table = names_and_numbers([row[:-1] for row in rows])
    titles, *changes = (line.rstrip() for line in table)
    lines = [titles]
    for it, change in zip(found, changes, strict=True):
        lines += [change, f"{_GAP * 2}{it.how}"]
        if it.layers:
            lines.append(f"{_GAP * 2}{named_layers(it.layers, width - 4)}")
    doubts = {it.doubt for it in found if proved(it.id) is None}
    if told := [name for doubt, (name, _) in _DOUBTS.items() if doubt in doubts]:
        lines.append(f"to be proved first: {', '.join(told)}")
    return lines


def layer_lines(groups: Sequence[GroupTimes], width: int) -> list[str]:
    """Return a row for each group of layers: its time here, the least one, and the executions that reached it."""
    common = common_beginning([name for it in groups for name in it.layers])
    columns: list[Column[GroupTimes]] = [
        Column("HERE", lambda it: _from_ps(it.latency_ps)),
        Column("BEST", lambda it: _from_ps(it.best_ps)),
        Column("FASTEST", lambda it: " + ".join(dict.fromkeys(map(short_name, it.fastest))), holds_names=True),
    ]
    cells = [[column.cell(it) for column in columns] for it in groups]
    titles, *times = justified(columns, [[column.title for column in columns], *cells])
    room = max(_LEAST_NAMES, width - len(titles) - len(_GAP))
    heading = f"LAYERS of {printable(common)}..., in ms"
    heading = heading if common and len(heading) <= room else "LAYERS, in ms"
    names = [heading, *(named_layers([name.removeprefix(common) for name in it.layers], room) for it in groups)]
    shown = max(map(len, names))
    return [f"{name:<{shown}}{_GAP}{line}".rstrip() for name, line in zip(names, (titles, *times), strict=True)]


def _from_ps(latency_ps: int) -> str:
    return milliseconds(from_picoseconds(latency_ps))


def common_beginning(names: Sequence[str]) -> str:
    """Return the words that all names begin with; nothing for a single name."""
    if len(set(names)) < 2:
        return ""
    first, last = min(names), max(names)
    same = next((at for at, (one, other) in enumerate(zip(first, last, strict=False)) if one != other), len(first))
    return first[: max(first.rfind(sign, 0, same) for sign in "_/.") + 1]


def named_layers(layers: Sequence[str], width: int) -> str:
    """Return as many names as fit, and the number of the others."""
    shown: list[str] = []
    for place, layer in enumerate(map(printable, layers)):
        left = len(layers) - place - 1
        text = ", ".join([*shown, layer]) + (f" and {left} more" if left else "")
        if len(text) > width:
            break
        shown.append(layer)
    left = len(layers) - len(shown)
    if not shown:
        first = printable(layers[0])
        # The end of a name tells more than its beginning.
        return first if len(first) <= width else f"...{first[min(-1, 3 - width) :]}"
    return ", ".join(shown) + (f" and {left} more" if left else "")


def missing_line(models: Sequence[str], lacking: Sequence[tuple[str, str]]) -> str:
    """Return what the analyses of some models lack, and the commands that measure it."""
    told = [f"{what}: `{command}`" for what, command in lacking]
    return f"{names_of(models)} {'lacks' if len(models) == 1 else 'lack'} {'; '.join(told)}"
