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
    percent_of_part,
    price_per_hour,
    rate_text,
    rough_range,
    signed_percent,
    speed,
    too_many_threads,
    with_interval,
)
from tests.documents.snapshots import check
from tests.wording.test_answers import doubted

NOW = 10_000_000.0


@pytest.fixture(autouse=True)
def _clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numbers, "now", lambda: NOW)


def test_numbers_have_their_digits_and_units() -> None:
    latencies = (0.0, 1e-12, 0.001234, 1.2345, 12.345, 123.45, -12.34, -0.0001, 999.96, 1000.0, 12345.6)
    ranges = (8.14, 15.2), (0.0123, 0.0124), (0, 996), (99.6, 1234)
    # Zero has no sign. Only nothing is 0 %, and only all is 100 %.
    shares = (0, 5), (1, 1000), (999, 1000), (5, 5), (0, 0)
    check(
        "numbers",
        {
            "latencies": [milliseconds(it) for it in latencies],
            "precise latencies": [milliseconds(it, precise=True) for it in latencies],
            "with an interval": [with_interval(5.8, 5.6, 5.9), with_interval(5.8, 5.6, 5.9, ", without 2 layers")],
            "ranges": [rough_range(*ends) for ends in ranges],
            "shares": [
                percent(0.1234, 1),
                *(part_of(*pair) for pair in shares),
                *map(percent_of_part, (0.0, 0.003, 0.997)),
            ],
            "deviations": [signed_percent(it) for it in (-0.031, -0.0001)],
            "counts": [counted(1, "layer"), counted(2417, "layer")],
            "memories": [gibibytes(it) for it in (0, 8 << 30)],
            "prices": [price_per_hour(it) for it in (None, 0.17)],
            "speeds": [speed(it) for it in (None, 98.54, 99.97, 2456.7)],
            "p-values": [p_words(it) for it in (None, 0.0009, 0.001)],
            "threads": [too_many_threads(*it) for it in (([None, 1, 2], 2), ([], 0), ([None, 3], 2), ([1], 8, 0.5))],
            "names": [names_of(tuple(it)) for it in ("abc", "abcde")],
            "capitals": [capitalised("left out: resNet"), capitalised("")],
            "labels of models": [
                model_label("ResNet-50 Trained on ImageNet", "11", 12),
                model_label("ResNet-50\n", None, 10),
                model_label("Res Net-50", "11", 8),
            ],
        },
    )


def test_times_have_a_unit_that_suits_them() -> None:
    day = 86400
    ages = (-5, 3599, 3600, 2 * day - 1, 2 * day, 999 * day, 1000 * day)
    moments = None, (NOW - 59, NOW), (NOW - 60, NOW - 60), (NOW - 7200, NOW - 120), (NOW + 500, NOW + 500)
    stored = (0, int((NOW - 7200) * 1e6), int((NOW - 3 * day) * 1e6))
    unknown, younger, older = (replace(doubted(bricks_when=when), end_to_end=None) for when in stored)
    check(
        "times",
        {
            "durations": [duration(it) for it in (3.4, 89.4, 90, 5399, 5400, 7200)],
            "ages": map(age, ages),
            "ages of measurements": map(age_words, (*moments, (NOW - 7200, NOW - 20))),
            "of estimates": [measured_ago(it) for it in ([], [unknown], [unknown, younger, older])],
            "a stored time": [ago(""), ago("1970-04-26T14:46:40+00:00"), minute_of("1970-04-26T14:46:40.5+00:00")],
        },
    )


def test_figures_of_language_models_have_as_many_digits_as_a_user_needs() -> None:
    delays = (0.123, 8.34, 412.3, 4213.0, 104_100.0, 354_000.0, 9e6)
    parameters = (134_515_008, 999_885_952, 8_030_261_248, 13_015_864_320, 405_853_388_800)
    # Of a mixture, those of all experts and of a token.
    mixtures = (8_030_261_248, 8_030_261_248), (30_532_122_624, 3_353_548_800), (1_300_000_000, 399_000_000)
    check(
        "language-numbers",
        {
            "rates": map(rate_text, (1240.4, 151.2, 41.34, 7.08, 0.431, 0.0123)),
            "delays": map(delay_text, delays),
            "sizes": [memory_text(int(it * 1e9)) for it in (0.0004, 0.0841, 0.421, 5.12, 23.4, 1405)],
            "parameters": map(parameters_text, parameters),
            "parameters in words": [parameters_words(*it) for it in mixtures],
            "intervals of delays": [between(*it, delay_text) for it in ((3700.0, 4100.0), (870.0, 1200.0))],
            "an interval of rates": between(6.5, 7.7, rate_text),
        },
    )
