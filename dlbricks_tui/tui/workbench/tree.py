"""The panel of the decomposition."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from textual.message import Message

from dlbricks_tui.documents.lines import Line, Span, line
from dlbricks_tui.tui.keys.keymap import Hint
from dlbricks_tui.tui.open_model import id_of
from dlbricks_tui.tui.widgets.panel import Panel
from dlbricks_tui.tui.widgets.rows import RowsView
from dlbricks_tui.tui.workbench import actions
from dlbricks_tui.tui.workbench.estimate_rows import CHOOSE_A_MODEL
from dlbricks_tui.tui.workbench.tree_line import TreeRow, heading_line, tree_line
from dlbricks_tui.wording.numbers import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypeAlias

    from dlbricks_tui.documents.outline import Node
    from dlbricks_tui.documents.part_details import PartDetails
    from dlbricks_tui.documents.part_latencies import PartLatencies
    from dlbricks_tui.models.graph import Level
    from dlbricks_tui.tui.open_model import ModelId, OpenModel
    from dlbricks_tui.tui.workbench.unfolded import Unfolded

    _Graph: TypeAlias = tuple[ModelId, Level]

NOTHING_FOUND = (
    line(Span("No operator, kind or name contains all of these words.")),
    Hint("{find.clear} shows the whole model again.", "muted"),
)


_NO_PATH = "There is no critical path yet: the model was not measured."
NO_KEY = "Only a layer sequence has a key: select one in the decomposition."
_NO_GAP = "Everything in the model has a latency."
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
    def node(self) -> Node | None:
        """The selected part."""
        return self.unfolded.rows[self.cursor] if self.unfolded and self.cursor < self.row_count else None

    def row(self, index: int, width: int) -> Line:
        if self.unfolded is None:
            return ()
        node = self.unfolded.rows[index]
        latency = self.latencies.of(node.region) if self.latencies else None
        is_open = self.unfolded.is_open(node) if self.unfolded.can_open(node) else None
        return tree_line(TreeRow(node, latency, is_open), width, self.unfolded.search_text)


class TreePanel(Panel):
    """Model, regions, branches, sequences and layers, with their latencies."""

    scope = actions.TREE
    TITLE = "Decomposition"
    REACHED_BY = "workbench.go_to_tree"
    SEARCH_HINT = "operator, kind or name"
    HEADED = True
    ABOUT = (
        "The parts of the model: modules that occur several times (each has a letter), branches, and layer "
        "sequences. 'times' is the number of equal parts in the model; equal bricks run once. * is on the critical "
        "path; … leaves layers out, ~ was predicted, ≈ was measured with samples that vary too much, · was not "
        "measured yet, ! cannot run here, and - is not needed, as sequences that overlap it are quicker."
    )

    class Selected(Message):
        """The cursor has settled on a part of the model."""

    def __init__(self) -> None:
        self._list = TreeRows()
        super().__init__(self._list, id="tree")
        self._graph: _Graph | None = None
        self._left: _Place | None = None
        self._list.show_placeholder(*CHOOSE_A_MODEL)

    def heading(self, width: int) -> Line:
        unfolded = self._list.unfolded
        return (Span(" "), *heading_line(width - 1, bool(unfolded.search_text))) if unfolded else ()

    def show(self, opened: OpenModel) -> None:
        """Show a model from its top, or from the selected layer if it was only cut anew."""
        from dlbricks_tui.tui.workbench.unfolded import Unfolded

        left, self._graph = self._left, (id_of(opened.spec.source), opened.spec.level)
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
        unfolded = self._list.unfolded
        if unfolded is not None:
            was_searched = unfolded.is_searched
            self._changed(unfolded.reveal_layer(layer))
            if was_searched:
                self.search_line.end()

    @property
    def latencies(self) -> PartLatencies | None:
        """The latencies on screen."""
        return self._list.latencies

    def show_latencies(self, latencies: PartLatencies | None) -> None:
        """Show latencies; the expanded parts stay expanded."""
        self._list.latencies = latencies
        self._list.refresh()

    def show_waiting(self) -> None:
        self._show_lines(line(Span("Reading the model.", "muted")))

    def show_problem(self, reason: str, next_step: str = "") -> None:
        """Show why there is no model, and what to do; `next_step` may name actions in place of keys."""
        step = (Hint(next_step, "strong").line,) if next_step else ()
        self._show_lines(line(Span("This model cannot be shown.", "bad")), line(Span(reason)), *step)

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

    def action_next_equal(self) -> None:
        self._step_to_equal(1)

    def action_previous_equal(self) -> None:
        self._step_to_equal(-1)

    def action_next_critical(self) -> None:
        self._step_to(lambda it: it.critical, 1, _NO_PATH)

    def action_previous_critical(self) -> None:
        self._step_to(lambda it: it.critical, -1, _NO_PATH)

    def action_next_missing(self) -> None:
        self._step_to(lambda it: it.missing, 1, _NO_GAP)

    def action_previous_missing(self) -> None:
        self._step_to(lambda it: it.missing, -1, _NO_GAP)

    def action_sort(self) -> None:
        latencies = self._list.latencies
        if latencies is None:
            self.notify("No latency of this model is known yet.", timeout=_SAID_SECONDS)
        else:
            self._move(lambda unfolded, cursor: unfolded.sort(latencies.slowest_first(), cursor))

    def action_copy(self) -> None:
        self.copy(self.selected_part.brick_key if self.selected_part else None, NO_KEY)

    def cursor_settled(self) -> None:
        self.post_message(self.Selected())

    def _step_to(self, places: Callable[[PartLatencies], Sequence[int]], step: int, nowhere: str) -> None:
        if self._list.latencies is None:
            return
        if found := places(self._list.latencies):
            self._move(lambda unfolded, cursor: unfolded.next_of(cursor, found, step))
        else:
            self.notify(nowhere, timeout=_SAID_SECONDS)

    def _step_to_equal(self, step: int) -> None:
        unfolded, node = self._list.unfolded, self._list.node
        if unfolded and node and not unfolded.has_equal(node):
            self.notify("No other part of the model is equal.", timeout=_SAID_SECONDS)
        else:
            self._move(lambda unfolded, cursor: unfolded.next_equal(cursor, step))

    def _move(self, step: Callable[[Unfolded, int], int]) -> None:
        """Move in the tree; a step out of the matches ends the search."""
        if self._list.unfolded is None or self._list.node is None:
            return
        was_searched = self._list.unfolded.is_searched
        self._changed(step(self._list.unfolded, self._list.cursor))
        if was_searched and not self._list.unfolded.is_searched:
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
            self.border_subtitle = counted(len(decomposition.bricks), "brick")
        self.heading_changed()

    def _show_lines(self, *lines: Line) -> None:
        """Remove the model, and remember the selected layer."""
        self._leave()
        if self._list.unfolded and self._list.unfolded.is_searched:
            self.search_line.end()
        self._list.unfolded, self._list.latencies = None, None
        self._list.show_placeholder(*lines)
        self._list.rows_changed()
        self._show_counts()

    def _leave(self) -> None:
        unfolded, node, graph = self._list.unfolded, self._list.node, self._graph
        if unfolded is None or graph is None:
            return
        inside = unfolded.outline.numbers(node.region) if node and node.parent else ()
        layers = unfolded.outline.decomposition.occurrences[inside[0]].sequence.layers if inside else ()
        # While settings change, the cursor stays on the layer where it was at first.
        if self._left is None or self._left.graph != graph or self._left.layer not in layers:
            self._left = _Place(graph, layers[0]) if layers else None
