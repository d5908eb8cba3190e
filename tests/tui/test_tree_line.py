from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlbricks_tui.documents.lines import Line, width_of
from dlbricks_tui.tui.workbench.parts import PartLatency
from dlbricks_tui.tui.workbench.tree_line import TreeRow, heading_line, tree_line

MEASURED = PartLatency(1.234, 0.25, 4, 0, 0, 0, critical=True)
ROW = TreeRow("conv 3x3 64", names="stage1_conv0", output="1x64x56x56", depth=1, occurs=3, latency=MEASURED)

titles = st.text(alphabet="ab 漢é\n█", max_size=60)
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
rows = st.builds(
    TreeRow,
    title=titles,
    size=st.sampled_from(["", "10 layers"]),
    names=titles,
    depth=st.integers(0, 40),
    is_open=st.sampled_from([None, True, False]),
    occurs=st.integers(1, 20_000),
    latency=st.none() | latencies,
)


def text_of(line: Line) -> str:
    return "".join(span.text for span in line)


def shown(row: TreeRow, width: int = 86, sought: str = "") -> str:
    return text_of(tree_line(row, width, sought))


@given(rows, st.integers(1, 160), st.sampled_from(["", "a b"]))
def test_rows_and_heading_take_exactly_their_width(row: TreeRow, width: int, sought: str) -> None:
    assert width_of(tree_line(row, width, sought)) == width
    assert width_of(heading_line(width, bool(sought))) == width


def test_columns_are_shown_as_far_as_they_fit() -> None:
    assert text_of(heading_line(41)).split() == ["part", "times", "ms"]
    assert text_of(heading_line(76)).split() == ["part", "times", "ms", "run", "share"]
    assert text_of(heading_line(86)).split() == ["part", "name", "times", "ms", "run", "share"]
    assert text_of(heading_line(120)).split() == ["part", "name", "output", "times", "ms", "run", "share"]


def test_a_row_shows_title_name_output_and_latency() -> None:
    words = shown(ROW, 120).split()
    assert words[:8] == ["conv", "3x3", "64", "stage1_conv0", "1x64x56x56", "x3", "1.234*", "25.0"]
    assert "█" in shown(ROW, 41)


def test_parts_that_can_be_expanded_have_a_sign() -> None:
    assert shown(TreeRow("a", is_open=False)).startswith("+ a")
    assert shown(TreeRow("a", is_open=True)).startswith("- a")
    assert shown(TreeRow("a")).startswith("  a")


def test_a_size_is_shown_in_full_or_left_out() -> None:
    row = TreeRow("2 branches", size="10 layers", is_open=False)
    assert "2 branches, 10 layers" in shown(row)
    assert "," not in shown(row, 30) and "2 branches" in shown(row, 30)


def test_a_long_name_keeps_its_end() -> None:
    assert "…n_e_activation0 " in shown(TreeRow("relu", names="resnet50_v1_stage1_something_like_an_e_activation0"))


def test_a_deeply_nested_part_is_readable() -> None:
    assert "conv" in shown(TreeRow("conv", depth=300), 41)


@pytest.mark.parametrize(
    ("latency", "says"),
    [
        (PartLatency(1.5, 0.1, 2, 0, 0, 0, critical=False), " 1.500 "),
        (PartLatency(1.5, 0.1, 2, 0, 0, 0, critical=True), " 1.500*"),
        (PartLatency(1.5, 0.1, 2, 0, 1, 0, critical=False), "…1.500 "),
        (PartLatency(1.5, 0.1, 2, 0, 0, 1, critical=False), "…1.500 "),
        (PartLatency(1.5, 0.1, 2, 2, 0, 0, critical=False), "~1.500 "),
        (PartLatency(1.5, 0.1, 2, 0, 0, 0, critical=False, wide=True), "≈1.500 "),
        (PartLatency(0.0, 0.0, 2, 0, 2, 0, critical=False), " · "),
        (PartLatency(0.0, 0.0, 2, 0, 0, 2, critical=False), " cannot "),
        (PartLatency(0.0, 0.0, 1, 0, 0, 0, critical=False), " 0 "),
        (PartLatency(0.0, 0.0, 0, 0, 0, 0, critical=False), " - "),
    ],
)
def test_each_state_of_a_latency_has_a_sign(latency: PartLatency, says: str) -> None:
    assert says in shown(TreeRow("part", latency=latency))


def test_parts_with_layers_that_cannot_run_are_marked() -> None:
    latency = PartLatency(1.5, 0.1, 2, 0, 0, 1, critical=False)
    assert "! module A" in shown(TreeRow("module A", latency=latency))
    assert "!" not in shown(TreeRow("relu", latency=latency, is_layer=True))


def test_a_partly_measured_part_shows_its_coverage() -> None:
    assert " 75 % " in shown(TreeRow("part", latency=PartLatency(1.0, 0.5, 4, 0, 1, 0, critical=False)))
    assert shown(TreeRow("part", latency=MEASURED)).count("%") == 1


def test_a_layer_among_several_has_no_latency_of_its_own() -> None:
    assert "1.234" not in shown(TreeRow("relu", is_layer=True, latency=MEASURED))


def test_found_words_are_highlighted_in_title_and_name() -> None:
    spans = tree_line(ROW, 80, "conv 64")
    assert [span.text for span in spans if span.style == "match"] == ["conv", "64", "conv"]


def test_a_sum_that_leaves_layers_out_and_has_predictions_shows_both_signs() -> None:
    row = TreeRow("net", latency=replace(MEASURED, predicted=2, missing=1))
    assert "…~1.234*" in shown(row)
    assert "…1.234*" in shown(replace(row, latency=replace(MEASURED, missing=1)))
    assert " ~1.234*" in shown(replace(row, latency=replace(MEASURED, predicted=1)))
