"""An analysis as lines of plain characters: bounds, gap and what-ifs."""

from collections.abc import Callable, Iterable, Sequence

from dlbricks_tui.analysis.bounds import BestMeasured, Ratio
from dlbricks_tui.analysis.gap import Gap
from dlbricks_tui.analysis.groups import MeasuredExecution
from dlbricks_tui.analysis.what_if import WhatIf
from dlbricks_tui.estimate.compositions import milliseconds as from_picoseconds
from dlbricks_tui.printable import printable
from dlbricks_tui.wording.numbers import PREDICTED, in_ms, milliseconds, percent, signed_percent
from dlbricks_tui.wording.tables import or_dash

_GAP = "  "
_BAR = 40
# The parts of a gap as a bar shows them.
_MARKS = {"slower layers": "#", "conversions": "=", "calls": "c", "unexplained": "?"}
_LEAST_NAMES = 16
# The gain of a proof by the id of its what-if.
Proved = Callable[[str], float | None]


def headline(model: str, baseline: MeasuredExecution, best: BestMeasured | None, ratio: Ratio | None) -> str:
    """Return the latency of a model, and how many times the best that is."""
    end_to_end, composed = baseline.found.end_to_end, baseline.estimate.composed
    name = printable(model)
    if composed is None and end_to_end is None:
        return f"{name}: nothing was measured"
    if end_to_end is not None:
        latency = f"{in_ms(end_to_end.value_ms)} measured"
    else:
        sign = PREDICTED if baseline.estimate.predicted_share else ""
        latency = f"{sign}{in_ms(composed.sequential_ms if composed else 0.0)} estimated"
    if best is None or ratio is None:
        return f"{name}: {latency}"
    sign = PREDICTED if best.is_predicted else ""
    return f"{name}: {latency}, {sign}{ratio.value:.2f} times the best measured ({ratio.low:.2f} to {ratio.high:.2f})"


def execution_line(baseline: MeasuredExecution) -> str:
    """Return the execution that is analysed."""
    way, variant = baseline.found.way, baseline.found.variant
    return f"{way.system}, {way.runtime.partition(' ')[0]}, {baseline.graph.level.value} layers, {variant.in_words}"


def bound_lines(baseline: MeasuredExecution, best: BestMeasured | None, roofline_ms: float | None) -> list[str]:
    """Return the latencies and the bounds below them."""
    end_to_end, composed = baseline.found.end_to_end, baseline.estimate.composed
    predicted = PREDICTED if baseline.estimate.predicted_share else ""
    best_sign = PREDICTED if best is not None and best.is_predicted else ""
    parallel_ms = None if best is None else from_picoseconds(best.parallel_ps)
    rows = [
        ("measured end to end", "", None if end_to_end is None else end_to_end.value_ms, ""),
        ("estimate", predicted, None if composed is None else composed.sequential_ms, ""),
        ("best measured", best_sign, None if best is None else best.latency_ms, _shares(best)),
        ("best in parallel", best_sign, parallel_ms, "along the critical path, with cores to spare"),
        ("roofline", "", roofline_ms, "arithmetic and bytes over the peaks"),
    ]
    texts = [or_dash(lambda ms, sign=sign: f"{sign}{in_ms(ms)}", ms) for _, sign, ms, _ in rows]  # type: ignore[misc]
    width = max(map(len, texts))
    return [
        f"{_GAP}{name:<20}{text:>{width}}{_GAP}{note if ms is not None else ''}".rstrip()
        for (name, _, ms, note), text in zip(rows, texts, strict=True)
    ]


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


def gap_lines(gap: Gap, best: BestMeasured, width: int) -> list[str]:
    """Return the parts of a gap as a bar and as numbers."""
    parts = {
        "slower layers": gap.slower_layers_ms,
        "conversions": gap.conversions_ms,
        "calls": gap.calls_ms,
        "unexplained": gap.unexplained_ms,
    }
    total_ms = from_picoseconds(gap.total_ps)
    against = (
        "the end-to-end latency" if gap.unexplained_ms is not None else "the estimate, as nothing is timed end to end"
    )
    whole_ms = best.latency_ms + sum(max(0.0, it or 0.0) for it in parts.values())
    room = max(10, min(_BAR, width - 4))
    per_cell = whole_ms / room if whole_ms else 1.0
    bar = "".join(_MARKS[name] * round(max(0.0, ms or 0.0) / per_cell) for name, ms in parts.items())
    lines = [f"gap to the best: {in_ms(total_ms)} of {against}"]
    lines.append(f"{_GAP}[{'.' * max(0, room - len(bar))}{bar}]")
    for name, ms in parts.items():
        share = "" if ms is None or not whole_ms else f"{signed_percent(ms / whole_ms):>9}"
        lines.append(f"{_GAP}{_MARKS[name]} {name:<18}{or_dash(lambda it: f'{milliseconds(it)} ms', ms):>12}{share}")
    return lines


def what_if_lines(found: Sequence[WhatIf], proved: Proved, width: int) -> list[str]:
    """Return a row for each what-if, and under it the setting and the layers that are responsible."""
    if not found:
        return ["what-ifs: none, as the model was measured in one execution only"]
    rows = [("WHAT IF", "GAIN", "95 %", "MS", "PROVED")]
    for it in found:
        proof = proved(it.id)
        rows.append(
            (
                it.id,
                signed_percent(it.gain.value),
                f"{100 * it.gain.low:+.0f} to {100 * it.gain.high:+.0f}",
                milliseconds(it.estimate_ms),
                "bound" if it.change is None else "-" if proof is None else signed_percent(proof),
            )
        )
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [_row(rows[0], widths)]
    for it, row in zip(found, rows[1:], strict=True):
        lines += [_row(row, widths), f"{_GAP * 2}{it.how}"]
        if it.layers:
            lines.append(f"{_GAP * 2}{_named(it.layers, width - 4)}")
    return lines


def layer_lines(rows: Iterable[tuple[Sequence[str], float | None, float, Sequence[str]]], width: int) -> list[str]:
    """Return a row for each group of layers: its time here, the least one, and the execution that reached it."""
    held = list(rows)
    cells = [
        ("HERE", "BEST", "FASTEST"),
        *((or_dash(milliseconds, here), milliseconds(best), " + ".join(fastest)) for _, here, best, fastest in held),
    ]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    room = max(_LEAST_NAMES, width - sum(widths) - 6)
    names = ["LAYERS, in ms", *(_named(each, room) for each, *_ in held)]
    shown = max(map(len, names))
    return [
        f"{name:<{shown}}{_GAP}{here:>{widths[0]}}{_GAP}{best:>{widths[1]}}{_GAP}{fastest}"
        for name, (here, best, fastest) in zip(names, cells, strict=True)
    ]


def _row(cells: Sequence[str], widths: Sequence[int]) -> str:
    first, *others = cells
    return f"{first:<{widths[0]}}" + "".join(
        f"{_GAP}{cell:>{width}}" for cell, width in zip(others, widths[1:], strict=True)
    )


def _named(layers: Sequence[str], width: int) -> str:
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
        return first if len(first) <= width else f"{first[: max(1, width - 3)]}..."
    return ", ".join(shown) + (f" and {left} more" if left else "")


def missing_line(model: str, lacking: Sequence[tuple[str, str]]) -> str:
    """Return what an analysis lacks, and the commands that measure it."""
    told = [f"{what}: `{command}`" for what, command in lacking]
    return f"{model} lacks {'; '.join(told)}"
