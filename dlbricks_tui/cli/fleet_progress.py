"""The progress of a fleet run on standard error: a live table on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING

from dlbricks_tui.cli.output import narrate, narration_console
from dlbricks_tui.fleet.request import FleetEnded, FleetProgress
from dlbricks_tui.jobs.events import Event
from dlbricks_tui.wording.fleets import WORKING, fleet_line, note_line, settled_line
from dlbricks_tui.wording.numbers import counted, duration

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

_SECONDS_PER_PICTURE = 0.5
_SECONDS_PER_LINE = 10.0
_MOST_HOSTS = 30
_BAR_WIDTH = 20


class ShownFleet:
    """The display of a fleet run: it shows events, and adds them up in `progress`; a quiet one shows failures only."""

    def __init__(
        self, console: Console | None, clock: Callable[[], float] = time.monotonic, *, quiet: bool = False
    ) -> None:
        self.progress = FleetProgress()
        self._clock = clock
        self._quiet = quiet
        self._open = ExitStack()
        self._draw: Callable[[RenderableType], None] | None = None
        if console is not None:
            from rich.live import Live

            live = self._open.enter_context(Live(console=console, auto_refresh=False, transient=True))
            self._draw = lambda picture: live.update(picture, refresh=True)
        self._show_again_at = 0.0

    def close(self) -> None:
        """Give the terminal back."""
        with suppress(OSError):
            self._open.close()

    def take(self, event: Event) -> None:
        """Show an event, and the progress where it is due."""
        note = note_line(event, self.progress)
        self.progress.take(event)
        if note:
            narrate(note)
        if self._quiet:
            return
        now = self._clock()
        # The last line agrees with the tables below it.
        is_last = isinstance(event, FleetEnded)
        if now < self._show_again_at and not is_last:
            return
        if self._draw is not None:
            # The fleet run goes on when the terminal is gone.
            with suppress(OSError):
                self._draw(_picture(self.progress))
            self._show_again_at = now + _SECONDS_PER_PICTURE
        elif self.progress.hosts:
            narrate(fleet_line(self.progress))
            self._show_again_at = now + _SECONDS_PER_LINE


@contextmanager
def shown_fleet(*, quiet: bool = False) -> Iterator[ShownFleet]:
    """Show a fleet run while it lasts, as standard error allows."""
    console = narration_console()
    draws = console.is_terminal and not console.is_dumb_terminal and not quiet
    shown = ShownFleet(console if draws else None, quiet=quiet)
    try:
        yield shown
    finally:
        shown.close()


def _picture(progress: FleetProgress) -> RenderableType:
    from rich.console import Group
    from rich.progress_bar import ProgressBar
    from rich.table import Table
    from rich.text import Text

    from dlbricks_tui.cli.drawing import name_cell

    table = Table.grid(padding=(0, 1))
    rows = list(progress.hosts.values())
    for it in rows[:_MOST_HOSTS]:
        left = f"{duration(it.seconds_left)} left" if it.seconds_left and it.state in WORKING else ""
        table.add_row(
            name_cell(it.name),
            Text(it.state.value),
            ProgressBar(total=max(1, it.of), completed=it.bricks, width=_BAR_WIDTH),
            Text(f"{it.bricks} of {it.of}" if it.of else ""),
            Text(f"{it.failed} failed" if it.failed else ""),
            Text(left),
        )
    more = len(rows) - _MOST_HOSTS
    orders = progress.orders.values()
    below = [counted(more, "more host")] if more > 0 else []
    below += [settled_line(it.settled for it in orders)] if orders else []
    return Group(table, *(Text(line, style="dim") for line in below))
