"""The box with the open model in several variants: by batch size, or by number of threads."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING

from rich.text import Text

from dlbricks_tui.printable import printable
from dlbricks_tui.tui.dialogs.dialog import Box, TextDialog
from dlbricks_tui.tui.lines import BLANK, Line, Span, line
from dlbricks_tui.tui.widgets.text import TextView
from dlbricks_tui.tui.workbench import actions
from dlbricks_tui.wording.curves import WIDEST_CURVE, curve_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from dlbricks_tui.tui.workbench.work import VariantCurve

# The bounds to choose from, in milliseconds.
BOUNDS_MS = tuple(step * 10.0**power for power in range(5) for step in (1, 2, 5))
# The lines of the screen around the text of the box.
_LINES_AROUND = 7


class CurveScreen(TextDialog[None]):
    """Shows the estimates and end-to-end latencies of a model in several variants, as a table and charts."""

    scope = actions.CURVE
    ABOUT = (
        "The batch sizes of the open model that were measured on the system and runtime of the estimate, or its numbers"
        " of threads. The best one under a bound has the highest throughput of those that take at most so long. The "
        "efficiency of threads is the share of the ideal speed-up over the fewest of them."
    )

    def __init__(
        self, model: str, read_batches: Callable[[], VariantCurve], read_threads: Callable[[], VariantCurve]
    ) -> None:
        super().__init__()
        self._model = model
        self._read = {"Batch sizes": read_batches, "Threads": read_threads}
        self._axis = "Batch sizes"
        self._found: dict[str, VariantCurve] = {}
        self._bound_ms: float | None = None

    @property
    def heading(self) -> str:
        return f"{self._axis} of {self._model}"

    def on_mount(self) -> None:
        self._read_axis()

    def action_other_axis(self) -> None:
        self._axis = next(axis for axis in self._read if axis != self._axis)
        self.query_one(Box).border_title = Text(printable(self.heading))
        self._update()
        self._read_axis()

    def action_raise_bound(self) -> None:
        self._step_bound(1)

    def action_lower_bound(self) -> None:
        self._step_bound(-1)

    def action_drop_bound(self) -> None:
        self._bound_ms = None
        self._update()

    def _read_axis(self) -> None:
        axis = self._axis
        if axis not in self._found:
            self.run_in_thread(self._read[axis], "curve", lambda found: self._show(axis, found))

    def _step_bound(self, step: int) -> None:
        if self._bound_ms is None:
            curve = self._found.get(self._axis)
            known = [it.latency_ms for it in (curve.points if curve else ()) if it.latency_ms]
            middle_ms = median(known) if known else BOUNDS_MS[-1]
            self._bound_ms = next((bound for bound in BOUNDS_MS if bound >= middle_ms), BOUNDS_MS[-1])
        else:
            place = BOUNDS_MS.index(self._bound_ms) + step
            self._bound_ms = BOUNDS_MS[min(max(place, 0), len(BOUNDS_MS) - 1)]
        self._update()

    def _show(self, axis: str, found: VariantCurve) -> None:
        self._found[axis] = found
        self._update()

    def _update(self) -> None:
        # The box is as high as its content.
        self.query_one(TextView).remake()
        self.query_one(TextView).refresh(layout=True)

    def paragraphs(self) -> Iterable[Line]:
        found = self._found.get(self._axis)
        if found is None:
            yield line(Span("Reading the model in each variant.", "muted"))
            return
        width = min(WIDEST_CURVE, self.query_one(TextView).scrollable_content_region.width)
        most_lines = self.app.size.height - _LINES_AROUND
        if found.refusal:
            yield line(Span(found.refusal, "warn"))
            yield BLANK
            most_lines -= 2
        if found.points:
            for text in curve_lines(found.points, width, self._bound_ms, most_lines):
                yield line(text)
