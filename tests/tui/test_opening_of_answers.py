"""Keys of the answers on the list of models."""

import pytest

from dlbricks_tui.folders import DataFolder
from tests.tui.application import app_on, press, running, screen_text


@pytest.mark.parametrize(
    ("pressed", "asked"),
    [
        ("v", "Which runtime, batch size and number of threads suit resnet18_v1?"),
        ("b", "Which runtime, batch size and number of threads suit resnet18_v1?"),
        ("0", "How fast could resnet18_v1 be, and which change is worth making?"),
        ("i", "Where does the time of resnet18_v1 go, layer by layer?"),
        ("L", "How much load can resnet18_v1 serve?"),
    ],
)
async def test_without_an_open_model_the_key_of_an_answer_opens_the_selected_one(
    pressed: str, asked: str, measured: DataFolder
) -> None:
    async with running(app_on(measured)) as pilot:
        await press(pilot, "slash", '"resnet18_v1"', "enter", pressed)
        assert asked in screen_text(pilot)
        await press(pilot, "escape")
        assert "resnet18_v1" in screen_text(pilot).splitlines()[0]
