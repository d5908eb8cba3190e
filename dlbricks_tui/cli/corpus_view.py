"""How a person sees what repeats in a set of models: the paper's figures 5, 6 and 7 in characters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rich.console import Group
from rich.table import Table
from rich.text import Text

from dlbricks_tui.cli.charts import ASCII, SHADE_STYLES, UNICODE, Glyphs, bar, shade, shade_legend

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from dlbricks_tui.bricks.corpus import Corpus

# Beyond as many models numbers would make the grid too wide to be seen at once.
MOST_WITH_NUMBERS = 12
NARROWEST_LABEL = 16
_NUMBER_CELL = 6
_NARROWEST_BAR = 8
_WIDEST_BAR = 40
# What the columns of counts and the gaps take, beside the number and name of a model, the unit and the bar.
_COUNTS_WIDTH = 22


def corpus_view(
    corpus: Corpus, labels: Sequence[str], unit: str, speedup: float | None, console: Console
) -> Iterator[RenderableType]:
    """Totals, unique layers per model, repeated layers by kind, and the similarity of every two models.

    `unit` is what is counted, layers or sequences, and `labels` is what the models are called.
    """
    glyphs = ASCII if console.options.ascii_only else UNICODE
    bar_width = max(_NARROWEST_BAR, min(_WIDEST_BAR, (console.width - NARROWEST_LABEL) // 3))
    yield _totals(corpus, unit)
    if speedup is not None:
        yield Text(f"measured on this host, the unique bricks take {speedup:.2f} times less than the models")
    yield _uniqueness(corpus, labels, unit, console.width, bar_width, glyphs)
    yield _repeated(corpus, unit, bar_width, glyphs)
    if len(labels) > 1:
        yield _similarity(corpus, console.width, glyphs)


def _totals(corpus: Corpus, unit: str) -> Text:
    models = "1 model" if len(corpus.models) == 1 else f"{len(corpus.models)} models"
    share = _percent(corpus.unique_layers, corpus.layers)
    return Text(
        f"{models}, {corpus.layers:,} {unit}: {corpus.unique_layers:,} unique ({share}), "
        f"{corpus.contexts:,} with their contexts"
    )


def _uniqueness(corpus: Corpus, labels: Sequence[str], unit: str, width: int, bar_width: int, glyphs: Glyphs) -> Group:
    room = width - bar_width - len(str(len(labels))) - len(unit) - _COUNTS_WIDTH
    table = _table()
    table.add_column("#", justify="right", no_wrap=True)
    table.add_column("MODEL", overflow=glyphs.overflow, no_wrap=True, max_width=max(NARROWEST_LABEL, room))
    for heading in (unit.upper(), "UNIQUE", "SHARE"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("", no_wrap=True, width=bar_width)
    for number, (label, model) in enumerate(zip(labels, corpus.models, strict=True), 1):
        counts = (f"{model.layers:,}", f"{model.unique_layers:,}", _percent(model.unique_layers, model.layers))
        table.add_row(str(number), Text(label), *counts, Text(bar(model.share, bar_width, glyphs), style="cyan"))
    if len(labels) > 1:
        share = corpus.unique_layers / corpus.layers if corpus.layers else 0.0
        counts = (f"{corpus.layers:,}", f"{corpus.unique_layers:,}", _percent(corpus.unique_layers, corpus.layers))
        drawn = Text(bar(share, bar_width, glyphs), style="cyan")
        table.add_row("", Text("all together"), *counts, drawn, style="bold")
    return _titled(f"Unique {unit} per model", table)


def _repeated(corpus: Corpus, unit: str, bar_width: int, glyphs: Glyphs) -> Group:
    repeated = sum(found.repeated for found in corpus.repeated_types)
    table = _table()
    table.add_column("KIND")
    for heading in (unit.upper(), "REPEATED", "SHARE"):
        table.add_column(heading, justify="right")
    table.add_column("", no_wrap=True, width=bar_width)
    for found in corpus.repeated_types:
        share = found.repeated / repeated if repeated else 0.0
        counts = (f"{found.layers:,}", f"{found.repeated:,}", _percent(found.repeated, repeated))
        table.add_row(found.kind.value, *counts, Text(bar(share, bar_width, glyphs), style="cyan"))
    title = f"Repeated {unit} by kind: {repeated:,} of {corpus.layers:,} occur more than once in their model"
    return _titled(title, table)


def _similarity(corpus: Corpus, width: int, glyphs: Glyphs) -> Group:
    count = len(corpus.models)
    digits = len(str(count))
    widest = max(len(model.name) for model in corpus.models) + digits + 1
    with_numbers = count <= MOST_WITH_NUMBERS and count * _NUMBER_CELL + NARROWEST_LABEL <= width
    cell = _NUMBER_CELL if with_numbers else 1
    per_panel = max(1, min(count, (width - NARROWEST_LABEL - 1) // cell))
    room = min(widest, width - 1 - per_panel * cell)
    panels: list[Text] = []
    for first in range(0, count, per_panel):
        columns = range(first, min(first + per_panel, count))
        panel = _column_heads(columns, digits, room, cell)
        for row, model in enumerate(corpus.models):
            name = Text(f"{row + 1:>{digits}} {model.name}")
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
    """The numbers of the models: side by side where there is room, else one digit below the other."""
    if cell > digits:
        return Text(" " * (room + 1) + "".join(f"{column + 1:>4}  " for column in columns).rstrip())
    numbers = [f"{column + 1:>{digits}}" for column in columns]
    lines = ("".join(number[digit] for number in numbers) for digit in range(digits))
    return Text("\n".join(" " * (room + 1) + line for line in lines))


def _whole(similarity: float) -> str:
    """Percent without decimals; what is not nothing and not all does not look like it."""
    percent = 100 * similarity
    if 0 < percent < 1:
        return "<1"
    return "99" if 99 < percent < 100 else f"{percent:.0f}"


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "-"


def _table() -> Table:
    return Table(box=None, pad_edge=False, header_style="dim")


def _titled(title: str, *parts: RenderableType) -> Group:
    return Group(Text(f"\n{title}", style="bold"), *parts)
