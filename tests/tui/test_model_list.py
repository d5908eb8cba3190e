from dataclasses import replace
from pathlib import Path

import pytest

from dlbricks_tui.models.library import ModelSource
from dlbricks_tui.tui.lines import Line, contains_all, highlighted, width_of
from dlbricks_tui.tui.workbench.models import KnownLatency, model_heading, model_row, searched_text

RESNET = ModelSource("resnet50_v1", Path("gluon/resnet50_v1-symbol.json"), task="IC", layers=174, unique_layers=46)
SSD = ModelSource("SSD Trained on PASCAL VOC Data", Path("table1/ssd-symbol.json"), task="OD", table1_id="43")


def text(line: Line) -> str:
    return "".join(span.text for span in line)


@pytest.mark.parametrize("width", range(24, 130))
def test_a_row_and_its_heading_take_exactly_their_width(width: int) -> None:
    assert width_of(model_row(RESNET, width)) == width_of(model_heading(width)) == width


def test_columns_are_shown_as_far_as_they_fit() -> None:
    measured = KnownLatency(24.13, 72, 72)
    assert text(model_row(RESNET, 30, latency=measured)).split() == ["resnet50_v1", "24.13"]
    assert text(model_row(RESNET, 34, latency=measured)).split() == ["resnet50_v1", "26", "%", "24.13"]
    assert text(model_row(RESNET, 80, latency=measured)).split() == ["resnet50_v1", "IC", "174", "26", "%", "24.13"]


def test_unknown_values_are_dots() -> None:
    assert text(model_row(replace(RESNET, layers=None), 80)).split() == ["resnet50_v1", "IC", "·", "·", "·"]


def test_a_partly_measured_model_shows_its_coverage_instead_of_a_sum() -> None:
    assert text(model_row(RESNET, 40, latency=KnownLatency(8.5, 43, 72))).endswith(" 60 % run")
    assert text(model_row(RESNET, 40, latency=KnownLatency(8.5, 999, 1000))).endswith(" 99 % run")
    assert text(model_row(RESNET, 40, latency=KnownLatency(None, 1, 4, possible=False))).endswith(" none")


def test_a_marked_model_has_a_sign() -> None:
    assert text(model_row(RESNET, 30, marked=True)).startswith("● resnet50_v1")


def test_names_of_table_1_are_shortened() -> None:
    assert text(model_row(SSD, 60)).startswith("  SSD · PASCAL VOC Data ")


@pytest.mark.parametrize(
    ("sought", "names"),
    [
        ("", ["resnet50_v1", SSD.name]),
        ("RESNET", ["resnet50_v1"]),
        ("data trained", [SSD.name]),
        ("table1:43", [SSD.name]),
        ("od ssd", [SSD.name]),
        ("gluon/", ["resnet50_v1"]),
        ("resnet ssd", []),
    ],
)
def test_a_search_finds_models_that_contain_every_word(sought: str, names: list[str]) -> None:
    words = sought.casefold().split()
    assert [source.name for source in (RESNET, SSD) if contains_all(searched_text(source), words)] == names


def test_found_words_are_highlighted() -> None:
    matched = [span.text for span in highlighted("resnet50_v1", ["NET", "v1"]) if span.style == "match"]
    assert matched == ["net", "v1"]
    assert text(highlighted("resnet50_v1", ["net", "netw", "t50"])) == "resnet50_v1"
