"""The panel of the bounds of a model, and of the gap above the best."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dlbricks_tui.documents.layout import laid_out
from dlbricks_tui.documents.lines import BLANK, Line, Span, line, wrapped
from dlbricks_tui.tui.analysis import actions
from dlbricks_tui.tui.keys.keymap import Hint
from dlbricks_tui.tui.widgets.panel import Panel
from dlbricks_tui.tui.widgets.rows import LineRows

if TYPE_CHECKING:
    from dlbricks_tui.documents.analysis import AnalysisDocument


class BoundsPanel(Panel):
    """The measured and estimated latency, the bounds below them, and the parts of the gap."""

    scope = actions.BOUNDS
    TITLE = "Bounds"
    REACHED_BY = "analysis.go_to_bounds"
    PICTURED = True
    ABOUT = (
        "Best measured is the sum over all layers of the least time of any execution that was measured here, without "
        "conversions. The roofline is the least time by arithmetic and bytes over the peaks of this system. "
        "The parts of the gap add up to the latency minus the best. {bounds.copy} copies a command that measures what "
        "is missing."
    )

    def __init__(self) -> None:
        self._list = LineRows(self._lines)
        super().__init__(self._list, id="bounds")
        self._document: AnalysisDocument | None = None
        # The command that each line belongs to.
        self._commands: tuple[str, ...] = ()

    def show(self, document: AnalysisDocument) -> None:
        self._document = document
        self.show_picture(document.gap_picture)
        self._list.remake()

    def action_copy(self) -> None:
        here = self._list.cursor
        command = self._commands[here] if here < len(self._commands) else ""
        self.copy(command or None, "This line has no command.")

    def _lines(self, width: int) -> tuple[Line, ...]:
        document = self._document
        if document is None:
            return ()
        made: list[tuple[Line, str]] = []
        # What can be done comes first.
        if document.found.best is None:
            hint = Hint("On the workbench, {workbench.start_run} runs what is missing.", "muted").line
            made += [(each, "") for each in wrapped(hint, width)]
        for lack in document.found.missing:
            lines = (line(Span(f"Missing: {lack.what}", "warn")), line(Span("  "), Span(lack.command, "strong")))
            made += [(each, lack.command) for told in lines for each in wrapped(told, width)]
        made += [(BLANK, "")] * bool(made)
        made += [(each, "") for each in laid_out(document.latencies(), width)]
        if document.found.lacks_peaks:
            made.append((Hint("{analysis.measure} measures the peaks.", "muted").line, ""))
        if document.found.gap is not None:
            made += [(each, "") for each in (BLANK, *laid_out(document.gap(), width))]
        self._commands = tuple(command for _, command in made)
        return tuple(each for each, _ in made)
