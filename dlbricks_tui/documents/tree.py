"""The tree of a model: totals, its parts with how often each brick occurs, and the meaning of the signs."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dlbricks_tui.bricks.decomposition import Cutting, Decomposition, decompose
from dlbricks_tui.bricks.regions import Leaf, Parallel, Repeat
from dlbricks_tui.documents.lines import cut
from dlbricks_tui.documents.outline import SMALLEST_MODULE, Outline, OutlineNode, shape_of
from dlbricks_tui.documents.parts import BLANK_LINE, CellKind, Column, Part, Sentence, Table
from dlbricks_tui.wording.answers import cutting_words, input_text, shape_text
from dlbricks_tui.wording.numbers import PREDICTED, counted, milliseconds, percent

if TYPE_CHECKING:
    from dlbricks_tui.analysis.whole_models import WrittenTime
    from dlbricks_tui.api.analyses import Analysis

# Longer trees are cut; the JSON document has everything.
MOST_LINES = 1200
# Regions deeper than this are drawn below the tree, sooner where the guides would leave no room for words.
_DEEPEST = 12
_WORDS_WIDTH = 24
_WIDTH_WITH_NAMES = 110
_BRICK_DIGITS = 8
_BRANCH, _LAST_BRANCH = "├─ ", "└─ "
_PASSING, _GAP = "│  ", "   "
_MEANINGS = {
    "conv ": "conv 3x3/2 64 d2 g8: kernel 3x3, stride 2, 64 outputs, dilation 2, 8 groups",
    "block ": "block A x4: a part that occurs 4 times in the model, and is drawn once",
    "": "OCCURS: number of times that the brick occurs in the model",
    "(runs ": "runs 2 times: counted as one layer, paid 2 times whenever the model runs",
    "!": "! unmeasurable: the runtime cannot run it by itself; standard error says why",
}

# Equal parts, of which the first is drawn.
Copies = tuple[OutlineNode, ...]


@dataclass(frozen=True, slots=True)
class TreeLine:
    """A line of the tree: a part and its copies in a row. The heading of a part that is drawn below has no guides."""

    text: str = ""
    guides: str = ""
    copies: Copies = ()

    @property
    def sequence(self) -> OutlineNode | None:
        """The part, if it is a sequence."""
        return self.copies[0] if self.copies and self.copies[0].sequence is not None else None


def tree(decomposition: Decomposition, width: int, times: Sequence[WrittenTime] = ()) -> Iterator[Part]:
    """Yield the totals, the tree, and the meaning of its signs; with the times of all layers, also these."""
    room = width // 2 - _WORDS_WIDTH
    lines = tree_lines(Outline(decomposition), deepest=max(3, min(_DEEPEST, room // len(_BRANCH))))
    yield from _totals(decomposition)
    yield BLANK_LINE
    yield Table(_columns(width, times), lines[:MOST_LINES], guides=lambda it: it.guides)
    if len(lines) > MOST_LINES:
        more = counted(len(lines) - MOST_LINES, "more line")
        yield Sentence(f"... and {more}; `--json` has everything", "strong")
    yield BLANK_LINE
    told = [meaning for sign, meaning in _MEANINGS.items() if any(sign in line.text for line in lines)]
    told += ["MS, SHARE: the time in this place, of all copies in a row"] if times else []
    if any(each.by_roofline for each in times):
        told.append(f"{PREDICTED} a share of a fused layer by roofline, and not by measured times")
    yield from (Sentence(each, "muted") for each in told)


def written_tree(found: Analysis, cutting: Cutting, width: int) -> Iterator[Part]:
    """Yield the tree of an analysed model's file, with the times of its layers."""
    if found.written is not None and found.times is not None:
        yield from tree(decompose(found.written, cutting), width, found.times.layers)


def _totals(decomposition: Decomposition) -> Iterator[Part]:
    graph, bricks = decomposition.graph, len(decomposition.bricks)
    layers, sequences = len(graph.layers), len(decomposition.occurrences)
    held = counted(layers, "layer") + (f" in {counted(sequences, 'sequence')}" if sequences != layers else "")
    counts = f"{bricks:,} unique ({percent(bricks / sequences, 1)})"
    unique = f"{counts}, {len(decomposition.pairs):,} together with their neighbours"
    yield Sentence(graph.name, "heading")
    yield Sentence(f"{graph.level.value} layers, {cutting_words(decomposition.cutting)}")
    yield Sentence(f"{held}: {unique}")
    yield from (Sentence(f"input {input_text(entry)} {shape_text(entry.type)}") for entry in graph.inputs)


def _columns(width: int, times: Sequence[WrittenTime]) -> tuple[Column[TreeLine], ...]:
    whole_ms = sum(each.latency_ms for each in times) or 1.0
    with_names = width >= _WIDTH_WITH_NAMES

    def spent(it: TreeLine) -> list[WrittenTime]:
        """Return the times of all copies in a row."""
        return [times[layer] for copy in it.copies for layer in copy.layers]

    def latency(it: TreeLine) -> str:
        sign = PREDICTED if any(each.by_roofline for each in spent(it)) else ""
        return f"{sign}{milliseconds(sum(each.latency_ms for each in spent(it)))}" if it.copies else ""

    def share(it: TreeLine) -> str:
        return percent(sum(each.latency_ms for each in spent(it)) / whole_ms, 1) if it.copies else ""

    def text(it: TreeLine) -> str:
        # Long titles leave room for the names of layers.
        return it.guides + (cut(it.text, width // 2 - len(it.guides)) if with_names else it.text)

    def style(it: TreeLine) -> str:
        return "heading" if it.sequence is None else "bad" if it.sequence.is_unmeasurable else "text"

    def brick(it: OutlineNode) -> str:
        return it.occurrence.brick.key[:_BRICK_DIGITS] if it.occurrence else ""

    return (
        Column("region", text, CellKind.NAME, style),
        *((Column("ms", latency), Column("share", share)) if times else ()),
        Column("output", _of_sequence(lambda it: it.output), CellKind.WORD),
        Column("occurs", _of_sequence(lambda it: f"x{it.occurs}")),
        Column("brick", _of_sequence(brick), CellKind.WORD, "muted"),
        *((Column("layer", _of_sequence(lambda it: it.names), CellKind.NAME),) if with_names else ()),
    )


def _of_sequence(cell: Callable[[OutlineNode], str]) -> Callable[[TreeLine], str]:
    """Return a cell that is empty in the lines of regions."""
    return lambda it: "" if it.sequence is None else cell(it.sequence)


def tree_lines(outline: Outline, deepest: int) -> list[TreeLine]:
    """Return the lines of the whole tree; deeper parts are drawn below it, under headings."""
    lines: list[TreeLine] = []
    # The modules that were drawn, or will be below.
    drawn: set[int] = set()
    below: deque[tuple[str, Copies]] = deque([("", (outline.root,))])

    def draw(copies: Copies, guides: str) -> None:
        node = copies[0]
        if isinstance(node.region, Repeat):
            copies = tuple([instance for each in copies for instance in each.inside])
        region = copies[0].region
        if isinstance(region, Leaf) or not region.size:
            lines.append(TreeLine(node.title, guides, copies if region.size else ()))
            return
        # The branches of a module need room as well.
        room = deepest - isinstance(region, Parallel)
        is_too_deep = region.size >= SMALLEST_MODULE and len(guides) // len(_BRANCH) >= room
        name = outline.name_module(region) if is_too_deep else node.module
        is_drawn = bool(name) and region.key in drawn
        drawn.add(region.key)
        if is_drawn or is_too_deep:
            words = _listed(
                f"{name} again" if is_drawn else name, node.in_a_row, node.size, "" if is_drawn else "below"
            )
            lines.append(TreeLine(node.label + words, guides, copies))
        else:
            lines.append(TreeLine(node.title, guides, copies))
            draw_inside(copies, guides[: -len(_GAP)] + (_GAP if guides.endswith(_LAST_BRANCH) else _PASSING))
        if is_too_deep and not is_drawn:
            below.append((_listed(name, shape_of(region), node.size), copies))

    def draw_inside(copies: Copies, guides: str) -> None:
        parts = _equal_parts(copies)
        for part in parts:
            draw(part, guides + (_LAST_BRANCH if part is parts[-1] else _BRANCH))

    while below:
        heading, copies = below.popleft()
        lines += [TreeLine(), TreeLine(heading, copies=copies)] if heading else []
        draw_inside(copies, "")
    return lines


def _equal_parts(copies: Copies) -> list[Copies]:
    """Return the parts of the first of some equal parts, each with its equals; branches may be in another order."""
    found = [[part] for part in copies[0].inside]
    for copy in copies[1:]:
        waiting: dict[int, list[OutlineNode]] = {}
        for part in reversed(copy.inside):
            waiting.setdefault(part.region.key, []).append(part)
        for equals in found:
            # The parts of an irregular region may be grouped otherwise there.
            if same := waiting.get(equals[0].region.key):
                equals.append(same.pop())
    return [tuple(equals) for equals in found]


def _listed(*words: str) -> str:
    return ", ".join(filter(None, words))
