"""The progress of a run on standard error: a live picture on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING

from dlbricks_tui.cli.output import narrate, narrate_once, narration_console
from dlbricks_tui.jobs.events import Event
from dlbricks_tui.runs.events import (
    FailedBefore,
    ModelLoading,
    Planned,
    ProgramMeasured,
    RunEnded,
    ShapesRemembered,
    WorkerReplaced,
)
from dlbricks_tui.runs.progress import RunProgress
from dlbricks_tui.wording.events import (
    all_combinations,
    counts_of,
    doing_now,
    estimate_so_far,
    measured,
    noise_counts,
    noise_note,
    note_of,
)
from dlbricks_tui.wording.numbers import counted
from dlbricks_tui.wording.runs import Note, Tone, how_far

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

# Both are drawn between rounds only, while no program is being timed.
_SECONDS_PER_PICTURE = 0.25
_SECONDS_PER_LINE = 10.0
_MOST_MODELS = 5
_BAR_WIDTH = 30
# The options that change what an event reports.
_HINTS: dict[type[Event], str] = {
    FailedBefore: "--retry-failed tries it again",
    ShapesRemembered: "--input or --value gives others",
}


class ShownProgress:
    """The display of a run: it shows events, and adds them up in `progress`; a quiet one shows failures only.

    A run that takes `few_samples` by choice does not mind wide intervals.
    """

    def __init__(
        self,
        console: Console | None,
        clock: Callable[[], float] = time.monotonic,
        *,
        quiet: bool = False,
        few_samples: bool = False,
    ) -> None:
        self.progress = RunProgress()
        self._clock = clock
        self._quiet = quiet
        self._few_samples = few_samples
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
        if isinstance(event, ProgramMeasured) and not (event.brick or self._quiet or self._is_known(event)):
            narrate(measured(event))
        self.progress.take(event)
        note = note_of(event)
        if note is not None and self._is_shown(event, note):
            hint = _HINTS.get(type(event))
            # Each combination of a run reads its models anew.
            (narrate_once if hint else narrate)(f"{note.text}; {hint}" if hint else note.text)
        if self._quiet:
            return
        if isinstance(event, Planned) and event.number == event.of > 1:
            narrate(all_combinations(event.of, self.progress.planned or event))
        if isinstance(event, RunEnded):
            if self.progress.at_limits and not self._few_samples:
                narrate(_at_limits(self.progress))
            if noise := noise_note(self.progress.disturbances):
                narrate(noise)
        now = self._clock()
        if now < self._show_again_at:
            return
        if self._draw is not None:
            # The run goes on when the terminal is gone.
            with suppress(OSError):
                self._draw(_picture(self.progress))
            self._show_again_at = now + _SECONDS_PER_PICTURE
        elif self.progress.batch is not None and self.progress.ended is None:
            narrate(progress_line(self.progress))
            self._show_again_at = now + _SECONDS_PER_LINE

    def _is_shown(self, event: Event, note: Note) -> bool:
        if isinstance(event, RunEnded):
            # The command writes another summary, which lacks only the reason.
            return bool(event.message)
        if self._quiet:
            return note.tone in (Tone.FAILURE, Tone.DOUBT) and not isinstance(event, WorkerReplaced)
        return not isinstance(event, ModelLoading)

    def _is_known(self, event: ProgramMeasured) -> bool:
        program = self.progress.programs.get(event.program)
        return program is not None and program.measured is not None


@contextmanager
def shown(
    *, quiet: bool = False, few_samples: bool = False, clock: Callable[[], float] = time.monotonic
) -> Iterator[ShownProgress]:
    """Show a run while it lasts, as standard error allows; `clock` tells the seconds of the run between two lines."""
    console = narration_console()
    draws = console.is_terminal and not console.is_dumb_terminal and not quiet
    if draws:
        shown_progress = ShownProgress(console, quiet=quiet, few_samples=few_samples)
    else:
        shown_progress = ShownProgress(None, clock, quiet=quiet, few_samples=few_samples)
    try:
        yield shown_progress
    finally:
        shown_progress.close()


def progress_line(progress: RunProgress) -> str:
    """Return the progress of the run, the noise and the estimates so far, in one line."""
    words = [_how_far(progress), noise_counts(progress.disturbances)]
    estimates = _estimates(progress)
    # The estimates of many models would make the line too long to read.
    words += [f"{name} {estimate}" for name, estimate in estimates] if len(estimates) <= _MOST_MODELS else []
    return "; ".join(filter(None, words))


def _at_limits(progress: RunProgress) -> str:
    taken = counted(sum(program.measured is not None for program in progress.programs.values()), "result")
    return (
        f"{progress.at_limits} of {taken} are known less precisely than asked for, although they took the most "
        "samples: run again on a quieter host"
    )


def _estimates(progress: RunProgress) -> list[tuple[str, str]]:
    """Return the models that have an estimate, each with it."""
    return [(name, found) for name, event in progress.estimates.items() if (found := estimate_so_far(event))]


def _picture(progress: RunProgress) -> RenderableType:
    from rich.console import Group
    from rich.progress_bar import ProgressBar
    from rich.table import Table
    from rich.text import Text

    from dlbricks_tui.cli.drawing import name_cell

    head = Table.grid(padding=(0, 1))
    bar = ProgressBar(total=max(1, progress.total), completed=progress.done, width=_BAR_WIDTH)
    head.add_row(Text(progress.state.value, style="bold"), bar)
    models = Table.grid(padding=(0, 2))
    estimates = _estimates(progress)
    for name, estimate in estimates[:_MOST_MODELS]:
        models.add_row(name_cell(name), Text(estimate))
    more = len(estimates) - _MOST_MODELS
    rest = [Text(f"and {counted(more, 'more model')}", style="dim")] if more > 0 else []
    noise = noise_note(progress.disturbances)
    rest += [Text(noise, style="yellow")] if noise else []
    return Group(head, Text(_how_far(progress)), models, *rest)


def _how_far(progress: RunProgress) -> str:
    if progress.message:
        return progress.message
    failed = progress.bricks_failed + progress.models_failed
    counts = how_far(*counts_of(progress), failed, progress.seconds_left, progress.at_limits)
    return "; ".join(filter(None, (", ".join(phrase.text for phrase in counts), doing_now(progress))))
