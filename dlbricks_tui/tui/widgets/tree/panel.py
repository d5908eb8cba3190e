"""The decomposition of the open model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual import on
from textual.message import Message

from dlbricks_tui.tui.actions.action import Scope
from dlbricks_tui.tui.actions.registry import bindings
from dlbricks_tui.tui.lines import Line, Span, line
from dlbricks_tui.tui.widgets.details.subject import subject_of
from dlbricks_tui.tui.widgets.panel import Panel
from dlbricks_tui.tui.widgets.rows import RowsView
from dlbricks_tui.tui.widgets.tree.line import heading_line, node_line
from dlbricks_tui.tui.widgets.tree.outline import Outline
from dlbricks_tui.tui.widgets.tree.tally import Tallies

if TYPE_CHECKING:
    from dlbricks_tui.estimate.estimate import Estimate
    from dlbricks_tui.tui.opened import Opened
    from dlbricks_tui.tui.widgets.details.subject import Subject
    from dlbricks_tui.tui.widgets.search_line import SearchLine
    from dlbricks_tui.tui.widgets.tree.outline import Node

CHOOSE_A_MODEL = (
    line(Span("No model is open.", "strong")),
    line(Span("enter", "accent"), Span(" among the models shows one.", "muted")),
)


class TreeRows(RowsView):
    """The parts of a model that are open."""

    def __init__(self) -> None:
        super().__init__()
        self.outline: Outline | None = None
        self.tallies: Tallies | None = None

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
        node = self.outline.rows[index]
        tally = self.tallies.of(node) if self.tallies else None
        return node_line(node, self.outline.can_open(node), self.outline.occurs(node), tally, width)


class TreePanel(Panel):
    """Model, regions, branches, sequences and layers, with what each takes."""

    scope = Scope.TREE
    BINDINGS = bindings(Scope.TREE)
    TITLE = "2 Decomposition"
    SEARCH_HINT = "operator, kind or name"
    HEADED = True
    ABOUT = (
        "What the model is made of. 'times' says how often the like of a part stands in the model: equal bricks run "
        "once. * is on the critical path, > is a part that is measured in part only, and · one that is not measured."
    )

    class Selected(Message):
        """The cursor has come to rest on a part of the model: `subject` says which."""

    def __init__(self) -> None:
        self._list = TreeRows()
        super().__init__(self._list, id="tree")
        self._opened: Opened | None = None
        self._list.say(*CHOOSE_A_MODEL)

    def heading(self, width: int) -> Line:
        return (Span(" "), *heading_line(width - 1)) if self._opened else ()

    def show(self, opened: Opened) -> None:
        """Shows a model from its top."""
        self._opened = opened
        self._list.outline, self._list.tallies = Outline(opened), None
        self._list.cursor = 0
        self._changed(0)
        self.border_subtitle = f"{len(opened.decomposition.bricks):,} bricks"
        self.post_message(self.Selected())

    @property
    def subject(self) -> Subject | None:
        """What the cursor is on, with what is known of it."""
        if self._opened is None or self._list.outline is None or self._list.node is None:
            return None
        return subject_of(self._list.node, self._opened, self._list.outline, self._list.tallies)

    def show_estimate(self, estimate: Estimate) -> None:
        """Shows latencies; what is open stays open."""
        if self._opened and self._list.outline:
            self._list.tallies = Tallies(self._opened, self._list.outline, estimate)
            self._list.refresh()

    def show_waiting(self) -> None:
        """Says that a model is being read."""
        self._show_lines(line(Span("Reading the model.", "muted")))

    def show_problem(self, reason: str) -> None:
        """Says why there is nothing to show."""
        self._show_lines(line(Span("This model cannot be shown.", "bad")), line(Span(reason)))

    def on_search_line_sought(self, event: SearchLine.Sought) -> None:
        if self._list.outline:
            self._changed(self._list.outline.seek(event.text, self._list.cursor))

    def on_click(self) -> None:
        self.take_focus()

    def action_expand(self) -> None:
        if self._list.outline and self._list.node:
            self._changed(self._list.outline.expand(self._list.cursor))

    def action_collapse(self) -> None:
        if self._list.outline and self._list.node:
            self._changed(self._list.outline.collapse(self._list.cursor))

    def action_open_or_close(self) -> None:
        if self._list.node and self._list.node.is_open:
            self.action_collapse()
        else:
            self.action_expand()

    def action_expand_below(self) -> None:
        if self._list.outline and self._list.node:
            self._changed(self._list.outline.expand_below(self._list.cursor))

    def action_collapse_all(self) -> None:
        if self._list.outline:
            self._changed(self._list.outline.collapse_all())

    def action_next_equal(self) -> None:
        self._step_to_equal(1)

    def action_previous_equal(self) -> None:
        self._step_to_equal(-1)

    def action_next_critical(self) -> None:
        if self._list.outline and self._list.node and self._list.tallies:
            self._changed(self._list.outline.next_of(self._list.cursor, self._list.tallies.critical))

    @on(RowsView.Rested)
    def _rested(self, event: RowsView.Rested) -> None:
        event.stop()
        self.post_message(self.Selected())

    def _step_to_equal(self, step: int) -> None:
        if self._list.outline and self._list.node:
            self._changed(self._list.outline.next_equal(self._list.cursor, step))

    def _changed(self, cursor: int) -> None:
        """Draws the rows as they are now, with the cursor where it belongs."""
        self._list.say(line(Span("Nothing in the model is called so.", "muted")))
        self._list.rows_changed()
        if self._list.row_count:
            self._list.move_to(cursor)

    def _show_lines(self, *lines: Line) -> None:
        self._opened, self._list.outline, self._list.tallies = None, None, None
        self.border_subtitle = ""
        self._list.say(*lines)
        self._list.rows_changed()
