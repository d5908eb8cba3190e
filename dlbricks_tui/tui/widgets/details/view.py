"""The details of a part of a model as lines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dlbricks_tui.estimate.parts import Standing
from dlbricks_tui.models.titles import layer_title, shape_text
from dlbricks_tui.tui.figures import counted, milliseconds, percent
from dlbricks_tui.tui.lines import BLANK, Line, Span, bar, clean, column, line, wrapped

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dlbricks_tui.models.graph import Layer, Params, TensorType
    from dlbricks_tui.tui.widgets.details.subject import Measurements, Subject

_NAME = 10
_KEY_DIGITS = 12
_MOST_LAYERS = 12
_MOST_MODELS = 8
_MOST_HISTORY = 12
_BAR = 20

NOTHING = (line(Span("Go to a part of the model", "muted")), line(Span("to read here what it is.", "muted")))


def details(
    subject: Subject, measured: Measurements | None, elsewhere: Sequence[str] | None, width: int
) -> tuple[Line, ...]:
    """Everything about a part of a model, what matters most first."""
    lines = [
        line(Span(clean(subject.title), "strong")),
        *_latency(subject),
        *_identity(subject),
        *_elsewhere(subject, elsewhere),
        *_samples(measured, width),
        *_layers(subject),
    ]
    return tuple(each for long in lines for each in (wrapped(long, width) if long else [BLANK]))


def _said(name: str, *parts: str | Span) -> Line:
    return line(column(name, _NAME, "muted"), *parts)


def _latency(subject: Subject) -> Iterator[Line]:
    tally, part = subject.tally, subject.part
    if tally is not None and tally.known:
        partly = ">" if tally.known < tally.sequences else ""
        share = Span(f" ms, {percent(tally.share, 1)} of the model", "muted")
        yield _said("takes", Span(f"{partly}{milliseconds(tally.latency_ms)}", "strong"), share)
    if part is None:
        if tally is not None and tally.missing:
            yield _said("coverage", Span(f"{counted(tally.missing, 'sequence')} not measured yet", "warn"))
        return
    if part.standing is Standing.MISSING:
        yield _said("takes", Span("not measured yet", "warn"))
    if part.standing is Standing.FREE:
        yield _said("takes", Span("no time: it is stored, not computed", "muted"))
    if part.reason:
        yield _said("cannot run", Span(part.reason, "bad"))
    if part.counts and not part.free:
        low, high = milliseconds(part.latency.low_ms), milliseconds(part.latency.high_ms)
        yield _said("interval", Span(f"{low} to {high} ms each time"))
    if part.standing is Standing.BRIDGED:
        yield _said("", Span("guessed from bricks that resemble it", "warn"))
    if tally is not None and tally.critical:
        yield _said("", Span("* on the critical path", "accent"))


def _identity(subject: Subject) -> Iterator[Line]:
    if subject.occurrence is None:
        yield _said("layers", counted(sum(count for _, count in subject.kinds), "layer"))
        for kind, count in subject.kinds:
            yield _said("", Span(f"{count:,} {kind.value}", "muted"))
        if subject.times > 1:
            yield _said("occurs", f"{subject.times:,} times in the model")
        return
    yield _said("brick", subject.occurrence.brick.key[:_KEY_DIGITS])
    yield _said("context", subject.occurrence.context)
    if len(subject.contexts) > 1:
        yield _said("", Span(f"stands in {len(subject.contexts)} contexts: {', '.join(subject.contexts)}", "muted"))
    yield _said("occurs", f"{subject.times:,} {'time' if subject.times == 1 else 'times'} in this model")


def _elsewhere(subject: Subject, names: Sequence[str] | None) -> Iterator[Line]:
    if subject.occurrence is None or names is None:
        return
    if not names:
        yield _said("elsewhere", Span("in no other model of the library", "muted"))
        return
    shown = ", ".join(map(clean, names[:_MOST_MODELS]))
    more = f" and {len(names) - _MOST_MODELS:,} more" if len(names) > _MOST_MODELS else ""
    yield _said("elsewhere", f"{counted(len(names), 'model')}: ", Span(shown + more, "muted"))


def _samples(measured: Measurements | None, width: int) -> Iterator[Line]:
    if measured is None:
        return
    from dlbricks_tui.store.histogram import bins

    result, statistics = measured.newest, measured.newest.statistics
    yield BLANK
    yield line(Span(f"{counted(statistics.count, 'sample')}, {result.when[:16].replace('T', ' ')} UTC", "heading"))
    found = bins(result.samples_ms)
    tallest = max((each.samples for each in found), default=1)
    room = max(4, min(_BAR, width - 18))
    for each in found:
        start = (">=" if each.tail else "") + milliseconds(each.low_ms)
        count = column(f"{each.samples}", 5, "muted", right=True)
        yield line(column(start, _NAME, right=True), Span(" "), *bar(each.samples / tallest, room), count)
    yield _said("median", milliseconds(statistics.median_ms), Span(" ms", "muted"))
    yield _said("minimum", milliseconds(statistics.minimum_ms), Span(" ms", "muted"))
    yield _said("spread", milliseconds(statistics.spread_ms), Span(" ms between the quartiles", "muted"))
    if len(measured.history_ms) > 1:
        values = ", ".join(map(milliseconds, measured.history_ms[-_MOST_HISTORY:]))
        yield _said("history", Span(f"{len(measured.history_ms)} measurements: {values} ms", "muted"))
    for flag in result.flags:
        yield _said("flagged", Span(flag, "warn"))


def _layers(subject: Subject) -> Iterator[Line]:
    for layer in subject.layers[:_MOST_LAYERS]:
        yield BLANK
        yield from _layer(layer)
    if len(subject.layers) > _MOST_LAYERS:
        yield line(Span(f"and {len(subject.layers) - _MOST_LAYERS:,} layers more", "muted"))


def _layer(layer: Layer) -> Iterator[Line]:
    yield line(Span(f"Layer {layer.index}: {layer_title(layer)}", "heading"))
    yield _said("name", clean(layer.name))
    yield _said("kind", layer.kind.value)
    if layer.times > 1:
        yield _said("runs", f"{layer.times:,} times, counted once")
    if layer.unmeasurable is not None:
        yield _said("cannot run", Span(clean(layer.unmeasurable), "bad"))
    yield _said("in", _types(layer.data))
    yield _said("out", _types(layer.outputs))
    if layer.weights:
        yield _said("weights", _types(layer.weights))
    for operator in layer.operators:
        yield _said("operator", operator.op, Span(_params(operator.params), "muted"))
        if operator.parts and operator.parts != (operator.op,):
            yield _said("", Span(f"fused of {', '.join(operator.parts)}", "muted"))


def _params(params: Params) -> str:
    return "".join(f" {name}={_value(value)}" for name, value in params)


def _value(value: object) -> str:
    return "x".join(map(str, value)) if isinstance(value, tuple) else clean(str(value))


def _types(types: Sequence[TensorType]) -> str:
    return ", ".join(shape_text(it) + ("" if it.dtype == "float32" else f" {it.dtype}") for it in types) or "nothing"
