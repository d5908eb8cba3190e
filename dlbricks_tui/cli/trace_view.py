"""Traces as tables: what each level takes and adds, where the time goes, and layers beside their bricks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median
from typing import TYPE_CHECKING

from rich.text import Text

from dlbricks_tui.cli.drawing import name_cell, plain_table
from dlbricks_tui.printable import printable
from dlbricks_tui.traces.layer_times import LayerTime, by_kind, layer_times, shown_inference_ms, slowest_first, together
from dlbricks_tui.traces.trace import PLAIN_MS
from dlbricks_tui.wording.numbers import counted, in_ms, milliseconds, percent, signed_percent
from dlbricks_tui.wording.tables import or_dash
from dlbricks_tui.wording.tracing import signed_ms

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

    from dlbricks_tui.store.records import Fact
    from dlbricks_tui.traces.stored import StoredTrace
    from dlbricks_tui.traces.trace import LevelTrace, Trace

_MOST_LAYERS = 12
# Enough to name a trace.
_SHORT_ID = 12


def trace_view(trace: Trace) -> list[RenderableType]:
    """Return a trace in words and tables."""
    times, short = slowest_first(layer_times(trace)), trace.id[:_SHORT_ID]
    parts: list[RenderableType] = [
        _line(trace.model),
        _line(", ".join((trace.runtime, trace.graph_level.value, f"batch size {trace.batch_size}", f"trace {short}"))),
        Text(),
        _levels(trace.levels),
        *map(_line, _remarks(trace)),
    ]
    if times:
        whole_ms = shown_inference_ms(trace)
        parts += [Text(), _kinds(times, whole_ms), _line(_comparison(trace, times))]
        parts += [Text(), _layers(times[:_MOST_LAYERS], whole_ms)]
    if len(times) > _MOST_LAYERS:
        parts.append(_line(f"and {counted(len(times) - _MOST_LAYERS, 'faster layer')}, which --json lists"))
    return parts


def stored_view(traces: Sequence[StoredTrace]) -> Table:
    """Return the traces of a data folder as a table."""
    table = plain_table("MODEL", "TRACE", "WHEN (UTC)", "RUNTIME", "LAYERS", "BATCH", "SIZE")
    for stored in traces:
        header = stored.header
        facts = (header.graph_level.value, str(header.batch_size), f"{stored.size_bytes / 1000:,.0f} kB")
        when = header.when[:16].replace("T", " ")
        named = (name_cell(header.model), name_cell(header.id[:_SHORT_ID]), when, name_cell(header.runtime))
        table.add_row(*named, *facts)
    return table


def _line(text: str) -> Text:
    return Text(printable(text))


def _levels(levels: Sequence[LevelTrace]) -> Table:
    table = plain_table("LEVEL", "INFERENCE", "OVERHEAD", "SPANS")
    for level in levels:
        inference_ms = median(level.inference_ms) if level.inference_ms else None
        spans = sum(len(track.spans) for track in level.tracks)
        table.add_row(level.level.value, or_dash(in_ms, inference_ms), _overhead(level, inference_ms), f"{spans:,}")
    return table


def _overhead(level: LevelTrace, inference_ms: float | None) -> str:
    if level.overhead_ms is None or inference_ms is None:
        return "-"
    below_ms = inference_ms - level.overhead_ms
    share = f" ({signed_percent(level.overhead_ms / below_ms)})" if below_ms > 0 else ""
    return f"{signed_ms(level.overhead_ms)}{share}"


def _remarks(trace: Trace) -> Iterator[str]:
    for missing in trace.missing:
        yield f"{missing.level.value} level: not traced: {missing.reason}"
    # What holds for several levels is told once.
    levels: dict[str, list[str]] = {}
    for level in trace.levels:
        totals = [", ".join(_total(name, value) for name, value in level.totals)] if level.totals else []
        for told in (*totals, *level.notes):
            levels.setdefault(told, []).append(level.level.value)
    for told, those in levels.items():
        yield f"{', '.join(those)} {'level' if len(those) == 1 else 'levels'}: {told}"


def _kinds(times: Sequence[LayerTime], whole_ms: float | None) -> Table:
    """Return where the time of an inference goes: the layers of each kind, all of them, and the rest."""
    table = plain_table("KIND OF LAYER", "LAYERS", "IN MODEL", "SHARE", "BRICKS", "DIFFERENCE")
    everything = together("all layers", times)
    for it in (*by_kind(times), everything):
        brick_ms = it.brick_ms if it.compared else None
        difference = _difference(it.compared_in_model_ms, brick_ms)
        bricks = or_dash(in_ms, brick_ms)
        table.add_row(
            name_cell(it.kind),
            f"{it.layers:,}",
            in_ms(it.in_model_ms),
            _share(it.in_model_ms, whole_ms),
            bricks,
            difference,
        )
    rest_ms = 0.0 if whole_ms is None else whole_ms - everything.in_model_ms
    if rest_ms > 0:
        table.add_row(name_cell("outside of layers"), "-", in_ms(rest_ms), _share(rest_ms, whole_ms), "-", "-")
    return table


def _comparison(trace: Trace, times: Sequence[LayerTime]) -> str:
    """Return what the times of bricks are compared with."""
    everything = together("", times)
    if not everything.compared:
        return f"no brick is stored under the same conditions: `dlbricks run {trace.model}` measures them"
    told = "IN MODEL includes what the profiler adds to each layer; BRICKS is the layers measured alone"
    lacking = everything.layers - everything.compared
    return f"{told}; {counted(lacking, 'layer')} without a stored brick left out" if lacking else told


def _layers(times: Sequence[LayerTime], whole_ms: float | None) -> Table:
    table = plain_table("SLOWEST LAYERS", "KIND", "IN MODEL", "SHARE", "BRICK", "DIFFERENCE")
    for time in times:
        brick_ms = time.layer.brick_ms
        table.add_row(
            name_cell(time.layer.name),
            name_cell(time.layer.kind),
            in_ms(time.in_model_ms),
            _share(time.in_model_ms, whole_ms),
            or_dash(in_ms, brick_ms),
            _difference(time.in_model_ms, brick_ms),
        )
    return table


def _share(some_ms: float, whole_ms: float | None) -> str:
    return percent(some_ms / whole_ms, 1) if whole_ms else "-"


def _difference(in_model_ms: float, brick_ms: float | None) -> str:
    return signed_percent(in_model_ms / brick_ms - 1) if brick_ms else "-"


def _total(name: str, value: Fact) -> str:
    if name == PLAIN_MS and isinstance(value, float):
        return f"{in_ms(value)} per inference without the profiler"
    if type(value) is int:
        return f"{name} {value:,}"
    return f"{name} {milliseconds(value, precise=True) if isinstance(value, float) else value}"
