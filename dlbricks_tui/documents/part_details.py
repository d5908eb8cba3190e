"""The parts of a model: the latency of each, and one with its brick, its layers and its samples."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from operator import add
from typing import TYPE_CHECKING

from dlbricks_tui.documents.lines import Span
from dlbricks_tui.documents.parts import Fact, Heading, Part, Sentence
from dlbricks_tui.documents.results import sample_parts
from dlbricks_tui.estimate.compositions import from_picoseconds
from dlbricks_tui.estimate.estimate import Estimate, is_wide
from dlbricks_tui.estimate.parts import Standing
from dlbricks_tui.models.neutral import plain_name
from dlbricks_tui.models.onnx_layers import COMPILED, CONVERSION
from dlbricks_tui.wording.answers import cutting_words, input_text, layer_title, shape_text
from dlbricks_tui.wording.numbers import CANNOT, LEFT_OUT, UNKNOWN, WIDE, counted, milliseconds, percent, sign_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dlbricks_tui.api.estimating import Measurements
    from dlbricks_tui.bricks.regions import Region
    from dlbricks_tui.documents.outline import Outline, OutlineNode
    from dlbricks_tui.estimate.parts import Part as EstimatePart
    from dlbricks_tui.models.graph import Layer, TensorType


@dataclass(frozen=True, slots=True)
class PartLatency:
    """The known latency of some layers; counts are of layers."""

    latency_ms: float
    share: float
    layers: int
    predicted: int
    missing: int
    unmeasurable: int
    critical: bool
    # True if the interval of its samples is wider than a run asks for.
    wide: bool = False

    @property
    def known(self) -> int:
        """The number of layers with a measured latency."""
        return self.layers - self.predicted - self.missing - self.unmeasurable

    @property
    def coverage(self) -> float:
        """The share of measured layers."""
        return self.known / self.layers if self.layers else 1.0

    @property
    def told(self) -> Span:
        """The latency, or a sign for why there is none."""
        if not self.layers:
            return Span(LEFT_OUT, "muted")
        if self.unmeasurable == self.layers:
            return Span(CANNOT, "bad")
        if not self.known and not self.predicted:
            return Span(UNKNOWN, "muted")
        lacks = self.missing + self.unmeasurable > 0
        if not self.latency_ms and not lacks:
            return Span("0", "muted")
        sign = sign_of(partial=lacks, predicted=self.predicted > 0) or (WIDE if self.wide else "")
        return Span(sign + milliseconds(self.latency_ms), "warn" if sign else "strong")


class PartLatencies:
    """The latencies of all parts of a model under one estimate; prefix sums make each one quick."""

    def __init__(self, outline: Outline, estimate: Estimate) -> None:
        self.outline = outline
        # Parts by first layer: each begins a sequence. Of overlapping sequences only those that cover the model have a
        # part, and if none is measured, that part is its first layer alone.
        by_first = {part.layers[0]: part for part in estimate.parts}
        composed = estimate.composed
        critical = {estimate.parts[number].layers[0] for number in composed.critical_path} if composed else set()
        sequences = [outline.decomposition.occurrences[number].sequence for number in outline.sequences]
        parts = [by_first.get(sequence.layers[0]) for sequence in sequences]
        on_path = [sequence.layers[0] in critical for sequence in sequences]
        self._total_ms = composed.sequential_ms if composed else 0.0
        self._parts = dict(zip(outline.sequences, parts, strict=True))
        self._sums: list[tuple[float, ...]] = [(0.0, 0, 0, 0, 0, 0, 0)]
        for part, is_critical in zip(parts, on_path, strict=True):
            added: Sequence[float] = (0, is_critical, 0, 0, 0, 0, 0)
            if part is not None:
                standing, count = part.standing, len(part.layers)
                # Half of the interval of what the model pays for a measured part.
                half_ms = part.times * (part.latency.high_ms - part.latency.low_ms) / 2
                half_ms = half_ms if standing is Standing.MEASURED else 0.0
                kinds = (Standing.PREDICTED, Standing.MISSING, Standing.UNMEASURABLE)
                counts = [count if standing is kind else 0 for kind in kinds]
                added = (half_ms, is_critical, part.paid_ps if part.counts else 0, count, *counts)
            self._sums.append(tuple(map(add, self._sums[-1], added)))
        # Positions in the outline.
        self.critical = tuple(place for place, each in enumerate(on_path) if each)
        self.missing = tuple(place for place, part in enumerate(parts) if part is not None and not part.known)

    def slowest_first(self) -> list[int]:
        """Return the sequences, the slowest first, and last those without a latency."""

        def rank(sequence: int) -> tuple[int, tuple[int, ...]]:
            part = self._parts[sequence]
            return (-part.paid_ps, part.layers) if part is not None and part.counts else (1, ())

        return sorted(self._parts, key=rank)

    def part(self, sequence: int) -> EstimatePart | None:
        """Return the part of a sequence; None if the estimate does not use it."""
        return self._parts[sequence]

    def of(self, region: Region) -> PartLatency:
        """Return the latency of a region."""
        inside = self.outline.span_of(region)
        ends = zip(self._sums[inside.stop], self._sums[inside.start], strict=True)
        half_width_ms, critical, paid_ps, *counts = (end - begin for end, begin in ends)
        latency_ms = from_picoseconds(int(paid_ps))
        if region is self.outline.root.region and not self._total_ms:
            # Too few layers make no figure of the model.
            latency_ms = 0.0
        share = latency_ms / self._total_ms if self._total_ms else 0.0
        layers, predicted, missing, unmeasurable = map(int, counts)
        wide = is_wide(latency_ms, half_width_ms)
        return PartLatency(latency_ms, share, layers, predicted, missing, unmeasurable, critical > 0, wide)


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
            if len(measured.history_ms) > 1:
                values = ", ".join(map(milliseconds, measured.history_ms[-_MOST_HISTORY:]))
                yield Fact("history", f"{len(measured.history_ms)} runs: {values} ms", style="muted")
            yield from (Fact("flagged", flag, style="warn") for flag in measured.newest.flags)
        if len(self._layers) > 1:
            yield from self.layers()

    def facts(self, other_models: Sequence[str] | None = None) -> Iterator[Part]:
        """Yield all but the layers of a longer sequence; the other models are None before they are known."""
        yield Sentence(self.node.title, "strong")
        yield from self._latency()
        if self.node.names and not self._is_whole:
            yield Fact("from" if self.node.sequence is None else "name", self.node.names)
        if len(self._layers) == 1:
            yield from _layer(self._layers[0])
        yield from self._identity()
        yield from self._whole()
        if self.node.sequence is not None and other_models:
            names, left = ", ".join(other_models[:_MOST_MODELS]), len(other_models) - _MOST_MODELS
            more = f" and {left:,} more" if left > 0 else ""
            yield Fact("elsewhere", f"{counted(len(other_models), 'model')}: ", names + more)
        elif self.node.sequence is not None and other_models is not None:
            yield Fact("elsewhere", "in no other model of the library", style="muted")

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
            yield Fact("to run", counted(len(decomposition.pairs), "brick"), ", each context of one counts")
        yield Fact("level", f"{graph.level.value}, {cutting_words(decomposition.cutting)}")
        for entry in graph.inputs:
            yield Fact("input", f"{_types([entry.type])} ", input_text(entry))
        for head in graph.heads:
            if head.layer is not None:
                layer = graph.layers[head.layer]
                yield Fact("output", f"{_types([layer.outputs[head.output]])} ", layer.name)


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
        told, compiled = "", dict(operator.params).get(COMPILED)
        for name, value in operator.params:
            if name != COMPILED:
                told += f" {name}={'x'.join(map(str, value)) if isinstance(value, tuple) else value}"
        yield Fact("operator", plain_name(operator.op), f"{told}{packed}")
        # The kernel of OpenVINO, and for a conversion between memory layouts these.
        for text in compiled if isinstance(compiled, tuple) else ():
            kind, kernel, *layouts = str(text).split()
            if kind == CONVERSION:
                yield Fact("layout", " ".join(layouts), ": the order of the dimensions in memory")
            else:
                yield Fact("kernel", kernel, ", in a packed layout" if {*layouts[:-1]} - {"plain", "->"} else "")
        if operator.parts and operator.parts != (operator.op,):
            yield Fact("", f"fused from {', '.join(operator.parts)}", style="muted")


def _types(types: Sequence[TensorType]) -> str:
    return ", ".join(shape_text(it) + ("" if it.dtype == "float32" else f" {it.dtype}") for it in types) or "nothing"
