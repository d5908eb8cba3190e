"""Figures 2 and 4: models as graphs, with the critical path through them."""

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from dlbricks_tui.answers.analyses import Cell
from dlbricks_tui.answers.reported import ModelResult, ReportContents, ReportedModel, ReportedSeries
from dlbricks_tui.documents.pictures import LegendSign
from dlbricks_tui.estimate.explanation import layer_latencies, parallel_gain
from dlbricks_tui.models.graph import LayerGraph
from dlbricks_tui.models.kinds import Kind
from dlbricks_tui.report import drawing
from dlbricks_tui.report.drawing import Ink
from dlbricks_tui.report.exhibits import Exhibit, Section, csv_table
from dlbricks_tui.report.graph_files import GraphLayout, lay_out
from dlbricks_tui.report.missing import without_latencies
from dlbricks_tui.wording.numbers import counted
from dlbricks_tui.wording.titles import layer_title

# Two models with branches: parallel branches in modules, and shortcuts around blocks.
_PREFERRED = ("9", "14")
_MOST = 2
_DETAILS = ("brick", "context", "results")
# The ranks of a line, and lengths in points.
_LINE, _WIDTH, _LANE, _MARGIN, _GAP = 46, 518.0, 11.2, 11.0, 14.4
# The longest layer has this radius; layers of no time are visible.
_LEAST_RADIUS, _MOST_RADIUS, _UNKNOWN_RADIUS = 1.8, 5.3, 2.6


class _Look(NamedTuple):
    """The sign of layers of some kinds."""

    meaning: LegendSign
    kinds: frozenset[Kind]


_LOOKS = (
    _Look(LegendSign("●", "convolution", "bar"), frozenset({Kind.CONVOLUTION, Kind.DECONVOLUTION})),
    _Look(LegendSign("■", "linear", "mark"), frozenset({Kind.LINEAR, Kind.RECURRENT, Kind.ATTENTION, Kind.EMBEDDING})),
    _Look(LegendSign("◆", "normalization", "good"), frozenset({Kind.BATCHNORM, Kind.NORM, Kind.LRN})),
    _Look(LegendSign("▲", "elementwise", "warn"), frozenset({Kind.ELEMENTWISE})),
    _Look(LegendSign("▼", "pooling", "accent"), frozenset({Kind.POOLING, Kind.REDUCE})),
    _Look(LegendSign("✚", "joining", "bad"), frozenset({Kind.COMBINE, Kind.CONCAT})),
)
_OTHER = LegendSign("✖", "other", "muted")


def graph_section(contents: ReportContents) -> Section:
    """Figures 2 and 4: up to two of the models, with their latencies if known."""
    known: dict[ReportedModel, tuple[ReportedSeries, ModelResult]] = {}
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
    reported: ReportedModel, number: str, written: LayerGraph, known: tuple[ReportedSeries, ModelResult] | None
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
    elements, height = _drawn(graph, layout, critical, latencies)
    svg = drawing.svg_document(name, title, told, _WIDTH, height, elements)
    return Exhibit(name, reported.name, told, csv_table(columns, rows, _DETAILS), svg)


def _drawn(
    graph: LayerGraph, layout: GraphLayout, critical: Sequence[int], latencies: Mapping[int, float]
) -> drawing.Drawn:
    """Return a graph line by line below its legend, and where it ends."""
    meanings = [
        it for it in (*(it.meaning for it in _LOOKS), _OTHER) if it in {sign_of_kind(it.kind) for it in graph.layers}
    ]
    path = [LegendSign("-", "critical path", "text")] if critical else []
    elements, top = drawing.svg_legend([*meanings, *path], _MARGIN, 0.0, _WIDTH - _MARGIN)
    steps, most_ms = frozenset(pairwise(critical)), max(latencies.values(), default=0.0)
    across = (_WIDTH - 2 * _MARGIN) / _LINE
    for begin, end in pairwise((*layout.breaks, max(layout.ranks, default=0) + 1)):
        held = [index for index, rank in enumerate(layout.ranks) if begin <= rank < end]
        low, high = _extent(layout, held, begin, end)

        def place(rank: float, lane: float, begin: int = begin, first: float = top + (0.5 - low) * _LANE) -> _Place:
            return _MARGIN + (rank - begin + 0.6) * across, first + lane * _LANE

        # The critical path covers other edges, and layers cover both.
        for wire in sorted(layout.wires, key=lambda it: (it.source, it.reader) in steps):
            points = [place(*it) for it in _within(wire.points, begin - 0.6, end - 0.4)]
            if points:
                on_path = (wire.source, wire.reader) in steps
                elements.append(drawing.svg_line(points, Ink.TEXT if on_path else Ink.STONE, 2.2 if on_path else 0.8))
        for index in held:
            meaning = sign_of_kind(graph.layers[index].kind)
            elements.append(
                drawing.svg_sign(
                    *place(layout.ranks[index], layout.lanes[index]),
                    meaning.mark,
                    drawing.ink_of(meaning.style),
                    _radius(latencies.get(index, 0.0), most_ms),
                    Ink.TEXT if index in critical else Ink.PAPER,
                )
            )
        top += (high - low + 1) * _LANE + _GAP
    return elements, top


_Place = tuple[float, float]


def _extent(layout: GraphLayout, held: Iterable[int], begin: int, end: int) -> tuple[int, int]:
    """Return the highest and the lowest lane of a line."""
    found = [0, *(layout.lanes[it] for it in held)]
    for wire in layout.wires:
        found += [lane for rank, lane in wire.points if begin <= rank < end]
        if wire.points[0][0] < begin and wire.points[-1][0] >= end:
            found.append(wire.points[1][1])
    return min(found), max(found)


def _radius(latency_ms: float, most_ms: float) -> float:
    """Return the radius of a layer, whose area grows with the root of the latency."""
    if not most_ms:
        return _UNKNOWN_RADIUS
    least, most = _LEAST_RADIUS**2, _MOST_RADIUS**2
    return math.sqrt(least + (most - least) * math.sqrt(latency_ms / most_ms))


def sign_of_kind(kind: Kind) -> LegendSign:
    """Return the sign of layers of a kind."""
    return next((look.meaning for look in _LOOKS if kind in look.kinds), _OTHER)


def _within(points: Sequence[tuple[int, int]], begin: float, end: float) -> list[tuple[float, float]]:
    """Return the part of a polyline between two ranks."""
    found: list[tuple[float, float]] = []
    for (left, one), (right, other) in pairwise(points):
        first, last = max(left, begin), min(right, end)
        if first < last or (left == right and begin <= left <= end):
            slope = (other - one) / (right - left) if right > left else 0.0
            found += [(first, one + slope * (first - left)), (last, one + slope * (last - left))]
    return found
