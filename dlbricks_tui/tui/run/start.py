"""The box that asks for the settings of a run."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from dlbricks_tui.documents.lines import BLANK, Line, Span, line, wrapped
from dlbricks_tui.tui.dialogs.dialog import Box
from dlbricks_tui.tui.keys.keymap import Hint
from dlbricks_tui.tui.run import actions
from dlbricks_tui.tui.run.settings import RUN_ROWS, RunSettings, shown_rows
from dlbricks_tui.tui.run.words import joined
from dlbricks_tui.tui.widgets.form import FormDialog
from dlbricks_tui.tui.widgets.text import TextLines
from dlbricks_tui.wording.numbers import counted, duration, names_of

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from dlbricks_tui.tui.run.runs import RunPreview

_LINES_BELOW = 3
# The frame of the box, its padding, and the lines below the settings.
_AROUND = 8


class StartRunScreen(FormDialog[RunSettings]):
    """Returns the settings to start the run with."""

    scope = actions.START_RUN
    CSS_PATH = "run.tcss"
    ABOUT = (
        "Bricks that were measured on this system in the same way are not run again, unless you ask for it. The run is"
        " a separate process that continues if you quit. You can cancel it at any time; its measurements are kept."
    )

    def __init__(
        self,
        models: tuple[str, ...],
        settings: RunSettings,
        preview_run: Callable[[RunSettings], RunPreview],
        *,
        expert: bool,
        show_expert: Callable[[bool], object],
    ) -> None:
        """`show_expert` is called when the user shows expert settings, or hides them."""
        super().__init__(RUN_ROWS, settings)
        self._models = models
        self._preview_run = preview_run
        self._expert = expert
        self._show_expert = show_expert
        self._preview: RunPreview | None = None
        self._below = TextLines(self._below_lines, classes="run-preview")

    def compose(self) -> ComposeResult:
        with Box(f"Run {names_of(self._models)}", actions.START_RUN):
            yield self._rows
            yield self._below

    def on_mount(self) -> None:
        self._fit()
        self._start_preview()

    def on_resize(self) -> None:
        self._fit()

    def action_expert(self) -> None:
        """Show the expert settings too, or hide them."""
        self._expert = not self._expert
        self._show_expert(self._expert)
        self._fit()
        self._below.refresh(layout=True)

    def take(self, form: RunSettings) -> None:
        super().take(form)
        self._fit()
        self._show_preview(None)
        self._start_preview()

    def _fit(self) -> None:
        """Show the settings in a list as high as they are many, where the terminal has the room."""
        self._rows.show_rows(shown_rows(self._rows.form, len(self._models), expert=self._expert))
        self._rows.styles.height = max(1, min(len(self._rows.items), self.size.height - _AROUND))

    def _start_preview(self) -> None:
        self.run_in_thread(partial(self._preview_run, self._rows.form), "preview", self._show_preview)

    def _show_preview(self, preview: RunPreview | None) -> None:
        self._preview = preview
        self._below.refresh(layout=True)

    def _below_lines(self, width: int) -> tuple[Line, ...]:
        if self._preview is not None and self._preview.refusal:
            return tuple(wrapped(line(Span(self._preview.refusal, "warn")), width))
        found = wrapped(_preview_line(self._preview), width)
        if self._preview is not None and self._preview.is_guess:
            found += wrapped(line(Span("A guess: not all formats and batch sizes were read yet.", "warn")), width)
        if self._preview is not None and self._preview.waits_for:
            found += wrapped(line(Span(f"It will wait for {self._preview.waits_for}", "warn")), width)
        for warning in () if self._preview is None else self._preview.warnings:
            found += wrapped(line(Span(warning, "warn")), width)
        if hidden := len(RUN_ROWS) - len(self._rows.items):
            found += wrapped(Hint(f"{{start_run.expert}} shows {hidden} expert settings", "muted").line, width)
        return (*found, *[BLANK] * (_LINES_BELOW - len(found)))


def _preview_line(preview: RunPreview | None) -> Line:
    if preview is None:
        return line(Span("Looking up what is already measured.", "muted"))
    spans = []
    if preview.bricks or preview.whole_models or not preview.unread:
        most = "at most " * preview.is_probe or "about " * preview.is_guess
        spans.append(Span(f"{most}{counted(preview.bricks, 'brick')} to run", "strong"))
    if preview.whole_models:
        spans.append(Span(f"{counted(preview.whole_models, 'whole model')} to time", "strong"))
    if preview.bricks or preview.whole_models:
        spans.append(Span(f"about {duration(preview.seconds)}", "strong"))
    if preview.reused:
        spans.append(Span(f"{preview.reused:,} known"))
    if preview.failed_before:
        spans.append(Span(f"{preview.failed_before:,} failed before", "warn"))
    if preview.unread:
        spans.append(Span(f"{names_of(preview.unread)} not read yet: the time is unknown", "warn"))
    return joined(spans)
