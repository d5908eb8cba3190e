"""The panel of details about the selected part of the model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dlbricks_tui.documents.layout import laid_out
from dlbricks_tui.documents.lines import BLANK, Line, Span, fact, line
from dlbricks_tui.documents.samples import sample_parts
from dlbricks_tui.models.titles import input_text, layer_title, shape_text
from dlbricks_tui.tui.choices import Choices
from dlbricks_tui.tui.widgets.panel import Panel
from dlbricks_tui.tui.widgets.rows import LineRows
from dlbricks_tui.tui.workbench import actions
from dlbricks_tui.tui.workbench.tree import NO_KEY
from dlbricks_tui.tui.workbench.tree_line import CRITICAL, WIDE, latency_text
from dlbricks_tui.wording.numbers import counted, milliseconds, percent

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from dlbricks_tui.estimate.knowledge import Pair
    from dlbricks_tui.estimate.parts import Part
    from dlbricks_tui.models.graph import Layer, Params, TensorType
    from dlbricks_tui.tui.workbench.parts import Measurements, PartDetails, PartLatency

_KEY_DIGITS = 12
_MOST_LAYERS = 12
_MOST_MODELS = 4
_MOST_HISTORY = 12

NOTHING = (line(Span("Select a part of the model", "muted")), line(Span("to see its details here.", "muted")))


def details(
    selected: PartDetails, measured: Measurements | None, other_models: Sequence[str] | None, width: int
) -> Iterator[Line]:
    """Yield everything about a part of a model, the most important first."""
    yield line(Span(selected.title, "strong"))
    yield from _named(selected)
    yield from _latency(selected)
    yield from _identity(selected)
    yield from _whole(selected)
    yield from _other_models(selected, other_models)
    yield from _sample_lines(measured, width)
    yield from _layers(selected)


def _named(selected: PartDetails) -> Iterator[Line]:
    if selected.names and selected.whole is None:
        yield fact("name" if selected.occurrence else "from", Span(selected.names))
    if len(selected.layers) == 1:
        yield from _layer(selected.layers[0])


def _latency(selected: PartDetails) -> Iterator[Line]:
    latency = selected.latency
    if latency is None:
        return
    if not latency.layers:
        yield fact("takes", Span("not needed: sequences that overlap it are quicker", "muted"))
        return
    if selected.part is not None and selected.part.free:
        yield fact("takes", Span("no time: it is stored, not computed", "muted"))
    elif latency.known or latency.predicted:
        share = Span(f" ms, {percent(latency.share, 1)} of the model", "muted")
        yield fact("takes", latency_text(latency), share)
        if selected.part is not None:
            yield from _once(selected.part)
        if selected.call_ms:
            yield fact("call", milliseconds(selected.call_ms), Span(" ms of it: overhead of one call", "muted"))
    yield from _lacking(selected, latency)
    if latency.critical:
        # More workers do not shorten the critical path.
        yield fact("", Span(f"{CRITICAL} on the critical path", "accent"))


def _once(part: Part) -> Iterator[Line]:
    from dlbricks_tui.estimate.intervals import is_wide
    from dlbricks_tui.estimate.parts import Standing

    low, high = milliseconds(part.latency.low_ms), milliseconds(part.latency.high_ms)
    half_width_ms = (part.latency.high_ms - part.latency.low_ms) / 2
    yield fact("interval", Span(f"{low} to {high} ms" + (", each time" if part.times > 1 else "")))
    if part.times > 1:
        yield fact("paid", f"{part.times:,} times")
    if part.standing is Standing.MEASURED and is_wide(part.latency.value_ms, half_width_ms):
        share = percent(half_width_ms / part.latency.value_ms, 1) if part.latency.value_ms else "all"
        yield fact("", Span(f"{WIDE} ±{share}: its samples vary too much; run it again on a quieter host", "warn"))
    if not part.known:
        yield fact("", Span("predicted, not measured", "warn"))


def _lacking(selected: PartDetails, latency: PartLatency) -> Iterator[Line]:
    if selected.part is not None:
        if not selected.part.counts and not selected.part.reason:
            yield fact("takes", Span("not measured yet", "warn"))
        if selected.part.reason:
            yield fact("cannot run", Span(selected.part.reason, "bad"))
        return
    if latency.known < latency.layers:
        yield fact("measured", Span(f"{latency.known:,} of {counted(latency.layers, 'layer')}", "warn"))
    if latency.unmeasurable:
        yield fact("cannot run", Span(f"{counted(latency.unmeasurable, 'layer')}, marked !", "bad"))


def _identity(selected: PartDetails) -> Iterator[Line]:
    if selected.occurrence is None:
        yield fact("layers", f"{sum(count for _, count in selected.kinds):,}", Span(f" {_kinds(selected)}", "muted"))
        yield fact("bricks", f"{selected.bricks:,}", Span(" different", "muted"))
        if selected.times > 1:
            yield fact("occurs", f"{selected.times:,} times in this model")
        return
    yield fact("brick", selected.occurrence.brick.key[:_KEY_DIGITS])
    yield fact("context", selected.occurrence.context)
    if len(selected.contexts) > 1:
        others = [context for context in selected.contexts if context != selected.occurrence.context]
        yield fact("", Span(f"elsewhere in the model: {', '.join(others)}", "muted"))
    yield fact("occurs", f"{selected.times:,} {'time' if selected.times == 1 else 'times'} in this model")


def _kinds(selected: PartDetails) -> str:
    return ", ".join(f"{count:,} {kind.value}" for kind, count in selected.kinds)


def _whole(selected: PartDetails) -> Iterator[Line]:
    if selected.whole is None:
        return
    graph, cutting = selected.whole.graph, selected.whole.cutting
    if len(selected.whole.occurrences) != len(graph.layers):
        yield fact("sequences", f"{len(selected.whole.occurrences):,}")
    if cutting.granularity > 1:
        # Sequences are timed apart from each other, once for each surroundings.
        yield fact(
            "to run", f"{counted(len(selected.whole.suite), 'brick')}", Span(", each context of one counts", "muted")
        )
    usual = Choices()
    if (graph.level, cutting) != (usual.level, usual.cutting):
        yield fact("level", f"{graph.level.value}, granularity {cutting.granularity}, cut {cutting.cut.value}")
    for entry in graph.inputs:
        yield fact("input", f"{_types([entry.type])} ", Span(input_text(entry), "muted"))
    for head in graph.heads:
        if head.layer is not None:
            layer = graph.layers[head.layer]
            yield fact("output", f"{_types([layer.outputs[head.output]])} ", Span(layer.name, "muted"))


def _other_models(selected: PartDetails, names: Sequence[str] | None) -> Iterator[Line]:
    if selected.occurrence is None or names is None:
        return
    if not names:
        yield fact("elsewhere", Span("in no other model of the library", "muted"))
        return
    shown = ", ".join(names[:_MOST_MODELS])
    more = f" and {len(names) - _MOST_MODELS:,} more" if len(names) > _MOST_MODELS else ""
    yield fact("elsewhere", f"{counted(len(names), 'model')}: ", Span(shown + more, "muted"))


def _sample_lines(measured: Measurements | None, width: int) -> Iterator[Line]:
    if measured is None:
        return
    yield BLANK
    yield from laid_out(sample_parts(measured.newest), width)
    if len(measured.history_ms) > 1:
        values = ", ".join(map(milliseconds, measured.history_ms[-_MOST_HISTORY:]))
        yield fact("history", Span(f"{len(measured.history_ms)} runs: {values} ms", "muted"))
    for flag in measured.newest.flags:
        yield fact("flagged", Span(flag, "warn"))


def _layers(selected: PartDetails) -> Iterator[Line]:
    if len(selected.layers) < 2:
        # The details begin with a single layer.
        return
    for layer in selected.layers[:_MOST_LAYERS]:
        yield BLANK
        yield line(Span(layer_title(layer), "heading"))
        yield fact("name", layer.name)
        yield from _layer(layer)
    if len(selected.layers) > _MOST_LAYERS:
        yield BLANK
        yield line(Span(f"and {counted(len(selected.layers) - _MOST_LAYERS, 'layer')} more", "muted"))


def _layer(layer: Layer) -> Iterator[Line]:
    yield fact("layer", f"{layer.index}", Span(f", {layer.kind.value}", "muted"))
    if layer.times > 1:
        yield fact("runs", f"{layer.times:,} times, counted once")
    yield fact("in", _types(layer.data))
    if layer.weights:
        yield fact("weights", _types(layer.weights))
    yield fact("out", _types(layer.outputs))
    if layer.is_recorded:
        yield fact("", Span("shape recorded from one run: it depends on data", "muted"))
    for operator in layer.operators:
        yield fact("operator", operator.op, Span(_params(operator.params), "muted"))
        if operator.parts and operator.parts != (operator.op,):
            yield fact("", Span(f"fused from {', '.join(operator.parts)}", "muted"))


def _params(params: Params) -> str:
    return "".join(f" {name}={_value(value)}" for name, value in params)


def _value(value: object) -> str:
    return "x".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _types(types: Sequence[TensorType]) -> str:
    return ", ".join(shape_text(it) + ("" if it.dtype == "float32" else f" {it.dtype}") for it in types) or "nothing"


class DetailsPanel(Panel):
    """Parameters, shapes and samples of the selected part, and the other models with its brick."""

    scope = actions.DETAILS
    TITLE = "Details"
    REACHED_BY = "workbench.go_to_details"
    ABOUT = (
        "The part of the model that is selected in the decomposition: its latency, its brick and context, the other "
        "models with that brick, the distribution of its samples, and its layers."
    )

    def __init__(self) -> None:
        self._list = LineRows(self._lines)
        super().__init__(self._list, id="details")
        # The displayed part, its samples, and the other models with its brick.
        self.selected: PartDetails | None = None
        self._measured: Measurements | None = None
        self._other_models: Sequence[str] | None = None
        self.show_placeholder(*NOTHING)

    def show(self, selected: PartDetails | None) -> None:
        """Show a part of the model and drop what was read of another one."""
        before, self.selected = self.selected, selected
        if _measured_of(before) != _measured_of(selected):
            self._measured = None
        if _brick_of(before) != _brick_of(selected):
            self._other_models = None
        if (before and (before.title, before.names)) != (selected and (selected.title, selected.names)):
            # Only another part scrolls to the top; a new estimate keeps the position.
            self._list.move_to(0)
        self._list.remake()

    def show_measurements(self, measured: Measurements | None) -> None:
        self._measured = measured
        self._list.remake()

    def show_other_models(self, names: Sequence[str]) -> None:
        self._other_models = names
        self._list.remake()

    def action_copy(self) -> None:
        self.copy(_brick_of(self.selected), NO_KEY)

    def _lines(self, width: int) -> Iterable[Line]:
        return details(self.selected, self._measured, self._other_models, width) if self.selected else ()


def _brick_of(selected: PartDetails | None) -> str | None:
    return selected.brick_key if selected else None


def _measured_of(selected: PartDetails | None) -> Pair | None:
    return selected.part.source if selected and selected.part else None
