"""The progress of a job on standard error: a line that changes on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING

from dlbricks_tui.cli.output import narrate, narration_console
from dlbricks_tui.jobs.events import Event, Waiting
from dlbricks_tui.printable import printable

if TYPE_CHECKING:
    from rich.console import Console
    from rich.live import Live

    from dlbricks_tui.scenarios.scenario import Scenario

_SECONDS_PER_LINE = 10.0


class JobNarration:
    """Narrates the events of a job: `passing` ones by a line that changes, or now and then.

    `line_of` words an event; what it words as nothing is left out. A quiet one narrates only what has failed.
    """

    def __init__(
        self,
        line_of: Callable[[Event], str],
        passing: tuple[type[Event], ...] = (),
        console: Console | None = None,
        clock: Callable[[], float] = time.monotonic,
        *,
        quiet: bool = False,
        failures: tuple[type[Event], ...] = (),
    ) -> None:
        self._line_of = line_of
        self._passing = passing
        self._clock = clock
        self._quiet = quiet
        self._failures = failures
        self._open = ExitStack()
        self._live: Live | None = None
        if console is not None and not quiet:
            from rich.live import Live

            # Drawn when an event arrives, while no model is timed.
            self._live = self._open.enter_context(Live(console=console, auto_refresh=False, transient=True))
        self._show_again_at = clock() + _SECONDS_PER_LINE
        # All events but passing ones.
        self.taken: list[Event] = []

    def close(self) -> None:
        """Give the terminal back."""
        with suppress(OSError):
            self._open.close()

    def take(self, event: Event) -> None:
        """Narrate an event."""
        if not isinstance(event, self._passing):
            self.taken.append(event)
        if self._quiet and not isinstance(event, self._failures):
            return
        line = f"waiting for {event.holder}" if isinstance(event, Waiting) else self._line_of(event)
        if not line:
            return
        if not isinstance(event, self._passing):
            self._tell(line)
        elif self._live is not None:
            from rich.text import Text

            # The job goes on when the terminal is gone.
            with suppress(OSError):
                self._live.update(Text(printable(line)), refresh=True)
        elif self._clock() >= self._show_again_at:
            narrate(line)
            self._show_again_at = self._clock() + _SECONDS_PER_LINE

    def _tell(self, line: str) -> None:
        """Narrate a line that stays."""
        if self._live is None:
            narrate(line)
            return
        from rich.text import Text

        # Above the line that changes.
        with suppress(OSError):
            self._live.console.print(Text(printable(line)), soft_wrap=True)


def live_console() -> Console | None:
    """Return standard error if it is a terminal that can change a line."""
    console = narration_console()
    return console if console.is_terminal and not console.is_dumb_terminal else None


def narrated_load(scenario: Scenario, *, quiet: bool) -> JobNarration:
    """Return the narration of a load test."""
    from dlbricks_tui.scenarios.scenario import LoadProgress
    from dlbricks_tui.wording.scenarios import LoadWords

    return JobNarration(LoadWords(scenario), (LoadProgress,), live_console(), quiet=quiet)
