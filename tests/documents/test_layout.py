from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlbricks_tui.documents.layout import ASCII, TEXT, TableLayout, laid_out
from dlbricks_tui.documents.lines import cut_start, width_of
from dlbricks_tui.documents.parts import (
    BLANK_LINE,
    BarFigure,
    CellKind,
    Column,
    Fact,
    Figures,
    Heading,
    MarkedSentence,
    Names,
    Part,
    Plots,
    Sentence,
    SideBySide,
    Table,
    bar_column,
    each_fit,
    name_column,
)
from dlbricks_tui.documents.pictures import Axis, Plot, Series

FIGURES = Figures(
    (
        BarFigure("sequential", "6.504 ms", 6.504, 6.193, 6.815, ("95 %: 6.193 to 6.815 ms", "6.193 to 6.815")),
        BarFigure("parallel", "3.252 ms", 3.252, remarks=("2.00 times as fast",)),
        BarFigure("call", "0 ms"),
    )
)
ROWS = (("conv 3x3 256", "resnet18_v1_stage1_conv0", 0.75), ("pool", "pool0", 0.25))
TABLE = Table(
    (
        name_column("layer", lambda it: it[0]),
        name_column("name", lambda it: it[1]),
        Column("share", lambda it: f"{it[2]:.0%}"),
        bar_column(lambda it: it[2]),
    ),
    ROWS,
)


def texts(width: int, *parts: Part, **options: Any) -> list[str]:
    return ["".join(span.text for span in line).rstrip() for line in laid_out(parts, width, **options)]


def test_a_heading_follows_a_blank_line_unless_it_is_the_first() -> None:
    assert texts(20, Heading("one"), Sentence("a b"), BLANK_LINE, Heading("two")) == ["one", "a b", "", "", "two"]
    assert texts(5, Sentence("first abcdefg")) == ["first", "abcde", "fg"]


def test_figures_have_bars_with_intervals_and_the_remark_that_fits() -> None:
    assert texts(80, FIGURES) == [
        f"sequential  6.504 ms  {'█' * 25}▓▓░  95 %: 6.193 to 6.815 ms",
        f"parallel    3.252 ms  {'█' * 13}▍{' ' * 14}  2.00 times as fast",
        "call            0 ms",
    ]
    assert texts(36, FIGURES)[:3] == [
        "sequential  6.504 ms  6.193 to 6.815",
        "parallel    3.252 ms",
        "  2.00 times as fast",
    ]
    assert texts(80, FIGURES, look=ASCII)[0] == f"sequential  6.504 ms  {'#' * 25}++.  95 %: 6.193 to 6.815 ms"


@pytest.mark.parametrize(
    ("width", "expected"),
    [
        (70, ["layer         name                      share", f"conv 3x3 256  {ROWS[0][1]}    75%  {'█' * 17}▎"]),
        (46, ["layer         name                      share", f"conv 3x3 256  {ROWS[0][1]}    75%"]),
        (35, ["layer         name            share", "conv 3x3 256  resnet18_v1_s…    75%"]),
        (25, ["layer     name      share", "conv 3x…  resnet1…    75%"]),
        (20, ["layer         share", "conv 3x3 256    75%"]),
    ],
)
def test_a_table_gives_up_bars_first_then_names_from_the_last(width: int, expected: list[str]) -> None:
    assert texts(width, TABLE)[:2] == expected


def test_bars_of_a_table_have_equal_rooms() -> None:
    columns: tuple[Column[str], ...] = (name_column("layer", str), *[bar_column(lambda _: 1.0)] * 2)
    assert texts(29, Table(columns, ["conv1"]))[1] == f"conv1  {'█' * 10}  {'█' * 10}"
    assert texts(16, Table(columns, ["conv1"]))[1] == "conv1"


def test_an_optional_column_goes_before_the_first_names_are_shortened() -> None:
    columns: tuple[Column[str], ...] = name_column("layer", str), Column("sum", lambda _: "100 %", is_optional=True)
    table = Table(columns, ["conv 3x3 256"])
    assert texts(19, table) == ["layer           sum", "conv 3x3 256  100 %"]
    assert texts(18, table) == ["layer", "conv 3x3 256"]
    long = Table(columns, ["conv 3x3 256 > batch norm > relu"])
    assert texts(31, long)[1] == "conv 3x3 256 > batch no…  100 %"
    assert texts(30, long)[1] == "conv 3x3 256 > batch norm > r…"


def test_details_stand_below_their_row_and_keep_to_the_width() -> None:
    columns = (name_column("layer", str),)
    table = Table(columns, ["conv", "pool"], lambda it: [Sentence(f"why {it} is slow")] * (it == "conv"))
    assert texts(15, table) == ["layer", "conv", "    why conv is", "    slow", "pool"]


def test_first_names_with_a_way_to_be_shortened_leave_room_for_others() -> None:
    name = "a name of 20 letters"
    plain, short = name_column("layer", str), Column("layer", str, CellKind.NAME, fit=each_fit(cut_start))
    assert texts(30, Table((plain, plain), [name]))[1] == f"{name}  a name …"
    assert texts(30, Table((short, plain), [name]))[1] == "…of 20 letters  a name of 20 …"


def test_names_in_a_line_are_as_many_as_fit() -> None:
    assert texts(14, Names(["one", "two", "three"])) == ["one and 2 more"]
    assert texts(15, Names(["one", "two", "six"])) == ["one, two, six"]
    assert texts(16, Names(["stage1/block2/convolution", "other"])) == ["…/convolution +1"]
    assert texts(16, Names(["stage1/block2/convolution"])) == ["…ck2/convolution"]


def test_optional_columns_go_in_their_order_also_where_there_are_no_names() -> None:
    columns: tuple[Column[str], ...] = (
        Column("batch", str, is_key=True),
        Column("estimate", lambda _: "9 ms", is_optional=True, goes_last=True),
        Column("95 %", lambda _: "-", is_optional=True),
    )
    table = Table(columns, ["1"])
    assert [texts(width, table)[0] for width in (21, 20, 14)] == ["batch  estimate  95 %", "batch  estimate", "batch"]


def test_a_row_without_figures_says_why_and_which_command_measures_them() -> None:
    columns: tuple[Column[str], ...] = (
        Column("runtime", str, CellKind.NAME, is_key=True),
        Column("latency", lambda it: {"mxnet": "9 ms"}[it]),
    )
    missing = {"openvino": ("not measured: ", "dlbricks run net"), "onnx": ("it cannot be", "")}
    table = Table(columns, ["mxnet", *missing], missing=missing.get)
    assert texts(42, table) == [
        "runtime   latency",
        "mxnet        9 ms",
        "openvino  not measured: dlbricks run net",
        "onnx      it cannot be",
    ]
    assert texts(20, table)[2:] == ["openvino  not measured:", "  dlbricks run net", "onnx      it cannot be"]


def test_columns_move_together_where_nothing_can_be_given_up() -> None:
    table = Table((Column("ms", str), Column("verdict", lambda _: "alike")), ["1.5"])
    assert texts(12, table) == [" ms  verdict", "1.5    alike"]
    assert texts(11, table) == [" ms verdict", "1.5   alike"]


def test_a_table_without_rows_has_its_titles() -> None:
    assert texts(60, Table(TABLE.columns, ())) == ["layer  name  share"]
    assert texts(60, Table(TABLE.columns, ()), look=TEXT) == ["LAYER  NAME  SHARE"]


names = st.text(alphabet="ab 漢é\u0301", max_size=40)


@given(st.lists(st.tuples(names, names, st.floats(0.0, 1.0)), max_size=4), st.integers(min_value=20, max_value=90))
def test_rows_are_as_wide_as_their_titles_and_fit(rows: list[tuple[str, str, float]], width: int) -> None:
    layout = TableLayout(Table(TABLE.columns, rows), width)
    widths = {width_of(layout.row(index)) for index in range(len(rows))} | {width_of(layout.heading)}
    assert len(widths) == 1 and widths.pop() <= width


def test_control_codes_in_texts_are_spelled_out() -> None:
    name = "a\x1b[31mb"
    parts = Heading(name), Sentence(name), Fact(name, name), Figures((BarFigure(name, name),))
    assert "\x1b" not in "".join(texts(60, *parts, Table((name_column(name, str),), [name])))


def test_a_point_has_its_mark_in_a_column_and_its_subject_first() -> None:
    point = MarkedSentence("noisy", "warn", ": 90 % busy", "other load")
    assert texts(80, point) == ["noisy other load: 90 % busy"]
    assert texts(20, point) == ["noisy other load: 90", "      % busy"]
    assert texts(80, MarkedSentence("!", "warn", "lacks layers")) == ["! lacks layers"]


def test_sentences_of_a_table_wrap_before_names_are_shortened() -> None:
    columns: tuple[Column[str], ...] = (
        name_column("setting", str),
        Column("meaning", lambda _: "The theme of the workbench.", CellKind.SENTENCE),
        bar_column(lambda _: 1.0),
    )
    table = Table(columns, ["workbench.theme"])
    assert texts(44, table)[1] == "workbench.theme  The theme of the workbench."
    assert texts(34, table)[1:] == ["workbench.theme  The theme of the", "                 workbench."]
    assert texts(26, table)[1:] == ["workben…  The theme of the", "          workbench."]
    assert texts(60, table)[1].endswith("█")


def test_plots_are_drawn_beside_each_other_with_their_sentence_below() -> None:
    axis = Axis(0.0, 10.0)
    plot = Plot("Title", "It rises.", axis, axis, (Series("one", "o", "accent", ((1.0, 2.0), (9.0, 8.0))),))
    lines = texts(70, Plots((plot,), 8, "What it says."))
    assert len(lines) == 8 and lines[0] == "Title   o one" and lines[-1] == "What it says."
    lines = texts(70, Plots((plot, replace(plot, title="Other")), 9))
    assert lines[0].split() == ["Title", "Other"] and lines[-1] == "o one" and len(lines) == 10
    assert max(map(len, texts(20, Plots((plot, plot), 9)))) > 50


def test_names_with_two_values_stand_beside_each_other_where_there_is_room() -> None:
    both = SideBySide((("cores", "4", "2"), ("processor", "x" * 12, "y" * 10)))
    assert texts(37, both) == ["cores      4             2", f"processor  {'x' * 12}  {'y' * 10}"]
    assert texts(34, both)[1:] == [f"processor  A {'x' * 12}", f"           B {'y' * 10}"]
