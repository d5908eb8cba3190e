"""The boxes in which the workbench asks something; each is imported when it is needed."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sized
    from pathlib import Path

    from textual.app import App

    from dlbricks_tui.models.graph import Shape
    from dlbricks_tui.tui.opened import AskedShape

Rows = TypeVar("Rows", bound="Sized")


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
    inputs: Mapping[str, AskedShape] | Callable[[], Mapping[str, AskedShape]],
    reason: str,
    then: Callable[[dict[str, Shape] | None], None],
) -> None:
    """Ask for the shapes of a model's inputs: of these, or of those that a function reads from the model."""
    from dlbricks_tui.tui.screens.input_shapes import InputShapesScreen

    app.push_screen(InputShapesScreen(model, inputs, reason), then)


def ask_which_marked(
    app: App[object], what: str, in_view: Rows, everything: Rows, then: Callable[[Rows], object]
) -> None:
    """Hands on the marked rows; where a search hides some of them, asks first whether those are meant too."""
    hidden = len(everything) - len(in_view)
    if not hidden:
        then(everything)
        return
    from dlbricks_tui.tui.screens.hidden_marks import HiddenMarksScreen

    def answered(hidden_too: bool | None) -> None:
        if hidden_too is not None:
            then(everything if hidden_too else in_view)

    app.push_screen(HiddenMarksScreen(what, len(in_view), hidden), answered)
