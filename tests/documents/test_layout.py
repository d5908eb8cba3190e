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


def sized(name: str, *columns: Column[str], **of: Any) -> Table[str]:
    """A table of one name."""
    return Table(columns, [name], **of)


NAME = "a name of 20 letters"
LAYER: Column[str] = name_column("layer", str)
SUM: Column[str] = Column("sum", lambda _: "100 %", is_optional=True)
EARLY: Column[str] = Column("95 %", lambda _: "-", is_optional=True)
LATE: Column[str] = Column("estimate", lambda _: "9 ms", is_optional=True, goes_last=True)
SETTING: Column[str] = name_column("setting", str)
MEANING: Column[str] = Column("meaning", lambda _: "The theme of the workbench.", CellKind.SENTENCE)
FULL_BAR: Column[str] = bar_column(lambda _: 1.0)
SHORTENED: Column[str] = Column("layer", str, CellKind.NAME, fit=each_fit(cut_start))
MISSING = {"openvino": ("not measured: ", "dlbricks run net"), "onnx": ("it cannot be", "")}
LATENCY: Column[str] = Column("latency", lambda it: {"mxnet": "9 ms"}[it])
LAYOUTS: dict[str, tuple[Part | list[Part], tuple[int, ...]]] = {
    "a heading follows a blank line unless it is the first": (
        [Heading("one"), Sentence("a b"), BLANK_LINE, Heading("two")],
        (20,),
    ),
    "a sentence": (Sentence("first abcdefg"), (5,)),
    "figures with the remark that fits": (FIGURES, (80, 36)),
    "bars go first, then names from the last": (TABLE, (70, 46, 35, 25, 20)),
    "bars have equal rooms": (sized("conv1", LAYER, FULL_BAR, FULL_BAR), (29, 16)),
    "no rows": (Table(TABLE.columns, ()), (60,)),
    "an optional column goes before first names are shortened": (sized("conv 3x3 256", LAYER, SUM), (19, 18)),
    "unless a long name leaves it room": (sized("conv 3x3 256 > batch norm > relu", LAYER, SUM), (31, 30)),
    "optional columns go in their order": (sized("1", Column("batch", str, is_key=True), LATE, EARLY), (21, 20, 14)),
    "details stand below their row": (
        Table((LAYER,), ["conv", "pool"], lambda it: [Sentence(f"why {it} is slow")] * (it == "conv")),
        (15,),
    ),
    "two names": (sized(NAME, LAYER, LAYER), (30,)),
    "first names with a way to be shortened leave room": (sized(NAME, SHORTENED, LAYER), (30,)),
    "a row without figures says why": (
        Table((Column("runtime", str, CellKind.NAME, is_key=True), LATENCY), ["mxnet", *MISSING], missing=MISSING.get),
        (42, 20),
    ),
    "columns move together": (sized("1.5", Column("ms", str), Column("verdict", lambda _: "alike")), (12, 11)),
    "sentences wrap before names are shortened": (
        sized("workbench.theme", SETTING, MEANING, FULL_BAR),
        (60, 44, 34, 26),
    ),
    "a mark in a column, and its subject first": (
        MarkedSentence("noisy", "warn", ": 90 % busy", "other load"),
        (80, 20),
    ),
    "a mark": (MarkedSentence("!", "warn", "lacks layers"), (80,)),
    "as many names as fit": (Names(["one", "two", "three"]), (14, 13)),
    "three names": (Names(["one", "two", "six"]), (15,)),
    "a long name": (Names(["stage1/block2/convolution"]), (16,)),
    "a long name and another": (Names(["stage1/block2/convolution", "other"]), (16,)),
}


def test_parts_give_up_what_is_worth_least_where_the_width_is_short() -> None:
    shown: dict[str, str] = {}
    for name, (parts, each) in LAYOUTS.items():
        for width in each:
            lines = texts(width, *(parts if isinstance(parts, list) else [parts]))
            shown[f"{name}, at {width}"] = "\n".join(lines)
    check("layout", shown)
    assert texts(80, FIGURES, look=ASCII)[0] == f"sequential  6.504 ms  {'#' * 25}++.  95 %: 6.193 to 6.815 ms"
    assert texts(60, Table(TABLE.columns, ()), look=TEXT) == ["LAYER  NAME  SHARE"]


names = st.text(alphabet="ab 漢é\u0301", max_size=40)


@given(st.lists(st.tuples(names, names, st.floats(0.0, 1.0)), max_size=4), st.integers(min_value=20, max_value=90))
def test_rows_are_as_wide_as_their_titles_and_fit(rows: list[tuple[str, str, float]], width: int) -> None:
    layout = TableLayout(Table(TABLE.columns, rows), width)
    widths = {width_of(layout.row(index)) for index in range(len(rows))} | {width_of(layout.heading)}
    assert len(widths) == 1 and widths.pop() <= width


def test_plots_are_drawn_beside_each_other() -> None:
    axis = Axis(0.0, 10.0)
    plot = Plot("Title", "It rises.", axis, axis, (Series("one", "o", "accent", ((1.0, 2.0), (9.0, 8.0))),))
    lines = texts(70, Plots((plot,), 8))
    assert len(lines) == 8 and lines[0] == "Title   o one"
    lines = texts(70, Plots((plot, replace(plot, title="Other")), 9))
    assert lines[0].split() == ["Title", "Other"] and lines[-1] == "o one" and len(lines) == 10
    assert max(map(len, texts(20, Plots((plot, plot), 9)))) > 50


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
def test_a_column_takes_exactly_its_width(text: str, width: int) -> None:
    assert width_of([column(text, width)]) == width_of([column(text, width, right=True)]) == width


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


def test_a_command_stays_on_one_line_where_it_is_copied_from() -> None:
    told = Sentence("not measured: `dlbricks run vgg16 --threads 2` measures it")
    shown = ["".join(it.text for it in each) for each in laid_out([told], 20, TEXT)]
    assert shown == ["not measured:", "`dlbricks run vgg16 --threads 2`", "measures it"]
    assert all(width_of(each) <= 20 for each in laid_out([told], 20))


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
    both = replace(PAIRS[1], execution="openvino, 1 thread"), replace(PAIRS[1], execution="mxnet, 1 thread")
    nothing = [
        replace(FOUND, ratio=ratio, interval=interval, pairs=())
        for ratio, interval in ((None, None), (1.0, None), (None, (1.0, 1.0)))
    ]
    pairs: list[Part] = [Table(pair_columns(PAIRS), PAIRS)]
    check(
        "contrast",
        {
            "three pairs": [*ratio_parts(FOUND), *pairs],
            "rows of one model name their runtimes": [Table(pair_columns(both), both)],
            "nothing in common": [it for each in nothing for it in ratio_parts(each)],
        },
    )
    check("contrast-narrow", {"three pairs": pairs}, width=50)
