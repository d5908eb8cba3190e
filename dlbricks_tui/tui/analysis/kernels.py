"""The box with the kernels that compute the layers of a model."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from dlbricks_tui.analysis.kernels import KernelsError, TimedKernel
from dlbricks_tui.documents.kernels import kernels_table, layer_kernels_table
from dlbricks_tui.documents.layout import laid_out
from dlbricks_tui.documents.lines import Line, Span, line
from dlbricks_tui.documents.parts import BLANK_LINE
from dlbricks_tui.tui.analysis import work
from dlbricks_tui.tui.dialogs.dialog import TextDialog
from dlbricks_tui.tui.keys.keymap import Hint
from dlbricks_tui.tui.widgets.text import TextView

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dlbricks_tui.answers.analysis.analysing import Analysis
    from dlbricks_tui.folders import DataFolder
    from dlbricks_tui.runtime.process import Worker


class KernelsScreen(TextDialog[Sequence[TimedKernel]]):
    """Asks the runtime for the kernels in a thread, and returns them; closing the box ends the process of the runtime.

    Kernels that are known already are shown at once.
    """

    ABOUT = (
        "The kernels by which the runtime computes the layers, those that take most first, and why it refused others "
        "that it tries first. A reason is derived if it follows from the shapes and the runtime does not tell it. "
        "Conversions change layouts within a layer. The runtime loads the model once more for it."
    )
    BOX_CLASSES = "-tall"

    def __init__(self, found: Analysis, data: DataFolder, known: Sequence[TimedKernel]) -> None:
        super().__init__()
        self._found = found
        self._data = data
        self._kernels = known
        self._refusal = self._waits_for = ""
        self._worker: Worker | None = None
        self._is_closed = False

    @property
    def heading(self) -> str:
        return f"Kernels of {self._found.source.name}"

    def on_mount(self) -> None:
        if not self._kernels:
            read = partial(work.read_kernels, self._found, self._data, self._wait, self._check, self._started)
            self.run_in_thread(read, "kernels", self._told)

    def on_unmount(self) -> None:
        self._is_closed = True
        if self._worker is not None:
            self._worker.interrupt()

    def action_close(self) -> None:
        self.dismiss(self._kernels)

    def paragraphs(self) -> Iterator[Line]:
        if self._refusal:
            yield line(Span(self._refusal, "warn"))
        elif not self._kernels:
            framework = self._found.baseline.execution.runtime.traits.title
            yield line(f"{framework} loads the model, and tells the kernels that it chooses.")
            if self._waits_for:
                yield line(f"It waits for {self._waits_for}.")
            yield Hint("{dialog.close} cancels it.", "muted").line
        else:
            width = self.query_one(TextView).scrollable_content_region.width
            parts = kernels_table(self._kernels), BLANK_LINE, layer_kernels_table(self._kernels)
            yield from laid_out(parts, width)

    def _wait(self, ahead: str) -> None:
        """Take the work before it in the line; the thread that waits calls this."""
        self.app.call_from_thread(self._show_waiting, ahead)

    def _check(self) -> None:
        """End the waiting with the box."""
        if self._is_closed:
            raise KernelsError("the box is closed")

    def _show_waiting(self, ahead: str) -> None:
        self._waits_for = ahead
        self.query_one(TextView).remake()

    def _started(self, worker: Worker) -> None:
        """Keep the process, to end it with the box; the thread that asks it calls this."""
        self._worker = worker
        if self._is_closed:
            worker.interrupt()

    def _told(self, found: Sequence[TimedKernel] | str) -> None:
        if isinstance(found, str):
            self._refusal = found
        else:
            self._kernels = found
        text = self.query_one(TextView)
        text.remake()
        text.refresh(layout=True)
