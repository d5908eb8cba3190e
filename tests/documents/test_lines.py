from hypothesis import given
from hypothesis import strategies as st

from dlbricks_tui.documents.lines import Span, bar, column, cut, fitted, line, number_column, spread, width_of, wrapped
from dlbricks_tui.documents.pictures import STYLES

# Wide, narrow and joining characters.
texts = st.text(alphabet="ab -漢é\u0301█", max_size=30)
lines = st.lists(st.builds(Span, texts, st.sampled_from(STYLES)), max_size=5).map(tuple)
widths = st.integers(min_value=1, max_value=40)


@given(lines, st.integers(min_value=0, max_value=40))
def test_a_fitted_line_takes_exactly_its_width(spans: tuple[Span, ...], width: int) -> None:
    assert width_of(fitted(spans, width)) == width


@given(lines, lines, widths)
def test_a_spread_line_takes_exactly_its_width(left: tuple[Span, ...], right: tuple[Span, ...], width: int) -> None:
    assert width_of(spread(left, right, width)) == width


def test_a_line_that_fits_stays_unchanged() -> None:
    assert fitted(line("ab", Span("cd", "good")), 4) == line("ab", Span("cd", "good"))


def test_a_shortened_line_ends_in_an_ellipsis() -> None:
    assert fitted(line("ab", Span("cdef", "good")), 4) == line("ab", Span("c…", "good"))
    assert cut("resnet50", 5) == "resn…"


def test_the_right_part_of_a_spread_line_is_kept_whole() -> None:
    assert spread(line("a long name"), line("12 ms"), 10) == line("a lo…", "12 ms")


@given(texts, widths)
def test_a_column_takes_exactly_its_width(text: str, width: int) -> None:
    assert width_of([column(text, width)]) == width_of([column(text, width, right=True)]) == width


@given(texts, widths)
def test_a_number_takes_exactly_its_width_after_a_blank(text: str, width: int) -> None:
    assert width_of([number_column(text, width)]) == width
    assert number_column(text, width).text.startswith(" ")


@given(st.floats(min_value=0, max_value=1), widths)
def test_a_bar_takes_exactly_its_width_and_shows_every_positive_share(share: float, width: int) -> None:
    drawn, _ = spans = bar(share, width)
    assert width_of(spans) == width
    assert bool(drawn.text.strip()) == (share > 0)


def test_a_bar_is_as_long_as_its_share() -> None:
    assert bar(0.5, 8)[0].text == "████"
    assert bar(1.0, 8)[0].text == "████████"
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


def test_control_codes_in_names_are_escaped() -> None:
    hostile = line("a\x1b[2J\nb")
    assert fitted(hostile, 12) == line("a\\x1b[2J\\nb", " ")
    assert wrapped(hostile, 12) == [line("a\\x1b[2J\\nb")]
    assert column("a\x1b[2J\nb", 12) == Span("a\\x1b[2J\\nb ")
    assert spread(line(), hostile, 12) == line(" ", "a\\x1b[2J\\nb")
