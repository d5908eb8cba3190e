from dataclasses import replace

import pytest

from dlbricks_tui.wording import numbers
from dlbricks_tui.wording.numbers import age_words, ago, measured_ago, minute_of
from tests.wording.test_doubts import one

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
    unknown = replace(one(bricks_when=0), end_to_end=None)
    assert measured_ago([]) == measured_ago([unknown]) == ""
    younger, older = one(bricks_when=int((NOW - 7200) * 1e6)), one(bricks_when=int((NOW - 3 * 86400) * 1e6))
    assert measured_ago([unknown, younger, older]) == "measured 2 h to 3 d ago"
