"""The progress of a load test on standard error: a line that changes on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING

from dlbricks_tui.cli.output import narrate
from dlbricks_tui.printable import printable
from dlbricks_tui.scenarios.messages import LoadMessage, LoadProgress, LoadTestStarted
from dlbricks_tui.scenarios.scenario import Scenario
from dlbricks_tui.wording.scenarios import message_line, progress_line

if TYPE_CHECKING:
    from rich.console import Console
    from rich.live import Live

_SECONDS_PER_LINE = 10.0


class LoadNarration:
    """Narrates the messages of the process that measures a scenario; a quiet one narrates nothing."""

    def __init__(
        self,
        scenario: Scenario,
        console: Console | None,
        clock: Callable[[], float] = time.monotonic,
        *,
        quiet: bool = False,
    ) -> None:
        self._scenario = scenario
        self._clock = clock
        self._quiet = quiet
        self._open = ExitStack()
        self._live: Live | None = None
        if console is not None and not quiet:
            from rich.live import Live

            # Drawn when a message arrives, about once a second.
            self._live = self._open.enter_context(Live(console=console, auto_refresh=False, transient=True))
        # The test in progress, its answered requests, and those over the bound.
        self._test: LoadTestStarted | None = None
        self._answered = self._slower = 0
        self._test_began = 0.0
        self._show_again_at = clock() + _SECONDS_PER_LINE

    def close(self) -> None:
        """Give the terminal back."""
        with suppress(OSError):
            self._open.close()

    def take(self, message: LoadMessage) -> None:
        """Narrate a message."""
        if self._quiet:
            return
        if isinstance(message, LoadTestStarted):
            self._test, self._answered, self._slower = message, 0, 0
            self._test_began = self._clock()
        if isinstance(message, LoadProgress):
            self._count(message)
            self._show()
        elif line := message_line(message, self._scenario):
            self._tell(line)

    def _tell(self, line: str) -> None:
        """Narrate a line that stays."""
        if self._live is None:
            narrate(line)
            return
        from rich.text import Text

        # Above the line that changes.
        with suppress(OSError):
            self._live.console.print(Text(printable(line)), soft_wrap=True)

    def _count(self, message: LoadProgress) -> None:
        bound_ms = self._scenario.bound_ms
        self._answered += len(message.latencies_ms)
        if bound_ms is not None:
            self._slower += sum(latency_ms > bound_ms for latency_ms in message.latencies_ms)

    def _show(self) -> None:
        if self._test is None:
            return
        now = self._clock()
        line = progress_line(self._test, self._scenario, self._answered, self._slower, now - self._test_began)
        if self._live is not None:
            from rich.text import Text

            # The test goes on when the terminal is gone.
            with suppress(OSError):
                self._live.update(Text(printable(line)), refresh=True)
        elif now >= self._show_again_at:
            narrate(line)
            self._show_again_at = now + _SECONDS_PER_LINE
