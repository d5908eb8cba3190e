import pytest

from dlbricks_tui.bricks.decomposition import Cutting, decompose
from dlbricks_tui.bricks.regions import Repeat, sequence_regions
from dlbricks_tui.tui.open_model import ModelSpec, OpenModel
from dlbricks_tui.tui.workbench.nesting import Nesting
from dlbricks_tui.tui.workbench.outline import Outline
from tests.tui.results import graph_of, source_called


def opened(name: str, granularity: int = 1) -> OpenModel:
    graph = graph_of(name)
    decomposition = decompose(graph, Cutting(granularity))
    wish = ModelSpec(source_called(name), graph.level, decomposition.cutting)
    return OpenModel(wish, graph, decomposition, Nesting(sequence_regions(decomposition)))


@pytest.fixture
def resnet() -> Outline:
    return Outline(opened("resnet50_v1"))


def titles(outline: Outline) -> list[str]:
    return [outline.label(node) + outline.title(node) for node in outline.rows]


def test_a_model_begins_with_its_parts_and_nothing_in_them(resnet: Outline) -> None:
    assert titles(resnet)[:2] == ["resnet50_v1", "conv 7x7/2 64"]
    assert {node.depth for node in resnet.rows} == {0, 1}


def test_opening_a_part_shows_what_is_in_it_and_closing_it_hides_all_of_that(resnet: Outline) -> None:
    before = titles(resnet)
    module = next(at for at, title in enumerate(before) if title == "module A x2")
    assert resnet.expand(module) == module
    assert titles(resnet)[module + 1].startswith("1 of 2: ")
    assert resnet.expand(module) == module + 1
    resnet.expand_below(module)
    assert resnet.collapse(module) == module
    assert titles(resnet) == before


def test_from_a_closed_part_closing_goes_to_what_it_is_part_of(resnet: Outline) -> None:
    module = next(at for at, title in enumerate(titles(resnet)) if title.startswith("module"))
    resnet.expand(module)
    assert resnet.collapse(module + 2) == module


def test_everything_open_shows_every_layer_once(resnet: Outline) -> None:
    resnet.expand_below(0)
    assert sorted(node.sequence for node in resnet.rows if node.sequence is not None) == list(range(174))


def test_a_large_model_is_opened_no_further_than_is_readable(monkeypatch: pytest.MonkeyPatch) -> None:
    outline = Outline(opened("inceptionv3"))
    monkeypatch.setattr("dlbricks_tui.tui.workbench.outline.MOST_EXPANDED", 50)
    before = len(outline.rows)
    outline.expand_below(0)
    assert before + 50 <= len(outline.rows) < before + 150


def test_in_an_outline_of_any_length_a_part_still_opens(monkeypatch: pytest.MonkeyPatch) -> None:
    outline = Outline(opened("inceptionv3"))
    outline.expand_below(0)
    monkeypatch.setattr("dlbricks_tui.tui.workbench.outline.MOST_EXPANDED", 50)
    module = next(at for at, title in enumerate(titles(outline)) if title.startswith("module"))
    outline.collapse(module)
    closed = len(outline.rows)
    outline.expand_below(module)
    assert len(outline.rows) > closed


def test_a_search_shows_the_sequences_that_have_every_word_and_ending_it_keeps_the_place(resnet: Outline) -> None:
    resnet.seek("pool max", 0)
    assert titles(resnet) == ["max pool 3x3/2"]
    index = resnet.seek("", 0)
    assert titles(resnet)[index] == "max pool 3x3/2"
    assert titles(resnet)[0] == "resnet50_v1"


def test_a_search_in_a_closed_part_opens_it_when_it_ends(resnet: Outline) -> None:
    resnet.seek("stage4_conv9", 0)
    assert len(resnet.rows) == 1
    sequence = resnet.rows[0].sequence
    index = resnet.seek("", 0)
    assert resnet.rows[index].sequence == sequence
    assert resnet.rows[index].depth > 1


def test_nothing_found_is_no_rows(resnet: Outline) -> None:
    resnet.seek("no such layer", 0)
    assert titles(resnet) == []


def test_equal_bricks_are_walked_round_and_round(resnet: Outline) -> None:
    index = resnet.reveal(resnet.nesting.leaf(5))
    assert titles(resnet)[index].endswith("batch norm")
    seen = []
    for _ in range(resnet.occurs(resnet.rows[index])):
        index = resnet.next_equal(index, 1)
        seen.append(resnet.rows[index].sequence)
    assert len(set(seen)) == len(seen) > 1
    assert seen[-1] == 5
    assert resnet.rows[resnet.next_equal(index, -1)].sequence == seen[-2]


def test_the_next_of_some_sequences_is_found_from_where_the_cursor_is(resnet: Outline) -> None:
    places = (3, 70)
    third, seventieth = (resnet.nesting.sequences[place] for place in places)
    index = resnet.next_of(0, places, 1)
    assert resnet.rows[index].sequence == third
    index = resnet.next_of(index, places, 1)
    assert resnet.rows[index].sequence == seventieth
    assert resnet.rows[resnet.next_of(index, places, 1)].sequence == third
    assert resnet.rows[resnet.next_of(0, places, -1)].sequence == seventieth
    assert resnet.next_of(index, (), 1) == index


def test_the_first_of_some_sequences_in_a_part_is_ahead_of_its_heading(resnet: Outline) -> None:
    assert resnet.rows[resnet.next_of(0, (0, 5), 1)].sequence == resnet.nesting.sequences[0]


def test_a_sequence_of_several_layers_opens_into_them() -> None:
    outline = Outline(opened("resnet50_v1", granularity=4))
    first = outline.rows[1]
    assert outline.title(first) == "conv 7x7/2 64 > batch norm > relu > max pool 3x3/2"
    outline.expand(1)
    assert titles(outline)[2:6] == ["conv 7x7/2 64", "batch norm", "relu", "max pool 3x3/2"]
    assert [node.layer for node in outline.rows[2:6]] == [0, 1, 2, 3]
    assert not outline.can_open(outline.rows[2])


def test_how_often_a_part_stands_in_the_model_is_counted(resnet: Outline) -> None:
    index = resnet.reveal(resnet.nesting.leaf(6))
    relu = resnet.rows[index]
    assert resnet.title(relu) == "relu"
    assert resnet.occurs(relu) > 1
    assert resnet.occurs(resnet.rows[0]) == 1


def test_modules_that_stand_several_times_have_letters_and_what_is_in_them_needs_none(resnet: Outline) -> None:
    modules = [title for title in titles(resnet) if title.startswith("module")]
    assert modules == ["module A x2", "module B x3", "module C x5", "module D x2"]
    resnet.expand_below(0)
    assert {title.partition("module ")[2][:1] for title in titles(resnet) if "module" in title} == set("ABCD")


def test_of_a_repeat_the_like_are_all_instances_wherever_they_stand() -> None:
    outline = Outline(opened("inceptionv3"))
    outline.expand_below(0)
    repeats = [(node, region) for node in outline.rows if isinstance(region := node.region, Repeat)]
    assert repeats
    assert all(outline.occurs(node) >= len(region.instances) for node, region in repeats)


def test_the_next_module_that_is_the_same_is_found_from_its_heading(resnet: Outline) -> None:
    resnet.expand_below(0)
    at = next(index for index, title in enumerate(titles(resnet)) if title.startswith("2 of 5: "))
    index = resnet.next_equal(at, 1)
    assert titles(resnet)[index].startswith("3 of 5: ")
    assert titles(resnet)[resnet.next_equal(at, -1)].startswith("1 of 5: ")


def test_what_stands_once_has_no_next(resnet: Outline) -> None:
    assert not resnet.has_equal(resnet.rows[0]) and not resnet.has_equal(resnet.rows[1])
    assert resnet.next_equal(1, 1) == 1
    row = next(node for node in resnet.rows if resnet.title(node) == "module A x2")
    assert resnet.occurs(row) == 2 and not resnet.has_equal(row)


def test_opening_what_was_found_shows_where_it_stands(resnet: Outline) -> None:
    resnet.seek("stage4_conv9", 0)
    assert resnet.is_searched and resnet.search_text == "stage4_conv9"
    found = resnet.rows[0].sequence
    index = resnet.expand(0)
    assert not resnet.is_searched and resnet.search_text == ""
    assert resnet.rows[index].sequence == found and resnet.rows[index].depth > 1


def test_a_search_that_finds_nothing_leads_back_to_where_it_began(resnet: Outline) -> None:
    resnet.seek("no such layer", 4)
    assert resnet.seek("", 0) == 4


def test_a_layer_is_found_however_the_model_is_cut() -> None:
    for granularity in (1, 3):
        outline = Outline(opened("resnet50_v1", granularity))
        node = outline.rows[outline.reveal_layer(100)]
        assert node.sequence is not None
        assert "stage3" in outline.names(node)


def test_the_names_of_a_region_are_those_of_its_first_and_its_last_layer(resnet: Outline) -> None:
    row = next(node for node in resnet.rows if resnet.title(node) == "module A x2")
    first, _, last = resnet.names(row).partition(" .. ")
    assert first.startswith("resnet50_v1_stage1_") and last.startswith("resnet50_v1_stage1_")
    assert resnet.size(row) == "20 layers"
