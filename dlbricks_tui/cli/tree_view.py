"""How a person sees a cut model: totals, its regions with how often each brick occurs, and what the signs mean."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from dlbricks_tui.cli.charts import ASCII, UNICODE, Glyphs
from dlbricks_tui.cli.tree_lines import TreeLine, tree_lines
from dlbricks_tui.models.titles import shape_text
from dlbricks_tui.printable import printable

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from dlbricks_tui.bricks.decomposition import Decomposition, Occurrence

# Beyond these a person reads the JSON document instead.
MOST_LINES = 1200
# Deeper than this no eye follows, and not so deep where the guides would leave no room for words.
_DEEPEST = 12
_WORDS_WIDTH = 24
_WIDTH_WITH_NAMES = 110
_BRICK_DIGITS = 8
_GAPS = 8


def tree_view(decomposition: Decomposition, console: Console) -> Iterator[RenderableType]:
    """Totals, the tree, and what its signs mean."""
    glyphs = ASCII if console.options.ascii_only else UNICODE
    room = console.width // 2 - _WORDS_WIDTH
    lines = tree_lines(decomposition, deepest=max(3, min(_DEEPEST, room // len(glyphs.branch))))
    yield _totals(decomposition)
    yield _table(decomposition, lines[:MOST_LINES], console.width, glyphs)
    if len(lines) > MOST_LINES:
        yield Text(f"... and {len(lines) - MOST_LINES:,} lines more; `--json` has everything", style="bold")
    yield Text(f"\n{_legend(lines)}", style="dim")


def _totals(decomposition: Decomposition) -> Text:
    graph, how = decomposition.graph, decomposition.cutting
    layers, sequences, bricks = len(graph.layers), len(decomposition.occurrences), len(decomposition.bricks)
    cut = f"cut {how.cut.value}, order {how.order.value}"
    counted = f"{layers:,} layers" + (f" in {sequences:,} sequences" if sequences != layers else "")
    unique = f"{bricks:,} unique ({100 * bricks / sequences:.1f} %), {len(decomposition.suite):,} with their contexts"
    lines = [f"level {graph.level.value}, granularity {how.granularity}, {cut}", f"{counted}: {unique}"]
    lines += [f"input {printable(entry.name)} {shape_text(entry.type)}" for entry in graph.inputs]
    return Text(printable(graph.name), style="bold").append("\n" + "\n".join(lines) + "\n", style="not bold")


def _table(decomposition: Decomposition, lines: Sequence[TreeLine], width: int, glyphs: Glyphs) -> Table:
    counts = Counter(occurrence.brick.key for occurrence in decomposition.occurrences)
    shapes = [_output(decomposition, line.occurrence) for line in lines]
    with_names = width >= _WIDTH_WITH_NAMES
    room = width - max(map(len, (*shapes, "OUTPUT"))) - len("OCCURS") - _BRICK_DIGITS - _GAPS
    names_width = room // 3 if with_names else 0
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("REGION", no_wrap=True, overflow=glyphs.overflow, max_width=room - names_width)
    table.add_column("OUTPUT", no_wrap=True)
    table.add_column("OCCURS", no_wrap=True, justify="right")
    table.add_column("BRICK", no_wrap=True)
    if with_names:
        table.add_column("LAYER", no_wrap=True, overflow=glyphs.overflow, max_width=names_width)
    for line, shape in zip(lines, shapes, strict=True):
        if not line.hangs:
            table.add_row()
        cells: list[str | Text] = [_title(line, glyphs), shape]
        if line.occurrence is not None:
            key = line.occurrence.brick.key
            cells += [f"x{counts[key]}", Text(key[:_BRICK_DIGITS], style="dim")]
            cells += [_names(decomposition, line.occurrence)] if with_names else []
        table.add_row(*cells)
    return table


def _title(line: TreeLine, glyphs: Glyphs) -> Text:
    guides = "".join(glyphs.gap if last else glyphs.passing for last in line.hangs[:-1])
    if line.hangs:
        guides += glyphs.last_branch if line.hangs[-1] else glyphs.branch
    style = "red" if line.is_unmeasurable else "bold" if line.occurrence is None else ""
    return Text(guides, style="dim").append(printable(line.text), style=f"not dim {style}")


def _output(decomposition: Decomposition, occurrence: Occurrence | None) -> str:
    if occurrence is None:
        return ""
    outputs = decomposition.graph.layers[occurrence.sequence.layers[-1]].outputs
    more = f" +{len(outputs) - 1}" if len(outputs) > 1 else ""
    return shape_text(outputs[0]) + more if outputs else ""


def _names(decomposition: Decomposition, occurrence: Occurrence) -> str:
    first, *others = (printable(decomposition.graph.layers[layer].name) for layer in occurrence.sequence.layers)
    return f"{first} .. {others[-1]}" if others else first


def _legend(lines: Sequence[TreeLine]) -> str:
    texts = [line.text for line in lines]
    legend = {
        "conv ": "conv 3x3/2 64 d2 g8: kernel 3x3, stride 2, 64 outputs, dilation 2, 8 groups",
        "module ": "module A x4: a part that stands 4 times in the model, and is drawn once",
        "": "OCCURS: how often the brick occurs in the model",
        "(runs ": "runs 2 times: counted as one layer, paid 2 times whenever the model runs",
        "!": "! unmeasurable: the runtime cannot run it by itself; why is on standard error",
    }
    return "\n".join(meaning for sign, meaning in legend.items() if any(sign in text for text in texts))
