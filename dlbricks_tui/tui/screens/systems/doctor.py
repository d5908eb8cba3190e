"""What on this host disturbs measurements, and what helps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual import on

from dlbricks_tui.tui.actions.action import Scope
from dlbricks_tui.tui.actions.registry import bindings
from dlbricks_tui.tui.lines import Line, Span, column, line, wrapped
from dlbricks_tui.tui.widgets.line_rows import LineRows
from dlbricks_tui.tui.widgets.panel import Panel
from dlbricks_tui.tui.widgets.rows import RowsView

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dlbricks_tui.host.noise import Finding

_VERDICT = 8
_SIGNS = {"noisy": "!", "unknown": "?", "quiet": " "}
_STYLES = {"noisy": "warn", "unknown": "muted", "quiet": "good"}


class DoctorPanel(Panel):
    """Each source of noise with its state, what it does to the numbers, and its cure."""

    scope = Scope.DOCTOR
    BINDINGS = bindings(Scope.DOCTOR)
    TITLE = "Doctor"
    REACHED_BY = "systems.go_to_doctor"
    ABOUT = (
        "What makes latencies vary on this host, as `dlbricks doctor` tells it, the worst first. "
        "{doctor.copy} copies a cure."
    )

    def __init__(self) -> None:
        self._list = LineRows(self._lines)
        super().__init__(self._list, id="doctor")
        self._found: tuple[Finding, ...] = ()
        # Which finding each line tells of.
        self._owners: tuple[Finding, ...] = ()
        self._list.say(line(Span("Looking at this host.", "muted")))

    def show(self, found: tuple[Finding, ...]) -> None:
        """Lists what was found, what disturbs first."""
        self._found = tuple(sorted(found, key=lambda it: list(_SIGNS).index(it.verdict.value)))
        noisy = sum(it.verdict.value == "noisy" for it in found)
        self.border_subtitle = f"{noisy} noisy" if noisy else ""
        self._list.remake()

    def on_click(self) -> None:
        self.take_focus()

    def action_copy(self) -> None:
        here = self._list.cursor
        cure = self._owners[here].cure if here < len(self._owners) else ""
        if cure:
            self.app.copy_to_clipboard(cure)
        else:
            self.notify("There is nothing to cure on this line.")

    @on(RowsView.Rested)
    def _rested(self, event: RowsView.Rested) -> None:
        event.stop()

    def _lines(self, width: int) -> tuple[Line, ...]:
        made = [(it, each) for it in self._found for long in _told(it) for each in wrapped(long, width)]
        self._owners = tuple(it for it, _ in made)
        return tuple(each for _, each in made)


def _told(found: Finding) -> Iterator[Line]:
    verdict = found.verdict.value
    head = column(f"{_SIGNS[verdict]} {verdict}", _VERDICT + 2, _STYLES[verdict])
    state = f": {found.state}" if found.state != verdict else ""
    yield line(head, Span(found.source, "strong"), state)
    if found.cure:
        yield line(column("", _VERDICT + 2), Span(found.effect, "muted"))
        yield line(column("    cure", _VERDICT + 2, "accent"), found.cure)
