"""The box with the layers of a model under the peaks of its system."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dlbricks_tui.tui.dialogs.dialog import TextDialog
from dlbricks_tui.tui.lines import Line, line
from dlbricks_tui.tui.widgets.text import TextView
from dlbricks_tui.wording.roofline import roofline_lines

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dlbricks_tui.analysis.roofline import Roof
    from dlbricks_tui.answers.analysis.analysing import Analysis

_WIDEST = 120
# The lines and columns of the screen around the text of the box.
_LINES_AROUND, _COLUMNS_AROUND = 4, 6


class RooflineScreen(TextDialog[None]):
    """Draws the layers as letters under the peaks, on logarithmic axes."""

    ABOUT = (
        "Each letter is a layer: to the right the more operations it computes for a byte, to the top the faster it "
        "computes. Far below the roofs there is time to save."
    )

    def __init__(self, found: Analysis, roof: Roof) -> None:
        super().__init__()
        self._found = found
        self._roof = roof

    @property
    def heading(self) -> str:
        return f"Roofline of {self._found.source.name}"

    def on_resize(self) -> None:
        self.query_one(TextView).remake()

    def paragraphs(self) -> Iterator[Line]:
        size = self.app.size
        width = min(_WIDEST, size.width) - _COLUMNS_AROUND
        found = self._found
        for text in roofline_lines(found.points, found.baseline.graph, self._roof, width, size.height - _LINES_AROUND):
            yield line(text)
