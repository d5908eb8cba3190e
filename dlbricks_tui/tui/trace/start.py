"""The box that asks for the settings of a trace."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.cells import cell_len

from dlbricks_tui.documents.lines import Line, Span, column, line, wrapped
from dlbricks_tui.tui.dialogs.dialog import Box, Dialog
from dlbricks_tui.tui.trace import actions
from dlbricks_tui.tui.trace.settings import TraceSetting, TraceSettings
from dlbricks_tui.tui.widgets.rows import ItemRows
from dlbricks_tui.tui.widgets.text import TextLines

if TYPE_CHECKING:
    from textual.app import ComposeResult

_NAME, _VALUE = 14, 13
_TOLD = (
    "The model runs once more for each level: model, layer (the runtime's profiler), primitive (the kernels of oneDNN) "
    "and thread. Each level adds instruments to the one before, and so shows what they cost."
)


class StartTraceScreen(Dialog[TraceSettings]):
    """Returns the settings to trace the model with."""

    scope = actions.START
    CSS_PATH = "trace.tcss"
    ABOUT = (
        "A trace runs the model at rising levels of detail, in a process of its own. It waits for runs on this host, "
        "and the end of the screen ends it. A level that the runtime or the host cannot give is left out, with its "
        "reason."
    )

    def __init__(self, model: str, settings: TraceSettings) -> None:
        super().__init__()
        self._model = model
        self._rows = _SettingRows(settings)

    def compose(self) -> ComposeResult:
        with Box(f"Trace {self._model}", actions.START):
            yield self._rows
            yield TextLines(lambda width: tuple(wrapped(line(Span(_TOLD, "muted")), width)))

    def on_mount(self) -> None:
        self._rows.rows_changed()

    def action_begin(self) -> None:
        self.dismiss(self._rows.settings)

    def action_next(self) -> None:
        self._step(1)

    def action_previous(self) -> None:
        self._step(-1)

    def action_write(self) -> None:
        """Ask for the number of a setting that has one."""
        setting = self._rows.selected
        if setting is None or setting.most is None:
            self.notify("Only numbers are written; the other settings have a next value.")
            return
        from dlbricks_tui.tui.dialogs.writing import WritingScreen, one_number

        most, value = setting.most, getattr(self._rows.settings, setting.field)
        box = WritingScreen(
            setting.label.capitalize(),
            "" if value is None else f"{value}",
            "4",
            f"A whole number from 1 to {most:,}; an empty line is the usual value.",
            lambda text: setting.with_number(self._rows.settings, one_number(text, most)),
        )
        self.ask(box, self._take)

    def _step(self, step: int) -> None:
        if self._rows.selected is not None:
            self._take(self._rows.selected.stepped(self._rows.settings, step))

    def _take(self, settings: TraceSettings) -> None:
        self._rows.settings = settings
        self._rows.refresh()


class _SettingRows(ItemRows[TraceSetting]):
    def __init__(self, settings: TraceSettings) -> None:
        super().__init__()
        self.settings = settings
        self.items = tuple(TraceSetting)

    def row(self, index: int, width: int) -> Line:
        setting = self.items[index]
        value = setting.shown(self.settings)
        # The name of a runtime may be long and must be complete.
        said = column(value, max(_VALUE, cell_len(value) + 1), "strong")
        return (column(setting.label, _NAME), said, Span(setting.meaning, "muted"))
