"""The base of the screen that has the settings in view, and keys that change them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dlbricks_tui.tui.screens.run.host import RunHostScreen

if TYPE_CHECKING:
    from collections.abc import Callable

    from dlbricks_tui.config.config import Config
    from dlbricks_tui.tui.choices import Choices
    from dlbricks_tui.tui.session import Session


class ChoosingScreen(RunHostScreen):
    """Subclasses let everything follow."""

    def __init__(self, session: Session, choices: Choices, config: Callable[[], Config]) -> None:
        super().__init__(session, config)
        self.choices = choices

    def choose(self, choices: Choices) -> None:
        before, self.choices = self.choices, choices
        if choices != before:
            self.choices_changed(before)

    def choices_changed(self, before: Choices) -> None:
        """Shows what there is to show by other settings than before."""
        raise NotImplementedError

    def action_finer(self) -> None:
        self.choose(self.choices.with_granularity(self.choices.granularity - 1))

    def action_coarser(self) -> None:
        self.choose(self.choices.with_granularity(self.choices.granularity + 1))

    def action_other_level(self) -> None:
        self.choose(self.choices.with_next_level())

    def action_other_cut(self) -> None:
        self.choose(self.choices.with_next_cut())

    def action_more_workers(self) -> None:
        self.choose(self.choices.with_workers(self.choices.workers + 1))

    def action_fewer_workers(self) -> None:
        self.choose(self.choices.with_workers(self.choices.workers - 1))
