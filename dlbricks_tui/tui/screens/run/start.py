"""Starts a run: how it is to measure, and what that will take."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from rich.cells import cell_len
from textual.message import Message

from dlbricks_tui.tui.actions.action import Scope
from dlbricks_tui.tui.actions.registry import bindings
from dlbricks_tui.tui.lines import BLANK, Line, Span, column, line, wrapped
from dlbricks_tui.tui.live.run_settings import RunSetting, RunSettings, changed, shown
from dlbricks_tui.tui.live.words import joined
from dlbricks_tui.tui.screens.dialog import Dialog
from dlbricks_tui.tui.widgets.box import Box
from dlbricks_tui.tui.widgets.rows import RowsView
from dlbricks_tui.tui.widgets.said import Said
from dlbricks_tui.wording.numbers import counted, duration
from dlbricks_tui.wording.runs import names_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from textual.app import ComposeResult

    from dlbricks_tui.tui.live.prospect import Prospect

_NAME, _VALUE = 16, 13
_LINES_BELOW = 3


class StartRunScreen(Dialog[RunSettings]):
    """Gives the settings to start with."""

    scope = Scope.START_RUN
    BINDINGS = bindings(Scope.START_RUN, Scope.DIALOG)
    ABOUT = (
        "Bricks that were measured on this machine in the same way are not run again, unless you say so. The run is a "
        "process of its own that goes on if you leave, and can be stopped at any time: what is measured is kept."
    )

    class Foreseen(Message):
        """What a run with these settings would have to do."""

        def __init__(self, settings: RunSettings, prospect: Prospect) -> None:
            super().__init__()
            self.settings = settings
            self.prospect = prospect

    def __init__(
        self, models: tuple[str, ...], settings: RunSettings, foresee: Callable[[RunSettings], Prospect]
    ) -> None:
        super().__init__()
        self._models = models
        self._foresee = foresee
        self._rows = _SettingRows(settings)
        self._prospect: Prospect | None = None
        self._below = Said(self._below_lines, classes="run-prospect")

    def compose(self) -> ComposeResult:
        with Box(self._title, [Scope.START_RUN, Scope.DIALOG]):
            yield self._rows
            yield self._below

    def on_mount(self) -> None:
        self._rows.rows_changed()
        self._look_ahead()

    def on_start_run_screen_foreseen(self, event: Foreseen) -> None:
        if event.settings == self._rows.settings:
            self._prospect = event.prospect
            self._below.refresh(layout=True)

    def action_begin(self) -> None:
        self.dismiss(self._rows.settings)

    def action_next(self) -> None:
        self._change(1)

    def action_previous(self) -> None:
        self._change(-1)

    @property
    def _title(self) -> str:
        return f"Run {names_of(self._models)}"

    def _change(self, step: int) -> None:
        self._rows.settings = changed(self._rows.setting, self._rows.settings, step)
        self._rows.refresh()
        self._prospect = None
        self._below.refresh(layout=True)
        self._look_ahead()

    def _look_ahead(self) -> None:
        self.ask(partial(self._ask_ahead, self._rows.settings), "foresee")

    def _ask_ahead(self, settings: RunSettings) -> None:
        self.post_message(self.Foreseen(settings, self._foresee(settings)))

    def _below_lines(self, width: int) -> tuple[Line, ...]:
        found = wrapped(_foreseen(self._prospect), width)
        if self._prospect is not None and self._prospect.calibration_seconds:
            told = f"Of that about {duration(self._prospect.calibration_seconds)} calibrate the runtime."
            found += wrapped(line(Span(told, "muted")), width)
        if self._prospect is not None and self._prospect.holder:
            found += wrapped(line(Span(f"It waits for {self._prospect.holder}", "warn")), width)
        return (*found, *[BLANK] * (_LINES_BELOW - len(found)))


class _SettingRows(RowsView):
    def __init__(self, settings: RunSettings) -> None:
        super().__init__()
        self.settings = settings
        self._settings = tuple(RunSetting)

    @property
    def row_count(self) -> int:
        return len(self._settings)

    @property
    def setting(self) -> RunSetting:
        """The setting that the cursor is on."""
        return self._settings[self.cursor]

    def row(self, index: int, width: int) -> Line:
        setting = self._settings[index]
        value, meaning = shown(setting, self.settings)
        # The name of a runtime may be long, and is what counts.
        said = column(value, max(_VALUE, cell_len(value) + 1), "strong")
        return (column(setting.value, _NAME), said, Span(meaning, "muted"))


def _foreseen(prospect: Prospect | None) -> Line:
    if prospect is None:
        return line(Span("Looking at what is known already.", "muted"))
    spans = []
    if prospect.bricks or prospect.whole_models or not prospect.unread:
        spans.append(Span(f"{counted(prospect.bricks, 'brick')} to run", "strong"))
    if prospect.whole_models:
        spans.append(Span(f"{counted(prospect.whole_models, 'whole model')} to time", "strong"))
    if prospect.bricks or prospect.whole_models:
        spans.append(Span(f"about {duration(prospect.seconds)}", "strong"))
    if prospect.reused:
        spans.append(Span(f"{prospect.reused:,} known"))
    if prospect.failed_before:
        spans.append(Span(f"{prospect.failed_before:,} failed before", "warn"))
    if prospect.unread:
        spans.append(Span(f"{names_of(prospect.unread)} to be read first: what that takes is not known yet", "warn"))
    return joined(spans)
