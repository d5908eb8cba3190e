"""docs/accuracy.md shows the figures in docs/accuracy."""

from dataclasses import replace
from pathlib import Path

from benchmarks.accuracy import FIGURES, FIGURES_OF_ALONE, PAGE, PICTURE, PUBLISHED, together
from benchmarks.accuracy_picture import picture
from benchmarks.accuracy_report import (
    Compared,
    Figure,
    alone_table,
    inside_table,
    read_figures,
    with_tables,
    write_figures,
)

INSIDE = read_figures(PUBLISHED / FIGURES, Figure)
ALONE = read_figures(PUBLISHED / FIGURES_OF_ALONE, Compared)
MODEL = Compared("gluon", "resnet18_v1", "fused", "intel-xeon-2c-78e6b1a6", 103.0, 95.0, 110.0, 100.0)


def test_the_tables_and_the_picture_are_of_the_published_figures() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert with_tables(text, INSIDE, ALONE) == text, "python -m benchmarks.accuracy --publish writes them anew"
    assert (PUBLISHED / PICTURE).read_text(encoding="utf-8") == picture(INSIDE, ALONE)


def test_the_picture_has_a_point_for_each_model() -> None:
    assert picture(INSIDE, ALONE).count("<circle") == len(INSIDE) + len(ALONE) + 2


def test_figures_are_read_as_they_were_written(tmp_path: Path) -> None:
    write_figures(tmp_path / "inside.csv", INSIDE)
    assert read_figures(tmp_path / "inside.csv", Figure) == INSIDE
    assert read_figures(tmp_path / "none.csv", Figure) == []


def test_a_row_has_the_mean_and_worst_error_of_its_models() -> None:
    *_, row = alone_table([MODEL, replace(MODEL, model="vgg11", estimate_ms=98.0, high_ms=99.0)])
    assert row == "| The Gluon zoo | Intel | 2 | 2.5% | +3.0% | 100% | **50%** |"


def test_a_figure_that_misses_what_is_promised_is_bold() -> None:
    *_, row = alone_table([replace(MODEL, estimate_ms=108.0, high_ms=108.0)])
    assert row == "| The Gluon zoo | Intel | 1 | **8.0%** | +8.0% | **0%** | 100% |"


def test_own_carriers_are_told_apart() -> None:
    own, other = replace(INSIDE[0], own_carrier=True), replace(INSIDE[0], own_carrier=False, asked="other")
    *_, row = inside_table(
        [replace(own, estimate_ms=own.measured_ms), replace(other, estimate_ms=other.measured_ms * 1.02)]
    )
    assert "| 2 | 1.0% | 2.0% of 1 |" in row


def test_a_new_figure_replaces_that_of_the_same_network_and_execution() -> None:
    newer = replace(INSIDE[0], measured_ms=1.0)
    assert [it for it in together(INSIDE, [newer]) if it.place == newer.place] == [newer]
    assert len(together(INSIDE, [newer])) == len(INSIDE)
