"""The box with the batch curve of the open model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dlbricks_tui.tui.dialogs.dialog import TextDialog
from dlbricks_tui.tui.lines import BLANK, Line, Span, line
from dlbricks_tui.tui.widgets.text import TextView
from dlbricks_tui.wording.curves import WIDEST_CURVE, curve_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from dlbricks_tui.tui.workbench.work import BatchCurve


class CurveScreen(TextDialog[None]):
    """Shows the estimates and end-to-end latencies of a model by batch size, as a table and charts."""

    ABOUT = "The batch sizes of the open model that were measured on the system and runtime of the estimate."

    def __init__(self, model: str, read: Callable[[], BatchCurve]) -> None:
        super().__init__()
        self._model = model
        self._read = read
        self._found: BatchCurve | None = None

    @property
    def heading(self) -> str:
        return f"Batch sizes of {self._model}"

    def on_mount(self) -> None:
        self.run_in_thread(self._read, "curve", self._show)

    def _show(self, found: BatchCurve) -> None:
        self._found = found
        # The box is as high as its content.
        self.query_one(TextView).remake()
        self.query_one(TextView).refresh(layout=True)

    def paragraphs(self) -> Iterable[Line]:
        if self._found is None:
            yield line(Span("Reading the model at each batch size.", "muted"))
            return
        width = min(WIDEST_CURVE, self.query_one(TextView).scrollable_content_region.width)
        if self._found.refusal:
            yield line(Span(self._found.refusal, "warn"))
            yield BLANK
        if self._found.points:
            for text in curve_lines(self._found.points, width):
                yield line(text)
