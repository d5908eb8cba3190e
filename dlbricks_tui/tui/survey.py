"""Looks through the library in passing: how its models stand, and which of them share a brick."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from dlbricks_tui.tui.elsewhere import HowCut

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dlbricks_tui.tui.choices import Choices
    from dlbricks_tui.tui.elsewhere import Elsewhere
    from dlbricks_tui.tui.errands import Errands
    from dlbricks_tui.tui.opened import Wish


class Survey:
    """For one screen, which starts the threads and hears of what they find."""

    def __init__(self, errands: Errands, ask: Callable[[Callable[[], None], str], None]) -> None:
        self._errands = errands
        self._ask = ask
        # Without any there is nothing to be said of how models stand.
        self.has_results = False
        # Which models have which bricks, once they have been looked through for them.
        self.elsewhere: Elsewhere | None = None
        self._how: HowCut | None = None

    def look_for_results(self, wishes: Sequence[Wish], choices: Choices) -> None:
        """Estimates models, as long as there is anything to estimate them from."""
        if self.has_results:
            self._ask(partial(self._errands.glance_at, wishes, choices), "glance")

    def look_for_bricks(self, wishes: Sequence[Wish], choices: Choices) -> None:
        """Finds out which bricks models have, unless that is known."""
        how = HowCut(choices.level, choices.cutting)
        if how != self._how:
            self.elsewhere, self._how = None, how
            self._ask(partial(self._errands.index_bricks, wishes, how), "index")

    def take(self, elsewhere: Elsewhere) -> None:
        """Keeps what was found, unless it was looked for by other settings."""
        if elsewhere.how == self._how:
            self.elsewhere = elsewhere

    def forget(self) -> None:
        """There are other models now."""
        self.elsewhere, self._how = None, None
