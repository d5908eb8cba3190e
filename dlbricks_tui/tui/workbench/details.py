"""The panel of details about the selected part of the model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dlbricks_tui.documents.layout import laid_out
from dlbricks_tui.documents.lines import Line, Span, line
from dlbricks_tui.tui.widgets.panel import Panel
from dlbricks_tui.tui.widgets.rows import LineRows
from dlbricks_tui.tui.workbench import actions
from dlbricks_tui.tui.workbench.tree import NO_KEY

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from dlbricks_tui.documents.part_details import Measurements, PartDetails
    from dlbricks_tui.estimate.knowledge import Pair

NOTHING = (line(Span("Select a part of the model", "muted")), line(Span("to see its details here.", "muted")))


class DetailsPanel(Panel):
    """Parameters, shapes and samples of the selected part, and the other models with its brick."""

    scope = actions.DETAILS
    TITLE = "Details"
    REACHED_BY = "workbench.go_to_details"
    ABOUT = (
        "The part of the model that is selected in the decomposition: its latency, its brick and context, the other "
        "models with that brick, the distribution of its samples, and its layers."
    )

    def __init__(self) -> None:
        self._list = LineRows(self._lines)
        super().__init__(self._list, id="details")
        # The displayed part, its samples, and the other models with its brick.
        self.selected: PartDetails | None = None
        self._measured: Measurements | None = None
        self._other_models: Sequence[str] | None = None
        self.show_placeholder(*NOTHING)

    def show(self, selected: PartDetails | None) -> None:
        """Show a part of the model and drop what was read of another one."""
        before, self.selected = self.selected, selected
        if _measured_of(before) != _measured_of(selected):
            self._measured = None
        if _brick_of(before) != _brick_of(selected):
            self._other_models = None
        if _words_of(before) != _words_of(selected):
            # Only another part scrolls to the top; a new estimate keeps the position.
            self._list.move_to(0)
        self._list.remake()

    def show_measurements(self, measured: Measurements | None) -> None:
        self._measured = measured
        self._list.remake()

    def show_other_models(self, names: Sequence[str]) -> None:
        self._other_models = names
        self._list.remake()

    def action_copy(self) -> None:
        self.copy(_brick_of(self.selected), NO_KEY)

    def _lines(self, width: int) -> Iterable[Line]:
        return laid_out(self.selected.whole(self._measured, self._other_models), width) if self.selected else ()


def _brick_of(selected: PartDetails | None) -> str | None:
    return selected.brick_key if selected else None


def _measured_of(selected: PartDetails | None) -> Pair | None:
    return selected.estimated.source if selected and selected.estimated else None


def _words_of(selected: PartDetails | None) -> tuple[str, str] | None:
    return (selected.node.title, selected.node.names) if selected else None
