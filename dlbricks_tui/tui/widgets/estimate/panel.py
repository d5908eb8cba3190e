"""The estimate of the open model, with the settings that it follows."""

from itertools import count
from typing import TypeAlias

from textual.message import Message

from dlbricks_tui.tui.actions.action import Scope
from dlbricks_tui.tui.actions.registry import bindings
from dlbricks_tui.tui.choices import Available, Choices
from dlbricks_tui.tui.key_words import Hint
from dlbricks_tui.tui.lines import Line, Span, line
from dlbricks_tui.tui.widgets.estimate.settings import NONE_AVAILABLE, Setting, changed
from dlbricks_tui.tui.widgets.estimate.view import CHOOSE_A_MODEL, READING, EstimateRow, EstimateView, Note, rows
from dlbricks_tui.tui.widgets.keyed import Keyed
from dlbricks_tui.tui.widgets.panel import Panel
from dlbricks_tui.tui.widgets.rows import RowsView

# What a row is, whatever stands above it: a setting, or a line that explains the estimate, by its number below the
# settings.
_Place: TypeAlias = Setting | int


class EstimateRows(RowsView, Keyed):
    """Latencies, settings, and what explains them."""

    def __init__(self) -> None:
        super().__init__()
        self.subject: EstimateView | Note = CHOOSE_A_MODEL
        self.choices = Choices()
        self.available = NONE_AVAILABLE
        # How a run of the model stands, in words.
        self.under_way = ""
        self._made: tuple[EstimateRow, ...] = ()
        self._places: tuple[_Place | None, ...] = ()
        # What the cursor is on, also while that has no row: as long as a model is read, and in a panel out of sight.
        self._on: _Place = Setting.GRANULARITY

    @property
    def row_count(self) -> int:
        return len(self._made)

    def row(self, index: int, width: int) -> Line:
        return self._made[index].line

    def can_rest_on(self, index: int) -> bool:
        return self._made[index].rest

    @property
    def setting(self) -> Setting | None:
        """The setting that the cursor is on."""
        return self._on if isinstance(self._on, Setting) and self.has_cursor else None

    @property
    def has_cursor(self) -> bool:
        return self.cursor < len(self._made) and self._places[self.cursor] == self._on

    def remake(self) -> None:
        """Make the rows of what is known now; the cursor stays on its setting, or on its line of text."""
        # Beside the sign of the cursor and a scrollbar; nothing where the panel is out of sight.
        width = self.size.width - 2
        self._made = rows(self.subject, self.choices, self.available, width, self.under_way) if width > 0 else ()
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
        """Put the cursor on a setting or a line of text, now or when that has a row."""
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
    """What the model takes, by each composition."""

    scope = Scope.ESTIMATE
    BINDINGS = bindings(Scope.ESTIMATE)
    TITLE = "Estimate"
    REACHED_BY = "workbench.go_to_estimate"
    ABOUT = (
        "Sequential is the sum over all sequences, as frameworks run one layer after another. Parallel is the critical "
        "path, as if independent layers ran at the same time. The range beside the sequential estimate holds the truth "
        "in 19 of 20 cases, as far as that is known. Settings count at once, for all panels."
    )

    class Chosen(Message):
        """The person has changed a setting."""

        def __init__(self, choices: Choices) -> None:
            super().__init__()
            self.choices = choices

    def __init__(self) -> None:
        self._list = EstimateRows()
        super().__init__(self._list, id="estimate")

    def show(self, view: EstimateView) -> None:
        """Shows what is known of a model."""
        self._show(view)

    def show_waiting(self) -> None:
        """Says that a model is being read."""
        self._show(READING)

    def show_problem(self, reason: str, next_step: str = "") -> None:
        """Says why there is nothing to estimate, and what to do; that may name actions in place of keys."""
        step = (Hint(next_step, "strong"),) if next_step else ()
        self._show((line(Span("This model cannot be shown so.", "bad")), line(Span(reason)), *step))

    def show_choices(self, choices: Choices, available: Available | None = None) -> None:
        """Shows the settings, and knows from now on what there is to choose from."""
        self._list.choices = choices
        self._list.available = available or self._list.available
        self._list.remake()

    def show_run(self, under_way: str) -> None:
        """Says how a run of the model stands while nothing else is known of it."""
        # While bricks run, nothing is made anew that looks as it did.
        if under_way != self._list.under_way:
            self._list.under_way = under_way
            self._list.remake()

    def go_to_settings(self) -> None:
        """Puts the cursor on the first setting."""
        self.take_focus()
        self._list.go_to(Setting.GRANULARITY)

    def on_click(self) -> None:
        self.take_focus()

    def action_next(self) -> None:
        self._change(1)

    def action_previous(self) -> None:
        self._change(-1)

    def _show(self, subject: EstimateView | Note) -> None:
        self._list.subject = subject
        self._list.remake()

    def _change(self, step: int) -> None:
        if self._list.setting is not None:
            choices = changed(self._list.setting, self._list.choices, self._list.available, step)
            if choices != self._list.choices:
                self.post_message(self.Chosen(choices))


def _places_of(made: tuple[EstimateRow, ...]) -> tuple[_Place | None, ...]:
    """Return the place of each row, None for a row that the cursor passes by."""
    numbers = count()
    return tuple((row.setting or next(numbers)) if row.rest else None for row in made)
