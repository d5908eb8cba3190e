"""Repetition in a set of models: the paper's figures 5, 6 and 7 in characters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rich.console import Group
from rich.text import Text

from dlbricks_tui.cli.drawing import SHADE_STYLES, Glyphs, Pen, name_cell, pen_for, plain_table, shade, shade_legend
from dlbricks_tui.printable import printable
from dlbricks_tui.wording.numbers import counted, percent

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from dlbricks_tui.bricks.corpus import Corpus

# With more models, numbers would make the grid too wide for a screen.
MOST_WITH_NUMBERS = 12
NARROWEST_LABEL = 16
_NUMBER_CELL = 6
# The width of the columns beside the bars, with names cut to their shortest.
_WITHOUT_BARS = 56


def corpus_view(
    corpus: Corpus, labels: Sequence[str], unit: str, speedup: float | None, console: Console
) -> Iterator[RenderableType]:
    """Yield totals, unique layers per model, repeated layers by kind, and the similarity of every two models.

    `unit` is `layers` or `sequences`; `labels` are the names of the models.
    """
    pen = pen_for(console, _WITHOUT_BARS)
    yield _totals(corpus, unit)
    if speedup is not None:
        yield Text(f"measured on this host, the models take {speedup:.2f} times as long as their unique bricks")
    yield _uniqueness(corpus, labels, unit, pen)
    yield _repeated(corpus, unit, pen)
    if len(labels) > 1:
        yield _similarity(corpus, console.width, pen.glyphs)


def _totals(corpus: Corpus, unit: str) -> Text:
    models = counted(len(corpus.models), "model")
    share = _percent(corpus.unique_layers, corpus.layers)
    return Text(
        f"{models}, {corpus.layers:,} {unit}: {corpus.unique_layers:,} unique ({share}), "
        f"{corpus.contexts:,} with their contexts"
    )


def _uniqueness(corpus: Corpus, labels: Sequence[str], unit: str, pen: Pen) -> Group:
    table = plain_table("MODEL", unit.upper(), "UNIQUE", "SHARE", "")
    digits = len(str(len(labels)))
    rows = [
        (f"{number:>{digits}} {label}", model.layers, model.unique_layers)
        for number, (label, model) in enumerate(zip(labels, corpus.models, strict=True), 1)
    ]
    if len(labels) > 1:
        rows.append(("all together", corpus.layers, corpus.unique_layers))
    for name, count, unique in rows:
        drawn = pen.bar(unique / count if count else 0.0)
        table.add_row(name_cell(name), f"{count:,}", f"{unique:,}", _percent(unique, count), drawn)
    return _titled(f"Unique {unit} per model", table)


def _repeated(corpus: Corpus, unit: str, pen: Pen) -> Group:
    repeated = sum(found.repeated for found in corpus.repeated_types)
    table = plain_table("KIND", unit.upper(), "REPEATED", "SHARE", "")
    for found in corpus.repeated_types:
        drawn = pen.bar(found.repeated / repeated if repeated else 0.0)
        counts = (f"{found.layers:,}", f"{found.repeated:,}", _percent(found.repeated, repeated))
        table.add_row(name_cell(found.kind.value), *counts, drawn)
    title = f"Repeated {unit} by kind: {repeated:,} of {corpus.layers:,} occur more than once in their model"
    return _titled(title, table)


def _similarity(corpus: Corpus, width: int, glyphs: Glyphs) -> Group:
    count = len(corpus.models)
    digits = len(str(count))
    widest = max(len(printable(model.name)) for model in corpus.models) + digits + 1
    with_numbers = count <= MOST_WITH_NUMBERS and count * _NUMBER_CELL + NARROWEST_LABEL <= width
    cell = _NUMBER_CELL if with_numbers else 1
    per_panel = max(1, min(count, (width - NARROWEST_LABEL - 1) // cell))
    room = min(widest, width - 1 - per_panel * cell)
    panels: list[Text] = []
    for first in range(0, count, per_panel):
        columns = range(first, min(first + per_panel, count))
        panel = _column_heads(columns, digits, room, cell)
        for row, model in enumerate(corpus.models):
            name = Text(printable(f"{row + 1:>{digits}} {model.name}"))
            name.truncate(room, overflow=glyphs.overflow, pad=True)
            panel.append("\n").append_text(name).append(" ")
            for column in columns:
                similarity = corpus.jaccard[row][column]
                step = shade(similarity)
                drawn = glyphs.shades[step]
                panel.append(f"{_whole(similarity):>4} {drawn}" if with_numbers else drawn, style=SHADE_STYLES[step])
        panels.append(panel)
    title = "Shared bricks of every two models (Jaccard similarity, percent)"
    return _titled(title, Text(shade_legend(glyphs), style="dim"), *panels)


def _column_heads(columns: range, digits: int, room: int, cell: int) -> Text:
    """Return the numbers of the models: side by side where there is room, else one digit below the other."""
    if cell > digits:
        return Text(" " * (room + 1) + "".join(f"{column + 1:>4}  " for column in columns).rstrip())
    numbers = [f"{column + 1:>{digits}}" for column in columns]
    lines = ("".join(number[digit] for number in numbers) for digit in range(digits))
    return Text("\n".join(" " * (room + 1) + line for line in lines))


def _whole(similarity: float) -> str:
    """Return a percentage without decimals: `0` only for nothing, `100` only for all."""
    hundredths = 100 * similarity
    if 0 < hundredths < 1:
        return "<1"
    return "99" if 99 < hundredths < 100 else f"{hundredths:.0f}"


def _percent(part: int, whole: int) -> str:
    return percent(part / whole, 1) if whole else "-"


def _titled(title: str, *parts: RenderableType) -> Group:
    return Group(Text(f"\n{title}", style="bold"), *parts)
