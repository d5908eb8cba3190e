"""The panel of the estimate."""

from itertools import count
from typing import TypeAlias

from textual.message import Message

from dlbricks_tui.tui.choices import Available, Choices
from dlbricks_tui.tui.keys.keymap import Hint
from dlbricks_tui.tui.lines import Line, Span, line
from dlbricks_tui.tui.widgets.panel import Panel
from dlbricks_tui.tui.widgets.rows import RowsView
from dlbricks_tui.tui.widgets.text import NamesKeys
from dlbricks_tui.tui.workbench import actions
from dlbricks_tui.tui.workbench.estimate_rows import (
    CHOOSE_A_MODEL,
    NONE_AVAILABLE,
    READING,
    EstimateRow,
    EstimateView,
    Note,
    Setting,
    change_setting,
    estimate_rows,
)

# The identity of a row, independent of its position: a setting, or the number of an explaining line.
_Place: TypeAlias = Setting | int


class EstimateRows(RowsView, NamesKeys):
    """Latencies, settings, and the explanation of the estimate."""

    def __init__(self) -> None:
        super().__init__()
        self.subject: EstimateView | Note = CHOOSE_A_MODEL
        self.choices = Choices()
        self.available = NONE_AVAILABLE
        # The state of a run of the model, in words.
        self.under_way = ""
        self._made: tuple[EstimateRow, ...] = ()
        self._places: tuple[_Place | None, ...] = ()
        # The selected row, kept while it does not exist: while a model is read, and while the panel is hidden.
        self._on: _Place = Setting.GRANULARITY

    @property
    def row_count(self) -> int:
        return len(self._made)

    def row(self, index: int, width: int) -> Line:
        return self._made[index].line

    def can_select(self, index: int) -> bool:
        return self._made[index].rest

    @property
    def setting(self) -> Setting | None:
        """The selected setting."""
        return self._on if isinstance(self._on, Setting) and self.has_cursor else None

    @property
    def has_cursor(self) -> bool:
        return self.cursor < len(self._made) and self._places[self.cursor] == self._on

    def remake(self) -> None:
        """Remake the rows; the cursor stays on its setting or line."""
        # Without the cursor sign and the scrollbar; negative while the panel is hidden.
        width = self.size.width - 2
        self._made = (
            estimate_rows(self.subject, self.choices, self.available, width, self.under_way) if width > 0 else ()
        )
        self._places = _places_of(self._made)
        on = self._on
        self.rows_changed()
        self.go_to(on)

    def move_to(self, index: int) -> None:
        super().move_to(index)
        self._stay_here()

    def watch_cursor(self, before: int, now: int) -> None:
        super().watch_cursor(before, now)
        self._stay_here()

    def go_to(self, place: _Place) -> None:
        """Select a setting or a line, now or when it appears."""
        if place in self._places:
            self.move_to(self._places.index(place))
        self._on = place

    def _stay_here(self) -> None:
        here = self._places[self.cursor] if self.cursor < len(self._places) else None
        if here is not None:
            self._on = here

    def on_resize(self) -> None:
        self.remake()

    def keys_changed(self) -> None:
        self.remake()


class EstimatePanel(Panel):
    """The estimate of the open model, with the settings behind it."""

    scope = actions.ESTIMATE
    TITLE = "Estimate"
    REACHED_BY = "workbench.go_to_estimate"
    ABOUT = (
        "Sequential is the sum over all sequences, as frameworks run one layer after another. Parallel is the critical"
        " path, as if independent layers ran at the same time. The range beside the sequential estimate is a 95 % "
        "interval, as far as its errors are known. Settings apply at once to all panels."
    )

    class Chosen(Message):
        """The user has changed a setting."""

        def __init__(self, choices: Choices) -> None:
            super().__init__()
            self.choices = choices

    def __init__(self) -> None:
        self._list = EstimateRows()
        super().__init__(self._list, id="estimate")

    def show(self, view: EstimateView) -> None:
        self._show(view)

    def show_waiting(self) -> None:
        self._show(READING)

    def show_problem(self, reason: str, next_step: str = "") -> None:
        """Show why there is no estimate, and what to do; `next_step` may name actions in place of keys."""
        step = (Hint(next_step, "strong"),) if next_step else ()
        self._show((line(Span("This model cannot be estimated.", "bad")), line(Span(reason)), *step))

    def show_choices(self, choices: Choices, available: Available | None = None) -> None:
        """Show the settings, and remember what there is to choose from."""
        self._list.choices = choices
        self._list.available = available or self._list.available
        self._list.remake()

    def show_run(self, under_way: str) -> None:
        """Show the state of a run of the model while nothing else is known."""
        # Drawing disturbs measurements.
        if under_way != self._list.under_way:
            self._list.under_way = under_way
            self._list.remake()

    def go_to_settings(self) -> None:
        """Focus the first setting."""
        self.take_focus()
        self._list.go_to(Setting.GRANULARITY)

    def action_next(self) -> None:
        self._change(1)

    def action_previous(self) -> None:
        self._change(-1)

    def _show(self, subject: EstimateView | Note) -> None:
        self._list.subject = subject
        self._list.remake()

    def _change(self, step: int) -> None:
        if self._list.setting is not None:
            choices = change_setting(self._list.setting, self._list.choices, self._list.available, step)
            if choices != self._list.choices:
                self.post_message(self.Chosen(choices))


def _places_of(made: tuple[EstimateRow, ...]) -> tuple[_Place | None, ...]:
    """Return the identity of each row; None for rows that cannot be selected."""
    numbers = count()
    return tuple((row.setting or next(numbers)) if row.rest else None for row in made)
