"""The progress of jobs on standard error: a live picture on a terminal, plain lines now and then elsewhere."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from typing import TYPE_CHECKING

from dlbricks_tui.cli.output import narrate, narrate_once, narration_console
from dlbricks_tui.printable import printable
from dlbricks_tui.wording.commands import completed
from dlbricks_tui.wording.numbers import counted, duration

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from dlbricks_tui.api.fleets import FleetJob
    from dlbricks_tui.api.jobs import JobWords
    from dlbricks_tui.api.measuring import FollowedRun
    from dlbricks_tui.fleet.request import FleetProgress
    from dlbricks_tui.jobs.events import Event
    from dlbricks_tui.runs.events import RunProgress

_SECONDS_PER_LINE = 10.0
_MOST_MODELS, _MOST_HOSTS = 5, 30


class Display:
    """A place on standard error for a picture, or for a line every ten seconds; without a console for lines only."""

    # Pictures are drawn when an event arrives: between rounds, while no program is being timed.
    seconds_per_picture = 0.25

    def __init__(self, console: Console | None, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._open = ExitStack()
        self._show_again_at = 0.0
        self._console = console
        if console is not None:
            from rich.live import Live

            self._live = self._open.enter_context(Live(console=console, auto_refresh=False, transient=True))

    def close(self) -> None:
        """Give the terminal back."""
        with suppress(OSError):
            self._open.close()

    def draw(self, picture: RenderableType) -> None:
        """Draw a picture; the job goes on when the terminal is gone."""
        with suppress(OSError):
            self._live.update(picture, refresh=True)

    def show(self, picture: Callable[[], RenderableType], line: Callable[[], str], *, at_once: bool = False) -> None:
        """Draw a picture or narrate a line, if it is time for one; an empty line is none."""
        now = self._clock()
        if now < self._show_again_at and not at_once:
            return
        if self._console is not None:
            self.draw(picture())
            self._show_again_at = now + self.seconds_per_picture
        elif told := line():
            narrate(told)
            self._show_again_at = now + _SECONDS_PER_LINE


def live_console(*, quiet: bool = False) -> Console | None:
    """Return standard error if it is a terminal that can change a line."""
    console = narration_console()
    return console if console.is_terminal and not console.is_dumb_terminal and not quiet else None


class ShownProgress(Display):
    """The display of a run."""

    def __init__(self, run: FollowedRun, console: Console | None, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(console, clock)
        self.run = run

    @property
    def progress(self) -> RunProgress:
        """The run after all events so far."""
        return self.run.progress

    def take(self, event: Event) -> None:
        """Show an event, and the progress where it is due."""
        narrate(*self.run.take(event))
        if remark := self.run.remark(event):
            narrate_once(remark)
        if not self.run.quiet:
            is_measuring = self.progress.batch is not None and self.progress.ended is None
            self.show(self._picture, lambda: progress_line(self.progress) if is_measuring else "")

    def _picture(self) -> RenderableType:
        from rich.console import Group
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        from dlbricks_tui.cli.rendering import name_cell
        from dlbricks_tui.wording.events import noise_note

        head = Table.grid(padding=(0, 1))
        bar = ProgressBar(total=max(1, self.progress.total), completed=self.progress.done, width=30)
        head.add_row(Text(self.progress.state.value, style="bold"), bar)
        models = Table.grid(padding=(0, 2))
        estimates = _estimates(self.progress)
        for name, estimate in estimates[:_MOST_MODELS]:
            models.add_row(name_cell(name), Text(estimate))
        more, noise = len(estimates) - _MOST_MODELS, noise_note(self.progress.disturbances)
        rest = [Text(f"and {counted(more, 'more model')}", style="dim")] if more > 0 else []
        rest += [Text(noise, style="yellow")] if noise else []
        return Group(head, Text(_how_far(self.progress)), models, *rest)


def shown(
    *, quiet: bool = False, few_samples: bool = False, clock: Callable[[], float] = time.monotonic
) -> closing[ShownProgress]:
    """Show a run while it lasts, as standard error allows; `clock` tells the seconds of the run between two lines."""
    from dlbricks_tui.api.measuring import FollowedRun

    console = live_console(quiet=quiet)
    run = FollowedRun(quiet=quiet, few_samples=few_samples)
    return closing(ShownProgress(run, console, time.monotonic if console else clock))


def progress_line(progress: RunProgress) -> str:
    """Return the progress of the run, the noise and the estimates so far, in one line."""
    from dlbricks_tui.wording.events import noise_counts

    words = [_how_far(progress), noise_counts(progress.disturbances)]
    estimates = _estimates(progress)
    # The estimates of many models would make the line too long to read.
    words += [f"{name} {estimate}" for name, estimate in estimates] if len(estimates) <= _MOST_MODELS else []
    return "; ".join(filter(None, words))


def _estimates(progress: RunProgress) -> Sequence[tuple[str, str]]:
    """Return the models that have an estimate, each with it."""
    from dlbricks_tui.wording.events import estimate_so_far

    return [(name, found) for name, event in progress.estimates.items() if (found := estimate_so_far(event))]


def _how_far(progress: RunProgress) -> str:
    from dlbricks_tui.wording.events import counts_of, doing_now
    from dlbricks_tui.wording.runs import how_far

    if progress.message:
        return progress.message
    counts = how_far(*counts_of(progress), progress.failed, progress.seconds_left, progress.at_limits)
    return "; ".join(filter(None, (", ".join(phrase.text for phrase in counts), doing_now(progress))))


class ShownFleet(Display):
    """The display of a fleet run, which adds its events up in `progress`; a quiet one shows failures only."""

    seconds_per_picture = 0.5

    def __init__(
        self,
        progress: FleetProgress,
        console: Console | None,
        clock: Callable[[], float] = time.monotonic,
        *,
        quiet: bool = False,
    ) -> None:
        super().__init__(console, clock)
        self.progress, self._quiet = progress, quiet

    def take(self, event: Event) -> None:
        """Show an event, and the progress where it is due."""
        from dlbricks_tui.wording.jobs import fleet_line, note_line

        note = note_line(event, self.progress)
        self.progress.take(event)
        if note:
            narrate(note)
        if not self._quiet:
            # The last line agrees with the tables below it.
            is_last = self.progress.ended is event
            line = fleet_line(self.progress) if self.progress.hosts else ""
            self.show(self._picture, lambda: line, at_once=is_last)

    def _picture(self) -> RenderableType:
        from rich.console import Group
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        from dlbricks_tui.cli.rendering import name_cell
        from dlbricks_tui.wording.jobs import WORKING, settled_line

        table = Table.grid(padding=(0, 1))
        rows = list(self.progress.hosts.values())
        for it in rows[:_MOST_HOSTS]:
            left = f"{duration(it.seconds_left)} left" if it.seconds_left and it.state in WORKING else ""
            table.add_row(
                name_cell(it.host),
                Text(it.state.value),
                ProgressBar(total=max(1, it.of), completed=it.bricks, width=20),
                Text(f"{it.bricks} of {it.of}" if it.of else ""),
                Text(f"{it.failed} failed" if it.failed else ""),
                Text(left),
            )
        more, orders = len(rows) - _MOST_HOSTS, self.progress.orders.values()
        below = [counted(more, "more host")] if more > 0 else []
        below += [settled_line(it.settled for it in orders)] if orders else []
        return Group(table, *(Text(line, style="dim") for line in below))


def shown_fleet(fleet: FleetJob, *, quiet: bool = False) -> closing[ShownFleet]:
    """Show a fleet run while it lasts, as standard error allows."""
    return closing(ShownFleet(fleet.progress, live_console(quiet=quiet), quiet=quiet))


class JobNarration(Display):
    """Narrates the events of a job: passing ones by a line that changes, or now and then.

    A quiet one narrates only what has failed.
    """

    def __init__(
        self,
        words: JobWords,
        console: Console | None = None,
        clock: Callable[[], float] = time.monotonic,
        *,
        quiet: bool = False,
    ) -> None:
        super().__init__(None if quiet else console, clock)
        self._words, self._quiet = words, quiet
        self._show_again_at = clock() + _SECONDS_PER_LINE
        # The number of events that tell a failure.
        self.failed = 0

    def take(self, event: Event) -> None:
        """Narrate an event."""
        is_failure = isinstance(event, self._words.failures)
        self.failed += is_failure
        line = "" if self._quiet and not is_failure else self._words.line(event)
        if not line:
            return
        if self._console is None:
            if isinstance(event, self._words.passing):
                self.show(str, lambda: line)
            else:
                narrate(line)
            return
        from rich.text import Text

        if isinstance(event, self._words.passing):
            self.draw(Text(printable(line)))
        else:
            # Above the line that changes.
            with suppress(OSError):
                self._live.console.print(Text(printable(completed(line))), soft_wrap=True)


@contextmanager
def signals_interrupt() -> Iterator[None]:
    """Let SIGTERM and SIGHUP end the block as ctrl+c does, so that no process is left."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    # What `nohup` lets a program ignore stays ignored.
    taken = [it for it in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(it) is not signal.SIG_IGN]
    before = {number: signal.signal(number, interrupt) for number in taken}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
