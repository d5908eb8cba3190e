"""The box with all work in the line of this host, of any terminal."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

from dlbricks_tui.documents.lines import BLANK, Line, Span, column, line, spread
from dlbricks_tui.host.queue import WorkKind
from dlbricks_tui.tui.dialogs.dialog import Box, ConfirmingScreen, Dialog
from dlbricks_tui.tui.keys.keymap import Hint
from dlbricks_tui.tui.run import actions
from dlbricks_tui.tui.saving import show_message
from dlbricks_tui.tui.widgets.rows import ItemRows, place_of
from dlbricks_tui.wording.runs import how_far_in_line

if TYPE_CHECKING:
    from collections.abc import Iterable

    from textual.app import ComposeResult

    from dlbricks_tui.folders import DataFolder
    from dlbricks_tui.host.queue import Place

_KIND_WIDTH, _ROOMY = 16, 90


class QueueScreen(Dialog["Place"]):
    """Returns the work to follow, if its data is in this data folder."""

    scope = actions.QUEUE
    ABOUT = (
        "Only one piece of work measures on this host at a time. The others wait in the order in which they came, of "
        "all terminals, users and data folders. Work goes on when its terminal or the workbench is closed."
    )

    def __init__(self, places: tuple[Place, ...], data: DataFolder) -> None:
        super().__init__()
        self._data = data
        self._list = _Places()
        self._places = places

    def compose(self) -> ComposeResult:
        with Box("Work on this host", actions.QUEUE, classes="-tall"):
            yield self._list

    def on_mount(self) -> None:
        self._list.show(self._places)

    def show_queue(self, places: tuple[Place, ...]) -> None:
        """Show the line as it is now."""
        self._list.show(places)

    def action_follow(self) -> None:
        place = self._list.selected
        if place is None:
            return
        if place.data_folder == str(self._data.path.absolute()) and place.kind not in (
            WorkKind.PEAKS,
            WorkKind.KERNELS,
        ):
            self.dismiss(place)
        else:
            show_message(self.app, f"Nothing more is known of it here: {place}.")

    def action_cancel(self) -> None:
        place = self._list.selected
        if place is not None:
            self.app.push_screen(CancelWorkScreen(place), lambda agreed: self._cancel(place) if agreed else None)

    def _cancel(self, place: Place) -> None:
        # Its number may belong to another process by now.
        if not place.process.alive:
            show_message(self.app, f"{place.brief} has ended.")
            return
        try:
            os.kill(place.pid, signal.SIGTERM)
        except ProcessLookupError:
            return
        except PermissionError:
            show_message(self.app, f"Process {place.pid} belongs to {place.user}: ask them.", warning=True)


class _Places(ItemRows["Place"]):
    def __init__(self) -> None:
        super().__init__()
        self.show_placeholder(line("Nothing measures on this host now."), Hint("{dialog.close} goes back.", "muted"))

    def row(self, index: int, width: int) -> Line:
        place = self.items[index]
        state = how_far_in_line(place) or "measures" if place.measures else f"waits, place {index or 1}"
        where = f"{place.user}, process {place.pid} " if width >= _ROOMY else f"{place.pid} "
        left = (
            column(f" {place.kind or 'work'}", _KIND_WIDTH, "muted"),
            Span(f"{place.title}  "),
            Span(state, "good" if place.measures else "warn"),
        )
        return spread(left, (Span(f"  {where}", "muted"),), width)

    def show(self, places: tuple[Place, ...]) -> None:
        here = self.selected.process if self.selected else None
        self.items = places
        self.rows_changed()
        self.move_to(place_of(here, [place.process for place in places]))


class CancelWorkScreen(ConfirmingScreen):
    """Returns True if the user confirms."""

    HEADING = "Cancel this work?"
    scope = actions.CANCEL_WORK
    ABOUT = "Its process is asked to end, whoever has started it. Results that are stored by then are kept."

    def __init__(self, place: Place) -> None:
        super().__init__()
        self._place = place

    def paragraphs(self) -> Iterable[Line]:
        yield line(f"{self._place}.")
        yield BLANK
        yield line("Its process ends; what it has stored is kept.")
