"""The box that asks before the executions are measured that what-ifs lack."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dlbricks_tui.tui.analysis import actions
from dlbricks_tui.tui.dialogs.dialog import ConfirmingScreen
from dlbricks_tui.tui.lines import BLANK, NAME_WIDTH, Line, Span, column, line
from dlbricks_tui.wording.numbers import counted, duration

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dlbricks_tui.answers.proving import MeasuringPlan


class MeasureScreen(ConfirmingScreen):
    """Returns True if the user confirms."""

    scope = actions.MEASURE
    HEADING = "Measure what the what-ifs lack"
    ABOUT = "The executions are measured in runs that you can watch, pause and cancel like any other."

    def __init__(self, plan: MeasuringPlan) -> None:
        super().__init__()
        self._plan = plan

    def paragraphs(self) -> Iterator[Line]:
        some = counted(len(self._plan.lacks), "execution")
        yield line(f"{self._plan.model} was not measured in {some}; that takes about ", _time(self._plan.seconds))
        yield BLANK
        for lack in self._plan.lacks:
            kind = "baseline" if lack.kind is None else lack.kind.value
            yield line(column(kind, NAME_WIDTH, "muted"), lack.in_words)
        yield BLANK
        several = counted(len(self._plan.requests), "run")
        yield line(Span(f"{several}, one after the other while this screen is open.", "muted"))


def _time(seconds: float) -> Span:
    return Span(f"{duration(seconds)}.", "strong")
