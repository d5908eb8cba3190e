"""The panels of the decomposition and of the selected part."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from textual.message import Message

from dlbricks_tui.api.open_models import id_of
from dlbricks_tui.documents.lines import (
    Line,
    Span,
    cut_start,
    highlighted,
    line,
    width_of,
)
from dlbricks_tui.printable import printable
from dlbricks_tui.tui.keys import scopes
from dlbricks_tui.tui.keys.keymap import Hint
from dlbricks_tui.tui.widgets.panel import DocumentPanel, Panel
from dlbricks_tui.tui.widgets.rows import ListColumn, RowsView, list_heading, list_row
from dlbricks_tui.tui.widgets.text import WIDTH, text_of
from dlbricks_tui.tui.workbench.estimate import CHOOSE_A_MODEL, READING, Note
from dlbricks_tui.wording.numbers import counted, percent
from dlbricks_tui.wording.plain_text import TextTable, bar

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypeAlias

    from dlbricks_tui.api.estimating import Measurements
    from dlbricks_tui.api.open_models import ModelId
    from dlbricks_tui.documents.outline import OutlineNode
    from dlbricks_tui.documents.part_details import PartDetails, PartLatencies, PartLatency
    from dlbricks_tui.estimate.knowledge import Pair
    from dlbricks_tui.models.graph import Level
    from dlbricks_tui.tui.workbench.unfolded import Unfolded
    from dlbricks_tui.tui.workbench.work import OpenModel

    _Graph: TypeAlias = tuple[ModelId, Level]


NOTHING_FOUND = (
    line(Span("No operator, kind or name contains all of these words.")),
    Hint("{find.clear} shows the whole model again.", "muted"),
)

_NOWHERE = {
    "critical": "There is no critical path yet: the model was not measured.",
    "missing": "Everything in the model has a latency.",
}
NO_KEY = "Only a layer sequence has a key: select one in the decomposition."
_SAID_SECONDS = 3.0


class _Place(NamedTuple):
    """The selected layer of a model before it was cut anew."""

    graph: _Graph
    layer: int


class TreeRows(RowsView):
    """The expanded parts of the model."""

    def __init__(self) -> None:
        super().__init__()
        self.unfolded: Unfolded | None = None
        self.latencies: PartLatencies | None = None

    @property
    def row_count(self) -> int:
        return len(self.unfolded.rows) if self.unfolded else 0

    @property
    def node(self) -> OutlineNode | None:
        return self.unfolded.rows[self.cursor] if self.unfolded and self.cursor < self.row_count else None

    def row(self, index: int, width: int) -> Line:
        return tree_line(self.tree_row(self.unfolded, index), width, self.unfolded.search_text) if self.unfolded else ()

    def tree_row(self, unfolded: Unfolded, index: int) -> TreeRow:
        node = unfolded.rows[index]
        latency = self.latencies.of(node.region) if self.latencies else None
        return TreeRow(node, latency, unfolded.is_open(node) if unfolded.can_open(node) else None)


class TreePanel(Panel):
    scope = scopes.TREE
    TITLE = "Decomposition"
    SEARCH_HINT = "operator, kind or name"
    HEADED = True
    PLACEHOLDER = CHOOSE_A_MODEL
    NOTHING_TO_COPY = NO_KEY
    ABOUT = (
        "The parts of the model: blocks that occur several times (each has a letter), branches, and layer "
        "sequences. 'times' is the number of equal parts in the model; equal bricks run once. 'path': on the critical "
        "path. ~ was predicted, ≈ was measured with samples that vary too much, 'part' leaves layers out, - was not "
        "measured yet, ! cannot run here, and 'unused' is not needed, as sequences that overlap it are quicker."
    )

    class Selected(Message):
        """The cursor has settled on a part of the model."""

    def __init__(self) -> None:
        self._list = TreeRows()
        super().__init__(self._list)
        self._graph: _Graph | None = None
        self._left: _Place | None = None

    def heading(self, width: int) -> Line:
        unfolded = self._list.unfolded
        return (Span(" "), *heading_line(width - 1, bool(unfolded.search_text))) if unfolded else ()

    def as_texts(self) -> TextTable:
        unfolded = self._list.unfolded
        if unfolded is None:
            return super().as_texts()
        columns = [it for it in _columns(WIDTH, bool(unfolded.search_text)) if it.title]
        rows = [self._list.tree_row(unfolded, index) for index in range(self._list.row_count)]
        titles = [_title(row, WIDTH, unfolded.search_text.split()) for row in rows]
        told = [
            [text_of(title), *(it.cell(row)[0].strip() for it in columns)]
            for title, row in zip(titles, rows, strict=True)
        ]
        return TextTable(("part", *(it.title.strip() for it in columns)), told)

    def show(self, opened: OpenModel) -> None:
        """Show a model from its top, or from the selected layer if it was only cut anew."""
        from dlbricks_tui.tui.workbench.unfolded import Unfolded

        left, self._graph = self._left, (id_of(opened.spec.source), opened.graph.level)
        unfolded = Unfolded(opened.outline)
        self._list.unfolded, self._list.latencies = unfolded, None
        self._list.cursor = 0
        self._changed(unfolded.reveal_layer(left.layer) if left and left.graph == self._graph else 0)
        self.post_message(self.Selected())

    @property
    def selected_part(self) -> PartDetails | None:
        """The selected part with what is known of it."""
        from dlbricks_tui.documents.part_details import PartDetails

        return PartDetails(self._list.node, self._list.latencies) if self._list.node else None

    @property
    def selected_layer(self) -> int | None:
        """The index of the selected layer, or of the first one in the selected sequence; None for other parts."""
        node = self._list.node
        return None if node is None or node.sequence is None else node.layers[0]

    def show_layer(self, layer: int) -> None:
        """Select the sequence with a layer, and end a search."""
        self._move(lambda unfolded, _: unfolded.reveal_layer(layer), from_a_row=False)

    @property
    def latencies(self) -> PartLatencies | None:
        """The latencies on screen."""
        return self._list.latencies

    def show_latencies(self, latencies: PartLatencies | None) -> None:
        """Show latencies; the expanded parts stay expanded."""
        self._list.latencies = latencies
        self._list.refresh()

    def show_waiting(self) -> None:
        self.show_note(READING)

    def search_changed(self) -> None:
        if self._list.unfolded:
            self._changed(self._list.unfolded.seek(self.search_line.value.strip(), self._list.cursor))

    def action_expand(self) -> None:
        self._move(lambda unfolded, cursor: unfolded.expand(cursor))

    def action_collapse(self) -> None:
        self._move(lambda unfolded, cursor: unfolded.collapse(cursor))

    def action_open_or_close(self) -> None:
        if self._list.unfolded and self._list.node and self._list.unfolded.is_open(self._list.node):
            self.action_collapse()
        else:
            self.action_expand()

    def action_expand_below(self) -> None:
        self._move(lambda unfolded, cursor: unfolded.expand_below(cursor))

    def action_collapse_all(self) -> None:
        self._move(lambda unfolded, cursor: unfolded.collapse_all())

    def action_sort(self) -> None:
        latencies = self._list.latencies
        if latencies is None:
            self.notify("No latency of this model is known yet.", timeout=_SAID_SECONDS)
        else:
            self._move(lambda unfolded, cursor: unfolded.sort(latencies.slowest_first(), cursor))

    def copied(self) -> str | None:
        return self.selected_part.brick_key if self.selected_part else None

    def cursor_settled(self) -> None:
        self.post_message(self.Selected())

    def action_step_to(self, places: str, step: int) -> None:
        latencies = self._list.latencies
        if latencies is None:
            return
        if found := getattr(latencies, places):
            self._move(lambda unfolded, cursor: unfolded.next_of(cursor, found, step))
        else:
            self.notify(_NOWHERE[places], timeout=_SAID_SECONDS)

    def action_step_to_equal(self, step: int) -> None:
        unfolded, node = self._list.unfolded, self._list.node
        if unfolded and node and not unfolded.has_equal(node):
            self.notify("No other part of the model is equal.", timeout=_SAID_SECONDS)
        else:
            self._move(lambda unfolded, cursor: unfolded.next_equal(cursor, step))

    def _move(self, step: Callable[[Unfolded, int], int], *, from_a_row: bool = True) -> None:
        """Move in the tree; a step out of the matches ends the search."""
        unfolded = self._list.unfolded
        if unfolded is None or (from_a_row and self._list.node is None):
            return
        was_searched = unfolded.is_searched
        self._changed(step(unfolded, self._list.cursor))
        if was_searched and not unfolded.is_searched:
            self.search_line.end()

    def _changed(self, cursor: int) -> None:
        """Redraw the rows and move the cursor."""
        self._list.show_placeholder(*NOTHING_FOUND)
        self._list.rows_changed()
        if self._list.row_count:
            self._list.move_to(cursor)
        self._show_counts()

    def _show_counts(self) -> None:
        self.show_title()
        self.border_subtitle = ""
        unfolded = self._list.unfolded
        if unfolded:
            decomposition = unfolded.outline.decomposition
            if unfolded.is_searched:
                by_time = ", by time" if unfolded.is_sorted else ""
                self.show_title(f" {self._list.row_count:,} of {len(decomposition.occurrences):,}{by_time}")
            self.border_subtitle = f"{counted(len(decomposition.bricks), 'brick')}: unique parts, measured once"
        self.heading_changed()

    def show_note(self, note: Note) -> None:
        """Show lines in place of the model, and remember the selected layer."""
        self._leave()
        if self._list.unfolded and self._list.unfolded.is_searched:
            self.search_line.end()
        self._list.unfolded, self._list.latencies = None, None
        self._list.show_placeholder(*note)
        self._list.rows_changed()
        self._show_counts()

    def _leave(self) -> None:
        unfolded, node, graph = self._list.unfolded, self._list.node, self._graph
        if unfolded is None or graph is None:
            return
        inside = unfolded.outline.numbers(node.region) if node and node is not unfolded.outline.root else ()
        layers = unfolded.outline.decomposition.occurrences[inside[0]].sequence.layers if inside else ()
        # While settings change, the cursor stays on the layer where it was at first.
        if self._left is None or self._left.graph != graph or self._left.layer not in layers:
            self._left = _Place(graph, layers[0]) if layers else None


_OPEN, _CLOSED, _NEITHER = "- ", "+ ", "  "
# From this width on each level is indented by two cells.
_ROOMY = 24
# The least width of a list that shows names, and bars.
_ROOMY_FOR_NAMES, _ROOMY_FOR_BARS = 82, 52
_MOST_NAMES = 40
_LEAST_BAR, _MOST_BAR = 4, 11


class TreeRow(NamedTuple):
    """A part and its latency; `is_open` None marks a part that cannot be expanded."""

    node: OutlineNode
    latency: PartLatency | None = None
    is_open: bool | None = None


def _of_latency(told: Callable[[PartLatency], tuple[str, str]]) -> Callable[[TreeRow], tuple[str, str]]:
    """Return the cell of a figure, which only parts with a latency of their own have."""

    def cell(row: TreeRow) -> tuple[str, str]:
        node, latency = row.node, row.latency
        # A skip connection has no layers, and a layer among several no latency of its own.
        return ("", "text") if latency is None or node.layer is not None or not node.region.size else told(latency)

    return cell


def _partly(latency: PartLatency) -> str:
    is_part = latency.layers and 0 < latency.known < latency.layers
    return percent(latency.coverage) if is_part else ""


_FIGURES = (
    ListColumn("output", 15, lambda it: (it.node.output, "muted"), 104),
    ListColumn("times", 5, lambda it: (f"x{it.node.occurs}" if it.node.occurs > 1 else "", "muted"), 36),
    ListColumn("ms", 10, _of_latency(lambda it: it.told), 30),
    ListColumn("path", 4, _of_latency(lambda it: ("yes" if it.critical else "", "accent")), 50),
    ListColumn("run", 5, _of_latency(lambda it: (_partly(it), "warn")), 64),
    ListColumn("share", 7, _of_latency(lambda it: (percent(it.share, 1) if it.latency_ms else "", "muted")), 52),
)


def tree_line(row: TreeRow, width: int, search_text: str = "") -> Line:
    """Return a row of the tree; during a search names are shown beside titles."""
    columns = _columns(width, bool(search_text))
    room = width - sum(it.width + 1 for it in columns)
    # The indent is limited to keep deep titles readable.
    indent = Span(" " * min(row.node.depth * (2 if room >= _ROOMY else 1), room // 3))
    title = _title(row, room - len(indent.text), search_text.split())
    return list_row((indent, *title), columns, row, width)


def heading_line(width: int, is_searched: bool = False) -> Line:
    return list_heading("  part", _columns(width, is_searched), width)


def _columns(width: int, is_searched: bool) -> list[ListColumn]:
    bars = max(_LEAST_BAR, min(_MOST_BAR, _LEAST_BAR + (width - 50) // 2))
    drawn = _of_latency(lambda it: (bar(it.share, bars), "bar"))
    all_figures = (*_FIGURES, ListColumn("", bars, drawn, _ROOMY_FOR_BARS, is_right=False))
    figures = [it for it in all_figures if width >= it.begins_at]
    if is_searched or width < _ROOMY_FOR_NAMES:
        return figures
    # Titles get more space: they are indented, and titles of regions are long.
    names = min(max(_MOST_NAMES, width // 5), (width - sum(it.width + 1 for it in figures)) * 2 // 5) - 1

    def name(row: TreeRow) -> tuple[str, str]:
        # The details list the names of the layers in a region. The end of a name is where names of a model differ.
        told = row.node.names if row.node.sequence is not None else ""
        return f" {cut_start(told, names - 1)}", "muted"

    return [ListColumn(" name", names, name, is_right=False), *figures]


def _title(row: TreeRow, width: int, searched: list[str]) -> Line:
    node = row.node
    sign = Span(_NEITHER if row.is_open is None else _OPEN if row.is_open else _CLOSED, "accent")
    first, *others = map(printable, node.words)
    # The sign marks what prevents an estimate, without colours too.
    is_marked = row.latency is not None and row.latency.unmeasurable and node.layer is None and "!" not in first
    begun = (sign, Span(node.label, "muted"), *(Span("! ", "bad") for _ in range(bool(is_marked))))
    if searched:
        names = highlighted(printable(node.names), searched, "muted")
        return (*begun, *highlighted(first, searched), Span("  "), *names)
    style = "bad" if node.is_unmeasurable else "text" if row.is_open is None else "strong"
    title = (*begun, Span(first, style))
    for word in others:
        # A truncated number would be wrong.
        title = longer if width_of(longer := (*title, Span(f", {word}", "muted"))) <= width else title
    return title


class DetailsPanel(DocumentPanel):
    scope = scopes.DETAILS
    TITLE = "Details"
    ABOUT = (
        "The part of the model that is selected in the decomposition: its latency, its brick and context, the other "
        "models with that brick, the distribution of its samples, and its layers."
    )

    PLACEHOLDER = (Hint("Select a part of the model", "muted"), Hint("to see its details here.", "muted"))
    NOTHING_TO_COPY = NO_KEY

    def __init__(self) -> None:
        super().__init__()
        # The displayed part, its samples, and the other models with its brick.
        self.selected: PartDetails | None = None
        self._measured: Measurements | None = None
        self._other_models: Sequence[str] | None = None

    def show(self, selected: PartDetails | None) -> None:
        """Show a part of the model and drop what was read of another one."""
        before, self.selected = self.selected, selected
        if _measured_of(before) != _measured_of(selected):
            self._measured = None
        if _brick_of(before) != _brick_of(selected):
            self._other_models = None
        self._show()

    def show_measurements(self, measured: Measurements | None) -> None:
        self._measured = measured
        self._show()

    def show_other_models(self, names: Sequence[str]) -> None:
        self._other_models = names
        self._show()

    def copied(self) -> str | None:
        return _brick_of(self.selected)

    def _show(self) -> None:
        here = self.selected
        # Only another part scrolls to the top; a new estimate keeps the position.
        about = (here.node.title, here.node.names) if here else None
        self.show_parts(here.whole(self._measured, self._other_models) if here else (), about)


def _brick_of(selected: PartDetails | None) -> str | None:
    return selected.brick_key if selected else None


def _measured_of(selected: PartDetails | None) -> Pair | None:
    return selected.estimated.source if selected and selected.estimated else None
