"""An analysis as lines of plain characters: the latency of a model, the bounds below it, and the gap."""

from collections.abc import Sequence
from typing import NamedTuple

from dlbricks_tui.analysis.bounds import BestMeasured, Ratio
from dlbricks_tui.analysis.gap import Gap
from dlbricks_tui.analysis.groups import MeasuredExecution
from dlbricks_tui.analysis.savings import speed_difference
from dlbricks_tui.estimate.compositions import milliseconds as from_picoseconds
from dlbricks_tui.estimate.system_estimate import Way
from dlbricks_tui.printable import printable
from dlbricks_tui.runtime.variant import Variant
from dlbricks_tui.wording.numbers import PREDICTED, in_ms, milliseconds, names_of, percent, sign_of, signed_percent
from dlbricks_tui.wording.tables import or_dash

_GAP = "  "
_WIDEST_BAR = 40
# The best and the parts of a gap as a bar shows them.
BEST_MARK = "."
_MARKS = {"slower layers": "#", "conversions": "=", "calls": "c", "unexplained": "?"}
# The speed of a shared host varies by less from run to run.
_ANOTHER_SPEED = 0.15
# Shorter parts of a gap are noise.
_LEAST_TOLD_MS = 0.001


def analysis_question(model: str) -> str:
    """Return the question that an analysis answers."""
    return f"How fast could {printable(model)} be, and which change is worth making?"


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


BUSY_PEAKS = "the peaks were measured on a busy host, so what layers reached counts"


def bounds_of(
    baseline: MeasuredExecution, best: BestMeasured | None, roofline_ms: float | None, *, busy_peaks: bool = False
) -> tuple[Bound, ...]:
    """Return the latencies of a model and the bounds below them, the highest first.

    `busy_peaks` means that layers have reached more than the stored peaks.
    """
    end_to_end, composed = baseline.found.end_to_end, baseline.estimate.composed
    best_sign = PREDICTED if best is not None and best.is_predicted else ""
    parallel_ms = None if best is None else from_picoseconds(best.parallel_ps)
    return (
        Bound("measured end to end", None if end_to_end is None else end_to_end.value_ms, "", ""),
        Bound("estimate", None if composed is None else composed.sequential_ms, _sign_of(baseline), ""),
        Bound("best measured", None if best is None else best.latency_ms, best_sign, _shares(best)),
        Bound("best in parallel", parallel_ms, best_sign, "along the critical path, with cores to spare"),
        Bound("roofline", roofline_ms, "", BUSY_PEAKS if busy_peaks else "arithmetic and bytes over the peaks"),
    )


def _sign_of(baseline: MeasuredExecution) -> str:
    return sign_of(partial=baseline.estimate.is_partial, predicted=baseline.estimate.predicted_share > 0)


def bound_lines(
    baseline: MeasuredExecution, best: BestMeasured | None, roofline_ms: float | None, *, busy_peaks: bool = False
) -> list[str]:
    """Return the latencies and the bounds below them."""
    found = bounds_of(baseline, best, roofline_ms, busy_peaks=busy_peaks)
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


def gap_sentence(parts: Sequence[GapPart], best: BestMeasured) -> str:
    """Return the best and the parts of the gap above it as a sentence."""
    told = [f"{it.name} {it.texts[0]}" for it in parts if it.latency_ms and it.latency_ms >= _LEAST_TOLD_MS]
    above = f"above it are {', '.join(told)}" if told else "there is no gap above it"
    return f"The best measured takes {in_ms(best.latency_ms)}; {above}."


def gap_lines(gap: Gap, best: BestMeasured, width: int) -> list[str]:
    """Return the parts of a gap as a bar and as numbers."""
    parts = gap_parts(gap, best)
    room = max(10, min(_WIDEST_BAR, width - 4))
    bar = "".join(it.mark * round(max(0.0, it.share or 0.0) * room) for it in parts)
    lines = [gap_heading(gap), f"{_GAP}[{bar.rjust(room, BEST_MARK)}]"]
    for it in parts:
        latency, share = it.texts
        lines.append(f"{_GAP}{it.mark} {it.name:<18}{latency:>12}{share:>9}".rstrip())
    return lines


def missing_line(models: Sequence[str], lacking: Sequence[tuple[str, str]]) -> str:
    """Return what the analyses of some models lack, and the commands that measure it."""
    told = [f"{what}: `{command}`" for what, command in lacking]
    return f"{names_of(models)} {'lacks' if len(models) == 1 else 'lack'} {'; '.join(told)}"
