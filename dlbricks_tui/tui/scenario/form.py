"""The panel of the settings of a scenario."""

from __future__ import annotations

from dataclasses import dataclass

from rich.cells import cell_len
from textual.message import Message

from dlbricks_tui.documents.lines import Line, Span, column
from dlbricks_tui.tui.scenario import actions
from dlbricks_tui.tui.scenario.settings import ScenarioSetting, ScenarioSettings
from dlbricks_tui.tui.widgets.panel import Panel
from dlbricks_tui.tui.widgets.rows import ItemRows

_NAME, _VALUE = 12, 9


class SettingsPanel(Panel):
    """A row for each setting with its value."""

    scope = actions.SETTINGS
    TITLE = "Scenario"
    REACHED_BY = "scenario.go_to_settings"
    ABOUT = (
        "How requests arrive and how they are served; the prediction follows each change. The usual bound of a server "
        "is ten times what a request takes. Short tests have the fewest queries that decide about the percentile. "
        "{load_settings.write} writes a value of your own."
    )

    @dataclass
    class Chosen(Message):
        """The user has changed a setting."""

        settings: ScenarioSettings

    def __init__(self, settings: ScenarioSettings) -> None:
        self._list = _SettingRows(settings)
        super().__init__(self._list, id="load-settings")

    def on_mount(self) -> None:
        self._list.rows_changed()

    def show(self, settings: ScenarioSettings, bound_ms: float | None = None) -> None:
        """Show settings, and the bound that the usual one stands for."""
        self._list.settings, self._list.bound_ms = settings, bound_ms
        self._list.refresh()

    def action_next(self) -> None:
        self._step(1)

    def action_previous(self) -> None:
        self._step(-1)

    def action_write(self) -> None:
        setting = self._list.selected
        if setting is not None and setting.written is not None:
            self.post_message(self.Writing(setting))
        else:
            self._step(1)

    @dataclass
    class Writing(Message):
        """The user wants to write the value of a setting."""

        setting: ScenarioSetting

    def _step(self, step: int) -> None:
        if self._list.selected is not None:
            self.post_message(self.Chosen(self._list.selected.stepped(self._list.settings, step)))


class _SettingRows(ItemRows[ScenarioSetting]):
    def __init__(self, settings: ScenarioSettings) -> None:
        super().__init__()
        self.settings = settings
        self.bound_ms: float | None = None
        self.items = tuple(ScenarioSetting)

    def row(self, index: int, width: int) -> Line:
        setting = self.items[index]
        value = setting.shown(self.settings)
        if setting is ScenarioSetting.BOUND and self.settings.bound_ms is None and self.bound_ms is not None:
            value = f"{self.bound_ms:g} ms"
        said = column(value, max(_VALUE, cell_len(value) + 1), "strong")
        return (column(setting.label, _NAME), said, Span(setting.meaning, "muted"))
