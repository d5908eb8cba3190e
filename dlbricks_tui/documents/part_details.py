"""All that is known of one part of a model: its latency, its brick, its layers and its samples."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dlbricks_tui.documents.parts import Fact, Heading, Sentence
from dlbricks_tui.documents.samples import sample_parts
from dlbricks_tui.documents.tree import cutting_words
from dlbricks_tui.estimate.intervals import is_wide
from dlbricks_tui.estimate.parts import Standing
from dlbricks_tui.models.neutral import plain_name
from dlbricks_tui.models.onnx.execution_graph import COMPILED, CONVERSION
from dlbricks_tui.wording.numbers import counted, milliseconds, percent
from dlbricks_tui.wording.titles import input_text, layer_title, shape_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dlbricks_tui.answers.shared_estimates import Measurements
    from dlbricks_tui.documents.outline import OutlineNode
    from dlbricks_tui.documents.part_latencies import PartLatencies, PartLatency
    from dlbricks_tui.documents.parts import Part
    from dlbricks_tui.estimate.parts import Part as EstimatePart
    from dlbricks_tui.models.graph import Layer, Operator, Params, TensorType

_KEY_DIGITS = 12
_MOST_LAYERS = 12
_MOST_MODELS = 4
_MOST_HISTORY = 12


@dataclass(frozen=True, slots=True, eq=False)
class PartDetails:
    """The details of a part, the most important first."""

    node: OutlineNode
    latencies: PartLatencies | None = None

    @property
    def brick_key(self) -> str | None:
        """The key of the brick of a sequence, or of a layer of one."""
        return self.node.occurrence.brick.key if self.node.occurrence else None

    @property
    def estimated(self) -> EstimatePart | None:
        """The part of the estimate for the sequence, or for the sequence around the layer."""
        if self.latencies is None or self.node.sequence is None:
            return None
        return self.latencies.part(self.node.sequence)

    def whole(self, measured: Measurements | None, other_models: Sequence[str] | None) -> Iterator[Part]:
        """Yield the details with the samples of the brick, and the other models that have it."""
        yield from self.facts(other_models)
        if measured is not None:
            yield from sample_parts(measured.newest)
            yield from _history(measured)
        if len(self._layers) > 1:
            yield from self.layers()

    def facts(self, other_models: Sequence[str] | None = None) -> Iterator[Part]:
        """Yield all but the layers of a longer sequence; the other models are None before they are known."""
        yield Sentence(self.node.title, "strong")
        yield from self._latency()
        yield from self._named()
        yield from self._identity()
        yield from self._whole()
        yield from self._other_models(other_models)

    def layers(self) -> Iterator[Part]:
        """Yield each layer of a sequence."""
        for layer in self._layers[:_MOST_LAYERS]:
            yield Heading(layer_title(layer))
            yield Fact("name", layer.name)
            yield from _layer(layer)
        if len(self._layers) > _MOST_LAYERS:
            yield Heading(f"and {counted(len(self._layers) - _MOST_LAYERS, 'layer')} more")

    @property
    def _layers(self) -> Sequence[Layer]:
        """The layers of a sequence; none of a region."""
        node = self.node
        return () if node.sequence is None else [node.outline.layers[index] for index in node.layers]

    @property
    def _is_whole(self) -> bool:
        return self.node.region is self.node.outline.root.region

    def _named(self) -> Iterator[Part]:
        if self.node.names and not self._is_whole:
            yield Fact("from" if self.node.sequence is None else "name", self.node.names)
        if len(self._layers) == 1:
            yield from _layer(self._layers[0])

    def _latency(self) -> Iterator[Part]:
        if self.latencies is None or self.node.layer is not None:
            return
        latency, part = self.latencies.of(self.node.region), self.estimated
        if not latency.layers:
            yield Fact("takes", "not needed: sequences that overlap it are quicker", style="muted")
            return
        if part is not None and part.free:
            yield Fact("takes", "no time: it is stored, not computed", style="muted")
        elif latency.known or latency.predicted:
            text, style = latency.told
            yield Fact("takes", text, f" ms, {percent(latency.share, 1)} of the model", style)
            if part is not None:
                yield from _once(part)
        yield from _lacking(part, latency)
        if latency.critical and not self._is_whole:
            # More workers do not shorten the critical path.
            yield Fact("", "on the critical path", style="accent")

    def _identity(self) -> Iterator[Part]:
        outline, occurrence = self.node.outline, self.node.occurrence
        if occurrence is None:
            inside = self.node.layers
            kinds = Counter(outline.layers[index].kind.value for index in inside).most_common()
            yield Fact("layers", f"{len(inside):,}", f": {', '.join(f'{count:,} {kind}' for kind, count in kinds)}")
            occurrences = outline.decomposition.occurrences
            bricks = {occurrences[number].brick.key for number in outline.numbers(self.node.region)}
            yield Fact("bricks", f"{len(bricks):,}", " different")
            if self.node.occurs > 1:
                yield Fact("occurs", f"{self.node.occurs:,} times in this model")
            return
        equal = [it for it in outline.decomposition.occurrences if it.brick.key == occurrence.brick.key]
        yield Fact("brick", occurrence.brick.key[:_KEY_DIGITS])
        yield Fact("context", occurrence.context, ": where its inputs come from")
        if others := sorted({it.context for it in equal} - {occurrence.context}):
            yield Fact("", f"elsewhere in the model: {', '.join(others)}", style="muted")
        yield Fact("occurs", f"{counted(len(equal), 'time')} in this model")

    def _whole(self) -> Iterator[Part]:
        if not self._is_whole:
            return
        decomposition = self.node.outline.decomposition
        graph = decomposition.graph
        if len(decomposition.occurrences) != len(graph.layers):
            yield Fact("sequences", f"{len(decomposition.occurrences):,}")
        if decomposition.cutting.granularity > 1:
            # Sequences are timed apart from each other, once for each surroundings.
            yield Fact("to run", counted(len(decomposition.suite), "brick"), ", each context of one counts")
        yield Fact("level", f"{graph.level.value}, {cutting_words(decomposition)}")
        for entry in graph.inputs:
            yield Fact("input", f"{_types([entry.type])} ", input_text(entry))
        for head in graph.heads:
            if head.layer is not None:
                layer = graph.layers[head.layer]
                yield Fact("output", f"{_types([layer.outputs[head.output]])} ", layer.name)

    def _other_models(self, names: Sequence[str] | None) -> Iterator[Part]:
        if self.node.sequence is None or names is None:
            return
        if not names:
            yield Fact("elsewhere", "in no other model of the library", style="muted")
            return
        more = f" and {len(names) - _MOST_MODELS:,} more" if len(names) > _MOST_MODELS else ""
        yield Fact("elsewhere", f"{counted(len(names), 'model')}: ", ", ".join(names[:_MOST_MODELS]) + more)


def _once(part: EstimatePart) -> Iterator[Part]:
    low, high = milliseconds(part.latency.low_ms), milliseconds(part.latency.high_ms)
    half_width_ms = (part.latency.high_ms - part.latency.low_ms) / 2
    yield Fact("interval", f"{low} to {high} ms" + (", each time" if part.times > 1 else ""))
    if part.times > 1:
        yield Fact("paid", f"{part.times:,} times")
    if part.standing is Standing.MEASURED and is_wide(part.latency.value_ms, half_width_ms):
        share = percent(half_width_ms / part.latency.value_ms, 1) if part.latency.value_ms else "all"
        yield Fact("", f"±{share}: its samples vary too much; run it again on a quieter host", style="warn")
    if not part.known:
        yield Fact("", "predicted, not measured", style="warn")


def _lacking(part: EstimatePart | None, latency: PartLatency) -> Iterator[Part]:
    if part is not None:
        if not part.counts and not part.reason:
            yield Fact("takes", "not measured yet", style="warn")
        if part.reason:
            yield Fact("cannot run", part.reason, style="bad")
        return
    if latency.known < latency.layers:
        yield Fact("measured", f"{latency.known:,} of {counted(latency.layers, 'layer')}", style="warn")
    if latency.unmeasurable:
        yield Fact("cannot run", f"{counted(latency.unmeasurable, 'layer')}, marked !", style="bad")


def _history(measured: Measurements) -> Iterator[Part]:
    if len(measured.history_ms) > 1:
        values = ", ".join(map(milliseconds, measured.history_ms[-_MOST_HISTORY:]))
        yield Fact("history", f"{len(measured.history_ms)} runs: {values} ms", style="muted")
    for flag in measured.newest.flags:
        yield Fact("flagged", flag, style="warn")


def _layer(layer: Layer) -> Iterator[Part]:
    yield Fact("layer", f"{layer.index}", f", {layer.kind.value}")
    if layer.times > 1:
        yield Fact("runs", f"{layer.times:,} times, counted once")
    yield Fact("in", _types(layer.data))
    if layer.weights:
        yield Fact("weights", _types(layer.weights))
    yield Fact("out", _types(layer.outputs))
    if layer.is_recorded:
        yield Fact("", "shape recorded from one run: it depends on data", style="muted")
    for operator in layer.operators:
        # Whole graphs in ONNX Runtime's packed layout have a domain of their own.
        packed = ", in a packed layout" if ".nchwc." in operator.op else ""
        yield Fact("operator", plain_name(operator.op), f"{_params(operator.params)}{packed}")
        yield from _compiled(operator)
        if operator.parts and operator.parts != (operator.op,):
            yield Fact("", f"fused from {', '.join(operator.parts)}", style="muted")


def _compiled(operator: Operator) -> Iterator[Part]:
    """Yield the kernel of OpenVINO, and for a conversion between memory layouts these."""
    found = dict(operator.params).get(COMPILED)
    for text in found if isinstance(found, tuple) else ():
        kind, kernel, *layouts = str(text).split()
        if kind == CONVERSION:
            yield Fact("layout", " ".join(layouts), ": the order of the dimensions in memory")
        else:
            yield Fact("kernel", kernel, ", in a packed layout" if {*layouts[:-1]} - {"plain", "->"} else "")


def _params(params: Params) -> str:
    return "".join(f" {name}={_value(value)}" for name, value in params if name != COMPILED)


def _value(value: object) -> str:
    return "x".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _types(types: Sequence[TensorType]) -> str:
    return ", ".join(shape_text(it) + ("" if it.dtype == "float32" else f" {it.dtype}") for it in types) or "nothing"
