"""The tree of a model: totals, its regions with how often each brick occurs, and the meaning of the signs."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from string import ascii_uppercase
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from dlbricks_tui.bricks.regions import (
    Chain,
    Irregular,
    Leaf,
    Parallel,
    Region,
    RegionTree,
    Repeat,
    children,
    walk,
)
from dlbricks_tui.cli.drawing import ASCII, UNICODE, Glyphs
from dlbricks_tui.models.titles import input_text, layer_title, shape_text
from dlbricks_tui.printable import printable
from dlbricks_tui.wording.numbers import PREDICTED, counted, milliseconds, percent

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from dlbricks_tui.bricks.decomposition import Decomposition, Occurrence
    from dlbricks_tui.models.graph import Layer

# Longer trees are cut; the JSON document has everything.
MOST_LINES = 1200
# Smaller modules are drawn in full at each place.
SMALLEST_MODULE = 4
# Regions deeper than this are drawn below the tree, sooner where the guides would leave no room for words.
_DEEPEST = 12
_WORDS_WIDTH = 24
_WIDTH_WITH_NAMES = 110
_BRICK_DIGITS = 8
_GAPS = 8
# The columns of times, with their gaps.
_TIME_WIDTH = 18


def tree_view(
    decomposition: Decomposition, console: Console, times: Sequence[SequenceTime] = ()
) -> Iterator[RenderableType]:
    """Yield the totals, the tree, and the meaning of its signs; with the times of all sequences, also these."""
    glyphs = ASCII if console.options.ascii_only else UNICODE
    room = console.width // 2 - _WORDS_WIDTH
    lines = tree_lines(decomposition, deepest=max(3, min(_DEEPEST, room // len(glyphs.branch))))
    yield _totals(decomposition)
    yield _table(decomposition, lines[:MOST_LINES], console.width, glyphs, times)
    if len(lines) > MOST_LINES:
        yield Text(f"... and {counted(len(lines) - MOST_LINES, 'more line')}; `--json` has everything", style="bold")
    yield Text(f"\n{_legend(lines, times)}", style="dim")


def _totals(decomposition: Decomposition) -> Text:
    graph, how = decomposition.graph, decomposition.cutting
    layers, sequences, bricks = len(graph.layers), len(decomposition.occurrences), len(decomposition.bricks)
    cut = f"cut {how.cut.value}, order {how.order.value}"
    held = counted(layers, "layer") + (f" in {counted(sequences, 'sequence')}" if sequences != layers else "")
    unique = f"{bricks:,} unique ({percent(bricks / sequences, 1)}), {len(decomposition.suite):,} with their contexts"
    lines = [f"level {graph.level.value}, granularity {how.granularity}, {cut}", f"{held}: {unique}"]
    lines += [f"input {printable(input_text(entry))} {shape_text(entry.type)}" for entry in graph.inputs]
    return Text(printable(graph.name), style="bold").append("\n" + "\n".join(lines) + "\n", style="not bold")


def _table(
    decomposition: Decomposition,
    lines: Sequence[TreeLine],
    width: int,
    glyphs: Glyphs,
    times: Sequence[SequenceTime],
) -> Table:
    counts = Counter(occurrence.brick.key for occurrence in decomposition.occurrences)
    shapes = [_output(decomposition, line.occurrence) for line in lines]
    with_names = width >= _WIDTH_WITH_NAMES
    room = width - max(map(len, (*shapes, "OUTPUT"))) - len("OCCURS") - _BRICK_DIGITS - _GAPS
    spent = _times_by_line(decomposition, lines, times) if times else []
    whole_ms = sum(each.latency_ms for each in times) or 1.0
    room -= _TIME_WIDTH if times else 0
    names_width = room // 3 if with_names else 0
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("REGION", no_wrap=True, overflow=glyphs.overflow, max_width=room - names_width)
    if times:
        table.add_column("MS", no_wrap=True, justify="right")
        table.add_column("SHARE", no_wrap=True, justify="right")
    table.add_column("OUTPUT", no_wrap=True)
    table.add_column("OCCURS", no_wrap=True, justify="right")
    table.add_column("BRICK", no_wrap=True)
    if with_names:
        table.add_column("LAYER", no_wrap=True, overflow=glyphs.overflow, max_width=names_width)
    for number, (line, shape) in enumerate(zip(lines, shapes, strict=True)):
        if not line.is_last_child:
            table.add_row()
        cells: list[str | Text] = [_title(line, glyphs)]
        if times:
            cells += (
                [spent[number].in_words, percent(spent[number].latency_ms / whole_ms, 1)] if line.copies else ["", ""]
            )
        cells.append(shape)
        if line.occurrence is not None:
            key = line.occurrence.brick.key
            cells += [f"x{counts[key]}", Text(key[:_BRICK_DIGITS], style="dim")]
            cells += [_names(decomposition, line.occurrence)] if with_names else []
        table.add_row(*cells)
    return table


def _times_by_line(
    decomposition: Decomposition, lines: Sequence[TreeLine], times: Sequence[SequenceTime]
) -> list[SequenceTime]:
    """Return the time of what each line stands for: of all copies in a row."""
    own: dict[int, SequenceTime] = {}
    # Inner regions come after the regions around them.
    for region in reversed([region for _, region in walk(decomposition.regions.root)]):
        inside = [times[region.layer]] if isinstance(region, Leaf) else [own[id(part)] for part in children(region)]
        own[id(region)] = _sum_of(inside)
    return [_sum_of([own[id(copy)] for copy in line.copies]) for line in lines]


def _sum_of(times: Sequence[SequenceTime]) -> SequenceTime:
    return SequenceTime(sum(it.latency_ms for it in times), any(it.by_roofline for it in times))


def _title(line: TreeLine, glyphs: Glyphs) -> Text:
    guides = "".join(glyphs.gap if last else glyphs.passing for last in line.is_last_child[:-1])
    if line.is_last_child:
        guides += glyphs.last_branch if line.is_last_child[-1] else glyphs.branch
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


def _legend(lines: Sequence[TreeLine], times: Sequence[SequenceTime]) -> str:
    texts = [line.text for line in lines]
    spent = ["MS, SHARE: the time in this place, of all copies in a row"] if times else []
    if any(each.by_roofline for each in times):
        spent.append(f"{PREDICTED} a share of a fused layer by roofline, and not by measured times")
    legend = {
        "conv ": "conv 3x3/2 64 d2 g8: kernel 3x3, stride 2, 64 outputs, dilation 2, 8 groups",
        "module ": "module A x4: a part that occurs 4 times in the model, and is drawn once",
        "": "OCCURS: number of times that the brick occurs in the model",
        "(runs ": "runs 2 times: counted as one layer, paid 2 times whenever the model runs",
        "!": "! unmeasurable: the runtime cannot run it by itself; standard error says why",
    }
    used = [meaning for sign, meaning in legend.items() if any(sign in text for text in texts)]
    return "\n".join([*used, *spent])


@dataclass(frozen=True, slots=True)
class SequenceTime:
    """The time of a sequence in an inference, and True if some of it was shared by roofline."""

    latency_ms: float
    by_roofline: bool = False

    @property
    def in_words(self) -> str:
        """The time for a column."""
        return f"{PREDICTED if self.by_roofline else ''}{milliseconds(self.latency_ms)}"


@dataclass(frozen=True, slots=True)
class TreeLine:
    """A line of the tree, with its sequence unless it is a region or a heading.

    `is_last_child` has a flag for each region around the line, the outermost first, and one for the line itself. The
    heading of a tree has no flags.
    """

    text: str
    is_last_child: tuple[bool, ...]
    occurrence: Occurrence | None = None
    is_unmeasurable: bool = False
    # The region that it stands for, and its copies in a row.
    copies: tuple[Region, ...] = ()


def tree_lines(decomposition: Decomposition, deepest: int) -> list[TreeLine]:
    """Return the lines of the whole tree; deeper regions are drawn below it, under headings."""
    return _Drawing(decomposition, deepest).lines()


# Equal regions, of which the first is drawn.
Copies = tuple[Region, ...]


class _Drawing:
    def __init__(self, decomposition: Decomposition, deepest: int) -> None:
        self._layers = decomposition.graph.layers
        self._occurrences = decomposition.occurrences
        self._tree: RegionTree = decomposition.regions
        self._unit = "layer" if decomposition.cutting.granularity == 1 else "sequence"
        self._deepest = deepest
        self._modules: dict[int, str] = {}
        self._drawn_below: deque[tuple[str, Copies]] = deque()
        self._lines: list[TreeLine] = []

    def lines(self) -> list[TreeLine]:
        self._draw_parts((self._tree.root,), ())
        while self._drawn_below:
            heading, copies = self._drawn_below.popleft()
            self._lines.append(TreeLine(heading, (), copies=copies))
            self._draw_parts(copies, ())
        return self._lines

    def _draw_parts(self, copies: Copies, is_last_child: tuple[bool, ...]) -> None:
        region = copies[0]
        parts = list(zip(*map(children, copies), strict=True))
        around = self._tree.occurrences[region.key]
        for number, part in enumerate(parts, 1):
            label = f"branch {number}: " if isinstance(region, Parallel) else ""
            self._draw(part, label, around, (*is_last_child, number == len(parts)))

    def _draw(self, copies: Copies, label: str, around: int, is_last_child: tuple[bool, ...]) -> None:
        """Draw one part of a region that itself occurs `around` times; its copies are equal and drawn once."""
        copies = _without_chains(copies)
        in_a_row, region = 1, copies[0]
        if isinstance(region, Repeat):
            in_a_row = len(region.instances)
            copies = tuple([instance for each in copies for instance in children(each)])
        region = copies[0]
        if isinstance(region, Leaf):
            self._draw_sequence(region, copies, label, in_a_row, is_last_child)
        elif region.size == 0:
            self._lines.append(TreeLine(f"{label}skip connection", is_last_child))
        else:
            self._draw_region(copies, label, in_a_row, around, is_last_child)

    def _draw_region(
        self, copies: Copies, label: str, in_a_row: int, around: int, is_last_child: tuple[bool, ...]
    ) -> None:
        region = copies[0]
        times = self._tree.occurrences[region.key]
        is_large = region.size >= SMALLEST_MODULE
        # The branches of a module need room as well.
        is_too_deep = is_large and len(is_last_child) >= self._deepest - isinstance(region, Parallel)
        row = "" if in_a_row == 1 else "in a row" if in_a_row == times else f"{in_a_row} in a row"
        size = f"1 {self._unit}" if region.size == 1 else f"{region.size:,} {self._unit}s"
        name = ""
        if is_too_deep or in_a_row > 1 or (is_large and times > around):
            known = self._modules.get(region.key)
            if known is not None:
                text = label + _listed(f"{known} again", row, size)
                self._lines.append(TreeLine(text, is_last_child, copies=copies))
                return
            name = f"module {_letters(len(self._modules))}" + (f" x{times}" if times > 1 else "")
            self._modules[region.key] = name
        if is_too_deep:
            text = label + _listed(name, row, size, "below")
            self._lines.append(TreeLine(text, is_last_child, copies=copies))
            self._drawn_below.append((_listed(name, _shape(region), size), copies))
            return
        text = label + _listed(name, row, _shape(region), size)
        self._lines.append(TreeLine(text, is_last_child, copies=copies))
        self._draw_parts(copies, is_last_child)

    def _draw_sequence(
        self, leaf: Leaf, copies: Copies, label: str, in_a_row: int, is_last_child: tuple[bool, ...]
    ) -> None:
        occurrence = self._occurrences[leaf.layer]
        layers = [self._layers[index] for index in occurrence.sequence.layers]
        is_unmeasurable = any(layer.unmeasurable is not None for layer in layers)
        text = label + " > ".join(_layer_text(layer) for layer in layers)
        text += f", {in_a_row} in a row" if in_a_row > 1 else ""
        self._lines.append(TreeLine(text, is_last_child, occurrence, is_unmeasurable, copies))


def _without_chains(copies: Copies) -> Copies:
    """Return equal regions without chains of one part around them."""
    while isinstance(copies[0], Chain) and len(copies[0].parts) == 1:
        copies = tuple([children(each)[0] for each in copies])
    return copies


def _shape(region: Region) -> str:
    if isinstance(region, Parallel):
        return f"{len(region.branches)} branches"
    return "irregular" if isinstance(region, Irregular) else ""


def _listed(*words: str) -> str:
    return ", ".join(filter(None, words))


def _layer_text(layer: Layer) -> str:
    text = layer_title(layer)
    if layer.times > 1:
        text += f" (runs {layer.times:,} times)"
    if layer.is_recorded:
        text += ", shape recorded from one run"
    return text if layer.unmeasurable is None else f"! {text}, unmeasurable"


def _letters(number: int) -> str:
    """Return A to Z, then AA, AB and so on, for 0, 1, 2."""
    text = ""
    number += 1
    while number:
        number, place = divmod(number - 1, len(ascii_uppercase))
        text = ascii_uppercase[place] + text
    return text
