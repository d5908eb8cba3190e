"""The settings of the config file, changed on the spot."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dlbricks_tui.config.config import BY_DEFAULT, ConfigError
from dlbricks_tui.config.options import OPTIONS, shown
from dlbricks_tui.config.writing import change
from dlbricks_tui.errors import UserError
from dlbricks_tui.tui.actions.action import Scope
from dlbricks_tui.tui.actions.registry import bindings
from dlbricks_tui.tui.choices import among, next_of
from dlbricks_tui.tui.lines import BLANK, Line, Span, column, line, spread, wrapped
from dlbricks_tui.tui.messages import Failed
from dlbricks_tui.tui.screens.dialog import Dialog
from dlbricks_tui.tui.widgets.box import Box
from dlbricks_tui.tui.widgets.rows import RowsView
from dlbricks_tui.tui.widgets.said import Said

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from dlbricks_tui.config.config import Given
    from dlbricks_tui.config.options import Option, Value
    from dlbricks_tui.settings import DataFolder
    from dlbricks_tui.tui.tailoring import Tailor

_NAME, _VALUE = 21, 16
# As many as the longest meaning takes, so that the box stays as high as it is.
_LINES_OF_MEANING = 3


class ConfigScreen(Dialog[None]):
    """Writes each change to the file at once, from where all of dlbricks takes it."""

    scope = Scope.CONFIG
    BINDINGS = bindings(Scope.CONFIG, Scope.DIALOG)
    ABOUT = (
        "The settings are in a file of your own, which you can edit as well: what you write there counts as soon as "
        "it is saved. Keys are changed there, under [keys]."
    )

    def __init__(self, tailor: Tailor, data: DataFolder) -> None:
        super().__init__()
        self._tailor = tailor
        self._data = data
        self._rows = _SettingRows(tailor, data)
        self._below = Said(self._below_lines, classes="config-meaning")

    def compose(self) -> ComposeResult:
        with Box("Config", [Scope.CONFIG, Scope.DIALOG]):
            yield self._rows
            yield self._below

    def on_mount(self) -> None:
        self._rows.rows_changed()

    def on_rows_view_rested(self) -> None:
        self._below.refresh()

    def action_next(self) -> None:
        self._step(1)

    def action_previous(self) -> None:
        self._step(-1)

    def action_forget(self) -> None:
        self._give(None)

    def _step(self, step: int) -> None:
        option = self._rows.option
        value = self._tailor.config.value(option.name)
        try:
            offered = self._offered(option, value)
        except UserError as error:
            self.app.post_message(Failed(error))
        else:
            self._give(next_of(offered, value, step))

    def _offered(self, option: Option, value: Value) -> tuple[Value, ...]:
        offered: tuple[Value, ...] = option.kind.offered
        if option.name == "workbench.theme":
            offered = tuple(self._tailor.preferences.taste.themes)
        elif option.name == "run.runtime":
            from dlbricks_tui.runtime.registry import Registry

            offered = (None, *(runtime.name for runtime in Registry(self._data.path).all()))
        if isinstance(value, int | float):
            numbers = [each for each in offered if isinstance(each, int | float)]
            offered = (*(each for each in offered if each is None), *among(numbers, value))
        return offered

    def _give(self, value: Value) -> None:
        option = self._rows.option
        try:
            change(self._data.config, option.name, None if value == option.default else value)
        except ConfigError as error:
            self.app.post_message(Failed(error))
            return
        self._tailor.look()
        self._rows.refresh()
        self._below.refresh()

    def _below_lines(self, width: int) -> tuple[Line, ...]:
        option = self._rows.option
        said = wrapped(line(option.about), width)
        given = self._tailor.config.given[option.name]
        if _over_the_file(given, self._data):
            said += wrapped(line(Span(f"{given.where} says so, and counts over the file.", "warn")), width)
        said += [BLANK] * (_LINES_OF_MEANING - len(said))
        return (*said, BLANK, *wrapped(line(Span(f"{self._data.config}", "muted")), width))


class _SettingRows(RowsView):
    def __init__(self, tailor: Tailor, data: DataFolder) -> None:
        super().__init__()
        self._tailor = tailor
        self._data = data

    @property
    def row_count(self) -> int:
        return len(OPTIONS)

    @property
    def option(self) -> Option:
        """The setting that the cursor is on."""
        return OPTIONS[self.cursor]

    def row(self, index: int, width: int) -> Line:
        option = OPTIONS[index]
        given = self._tailor.config.given[option.name]
        by_default = given.where == BY_DEFAULT
        value = column(shown(given.value), _VALUE, "muted" if by_default else "strong")
        return spread((column(option.name, _NAME), value), (Span(_origin(given, self._data), "muted"),), width)


def _origin(given: Given, data: DataFolder) -> str:
    if given.where == BY_DEFAULT or _over_the_file(given, data):
        return f"{given.where} "
    return f"in the file, line {given.where.rpartition(':')[2]} "


def _over_the_file(given: Given, data: DataFolder) -> bool:
    return given.where != BY_DEFAULT and not given.where.startswith(f"{data.config}:")
