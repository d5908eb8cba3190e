from pathlib import Path

import pytest

from dlbricks_tui.bricks.decomposition import Cutting, decompose
from dlbricks_tui.bricks.sequence_regions import sequence_regions
from dlbricks_tui.models.graph import Level
from dlbricks_tui.models.library import Library
from dlbricks_tui.models.loading import Answer, Loader
from dlbricks_tui.settings import SAMPLE_MODELS
from dlbricks_tui.tui.opened import Opened, Wish
from dlbricks_tui.tui.widgets.tree.outline import MOST_EXPANDED, Outline


class NoFramework:
    identity = "none"

    def infer(self, symbol: str, shapes: object) -> Answer:
        raise AssertionError("the samples come with their types")

    fuse = infer


def opened(name: str, tmp_path: Path, granularity: int = 1) -> Opened:
    (source,) = Library(SAMPLE_MODELS, tmp_path).find(name)
    graph = Loader(tmp_path, NoFramework()).load(source)
    decomposition = decompose(graph, Cutting(granularity))
    wish = Wish(source, Level.WRITTEN, decomposition.cutting)
    return Opened(wish, graph, decomposition, sequence_regions(decomposition))


@pytest.fixture
def resnet(tmp_path: Path) -> Outline:
    return Outline(opened("resnet50_v1", tmp_path))


def titles(outline: Outline) -> list[str]:
    return [node.label + node.title for node in outline.rows]


def test_a_model_begins_with_its_parts_and_nothing_in_them(resnet: Outline) -> None:
    assert titles(resnet)[:2] == ["resnet50_v1", "conv 7x7/2 64"]
    assert {node.depth for node in resnet.rows} == {0, 1}


def test_opening_a_part_shows_what_is_in_it_and_closing_it_hides_all_of_that(resnet: Outline) -> None:
    before = titles(resnet)
    module = next(at for at, title in enumerate(before) if title.startswith("module x2"))
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


def test_a_large_model_is_opened_no_further_than_is_readable(tmp_path: Path) -> None:
    outline = Outline(opened("table1:47", tmp_path))
    outline.expand_below(0)
    assert 1029 < len(outline.rows) < MOST_EXPANDED + 200


def test_a_search_shows_the_sequences_that_have_every_word_and_ending_it_keeps_the_place(resnet: Outline) -> None:
    resnet.seek("pool max", 0)
    assert titles(resnet) == ["max pool 3x3/2"]
    index = resnet.seek("", 0)
    assert titles(resnet)[index] == "max pool 3x3/2"
    assert resnet.rows[0].title == "resnet50_v1"


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


def test_equal_bricks_are_walked_round_and_round(resnet: Outline, tmp_path: Path) -> None:
    resnet.seek("batch norm", 0)
    index = resnet.seek("", 1)
    index = resnet.reveal(5)
    assert titles(resnet)[index].endswith("batch norm")
    seen = []
    for _ in range(resnet.occurs(resnet.rows[index])):
        index = resnet.next_equal(index, 1)
        seen.append(resnet.rows[index].sequence)
    assert len(set(seen)) == len(seen) > 1
    assert seen[-1] == 5
    assert resnet.rows[resnet.next_equal(index, -1)].sequence == seen[-2]


def test_the_next_of_some_sequences_is_found_from_where_the_cursor_is(resnet: Outline) -> None:
    index = resnet.next_of(0, (3, 70))
    assert resnet.rows[index].sequence == 3
    index = resnet.next_of(index, (3, 70))
    assert resnet.rows[index].sequence == 70
    assert resnet.rows[resnet.next_of(index, (3, 70))].sequence == 3
    assert resnet.next_of(index, ()) == index


def test_a_sequence_of_several_layers_opens_into_them(tmp_path: Path) -> None:
    outline = Outline(opened("resnet50_v1", tmp_path, granularity=4))
    first = outline.rows[1]
    assert first.title == "conv 7x7/2 64 > batch norm > relu > max pool 3x3/2"
    outline.expand(1)
    assert titles(outline)[2:6] == ["conv 7x7/2 64", "batch norm", "relu", "max pool 3x3/2"]
    assert [node.layer for node in outline.rows[2:6]] == [0, 1, 2, 3]
    assert not outline.can_open(outline.rows[2])


def test_how_often_a_part_stands_in_the_model_is_counted(resnet: Outline) -> None:
    index = resnet.reveal(6)
    relu = resnet.rows[index]
    assert relu.title == "relu"
    assert resnet.occurs(relu) > 1
    assert resnet.occurs(resnet.rows[0]) == 1
