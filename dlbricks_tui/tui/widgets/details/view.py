"""The details of a part of a model as lines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dlbricks_tui.estimate.intervals import is_wide
from dlbricks_tui.estimate.parts import Standing
from dlbricks_tui.models.titles import layer_title, shape_text
from dlbricks_tui.tui.lines import BLANK, Line, Span, line, wrapped
from dlbricks_tui.tui.samples import said, sample_lines
from dlbricks_tui.tui.widgets.tree.line import CRITICAL, WIDE, latency_text
from dlbricks_tui.wording.numbers import counted, milliseconds, percent

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dlbricks_tui.estimate.parts import Part
    from dlbricks_tui.models.graph import Layer, Params, TensorType
    from dlbricks_tui.tui.widgets.details.subject import Measurements, Subject
    from dlbricks_tui.tui.widgets.tree.tally import Tally

_KEY_DIGITS = 12
_MOST_LAYERS = 12
_MOST_MODELS = 4
_MOST_HISTORY = 12

NOTHING = (line(Span("Go to a part of the model", "muted")), line(Span("to read here what it is.", "muted")))


def details(
    subject: Subject, measured: Measurements | None, elsewhere: Sequence[str] | None, width: int
) -> tuple[Line, ...]:
    """Everything about a part of a model, what matters most first."""
    lines = [
        line(Span(subject.title, "strong")),
        *_named(subject),
        *_latency(subject),
        *_identity(subject),
        *_whole(subject),
        *_elsewhere(subject, elsewhere),
        *_samples(measured, width),
        *_layers(subject),
    ]
    return tuple(each for long in lines for each in (wrapped(long, width) if long else [BLANK]))


def _named(subject: Subject) -> Iterator[Line]:
    if subject.names and subject.whole is None:
        yield said("name" if subject.occurrence else "from", Span(subject.names))
    if len(subject.layers) == 1:
        yield from _layer(subject.layers[0])


def _latency(subject: Subject) -> Iterator[Line]:
    tally = subject.tally
    if tally is None:
        return
    if not tally.layers:
        yield said("takes", Span("no part: sequences that overlap it are quicker", "muted"))
        return
    if subject.part is not None and subject.part.free:
        yield said("takes", Span("no time: it is stored, not computed", "muted"))
    elif tally.known or tally.guessed:
        share = Span(f" ms, {percent(tally.share, 1)} of the model", "muted")
        yield said("takes", latency_text(tally), share)
        if subject.part is not None:
            yield from _once(subject.part)
        if subject.call_ms:
            yield said("call", milliseconds(subject.call_ms), Span(" ms of it, once: of the runtime", "muted"))
    yield from _lacking(subject, tally)
    if tally.critical:
        # What a part of the path takes, the model takes however many workers there are.
        yield said("", Span(f"{CRITICAL} on the critical path", "accent"))


def _once(part: Part) -> Iterator[Line]:
    low, high = milliseconds(part.latency.low_ms), milliseconds(part.latency.high_ms)
    half_width_ms = (part.latency.high_ms - part.latency.low_ms) / 2
    yield said("interval", Span(f"{low} to {high} ms" + (", each time" if part.times > 1 else "")))
    if part.times > 1:
        yield said("paid", f"{part.times:,} times")
    if part.standing is Standing.MEASURED and is_wide(part.latency.value_ms, half_width_ms):
        share = percent(half_width_ms / part.latency.value_ms, 1) if part.latency.value_ms else "all"
        yield said("", Span(f"{WIDE} ±{share}: its samples vary too much; run it again on a quieter host", "warn"))
    if not part.known:
        yield said("", Span("guessed from bricks that resemble it", "warn"))


def _lacking(subject: Subject, tally: Tally) -> Iterator[Line]:
    if subject.part is not None:
        if not subject.part.counts and not subject.part.reason:
            yield said("takes", Span("not measured yet", "warn"))
        if subject.part.reason:
            yield said("cannot run", Span(subject.part.reason, "bad"))
        return
    if tally.known < tally.layers:
        yield said("measured", Span(f"{tally.known:,} of {counted(tally.layers, 'layer')}", "warn"))
    if tally.unmeasurable:
        yield said("cannot run", Span(f"{counted(tally.unmeasurable, 'layer')}, marked !", "bad"))


def _identity(subject: Subject) -> Iterator[Line]:
    if subject.occurrence is None:
        yield said("layers", f"{sum(count for _, count in subject.kinds):,}", Span(f" {_kinds(subject)}", "muted"))
        yield said("bricks", f"{subject.bricks:,}", Span(" that differ", "muted"))
        if subject.times > 1:
            yield said("occurs", f"{subject.times:,} times in this model")
        return
    yield said("brick", subject.occurrence.brick.key[:_KEY_DIGITS])
    yield said("context", subject.occurrence.context)
    if len(subject.contexts) > 1:
        others = [context for context in subject.contexts if context != subject.occurrence.context]
        yield said("", Span(f"elsewhere in the model: {', '.join(others)}", "muted"))
    yield said("occurs", f"{subject.times:,} {'time' if subject.times == 1 else 'times'} in this model")


def _kinds(subject: Subject) -> str:
    return ", ".join(f"{count:,} {kind.value}" for kind, count in subject.kinds)


def _whole(subject: Subject) -> Iterator[Line]:
    if subject.whole is None:
        return
    graph, cutting = subject.whole.graph, subject.whole.cutting
    if len(subject.whole.occurrences) != len(graph.layers):
        yield said("sequences", f"{len(subject.whole.occurrences):,}")
    yield said("to run", f"{len(subject.whole.suite):,}", Span(" bricks in their contexts", "muted"))
    yield said("level", f"{graph.level.value}, granularity {cutting.granularity}, cut {cutting.cut.value}")
    for entry in graph.inputs:
        yield said("input", f"{_types([entry.type])} ", Span(entry.name, "muted"))
    for head in graph.heads:
        if head.layer is not None:
            layer = graph.layers[head.layer]
            yield said("output", f"{_types([layer.outputs[head.output]])} ", Span(layer.name, "muted"))


def _elsewhere(subject: Subject, names: Sequence[str] | None) -> Iterator[Line]:
    if subject.occurrence is None or names is None:
        return
    if not names:
        yield said("elsewhere", Span("in no other model of the library", "muted"))
        return
    shown = ", ".join(names[:_MOST_MODELS])
    more = f" and {len(names) - _MOST_MODELS:,} more" if len(names) > _MOST_MODELS else ""
    yield said("elsewhere", f"{counted(len(names), 'model')}: ", Span(shown + more, "muted"))


def _samples(measured: Measurements | None, width: int) -> Iterator[Line]:
    if measured is None:
        return
    yield BLANK
    yield from sample_lines(measured.newest, width)
    if len(measured.history_ms) > 1:
        values = ", ".join(map(milliseconds, measured.history_ms[-_MOST_HISTORY:]))
        yield said("history", Span(f"{len(measured.history_ms)} measurements: {values} ms", "muted"))
    for flag in measured.newest.flags:
        yield said("flagged", Span(flag, "warn"))


def _layers(subject: Subject) -> Iterator[Line]:
    if len(subject.layers) < 2:
        # It is what the details begin with.
        return
    for layer in subject.layers[:_MOST_LAYERS]:
        yield BLANK
        yield line(Span(layer_title(layer), "heading"))
        yield said("name", layer.name)
        yield from _layer(layer)
    if len(subject.layers) > _MOST_LAYERS:
        yield BLANK
        yield line(Span(f"and {counted(len(subject.layers) - _MOST_LAYERS, 'layer')} more", "muted"))


def _layer(layer: Layer) -> Iterator[Line]:
    yield said("layer", f"{layer.index}", Span(f", {layer.kind.value}", "muted"))
    if layer.times > 1:
        yield said("runs", f"{layer.times:,} times, counted once")
    yield said("in", _types(layer.data))
    if layer.weights:
        yield said("weights", _types(layer.weights))
    yield said("out", _types(layer.outputs))
    for operator in layer.operators:
        yield said("operator", operator.op, Span(_params(operator.params), "muted"))
        if operator.parts and operator.parts != (operator.op,):
            yield said("", Span(f"fused of {', '.join(operator.parts)}", "muted"))


def _params(params: Params) -> str:
    return "".join(f" {name}={_value(value)}" for name, value in params)


def _value(value: object) -> str:
    return "x".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _types(types: Sequence[TensorType]) -> str:
    return ", ".join(shape_text(it) + ("" if it.dtype == "float32" else f" {it.dtype}") for it in types) or "nothing"
