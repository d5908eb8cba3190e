"""How a run gets on, on standard error: a live picture on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING

from dlbricks_tui.cli.output import counted, narrate, narration_console
from dlbricks_tui.measure.events import Calibrated, Calibrating, CalibrationFailed, Event
from dlbricks_tui.runs.events import (
    FailedBefore,
    LayerUnmeasurable,
    LevelLowered,
    ModelLeftOut,
    Paused,
    Planned,
    ProgramFailed,
    ProgramMeasured,
    Resumed,
    RunEnded,
    RunStarted,
    ShapesRemembered,
    Waiting,
    WorkerReplaced,
)
from dlbricks_tui.runs.progress import RunProgress
from dlbricks_tui.store.histogram import format_ms

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

# On a terminal the picture, elsewhere a line; drawn between rounds only, when nothing is being timed.
_SECONDS_PER_PICTURE = 0.25
_SECONDS_PER_LINE = 10.0
_MOST_MODELS = 5
_BAR_WIDTH = 30


class ShownProgress:
    """Takes up events and shows them; `progress` is what they amount to. Quiet, it shows failures only."""

    def __init__(
        self, console: Console | None, clock: Callable[[], float] = time.monotonic, *, quiet: bool = False
    ) -> None:
        self.progress = RunProgress()
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
        """Shows what happened."""
        if isinstance(event, ProgramMeasured) and not (event.brick or self._quiet or self._is_known(event)):
            narrate(_measured(event))
        self.progress.take(event)
        told = _failure(event)
        if told is None and not self._quiet:
            told = _told_of_course(event)
        if told is not None:
            narrate(told)
        if self._quiet:
            return
        if isinstance(event, RunEnded):
            if self.progress.at_limits:
                narrate(_at_limits(self.progress))
            if self.progress.disturbances.counts:
                narrate(str(self.progress.disturbances))
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

    def _is_known(self, event: ProgramMeasured) -> bool:
        program = self.progress.programs.get(event.program)
        return program is not None and program.measured is not None


@contextmanager
def shown(*, quiet: bool = False) -> Iterator[ShownProgress]:
    """Shows a run as long as it lasts, in the way that standard error allows; quiet, it shows failures only."""
    console = narration_console()
    draws = console.is_terminal and not console.is_dumb_terminal and not quiet
    shown_progress = ShownProgress(console if draws else None, quiet=quiet)
    try:
        yield shown_progress
    finally:
        shown_progress.close()


def progress_line(progress: RunProgress) -> str:
    """How far the run is and what is known by now, in one line."""
    words = [_counts(progress)]
    words += [progress.disturbances.counts] if progress.disturbances.counts else []
    estimates = _estimates(progress)
    # More of them would make a line that nobody reads.
    words += [f"{name} {estimate}" for name, estimate in estimates] if len(estimates) <= _MOST_MODELS else []
    return "; ".join(words)


def duration(seconds: float) -> str:
    """A time as a person says it."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"


def _at_limits(progress: RunProgress) -> str:
    """The number of programs with too wide an interval, and what to do about it."""
    measured = sum(program.measured is not None for program in progress.programs.values())
    return (
        f"{progress.at_limits} of {measured} are known less precisely than asked for, although they took the most "
        "samples: run again on a quieter host"
    )


def _measured(event: ProgramMeasured) -> str:
    bounds = f"{format_ms(event.low_ms)} to {format_ms(event.high_ms)}"
    return f"measured: {event.label}: {format_ms(event.trimmed_mean_ms)} ms ({bounds})"


def _failure(event: Event) -> str | None:
    """The line for a failure, which a quiet run shows too; None for other events."""
    if isinstance(event, ProgramFailed):
        return f"failed: {event.label} ({event.brick[:12] or 'whole model'}): {event.reason}: {event.message}"
    if isinstance(event, FailedBefore):
        return f"failed before (--retry-failed tries again): {event.label}: {event.reason}"
    if isinstance(event, LayerUnmeasurable):
        return f"unmeasurable: {event.model}: {event.layer}: {event.reason}"
    if isinstance(event, LevelLowered):
        return f"{event.model}: its written layers are measured, as it cannot be fused: {event.reason}"
    if isinstance(event, ModelLeftOut):
        return f"left out: {event.reason}"
    if isinstance(event, CalibrationFailed):
        return f"not calibrated, so that estimates may be some percent too low: {event.reason}"
    if isinstance(event, RunEnded) and event.message:
        return f"{event.state}: {event.message}"
    return None


def _told_of_course(event: Event) -> str | None:
    if isinstance(event, RunStarted):
        return f"run {event.run}"
    if isinstance(event, ShapesRemembered):
        return f"{event.model}: its inputs have the shapes given before: {event.shapes}; --input gives others"
    if isinstance(event, Waiting):
        return f"waiting for {event.holder}"
    if isinstance(event, Planned):
        return _plan(event)
    if isinstance(event, WorkerReplaced):
        return f"a fresh worker takes over: {event.message}"
    if isinstance(event, Calibrating):
        return f"calibrating on network {event.number} of {event.of}: {event.network}"
    if isinstance(event, Calibrated):
        return f"calibrated: on networks that had no part in it the mean error is {event.error:.1%}"
    if isinstance(event, Paused | Resumed):
        return type(event).__name__.lower()
    return None


def _plan(event: Planned) -> str:
    left = event.bricks - event.bricks_reused - event.bricks_failed_before
    whole = event.models - event.models_reused - event.models_failed_before
    parts = [f"{counted(event.bricks, 'brick')}: {event.bricks_reused} known, {left} to measure"]
    parts += [f"{whole} of {counted(event.models, 'model')} to time end to end"] if event.models else []
    parts += [f"about {duration(event.expected_seconds)}"] if left or whole else []
    return "; ".join(parts)


def _estimates(progress: RunProgress) -> list[tuple[str, str]]:
    """The models of which anything is known, with what is."""
    found = []
    for name, it in progress.estimates.items():
        if it.sequential_ms is not None and it.low_ms is not None and it.high_ms is not None:
            without = it.missing_layers + it.unmeasurable_layers
            partly = f", without {without} of its layers" if without else ""
            partly += f", {it.sampled_layers} still being sampled" if it.sampled_layers else ""
            bounds = f"{format_ms(it.low_ms)} to {format_ms(it.high_ms)}"
            found.append((name, f"{format_ms(it.sequential_ms)} ms ({bounds}{partly})"))
    return found


def _picture(progress: RunProgress) -> RenderableType:
    from rich.console import Group
    from rich.progress_bar import ProgressBar
    from rich.table import Table
    from rich.text import Text

    from dlbricks_tui.cli.tables import name_cell

    head = Table.grid(padding=(0, 1))
    bar = ProgressBar(total=max(1, progress.total), completed=progress.done, width=_BAR_WIDTH)
    head.add_row(Text(progress.state.value, style="bold"), bar)
    models = Table.grid(padding=(0, 2))
    estimates = _estimates(progress)
    for name, estimate in estimates[:_MOST_MODELS]:
        models.add_row(name_cell(name), Text(estimate))
    more = len(estimates) - _MOST_MODELS
    rest = [Text(f"and {more} more models", style="dim")] if more > 0 else []
    noise = str(progress.disturbances)
    rest += [Text(noise, style="yellow")] if noise else []
    return Group(head, Text(_counts(progress)), models, *rest)


def _counts(progress: RunProgress) -> str:
    if progress.message:
        return progress.message
    if progress.loading is not None:
        return f"reading {progress.loading.model} ({progress.loading.number} of {progress.loading.of})"
    starting = progress.batch is None and progress.calibrating is None and progress.done < progress.total
    if starting:
        words = ["starting a worker"]
    elif progress.calibrating is not None:
        words = [f"calibrating, network {progress.calibrating.number} of {progress.calibrating.of}"]
    else:
        words = [f"{progress.done} of {progress.total} done"]
    failed = progress.bricks_failed + progress.models_failed
    words += [f"{failed} failed"] if failed else []
    words += [f"{progress.at_limits} stopped at a limit"] if progress.at_limits else []
    if counts := [len(program.samples_ms) for program in progress.on_bench]:
        words.append(f"{len(counts)} being sampled, {max(counts)} samples so far")
    words += [f"about {duration(progress.seconds_left)} left"] if progress.seconds_left else []
    return ", ".join(words)
