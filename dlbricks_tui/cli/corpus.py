"""`dlbricks corpus`: repetition within and across models (the paper, section 2.2, figures 5, 6 and 7)."""

import argparse
from collections.abc import Iterator, Sequence
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.text import Text

from dlbricks_tui.bricks.corpus import Corpus, compare, model_bricks
from dlbricks_tui.bricks.decomposition import Decomposition, decompose
from dlbricks_tui.cli.drawing import (
    SHADE_STYLES,
    Glyphs,
    Pen,
    name_cell,
    pen_for,
    plain_table,
    shade,
    shade_legend,
    titled,
)
from dlbricks_tui.cli.options import (
    add_cutting_options,
    add_models_argument,
    add_runtime_option,
    cutting_of,
    runtime_of,
    shapes_of,
    sources_of,
    values_given,
)
from dlbricks_tui.cli.output import data_console, show, write_json
from dlbricks_tui.cli.parser import Parser, Status, add_json_option
from dlbricks_tui.cli.store import load_all, open_loader
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.models.graph import Level
from dlbricks_tui.models.library import ModelSource
from dlbricks_tui.printable import printable
from dlbricks_tui.wording.numbers import counted, percent

# With more models, numbers would make the grid too wide for a screen.
MOST_WITH_NUMBERS = 12
NARROWEST_LABEL = 16
_NUMBER_CELL = 6
# The width of the columns beside the bars, with names cut to their shortest.
_WITHOUT_BARS = 56


def register(parser: Parser) -> None:
    """Add the options of `corpus`."""
    add_models_argument(parser, many=True)
    add_cutting_options(parser, level=Level.WRITTEN)
    add_runtime_option(parser)
    add_json_option(parser)
    parser.set_defaults(handler=show_corpus)


def show_corpus(args: argparse.Namespace) -> int:
    """Cut all models, compare their layer sequences, and show the result."""
    sources = sources_of(args, args.models)
    with open_loader(args.data, runtime_of(args)) as loader:
        loaded = load_all(loader, sources, Level(args.level), shapes_of(args), values_given(args))
    how = cutting_of(args)
    decompositions = [decompose(graph, how, loader.cache) for _, graph in loaded]
    corpus = compare([model_bricks(decomposition) for decomposition in decompositions])
    known = [source for source, _ in loaded]
    speedup = _speedup(args.data, args.runtime, args.config.threads, decompositions)
    if args.json:
        write_json(_document(corpus, known, decompositions, speedup))
    else:
        unit = "layers" if how.granularity == 1 else "sequences"
        show(*_view(corpus, [_label(source) for source in known], unit, speedup, data_console()))
    return Status.DONE if len(loaded) == len(sources) else Status.DONE_WITH_FAILURES


def _speedup(
    data: DataFolder, runtime: str | None, threads: int | None, decompositions: Sequence[Decomposition]
) -> float | None:
    """Return the time of the models on this host over that of their unique bricks; None if either is unmeasured."""
    if not data.store.exists():
        return None
    from dlbricks_tui.answers.estimating import estimates_here
    from dlbricks_tui.estimate.accuracy import speedup

    found = estimates_here(data, runtime, threads, decompositions)
    return speedup([estimate for estimate in found if estimate is not None])


def _document(
    corpus: Corpus, sources: Sequence[ModelSource], decompositions: Sequence[Decomposition], speedup: float | None
) -> dict[str, Any]:
    layers = [len(decomposition.graph.layers) for decomposition in decompositions]
    return {
        "layers": sum(layers),
        "sequences": corpus.layers,
        "unique_layers": corpus.unique_layers,
        "contexts": corpus.contexts,
        "models": [
            {
                "model": source.name,
                "table1_id": source.table1_id,
                "layers": count,
                "sequences": model.layers,
                "unique_layers": model.unique_layers,
                "contexts": model.contexts,
                "share": model.share,
            }
            for source, count, model in zip(sources, layers, corpus.models, strict=True)
        ],
        "jaccard": corpus.jaccard,
        "repeated_types": corpus.repeated_types,
        "speedup": speedup,
    }


def _label(source: ModelSource) -> str:
    return f"table1:{source.table1_id} {source.name}" if source.table1_id else source.name


def _view(
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
    return titled(f"Unique {unit} per model", table)


def _repeated(corpus: Corpus, unit: str, pen: Pen) -> Group:
    repeated = sum(found.repeated for found in corpus.repeated_types)
    table = plain_table("KIND", unit.upper(), "REPEATED", "SHARE", "")
    for found in corpus.repeated_types:
        drawn = pen.bar(found.repeated / repeated if repeated else 0.0)
        counts = (f"{found.layers:,}", f"{found.repeated:,}", _percent(found.repeated, repeated))
        table.add_row(name_cell(found.kind.value), *counts, drawn)
    title = f"Repeated {unit} by kind: {repeated:,} of {corpus.layers:,} occur more than once in their model"
    return titled(title, table)


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
    return titled(title, Text(shade_legend(glyphs), style="dim"), *panels)


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
