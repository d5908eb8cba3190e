from textual.pilot import Pilot

from dlbricks_tui.folders import DataFolder
from dlbricks_tui.tui.messages import NewResults
from dlbricks_tui.tui.workbench.tree import DetailsPanel
from tests.tui.application import app_on, press, running, screen_text, settled
from tests.tui.snapshots import check_all

RESNET = ("slash", '"resnet18"', "enter", "enter", "2")


def panel(pilot: Pilot[None]) -> DetailsPanel:
    return pilot.app.screen.query_one(DetailsPanel)


def told(pilot: Pilot[None]) -> str:
    return [it.message for it in pilot.app._notifications][-1]


async def test_the_details_follow_the_cursor_in_the_tree(measured: DataFolder) -> None:
    async with running(app_on(measured), (200, 60)) as pilot:
        assert "Select a part of the model" in screen_text(pilot)
        await press(pilot, *RESNET)
        assert "input      1x3x224x224 data" in screen_text(pilot)
        await press(pilot, "3", "y")
        assert pilot.app.clipboard == "" and "Only a layer sequence has a key" in told(pilot)
        await press(pilot, "2", "j", "y")
        shown, selected = screen_text(pilot), panel(pilot).selected
        assert "weights       64x3x7x7" in shown and "elsewhere     1 model: resnet50_v1" in shown
        # The tree copies the key, and so do the details.
        assert selected is not None and selected.brick_key is not None
        assert pilot.app.clipboard == selected.brick_key and told(pilot).startswith(f"Copied: {selected.brick_key}. ")
        pilot.app.copy_to_clipboard("")
        await press(pilot, "3", "y")
        assert pilot.app.clipboard == selected.brick_key
        await press(pilot, "2", "j")
        assert "weights       64x3x7x7" not in screen_text(pilot)
        # They are cleared while another model is read.
        await press(pilot, "1", "slash", "ctrl+u", '"alexnet"', "enter", "enter")
        selected = panel(pilot).selected
        assert selected is not None and selected.node.title == "alexnet"


async def test_new_results_keep_the_scroll_position_of_the_details(measured: DataFolder) -> None:
    async with running(app_on(measured)) as pilot:
        await press(pilot, *RESNET, "j", "3", "ctrl+d")
        await check_all(pilot, "details")
        await press(pilot, "G")
        before = screen_text(pilot)
        assert "25 samples, 2026-11-21 08:00 UTC" in before
        pilot.app.screen.post_message(NewResults())
        await settled(pilot)
        assert screen_text(pilot) == before
