from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlbricks_tui.documents.lines import Line, width_of
from dlbricks_tui.documents.outline import OutlineNode
from dlbricks_tui.documents.part_latencies import PartLatency
from dlbricks_tui.tui.workbench.tree import TreeRow, heading_line, tree_line
from tests.bricks.graphs import chain
from tests.documents.outlines import outline_of, sample, unable

RESNET = sample("resnet18_v1").root
CONV, MODULE = RESNET.inside[0], next(it for it in RESNET.inside if it.module)
DEEP = MODULE.inside[0].inside[0].inside[0].inside[0]
MEASURED = PartLatency(1.234, 0.25, 4, 0, 0, 0, critical=True)
ROW = TreeRow(DEEP, MEASURED)

titles = st.text(alphabet="ab 漢é\n█", min_size=1, max_size=60)
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
    st.sampled_from((RESNET, MODULE, DEEP)) | st.builds(named, titles, titles),
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


def test_columns_are_shown_as_far_as_they_fit() -> None:
    assert text_of(heading_line(41)).split() == ["part", "times", "ms"]
    assert text_of(heading_line(76)).split() == ["part", "times", "ms", "path", "run", "share"]
    assert text_of(heading_line(86)).split() == ["part", "name", "times", "ms", "path", "run", "share"]
    assert text_of(heading_line(120)).split() == ["part", "name", "output", "times", "ms", "path", "run", "share"]


def test_a_row_shows_title_name_output_and_latency() -> None:
    words = shown(ROW, 120).split()
    assert words[:9] == ["conv", "3x3", "64", "…v1_stage1_conv0_fwd", "1x64x56x56", "x4", "1.234", "yes", "25.0"]
    assert "█" in shown(ROW, 52)


def test_parts_that_can_be_expanded_have_a_sign() -> None:
    assert shown(TreeRow(RESNET, is_open=False)).startswith("+ resnet18_v1")
    assert shown(TreeRow(RESNET, is_open=True)).startswith("- resnet18_v1")
    assert shown(TreeRow(RESNET)).startswith("  resnet18_v1")


def test_a_word_of_a_region_is_shown_in_full_or_left_out() -> None:
    row = TreeRow(MODULE, is_open=False)
    assert "+ block A, in a row, 7 layers  " in shown(row, 100)
    assert "+ block A, in a row  " in shown(row, 44)
    assert shown(row, 19) == " + block A         "


def test_a_long_name_keeps_its_end() -> None:
    assert "…_activation0 " in shown(TreeRow(named("relu", "resnet50_v1_stage1_something_like_an_e_activation0")))


def test_a_deeply_nested_part_is_readable() -> None:
    assert "conv" in shown(TreeRow(replace(CONV, depth=300)), 41)


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


def test_a_partly_measured_part_shows_its_coverage() -> None:
    assert " 75 % " in shown(TreeRow(MODULE, PartLatency(1.0, 0.5, 4, 0, 1, 0, critical=False)))
    assert shown(TreeRow(MODULE, MEASURED)).count("%") == 1


def test_a_layer_among_several_has_no_latency_of_its_own() -> None:
    layer = sample("resnet18_v1", granularity=3).root.inside[0].inside[0]
    assert "1.234" not in shown(TreeRow(layer, MEASURED))


def test_found_words_are_highlighted_in_title_and_name() -> None:
    spans = tree_line(ROW, 120, "conv 64")
    assert [span.text for span in spans if span.style == "match"] == ["conv", "64", "conv"]
