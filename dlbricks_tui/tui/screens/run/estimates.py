"""What the run has found out about its models by now."""

from textual import on

from dlbricks_tui.tui.actions.action import Scope
from dlbricks_tui.tui.lines import Line, Span, line
from dlbricks_tui.tui.live.snapshot import RunModel
from dlbricks_tui.tui.screens.run.estimate_row import heading, row
from dlbricks_tui.tui.widgets.panel import Panel
from dlbricks_tui.tui.widgets.rows import RowsView


class EstimateRows(RowsView):
    """A row a model."""

    def __init__(self) -> None:
        super().__init__()
        self.estimates: tuple[RunModel, ...] = ()
        self.say(line(Span("Estimates come with the first samples.", "muted")))

    @property
    def row_count(self) -> int:
        return len(self.estimates)

    def row(self, index: int, width: int) -> Line:
        return row(self.estimates[index], width)


class EstimatesPanel(Panel):
    """How the intervals of the estimates shrink."""

    scope = Scope.RUN_ESTIMATES
    TITLE = "Estimates"
    REACHED_BY = "run.go_to_estimates"
    HEADED = True
    ABOUT = (
        "The sequential estimate of each model from the samples so far. ± is half of its 95 % interval; the blocks "
        "show how that has changed since the run began. > says that some of the model is not measured yet."
    )

    def __init__(self) -> None:
        self._list = EstimateRows()
        super().__init__(self._list, id="run-estimates")

    def heading(self, width: int) -> Line:
        return (Span(" "), *heading(width - 1))

    def show(self, estimates: tuple[RunModel, ...]) -> None:
        """Lists the estimates as they stand now."""
        if estimates is not self._list.estimates:
            self._list.estimates = estimates
            self._list.rows_changed()

    def on_click(self) -> None:
        self.take_focus()

    @on(RowsView.Rested)
    def _rested(self, event: RowsView.Rested) -> None:
        event.stop()
