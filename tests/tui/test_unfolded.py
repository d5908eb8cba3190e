"""The rows of the decomposition, without a terminal."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlbricks_tui.documents.lines import Line, width_of
from dlbricks_tui.documents.outline import OutlineNode
from dlbricks_tui.documents.part_details import PartLatency
from dlbricks_tui.tui.workbench.tree import TreeRow, heading_line, tree_line
from dlbricks_tui.tui.workbench.unfolded import Unfolded
from tests.bricks.graphs import chain
from tests.documents.outlines import outline_of, sample, unable


@pytest.fixture
def resnet() -> Unfolded:
    return Unfolded(sample("resnet50_v1"))


def titles(unfolded: Unfolded) -> list[str]:
    return [node.label + node.words[0] for node in unfolded.rows]


def test_a_part_expands_and_collapses_with_all_its_parts(resnet: Unfolded) -> None:
    before = titles(resnet)
    module = next(at for at, title in enumerate(before) if title == "block A")
    assert resnet.expand(module) == module
    assert titles(resnet)[module + 1].startswith("1 of 2: ")
    assert resnet.expand(module) == module + 1
    resnet.expand_below(module)
    assert resnet.collapse(module) == module
    assert titles(resnet) == before


def test_collapsing_a_closed_part_goes_to_its_parent(resnet: Unfolded) -> None:
    module = next(at for at, title in enumerate(titles(resnet)) if title.startswith("block"))
    resnet.expand(module)
    assert resnet.collapse(module + 2) == module


def test_a_fully_expanded_outline_shows_every_layer_once(resnet: Unfolded) -> None:
    resnet.expand_below(0)
    assert sorted(node.sequence for node in resnet.rows if node.sequence is not None) == list(range(174))


def test_expanding_a_large_model_stops_at_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    unfolded = Unfolded(sample("inceptionv3"))
    monkeypatch.setattr("dlbricks_tui.tui.workbench.unfolded.MOST_EXPANDED", 50)
    before = len(unfolded.rows)
    unfolded.expand_below(0)
    assert before + 50 <= len(unfolded.rows) < before + 150


def test_a_search_finds_sequences_with_every_word_and_ending_it_keeps_the_selection(resnet: Unfolded) -> None:
    resnet.seek("pool max", 0)
    assert titles(resnet) == ["max pool 3x3/2"]
    index = resnet.seek("", 0)
    assert titles(resnet)[index] == "max pool 3x3/2"
    assert titles(resnet)[0] == "resnet50_v1"


def test_ending_a_search_expands_the_parts_around_the_match(resnet: Unfolded) -> None:
    resnet.seek("stage4_conv9", 0)
    assert len(resnet.rows) == 1
    sequence = resnet.rows[0].sequence
    index = resnet.seek("", 0)
    assert resnet.rows[index].sequence == sequence
    assert resnet.rows[index].depth > 1


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


def test_a_part_that_occurs_once_has_no_next(resnet: Unfolded) -> None:
    assert not resnet.has_equal(resnet.rows[0]) and not resnet.has_equal(resnet.rows[1])
    assert resnet.next_equal(1, 1) == 1
    row = next(node for node in resnet.rows if node.words[0] == "block A")
    assert row.occurs == 2 and not resnet.has_equal(row)


def test_ending_a_search_without_matches_restores_the_selection(resnet: Unfolded) -> None:
    resnet.seek("no such layer", 4)
    assert resnet.seek("", 0) == 4


def test_sequences_are_sorted_by_time_and_back(resnet: Unfolded) -> None:
    before, slowest_first = titles(resnet), list(reversed(range(174)))
    here = resnet.sort(slowest_first, 3)
    assert here == 0 and resnet.is_sorted and [node.sequence for node in resnet.rows] == slowest_first
    selected = resnet.rows[5].region
    at = resnet.sort(slowest_first, 5)
    assert not resnet.is_sorted and resnet.rows[at].region is selected
    resnet.collapse_all()
    assert titles(resnet) == before


def test_the_matches_of_a_search_are_sorted_by_time(resnet: Unfolded) -> None:
    resnet.seek("pool", 0)
    found = [node.sequence for node in resnet.rows]
    assert len(found) > 1
    resnet.sort(list(reversed(range(174))), 0)
    assert [node.sequence for node in resnet.rows] == list(reversed(found)) and resnet.search_text == "pool"
    resnet.seek("", 0)
    assert not resnet.is_searched and not resnet.is_sorted


RESNET = sample("resnet18_v1").root
CONV, MODULE = RESNET.inside[0], next(it for it in RESNET.inside if it.module)
DEEP = MODULE.inside[0].inside[0].inside[0].inside[0]
MEASURED = PartLatency(1.234, 0.25, 4, 0, 0, 0, critical=True)
ROW = TreeRow(DEEP, MEASURED)

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


rows = st.builds(
    TreeRow,
    st.sampled_from((RESNET, MODULE, DEEP)) | st.builds(named, any_titles, any_titles),
    st.none() | latencies,
    st.sampled_from([None, True, False]),
)


def text_of(line: Line) -> str:
    return "".join(span.text for span in line)


def shown(row: TreeRow, width: int = 86, sought: str = "") -> str:
    return text_of(tree_line(row, width, sought))


@given(rows, st.integers(0, 40), st.integers(1, 160), st.sampled_from(["", "a b"]))
def test_rows_and_heading_take_exactly_their_width(row: TreeRow, depth: int, width: int, sought: str) -> None:
    assert width_of(tree_line(row._replace(node=replace(row.node, depth=depth)), width, sought)) == width
    assert width_of(heading_line(width, bool(sought))) == width


def test_a_word_of_a_region_is_shown_in_full_or_left_out() -> None:
    row = TreeRow(MODULE, is_open=False)
    assert "+ block A, in a row, 7 layers  " in shown(row, 100)
    assert "+ block A, in a row  " in shown(row, 44)
    assert shown(row, 19) == " + block A         "


def test_a_long_name_keeps_its_end() -> None:
    assert "…_activation0 " in shown(TreeRow(named("relu", "resnet50_v1_stage1_something_like_an_e_activation0")))


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


def test_found_words_are_highlighted_in_title_and_name() -> None:
    spans = tree_line(ROW, 120, "conv 64")
    assert [span.text for span in spans if span.style == "match"] == ["conv", "64", "conv"]
