from textual.pilot import Pilot

from dlbricks_tui.folders import DataFolder
from dlbricks_tui.tui.messages import NewResults
from dlbricks_tui.tui.workbench.details import DetailsPanel
from tests.tui.application import app_on, press, running, screen_text, settled
from tests.tui.snapshots import check_all

RESNET = ("slash", '"resnet18"', "enter", "enter", "2")


def panel(pilot: Pilot[None]) -> DetailsPanel:
    return pilot.app.screen.query_one(DetailsPanel)


async def test_without_a_model_the_details_say_what_to_select(measured: DataFolder) -> None:
    async with running(app_on(measured), (120, 40)) as pilot:
        assert "Select a part of the model" in screen_text(pilot)


async def test_the_details_follow_the_cursor_in_the_tree(measured: DataFolder) -> None:
    async with running(app_on(measured), (200, 60)) as pilot:
        await press(pilot, *RESNET)
        assert "input      1x3x224x224 data" in screen_text(pilot)
        await press(pilot, "j")
        assert "weights       64x3x7x7" in screen_text(pilot)
        await press(pilot, "j")
        assert "weights       64x3x7x7" not in screen_text(pilot)


async def test_the_details_show_the_stored_samples_of_a_brick(measured: DataFolder) -> None:
    async with running(app_on(measured), (120, 60)) as pilot:
        await press(pilot, *RESNET, "j", "3", "G")
        assert "25 samples, 2026-11-21 08:00 UTC" in screen_text(pilot)


async def test_the_library_is_indexed_once(measured: DataFolder) -> None:
    async with running(app_on(measured), (200, 60)) as pilot:
        await press(pilot, *RESNET, "j")
        assert "elsewhere     1 model: resnet50_v1" in screen_text(pilot)


async def test_new_results_keep_the_scroll_position_of_the_details(measured: DataFolder) -> None:
    async with running(app_on(measured), (80, 24)) as pilot:
        await press(pilot, *RESNET, "j", "3", "G")
        before = screen_text(pilot)
        pilot.app.screen.post_message(NewResults())
        await settled(pilot)
        assert screen_text(pilot) == before


async def test_the_key_of_a_brick_can_be_copied(measured: DataFolder) -> None:
    async with running(app_on(measured)) as pilot:
        await press(pilot, *RESNET, "j", "3", "y")
        selected = panel(pilot).selected
        assert selected is not None and selected.brick_key is not None
        assert pilot.app.clipboard == selected.brick_key


async def test_the_tree_copies_the_key_of_a_brick_and_shows_it_in_a_message(measured: DataFolder) -> None:
    async with running(app_on(measured)) as pilot:
        await press(pilot, *RESNET, "2", "j", "y")
        selected = panel(pilot).selected
        assert selected is not None and pilot.app.clipboard == selected.brick_key
        assert [it.message for it in pilot.app._notifications][-1].startswith(f"Copied: {selected.brick_key}. ")


async def test_copying_a_part_without_a_key_explains_why(measured: DataFolder) -> None:
    async with running(app_on(measured)) as pilot:
        await press(pilot, *RESNET, "3", "y")
        assert pilot.app.clipboard == ""
        assert "Only a layer sequence has a key" in [it.message for it in pilot.app._notifications][-1]


async def test_the_details_are_cleared_while_another_model_is_read(measured: DataFolder) -> None:
    async with running(app_on(measured)) as pilot:
        await press(pilot, *RESNET, "j", "1", "slash", "escape", "slash", '"alexnet"', "enter", "enter")
        selected = panel(pilot).selected
        assert selected is not None and selected.node.title == "alexnet"


async def test_the_details_match_their_snapshot(measured: DataFolder) -> None:
    async with running(app_on(measured)) as pilot:
        await press(pilot, *RESNET, "j", "3", "ctrl+d")
        await check_all(pilot, "details")
