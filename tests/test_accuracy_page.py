"""docs/accuracy.md shows the figures in docs/accuracy."""

from dataclasses import replace
from pathlib import Path

from benchmarks.accuracy import FIGURES, PAGE, PICTURE, PUBLISHED, together
from benchmarks.accuracy_picture import picture
from benchmarks.accuracy_report import accuracy_table, read_figures, with_table, write_figures

PUBLISHED_FIGURES = read_figures(PUBLISHED / FIGURES)
MODEL = replace(PUBLISHED_FIGURES[0], estimate_ms=103.0, low_ms=95.0, high_ms=110.0, measured_ms=100.0)


def test_the_table_and_the_picture_are_of_the_published_figures() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert with_table(text, PUBLISHED_FIGURES) == text, "python -m benchmarks.accuracy --publish writes it anew"
    assert (PUBLISHED / PICTURE).read_text(encoding="utf-8") == picture(PUBLISHED_FIGURES)


def test_the_picture_has_a_point_for_each_model() -> None:
    assert picture(PUBLISHED_FIGURES).count("<circle") == len(PUBLISHED_FIGURES)


def test_figures_are_read_as_they_were_written(tmp_path: Path) -> None:
    write_figures(tmp_path / "inside.csv", PUBLISHED_FIGURES)
    assert read_figures(tmp_path / "inside.csv") == PUBLISHED_FIGURES
    assert read_figures(tmp_path / "none.csv") == []


def test_a_row_has_the_mean_and_worst_error_of_its_models() -> None:
    *_, row = accuracy_table([MODEL, replace(MODEL, asked="vgg11", estimate_ms=98.0, high_ms=99.0)])
    assert "| 2 | 2.5% |" in row and row.endswith("| +3.0% | 100% | **50%** |")


def test_a_figure_that_misses_what_is_promised_is_bold() -> None:
    *_, row = accuracy_table([replace(MODEL, estimate_ms=108.0, high_ms=108.0)])
    assert "| 1 | **8.0%** |" in row and row.endswith("| +8.0% | **0%** | 100% |")


def test_own_carriers_are_told_apart() -> None:
    own, other = (
        replace(PUBLISHED_FIGURES[0], own_carrier=True),
        replace(PUBLISHED_FIGURES[0], own_carrier=False, asked="other"),
    )
    *_, row = accuracy_table(
        [replace(own, estimate_ms=own.measured_ms), replace(other, estimate_ms=other.measured_ms * 1.02)]
    )
    assert "| 2 | 1.0% | 2.0% of 1 |" in row


def test_a_new_figure_replaces_that_of_the_same_network_and_execution() -> None:
    newer = replace(PUBLISHED_FIGURES[0], measured_ms=1.0)
    assert [it for it in together(PUBLISHED_FIGURES, [newer]) if it.place == newer.place] == [newer]
    assert len(together(PUBLISHED_FIGURES, [newer])) == len(PUBLISHED_FIGURES)
