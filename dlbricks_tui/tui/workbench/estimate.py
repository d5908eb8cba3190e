"""The panel of the estimate, and the headline of the workbench."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from textual.message import Message

from dlbricks_tui.answers.choices import CHOSEN, NONE_AVAILABLE, Available, Choices, change_setting, shown_settings
from dlbricks_tui.documents.lines import Line, Span, line, spread, width_of
from dlbricks_tui.recorded_host import recorded_host
from dlbricks_tui.settings.cutting import CUT, GRANULARITY, LEVEL, WORKERS
from dlbricks_tui.settings.setting import Setting
from dlbricks_tui.tui.keys import scopes
from dlbricks_tui.tui.keys.keymap import Hint
from dlbricks_tui.tui.widgets.panel import Panel
from dlbricks_tui.tui.widgets.rows import RowsView
from dlbricks_tui.tui.widgets.text import NamesKeys
from dlbricks_tui.tui.workbench.estimate_rows import (
    CHOOSE_A_MODEL,
    NOTHING_UNDER_WAY,
    READING,
    EstimateRow,
    EstimateView,
    LayerStop,
    Note,
    Stop,
    UnderWay,
    estimate_rows,
    replaces,
)
from dlbricks_tui.wording.answers import combination_words, figure_text, origin_words
from dlbricks_tui.wording.layers import bricks_words
from dlbricks_tui.wording.numbers import counted, milliseconds

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dlbricks_tui.estimate.system_estimate import SystemEstimate


class EstimateRows(RowsView, NamesKeys):
    """Latencies, settings, and the explanation of the estimate."""

    def __init__(self) -> None:
        super().__init__()
        self.content: EstimateView | Note = CHOOSE_A_MODEL
        self.choices = Choices()
        self.available = NONE_AVAILABLE
        self.under_way = NOTHING_UNDER_WAY
        # True if workers, errors, coverage and settings are shown too.
        self.more = False
        self._made: tuple[EstimateRow, ...] = ()
        # The selected row, kept while it does not exist: while a model is read, and while the panel is hidden. None is
        # the first row that can be selected.
        self._on: Stop | None = None

    @property
    def row_count(self) -> int:
        return len(self._made)

    def row(self, index: int, width: int) -> Line:
        return self._made[index].line

    def all_rows(self, width: int) -> list[Line]:
        return [row.line for row in self._rows(width)]

    def can_select(self, index: int) -> bool:
        return self._made[index].stop is not None

    @property
    def here(self) -> Stop | None:
        """The setting or line under the cursor; None while that is out of view: a key must not change it."""
        return self._stop_here if self.has_cursor else None

    @property
    def has_cursor(self) -> bool:
        return self._is_in_view if self._on is None else self._stop_here == self._on

    @property
    def _is_in_view(self) -> bool:
        top = self.scroll_offset.y
        return top <= self.cursor < top + self.size.height

    def action_down(self) -> None:
        if self._on is None and not self._is_in_view:
            # The first row where the cursor may stop is below those in view.
            self._stay_here()
            self.scroll_to_cursor()
            self.refresh()
        else:
            super().action_down()

    def remake(self) -> None:
        """Remake the rows; the cursor stays on its setting or line."""
        # Without the cursor sign and the scrollbar; negative while the panel is hidden.
        width = self.size.width - 2
        self._made = self._rows(width) if width > 0 else ()
        on = self._on
        self.rows_changed()
        self.go_to(on)

    on_resize = keys_changed = remake

    def move_to(self, index: int) -> None:
        super().move_to(index)
        self._stay_here()

    def watch_cursor(self, before: int, now: int) -> None:
        self._stay_here()
        super().watch_cursor(before, now)

    def go_to(self, stop: Stop | None) -> None:
        """Select a setting or a line, now or when it appears; None selects the first one."""
        stops = [row.stop for row in self._made]
        if isinstance(stop, LayerStop) and isinstance(self.content, EstimateView) and stop not in stops:
            # It is among the slowest no longer.
            stop = None
        if stop is None:
            self.move_to(0)
        elif stop in stops:
            self.move_to(stops.index(stop))
        self._on = stop
        if stop is None:
            self.scroll_to_cursor()

    def scroll_to_cursor(self) -> None:
        if self._on is None:
            # The answer is at the top, and the user has not gone further.
            self.scroll_to(y=0, animate=False, force=True, immediate=True)
        else:
            super().scroll_to_cursor()

    def leave_layers(self) -> None:
        """Select the first row of the next model, unless the cursor is on a setting."""
        if isinstance(self._on, LayerStop):
            self._on = None

    def _rows(self, width: int) -> tuple[EstimateRow, ...]:
        return estimate_rows(self.content, self.choices, self.available, width, self.under_way, more=self.more)

    @property
    def _stop_here(self) -> Stop | None:
        return self._made[self.cursor].stop if self.cursor < len(self._made) else None

    def _stay_here(self) -> None:
        if (here := self._stop_here) is not None:
            self._on = here


class EstimatePanel(Panel):
    scope = scopes.ESTIMATE
    ID = "estimate"
    TITLE = "Estimate"
    REACHED_BY = "workbench.go_to_estimate"
    ABOUT = (
        "Sequential is the sum over all sequences, as frameworks run one layer after another. Parallel is the critical"
        " path, as if independent layers ran at the same time. The range beside the sequential estimate is a 95 % "
        "interval, as far as its errors are known. Beside each of the slowest layers is its share, and that of it and "
        "all slower ones; {estimate.next} goes to it in the decomposition. Settings apply at once to all panels."
    )

    @dataclass
    class Chosen(Message):
        """The user has changed a setting."""

        choices: Choices

    @dataclass
    class LayerChosen(Message):
        """The user wants to see a layer in the decomposition."""

        layer: int

    def __init__(self) -> None:
        self._list = EstimateRows()
        super().__init__(self._list)

    def show_waiting(self) -> None:
        self._list.leave_layers()
        self.show(READING)

    def show_choices(self, choices: Choices, available: Available | None = None) -> None:
        """Show the settings, and remember what there is to choose from."""
        self._list.choices = choices
        self._list.available = available or self._list.available
        self._list.remake()

    def show_more(self, more: bool) -> None:
        """Show all that is known, or the answer only."""
        self._list.more = more
        self._list.remake()
        if not more:
            self.go_to_answer()

    def show_run(self, under_way: UnderWay) -> None:
        """Show the progress of a run of the model until its results are stored."""
        self._list.under_way = under_way
        self._list.remake()

    def show(self, content: EstimateView | Note) -> None:
        self._list.content = content
        self._list.remake()

    def go_to_answer(self) -> None:
        self._list.go_to(None)

    def go_to_settings(self) -> None:
        self.take_focus()
        self._list.go_to(CHOSEN[0])

    def action_next(self) -> None:
        if isinstance(here := self._list.here, LayerStop):
            self.post_message(self.LayerChosen(here.layer))
        else:
            self.action_step(1)

    def action_step(self, step: int) -> None:
        if isinstance(here := self._list.here, Setting):
            choices = change_setting(here, self._list.choices, step, self._list.available)
            if choices != self._list.choices:
                self.post_message(self.Chosen(choices))


# From these widths on the headline names the cut and the workers, and the host of a demonstration.
_ROOMY, _ROOMY_FOR_ORIGIN = 110, 160


@dataclass(frozen=True, slots=True)
class Headline:
    """The line at the head of the workbench: the model, the settings and the estimate."""

    # Empty while no model is open.
    model: str
    choices: Choices
    found: SystemEstimate | None
    is_chosen: bool = False
    under_way: UnderWay = NOTHING_UNDER_WAY
    expert: bool = False
    # True if nothing was measured yet.
    is_empty: bool = False

    def line(self, width: int) -> Line:
        recorded = recorded_host()
        left = [Span(" dlbricks ", "accent")]
        if recorded is not None:
            origin = f", {recorded.origin}" if width >= _ROOMY_FOR_ORIGIN else ""
            left.append(Span(f" demonstration{origin} ", "warn"))
        settings = self._expert_words(width)
        right = Span(f" {', '.join(settings)} " if settings else "", "muted")
        room = width - width_of((*left, right))
        said: Line = ()
        for part in self._said():
            # The first part, and those after it that fit whole.
            if said and width_of((*said, *part)) > room:
                break
            said = (*said, *part)
        return spread((*left, *said), (right,), width)

    def _expert_words(self, width: int) -> list[str]:
        """Return the expert settings: all of them to an expert, else those that are not as usual."""
        how, shown = self.choices, shown_settings(self.choices, expert=self.expert)
        words = {LEVEL: how.level.value, GRANULARITY: bricks_words(how.granularity)}
        if width >= _ROOMY:
            words |= {CUT: how.cut.value, WORKERS: counted(how.workers, "worker")}
        return [word for setting, word in words.items() if setting in shown]

    def _said(self) -> Iterator[Line]:
        """Yield the model and its answer, the most important first."""
        found = self.found
        if self.model:
            yield line(Span(f" {self.model} ", "strong"))
        elif self.is_empty:
            yield Hint(" Nothing was measured here yet: {workbench.start_run} measures the selected model.").line
        else:
            yield line(Span(" How fast does it run here?", "muted"))
        if not self.model or found is None:
            return
        if replaces(self.under_way, found):
            so_far = self.under_way.estimate
            if so_far is None:
                yield line(Span(" is being measured ", "muted"))
            else:
                yield line(Span(f" {milliseconds(so_far.value_ms)} ms", "strong"), Span(" so far ", "muted"))
        elif found.estimate.obstacle and found.figure is None:
            yield line(Span(" no estimate possible ", "warn"))
        else:
            yield line(Span(f" {figure_text(found)}", "strong"))
            yield line(Span(f" {origin_words(found)}", "muted"))
            yield line(Span(f" {combination_words(found)}", "muted"))
            on = f", on {self.choices.system}" if self.choices.system is not None else ""
            yield line(Span(f"{on}{', as chosen' if self.is_chosen else ''}", "muted"))
