"""The base of screens with panels: which of them is the current one, and how to get from one to the next."""

from __future__ import annotations

from typing import Generic, TypeVar

from textual import events, on

from dlbricks_tui.tui.screens.asking import AskingScreen
from dlbricks_tui.tui.widgets.panel import Panel

Result = TypeVar("Result")

# The class of a screen without room for more.
ONE_PANEL = "-narrow"


class PanelledScreen(AskingScreen[Result], Generic[Result]):
    """One panel has the class `-current`; style sheets hide the others where there is room for one only."""

    @property
    def shows_one_panel(self) -> bool:
        """Whether only the current panel is to be seen."""
        return self.has_class(ONE_PANEL)

    def go_to(self, panel: Panel) -> None:
        """Shows a panel and gives it the keys."""
        # Hidden, it could not take them.
        self.make_current(panel)
        panel.take_focus()

    def make_current(self, current: Panel) -> None:
        """Makes a panel the one that is shown where only one can be."""
        for panel in self.query(Panel):
            panel.set_class(panel is current, "-current")

    def on_screen_resume(self) -> None:
        # Keys may have changed while another screen was to be seen.
        for panel in self.query(Panel):
            panel.keys_changed()

    def action_next_panel(self) -> None:
        self._step(1)

    def action_previous_panel(self) -> None:
        self._step(-1)

    def _step(self, step: int) -> None:
        panels = list(self.query(Panel))
        here = next((index for index, panel in enumerate(panels) if panel.has_class("-current")), 0)
        self.go_to(panels[(here + step) % len(panels)])

    @on(events.DescendantFocus)
    def _focus_moved(self, event: events.DescendantFocus) -> None:
        panel = next((each for each in event.widget.ancestors_with_self if isinstance(each, Panel)), None)
        if panel is not None:
            self.make_current(panel)
