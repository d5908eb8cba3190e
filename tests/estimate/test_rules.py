from fractions import Fraction
from pathlib import Path

import pytest

from dlbricks_tui.estimate.compositions import FREELY, NO_RULES, EstimateError, parse_rules, read_rules
from tests.bricks.graphs import chain

LAYERS = chain("conv", "relu", "conv", "pool").layers
CONV, RELU, SECOND_CONV, POOL = LAYERS


def test_a_rule_is_for_the_ops_kinds_and_names_that_it_lists() -> None:
    by_op = parse_rules('[[rule]]\nops = ["c*v"]\nparallel = false', "here")
    assert [by_op.sharing_of([layer]).parallel for layer in LAYERS] == [False, True, False, True]
    by_kind = parse_rules('[[rule]]\nkinds = ["pooling", "elementwise"]\nparallel = false', "here")
    assert [by_kind.sharing_of([layer]).parallel for layer in LAYERS] == [True, False, True, False]
    by_both = parse_rules('[[rule]]\nops = ["conv"]\nnames = ["layer2", "layer3"]\nparallel = false', "here")
    assert [by_both.sharing_of([layer]).parallel for layer in LAYERS] == [True, True, False, True]


def test_the_first_matching_rule_applies() -> None:
    rules = parse_rules('[[rule]]\nops = ["conv"]\nslowdown = 1.3\n\n[[rule]]\nparallel = false', "here")
    assert rules.sharing_of([CONV]).parallel
    assert rules.sharing_of([CONV]).slowdown == Fraction(13, 10)
    assert not rules.sharing_of([RELU]).parallel
    assert NO_RULES.sharing_of(LAYERS) == FREELY
    # Layers of one rule count together, and those of another rule do not.
    rules = parse_rules('[[rule]]\nops = ["conv"]\nat_most = 2\n\n[[rule]]\nat_most = 2', "here")
    assert rules.sharing_of([CONV]) == rules.sharing_of([SECOND_CONV])
    assert rules.sharing_of([CONV]) != rules.sharing_of([RELU])


def test_a_sequence_follows_the_strictest_rule_of_its_layers() -> None:
    rules = parse_rules(
        '[[rule]]\nops = ["conv"]\nat_most = 3\nslowdown = 2\n\n[[rule]]\nops = ["relu"]\nat_most = 2\n\n'
        '[[rule]]\nops = ["pool"]\nparallel = false',
        "here",
    )
    both = rules.sharing_of([CONV, RELU])
    assert (both.parallel, both.at_most, both.slowdown) == (True, 2, Fraction(2))
    assert not rules.sharing_of(LAYERS).parallel


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("ops = [", "not TOML"),
        ('slow = "x"', "'slow' means nothing"),
        ("[rule]\nat_most = 1", "two pairs of brackets"),
        ("[[rule]]\nworkers = 2", "rule 1: 'workers' means nothing; a rule has ops, kinds, names"),
        ("[[rule]]\n[[rule]]\nat_most = 0", "rule 2: at_most is a whole number"),
        ("[[rule]]\nat_most = true", "at_most is a whole number"),
        ("[[rule]]\nslowdown = 0.5", "slowdown is a number from 1 to a million"),
        ("[[rule]]\nslowdown = 1e308", "slowdown is a number from 1 to a million"),
        ("[[rule]]\nslowdown = inf", "slowdown is a number from 1 to a million"),
        ("[[rule]]\nslowdown = nan", "slowdown is a number from 1 to a million"),
        ('[[rule]]\nparallel = "no"', "parallel is true or false"),
        ("[[rule]]\nparallel = false\nat_most = 2", "take out at_most and slowdown"),
        ('[[rule]]\nops = "conv"', "ops is a list of patterns"),
        ('[[rule]]\nnames = [""]', "names is a list of patterns"),
        ('[[rule]]\nkinds = ["convolutions"]', "no kind of layers is called 'convolutions'; there are convolution,"),
    ],
)
def test_an_invalid_rule_is_refused_with_place_and_reason(text: str, complaint: str) -> None:
    with pytest.raises(EstimateError) as refused:
        parse_rules(text, "mine.toml")
    assert "mine.toml" in str(refused.value)
    assert complaint in str(refused.value)
    assert "\n" not in str(refused.value)


def test_rules_are_read_from_a_file_and_an_unreadable_one_is_named(tmp_path: Path) -> None:
    file = tmp_path / "rules.toml"
    file.write_text('[[rule]]\nnames = ["größer*"]\nat_most = 1\n', encoding="utf-8")
    assert read_rules(file).rules[0].names == ("größer*",)
    file.write_bytes(b"\xff\xfe")
    for unreadable in (file, tmp_path / "missing rules.toml"):
        with pytest.raises(EstimateError, match=r"rules\.toml"):
            read_rules(unreadable)
    with pytest.raises(EstimateError, match="cannot be read"):
        read_rules(tmp_path)


def test_the_documented_example_is_valid() -> None:
    page = (Path(__file__).parents[2] / "docs" / "how-it-works" / "estimates.md").read_text(encoding="utf-8")
    example = page.split("```toml\n")[1].split("```")[0]
    first, second = parse_rules(example, "docs").rules
    assert not first.sharing.parallel
    assert second.sharing.slowdown == Fraction(13, 10)
