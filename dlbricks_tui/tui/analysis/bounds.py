"""The panel of the bounds of a model, and of the gap above the best."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dlbricks_tui.documents.lines import BLANK, Line, Span, column, line, number_column, wrapped
from dlbricks_tui.tui.analysis import actions
from dlbricks_tui.tui.analysis.pictures import PARTS, gap_picture
from dlbricks_tui.tui.keys.keymap import Hint, key
from dlbricks_tui.tui.widgets.panel import Panel
from dlbricks_tui.tui.widgets.rows import LineRows
from dlbricks_tui.wording.analysis import BUSY_PEAKS, Bound, bounds_of, gap_heading, gap_parts
from dlbricks_tui.wording.numbers import capitalised

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dlbricks_tui.analysis.bounds import BestMeasured
    from dlbricks_tui.analysis.gap import Gap
    from dlbricks_tui.answers.analysis.analysing import Analysis

_NAME, _LATENCY, _PART, _SHARE = 20, 10, 16, 10


class BoundsPanel(Panel):
    """The measured and estimated latency, the bounds below them, and the parts of the gap."""

    scope = actions.BOUNDS
    TITLE = "Bounds"
    REACHED_BY = "analysis.go_to_bounds"
    PICTURED = True
    ABOUT = (
        "Best measured is the sum over all layers of the least time of any execution that was measured here, without "
        "conversions and calls. The roofline is the least time by arithmetic and bytes over the peaks of this system. "
        "The parts of the gap add up to the latency minus the best. {bounds.copy} copies a command that measures what "
        "is missing."
    )

    def __init__(self) -> None:
        self._list = LineRows(self._lines)
        super().__init__(self._list, id="bounds")
        self._found: Analysis | None = None
        # The command that each line belongs to.
        self._commands: tuple[str, ...] = ()

    def show(self, found: Analysis | None) -> None:
        self._found = found
        self.show_picture(None if found is None else gap_picture(found))
        self._list.remake()

    def action_copy(self) -> None:
        here = self._list.cursor
        command = self._commands[here] if here < len(self._commands) else ""
        self.copy(command or None, "This line has no command.")

    def _lines(self, width: int) -> tuple[Line, ...]:
        found = self._found
        made: list[tuple[Line, str]] = []
        # What can be done comes first.
        if found is not None and found.best is None:
            hint = Hint("On the workbench, {workbench.start_run} runs what is missing.", "muted").line
            made += [(each, "") for each in wrapped(hint, width)]
        for lack in found.missing if found else ():
            lines = (line(Span(f"Missing: {lack.what}", "warn")), line(Span("  "), Span(lack.command, "strong")))
            made += [(each, lack.command) for told in lines for each in wrapped(told, width)]
        told = (*([BLANK] if made else []), *_told(found)) if found else ()
        made += [(each, "") for one in told for each in wrapped(one, width)]
        self._commands = tuple(command for _, command in made)
        return tuple(each for each, _ in made)


def _told(found: Analysis) -> Iterator[Line]:
    for bound in bounds_of(found.baseline, found.best, found.roofline_ms, busy_peaks=found.lacks_peaks):
        yield _bound_line(bound)
        if bound.note and bound.latency_ms is not None:
            is_doubt = bound.note == BUSY_PEAKS
            again = f": {key('analysis.measure')} measures them again" if is_doubt else ""
            yield line(Span("  "), Span(f"{bound.note}{again}", "warn" if is_doubt else "muted"))
    if found.best is not None and found.gap is not None:
        yield BLANK
        yield from _gap_lines(found.gap, found.best)


def _bound_line(bound: Bound) -> Line:
    is_known = bound.latency_ms is not None
    return (
        column(bound.name, _NAME, "text" if is_known else "muted"),
        number_column(bound.text, _LATENCY, "strong" if is_known else "muted"),
    )


def _gap_lines(gap: Gap, best: BestMeasured) -> Iterator[Line]:
    yield line(Span(capitalised(gap_heading(gap)), "heading"))
    for part in gap_parts(gap, best):
        latency, share = part.texts
        yield line(
            Span(f"{part.mark} ", PARTS[part.name][0]),
            column(part.name, _PART),
            number_column(latency, _LATENCY + 2, "strong"),
            number_column(share, _SHARE, "muted"),
        )
