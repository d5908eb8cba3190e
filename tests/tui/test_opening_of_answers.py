"""Keys of the answers on the list of models."""

import pytest
from textual.pilot import Pilot

from dlbricks_tui.folders import DataFolder
from dlbricks_tui.tui.workbench.screen import WorkbenchScreen
from tests.tui.application import MEASURED_ONLY, app_on, press, running, screen_text

ASKED = {
    "V": "Which runtime, batch size and number of threads suit resnet18_v1?",
    "A": "How fast could resnet18_v1 be, and which change is worth making?",
    "T": "Where does the time of alexnet go, layer by layer?",
    "L": "How much load can resnet18_v1 serve?",
}


def answer_of(pilot: Pilot[None]) -> str:
    """Return the line below the question."""
    return screen_text(pilot).splitlines()[1].strip()


NOT_YET = {
    "A": "Nothing was measured yet: m measures it.",
    "T": "Nothing was traced yet: m traces it in about a minute.",
    "R": "Nothing was measured or imported yet: esc m measures a model.",
    "U": "7 models, ",
    "S": "Nothing was measured of it yet: esc m measures.",
    "F": "m starts a fleet run of the marked or open models.",
    "L": "resnet18_v1: nothing was measured of it yet",
}


@pytest.mark.usefixtures("rough_predictions")
async def test_without_results_the_line_below_each_question_says_so_and_names_the_key(new: DataFolder) -> None:
    async with running(app_on(new, MEASURED_ONLY)) as pilot:
        await press(pilot, "escape", "1", "slash", '"resnet18_v1"', "enter", "enter")
        for key, told in NOT_YET.items():
            await press(pilot, key)
            assert answer_of(pilot).startswith(told), key
            await press(pilot, "escape")


@pytest.mark.usefixtures("rough_predictions")
async def test_without_an_open_model_the_key_of_an_answer_opens_the_selected_one(measured: DataFolder) -> None:
    async with running(app_on(measured, MEASURED_ONLY)) as pilot:
        screen = pilot.app.screen
        assert isinstance(screen, WorkbenchScreen)
        for key, asked in ASKED.items():
            name = "alexnet" if "alexnet" in asked else "resnet18_v1"
            screen._spec = screen._opened = None
            await press(pilot, "1", "slash", "ctrl+u", f'"{name}"', "enter", key)
            assert asked in screen_text(pilot)
            assert answer_of(pilot)
            await press(pilot, "escape")
            assert name in screen_text(pilot).splitlines()[0]
