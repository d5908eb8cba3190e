"""The boxes in which the workbench asks something; each is imported when it is needed."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from textual.app import App

    from dlbricks_tui.models.graph import Shape


def ask_whether_to_begin(app: App[object], sample: str, then: Callable[[bool | None], None]) -> None:
    """Welcomes a newcomer, who may go along with the sample."""
    from dlbricks_tui.tui.screens.welcome import WelcomeScreen

    app.push_screen(WelcomeScreen(sample), then)


def ask_for_path(app: App[object], then: Callable[[Path | None], None]) -> None:
    """Asks which file to open, or which folder to add."""
    from dlbricks_tui.tui.screens.open_path import OpenPathScreen

    app.push_screen(OpenPathScreen(), then)


def ask_for_shapes(
    app: App[object],
    model: str,
    inputs: Mapping[str, Shape | None],
    reason: str,
    then: Callable[[dict[str, Shape] | None], None],
) -> None:
    """Asks for the shapes of a model's inputs."""
    from dlbricks_tui.tui.screens.input_shapes import InputShapesScreen

    app.push_screen(InputShapesScreen(model, inputs, reason), then)
