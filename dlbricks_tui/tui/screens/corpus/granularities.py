"""What estimates save and how good they are, by granularity."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual import on

from dlbricks_tui.tui.actions.action import Scope
from dlbricks_tui.tui.key_words import Hint
from dlbricks_tui.tui.lines import Line, Span, bar, column, figure, line
from dlbricks_tui.tui.widgets.panel import Panel
from dlbricks_tui.tui.widgets.rows import RowsView
from dlbricks_tui.wording.numbers import percent, signed_percent

if TYPE_CHECKING:
    from dlbricks_tui.tui.screens.corpus.surveyed import Judged

_G, _FIGURE, _SYSTEM = 4, 9, 16
_BAR = 12


class GranularityRows(RowsView):
    """For each system and way, one row a granularity."""

    def __init__(self) -> None:
        super().__init__()
        self.judged: tuple[Judged, ...] = ()

    @property
    def row_count(self) -> int:
        return len(self.judged)

    def row(self, index: int, width: int) -> Line:
        group, found = self.judged[index]
        most = max(it.accuracy.speedup or 0.0 for it in self.judged)
        speedup = "-" if found.speedup is None else f"{found.speedup:.2f}x"
        room = min(_BAR, max(0, width - _G - 4 * _FIGURE - _SYSTEM - 1))
        drawn = bar((found.speedup or 0.0) / most if most else 0.0, room)
        return (
            column(f"{group.granularity} ", _G, "strong", right=True),
            figure(speedup, _FIGURE - 1, "strong"),
            Span(" "),
            *drawn,
            figure(percent(found.mean_absolute_error, 1), _FIGURE, "strong"),
            figure(signed_percent(found.worst_error), _FIGURE),
            figure(f"{found.models}", _FIGURE),
            Span(f"  {group.way.system}, {group.way.level.value}", "muted"),
        )


class GranularitiesPanel(Panel):
    """The paper's figures 9 and 10, of what was measured here."""

    scope = Scope.GRANULARITIES
    TITLE = "Speed-up and accuracy"
    REACHED_BY = "corpus.go_to_granularities"
    HEADED = True
    ABOUT = (
        "For each granularity that was run, over the models that were measured end to end and brick by brick: how much "
        "longer all models take than their unique bricks (the paper's speed-up), the mean of the estimates' errors "
        "without their signs, and the worst one."
    )

    def __init__(self) -> None:
        self._list = GranularityRows()
        super().__init__(self._list, id="granularities")
        self._list.say(line(Span("Reading the store.", "muted")))

    def heading(self, width: int) -> Line:
        room = min(_BAR, max(0, width - 1 - _G - 4 * _FIGURE - _SYSTEM - 1))
        titles = (("error", _FIGURE), ("worst", _FIGURE), ("models", _FIGURE))
        right = (column(text, wide, "muted", right=True) for text, wide in titles)
        first = (column("G ", 1 + _G, "muted", right=True), column("speed-up", _FIGURE + room, "muted"))
        return (*first, *right, Span("  on", "muted"))

    def show(self, judged: tuple[Judged, ...]) -> None:
        """Lists what was judged."""
        self._list.judged = judged
        self._list.say(
            line("Nothing was measured both end to end and brick by brick."),
            Hint("On the workbench, {workbench.start_run} runs the models, with the setting end to end;"),
            Hint("{workbench.coarser} before it takes another granularity to compare with."),
        )
        self._list.rows_changed()

    def on_click(self) -> None:
        self.take_focus()

    @on(RowsView.Rested)
    def _rested(self, event: RowsView.Rested) -> None:
        event.stop()
