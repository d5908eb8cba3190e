import json
from pathlib import Path

import pytest
from textual.pilot import Pilot

from dlbricks_tui.documents.outline import Node
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.tui.messages import NewResults
from dlbricks_tui.tui.workbench.tree import TreeRows
from dlbricks_tui.tui.workbench.unfolded import Unfolded
from tests.tui.application import MEASURED_ONLY, app_on, press, running, screen_text, settled
from tests.tui.snapshots import check_all

RESNET = ("slash", '"resnet18"', "enter", "enter", "2")
SQUEEZENET = ("slash", '"squeeze"', "enter", "enter", "2")
SCREENS: dict[str, tuple[str, ...]] = {
    "tree": (*RESNET, "n", "j", "j", "j", "j", "j", "e", "j"),
    "tree-in-part": (*SQUEEZENET, "m", "m"),
    "tree-search": (*RESNET, "slash", '"conv 3x3 stage2"', "enter"),
    "tree-sequences": (*RESNET, "+", "+", "j", "l", "j"),
}


def rows(pilot: Pilot[None]) -> TreeRows:
    return pilot.app.screen.query_one(TreeRows)


def unfolded(pilot: Pilot[None]) -> Unfolded:
    found = rows(pilot).unfolded
    assert found is not None
    return found


def node(pilot: Pilot[None]) -> Node:
    found = rows(pilot).node
    assert found is not None
    return found


def title(pilot: Pilot[None]) -> str:
    return node(pilot).title


async def go_to(pilot: Pilot[None], wanted: str) -> None:
    """Move the cursor to the first row with this title."""
    rows(pilot).cursor = next(at for at, it in enumerate(unfolded(pilot).rows) if it.title.startswith(wanted))
    await settled(pilot)


async def test_a_part_can_be_expanded_entered_and_collapsed(measured: DataFolder) -> None:
    async with running(app_on(measured)) as pilot:
        await press(pilot, *RESNET)
        closed = rows(pilot).row_count
        await go_to(pilot, "module A")
        await press(pilot, "l")
        assert rows(pilot).row_count == closed + 2 and title(pilot) == "module A x2, in a row, 7 layers"
        await press(pilot, "right")
        assert title(pilot) == "1 of 2: module A x2, 7 layers"
        await press(pilot, "h", "left")
        assert rows(pilot).row_count == closed and title(pilot) == "module A x2, in a row, 7 layers"
        await press(pilot, "enter")
        assert rows(pilot).row_count == closed + 2
        await press(pilot, "space")
        assert rows(pilot).row_count == closed


async def test_a_part_can_be_expanded_and_collapsed_completely(measured: DataFolder) -> None:
    async with running(app_on(measured)) as pilot:
        await press(pilot, *RESNET)
        closed = rows(pilot).row_count
        await press(pilot, "e")
        sequences = [each.sequence for each in unfolded(pilot).rows if each.sequence is not None]
        assert sorted(sequences) == list(range(68))
        await press(pilot, "E")
        assert rows(pilot).row_count == closed and rows(pilot).cursor == 0


async def test_equal_bricks_are_visited_in_both_directions(measured: DataFolder) -> None:
    async with running(app_on(measured)) as pilot:
        await press(pilot, *RESNET, "e")
        await go_to(pilot, "relu")
        await press(pilot, "p", "p", "p", "p")
        assert unfolded(pilot).has_equal(node(pilot))
        here = node(pilot).sequence
        await press(pilot, "n")
        assert node(pilot).sequence != here
        await press(pilot, "N")
        assert node(pilot).sequence == here


async def test_a_part_that_occurs_once_says_so(measured: DataFolder) -> None:
    async with running(app_on(measured)) as pilot:
        await press(pilot, *RESNET, "j", "n")
        assert title(pilot) == "conv 7x7/2 64"
        assert [it.message for it in pilot.app._notifications] == ["No other part of the model is equal."]


async def test_the_critical_path_is_visited_in_both_directions(measured: DataFolder) -> None:
    async with running(app_on(measured)) as pilot:
        await press(pilot, *SQUEEZENET)
        latencies = rows(pilot).latencies
        assert latencies is not None
        seen = []
        for _ in range(4):
            await press(pilot, "p")
            seen.append(node(pilot).outline.span_of(node(pilot).region).start)
        assert tuple(seen) == latencies.critical[:4]
        await press(pilot, "P")
        assert node(pilot).outline.span_of(node(pilot).region).start == seen[-2]


async def test_unmeasured_sequences_are_visited_in_both_directions(measured: DataFolder) -> None:
    async with running(app_on(measured)) as pilot:
        await press(pilot, *SQUEEZENET, "m")
        assert "predicted, not measured" in screen_text(pilot)
        first = node(pilot).sequence
        await press(pilot, "m")
        assert node(pilot).sequence != first
        await press(pilot, "M")
        assert node(pilot).sequence == first


async def test_a_model_without_unmeasured_sequences_says_so(measured: DataFolder) -> None:
    async with running(app_on(measured)) as pilot:
        await press(pilot, *RESNET, "m")
        assert [it.message for it in pilot.app._notifications] == ["Everything in the model has a latency."]


async def test_an_unmeasured_model_has_no_critical_path(new: DataFolder) -> None:
    async with running(app_on(new, MEASURED_ONLY)) as pilot:
        await press(pilot, "escape", *RESNET, "p")
        assert "There is no critical path" in [it.message for it in pilot.app._notifications][-1]


async def test_a_search_filters_the_tree_and_a_match_can_be_shown_in_its_place(measured: DataFolder) -> None:
    async with running(app_on(measured)) as pilot:
        await press(pilot, *RESNET, "slash", '"stage3 conv 1x1"')
        assert "2 Decomposition 1 of 68" in screen_text(pilot)
        await press(pilot, "enter")
        found = node(pilot).sequence
        await press(pilot, "enter")
        assert node(pilot).sequence == found and node(pilot).depth > 1
        shown = screen_text(pilot)
        assert "2 Decomposition ━" in shown and "stage3 conv 1x1" not in shown


async def test_a_search_without_matches_shows_the_key_that_ends_it(measured: DataFolder) -> None:
    async with running(app_on(measured)) as pilot:
        await press(pilot, *RESNET, "j", "j", "slash", '"nothing like it"')
        assert "esc shows the whole model again." in screen_text(pilot)
        await press(pilot, "escape")
        assert rows(pilot).cursor == 2


async def test_keys_without_a_model_do_nothing(measured: DataFolder) -> None:
    keys = ("2", "l", "h", "enter", "e", "E", "n", "N", "p", "P", "m", "M", "slash", '"a"', "escape")
    async with running(app_on(measured)) as pilot:
        await press(pilot, *keys)
        assert "enter in the list of models opens one." in screen_text(pilot)


async def test_new_estimates_keep_the_cursor_and_the_expanded_parts(measured: DataFolder) -> None:
    async with running(app_on(measured)) as pilot:
        await press(pilot, *RESNET)
        await go_to(pilot, "module A")
        await press(pilot, "e", "j", "j")
        before = (rows(pilot).cursor, rows(pilot).row_count, rows(pilot).scroll_offset, screen_text(pilot))
        for _ in range(5):
            pilot.app.screen.post_message(NewResults())
            await settled(pilot)
        assert (rows(pilot).cursor, rows(pilot).row_count, rows(pilot).scroll_offset, screen_text(pilot)) == before


async def test_a_model_cut_anew_keeps_the_selected_layer(measured: DataFolder) -> None:
    async with running(app_on(measured)) as pilot:
        await press(pilot, *RESNET, "slash", '"stage3_conv2"', "enter", "enter")
        assert "stage3_conv2" in node(pilot).names
        (layer,) = _layers(pilot)
        for _ in range(3):
            await press(pilot, "+")
            assert layer in _layers(pilot)
        await press(pilot, "-", "-", "-")
        assert _layers(pilot) == (layer,)


async def test_another_model_starts_at_its_top(measured: DataFolder) -> None:
    async with running(app_on(measured)) as pilot:
        await press(pilot, *RESNET, "j", "j", "j", "1", "slash", "escape", *SQUEEZENET)
        assert rows(pilot).cursor == 0


async def test_an_invalid_model_file_is_reported_in_the_tree(measured: DataFolder, tmp_path: Path) -> None:
    (tmp_path / "broken-symbol.json").write_text(json.dumps({"nodes": 3}))
    async with running(app_on(measured)) as pilot:
        await press(pilot, "o", f'"{tmp_path}"', "enter", "G", "enter")
        assert "This model cannot be shown." in screen_text(pilot)


async def test_a_long_reason_is_shown_in_full(measured: DataFolder, tmp_path: Path) -> None:
    (tmp_path / "broken-symbol.json").write_text("{")
    async with running(app_on(measured), (80, 24)) as pilot:
        await press(pilot, "o", f'"{tmp_path}"', "enter", "G", "enter", "2")
        shown = screen_text(pilot)
        assert "broken is not JSON: Expecting property name" in shown and "column 2 (char 1)" in shown


@pytest.mark.parametrize("name", SCREENS)
async def test_the_decomposition_matches_its_snapshot(name: str, measured: DataFolder) -> None:
    async with running(app_on(measured)) as pilot:
        await press(pilot, *SCREENS[name])
        await check_all(pilot, name)


def _layers(pilot: Pilot[None]) -> tuple[int, ...]:
    occurrence = node(pilot).occurrence
    assert occurrence is not None
    return occurrence.sequence.layers
