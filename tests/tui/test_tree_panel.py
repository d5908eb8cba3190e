"""The decomposition of the open model, and the details of the part under the cursor."""

import pytest
from textual.pilot import Pilot

from dlbricks_tui.documents.outline import OutlineNode
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.tui.messages import NewResults
from dlbricks_tui.tui.workbench.tree import DetailsPanel, TreeRows
from dlbricks_tui.tui.workbench.unfolded import Unfolded
from tests.tui.application import MEASURED_ONLY, app_on, press, running, screen_text, settled
from tests.tui.snapshots import check, check_all

RESNET = ("1", "slash", "ctrl+u", '"resnet18"', "enter", "enter", "2")
SQUEEZENET = ("1", "slash", "ctrl+u", '"squeeze"', "enter", "enter", "2")


def rows(pilot: Pilot[None]) -> TreeRows:
    return pilot.app.screen.query_one(TreeRows)


def unfolded(pilot: Pilot[None]) -> Unfolded:
    found = rows(pilot).unfolded
    assert found is not None
    return found


def node(pilot: Pilot[None]) -> OutlineNode:
    found = rows(pilot).node
    assert found is not None
    return found


def title(pilot: Pilot[None]) -> str:
    return node(pilot).title


def told(pilot: Pilot[None]) -> str:
    return [it.message for it in pilot.app._notifications][-1]


async def go_to(pilot: Pilot[None], wanted: str) -> None:
    """Move the cursor to the first row with this title."""
    rows(pilot).cursor = next(at for at, it in enumerate(unfolded(pilot).rows) if it.title.startswith(wanted))
    await settled(pilot)


async def test_parts_are_expanded_entered_and_collapsed(measured: DataFolder) -> None:
    async with running(app_on(measured, MEASURED_ONLY)) as pilot:
        # Without a model the keys do nothing.
        await press(pilot, "2", *"lh*znN)({}", "enter", "slash", '"a"', "escape")
        assert "enter in the list of models opens one." in screen_text(pilot)
        await press(pilot, *RESNET)
        closed = rows(pilot).row_count
        await go_to(pilot, "block A")
        await press(pilot, "l")
        assert rows(pilot).row_count == closed + 2 and title(pilot) == "block A x2, in a row, 7 layers"
        await press(pilot, "right")
        assert title(pilot) == "1 of 2: block A x2, 7 layers"
        await press(pilot, "h", "left")
        assert rows(pilot).row_count == closed and title(pilot) == "block A x2, in a row, 7 layers"
        await press(pilot, "enter")
        assert rows(pilot).row_count == closed + 2
        await press(pilot, "enter")
        assert rows(pilot).row_count == closed
        # New estimates keep the cursor and the expanded parts.
        await press(pilot, "asterisk", "j", "j")
        before = (rows(pilot).cursor, rows(pilot).row_count, rows(pilot).scroll_offset, screen_text(pilot))
        for _ in range(2):
            pilot.app.screen.post_message(NewResults())
            await settled(pilot)
        assert (rows(pilot).cursor, rows(pilot).row_count, rows(pilot).scroll_offset, screen_text(pilot)) == before
        await press(pilot, "g", "asterisk")
        sequences = [each.sequence for each in unfolded(pilot).rows if each.sequence is not None]
        assert sorted(sequences) == list(range(68))
        await press(pilot, "z")
        assert rows(pilot).row_count == closed and rows(pilot).cursor == 0
        # Another model starts at its top.
        await press(pilot, "j", "j", "j", *SQUEEZENET)
        assert rows(pilot).cursor == 0


async def test_keys_go_to_equal_critical_and_unmeasured_parts_and_back(measured: DataFolder) -> None:
    async with running(app_on(measured)) as pilot:
        await press(pilot, *RESNET, "j", "n")
        assert title(pilot) == "conv 7x7/2 64" and told(pilot) == "No other part of the model is equal."
        await press(pilot, "right_curly_bracket")
        assert told(pilot) == "Everything in the model has a latency."
        await press(pilot, "g", "asterisk")
        await go_to(pilot, "relu")
        await press(pilot, "right_parenthesis", "right_parenthesis", "right_parenthesis", "right_parenthesis")
        assert unfolded(pilot).has_equal(node(pilot))
        here = node(pilot).sequence
        await press(pilot, "n")
        assert node(pilot).sequence != here
        await press(pilot, "N")
        assert node(pilot).sequence == here
        await press(pilot, *SQUEEZENET, "right_curly_bracket")
        assert "predicted, not measured" in screen_text(pilot)
        first = node(pilot).sequence
        await press(pilot, "right_curly_bracket")
        assert node(pilot).sequence != first
        await press(pilot, "left_curly_bracket")
        assert node(pilot).sequence == first
        await press(pilot, "z")
        latencies, seen = rows(pilot).latencies, []
        assert latencies is not None
        for _ in range(4):
            await press(pilot, "right_parenthesis")
            seen.append(node(pilot).outline.span_of(node(pilot).region).start)
        assert tuple(seen) == latencies.critical[:4]
        await press(pilot, "left_parenthesis")
        assert node(pilot).outline.span_of(node(pilot).region).start == seen[-2]


async def test_a_search_filters_the_tree_and_a_match_can_be_shown_in_its_place(measured: DataFolder) -> None:
    async with running(app_on(measured)) as pilot:
        await press(pilot, *RESNET, "j", "j", "slash", '"nothing like it"')
        assert "esc shows the whole model again." in screen_text(pilot)
        await press(pilot, "escape")
        assert rows(pilot).cursor == 2
        await press(pilot, "slash", '"stage3 conv 1x1"')
        assert "2 Decomposition 1 of 68" in screen_text(pilot)
        await press(pilot, "enter")
        found = node(pilot).sequence
        await press(pilot, "enter")
        assert node(pilot).sequence == found and node(pilot).depth > 1
        shown = screen_text(pilot)
        assert "2 Decomposition ━" in shown and "stage3 conv 1x1" not in shown


@pytest.mark.usefixtures("library_without_latencies")
async def test_a_model_cut_anew_keeps_the_selected_layer(measured: DataFolder) -> None:
    async with running(app_on(measured, MEASURED_ONLY)) as pilot:
        await press(pilot, *RESNET, "slash", '"stage3_conv2"', "enter", "enter")
        assert "stage3_conv2" in node(pilot).names
        (layer,) = _layers(pilot)
        for _ in range(2):
            await press(pilot, "+")
            assert layer in _layers(pilot)
        await press(pilot, "-", "-")
        assert _layers(pilot) == (layer,)


def _layers(pilot: Pilot[None]) -> tuple[int, ...]:
    occurrence = node(pilot).occurrence
    assert occurrence is not None
    return occurrence.sequence.layers


async def test_the_decomposition_matches_its_snapshots(measured: DataFolder) -> None:
    async with running(app_on(measured)) as pilot:
        await press(pilot, *SQUEEZENET, "right_curly_bracket", "right_curly_bracket")
        check(pilot.app, "tree-in-part")
        await press(pilot, *RESNET, "n", "j", "j", "j", "j", "j", "asterisk", "j")
        check(pilot.app, "tree")
        await press(pilot, "z", "slash", '"conv 3x3 stage2"', "enter")
        check(pilot.app, "tree-search")
        await press(pilot, "escape", "z", "g", "+", "+", "j", "l", "j")
        await check_all(pilot, "tree-sequences")


FOUND_RESNET = ("slash", '"resnet18"', "enter", "enter", "2")


def panel(pilot: Pilot[None]) -> DetailsPanel:
    return pilot.app.screen.query_one(DetailsPanel)


async def test_the_details_follow_the_cursor_in_the_tree(measured: DataFolder) -> None:
    async with running(app_on(measured), (200, 60)) as pilot:
        assert "Select a part of the model" in screen_text(pilot)
        await press(pilot, *FOUND_RESNET)
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
        await press(pilot, *FOUND_RESNET, "j", "3", "ctrl+d")
        await check_all(pilot, "details")
        await press(pilot, "G")
        before = screen_text(pilot)
        assert "25 samples, 2026-11-21 08:00 UTC" in before
        pilot.app.screen.post_message(NewResults())
        await settled(pilot)
        assert screen_text(pilot) == before
