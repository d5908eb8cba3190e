"""The panel of the settings of a scenario."""

from __future__ import annotations

from dlbricks_tui.tui.scenario import actions
from dlbricks_tui.tui.scenario.settings import ScenarioSetting, ScenarioSettings
from dlbricks_tui.tui.widgets.form import FormPanel, FormSetting


class SettingsPanel(FormPanel):
    """A row for each setting with its value."""

    scope = actions.SETTINGS
    TITLE = "Scenario"
    REACHED_BY = "scenario.go_to_settings"
    SETTINGS = ScenarioSetting
    ABOUT = (
        "How requests arrive and how they are served; the prediction follows each change. The usual bound of a server "
        "is ten times what a request takes. Short tests have the fewest queries that decide about the percentile. "
        "{load_settings.write} writes a value of your own."
    )

    def __init__(self, settings: ScenarioSettings) -> None:
        # What the usual bound stands for.
        self._bound_ms: float | None = None
        super().__init__(settings, id="load-settings")

    def show(self, settings: ScenarioSettings, bound_ms: float | None = None) -> None:
        """Show settings, and the bound that the usual one stands for."""
        self._bound_ms = bound_ms
        super().show(settings)

    def value_of(self, setting: FormSetting, settings: ScenarioSettings) -> str:
        if setting is ScenarioSetting.BOUND and settings.bound_ms is None and self._bound_ms is not None:
            return f"{self._bound_ms:g} ms"
        return super().value_of(setting, settings)
