"""The estimate of one model: its answer, its compositions, what they rest on, and where the time goes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from dlbricks_tui.documents.parts import (
    BLANK_LINE,
    BarFigure,
    CellKind,
    Column,
    Figures,
    Heading,
    Part,
    Sentence,
    Table,
    bar_column,
    error_style,
    name_column,
)
from dlbricks_tui.estimate.explanation import (
    CostlyBrick,
    RegionSlice,
    Residual,
    Slice,
    by_region,
    by_type,
    costliest,
    residual,
)
from dlbricks_tui.estimate.parts import SlowPart, slowest
from dlbricks_tui.runtime.variant import variant_in_words
from dlbricks_tui.store.index import label_of
from dlbricks_tui.wording.answers import (
    answer_words,
    assumption,
    cutting_words,
    doubt_in_short,
    doubts_about,
    engine_remarks,
    execution_words,
    faster_words,
    name_of,
    named_in_commands,
    parallel_sentences,
    slowest_in_words,
    title_of,
)
from dlbricks_tui.wording.numbers import (
    PREDICTED,
    PREDICTED_LEGEND,
    counted,
    ends_of,
    in_ms,
    milliseconds,
    part_of,
    partly,
    percent,
    percent_of_part,
    sign_of,
    signed_percent,
)

if TYPE_CHECKING:
    from dlbricks_tui.estimate.estimate import Composed
    from dlbricks_tui.estimate.knowledge import Latency
    from dlbricks_tui.estimate.system_estimate import SystemEstimate
    from dlbricks_tui.models.graph import LayerGraph

_MOST_REGIONS = 10
_MOST_NAMED = 8
# Smaller shares of the latency get no line.
_LEAST_SHARE = 0.001


@dataclass(frozen=True, eq=False)
class EstimateDocument:
    """The estimate of a model; `is_chosen` tells that the user chose its combination."""

    graph: LayerGraph
    one: SystemEstimate
    is_chosen: bool = False
    # The fastest combination that was measured, if that is another one.
    fastest: SystemEstimate | None = None

    def prepare(self) -> None:
        """Compute what takes long, so that drawing takes little."""
        self._slices, self._residual  # noqa: B018 - they are kept

    def whole(self) -> Iterator[Part]:
        """Yield all of it."""
        one, found, whole = self.one, self.one.estimate, self.one.end_to_end
        is_known = found.composed is not None or whole is not None
        if found.obstacle or is_known:
            yield from self.heading()
            yield BLANK_LINE
        if is_known:
            yield Sentence(answer_words(one, chosen=self.is_chosen), "strong")
            yield BLANK_LINE
        if found.obstacle:
            yield Sentence(f"no estimate is possible: {found.obstacle}")
            if whole is not None:
                yield Sentence(f"end to end: {in_ms(whole.value_ms)}, measured ({variant_in_words(one.variant)})")
                yield from map(Sentence, engine_remarks([one]))
        elif found.composed is not None:
            yield from self.compositions()
            yield from map(Sentence, engine_remarks([one]))
            yield from map(Sentence, filter(None, [assumption(self.graph.inputs)]))
            yield from self.basis()
            yield from self.coverage()
            yield from self.path()
            yield from self.gain()
            yield from self.remainder()
            yield from self.doubts()
            yield from self.types()
            yield from self.bricks()
            yield from self.regions()

    def heading(self) -> Iterator[Part]:
        """Yield the name of the model, where and how it was measured, and what its figures leave out."""
        yield Sentence(self.one.estimate.model, "heading")
        yield from self.way()
        yield from self.cautions()

    def way(self) -> Iterator[Part]:
        """Yield where and how the model was measured."""
        yield Sentence(way_words(self.one))

    def cautions(self) -> Iterator[Part]:
        """Yield what the figures leave out or assume."""
        found = self.one.estimate
        if found.composed is None:
            return
        if found.is_unfused:
            yield Sentence("an estimate of unfused layers, as the file has them: a runtime that fuses them takes less")
        if found.coverage.predicted:
            of = f"{found.coverage.predicted} of {counted(found.coverage.layers, 'layer')}"
            share = percent_of_part(found.predicted_share)
            verb = "is" if found.coverage.predicted == 1 else "are"
            yield Sentence(f"{PREDICTED} not all measured: {of}, {share} of the latency, {verb} predicted", "warn")
        if found.is_partial:
            left_out = len({layer for part in found.parts if not part.counts for layer in part.layers})
            of = f"{found.coverage.layers - left_out} of {counted(found.coverage.layers, 'layer')}"
            yield Sentence(f"a sum of {of} only: the model may take more or less", "warn")

    def answer(self, on: str = "") -> Iterator[Part]:
        """Yield the answer, and the fastest combination if that is another; `on` names any system but this host."""
        yield Sentence(answer_words(self.one, chosen=self.is_chosen, on=on), "strong")
        if faster := faster_words(self.one, self.fastest):
            yield Sentence(faster, "warn")

    def certainty(self) -> Iterator[Part]:
        """Yield how sure the answer is: the reasons to doubt it, else what its bricks and their interval say."""
        one, composed = self.one, self.one.estimate.composed
        if told := doubt_in_short(one):
            yield Sentence(told, "warn")
        elif composed is None:
            return
        elif predicted := self.one.estimate.coverage.predicted:
            of = f"{predicted} of {counted(self.one.estimate.coverage.layers, 'layer')}"
            yield Sentence(f"{percent_of_part(self.one.estimate.predicted_share)} is predicted: {of}", "warn")
        elif self.one.estimate.is_partial:
            yield from self.cautions()
        else:
            interval = composed.latency
            half = percent((interval.high_ms - interval.low_ms) / 2 / composed.sequential_ms, 1)
            if one.end_to_end is None:
                yield Sentence(f"a sum of its bricks, sure to ±{half}; not measured end to end")
            else:
                how = "too much" if (one.error or 0.0) > 0 else "too little"
                error = "" if one.error is None else f": {percent(abs(one.error), 1)} {how}"
                yield Sentence(f"its bricks add up to {in_ms(composed.sequential_ms)} ±{half}{error}")

    def doubts(self) -> Iterator[Part]:
        """Yield the reasons to doubt the figures, and the commands that settle them."""
        return (Sentence(told, "warn") for told in doubts_about(self.one, named_in_commands(self.graph)))

    def compositions(self, *, is_changing: bool = False, workers: bool = True) -> Iterator[Part]:
        """Yield the latency in each composition beside the measured one; an estimate that is changing has no error."""
        one, composed = self.one, self.one.estimate.composed
        if composed is None:
            return
        # The gain of a part says little about the whole model.
        of_part, gain = ", this part" if one.estimate.is_partial else "", composed.parallel_gain
        remarks = f"{gain:.2f} times as fast{of_part}", f"{gain:.2f} times{of_part}"
        parallel = BarFigure("parallel", self._sum(composed.parallel_ms), composed.parallel_ms, remarks=remarks)
        rows = [self._sequential(composed), parallel]
        if workers and composed.workers_ms is not None:
            name = counted(one.estimate.options.workers or 1, "worker")
            rows.append(BarFigure(name, self._sum(composed.workers_ms), composed.workers_ms))
        if one.end_to_end is not None:
            rows.append(_measured(one, one.end_to_end, is_changing=is_changing))
        yield Figures(tuple(rows))

    def basis(self) -> Iterator[Part]:
        """Yield the variant that was measured, with its throughput."""
        # That of the answer, which may be the latency of the whole model.
        one, per_second = self.one, self.one.per_second
        sign = sign_of(partial=False, predicted=one.end_to_end is None and bool(one.estimate.coverage.predicted))
        throughput = "" if per_second is None else f": {sign}{milliseconds(per_second)} per second"
        yield Sentence(f"{variant_in_words(self.one.variant)}{throughput}")

    def coverage(self) -> Iterator[Part]:
        """Yield how many layers were measured, and how."""
        coverage = self.one.estimate.coverage
        counts = [f"{coverage.measured} of {counted(coverage.layers, 'layer')} measured"]
        of_these = ""
        if coverage.predicted < coverage.layers - coverage.measured:
            counts += [f"{coverage.missing} missing"] * bool(coverage.missing)
            counts += [f"{coverage.unmeasurable} unmeasurable"] * bool(coverage.unmeasurable)
            of_these = " of these"
        counts += [f"{coverage.predicted}{of_these} predicted"] * bool(coverage.predicted)
        yield Sentence(", ".join(counts), "text" if coverage.complete else "warn")
        if coverage.own_carrier:
            own = "all of them were" if coverage.own_carrier == coverage.layers else _of_them(coverage.own_carrier)
            yield Sentence(f"{own} timed in this very model, so its end-to-end latency is no independent check")
        if coverage.other_models:
            yield Sentence(f"{_of_them(coverage.other_models)} timed in other models only")

    def path(self) -> Iterator[Part]:
        """Yield the critical path."""
        found, composed = self.one.estimate, self.one.estimate.composed
        if composed is None:
            return
        path = found.critical_layers
        of_part = " of the measured part" if found.is_partial else ""
        gained_ms = composed.sequential_ms - composed.parallel_ms
        saves = f"all else in parallel would save {in_ms(gained_ms)}{of_part}"
        beside = saves if gained_ms else "nothing can run beside it"
        # The most frequent kinds of layers on it.
        numbers = Counter(self.graph.layers[index].kind.value for index in path)
        largest = sorted(numbers.items(), key=lambda item: (-item[1], item[0]))
        kinds = ", ".join(f"{count} {kind}" for kind, count in largest[:_MOST_NAMED])
        kinds += " and others" if len(largest) > _MOST_NAMED else ""
        yield Sentence(f"critical path: {counted(len(path), 'layer')}, {kinds}; {beside}")

    def gain(self) -> Iterator[Part]:
        """Yield what parallel layers could gain."""
        yield Sentence(parallel_sentences(self.one))

    def remainder(self) -> Iterator[Part]:
        """Yield what explains the difference from the measurement."""
        explained = self._residual
        if explained is None:
            return
        parts = {
            "sampling": explained.sampling_ms,
            "the method": explained.method_ms,
            "predictions": explained.predicted_ms,
            "layers without results": explained.lacking_ms,
            "the change of the host": explained.host_ms,
        }
        allowed = [f"{name} for {in_ms(ms)}" for name, ms in parts.items() if ms or name == "sampling"]
        allowed[0] = allowed[0].replace("sampling", "sampling allows", 1)
        left_ms = explained.unexplained_ms
        rest = f"{in_ms(abs(left_ms))} unexplained" if left_ms else "nothing unexplained"
        more = f"{in_ms(abs(explained.residual_ms))} {'more' if explained.residual_ms >= 0 else 'less'}"
        yield Sentence(f"residual: {more} measured than estimated; {', '.join(allowed)}: {rest}")

    def types(self) -> Iterator[Part]:
        """Yield the latency of each kind of layer."""
        columns = _share_columns("type", lambda it: it.label, "layers", lambda it: str(it.layers))
        yield Heading("Latency by type")
        yield Table(columns, [it for it in self._slices if it.share >= _LEAST_SHARE])

    def bricks(self) -> Iterator[Part]:
        """Yield the bricks that take most."""

        def label(it: CostlyBrick) -> str:
            return label_of(it.part.brick.canonical) or self.graph.layers[it.part.layers[0]].op

        yield Heading("Costliest bricks")
        yield Table(_share_columns("brick", label, "uses", lambda it: str(it.uses)), costliest(self.one.estimate))

    def regions(self) -> Iterator[Part]:
        """Yield the modules and rows of layers that take most, in their order."""
        slices = by_region(self.graph, self.one.estimate)
        shown = set(sorted(slices, key=lambda it: -it.latency_ms)[:_MOST_REGIONS])
        columns = _share_columns("region", self._region, "layers", lambda it: str(len(it.layers)))
        yield Heading("Latency by region" if len(slices) <= _MOST_REGIONS else "Costliest regions")
        yield Table(columns, [it for it in slices if it in shown and it.share >= _LEAST_SHARE])

    def slowest(self, most: int) -> Iterator[Part]:
        """Yield the slowest layers, the slowest first."""
        found = self.one.estimate
        yield from self.heading()
        yield BLANK_LINE
        if found.composed is None:
            told = f"no estimate is possible: {found.obstacle}" if found.obstacle else "nothing fits: no latencies"
            yield Sentence(told)
            return
        slow = slowest(found, most)
        yield self.slow_layers(most)
        yield BLANK_LINE
        yield Sentence(slowest_in_words(slow))
        if any(it.part.predicted for it in slow.parts):
            yield Sentence(PREDICTED_LEGEND)

    def slow_layers(self, most: int) -> Table[SlowPart]:
        """Return the slowest layers as a table."""
        return Table(
            (
                name_column("layer", lambda it: title_of(self.graph, it)),
                Column("name", lambda it: name_of(self.graph, it), CellKind.NAME, "muted", is_optional=True),
                Column(
                    "latency",
                    lambda it: f"{PREDICTED if it.part.predicted else ''}{in_ms(it.latency_ms)}",
                    style=lambda it: "warn" if it.part.predicted else "strong",
                ),
                Column("share", lambda it: percent(it.share, 1)),
                Column("sum", lambda it: percent(it.cumulative, 1), style="muted", is_optional=True),
            ),
            slowest(self.one.estimate, most).parts,
        )

    @cached_property
    def _slices(self) -> tuple[Slice, ...]:
        return by_type(self.graph, self.one.estimate)

    @cached_property
    def _residual(self) -> Residual | None:
        return residual(self.one)

    def _sequential(self, composed: Composed) -> BarFigure:
        low, high = composed.latency.low_ms, composed.latency.high_ms
        ends = ends_of(low, high)
        coverage = self.one.estimate.coverage
        text, value_ms = self._sum(composed.sequential_ms), composed.sequential_ms
        if self.one.estimate.is_partial:
            # The interval of a part says nothing about the whole model.
            part = part_of(coverage.measured + coverage.predicted, coverage.layers)
            return BarFigure("sequential", text, value_ms, remarks=(f"only {part} of its layers", f"only {part}"))
        return BarFigure("sequential", text, value_ms, low, high, (f"95 %: {ends} ms", ends))

    def _sum(self, latency_ms: float) -> str:
        found = self.one.estimate
        return partly(latency_ms, part=found.is_partial, predicted=bool(found.coverage.predicted))

    def _region(self, it: RegionSlice) -> str:
        first, last = self.graph.layers[min(it.layers)], self.graph.layers[max(it.layers)]
        names = first.name if first is last else f"{first.name} to {last.name}"
        if it.repeats > 1:
            return f"block x{it.repeats}: {names}"
        return f"block: {names}" if it.repeats else names


def _measured(one: SystemEstimate, whole: Latency, *, is_changing: bool) -> BarFigure:
    error, coverage, style = one.error, one.estimate.coverage, "muted"
    remarks: tuple[str, ...] = ("measured",)
    # A prediction is compared once its bricks are measured.
    if error is not None and coverage.measured and not (coverage.predicted and is_changing):
        told = f"error {signed_percent(error)}"
        remarks, style = (f"measured, {told}", told), error_style(error)
    return BarFigure("end to end", in_ms(whole.value_ms), *whole, remarks, style)


def _share_columns(
    title: str, name: Callable[[Any], str], counts: str, number: Callable[[Any], str]
) -> tuple[Column[Any], ...]:
    """Return the columns of things that take a share of the latency, such as the kinds of layers."""

    def latency(it: Slice | CostlyBrick | RegionSlice) -> str:
        sign = PREDICTED if isinstance(it, CostlyBrick) and it.part.predicted else ""
        return f"{sign}{in_ms(it.latency_ms)}"

    return (
        name_column(title, name),
        Column(counts, number),
        Column("latency", latency),
        Column("share", lambda it: percent(it.share, 1)),
        bar_column(lambda it: it.share),
    )


def _of_them(layers: int) -> str:
    return f"{layers:,} of them {'was' if layers == 1 else 'were'}"


def way_words(one: SystemEstimate) -> str:
    """Return where and how a model was measured: the system, the runtime, the level and the cutting."""
    words = execution_words(one.way.runtime, one.estimate.level)
    return f"{one.way.system}, {words}, {cutting_words(one.estimate.cutting)}"
