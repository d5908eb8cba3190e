import pytest

from dlbricks_tui.wording.numbers import (
    capitalised,
    counted,
    duration,
    milliseconds,
    names_of,
    part_of,
    percent,
    signed_percent,
    with_interval,
)


@pytest.mark.parametrize(
    ("latency_ms", "narrow", "precise"),
    [
        (0.0, "0.000", "0"),
        (1e-12, "0.000", "0"),
        (0.001234, "0.001", "0.001234"),
        (1.2345, "1.234", "1.234"),
        (12.345, "12.35", "12.35"),
        (123.45, "123.5", "123.5"),
        (-12.34, "-12.34", "-12.34"),
        (12345.6, "12,346", "12346"),
    ],
)
def test_a_precise_latency_has_more_digits(latency_ms: float, narrow: str, precise: str) -> None:
    assert (milliseconds(latency_ms), milliseconds(latency_ms, precise=True)) == (narrow, precise)


def test_a_latency_stands_with_its_interval_and_a_note() -> None:
    assert with_interval(5.8, 5.6, 5.9) == "5.800 ms (5.600 to 5.900)"
    assert with_interval(5.8, 5.6, 5.9, ", without 2 layers") == "5.800 ms (5.600 to 5.900, without 2 layers)"


@pytest.mark.parametrize(("seconds", "text"), [(3.4, "3 s"), (89.4, "89 s"), (100, "2 min"), (7200, "2.0 h")])
def test_a_duration_is_in_the_unit_that_suits_it(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_shares_are_rounded_to_0_or_100_percent_only_when_exact() -> None:
    assert [part_of(*pair) for pair in ((0, 5), (1, 1000), (999, 1000), (5, 5), (0, 0))] == [
        "0 %",
        "1 %",
        "99 %",
        "100 %",
        "100 %",
    ]


def test_shares_and_numbers_carry_their_units() -> None:
    assert (percent(0.1234, 1), signed_percent(-0.031)) == ("12.3 %", "-3.1 %")
    # Zero has no sign.
    assert (signed_percent(-0.0001), milliseconds(-0.0001)) == ("+0.0 %", "0.000")
    assert (counted(1, "layer"), counted(2417, "layer")) == ("1 layer", "2,417 layers")


def test_a_sentence_begins_with_a_capital_and_keeps_its_names() -> None:
    assert (capitalised("left out: resNet"), capitalised("")) == ("Left out: resNet", "")


def test_only_the_first_of_many_models_are_named() -> None:
    assert names_of(("a", "b", "c")) == "a, b, c"
    assert names_of(("a", "b", "c", "d", "e")) == "a, b, c and 2 others"
