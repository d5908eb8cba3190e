"""A trace: what each level takes and adds, where the time goes, layers beside their bricks, and single spans."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING

from dlbricks_tui.documents.parts import BLANK_LINE, Column, Fact, MarkedSentence, Part, Sentence, Table, name_column
from dlbricks_tui.documents.timeline import span_time
from dlbricks_tui.traces.file import StoredTrace
from dlbricks_tui.traces.layer_times import (
    KindTime,
    LayerTime,
    by_kind,
    layer_times,
    shown_inference_ms,
    slowest_first,
    together,
)
from dlbricks_tui.traces.trace import PLAIN_MS, LevelTrace, TraceLevel, TrackKind
from dlbricks_tui.wording.answers import execution_words, runtime_words
from dlbricks_tui.wording.numbers import counted, in_ms, milliseconds, minute_of, or_dash, percent, signed_percent
from dlbricks_tui.wording.tracing import signed_ms

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from dlbricks_tui.traces.trace import Counter, MissingLevel, Trace, TracedLayer, TraceSpan

_MOST_LAYERS = 12
# Enough to name a trace or a brick.
_KEY_DIGITS = 12
_INSTRUMENTS = {
    TraceLevel.MODEL: "by its clock",
    TraceLevel.LAYER: "by the profiler",
    TraceLevel.PRIMITIVE: "by the output of oneDNN",
    TraceLevel.THREAD: "by the counters of threads",
}
_KINDS = {
    TrackKind.INFERENCES: "an inference",
    TrackKind.LAYERS: "a layer",
    TrackKind.ADDED: "an operator that the runtime added",
    TrackKind.PRIMITIVES: "a primitive of oneDNN",
    TrackKind.THREAD: "of a thread",
}


def stored_columns(shown: str | None = None) -> tuple[Column[StoredTrace], ...]:
    """Return the columns of stored traces; with the id of the trace that a panel shows, those of one model."""
    in_panel = shown is not None
    model = name_column("model", lambda it: it.header.model) if not in_panel else _mark(shown or "")
    return (
        model,
        Column("trace", lambda it: it.header.id[:_KEY_DIGITS], is_optional=in_panel),
        Column("when (UTC)", lambda it: minute_of(it.header.when)),
        name_column(
            "runtime",
            lambda it: runtime_words(it.header.runtime),
            lambda it: "strong" if it.header.id == shown else "text",
        ),
        Column("layers", lambda it: it.header.graph_level.value, is_optional=in_panel),
        Column("batch", lambda it: f"{it.header.batch_size}"),
        Column("size", lambda it: f"{it.size_bytes / 1000:,.0f} kB", is_optional=in_panel),
    )


def _mark(shown: str) -> Column[StoredTrace]:
    return Column("", lambda it: "*" if it.header.id == shown else "", style="mark")


def trace_words(trace: Trace) -> str:
    """Return how a model was traced: `ONNX Runtime 1.20, 1 thread, fused layers, batch 1, trace 20261127-071`."""
    how = execution_words(trace.runtime, trace.graph_level)
    return f"{how}, batch {trace.batch_size}, trace {trace.id[:_KEY_DIGITS]}"


def trace_parts(trace: Trace) -> Iterator[Part]:
    """Yield the levels of a trace, the kinds of layers, and the slowest layers."""
    times, whole_ms = slowest_first(layer_times(trace)), shown_inference_ms(trace)
    yield Sentence(trace.model)
    yield Sentence(trace_words(trace))
    yield BLANK_LINE
    yield Table(_LEVEL_COLUMNS, trace.levels)
    for missing in trace.missing:
        yield Sentence(missing_words(missing))
    # What holds for several levels is told once.
    levels: dict[str, list[str]] = {}
    for level in trace.levels:
        for told in _remarks(level):
            levels.setdefault(told, []).append(level.level.value)
    for told, those in levels.items():
        yield Sentence(f"{', '.join(those)} {'level' if len(those) == 1 else 'levels'}: {told}")
    if not times:
        return
    yield BLANK_LINE
    yield _kinds(times, whole_ms)
    yield Sentence(_comparison(trace, times))
    yield BLANK_LINE
    yield _slowest(times[:_MOST_LAYERS], whole_ms)
    if len(times) > _MOST_LAYERS:
        yield Sentence(f"and {counted(len(times) - _MOST_LAYERS, 'faster layer')}, which --json lists")


_LEVEL_COLUMNS: tuple[Column[LevelTrace], ...] = (
    name_column("level", lambda it: it.level.value),
    Column("inference", lambda it: or_dash(in_ms, inference_of(it))),
    Column("overhead", lambda it: overhead_of(it) or "-"),
    Column("spans", lambda it: f"{sum(len(track.spans) for track in it.tracks):,}"),
)


def _remarks(level: LevelTrace) -> Iterator[str]:
    """Yield what to know about a level."""
    if level.totals:
        yield ", ".join(_total(name, value) for name, value in level.totals)
    yield from level.notes


def _total(name: str, value: object) -> str:
    if name == PLAIN_MS and isinstance(value, float):
        return f"{in_ms(value)} per inference without the profiler"
    if type(value) is int:
        return f"{name} {value:,}"
    return f"{name} {milliseconds(value, precise=True) if isinstance(value, float) else value}"


def missing_words(missing: MissingLevel) -> str:
    """Return why a level is missing."""
    return f"{missing.level.value} level: not traced: {missing.reason}"


def _kinds(times: Sequence[LayerTime], whole_ms: float | None) -> Table[KindTime]:
    """Return where the time of an inference goes: the layers of each kind, all of them, and the rest."""
    everything = together("all layers", times)
    rest_ms = 0.0 if whole_ms is None else whole_ms - everything.in_model_ms
    rest = [KindTime("outside of layers", 0, rest_ms, 0, 0.0, 0.0)] if rest_ms > 0 else []
    columns: tuple[Column[KindTime], ...] = (
        name_column("kind of layer", lambda it: it.kind),
        Column("layers", lambda it: f"{it.layers:,}" if it.layers else "-"),
        Column("in model", lambda it: in_ms(it.in_model_ms)),
        Column("share", lambda it: _share(it.in_model_ms, whole_ms)),
        Column("bricks", lambda it: in_ms(it.brick_ms) if it.compared else "-"),
        Column("difference", lambda it: _difference(it.compared_in_model_ms, it.brick_ms if it.compared else None)),
    )
    return Table(columns, [*by_kind(times), everything, *rest])


def _comparison(trace: Trace, times: Sequence[LayerTime]) -> str:
    """Return what the times of bricks are compared with."""
    everything = together("", times)
    if not everything.compared:
        return f"no brick is stored under the same conditions: `dlbricks run {trace.model}` measures them"
    told = "IN MODEL includes what the profiler adds to each layer; BRICKS is the layers measured alone"
    lacking = everything.layers - everything.compared
    return f"{told}; {counted(lacking, 'layer')} without a stored brick left out" if lacking else told


def _slowest(times: Sequence[LayerTime], whole_ms: float | None) -> Table[LayerTime]:
    columns: tuple[Column[LayerTime], ...] = (
        name_column("slowest layers", lambda it: it.layer.name),
        name_column("kind", lambda it: it.layer.kind),
        Column("in model", lambda it: in_ms(it.in_model_ms)),
        Column("share", lambda it: _share(it.in_model_ms, whole_ms)),
        Column("brick", lambda it: or_dash(in_ms, it.layer.brick_ms)),
        Column("difference", lambda it: _difference(it.in_model_ms, it.layer.brick_ms)),
    )
    return Table(columns, times)


def _share(some_ms: float, whole_ms: float | None) -> str:
    return percent(some_ms / whole_ms, 1) if whole_ms else "-"


def _difference(in_model_ms: float, brick_ms: float | None) -> str:
    return signed_percent(in_model_ms / brick_ms - 1) if brick_ms else "-"


def inference_of(level: LevelTrace) -> float | None:
    """Return the median inference of a level in milliseconds."""
    return median(level.inference_ms) if level.inference_ms else None


def overhead_of(level: LevelTrace) -> str:
    """Return what a level adds to the one below: `+0.2000 ms (+6.2 %)`; nothing for the lowest level."""
    whole_ms = inference_of(level)
    if level.overhead_ms is None or whole_ms is None:
        return ""
    below_ms = whole_ms - level.overhead_ms
    share = f" ({signed_percent(level.overhead_ms / below_ms)})" if below_ms > 0 else ""
    return f"{signed_ms(level.overhead_ms)}{share}"


def level_answer(level: LevelTrace, slowest: LayerTime | None = None) -> str:
    """Return what a level says, with the slowest layer of the trace at the layer level.

    `3.410 ms per inference, +0.2000 ms (+6.2 %) added by the profiler; slowest layer conv0, 12.0 %`
    """
    whole_ms, overhead = inference_of(level), overhead_of(level)
    if whole_ms is None:
        return "no inference was timed"
    adds = f"{overhead} added" if (level.overhead_ms or 0.0) > 0 else "no time added"
    told = f"{in_ms(whole_ms)} per inference" + (f", {adds} {_INSTRUMENTS[level.level]}" if overhead else "")
    if slowest is None or level.level is not TraceLevel.LAYER or whole_ms <= 0:
        return told
    return f"{told}; slowest layer {slowest.layer.name}, {percent(slowest.in_model_ms / whole_ms, 1)}"


def level_parts(level: LevelTrace, missing: Sequence[MissingLevel]) -> Iterator[Part]:
    """Yield what a level takes and adds, what to know about it, and the levels that are missing."""
    yield Sentence(f"{level.level.value} level", "strong")
    whole_ms, overhead = inference_of(level), overhead_of(level)
    if whole_ms is not None:
        yield Fact("inference", in_ms(whole_ms), f" (median of {len(level.inference_ms):,})")
        least, most = min(level.inference_ms), max(level.inference_ms)
        spread = f", {percent((most - least) / whole_ms, 1)} of it" if whole_ms > 0 else ""
        yield Fact("range", f"{in_ms(least)} to {in_ms(most)}", spread)
    adds = f"{overhead} {_INSTRUMENTS[level.level]}" if overhead else "nothing is below it to compare with"
    yield Fact("adds", adds)
    for told in (*_remarks(level), *map(missing_words, missing)):
        yield MarkedSentence("!", "warn", told)


def span_parts(
    span: TraceSpan, kind: TrackKind, level: LevelTrace, layer: TracedLayer | None, time: LayerTime | None
) -> Iterator[Part]:
    """Yield everything that is known of a span in a track of this kind, and of its layer."""
    yield Sentence(span.name, "strong")
    yield Sentence(f"{_KINDS[kind]}, {level.level.value} level", "muted")
    whole, share = _inference_of(span, level), share_of_inference(span, level)
    of_it = f", {share} of its inference" if share and kind is not TrackKind.INFERENCES else ""
    yield Fact("took", span_time(span.duration_ns), of_it)
    if whole is None:
        yield Fact("began", f"{span_time(span.start_ns)} after the start of the first inference")
    else:
        number = (span.inference or 0) + 1
        yield Fact("began", f"{span_time(span.start_ns - whole.start_ns)} after the start of inference {number:,}")
    if layer is not None:
        yield from _layer_facts(layer, time)
    if span.details:
        yield BLANK_LINE
    words: Mapping[object, str] = {None: "unknown", True: "yes", False: "no"}
    for name, value in span.details:
        yield Fact(name.replace("_", " "), words[value] if value is None or isinstance(value, bool) else str(value))


def _layer_facts(layer: TracedLayer, time: LayerTime | None) -> Iterator[Part]:
    yield Fact("layer", layer.name, f", {layer.kind}")
    if time is not None:
        yield Fact("in model", in_ms(time.in_model_ms), " (median at the layer level)")
    if layer.brick_ms is None:
        yield Fact("brick time", "not measured in this way")
    else:
        yield Fact("brick time", in_ms(layer.brick_ms), " (stored, alone)")
    if difference := None if time is None else beside_brick(time):
        yield Fact("difference", difference)
    yield Fact("brick", layer.brick[:_KEY_DIGITS])
    yield Fact("context", layer.context)


def counter_parts(counter: Counter, number: int | None) -> Iterator[Part]:
    """Yield a reading of a counter by its number, and the range of all."""
    unit = f" {counter.unit}" if counter.unit else ""
    yield Sentence(counter.name, "strong")
    if number is None:
        yield Sentence("It was never read.", "muted")
        return
    value = counter.values[number]
    yield Fact("reading", f"{number + 1:,} of {len(counter.values):,}")
    yield Fact("value", f"{value:,g}{unit}")
    if number:
        yield Fact("since last", f"{value - counter.values[number - 1]:+,g}{unit}")
    yield Fact("read", f"{span_time(counter.times_ns[number])} after the start of the first inference")
    yield Fact("range", f"{min(counter.values):,g} to {max(counter.values):,g}{unit}")


def span_words(span: TraceSpan, level: LevelTrace, time: LayerTime | None) -> str:
    """Return a span in one line: `945.0 µs, 14.8 % of the inference, brick alone 0.8100 ms (+16.7 %)`."""
    words = [span_time(span.duration_ns)]
    if share := share_of_inference(span, level):
        words.append(f"{share} of the inference")
    if time is not None and time.layer.brick_ms is not None:
        difference = _difference(time.in_model_ms, time.layer.brick_ms)
        words.append(f"brick alone {in_ms(time.layer.brick_ms)} ({difference})")
    return ", ".join(words)


def beside_brick(time: LayerTime) -> str:
    """Return the difference of a layer in the model to its brick alone: `+0.01200 ms, +3.0 %`; nothing without one."""
    if time.difference_ms is None:
        return ""
    share = f", {_difference(time.in_model_ms, time.layer.brick_ms)}" if time.layer.brick_ms else ""
    return f"{signed_ms(time.difference_ms)}{share}"


def share_of_inference(span: TraceSpan, level: LevelTrace) -> str:
    """Return the share of a span in its own inference: `12.0 %`; nothing if it belongs to none."""
    whole = _inference_of(span, level)
    return percent(span.duration_ns / whole.duration_ns, 1) if whole is not None and whole.duration_ns else ""


def _inference_of(span: TraceSpan, level: LevelTrace) -> TraceSpan | None:
    """Return the inference that a span belongs to."""
    if span.inference is None:
        return None
    whole = (it.spans for it in level.tracks if it.kind is TrackKind.INFERENCES)
    return next((it for spans in whole for it in spans if it.inference == span.inference), None)
