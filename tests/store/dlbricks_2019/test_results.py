import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlbricks_tui.store.dlbricks_2019.results import parse_numbers


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("{}", ()),
        (" { } ", ()),
        ("{1., 2.}", (1.0, 2.0)),
        ("{17857., 155.5667, .5, 12}", (17857.0, 155.5667, 0.5, 12.0)),
        ("{1.*^6, 1.571141*^6, 2.5*^-3, 1*^+2}", (1e6, 1571141.0, 0.0025, 100.0)),
        ("{-1., -2.5*^6, +3.}", (-1.0, -2.5e6, 3.0)),
        ("{1.5`, 2.25`15.95*^3}", (1.5, 2250.0)),
        ("{1.,\n 2.}", (1.0, 2.0)),
    ],
)
def test_lists_are_read_as_wolfram_prints_them(text: str, numbers: tuple[float, ...]) -> None:
    assert parse_numbers(text) == numbers


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "is not in braces"),
        ("1., 2.", "is not in braces"),
        ("{1., 2.", "is not in braces"),
        ("{1., , 2.}", "has '' for a number"),
        ("{1. 2.}", "has '1. 2.' for a number"),
        ("{{1.}, {2.}}", "has '{1.}' for a number"),
        ("{1., $Failed}", "has '\\$Failed' for a number"),
        ("{1e6}", "has '1e6' for a number"),
        ("{nan}", "has 'nan' for a number"),
        ("{1_000.}", "has '1_000.' for a number"),
        ("{\u0661.}", "for a number"),
        ("{1.\x00}", "for a number"),
        ("{" + "x" * 1000 + "}", "has '" + "x" * 40 + "' for a number"),
    ],
)
def test_text_that_is_not_a_list_of_numbers_is_refused_with_the_reason(text: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        parse_numbers(text)


@given(st.lists(st.floats(min_value=-1e9, max_value=1e9).map(lambda number: round(number, 4))))
def test_numbers_survive_a_round_trip(numbers: list[float]) -> None:
    printed = (f"{number:.4f}".rstrip("0") for number in numbers)
    assert parse_numbers("{" + ", ".join(printed) + "}") == tuple(numbers)


@given(st.text() | st.text(alphabet="{},.*^-+`019 e"))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        assert all(isinstance(number, float) for number in parse_numbers(text))
    except ValueError as error:
        assert str(error)
