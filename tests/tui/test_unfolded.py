import pytest

from dlbricks_tui.tui.workbench.unfolded import Unfolded
from tests.documents.outlines import sample


@pytest.fixture
def resnet() -> Unfolded:
    return Unfolded(sample("resnet50_v1"))


def titles(unfolded: Unfolded) -> list[str]:
    return [node.label + node.words[0] for node in unfolded.rows]


def test_an_outline_starts_with_the_closed_parts_of_the_model(resnet: Unfolded) -> None:
    assert titles(resnet)[:2] == ["resnet50_v1", "conv 7x7/2 64"]
    assert {node.depth for node in resnet.rows} == {0, 1}


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


def test_a_part_expands_in_an_outline_longer_than_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    unfolded = Unfolded(sample("inceptionv3"))
    unfolded.expand_below(0)
    monkeypatch.setattr("dlbricks_tui.tui.workbench.unfolded.MOST_EXPANDED", 50)
    module = next(at for at, title in enumerate(titles(unfolded)) if title.startswith("block"))
    unfolded.collapse(module)
    closed = len(unfolded.rows)
    unfolded.expand_below(module)
    assert len(unfolded.rows) > closed


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


def test_a_search_without_matches_has_no_rows(resnet: Unfolded) -> None:
    resnet.seek("no such layer", 0)
    assert titles(resnet) == []


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


def test_the_first_sequence_of_a_part_comes_after_the_part(resnet: Unfolded) -> None:
    assert resnet.rows[resnet.next_of(0, (0, 5), 1)].sequence == resnet.outline.sequences[0]


def test_a_sequence_expands_into_its_layers() -> None:
    unfolded = Unfolded(sample("resnet50_v1", granularity=4))
    first = unfolded.rows[1]
    assert first.title == "conv 7x7/2 64 > batch norm > relu > max pool 3x3/2"
    unfolded.expand(1)
    assert titles(unfolded)[2:6] == ["conv 7x7/2 64", "batch norm", "relu", "max pool 3x3/2"]
    assert [node.layer for node in unfolded.rows[2:6]] == [0, 1, 2, 3]
    assert not unfolded.can_open(unfolded.rows[2])


def test_the_next_equal_module_is_found_from_a_repeat(resnet: Unfolded) -> None:
    resnet.expand_below(0)
    at = next(index for index, title in enumerate(titles(resnet)) if title.startswith("2 of 5: "))
    index = resnet.next_equal(at, 1)
    assert titles(resnet)[index].startswith("3 of 5: ")
    assert titles(resnet)[resnet.next_equal(at, -1)].startswith("1 of 5: ")


def test_a_part_that_occurs_once_has_no_next(resnet: Unfolded) -> None:
    assert not resnet.has_equal(resnet.rows[0]) and not resnet.has_equal(resnet.rows[1])
    assert resnet.next_equal(1, 1) == 1
    row = next(node for node in resnet.rows if node.words[0] == "block A")
    assert row.occurs == 2 and not resnet.has_equal(row)


def test_expanding_a_match_shows_it_in_the_tree(resnet: Unfolded) -> None:
    resnet.seek("stage4_conv9", 0)
    assert resnet.is_searched and resnet.search_text == "stage4_conv9"
    found = resnet.rows[0].sequence
    index = resnet.expand(0)
    assert not resnet.is_searched and resnet.search_text == ""
    assert resnet.rows[index].sequence == found and resnet.rows[index].depth > 1


def test_ending_a_search_without_matches_restores_the_selection(resnet: Unfolded) -> None:
    resnet.seek("no such layer", 4)
    assert resnet.seek("", 0) == 4


def test_a_layer_is_found_for_every_cutting() -> None:
    for granularity in (1, 3):
        unfolded = Unfolded(sample("resnet50_v1", granularity))
        node = unfolded.rows[unfolded.reveal_layer(100)]
        assert node.sequence is not None
        assert "stage3" in node.names


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
