from pathlib import Path

import pytest

from dlbricks_tui.estimate.comparison import DELIVERED, PRICES_FILE, cost_of, parse_prices, read_prices
from dlbricks_tui.estimate.errors import EstimateError


def test_the_first_name_with_a_price_is_used_and_those_of_the_user_override_the_delivered_ones(tmp_path: Path) -> None:
    paper = {"c4.xlarge": 0.199, "c4.2xlarge": 0.398, "c5.xlarge": 0.17, "c5.2xlarge": 0.34}
    prices = read_prices(tmp_path)
    assert {name: prices.of([name]) for name in paper} == paper
    assert prices.of(["xeon-4c-1234", "c5.2xlarge", "c5.xlarge"]) == 0.34
    (tmp_path / PRICES_FILE).write_text('[dollars_per_hour]\n"c5.xlarge" = 0.2\n"my box" = 0\n')
    changed = {"c5.xlarge": 0.2, "my box": 0.0, "c4.xlarge": DELIVERED["c4.xlarge"], "unknown": None}
    prices = read_prices(tmp_path)
    assert {name: prices.of([name]) for name in changed} == changed
    # A million inferences of 36 ms take ten hours.
    assert cost_of(36.0, 0.17) == pytest.approx(1.7)


def test_a_name_with_a_dot_needs_no_quotes() -> None:
    assert parse_prices("[dollars_per_hour]\nc5.xlarge = 0.17\nc5.2xlarge = 0.34", "here") == {
        "c5.xlarge": 0.17,
        "c5.2xlarge": 0.34,
    }


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("nonsense", "not TOML"),
        ('"c5.xlarge" = 0.17', "needs one table"),
        ("dollars_per_hour = 3", "needs one table"),
        ('[dollars_per_hour]\n"c5.xlarge" = "0.17"', "c5.xlarge costs '0.17'"),
        ("[dollars_per_hour]\na = -1", "a costs -1"),
        ("[dollars_per_hour]\na = 1e308", "a costs 1e+308"),
        ("[dollars_per_hour]\na = nan", "a costs nan"),
        ("[dollars_per_hour]\na = true", "a costs True"),
    ],
)
def test_an_invalid_price_table_is_refused_with_place_and_reason(text: str, complaint: str) -> None:
    with pytest.raises(EstimateError) as refused:
        parse_prices(text, "prices file mine.toml")
    assert "mine.toml" in str(refused.value)
    assert complaint in str(refused.value)


def test_the_documented_example_is_valid() -> None:
    page = (Path(__file__).parents[2] / "docs" / "how-it-works" / "estimates.md").read_text(encoding="utf-8")
    example = page.split("```toml\n")[2].split("```")[0]
    assert parse_prices(example, "docs") == {"c5.xlarge": 0.17, "my server": 0.05}
