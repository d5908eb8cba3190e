"""The demonstration in the terminal UI: recorded results everywhere, and one line where a key would measure."""

import subprocess
from collections.abc import Iterator

import pytest
from textual.pilot import Pilot

from dlbricks_tui.answers.demonstration import Demonstration, open_demonstration
from dlbricks_tui.tui.app import DlbricksApp
from dlbricks_tui.tui.run.screen import RunScreen
from dlbricks_tui.tui.run.updates import Replayed
from dlbricks_tui.tui.session import Session
from tests.tui.application import eventually, press, running, screen_text

# The run does not end before the test.
SPEED = 0.001


@pytest.fixture
def demonstration(monkeypatch: pytest.MonkeyPatch) -> Iterator[Demonstration]:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a process was started")

    monkeypatch.setattr(subprocess.Popen, "__init__", refuse)
    with open_demonstration() as found:
        yield found


def app_on(found: Demonstration) -> DlbricksApp:
    return DlbricksApp(Session(found.data, found.samples), replayed=Replayed(found.replayed, SPEED, 30.0))


async def shows(pilot: Pilot[None], text: str) -> None:
    await eventually(pilot, lambda: text in screen_text(pilot))


async def test_it_says_whose_numbers_it_shows_replays_a_run_and_measures_nothing(
    demonstration: Demonstration,
) -> None:
    async with running(app_on(demonstration), (180, 40)) as pilot:
        assert f"All numbers were {demonstration.host.origin}." in screen_text(pilot)
        await press(pilot, "enter")
        assert f"demonstration, {demonstration.host.origin}" in screen_text(pilot).splitlines()[0]
        assert "squeezenet1.1" in screen_text(pilot).splitlines()[0]
        await shows(pilot, f"replay {SPEED}x")
        await press(pilot, "w")
        assert isinstance(pilot.app.screen, RunScreen)
        await shows(pilot, f"replay {SPEED}x")
        await press(pilot, "escape", "m", "enter")
        await shows(pilot, "a demonstration measures nothing: quit it, and start `dlbricks` itself")


async def test_it_says_that_the_doctor_is_about_the_live_host_and_that_no_kernels_were_recorded(
    demonstration: Demonstration,
) -> None:
    async with running(app_on(demonstration)) as pilot:
        await press(pilot, "enter", "S", "4")
        await shows(pilot, "These are findings about the host of this")
        await press(pilot, "escape", "A")
        await shows(pilot, "No change is worth making")
        await press(pilot, "K")
        await shows(pilot, "the kernels were not recorded; a demonstration measures nothing")


async def test_a_model_is_searched_from_its_box(demonstration: Demonstration) -> None:
    async with running(app_on(demonstration)) as pilot:
        await press(pilot, "slash", '"vgg16"')
        assert "1 Models 1 of 17" in screen_text(pilot)
