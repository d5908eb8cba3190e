"""Figures 5 (unique layers), 6 (types of repeated layers) and 7 (similarity of models)."""

from itertools import combinations

from dlbricks_tui.answers.analyses import Cell
from dlbricks_tui.answers.reported import LAYERS, UNIQUE_LAYERS, ReportContents, published_model
from dlbricks_tui.documents.corpus import repeated_words, totals_words
from dlbricks_tui.documents.parts import Grid
from dlbricks_tui.documents.pictures import Axis, BarRow, LegendSign, Rows
from dlbricks_tui.report import drawing
from dlbricks_tui.report.exhibits import Exhibit, Section, csv_table
from dlbricks_tui.report.figures.executions import bar_from_zero, marked
from dlbricks_tui.wording.numbers import percent

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
        drawn.append(BarRow(reported.label, (bar_from_zero(100 * model.share, _UNIQUE),), published, told))
    legend = (_PUBLISHED,) if any(theirs) else ()
    rows: list[tuple[Cell, ...]] = [
        (
            *(reported.table1_id, reported.name, model.layers, model.unique_layers, model.contexts, model.share),
            *((it.layers, it.unique_layers) if it else (None, None)),
        )
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
        (Exhibit(name, "All models", told, csv_table(("table1_id", "model", *counts), rows), svg),),
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
            (bar_from_zero(it.layers, _OTHERS), bar_from_zero(it.repeated, _REPEATED)),
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
        (Exhibit(name, "All models", told, csv_table(columns, rows), svg),),
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

    rows = [(it.table1_id, it.name, *jaccard[row]) for row, it in enumerate(reported_models)]
    pairs = [jaccard[one][other] for one, other in combinations(range(count), 2)]
    told = f"Of {len(pairs):,} pairs of models, {pairs.count(0):,} share no layer and {pairs.count(1):,} share all."
    grid = Grid(tuple(it.label for it in reported_models), jaccard)
    svg = drawing.draw(name, "Similarity of every two models", grid, says=f"A grid of models by models. {told}")
    columns = ("table1_id", "model", *(it.table1_id or it.name for it in reported_models))
    return Section(
        "Figure 7: similarity of models",
        name,
        "The share of their unique layers that every two models have in common (Jaccard similarity): darker is more on "
        "a light page, brighter is more on a dark one.",
        (Exhibit(name, "All models", told, csv_table(columns, rows), svg),),
    )
