"""Forms: a row for each setting with its value, which keys change and which the user can write."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, TypeVar

from rich.cells import cell_len
from textual.widget import Widget

from dlbricks_tui.documents.lines import Line, Span, column
from dlbricks_tui.settings.setting import Setting, ValueKind, next_of, with_own
from dlbricks_tui.settings.variant import RUNTIME, runtime_in_words
from dlbricks_tui.tui.dialogs.dialog import Dialog
from dlbricks_tui.tui.widgets.panel import Panel
from dlbricks_tui.tui.widgets.rows import ItemRows
from dlbricks_tui.tui.widgets.screens import ask
from dlbricks_tui.wording.numbers import capitalised

# The widths of names, and of values in panels and in boxes.
_NAME, _VALUE, _VALUE_IN_A_BOX = 12, 9, 13
# What numbers count, by their sign on the command line.
_UNITS = {"S": ", in seconds", "MS": ", in milliseconds"}


@dataclass(frozen=True, slots=True, kw_only=True)
class FormRow:
    """A setting in a form, whose values are a frozen dataclass."""

    setting: Setting[Any]
    # The words of the row, and the field of the form, where they differ from those of the setting.
    label: str = ""
    meaning: str = ""
    kept_in: str = ""
    # What the row shows where there is no value; empty: there always is one.
    usual: str = ""
    # True: several values may be chosen together.
    many: bool = False
    # True: the form keeps several, and takes one of them at a time.
    single: bool = False
    # The values to step through, and the value in words, where they depend on the form.
    offered: Callable[[Any], Sequence[Any]] | None = None
    words: Callable[[Any], str] | None = None

    @property
    def name(self) -> str:
        return self.label or self.setting.name

    @property
    def field(self) -> str:
        return self.kept_in or self.setting.field

    @property
    def kind(self) -> ValueKind[Any]:
        if self.single:
            # Each answer of the form is one.
            return replace(self.setting.many, allowed=self.setting.kind.allowed, accepts=lambda it: len(it) == 1)
        return self.setting.many if self.many else self.setting.kind

    @property
    def nothing(self) -> Any:
        """The value that stands for the usual one."""
        return () if self.many else None

    def _value(self, form: Any) -> Any:
        value = getattr(form, self.field)
        return self.nothing if value is None else value

    def shown(self, form: Any) -> str:
        """Return the value in words."""
        if self.words is not None:
            return self.words(form)
        value = self._value(form)
        if value == self.nothing:
            return self.usual
        if self.setting is RUNTIME:
            return runtime_in_words(value)
        return self.kind.text(value)

    def stepped(self, form: Any, step: int) -> Any:
        """Return the form with the next value of this setting, or the previous one for `step` -1."""
        value = self._value(form)
        offered = self.kind.offered if self.offered is None else self.offered(form)
        values = with_own(offered, None if value == self.nothing else value)
        values = (self.nothing, *values) if self.usual else values
        return replace(form, **{self.field: next_of(values, value, step)})

    def written(self, form: Any, text: str) -> Any:
        """Return the form with the value that a text tells; raise ValueRefusedError where it tells none."""
        nothing = self.nothing if self.usual else self.setting.default
        return replace(form, **{self.field: self.kind.read(text) if text else nothing})

    def as_written(self, form: Any) -> str:
        """Return the value as the user would write it."""
        value = self._value(form)
        return "" if value == self.nothing else self.kind.text(value)


class FormRows(ItemRows[FormRow]):
    """The rows of a form; `changed` takes the form that a key asks for."""

    def __init__(
        self, rows: Sequence[FormRow], form: Any, changed: Callable[[Any], object], *, value_width: int = _VALUE
    ) -> None:
        super().__init__()
        self._value_width = value_width
        self.items = tuple(rows)
        self.form = form
        self._changed = changed
        self._name_width = max(_NAME, *(len(row.name) + 1 for row in rows))

    def show(self, form: Any) -> None:
        self.form = form
        self.refresh()

    def row(self, index: int, width: int) -> Line:
        row = self.items[index]
        # The names of runtimes may be long and must be complete.
        widest = max(cell_len(it.shown(self.form)) + 1 for it in self.items)
        said = column(row.shown(self.form), max(self._value_width, widest), "strong")
        return (column(row.name, self._name_width), said, Span(row.meaning or row.setting.meaning, "muted"))

    def step(self, step: int) -> None:
        """Change the selected setting to its next or previous value."""
        if self.selected is not None:
            self._changed(self.selected.stepped(self.form, step))

    def write(self) -> None:
        """Ask for the value of a setting that is a number; change another one to its next value."""
        row = self.selected
        if row is None or not row.setting.kind.is_number:
            self.step(1)
            return
        from dlbricks_tui.tui.dialogs.notices import WritingScreen

        unit = _UNITS.get(row.kind.sign, "")
        empty = f"; an empty line: {row.usual or row.setting.text(row.setting.default)}."
        box: WritingScreen[Any] = WritingScreen(
            capitalised(row.name),
            row.as_written(self.form),
            f"{capitalised(row.kind.allowed)}{unit}{empty}",
            partial(row.written, self.form),
        )
        ask(self.app, box, self._changed)


class FormPanel(Panel):
    """A panel with a form; the screen decides what a change does, and shows it."""

    ROWS: ClassVar[tuple[FormRow, ...]]

    def __init__(self, settings: Any, changed: Callable[[Any], object]) -> None:
        self._list = FormRows(self.ROWS, settings, changed)
        super().__init__(self._list)

    def show(self, settings: Any) -> None:
        self._list.show(settings)

    def action_step(self, step: int) -> None:
        self._list.step(step)

    def action_write(self) -> None:
        self._list.write()


Form = TypeVar("Form")


class FormDialog(Dialog[Form]):
    """A box with a form before a measurement; returns the form if the user begins."""

    MEASURES = True

    def __init__(self, rows: Sequence[FormRow], form: Form, *below: Widget, heading: str) -> None:
        self._rows = FormRows(rows, form, self.take, value_width=_VALUE_IN_A_BOX)
        super().__init__(self._rows, *below, heading=heading)

    def take(self, form: Form) -> None:
        self._rows.show(form)

    def action_begin(self) -> None:
        self.dismiss(self._rows.form)

    def action_step(self, step: int) -> None:
        self._rows.step(step)

    def action_write(self) -> None:
        self._rows.write()
