"""Keys of the answers on the list of models."""

import pytest

from dlbricks_tui.folders import DataFolder
from dlbricks_tui.tui.workbench.screen import WorkbenchScreen
from tests.tui.application import MEASURED_ONLY, app_on, press, running, screen_text

ASKED = {
    "V": "Which runtime, batch size and number of threads suit resnet18_v1?",
    "0": "How fast could resnet18_v1 be, and which change is worth making?",
    "i": "Where does the time of alexnet go, layer by layer?",
    "L": "How much load can resnet18_v1 serve?",
}


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
            await press(pilot, "escape")
            assert name in screen_text(pilot).splitlines()[0]
