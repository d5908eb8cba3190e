"""The boxes of the analysis screen: what to measure, and the roofline."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dlbricks_tui.answers.analysis.lacking import lacks_in_words
from dlbricks_tui.documents.lines import BLANK, NAME_WIDTH, Line, Span, column, line
from dlbricks_tui.tui.analysis import actions
from dlbricks_tui.tui.dialogs.dialog import Box, ConfirmingScreen, Dialog
from dlbricks_tui.tui.widgets.plot import PictureView
from dlbricks_tui.wording.numbers import counted, duration

if TYPE_CHECKING:
    from collections.abc import Iterator

    from textual.app import ComposeResult

    from dlbricks_tui.answers.analysis.lacking import MeasuringPlan
    from dlbricks_tui.documents.pictures import Plot


class MeasureScreen(ConfirmingScreen):
    """Returns True if the user confirms."""

    scope = actions.MEASURE
    HEADING = "Measure what is missing"
    ABOUT = (
        "The executions are measured in runs that you can watch, pause and cancel like any other. The peaks are the "
        "most arithmetic and the highest bandwidths that this host reaches; the roofline needs them."
    )

    def __init__(self, plan: MeasuringPlan) -> None:
        super().__init__()
        self._plan = plan

    def paragraphs(self) -> Iterator[Line]:
        plan = self._plan
        some = counted(len(plan.lacks), "execution")
        lacking = f"{plan.model} was not measured in {some}" if plan.lacks else "The peaks of this host are not known"
        yield line(f"{lacking}; that takes about ", _time(plan.seconds))
        yield BLANK
        for kind, words in lacks_in_words(plan):
            yield line(column(kind, NAME_WIDTH, "muted"), words)
        if plan.requests:
            yield BLANK
            several = counted(len(plan.requests), "run")
            yield line(Span(f"{several}, one after the other while this screen is open.", "muted"))


def _time(seconds: float) -> Span:
    return Span(f"{duration(seconds)}.", "strong")


class RooflineScreen(Dialog[None]):
    """Draws the layers as letters under the peaks, on logarithmic axes, as large as the terminal is."""

    ABOUT = (
        "Each letter is a layer: to the right the more operations it computes for a byte, to the top the faster it "
        "computes. Far below the roofs there is time to save."
    )

    def __init__(self, model: str, picture: Plot) -> None:
        super().__init__()
        self._model = model
        self._picture = PictureView()
        self._picture.show(picture)

    def compose(self) -> ComposeResult:
        with Box(f"Roofline of {self._model}", self.scope):
            yield self._picture
