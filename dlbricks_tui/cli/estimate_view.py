"""Estimates as bars, tables and sentences."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from dlbricks_tui.bricks.decomposition import Decomposition
from dlbricks_tui.cli.drawing import PART, Pen, name_cell, partly, pen_for, plain_table, plot_lines, titled
from dlbricks_tui.estimate.accuracy import Accuracy, SharedSettings, accuracy, by_group
from dlbricks_tui.estimate.curve import Point
from dlbricks_tui.estimate.estimate import Composed, Estimate
from dlbricks_tui.estimate.explanation import (
    RegionSlice,
    by_region,
    by_type,
    costliest,
    parallel_gain,
    residual,
)
from dlbricks_tui.estimate.slowest import slowest
from dlbricks_tui.estimate.system_estimate import SystemEstimate
from dlbricks_tui.models.graph import LayerGraph
from dlbricks_tui.models.titles import assumption
from dlbricks_tui.printable import printable
from dlbricks_tui.runtime.variant import remarks_on
from dlbricks_tui.store.labels import label_of
from dlbricks_tui.wording.answers import answer_words
from dlbricks_tui.wording.doubts import doubts_about
from dlbricks_tui.wording.engine import engine_remarks
from dlbricks_tui.wording.numbers import (
    PREDICTED,
    PREDICTED_LEGEND,
    counted,
    in_ms,
    milliseconds,
    percent,
    signed_percent,
)
from dlbricks_tui.wording.parallel import parallel_sentences
from dlbricks_tui.wording.slowest import name_of, sign_of_part, slowest_in_words, title_of

# The width of the other columns, with short names.
_BESIDE_BARS = 52
_BESIDE_BARS_OF_MODELS = 76
# The width of the names of runtimes.
_RUNTIME = 13
_MOST_REGIONS = 10
_MOST_NAMED = 8
_MOST_DOUBTS = 5
_END_TO_END = "end to end"
# Wider curves say no more; their lines without the legend.
_WIDEST_CURVE, _CURVE_LINES = 100, 10
# Smaller shares of the latency get no line.
_LEAST_SHARE = 0.001


def variants_lines(points: Sequence[Point], console: Console, bound_ms: float | None = None) -> list[str]:
    """Return the table of a model in several variants, and their latency beside their throughput."""
    # Loaded here: one variant has no curve.
    from dlbricks_tui.documents.variant_curves import curve_pictures
    from dlbricks_tui.wording.curves import curve_table

    lines = curve_table(points, min(_WIDEST_CURVE, console.width))
    if plots := curve_pictures(points, bound_ms):
        lines += ["", *plot_lines(console, _WIDEST_CURVE, _CURVE_LINES, *plots)]
    return lines


def estimate_view(
    decomposition: Decomposition, one: SystemEstimate, console: Console, *, chosen: bool = False
) -> Iterator[RenderableType]:
    """Yield one model in full; `chosen` tells that the user chose its combination."""
    found, graph, pen = one.estimate, decomposition.graph, pen_for(console, _BESIDE_BARS)
    said = Text(f"{answer_words(one, chosen=chosen)}\n", style="bold")
    if found.obstacle:
        yield _heading(one)
        if one.figure is not None:
            yield said
        yield Text(f"no estimate is possible: {found.obstacle}")
        if one.end_to_end is not None:
            yield Text(f"{_END_TO_END}: {in_ms(one.end_to_end.value_ms)}, measured ({one.variant.in_words})")
            yield from map(Text, engine_remarks([one]))
    elif found.composed is not None or one.end_to_end is not None:
        yield _heading(one)
        yield said
    if found.composed is not None and not found.obstacle:
        yield _compositions(one, found.composed, pen)
        yield from map(Text, engine_remarks([one]))
        yield from map(Text, filter(None, [assumption(graph.inputs)]))
        yield from _sentences(graph, one, found.composed)
        yield _types(graph, found, pen)
        yield _bricks(graph, found, pen)
        yield _regions(graph, found, pen)


def estimates_view(estimates: Sequence[SystemEstimate], console: Console) -> Iterator[RenderableType]:
    """Yield several models, a line each, and their agreement with end-to-end latencies."""
    # The lines above the table name the combinations in full.
    by = ["BY"] if len({it.way.runtime for it in estimates if it.estimate.composed}) > 1 else []
    pen = pen_for(console, _BESIDE_BARS_OF_MODELS + _RUNTIME * len(by))
    if by and console.width < _BESIDE_BARS_OF_MODELS + _RUNTIME:
        # Names are more important than bars.
        pen = replace(pen, width=0)
    longest_ms = max((it.sequential_ms or 0.0 for it in estimates), default=0.0) or 1.0
    workers = estimates[0].estimate.options.workers
    compositions = ("SEQUENTIAL", "", "PARALLEL", *([] if workers is None else [counted(workers, "worker").upper()]))
    table = plain_table("MODEL", *compositions, "LAYERS", "END TO END", "ERROR", *by)
    if by:
        table.columns[-1].justify = "left"
    for one in estimates:
        composed, coverage = one.estimate.composed, one.estimate.coverage
        sequential_ms = one.sequential_ms or 0.0
        table.add_row(
            name_cell(one.estimate.model),
            _sum(one.estimate, sequential_ms) if composed else "-",
            pen.bar(sequential_ms / longest_ms),
            _sum(one.estimate, composed.parallel_ms) if composed else "-",
            *([] if workers is None else [_sum(one.estimate, composed.workers_ms or 0.0) if composed else "-"]),
            f"{coverage.measured}/{coverage.layers}",
            in_ms(one.end_to_end.value_ms) if one.end_to_end else "-",
            "-" if one.error is None else signed_percent(one.error),
            *[name_cell(one.way.runtime.partition("-")[0]) for _ in by],
        )
    yield Text("\n".join(dict.fromkeys(_where(it) for it in estimates if it.estimate.composed)) + "\n")
    yield table
    yield from _marks(estimates)
    yield from (Text(f"\n{remark}") for remark in engine_remarks(estimates))
    yield from _doubts(estimates)
    if judged := judged_by_way(estimates):
        yield accuracy_view(judged)


def intervals_view(estimates: Sequence[SystemEstimate], console: Console) -> Iterator[RenderableType]:
    """Yield several models with their intervals, and the shares of them that are predicted."""
    pen = pen_for(console, _BESIDE_BARS_OF_MODELS)
    longest_ms = max((it.sequential_ms or 0.0 for it in estimates), default=0.0) or 1.0
    table = plain_table("MODEL", "SEQUENTIAL", "", "95 %", "LAYERS", "PREDICTED")
    for one in estimates:
        composed, coverage = one.estimate.composed, one.estimate.coverage
        if composed is not None:
            low_ms, high_ms = composed.interval.low_ms, composed.interval.high_ms
            table.add_row(
                name_cell(one.estimate.model),
                _sum(one.estimate, composed.sequential_ms),
                pen.bar(composed.sequential_ms / longest_ms),
                f"{milliseconds(low_ms, precise=True)} to {in_ms(high_ms)}",
                f"{coverage.measured}/{coverage.layers}",
                percent(one.estimate.predicted_share),
            )
    yield Text("\n".join(dict.fromkeys(map(_where, estimates))) + "\n")
    yield table
    yield from _marks(estimates)


def _marks(estimates: Sequence[SystemEstimate]) -> Iterator[Text]:
    if any(one.estimate.composed and one.estimate.coverage.predicted for one in estimates):
        yield Text(f"\n{PREDICTED_LEGEND}")
    for remark in remarks_on(one.variant.precision for one in estimates):
        yield Text(f"\n{remark}")
    if any(one.estimate.composed and one.estimate.is_partial for one in estimates):
        yield Text(f"\n{PART} a sum of the layers with a latency only; the model may take more or less")


def _doubts(estimates: Sequence[SystemEstimate]) -> Iterator[Text]:
    found = [(one.estimate.model, told) for one in estimates for told in doubts_about(one)]
    for model, told in found[:_MOST_DOUBTS]:
        yield Text(f"\nin doubt: {printable(model)}: {told}")
    if len(found) > _MOST_DOUBTS:
        yield Text(f"\n{len(found) - _MOST_DOUBTS} more: `dlbricks estimate MODEL` says which")


def judged_by_way(estimates: Iterable[SystemEstimate]) -> list[tuple[SharedSettings, Accuracy]]:
    """Return the accuracy of each way of measuring that has models to judge by."""
    groups = by_group(estimates)
    return [(group, found) for group, held in groups.items() if (found := accuracy(held)) is not None]


def accuracy_view(judged: Iterable[tuple[SharedSettings, Accuracy]]) -> RenderableType:
    """Return the agreement of estimates with end-to-end latencies, a line for each way of measuring."""
    table = plain_table("SYSTEM", "LEVEL", "G", "MODELS", "MEAN", "ERROR", "WORST", "5 %", "10 %", "SPEED-UP")
    table.columns[1].justify = "left"
    for group, found in judged:
        cut = group.cut.value
        table.add_row(
            name_cell(f"{group.way.system}, {group.way.runtime}"),
            group.way.level.value,
            f"{group.granularity}{'' if cut == 'chain' else f' {cut}'}",
            str(found.models),
            f"{found.geometric_mean:.3f}",
            percent(found.mean_absolute_error, 1),
            signed_percent(found.worst_error),
            percent(found.within_5_percent),
            percent(found.within_10_percent),
            "-" if found.speedup is None else f"{found.speedup:.2f}",
        )
    legend = "geometric mean, mean absolute and worst error, share within 5 % and 10 %, speed-up by the paper's formula"
    return titled("Sequential estimate over end to end", Text(legend, style="dim"), table)


def _where(one: SystemEstimate) -> str:
    cutting = one.estimate.cutting
    cut = "" if cutting.cut.value == "chain" else f"{cutting.cut.value} cut"
    layers = f"{one.estimate.level.value} layers"
    words = [one.way.system, one.way.runtime, layers, f"G={cutting.granularity}", cut]
    return printable(", ".join(filter(None, words)))


def _heading(one: SystemEstimate) -> Text:
    found = one.estimate
    lines = [_where(one)]
    if found.is_unfused and found.composed is not None:
        lines.append("an estimate of unfused layers, as the file has them: a runtime that fuses them takes less")
    if found.coverage.predicted and found.composed is not None:
        of = f"{found.coverage.predicted} of {counted(found.coverage.layers, 'layer')}"
        lines.append(
            f"{PREDICTED} not all measured: {of}, {percent(found.predicted_share)} of the latency, are predicted"
        )
    if found.is_partial and found.composed is not None:
        of = f"{found.coverage.layers - _left_out(found)} of {counted(found.coverage.layers, 'layer')}"
        lines.append(f"a sum of {of} only: the model may take more or less")
    return Text(printable(found.model), style="bold").append(
        "".join(f"\n{it}" for it in lines) + "\n", style="not bold"
    )


def _left_out(found: Estimate) -> int:
    return len({layer for part in found.parts if not part.counts for layer in part.layers})


def _compositions(one: SystemEstimate, composed: Composed, pen: Pen) -> Table:
    rows = [("sequential", composed.sequential_ms), ("parallel", composed.parallel_ms)]
    workers = one.estimate.options.workers
    if composed.workers_ms is not None:
        rows.append((counted(workers or 1, "worker"), composed.workers_ms))
    if one.end_to_end is not None:
        rows.append((_END_TO_END, one.end_to_end.value_ms))
    longest_ms = max(latency for _, latency in rows) or 1.0
    low, high = composed.interval.low_ms, composed.interval.high_ms
    # The gain of a part says little about the whole model.
    of_part = ", this part" if one.estimate.is_partial else ""
    notes = {
        "sequential": f"95 %: {milliseconds(low, precise=True)} to {in_ms(high)}",
        "parallel": f"{parallel_gain(composed):.2f} times as fast{of_part}",
        _END_TO_END: "measured" if one.error is None else f"measured, error {signed_percent(one.error)}",
    }
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column()
    table.add_column(justify="right")
    table.add_column(no_wrap=True)
    for label, latency in rows:
        shown = in_ms(latency) if label == _END_TO_END else _sum(one.estimate, latency)
        table.add_row(label, shown, pen.bar(latency / longest_ms), notes.get(label, ""))
    return table


def _sentences(graph: LayerGraph, one: SystemEstimate, composed: Composed) -> Iterable[Text]:
    found, coverage = one.estimate, one.estimate.coverage
    counts = [f"{coverage.measured} of {counted(coverage.layers, 'layer')} measured"]
    counts += [f"{coverage.predicted} predicted"] * bool(coverage.predicted)
    counts += [f"{coverage.missing} missing"] * bool(coverage.missing)
    counts += [f"{coverage.unmeasurable} unmeasurable"] * bool(coverage.unmeasurable)
    throughput = "" if one.per_second is None else f": {milliseconds(one.per_second)} per second"
    yield Text(f"{one.variant.in_words}{throughput}")
    yield Text(", ".join(counts))
    if coverage.own_carrier:
        own = "all" if coverage.own_carrier == coverage.layers else f"{coverage.own_carrier}"
        yield Text(f"{own} of them were timed in this very model, so its end-to-end latency is no independent check")
    path = found.critical_layers
    of_part = " of the measured part" if found.is_partial else ""
    gained_ms = composed.sequential_ms - composed.parallel_ms
    yield Text(
        f"critical path: {counted(len(path), 'layer')}, {_named(graph, path)}; "
        + (f"all else in parallel would save {in_ms(gained_ms)}{of_part}" if gained_ms else "nothing can run beside it")
    )
    yield Text(parallel_sentences(one))
    if composed.call_ms:
        yield Text(f"each composition includes one call of the runtime, {in_ms(composed.call_ms)}")
    if composed.by_prior:
        yield Text("not calibrated here: corrected by constants of other systems, with a wider interval")
    elif composed.of_other_batch:
        yield Text(
            "calibrated at another batch size, which widens the interval: `dlbricks run` with --calibrate anew "
            "calibrates this one"
        )
    explained = residual(one)
    if explained is not None:
        parts = [f"sampling allows for {in_ms(explained.sampling_ms)}"]
        parts += [f"the method for {in_ms(explained.method_ms)}"] * bool(explained.method_ms)
        parts += [f"predictions for {in_ms(explained.predicted_ms)}"] * bool(explained.predicted_ms)
        parts += [f"layers without results for {in_ms(explained.lacking_ms)}"] * bool(explained.lacking_ms)
        parts += [f"the change of the host for {in_ms(explained.host_ms)}"] * bool(explained.host_ms)
        rest = (
            f"{in_ms(abs(explained.unexplained_ms))} unexplained" if explained.unexplained_ms else "nothing unexplained"
        )
        more = f"{in_ms(abs(explained.residual_ms))} {'more' if explained.residual_ms >= 0 else 'less'}"
        yield Text(f"residual: {more} measured than estimated; {', '.join(parts)}: {rest}")
    yield from map(Text, doubts_about(one))


def _types(graph: LayerGraph, found: Estimate, pen: Pen) -> RenderableType:
    table = plain_table("TYPE", "LAYERS", "LATENCY", "SHARE", "")
    for it in by_type(graph, found):
        if it.share >= _LEAST_SHARE:
            table.add_row(printable(it.label), str(it.layers), *_part(it.latency_ms, it.share, pen))
    return titled("Latency by type", table)


def _bricks(graph: LayerGraph, found: Estimate, pen: Pen) -> RenderableType:
    table = plain_table("BRICK", "USES", "LATENCY", "SHARE", "")
    for it in costliest(found):
        label = label_of(it.part.brick.canonical) or graph.layers[it.part.layers[0]].op
        latency, share, bar = _part(it.latency_ms, it.share, pen)
        sign = PREDICTED if it.part.predicted else ""
        table.add_row(name_cell(label), str(it.uses), f"{sign}{latency}", share, bar)
    return titled("Costliest bricks", table)


def _regions(graph: LayerGraph, found: Estimate, pen: Pen) -> RenderableType:
    slices = by_region(graph, found)
    shown = set(sorted(slices, key=lambda it: -it.latency_ms)[:_MOST_REGIONS])
    table = plain_table("REGION", "LAYERS", "LATENCY", "SHARE", "")
    for it in slices:
        if it in shown and it.share >= _LEAST_SHARE:
            label = name_cell(_region_label(graph, it))
            table.add_row(label, str(len(it.layers)), *_part(it.latency_ms, it.share, pen))
    return titled("Latency by region" if len(slices) <= _MOST_REGIONS else "Costliest regions", table)


def slowest_view(graph: LayerGraph, one: SystemEstimate, most: int) -> Iterator[RenderableType]:
    """Yield the slowest layers of a model, the slowest first."""
    found = one.estimate
    yield _heading(one)
    if found.composed is None:
        yield Text(f"no estimate is possible: {found.obstacle}" if found.obstacle else "nothing fits: no latencies")
        return
    slow = slowest(found, most)
    table = plain_table("LAYER", "NAME", "LATENCY", "SHARE", "SUM")
    table.columns[1].justify, table.columns[1].no_wrap = "left", False
    for it in slow.parts:
        names = name_cell(title_of(graph, it)), name_cell(name_of(graph, it))
        shares = percent(it.share, 1), percent(it.cumulative, 1)
        table.add_row(*names, f"{sign_of_part(it)}{in_ms(it.latency_ms)}", *shares)
    yield table
    yield Text(f"\n{slowest_in_words(slow)}")
    if any(it.part.predicted for it in slow.parts):
        yield Text(PREDICTED_LEGEND)


def _part(latency_ms: float, share: float, pen: Pen) -> tuple[str, str, Text]:
    return in_ms(latency_ms), percent(share, 1), pen.bar(share)


def _region_label(graph: LayerGraph, it: RegionSlice) -> str:
    first, last = graph.layers[min(it.layers)], graph.layers[max(it.layers)]
    names = first.name if first is last else f"{first.name} to {last.name}"
    if it.repeats > 1:
        return f"module x{it.repeats}: {names}"
    return f"module: {names}" if it.repeats else names


def _named(graph: LayerGraph, path: Sequence[int]) -> str:
    """Return the most frequent kinds of layers on a path, with their numbers."""
    numbers: dict[str, int] = {}
    for index in path:
        kind = graph.layers[index].kind.value
        numbers[kind] = numbers.get(kind, 0) + 1
    largest = sorted(numbers.items(), key=lambda item: (-item[1], item[0]))
    told = ", ".join(f"{count} {kind}" for kind, count in largest[:_MOST_NAMED])
    return told + (" and others" if len(largest) > _MOST_NAMED else "")


def _sum(found: Estimate, latency_ms: float) -> str:
    return partly(latency_ms, part=found.is_partial, predicted=bool(found.coverage.predicted))
