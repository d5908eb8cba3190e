"""The screens that the workbench leads to; each is imported when it is wanted, and found again as it was left."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from textual.app import App

    from dlbricks_tui.models.graph import Level
    from dlbricks_tui.tui.choices import Choices
    from dlbricks_tui.tui.opened import Wish
    from dlbricks_tui.tui.session import Session

_RESULTS = "results"


def visit_results(app: App[None], session: Session) -> None:
    """Shows everything that was measured."""
    from dlbricks_tui.tui.screens.results.screen import ResultsScreen

    if not app.is_screen_installed(_RESULTS):
        app.install_screen(ResultsScreen(session), _RESULTS)
    app.push_screen(_RESULTS)


def visit_corpus(
    app: App[None],
    session: Session,
    wishes: Callable[[Choices], Sequence[Wish]],
    choices: Choices,
    *,
    measuring: bool,
) -> None:
    """Shows what repeats in some models."""
    from dlbricks_tui.tui.screens.corpus.screen import CorpusScreen

    app.push_screen(CorpusScreen(session, wishes, choices, measuring=measuring))


def visit_systems(
    app: App[None],
    session: Session,
    wish: Wish | None,
    choices: Choices,
    then: Callable[[tuple[str, Level] | None], None],
) -> None:
    """Shows the systems, and which of them is best for a model."""
    from dlbricks_tui.tui.screens.systems.screen import SystemsScreen

    app.push_screen(SystemsScreen(session, wish, choices), then)
