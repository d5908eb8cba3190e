"""Lines, tables and grids in any width."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlbricks_tui.api.changes import ComparedPair, ComparedResults, ComparedSelection
from dlbricks_tui.documents.comparison import pair_columns, ratio_parts
from dlbricks_tui.documents.layout import ASCII, TEXT, TableLayout, laid_out
from dlbricks_tui.documents.lines import (
    Span,
    bar,
    column,
    cut,
    cut_start,
    fitted,
    line,
    number_column,
    spread,
    width_of,
    wrapped,
)
from dlbricks_tui.documents.parts import (
    BLANK_LINE,
    BarFigure,
    CellKind,
    Column,
    Fact,
    Figures,
    Grid,
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
from dlbricks_tui.documents.pictures import STYLES, Axis, Plot, Series
from dlbricks_tui.store.change import Verdict
from tests.documents.snapshots import check

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


def test_bars_of_a_table_have_equal_rooms_and_one_without_rows_has_its_titles() -> None:
    columns: tuple[Column[str], ...] = (name_column("layer", str), *[bar_column(lambda _: 1.0)] * 2)
    assert texts(29, Table(columns, ["conv1"]))[1] == f"conv1  {'█' * 10}  {'█' * 10}"
    assert texts(16, Table(columns, ["conv1"]))[1] == "conv1"
    assert texts(60, Table(TABLE.columns, ())) == ["layer  name  share"]
    assert texts(60, Table(TABLE.columns, ()), look=TEXT) == ["LAYER  NAME  SHARE"]


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


@pytest.mark.parametrize(
    ("width", "names", "told"),
    [
        (14, ["one", "two", "three"], "one and 2 more"),
        (15, ["one", "two", "six"], "one, two, six"),
        (16, ["stage1/block2/convolution", "other"], "…/convolution +1"),
        (16, ["stage1/block2/convolution"], "…ck2/convolution"),
    ],
)
def test_names_in_a_line_are_as_many_as_fit(width: int, names: list[str], told: str) -> None:
    assert texts(width, Names(names)) == [told]


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


names = st.text(alphabet="ab 漢é\u0301", max_size=40)


@given(st.lists(st.tuples(names, names, st.floats(0.0, 1.0)), max_size=4), st.integers(min_value=20, max_value=90))
def test_rows_are_as_wide_as_their_titles_and_fit(rows: list[tuple[str, str, float]], width: int) -> None:
    layout = TableLayout(Table(TABLE.columns, rows), width)
    widths = {width_of(layout.row(index)) for index in range(len(rows))} | {width_of(layout.heading)}
    assert len(widths) == 1 and widths.pop() <= width


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


# Wide, narrow and joining characters.
line_texts = st.text(alphabet="ab -漢é\u0301█", max_size=30)
lines = st.lists(st.builds(Span, line_texts, st.sampled_from(STYLES)), max_size=5).map(tuple)
widths = st.integers(min_value=1, max_value=40)


@given(lines, lines, widths)
def test_fitted_and_spread_lines_take_exactly_their_width(
    left: tuple[Span, ...], right: tuple[Span, ...], width: int
) -> None:
    assert width_of(fitted(left, width)) == width_of(spread(left, right, width)) == width
    assert width_of(fitted(left, 0)) == 0


def test_a_shortened_line_ends_in_an_ellipsis_and_the_right_part_of_a_spread_one_is_kept() -> None:
    assert fitted(line("ab", Span("cd", "good")), 4) == line("ab", Span("cd", "good"))
    assert fitted(line("ab", Span("cdef", "good")), 4) == line("ab", Span("c…", "good"))
    assert cut("resnet50", 5) == "resn…"
    assert spread(line("a long name"), line("12 ms"), 10) == line("a lo…", "12 ms")


@given(line_texts, widths)
def test_a_column_takes_exactly_its_width_and_a_number_follows_a_blank(text: str, width: int) -> None:
    number = number_column(text, width)
    assert width_of([column(text, width)]) == width_of([column(text, width, right=True)]) == width_of([number]) == width
    assert number.text.startswith(" ")


@given(st.floats(min_value=0, max_value=1), widths)
def test_a_bar_takes_exactly_its_width_and_shows_every_positive_share(share: float, width: int) -> None:
    drawn, _ = spans = bar(share, width)
    assert width_of(spans) == width
    assert bool(drawn.text.strip()) == (share > 0)
    assert [bar(it, 8)[0].text for it in (0.5, 1.0)] == ["████", "████████"]
    assert bar(0.0, 8, "░")[1].text == "░░░░░░░░"


@given(lines, widths)
def test_wrapped_lines_fit_and_lose_no_word(spans: tuple[Span, ...], width: int) -> None:
    found = wrapped(spans, width)
    assert all(width_of(each) <= width + 1 for each in found)
    kept = "".join(span.text for each in found for span in each)
    assert kept.replace(" ", "") == "".join(span.text for span in spans).replace(" ", "")


def test_lines_are_broken_between_words_and_keep_the_indent_of_their_first_column() -> None:
    key = Span("q    ", "accent")
    assert wrapped((key, Span("leave the program")), 15) == [
        (key, Span("leave "), Span("the")),
        (Span("     "), Span("program")),
    ]


def test_control_codes_are_spelled_out() -> None:
    hostile = line("a\x1b[2J\nb")
    assert fitted(hostile, 12) == line("a\\x1b[2J\\nb", " ")
    assert wrapped(hostile, 12) == [line("a\\x1b[2J\\nb")]
    assert column("a\x1b[2J\nb", 12) == Span("a\\x1b[2J\\nb ")
    assert spread(line(), hostile, 12) == line(" ", "a\\x1b[2J\\nb")
    name = "a\x1b[31mb"
    parts = Heading(name), Sentence(name), Fact(name, name), Figures((BarFigure(name, name),))
    assert "\x1b" not in "".join(texts(60, *parts, Table((name_column(name, str),), [name])))


FIFTY = Grid(
    tuple(f"model {at}" for at in range(50)), [[float(one == other) for other in range(50)] for one in range(50)]
)


@pytest.mark.parametrize("width", [60, 80, 120])
def test_columns_without_room_follow_below_and_every_two_names_have_a_shade(width: int) -> None:
    lines = list(laid_out([FIFTY], width))
    assert max(map(width_of, lines)) <= width
    for number in range(1, 51):
        rows = ["".join(span.text for span in line) for line in lines]
        shades = "".join(row.split()[-1] for row in rows if row.startswith(f"{number:>2} model"))
        assert len(shades) == 50 and shades[number - 1] == "█" and shades.count("·") == 49


def test_few_names_have_numbers_and_only_nothing_is_none_and_only_all_is_all() -> None:
    grid = Grid(("one", "a much longer name"), [[1.0, 0.004], [0.996, 0.0]])
    assert texts(60, grid, look=ASCII) == [
        ". none  : below 25 %  + below 50 %  * below 100 %  # all",
        "                        1     2",
        "1 one                 100 #  <1 :",
        "2 a much longer name   99 *   0 .",
    ]


def pair(name: str, context: str, change: float, p_value: float | None, verdict: Verdict) -> ComparedPair:
    reason = "fewer than 5 samples" if verdict is Verdict.UNKNOWN else ""
    figures = 1.0, 1.0 + change, change, p_value, verdict, reason
    return ComparedPair(name, "brick", "b" * 64, context, "", "mxnet, 1 thread", "a", "b", *figures)


PAIRS = (
    pair("conv", "plain", 0.5, 0.0001, Verdict.SLOWER),
    pair("resnet18_v1", "", 0.001, 0.2, Verdict.SAME),
    pair("relu", "", 0.3, None, Verdict.UNKNOWN),
)
A, B = ComparedSelection("one", 3, 3.0, 1), ComparedSelection("two", 4, 3.801, 0)
FOUND = ComparedResults(A, B, 1.25, (1.2, 1.3), 1, 0, 1, 1, (), PAIRS)


def test_a_contrast_has_the_ratio_the_verdicts_and_every_pair() -> None:
    check("contrast", {"three pairs": [*ratio_parts(FOUND), Table(pair_columns(PAIRS), PAIRS)]})
    narrow = texts(50, Table(pair_columns(PAIRS), PAIRS))
    assert "  p  " not in narrow[0] and "change" in narrow[0]


def test_rows_of_one_model_name_their_runtimes() -> None:
    both = replace(PAIRS[1], execution="openvino, 1 thread"), replace(PAIRS[1], execution="mxnet, 1 thread")
    lines = texts(100, Table(pair_columns(both), both))
    assert "runtime" in lines[0] and "openvino, 1 thread" in lines[1] and "mxnet, 1 thread" in lines[2]


def test_nothing_in_common_has_no_ratio() -> None:
    for ratio, interval in ((None, None), (1.0, None), (None, (1.0, 1.0))):
        assert not list(ratio_parts(ComparedResults(A, B, ratio, interval, 0, 0, 0, 0, (), ())))
