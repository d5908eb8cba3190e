"""What the cursor is on, in full."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual import on

from dlbricks_tui.tui.actions.action import Scope
from dlbricks_tui.tui.actions.registry import bindings
from dlbricks_tui.tui.lines import Line
from dlbricks_tui.tui.widgets.details.subject import NO_KEY
from dlbricks_tui.tui.widgets.details.view import NOTHING, details
from dlbricks_tui.tui.widgets.line_rows import LineRows
from dlbricks_tui.tui.widgets.panel import Panel
from dlbricks_tui.tui.widgets.rows import RowsView

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dlbricks_tui.estimate.knowledge import Pair
    from dlbricks_tui.tui.widgets.details.subject import Measurements, Subject


class DetailRows(LineRows):
    """What is known of the part of the model."""

    def __init__(self) -> None:
        super().__init__(self._details)
        self.subject: Subject | None = None
        self.measured: Measurements | None = None
        self.elsewhere: Sequence[str] | None = None

    def _details(self, width: int) -> tuple[Line, ...]:
        return details(self.subject, self.measured, self.elsewhere, width) if self.subject else ()


class DetailsPanel(Panel):
    """Parameters, shapes, where else the brick occurs, and its samples."""

    scope = Scope.DETAILS
    BINDINGS = bindings(Scope.DETAILS)
    TITLE = "Details"
    REACHED_BY = "workbench.go_to_details"
    ABOUT = (
        "All about the part of the model that the cursor is on in the decomposition: what it takes, its brick and "
        "context, where else the brick occurs, how its samples are distributed, and the layers in it."
    )

    def __init__(self) -> None:
        self._list = DetailRows()
        super().__init__(self._list, id="details")
        self._list.say(*NOTHING)

    @property
    def subject(self) -> Subject | None:
        """What is shown."""
        return self._list.subject

    def show(self, subject: Subject | None) -> None:
        """Shows a part of the model; what was read of another one goes."""
        before = self._list.subject
        if _measured_of(before) != _measured_of(subject):
            self._list.measured = None
        if _brick_of(before) != _brick_of(subject):
            self._list.elsewhere = None
        self._list.subject = subject
        if (before and (before.title, before.names)) != (subject and (subject.title, subject.names)):
            # An estimate that comes in while one reads leaves one where one reads.
            self._list.move_to(0)
        self._list.remake()

    def show_measurements(self, measured: Measurements | None) -> None:
        """Shows the samples of the brick."""
        self._list.measured = measured
        self._list.remake()

    def show_elsewhere(self, names: Sequence[str]) -> None:
        """Says which other models have the brick."""
        self._list.elsewhere = names
        self._list.remake()

    def on_click(self) -> None:
        self.take_focus()

    def action_copy(self) -> None:
        self.copy(_brick_of(self.subject), NO_KEY)

    @on(RowsView.Rested)
    def _rested(self, event: RowsView.Rested) -> None:
        event.stop()


def _brick_of(subject: Subject | None) -> str | None:
    return subject.brick_key if subject else None


def _measured_of(subject: Subject | None) -> Pair | None:
    return subject.part.source if subject and subject.part else None
