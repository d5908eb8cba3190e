"""The box of the settings in the config file."""

from typing import Any

from dlbricks_tui.config.config import BY_DEFAULT, CONFIGURED, ConfigError, Given, change, in_file
from dlbricks_tui.documents.lines import BLANK, Line, Span, column, line, spread, wrapped
from dlbricks_tui.errors import UserError
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.settings.setting import Setting, next_of, with_own
from dlbricks_tui.settings.variant import RUNTIME
from dlbricks_tui.settings.workbench import THEME
from dlbricks_tui.tui.dialogs.dialog import Dialog
from dlbricks_tui.tui.keys import scopes
from dlbricks_tui.tui.messages import Failed
from dlbricks_tui.tui.preferences import LivePreferences
from dlbricks_tui.tui.widgets.rows import DrawnRows
from dlbricks_tui.tui.widgets.text import TextLines
from dlbricks_tui.wording.numbers import capitalised

_NAME, _VALUE = 21, 16
# The lines of the longest explanation, so that the box keeps its height.
_LINES_OF_MEANING = 3


class ConfigScreen(Dialog[None]):
    """Writes each change to the config file at once."""

    scope = scopes.CONFIG
    HEADING = "Config"
    ABOUT = (
        "The settings are stored in your config file. You can edit it as well: changes apply as soon as the file is "
        "saved. The section [keys] of the file changes keys."
    )

    def __init__(self, preferences: LivePreferences, data: DataFolder) -> None:
        self._preferences = preferences
        self._data = data
        self._rows: DrawnRows[Setting[Any]] = DrawnRows(self._row, CONFIGURED)
        self._below = TextLines(self._below_lines, classes="config-meaning")
        super().__init__(self._rows, self._below)

    def on_rows_view_cursor_settled(self) -> None:
        self._below.refresh()

    def action_reset(self) -> None:
        self._give(None)

    def action_step(self, step: int) -> None:
        setting = CONFIGURED[self._rows.cursor]
        value = self._preferences.config.given[setting.config].value
        try:
            offered = with_own(self._offered(setting), value)
        except UserError as error:
            self.app.post_message(Failed(error))
        else:
            self._give(next_of(offered if setting.default is not None else (None, *offered), value, step))

    def _offered(self, setting: Setting[Any]) -> tuple[Any, ...]:
        if setting is THEME:
            return tuple(self._preferences.themes)
        if setting is RUNTIME:
            from dlbricks_tui.api.new_runs import registered_runtimes

            return registered_runtimes(self._data)
        return setting.kind.offered

    def _give(self, value: Any) -> None:
        setting = CONFIGURED[self._rows.cursor]
        try:
            change(self._data.config, setting.config, None if value == setting.default else value)
        except ConfigError as error:
            self.app.post_message(Failed(error))
            return
        self._preferences.reload()
        self._rows.refresh()
        self._below.refresh()

    def _below_lines(self, width: int) -> tuple[Line, ...]:
        setting = CONFIGURED[self._rows.cursor]
        said = wrapped(line(f"{capitalised(setting.about)}."), width)
        given = self._preferences.config.given[setting.config]
        if _over_the_file(given, self._data):
            said += wrapped(line(Span(f"{given.where} sets it and overrides the file.", "warn")), width)
        said += [BLANK] * (_LINES_OF_MEANING - len(said))
        return (*said, BLANK, *wrapped(line(Span(f"{self._data.config}", "muted")), width))

    def _row(self, index: int, width: int) -> Line:
        setting = CONFIGURED[index]
        given = self._preferences.config.given[setting.config]
        by_default = given.where == BY_DEFAULT
        value = column(in_file(given.value), _VALUE, "muted" if by_default else "strong")
        return spread((column(setting.config, _NAME), value), (Span(_origin(given, self._data), "muted"),), width)


def _origin(given: Given, data: DataFolder) -> str:
    if given.where == BY_DEFAULT or _over_the_file(given, data):
        return f"{given.where} "
    return f"in the file, line {given.where.rpartition(':')[2]} "


def _over_the_file(given: Given, data: DataFolder) -> bool:
    return given.where != BY_DEFAULT and not given.where.startswith(f"{data.config}:")
