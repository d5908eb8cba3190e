"""The paper's figures of models: 2 and 4 (graphs), 5 (unique layers), 6 (types) and 7 (similarity)."""

import math
from collections.abc import Mapping, Sequence
from itertools import combinations, pairwise

from dlbricks_tui.api.analyses import Cell
from dlbricks_tui.api.reported import (
    LAYERS,
    UNIQUE_LAYERS,
    ModelResult,
    ReportContents,
    ReportedModel,
    ReportedSeries,
    published_model,
)
from dlbricks_tui.documents.corpus import repeated_words, totals_words
from dlbricks_tui.documents.parts import Grid
from dlbricks_tui.documents.pictures import Axis, BarRow, LegendSign, Rows
from dlbricks_tui.estimate.explanation import layer_latencies
from dlbricks_tui.models.graph import LayerGraph
from dlbricks_tui.models.kinds import Kind
from dlbricks_tui.report import drawing
from dlbricks_tui.report.drawing import Ink
from dlbricks_tui.report.graph_files import GraphLayout, lay_out
from dlbricks_tui.report.page import CsvTable, Exhibit, Section
from dlbricks_tui.report.paper import marked, run_command
from dlbricks_tui.wording.answers import layer_title
from dlbricks_tui.wording.numbers import counted, in_ms, percent

_UNIQUE = LegendSign("=", "unique", "bar", "█")
_REPEATED, _OTHERS = LegendSign("=", "repeated in its model", "bar", "█"), LegendSign("·", "not", "rest", "█")
_PUBLISHED = LegendSign("◇", "published", "muted")


def uniqueness_section(contents: ReportContents) -> Section:
    """Figure 5: the share of unique layers per model."""
    corpus, name = contents.corpus, "figure-5"
    theirs = [published_model(it.table1_id) for it in contents.reported_models]
    drawn = []
    for reported, model, it in zip(contents.reported_models, corpus.models, theirs, strict=True):
        published = () if it is None else (marked(_PUBLISHED, 100 * it.unique_layers / it.layers),)
        told = f"{model.unique_layers:,} of {model.layers:,}"
        drawn.append(BarRow(reported.label, (_UNIQUE.piece(0.0, 100 * model.share),), published, told))
    legend = (_PUBLISHED,) if any(theirs) else ()
    rows: list[tuple[Cell, ...]] = [
        (reported.table1_id, reported.name, model.layers, model.unique_layers, model.contexts, model.share)
        + ((it.layers, it.unique_layers) if it else (None, None))
        for reported, model, it in zip(contents.reported_models, corpus.models, theirs, strict=True)
    ]
    counts = ("layers", "unique_layers", "contexts", "share", "published_layers", "published_unique_layers")
    told = f"{totals_words(corpus, 'layer')}."
    says = f"A bar for each model. {told}"
    picture = Rows("unique layers in percent of all", says, Axis(0.0, 100.0), tuple(drawn), legend)
    svg = drawing.draw(name, "Unique layers per model", picture)
    return Section(
        "Figure 5: unique layers",
        name,
        "The share of unique layers in each model, at level written and G = 1.",
        (Exhibit(name, "All models", told, CsvTable(("table1_id", "model", *counts), rows), svg),),
        f"The paper counts {LAYERS:,} layers in its fifty models, {UNIQUE_LAYERS:,} of them unique "
        f"({percent(UNIQUE_LAYERS / LAYERS, 1)}). Hollow diamonds: layers in the authors' files that differ in kind, "
        "parameters or input shape.",
    )


def repetition_section(contents: ReportContents) -> Section:
    """Figure 6: the types of repeated layers."""
    found, name = contents.corpus.repeated_types, "figure-6"
    repeated = sum(it.repeated for it in found)

    def share(of: int) -> float:
        return of / repeated if repeated else 0.0

    drawn = [
        BarRow(
            it.kind.value,
            (_OTHERS.piece(0.0, it.layers), _REPEATED.piece(0.0, it.repeated)),
            text=percent(share(it.repeated), 1),
        )
        for it in found
    ]
    rows = [(it.kind.value, it.layers, it.repeated, share(it.repeated)) for it in found]
    told = f"Of all layers, {repeated_words(contents.corpus)}."
    says = f"A bar for each type of layer. {told}"
    axis = Axis(0.0, max((it.layers for it in found), default=1))
    picture = Rows("layers", says, axis, tuple(drawn), (_REPEATED, _OTHERS))
    svg = drawing.draw(name, "Types of repeated layers", picture)
    columns = ("type", "layers", "repeated", "share_of_repeated")
    return Section(
        "Figure 6: types of repeated layers",
        name,
        "Of the layers that occur more than once in their own model, how many are of each type; the percentages are "
        "shares of all repeated layers.",
        (Exhibit(name, "All models", told, CsvTable(columns, rows), svg),),
    )


def similarity_section(contents: ReportContents) -> Section:
    """Figure 7: the similarity of every two models."""
    jaccard, reported_models, name = contents.corpus.jaccard, contents.reported_models, "figure-7"
    count, heading = len(reported_models), "Figure 7: similarity of models"
    if count < 2:
        about = "The share of their unique layers that two models have in common."
        return Section(heading, name, about, missing=("Similarity needs two models: name several with `--models`.",))
    rows = [(it.table1_id, it.name, *jaccard[row]) for row, it in enumerate(reported_models)]
    pairs = [jaccard[one][other] for one, other in combinations(range(count), 2)]
    told = f"Of {len(pairs):,} pairs of models, {pairs.count(0):,} share no layer and {pairs.count(1):,} share all."
    grid = Grid(tuple(it.label for it in reported_models), jaccard)
    svg = drawing.draw(name, "Similarity of every two models", grid, says=f"A grid of models by models. {told}")
    columns = ("table1_id", "model", *(it.table1_id or it.name for it in reported_models))
    return Section(
        heading,
        name,
        "The share of their unique layers that every two models have in common (Jaccard similarity): darker is more on "
        "a light page, brighter is more on a dark one.",
        (Exhibit(name, "All models", told, CsvTable(columns, rows), svg),),
    )


# Two models with branches: parallel branches in modules, and shortcuts around blocks.
_PREFERRED = ("9", "14")
_MOST = 2
_DETAILS = ("brick", "context", "results")
# The ranks of a line, and lengths in points.
_LINE, _WIDTH, _LANE, _MARGIN, _GAP = 46, 518.0, 11.2, 11.0, 14.4
# The longest layer has this radius; layers of no time are visible.
_LEAST_RADIUS, _MOST_RADIUS, _UNKNOWN_RADIUS = 1.8, 5.3, 2.6

# The signs of layers, with their kinds.
_LOOKS = {
    LegendSign("●", "convolution", "bar"): (Kind.CONVOLUTION, Kind.DECONVOLUTION),
    LegendSign("■", "linear", "mark"): (Kind.LINEAR, Kind.RECURRENT, Kind.ATTENTION, Kind.EMBEDDING),
    LegendSign("◆", "normalization", "good"): (Kind.BATCHNORM, Kind.NORM, Kind.LRN),
    LegendSign("▲", "elementwise", "warn"): (Kind.ELEMENTWISE,),
    LegendSign("▼", "pooling", "accent"): (Kind.POOLING, Kind.REDUCE),
    LegendSign("✚", "joining", "bad"): (Kind.COMBINE, Kind.CONCAT),
}
_OTHER = LegendSign("✖", "other", "muted")
_SIGNS = {kind: sign for sign, kinds in _LOOKS.items() for kind in kinds}


def graph_section(contents: ReportContents) -> Section:
    """Figures 2 and 4: up to two of the models, with their latencies if known."""
    known: dict[ReportedModel, tuple[ReportedSeries, ModelResult]] = {}
    for series in contents.series:
        for result in series.at(1):
            if result.found.estimate.coverage.complete and result.found.estimate.composed:
                known.setdefault(result.reported, (series, result))
    chosen = [it for it in contents.reported_models if it.table1_id in _PREFERRED] or list(contents.reported_models)
    exhibits = []
    for reported in chosen[:_MOST]:
        # A number: the name of a model may not be a valid file name.
        number = reported.table1_id or f"model-{contents.reported_models.index(reported) + 1}"
        exhibits.append(_exhibit(reported, number, contents.graphs[reported], known.get(reported)))
    unknown = " and ".join(it.label for it in chosen[:_MOST] if it not in known)
    cure = f"{run_command(contents)} measures every brick once."
    return Section(
        heading="Figures 2 and 4: models and their critical paths",
        anchor="figures-2-and-4",
        explanation="Layers run from left to right and line by line. Layers above or below each other are independent. "
        "Larger marks take longer; the thick line is the critical path, the longest in time.",
        exhibits=tuple(exhibits),
        missing=(f"No critical path without latencies of {unknown}: {cure}",) if unknown else (),
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
            f" On {series.title}: {in_ms(composed.sequential_ms)} one after another; {in_ms(composed.parallel_ms)} on "
            f"the critical path of {counted(len(critical), 'layer')}, which is {composed.parallel_gain:.2f} times "
            "as fast."
        )
    bricks: dict[int, tuple[Cell, ...]] = {
        part.layers[0]: (part.brick.key, part.context, " ".join(part.measured.results))
        for part in (estimate.parts if estimate else ())
        if part.measured
    }
    rows: list[tuple[Cell, ...]] = []
    for layer in graph.layers:
        reads = " ".join(map(str, graph.predecessors[layer.index]))
        is_critical = ("yes" if layer.index in critical else "no") if estimate else None
        named = layer.index, layer.name, layer.kind.value, layer_title(layer), reads
        rows.append((*named, latencies.get(layer.index), is_critical, *bricks.get(layer.index, (None,) * 3)))
    columns = ("layer", "name", "kind", "what", "reads", "latency_ms", "critical", *_DETAILS)
    title = f"{reported.name} as a graph"
    elements, height = _drawn(graph, layout, critical, latencies)
    svg = drawing.svg_document(name, title, told, _WIDTH, height, elements)
    return Exhibit(name, reported.name, told, CsvTable(columns, rows, _DETAILS), svg)


def _drawn(
    graph: LayerGraph, layout: GraphLayout, critical: Sequence[int], latencies: Mapping[int, float]
) -> drawing.Drawn:
    """Return a graph line by line below its legend, and where it ends."""
    signs = [_SIGNS.get(it.kind, _OTHER) for it in graph.layers]
    meanings = [it for it in (*_LOOKS, _OTHER) if it in signs]
    path = [LegendSign("-", "critical path", "text")] if critical else []
    elements, top = drawing.svg_legend([*meanings, *path], _MARGIN, 0.0, _WIDTH - _MARGIN)
    steps, most_ms = frozenset(pairwise(critical)), max(latencies.values(), default=0.0)
    across = (_WIDTH - 2 * _MARGIN) / _LINE
    for begin, end in pairwise((*layout.breaks, max(layout.ranks, default=0) + 1)):
        held = [index for index, rank in enumerate(layout.ranks) if begin <= rank < end]
        # The highest and the lowest lane of the line.
        lanes = [0, *(layout.lanes[it] for it in held)]
        for wire in layout.wires:
            lanes += [lane for rank, lane in wire.points if begin <= rank < end]
            if wire.points[0][0] < begin and wire.points[-1][0] >= end:
                lanes.append(wire.points[1][1])
        low, high = min(lanes), max(lanes)

        def place(rank: float, lane: float, begin: int = begin, first: float = top + (0.5 - low) * _LANE) -> _Place:
            return _MARGIN + (rank - begin + 0.6) * across, first + lane * _LANE

        # The critical path covers other edges, and layers cover both.
        for wire in sorted(layout.wires, key=lambda it: (it.source, it.reader) in steps):
            points = [place(*it) for it in _within(wire.points, begin - 0.6, end - 0.4)]
            if points:
                on_path = (wire.source, wire.reader) in steps
                elements.append(drawing.svg_line(points, Ink.TEXT if on_path else Ink.STONE, 2.2 if on_path else 0.8))
        for index in held:
            # The area grows with the root of the latency.
            least, most = _LEAST_RADIUS**2, _MOST_RADIUS**2
            share = math.sqrt(latencies.get(index, 0.0) / most_ms) if most_ms else 0.0
            radius = math.sqrt(least + (most - least) * share) if most_ms else _UNKNOWN_RADIUS
            spot, sign = place(layout.ranks[index], layout.lanes[index]), signs[index]
            outline = Ink.TEXT if index in critical else Ink.PAPER
            elements.append(drawing.svg_sign(*spot, sign.mark, drawing.ink_of(sign.style), radius, outline))
        top += (high - low + 1) * _LANE + _GAP
    return elements, top


_Place = tuple[float, float]


def _within(points: Sequence[tuple[int, int]], begin: float, end: float) -> list[tuple[float, float]]:
    """Return the part of a polyline between two ranks."""
    found: list[tuple[float, float]] = []
    for (left, one), (right, other) in pairwise(points):
        first, last = max(left, begin), min(right, end)
        if first < last or (left == right and begin <= left <= end):
            slope = (other - one) / (right - left) if right > left else 0.0
            found += [(first, one + slope * (first - left)), (last, one + slope * (last - left))]
    return found
