"""The decomposition of the open model."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from textual import on
from textual.message import Message

from dlbricks_tui.tui.actions.action import Scope
from dlbricks_tui.tui.actions.registry import bindings
from dlbricks_tui.tui.key_words import Hint
from dlbricks_tui.tui.lines import Line, Span, line
from dlbricks_tui.tui.opened import id_of
from dlbricks_tui.tui.widgets.details.subject import NO_KEY, subject_of
from dlbricks_tui.tui.widgets.panel import Panel
from dlbricks_tui.tui.widgets.rows import RowsView
from dlbricks_tui.tui.widgets.tree.line import TreeRow, heading_line, tree_line
from dlbricks_tui.tui.widgets.tree.outline import Outline
from dlbricks_tui.wording.numbers import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypeAlias

    from dlbricks_tui.models.graph import Level
    from dlbricks_tui.tui.opened import ModelId, Opened
    from dlbricks_tui.tui.widgets.details.subject import Subject
    from dlbricks_tui.tui.widgets.search_line import SearchLine
    from dlbricks_tui.tui.widgets.tree.outline import Node
    from dlbricks_tui.tui.widgets.tree.tally import Tallies

    _Graph: TypeAlias = tuple[ModelId, Level]

CHOOSE_A_MODEL = (
    line(Span("No model is open.", "strong")),
    Hint("{models.open} among the models shows one.", "muted"),
)
NOTHING_FOUND = (
    line(Span("No operator, kind or name has all these words.")),
    Hint("{find.clear} shows the whole model again.", "muted"),
)


_NO_PATH = "There is no critical path: nothing of the model was measured yet."
_NO_GAP = "Everything in the model has a latency."
_SAID_SECONDS = 3.0


class _Place(NamedTuple):
    """Where the cursor was in a model that went away: cut anew, the model is shown from there."""

    graph: _Graph
    layer: int


class TreeRows(RowsView):
    """The parts of a model that are open."""

    def __init__(self) -> None:
        super().__init__()
        self.outline: Outline | None = None
        self.tallies: Tallies | None = None
        self.sought = ""

    @property
    def row_count(self) -> int:
        return len(self.outline.rows) if self.outline else 0

    @property
    def node(self) -> Node | None:
        """What the cursor is on."""
        return self.outline.rows[self.cursor] if self.outline and self.cursor < self.row_count else None

    def row(self, index: int, width: int) -> Line:
        if self.outline is None:
            return ()
        outline, node = self.outline, self.outline.rows[index]
        known = TreeRow(
            title=outline.title(node),
            size=outline.size(node),
            label=outline.label(node),
            # A region is known by what it is: of its layers the names are in the details.
            names=outline.names(node) if node.sequence is not None else "",
            output=outline.output(node),
            depth=node.depth,
            is_open=node.is_open if outline.can_open(node) else None,
            is_layer=node.layer is not None,
            occurs=outline.occurs(node),
            tally=self.tallies.of(node.region) if self.tallies else None,
        )
        return tree_line(known, width, self.sought)


class TreePanel(Panel):
    """Model, regions, branches, sequences and layers, with what each takes."""

    scope = Scope.TREE
    BINDINGS = bindings(Scope.TREE)
    TITLE = "Decomposition"
    REACHED_BY = "workbench.go_to_tree"
    SEARCH_HINT = "operator, kind or name"
    HEADED = True
    ABOUT = (
        "What the model is made of: modules that stand several times (A x4: four in a row), branches, and layer "
        "sequences. 'times' says how often the same stands in the model, as equal bricks run once. "
        "* is on the critical path; … leaves layers out, ~ was guessed, "
        "≈ was measured with samples that vary too much, · was not measured yet, ! cannot run here, "
        "and - is not needed, as sequences that overlap it are quicker."
    )

    class Selected(Message):
        """The cursor has come to rest on a part of the model: `subject` says which."""

    def __init__(self) -> None:
        self._list = TreeRows()
        super().__init__(self._list, id="tree")
        self._opened: Opened | None = None
        self._left: _Place | None = None
        self._list.say(*CHOOSE_A_MODEL)

    def heading(self, width: int) -> Line:
        return (Span(" "), *heading_line(width - 1, bool(self._list.sought))) if self._opened else ()

    def show(self, opened: Opened) -> None:
        """Shows a model from its top, or from where one was in it before it was cut anew."""
        left, outline = self._left, Outline(opened)
        self._opened, self._list.outline, self._list.tallies = opened, outline, None
        self._list.cursor = 0
        self._changed(outline.reveal_layer(left.layer) if left and left.graph == _graph_of(opened) else 0)
        self.post_message(self.Selected())

    @property
    def subject(self) -> Subject | None:
        """What the cursor is on, with what is known of it."""
        if self._opened is None or self._list.outline is None or self._list.node is None:
            return None
        return subject_of(self._list.node, self._opened, self._list.outline, self._list.tallies)

    def show_tallies(self, tallies: Tallies) -> None:
        """Shows latencies; what is open stays open."""
        self._list.tallies = tallies
        self._list.refresh()

    def show_waiting(self) -> None:
        """Says that a model is being read."""
        self._show_lines(line(Span("Reading the model.", "muted")))

    def show_problem(self, reason: str, next_step: str = "") -> None:
        """Says why there is nothing to show, and what to do; that may name actions in place of keys."""
        step = (Hint(next_step, "strong").line,) if next_step else ()
        self._show_lines(line(Span("This model cannot be shown.", "bad")), line(Span(reason)), *step)

    def on_search_line_sought(self, event: SearchLine.Sought) -> None:
        if self._list.outline:
            self._changed(self._list.outline.seek(event.text, self._list.cursor))

    def on_click(self) -> None:
        self.take_focus()

    def action_expand(self) -> None:
        self._move(lambda outline, cursor: outline.expand(cursor))

    def action_collapse(self) -> None:
        self._move(lambda outline, cursor: outline.collapse(cursor))

    def action_open_or_close(self) -> None:
        if self._list.node and self._list.node.is_open:
            self.action_collapse()
        else:
            self.action_expand()

    def action_expand_below(self) -> None:
        self._move(lambda outline, cursor: outline.expand_below(cursor))

    def action_collapse_all(self) -> None:
        self._move(lambda outline, cursor: outline.collapse_all())

    def action_next_equal(self) -> None:
        self._step_to_equal(1)

    def action_previous_equal(self) -> None:
        self._step_to_equal(-1)

    def action_next_critical(self) -> None:
        self._step_to(self._critical, 1, _NO_PATH)

    def action_previous_critical(self) -> None:
        self._step_to(self._critical, -1, _NO_PATH)

    def action_next_gap(self) -> None:
        self._step_to(self._gaps, 1, _NO_GAP)

    def action_previous_gap(self) -> None:
        self._step_to(self._gaps, -1, _NO_GAP)

    def action_copy(self) -> None:
        self.copy(self.subject.brick_key if self.subject else None, NO_KEY)

    @on(RowsView.Rested)
    def _rested(self, event: RowsView.Rested) -> None:
        event.stop()
        self.post_message(self.Selected())

    @property
    def _critical(self) -> Sequence[int]:
        return self._list.tallies.critical if self._list.tallies else ()

    @property
    def _gaps(self) -> Sequence[int]:
        return self._list.tallies.gaps if self._list.tallies else ()

    def _step_to(self, places: Sequence[int], step: int, nowhere: str) -> None:
        if places:
            self._move(lambda outline, cursor: outline.next_of(cursor, places, step))
        elif self._list.tallies:
            self.notify(nowhere, timeout=_SAID_SECONDS)

    def _step_to_equal(self, step: int) -> None:
        outline, node = self._list.outline, self._list.node
        if outline and node and not outline.has_equal(node):
            self.notify("Nothing else in the model is the same.", timeout=_SAID_SECONDS)
        else:
            self._move(lambda outline, cursor: outline.next_equal(cursor, step))

    def _move(self, step: Callable[[Outline, int], int]) -> None:
        """Takes a step through the outline; one that leads out of what a search has found ends the search."""
        if self._list.outline is None or self._list.node is None:
            return
        was_searched = self._list.outline.is_searched
        self._changed(step(self._list.outline, self._list.cursor))
        if was_searched and not self._list.outline.is_searched:
            self.search_line.end()

    def _changed(self, cursor: int) -> None:
        """Draws the rows as they are now, with the cursor where it belongs."""
        outline = self._list.outline
        self._list.sought = outline.sought if outline else ""
        self._list.say(*NOTHING_FOUND)
        self._list.rows_changed()
        if self._list.row_count:
            self._list.move_to(cursor)
        self._entitle()

    def _entitle(self) -> None:
        self.show_title()
        self.border_subtitle = ""
        if self._opened and self._list.outline:
            decomposition = self._opened.decomposition
            there, shown = len(decomposition.occurrences), self._list.row_count
            if self._list.outline.is_searched:
                self.show_title(f" {shown:,} of {there:,}")
            self.border_subtitle = counted(len(decomposition.bricks), "brick")
        self.heading_changed()

    def _show_lines(self, *lines: Line) -> None:
        """Takes the model away, and remembers where in it the cursor was."""
        self._leave()
        if self._list.sought:
            self.search_line.end()
        self._opened, self._list.outline, self._list.tallies = None, None, None
        self._list.sought = ""
        self._list.say(*lines)
        self._list.rows_changed()
        self._entitle()

    def _leave(self) -> None:
        outline, node = self._list.outline, self._list.node
        if self._opened is None or outline is None:
            return
        graph = _graph_of(self._opened)
        inside = outline.sequences_in(node) if node and node.parent else ()
        layers = self._opened.decomposition.occurrences[inside[0]].sequence.layers if inside else ()
        # Who walks through the settings stays on the layer where the walk began, whatever it is cut together with.
        if self._left is None or self._left.graph != graph or self._left.layer not in layers:
            self._left = _Place(graph, layers[0]) if layers else None


def _graph_of(opened: Opened) -> _Graph:
    return id_of(opened.wish.source), opened.wish.level
