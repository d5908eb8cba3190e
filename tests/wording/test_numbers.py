"""Numbers, ages, and sizes and speeds of language models."""

from dataclasses import replace

import pytest

from dlbricks_tui.wording import numbers
from dlbricks_tui.wording.numbers import (
    age,
    age_words,
    ago,
    between,
    capitalised,
    counted,
    delay_text,
    duration,
    gibibytes,
    measured_ago,
    memory_text,
    milliseconds,
    minute_of,
    model_label,
    names_of,
    p_words,
    parameters_text,
    parameters_words,
    part_of,
    percent,
    price_per_hour,
    rate_text,
    rough_range,
    signed_percent,
    speed,
    too_many_threads,
    with_interval,
)
from tests.wording.test_answers import doubted


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
        (999.96, "1000.0", "1000.0"),
        (1000.0, "1,000", "1000"),
        (12345.6, "12,346", "12346"),
    ],
)
def test_a_precise_latency_has_more_digits(latency_ms: float, narrow: str, precise: str) -> None:
    assert (milliseconds(latency_ms), milliseconds(latency_ms, precise=True)) == (narrow, precise)


def test_a_latency_stands_with_its_interval_and_a_note() -> None:
    assert with_interval(5.8, 5.6, 5.9) == "5.800 ms (5.600 to 5.900)"
    assert with_interval(5.8, 5.6, 5.9, ", without 2 layers") == "5.800 ms (5.600 to 5.900, without 2 layers)"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(3.4, "3 s"), (89.4, "89 s"), (90, "2 min"), (5399, "90 min"), (5400, "1.5 h"), (7200, "2.0 h")],
)
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


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-5, "0 min"),
        (3599, "60 min"),
        (3600, "1 h"),
        (48 * 3600 - 1, "48 h"),
        (48 * 3600, "2 d"),
        (999 * 86400, "999 d"),
        (1000 * 86400, "3 y"),
    ],
)
def test_an_age_is_in_one_unit(seconds: float, text: str) -> None:
    assert age(seconds) == text


def test_ranges_have_two_digits_and_no_range_between_equal_ends() -> None:
    assert [rough_range(*ends) for ends in ((8.14, 15.2), (0.0123, 0.0124), (0, 996), (99.6, 1234))] == [
        "8.1-15",
        "0.012",
        "0-1,000",
        "100-1,200",
    ]


def test_what_is_unknown_is_a_dash() -> None:
    assert [gibibytes(it) for it in (0, 8 << 30)] == ["-", "8 GiB"]
    assert [price_per_hour(it) for it in (None, 0.17)] == ["-", "$ 0.17/h"]
    assert [speed(it) for it in (None, 98.54)] == ["-", "98.5"]
    assert [p_words(it) for it in (None, 0.0009, 0.001)] == ["-", "<0.001", "0.001"]


def test_a_long_label_of_a_model_is_shortened_and_has_no_data_set() -> None:
    assert model_label("ResNet-50 Trained on ImageNet", "11", 12) == "11 ResNet-50"
    assert model_label("ResNet-50\n", None, 10) == "ResNet-50…"
    assert model_label("Res Net-50", "11", 8) == "11 Res…"


def test_more_threads_than_cores_are_told() -> None:
    assert too_many_threads([None, 1, 2], 2) == too_many_threads([], 0) == ""
    assert too_many_threads([None, 3], 2) == "3 threads on 2 cores: they wait for one another, and latencies vary more"


NOW = 10_000_000.0


@pytest.fixture(autouse=True)
def _clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numbers, "now", lambda: NOW)


@pytest.mark.parametrize(
    ("between", "told"),
    [
        (None, ""),
        ((NOW - 59, NOW), "just now"),
        ((NOW - 60, NOW - 60), "1 min ago"),
        ((NOW - 7200, NOW - 120), "2 min to 2 h ago"),
        ((NOW + 500, NOW + 500), "just now"),
    ],
)
def test_measurements_have_an_age_or_a_range_of_ages(between: tuple[float, float] | None, told: str) -> None:
    assert age_words(between) == told


def test_a_stored_time_is_told_by_its_age_or_by_the_minute() -> None:
    assert (ago(""), ago("1970-04-26T14:46:40+00:00")) == ("", "3 h ago")
    assert minute_of("1970-04-26T14:46:40.5+00:00") == "1970-04-26 14:46"


def test_estimates_have_the_range_of_the_ages_of_their_bricks() -> None:
    unknown = replace(doubted(bricks_when=0), end_to_end=None)
    assert measured_ago([]) == measured_ago([unknown]) == ""
    younger, older = doubted(bricks_when=int((NOW - 7200) * 1e6)), doubted(bricks_when=int((NOW - 3 * 86400) * 1e6))
    assert measured_ago([unknown, younger, older]) == "measured 2 h to 3 d ago"


def test_figures_have_as_many_digits_as_a_user_needs() -> None:
    assert [rate_text(it) for it in (1240.4, 151.2, 41.34, 7.08, 0.431)] == ["1,240", "151", "41.3", "7.1", "0.43"]
    assert rate_text(0.0123) == "0.012"
    delays = (0.123, 8.34, 412.3, 4213.0, 104_100.0, 354_000.0, 9e6)
    assert [delay_text(it) for it in delays] == ["0.12 ms", "8.3 ms", "412 ms", "4.2 s", "104 s", "5.9 min", "2.5 h"]
    sizes = (0.0004, 0.0841, 0.421, 5.12, 23.4, 1405)
    shown = ["0.4 MB", "84 MB", "0.42 GB", "5.1 GB", "23 GB", "1,405 GB"]
    assert [memory_text(int(it * 1e9)) for it in sizes] == shown
    parameters = (134_515_008, 999_885_952, 8_030_261_248, 13_015_864_320, 405_853_388_800)
    assert [parameters_text(it) for it in parameters] == ["135 M", "1.00 B", "8.03 B", "13.0 B", "406 B"]


def test_an_interval_has_its_unit_once() -> None:
    assert between(3700.0, 4100.0, delay_text) == "3.7 to 4.1 s"
    assert between(870.0, 1200.0, delay_text) == "870 ms to 1.2 s"
    assert between(6.5, 7.7, rate_text) == "6.5 to 7.7"


def test_parameters_of_a_mixture_are_those_of_all_experts_and_of_a_token() -> None:
    assert parameters_words(8_030_261_248, 8_030_261_248) == "8.03 billion parameters"
    assert parameters_words(30_532_122_624, 3_353_548_800) == "30.5 billion parameters, 3.35 billion for a token"
    assert parameters_words(1_300_000_000, 399_000_000) == "1.30 billion parameters, 399 million for a token"
