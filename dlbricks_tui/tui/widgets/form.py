"""Panels of settings: a row for each one with its value, which keys change and which the user can write."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple

from rich.cells import cell_len
from textual.message import Message

from dlbricks_tui.documents.lines import Line, Span, column
from dlbricks_tui.tui.choices import next_of
from dlbricks_tui.tui.widgets.panel import Panel
from dlbricks_tui.tui.widgets.rows import ItemRows

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_NAME, _VALUE = 12, 9


class Written(NamedTuple):
    """How the value of a setting is written: an example, what to write, and how it is read."""

    hint: str
    note: str
    read: Callable[[str], object]


class FormSetting(Enum):
    """A setting by the name of its row: its field, its meaning, its value as text, its values, and how to write one.

    The settings of a form are a frozen dataclass with a field for each.
    """

    def __init__(
        self,
        label: str,
        field: str,
        meaning: str,
        shown: Callable[[Any], str],
        values: Callable[[Any], Sequence[Any]],
        written: Written | None = None,
    ) -> None:
        self.label = label
        self.field = field
        self.meaning = meaning
        self.shown = shown
        self._values = values
        self.written = written

    def stepped(self, settings: Any, step: int) -> Any:
        """Return the settings with the next value of this one, or the previous one for `step` -1."""
        value = next_of(tuple(self._values(settings)), getattr(settings, self.field), step)
        return replace(settings, **{self.field: value})

    def as_written(self, settings: Any) -> str:
        """Return the value as the user would write it."""
        value = getattr(settings, self.field)
        if value is None:
            return ""
        if isinstance(value, tuple):
            return ",".join(map(str, value))
        return f"{value:g}" if isinstance(value, float) else f"{value}"


class FormPanel(Panel):
    """A row for each setting with its value."""

    # The settings of the rows, as members of an enumeration.
    SETTINGS: type[FormSetting]

    @dataclass
    class Chosen(Message):
        """The user has changed a setting."""

        settings: Any

    def __init__(self, settings: Any, *, id: str) -> None:  # noqa: A002 - Textual's name
        self._list = _SettingRows(self.SETTINGS, settings, self.value_of)
        super().__init__(self._list, id=id)

    def on_mount(self) -> None:
        self._list.rows_changed()

    def show(self, settings: Any) -> None:
        """Show the values of these settings."""
        self._list.settings = settings
        self._list.refresh()

    def value_of(self, setting: FormSetting, settings: Any) -> str:
        """Return the value of a setting as it is shown."""
        return setting.shown(settings)

    def action_next(self) -> None:
        self._step(1)

    def action_previous(self) -> None:
        self._step(-1)

    def action_write(self) -> None:
        """Ask for the value of a setting that can be written; change another one to its next value."""
        from dlbricks_tui.tui.dialogs.writing import WritingScreen

        setting, settings = self._list.selected, self._list.settings
        if setting is None or setting.written is None:
            self._step(1)
            return
        field, written = setting.field, setting.written
        box: WritingScreen[Any] = WritingScreen(
            setting.label.capitalize(),
            setting.as_written(settings),
            written.hint,
            written.note,
            lambda text: replace(settings, **{field: written.read(text)}),
        )
        self.app.push_screen(box, self._choose)

    def _choose(self, settings: Any) -> None:
        # The box that is closed returns nothing.
        if settings is not None:
            self.post_message(self.Chosen(settings))

    def _step(self, step: int) -> None:
        if self._list.selected is not None:
            self._choose(self._list.selected.stepped(self._list.settings, step))


class _SettingRows(ItemRows[FormSetting]):
    def __init__(self, items: type[FormSetting], settings: Any, shown: Callable[[FormSetting, Any], str]) -> None:
        super().__init__()
        self.items = tuple(items)
        self.settings = settings
        self._shown = shown

    def row(self, index: int, width: int) -> Line:
        setting = self.items[index]
        value = self._shown(setting, self.settings)
        said = column(value, max(_VALUE, cell_len(value) + 1), "strong")
        return (column(setting.label, _NAME), said, Span(setting.meaning, "muted"))
