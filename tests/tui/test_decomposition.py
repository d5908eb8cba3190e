"""The decomposition: its rows without a terminal, and its panel."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual.pilot import Pilot

from dlbricks_tui.documents.lines import Line, width_of
from dlbricks_tui.documents.outline import OutlineNode
from dlbricks_tui.documents.part_details import PartLatency
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.tui.messages import NewResults
from dlbricks_tui.tui.workbench.tree import DetailsPanel, TreePanel, TreeRow, TreeRows, heading_line, tree_line
from dlbricks_tui.tui.workbench.unfolded import Unfolded
from tests.bricks.graphs import chain
from tests.documents.outlines import outline_of, sample, unable
from tests.tui.application import MEASURED_ONLY, app_on, running
from tests.tui.driving import find, press, screen_text, settled, told
from tests.tui.snapshots import check, check_all


@pytest.fixture
def resnet() -> Unfolded:
    return Unfolded(sample("resnet50_v1"))


def titles(unfolded: Unfolded) -> list[str]:
    return [node.label + node.words[0] for node in unfolded.rows]


def test_expanding_a_large_model_stops_at_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    unfolded = Unfolded(sample("inceptionv3"))
    monkeypatch.setattr("dlbricks_tui.tui.workbench.unfolded.MOST_EXPANDED", 50)
    before = len(unfolded.rows)
    unfolded.expand_below(0)
    assert before + 50 <= len(unfolded.rows) < before + 150


def test_equal_bricks_are_visited_cyclically(resnet: Unfolded) -> None:
    index = resnet.reveal(resnet.outline.leaf(5))
    assert titles(resnet)[index].endswith("batch norm")
    seen = []
    for _ in range(resnet.rows[index].occurs):
        index = resnet.next_equal(index, 1)
        seen.append(resnet.rows[index].sequence)
    assert len(set(seen)) == len(seen) > 1
    assert seen[-1] == 5
    assert resnet.rows[resnet.next_equal(index, -1)].sequence == seen[-2]


def test_the_next_of_some_sequences_is_found_from_the_cursor(resnet: Unfolded) -> None:
    places = (3, 70)
    third, seventieth = (resnet.outline.sequences[place] for place in places)
    index = resnet.next_of(0, places, 1)
    assert resnet.rows[index].sequence == third
    index = resnet.next_of(index, places, 1)
    assert resnet.rows[index].sequence == seventieth
    assert resnet.rows[resnet.next_of(index, places, 1)].sequence == third
    assert resnet.rows[resnet.next_of(0, places, -1)].sequence == seventieth
    assert resnet.next_of(index, (), 1) == index


def test_a_sequence_expands_into_its_layers() -> None:
    unfolded = Unfolded(sample("resnet50_v1", granularity=4))
    first = unfolded.rows[1]
    assert first.title == "conv 7x7/2 64 > batch norm > relu > max pool 3x3/2"
    unfolded.expand(1)
    assert titles(unfolded)[2:6] == ["conv 7x7/2 64", "batch norm", "relu", "max pool 3x3/2"]
    assert [node.layer for node in unfolded.rows[2:6]] == [0, 1, 2, 3]
    assert not unfolded.can_open(unfolded.rows[2])


def test_the_matches_of_a_search_are_sorted_by_time(resnet: Unfolded) -> None:
    resnet.seek("pool", 0)
    found = [node.sequence for node in resnet.rows]
    assert len(found) > 1
    resnet.sort(list(reversed(range(174))), 0)
    assert [node.sequence for node in resnet.rows] == list(reversed(found)) and resnet.search_text == "pool"
    resnet.seek("", 0)
    assert not resnet.is_searched and not resnet.is_sorted


ROOT = sample("resnet18_v1").root
CONV, MODULE = ROOT.inside[0], next(it for it in ROOT.inside if it.module)
DEEP = MODULE.inside[0].inside[0].inside[0].inside[0]
MEASURED = PartLatency(1.234, 0.25, 4, 0, 0, 0, critical=True)

any_titles = st.text(alphabet="ab 漢é\n█", min_size=1, max_size=60)
latencies = st.builds(
    PartLatency,
    latency_ms=st.floats(0, 1e5),
    share=st.floats(0, 1),
    layers=st.integers(0, 9),
    predicted=st.just(0),
    missing=st.just(0),
    unmeasurable=st.just(0),
    critical=st.booleans(),
)


def named(title: str, names: str) -> OutlineNode:
    """Return a layer with such a title and name."""
    graph = chain("relu")
    return outline_of(replace(graph, layers=(replace(graph.layers[0], op=title, name=names),))).root.inside[0]


any_rows = st.builds(
    TreeRow,
    st.sampled_from((ROOT, MODULE, DEEP)) | st.builds(named, any_titles, any_titles),
    st.none() | latencies,
    st.sampled_from([None, True, False]),
)


def text_of(line: Line) -> str:
    return "".join(span.text for span in line)


def shown(row: TreeRow, width: int = 86, sought: str = "") -> str:
    return text_of(tree_line(row, width, sought))


@given(any_rows, st.integers(0, 40), st.integers(1, 160), st.sampled_from(["", "a b"]))
def test_rows_and_heading_take_exactly_their_width(row: TreeRow, depth: int, width: int, sought: str) -> None:
    assert width_of(tree_line(row._replace(node=replace(row.node, depth=depth)), width, sought)) == width
    assert width_of(heading_line(width, bool(sought))) == width


def test_a_word_of_a_region_is_shown_in_full_or_left_out() -> None:
    row = TreeRow(MODULE, is_open=False)
    assert "+ block A, in a row, 7 layers  " in shown(row, 100)
    assert "+ block A, in a row  " in shown(row, 44)
    assert shown(row, 19) == " + block A         "


@pytest.mark.parametrize(
    ("latency", "says"),
    [
        (PartLatency(1.5, 0.1, 2, 0, 0, 0, critical=False), " 1.500 "),
        (PartLatency(1.5, 0.1, 2, 0, 0, 0, critical=True), " 1.500  yes "),
        (PartLatency(1.5, 0.1, 2, 0, 1, 0, critical=False), "part 1.500 "),
        (PartLatency(1.5, 0.1, 2, 0, 0, 1, critical=False), "part 1.500 "),
        (PartLatency(1.5, 0.1, 2, 2, 0, 0, critical=False), "~1.500 "),
        (PartLatency(1.5, 0.1, 4, 2, 1, 0, critical=False), "part 1.500 "),
        (PartLatency(1.5, 0.1, 2, 0, 0, 0, critical=False, wide=True), "≈1.500 "),
        (PartLatency(0.0, 0.0, 2, 0, 2, 0, critical=False), " - "),
        (PartLatency(0.0, 0.0, 2, 0, 0, 2, critical=False), " cannot "),
        (PartLatency(0.0, 0.0, 1, 0, 0, 0, critical=False), " 0 "),
        (PartLatency(0.0, 0.0, 0, 0, 0, 0, critical=False), " unused "),
    ],
)
def test_each_state_of_a_latency_has_a_sign(latency: PartLatency, says: str) -> None:
    assert says in shown(TreeRow(MODULE, latency))


def test_parts_with_layers_that_cannot_run_are_marked_once() -> None:
    latency = PartLatency(1.5, 0.1, 2, 0, 0, 1, critical=False)
    assert "! block A" in shown(TreeRow(MODULE, latency))
    assert "! conv 7x7/2 64" in shown(TreeRow(CONV, latency))
    relu = outline_of(unable(chain("conv", "relu"), 1)).root.inside[1]
    assert shown(TreeRow(relu, latency)).count("!") == 1
    (mark,) = [span.style for span in tree_line(TreeRow(relu, latency), 86) if "!" in span.text]
    assert mark == "bad"


def test_a_layer_among_several_has_no_latency_of_its_own() -> None:
    layer = sample("resnet18_v1", granularity=3).root.inside[0].inside[0]
    assert "1.234" not in shown(TreeRow(layer, MEASURED))


RESNET = ("1", *find("resnet18"), "enter", "2")
SQUEEZENET = ("1", *find("squeeze"), "enter", "2")


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


async def go_to(pilot: Pilot[None], wanted: str) -> None:
    """Move the cursor to the first row with this title."""
    rows(pilot).cursor = next(at for at, it in enumerate(unfolded(pilot).rows) if it.title.startswith(wanted))
    await settled(pilot)


async def test_parts_are_expanded_entered_and_collapsed(measured: DataFolder) -> None:
    async with running(app_on(measured, MEASURED_ONLY)) as pilot:
        # Without a model the keys do nothing.
        await press(
            pilot, "2", *"lh*znN)({}", "enter", "slash", '"a"', "escape", shows="enter in the list of models opens one."
        )
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
        assert title(pilot) == "conv 7x7/2 64" and told(pilot)[-1] == "No other part of the model is equal."
        await press(pilot, "right_curly_bracket")
        assert told(pilot)[-1] == "Everything in the model has a latency."
        await press(pilot, "g", "asterisk")
        await go_to(pilot, "relu")
        await press(pilot, "right_parenthesis", "right_parenthesis", "right_parenthesis", "right_parenthesis")
        assert unfolded(pilot).has_equal(node(pilot))
        here = node(pilot).sequence
        await press(pilot, "n")
        assert node(pilot).sequence != here
        await press(pilot, "N")
        assert node(pilot).sequence == here
        await press(pilot, *SQUEEZENET, "right_curly_bracket", shows="predicted, not measured")
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
        await press(pilot, *RESNET, "j", "j", "slash", '"nothing like it"', shows="esc shows the whole model again.")
        await press(pilot, "escape")
        assert rows(pilot).cursor == 2
        await press(pilot, "slash", '"stage3 conv 1x1"', shows="2 Decomposition 1 of 68")
        await press(pilot, "enter")
        found = node(pilot).sequence
        await press(pilot, "enter")
        assert node(pilot).sequence == found and node(pilot).depth > 1
        shown = screen_text(pilot)
        assert "2 Decomposition ━" in shown and "stage3 conv 1x1" not in shown


@pytest.mark.usefixtures("library_without_latencies")
async def test_a_model_cut_or_read_anew_keeps_the_selected_layer_and_ends_a_search(measured: DataFolder) -> None:
    app = app_on(measured, MEASURED_ONLY)
    async with running(app) as pilot:
        await press(pilot, *RESNET, *find("stage3_conv2"), "enter")
        assert "stage3_conv2" in node(pilot).names
        (layer,) = _layers(pilot)
        for _ in range(2):
            await press(pilot, "+")
            assert layer in _layers(pilot)
        await press(pilot, "-", "-")
        assert _layers(pilot) == (layer,)
        # As after an answer by another runtime, or after others of which the last few are kept.
        tree = app.screen.query_one(TreePanel)
        await press(pilot, *find("relu"), "j", "j")
        selected = tree.selected_layer
        app._session.reader._cut.clear()
        app.screen.post_message(NewResults())
        await settled(pilot)
        assert selected and tree.selected_layer == selected and not tree.search_line.has_text


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
        await press(pilot, "z", *find("conv 3x3 stage2"))
        check(pilot.app, "tree-search")
        await press(pilot, "escape", "z", "g", "+", "+", "j", "l", "j")
        await check_all(pilot, "tree-sequences")


def panel(pilot: Pilot[None]) -> DetailsPanel:
    return pilot.app.screen.query_one(DetailsPanel)


async def test_the_details_follow_the_cursor_in_the_tree(measured: DataFolder) -> None:
    async with running(app_on(measured), (200, 60)) as pilot:
        assert "Select a part of the model" in screen_text(pilot)
        await press(pilot, *RESNET, shows="input      1x3x224x224 data")
        await press(pilot, "3", "y")
        assert pilot.app.clipboard == "" and "Only a layer sequence has a key" in told(pilot)[-1]
        await press(pilot, "2", "j", "y")
        shown, selected = screen_text(pilot), panel(pilot).selected
        assert "weights       64x3x7x7" in shown and "elsewhere     1 model: resnet50_v1" in shown
        # The tree copies the key, and so do the details.
        assert selected is not None and selected.brick_key is not None
        assert pilot.app.clipboard == selected.brick_key and told(pilot)[-1].startswith(
            f"Copied: {selected.brick_key}. "
        )
        pilot.app.copy_to_clipboard("")
        await press(pilot, "3", "y")
        assert pilot.app.clipboard == selected.brick_key
        await press(pilot, "2", "j")
        assert "weights       64x3x7x7" not in screen_text(pilot)
        # They are cleared while another model is read.
        await press(pilot, "1", *find("alexnet"), "enter")
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
