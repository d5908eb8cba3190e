"""Figures 2 and 4: models as graphs, with the critical path through them."""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from dlbricks_tui.estimate.explanation import layer_latencies, parallel_gain
from dlbricks_tui.models.graph import LayerGraph
from dlbricks_tui.models.kinds import Kind
from dlbricks_tui.models.titles import layer_title
from dlbricks_tui.report import drawing
from dlbricks_tui.report.contents import ModelResult, ReportContents, ReportedModel, Series
from dlbricks_tui.report.drawing import Ink
from dlbricks_tui.report.exhibits import Cell, Exhibit, Section, table
from dlbricks_tui.report.graph_layout import GraphLayout, lay_out
from dlbricks_tui.report.missing import without_latencies
from dlbricks_tui.wording.numbers import counted

# Two models with branches: parallel branches in modules, and shortcuts around blocks.
_PREFERRED = ("9", "14")
_MOST = 2
_DETAILS = ("brick", "context", "results")
# The width of a drawing and the height of a lane in inches, and the ranks of a line.
_WIDTH, _LINE, _LANE = 7.2, 46, 0.155
_MARGIN, _TOP, _GAP = 0.15, 0.42, 0.2


class _Look(NamedTuple):
    """The style of layers of some kinds."""

    label: str
    kinds: frozenset[Kind]
    ink: Ink
    mark: str


_LOOKS = (
    _Look("convolution", frozenset({Kind.CONVOLUTION, Kind.DECONVOLUTION}), Ink.BLUE, "o"),
    _Look("linear", frozenset({Kind.LINEAR, Kind.RECURRENT, Kind.ATTENTION, Kind.EMBEDDING}), Ink.PURPLE, "s"),
    _Look("normalization", frozenset({Kind.BATCHNORM, Kind.NORM, Kind.LRN}), Ink.GREEN, "D"),
    _Look("elementwise", frozenset({Kind.ELEMENTWISE}), Ink.YELLOW, "^"),
    _Look("pooling", frozenset({Kind.POOLING, Kind.REDUCE}), Ink.SKY, "v"),
    _Look("joining", frozenset({Kind.COMBINE, Kind.CONCAT}), Ink.ORANGE, "P"),
)
_OTHER = _Look("other", frozenset(), Ink.STONE, "X")


def graph_section(contents: ReportContents) -> Section:
    """Figures 2 and 4: up to two of the models, with their latencies if known."""
    known: dict[ReportedModel, tuple[Series, ModelResult]] = {}
    for series in contents.series:
        for result in series.at(1):
            if result.found.estimate.coverage.complete and result.found.estimate.composed:
                known.setdefault(result.reported, (series, result))
    chosen = [it for it in contents.reported_models if it.table1_id in _PREFERRED] or list(contents.reported_models)
    chosen = chosen[:_MOST]
    exhibits = []
    for reported in chosen:
        # A number: the name of a model may not be a valid file name.
        number = reported.table1_id or f"model-{contents.reported_models.index(reported) + 1}"
        exhibits.append(_exhibit(reported, number, contents.graphs[reported], known.get(reported)))
    return Section(
        heading="Figures 2 and 4: models and their critical paths",
        anchor="figures-2-and-4",
        explanation="Layers run from left to right and line by line. Layers above or below each other are independent. "
        "Larger marks take longer; the thick line is the critical path, the longest in time.",
        exhibits=tuple(exhibits),
        missing=without_latencies(contents, [it for it in chosen if it not in known]),
    )


def _exhibit(
    reported: ReportedModel, number: str, written: LayerGraph, known: tuple[Series, ModelResult] | None
) -> Exhibit:
    series, result = (None, None) if known is None else known
    graph = written if result is None else result.decomposition.graph
    estimate = None if result is None else result.found.estimate
    critical = () if estimate is None else estimate.critical_layers
    latencies = {} if estimate is None else layer_latencies(estimate)
    layout = lay_out(graph.predecessors, critical, _LINE)
    name = f"figures-2-and-4-{number}"
    told = f"{counted(len(graph.layers), 'layer')} at level {graph.level.value}."
    if series is not None and estimate is not None and estimate.composed is not None:
        composed = estimate.composed
        told += (
            f" On {series.title}: {composed.sequential_ms:,.1f} ms one after another; {composed.parallel_ms:,.1f} ms "
            f"on the critical path of {counted(len(critical), 'layer')}, which is {parallel_gain(composed):.2f} times "
            "as fast."
        )

    def paint() -> Figure:
        return _Drawing(graph, layout, critical, latencies).figure()

    measured = {} if estimate is None else {part.layers[0]: part for part in estimate.parts if part.measured}
    rows: list[tuple[Cell, ...]] = []
    for layer in graph.layers:
        part = measured.get(layer.index)
        rows.append(
            (
                *(layer.index, layer.name, layer.kind.value, layer_title(layer)),
                " ".join(map(str, graph.predecessors[layer.index])),
                latencies.get(layer.index),
                ("yes" if layer.index in critical else "no") if estimate else None,
                *((part.brick.key, part.context) if part else (None, None)),
                " ".join(part.measured.results) if part and part.measured else None,
            )
        )
    columns = ("layer", "name", "kind", "what", "reads", "latency_ms", "critical", "brick", "context", "results")
    title = f"{reported.name} as a graph"
    return Exhibit(name, reported.name, told, table(columns, rows, _DETAILS), drawing.draw(name, title, told, paint))


class _Drawing:
    """A drawing of one graph, line by line."""

    def __init__(
        self, graph: LayerGraph, layout: GraphLayout, critical: Sequence[int], latencies: dict[int, float]
    ) -> None:
        self._graph, self._layout, self._critical = graph, layout, frozenset(critical)
        self._steps = frozenset(pairwise(critical))
        self._most_ms = max(latencies.values(), default=0.0)
        self._latencies = latencies
        ends = (*layout.breaks[1:], max(layout.ranks, default=0) + 1)
        self._lines = list(zip(layout.breaks, ends, strict=True))
        self._extents = [self._extent(begin, end) for begin, end in self._lines]

    def figure(self) -> Figure:
        """Draw the legend, and the lines below it."""
        heights = [(high - low + 1) * _LANE + _GAP for low, high in self._extents]
        figure = drawing.canvas(_WIDTH, _TOP + sum(heights))
        top = _TOP
        for line, height in enumerate(heights):
            axes = drawing.axes(figure, _MARGIN, top, _WIDTH - 2 * _MARGIN, height - _GAP)
            self._paint_line(axes, line)
            top += height
        figure.legend(
            handles=self._legend(), loc="upper left", bbox_to_anchor=(0.02, 1 - 0.06 / (_TOP + sum(heights))), ncols=8
        )
        return figure

    def _extent(self, begin: int, end: int) -> tuple[int, int]:
        ranks, lanes = self._layout.ranks, self._layout.lanes
        found = [0, *(lanes[it] for it in range(len(ranks)) if begin <= ranks[it] < end)]
        for wire in self._layout.wires:
            found += [lane for rank, lane in wire.points if begin <= rank < end]
            if wire.points[0][0] < begin and wire.points[-1][0] >= end:
                found.append(wire.points[1][1])
        return min(found), max(found)

    def _paint_line(self, axes: Axes, line: int) -> None:
        begin, end = self._lines[line]
        low, high = self._extents[line]
        axes.set_axis_off()
        axes.set_xlim(begin - 0.6, begin + _LINE - 0.4)
        axes.set_ylim(high + 0.5, low - 0.5)
        plain: list[list[tuple[float, float]]] = []
        thick: list[list[tuple[float, float]]] = []
        for wire in self._layout.wires:
            points = _within(wire.points, begin - 0.6, end - 0.4)
            if points:
                on_path = (wire.source, wire.reader) in self._steps
                (thick if on_path else plain).append(points)
        axes.add_collection(LineCollection(plain, colors=Ink.STONE.light, linewidths=0.8, zorder=1), autolim=False)
        axes.add_collection(LineCollection(thick, colors=Ink.TEXT.light, linewidths=2.2, zorder=2), autolim=False)
        held = [it for it in range(len(self._layout.ranks)) if begin <= self._layout.ranks[it] < end]
        for look in (*_LOOKS, _OTHER):
            alike = [it for it in held if look_of(self._graph.layers[it].kind) is look]
            if alike:
                axes.scatter(
                    [self._layout.ranks[it] for it in alike],
                    [self._layout.lanes[it] for it in alike],
                    s=[self._size(it) for it in alike],
                    c=look.ink.light,
                    marker=look.mark,
                    linewidths=[1.0 if it in self._critical else 0.4 for it in alike],
                    edgecolors=[Ink.TEXT.light if it in self._critical else Ink.PAPER.light for it in alike],
                    zorder=3,
                    clip_on=False,
                )

    def _size(self, layer: int) -> float:
        """Return the area of a mark in square points: proportional to the latency, with a visible minimum."""
        if not self._most_ms:
            return 22.0
        return 10.0 + 80.0 * math.sqrt(self._latencies.get(layer, 0.0) / self._most_ms)

    def _legend(self) -> Sequence[Line2D]:
        kinds = {look_of(layer.kind) for layer in self._graph.layers}
        found = [
            Line2D([], [], linestyle="none", marker=look.mark, color=look.ink.light, markersize=4.5, label=look.label)
            for look in (*_LOOKS, _OTHER)
            if look in kinds
        ]
        if self._critical:
            found.append(Line2D([], [], color=Ink.TEXT.light, linewidth=2.2, label="critical path"))
        return found


def look_of(kind: Kind) -> _Look:
    """Return the style of layers of a kind."""
    return next((look for look in _LOOKS if kind in look.kinds), _OTHER)


def _within(points: Sequence[tuple[int, int]], begin: float, end: float) -> list[tuple[float, float]]:
    """Return the part of a polyline between two ranks."""
    found: list[tuple[float, float]] = []
    for (left, one), (right, other) in pairwise(points):
        first, last = max(left, begin), min(right, end)
        if first < last or (left == right and begin <= left <= end):
            slope = (other - one) / (right - left) if right > left else 0.0
            found += [(first, one + slope * (first - left)), (last, one + slope * (last - left))]
    return found
