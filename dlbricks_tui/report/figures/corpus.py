"""Figures 5 (unique layers), 6 (types of repeated layers) and 7 (similarity of models)."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch, PathPatch
from matplotlib.path import Path

from dlbricks_tui.report import drawing
from dlbricks_tui.report.contents import ReportContents
from dlbricks_tui.report.drawing import HEATS, Ink
from dlbricks_tui.report.exhibits import Cell, Exhibit, Section, table
from dlbricks_tui.report.figures.rows import WIDTH, mark, row_axes, rows_height
from dlbricks_tui.report.published import LAYERS, UNIQUE_LAYERS, published_model
from dlbricks_tui.wording.numbers import percent

# The least similarity of each shade; the last is for models that share everything.
_SHADES = ((0.0, "below 10 %"), (0.1, "10 to 25 %"), (0.25, "25 to 50 %"), (0.5, "50 % and more"), (1.0, "all"))


def uniqueness_section(contents: ReportContents) -> Section:
    """Figure 5: the share of unique layers per model."""
    corpus, name = contents.corpus, "figure-5"
    shares = [100 * model.share for model in corpus.models]
    theirs = [published_model(it.table1_id) for it in contents.reported_models]
    published = [100 * it.unique_layers / it.layers if it else None for it in theirs]

    def paint() -> Figure:
        legend = [mark("published", Ink.STONE, "D", True)] if any(published) else []
        figure = drawing.canvas(WIDTH, rows_height(len(shares), legend))
        axes = row_axes(
            figure, [it.label for it in contents.reported_models], "unique layers in percent of all", legend
        )
        axes.barh(range(len(shares)), shares, height=0.62, color=Ink.BLUE.light)
        places = [(value, row) for row, value in enumerate(published) if value is not None]
        if places:
            axes.plot(*zip(*places, strict=True), "D", markersize=4, color=Ink.STONE.light, markerfacecolor="none")
        for row, (share, model) in enumerate(zip(shares, corpus.models, strict=True)):
            place = max(share, published[row] or 0.0)
            text = f"{model.unique_layers:,} of {model.layers:,}"
            axes.annotate(text, (place, row), (6, 0), textcoords="offset points", va="center_baseline", fontsize=6.5)
        axes.set_xlim(0, 112)
        axes.set_xticks(range(0, 101, 20))
        return figure

    rows: list[tuple[Cell, ...]] = [
        (
            *(reported.table1_id, reported.name, model.layers, model.unique_layers, model.contexts, model.share),
            *((it.layers, it.unique_layers) if it else (None, None)),
        )
        for reported, model, it in zip(contents.reported_models, corpus.models, theirs, strict=True)
    ]
    counts = ("layers", "unique_layers", "contexts", "share", "published_layers", "published_unique_layers")
    told = (
        f"All together {corpus.layers:,} layers, of which {corpus.unique_layers:,} are unique "
        f"({percent(corpus.unique_layers / max(1, corpus.layers), 1)})."
    )
    svg = drawing.draw(name, "Unique layers per model", f"A bar for each model. {told}", paint)
    return Section(
        "Figure 5: unique layers",
        name,
        "The share of unique layers in each model, at level written and G = 1.",
        (Exhibit(name, "All models", told, table(("table1_id", "model", *counts), rows), svg),),
        f"The paper counts {LAYERS:,} layers in its fifty models, {UNIQUE_LAYERS:,} of them unique "
        f"({percent(UNIQUE_LAYERS / LAYERS, 1)}). Hollow diamonds: layers in the authors' files that differ in kind, "
        "parameters or input shape.",
    )


def repetition_section(contents: ReportContents) -> Section:
    """Figure 6: the types of repeated layers."""
    found, name = contents.corpus.repeated_types, "figure-6"
    repeated = sum(it.repeated for it in found)

    def paint() -> Figure:
        legend = [Patch(color=Ink.BLUE.light, label="repeated in its model"), Patch(color=Ink.GRID.light, label="not")]
        figure = drawing.canvas(WIDTH, rows_height(len(found), legend))
        axes = row_axes(figure, [it.kind.value for it in found], "layers", legend)
        axes.barh(range(len(found)), [it.layers for it in found], height=0.62, color=Ink.GRID.light)
        axes.barh(range(len(found)), [it.repeated for it in found], height=0.62, color=Ink.BLUE.light)
        for row, it in enumerate(found):
            share = percent(it.repeated / repeated if repeated else 0.0, 1)
            axes.annotate(
                share, (it.layers, row), (4, 0), textcoords="offset points", va="center_baseline", fontsize=6.5
            )
        axes.set_xlim(0, max((it.layers for it in found), default=1) * 1.12)
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        return figure

    rows = [(it.kind.value, it.layers, it.repeated, it.repeated / repeated if repeated else 0.0) for it in found]
    told = f"{repeated:,} of {contents.corpus.layers:,} layers occur more than once in their own model."
    svg = drawing.draw(name, "Types of repeated layers", f"A bar for each type of layer. {told}", paint)
    columns = ("type", "layers", "repeated", "share_of_repeated")
    return Section(
        "Figure 6: types of repeated layers",
        name,
        "Of the layers that occur more than once in their own model, how many are of each type; the percentages are "
        "shares of all repeated layers.",
        (Exhibit(name, "All models", told, table(columns, rows), svg),),
    )


def similarity_section(contents: ReportContents) -> Section:
    """Figure 7: the similarity of every two models."""
    jaccard, reported_models, name = contents.corpus.jaccard, contents.reported_models, "figure-7"
    count = len(reported_models)
    if count < 2:
        return Section(
            "Figure 7: similarity of models",
            name,
            "The share of their unique layers that two models have in common.",
            missing=("Similarity needs two models: name several with `--models`.",),
        )

    def paint() -> Figure:
        cell = min(0.25, 4.4 / count)
        left, top = 2.5, 0.75
        figure = drawing.canvas(left + 4.6, top + count * cell + 0.15)
        axes = drawing.axes(figure, left, top, count * cell, count * cell)
        axes.set_xlim(-0.5, count - 0.5)
        axes.set_ylim(count - 0.5, -0.5)
        size = min(7.5, 72 * cell * 0.95)
        axes.set_xticks([])
        axes.set_yticks([])
        for number, it in enumerate(reported_models):
            axes.text(-0.8, number, it.label, ha="right", va="center_baseline", fontsize=size, parse_math=False)
            axes.text(
                number, -0.8, it.mark, ha="center", va="bottom", rotation=90, fontsize=size * 0.9, parse_math=False
            )
        axes.patch.set_facecolor(Ink.BAND.light)
        for spine in axes.spines.values():
            spine.set_visible(False)
        grid = np.array(jaccard)
        for number, ink in enumerate(HEATS):
            _cells(axes, _of_shade(grid, number), ink)
        legend = [Patch(color=ink.light, label=label) for ink, (_, label) in zip(HEATS, _SHADES, strict=True)]
        legend.insert(0, Patch(color=Ink.BAND.light, label="nothing"))
        figure.legend(handles=legend, loc="upper left", bbox_to_anchor=(0.01, 0.995), ncols=6)
        return figure

    rows = [(it.table1_id, it.name, *jaccard[row]) for row, it in enumerate(reported_models)]
    pairs = np.array(jaccard)[np.triu_indices(count, 1)]
    told = (
        f"Of {len(pairs):,} pairs of models, {int((pairs == 0).sum()):,} share no layer and "
        f"{int((pairs == 1).sum()):,} share all."
    )
    svg = drawing.draw(name, "Similarity of every two models", f"A grid of models by models. {told}", paint)
    columns = ("table1_id", "model", *(it.table1_id or it.name for it in reported_models))
    return Section(
        "Figure 7: similarity of models",
        name,
        "The share of their unique layers that every two models have in common (Jaccard similarity): darker is more on "
        "a light page, brighter is more on a dark one.",
        (Exhibit(name, "All models", told, table(columns, rows), svg),),
    )


def _of_shade(grid: np.ndarray[tuple[int, int], np.dtype[np.float64]], number: int) -> Sequence[tuple[int, int]]:
    low = _SHADES[number][0]
    high = _SHADES[number + 1][0] if number + 1 < len(_SHADES) else 2.0
    held = (grid > 0) & (grid >= low) & (grid < high)
    return [(int(row), int(column)) for row, column in np.argwhere(held)]


def _cells(axes: Axes, places: Sequence[tuple[int, int]], ink: Ink) -> None:
    """Draw all cells of one shade as one path: a grid of fifty models has 2,500 cells."""
    if not places:
        return
    square = [(-0.46, -0.46), (0.46, -0.46), (0.46, 0.46), (-0.46, 0.46), (-0.46, -0.46)]
    corners = [(column + x, row + y) for row, column in places for x, y in square]
    codes = [Path.MOVETO, Path.LINETO, Path.LINETO, Path.LINETO, Path.CLOSEPOLY] * len(places)
    axes.add_patch(PathPatch(Path(corners, codes), facecolor=ink.light, linewidth=0))
