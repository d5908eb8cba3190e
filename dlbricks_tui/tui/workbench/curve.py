"""The box with the batch curve of the open model."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING

from dlbricks_tui.tui.dialogs.dialog import TextDialog
from dlbricks_tui.tui.lines import BLANK, Line, Span, line
from dlbricks_tui.tui.widgets.text import TextView
from dlbricks_tui.tui.workbench import actions
from dlbricks_tui.wording.curves import WIDEST_CURVE, curve_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from dlbricks_tui.tui.workbench.work import BatchCurve

# The bounds to choose from, in milliseconds.
BOUNDS_MS = tuple(step * 10.0**power for power in range(5) for step in (1, 2, 5))
# The lines of the screen around the text of the box.
_LINES_AROUND = 7


class CurveScreen(TextDialog[None]):
    """Shows the estimates and end-to-end latencies of a model by batch size, as a table and charts."""

    scope = actions.CURVE
    ABOUT = (
        "The batch sizes of the open model that were measured on the system and runtime of the estimate. The best one "
        "under a bound has the highest throughput of those that take at most so long."
    )

    def __init__(self, model: str, read: Callable[[], BatchCurve]) -> None:
        super().__init__()
        self._model = model
        self._read = read
        self._found: BatchCurve | None = None
        self._bound_ms: float | None = None

    @property
    def heading(self) -> str:
        return f"Batch sizes of {self._model}"

    def on_mount(self) -> None:
        self.run_in_thread(self._read, "curve", self._show)

    def action_raise_bound(self) -> None:
        self._step_bound(1)

    def action_lower_bound(self) -> None:
        self._step_bound(-1)

    def action_drop_bound(self) -> None:
        self._bound_ms = None
        self._update()

    def _step_bound(self, step: int) -> None:
        if self._bound_ms is None:
            known = [it.latency_ms for it in (self._found.points if self._found else ()) if it.latency_ms]
            middle_ms = median(known) if known else BOUNDS_MS[-1]
            self._bound_ms = next((bound for bound in BOUNDS_MS if bound >= middle_ms), BOUNDS_MS[-1])
        else:
            place = BOUNDS_MS.index(self._bound_ms) + step
            self._bound_ms = BOUNDS_MS[min(max(place, 0), len(BOUNDS_MS) - 1)]
        self._update()

    def _show(self, found: BatchCurve) -> None:
        self._found = found
        self._update()

    def _update(self) -> None:
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
            most_lines = self.app.size.height - _LINES_AROUND
            for text in curve_lines(self._found.points, width, self._bound_ms, most_lines):
                yield line(text)
