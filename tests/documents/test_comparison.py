from dataclasses import replace

import pytest

from dlbricks_tui.answers.pairs.compared import ComparedPart, ComparedSide, ComparedTwo, Kind
from dlbricks_tui.documents.comparison import answer_words, comparison_parts, question_words
from dlbricks_tui.documents.layout import laid_out
from dlbricks_tui.evaluations.change import Verdict

FOUND = ComparedTwo(
    of=Kind.SYSTEM,
    a=ComparedSide("c5", "measured", 8.0, (7.9, 8.1)),
    b=ComparedSide("c6i", "sum of 2 bricks", 12.0, (11.9, 12.1)),
    ratio=1.5,
    interval=(1.45, 1.55),
    verdict=Verdict.SLOWER,
    parts_are="bricks",
    parts=(
        ComparedPart("conv 3x3", 1.0, 1.5, Verdict.SLOWER),
        ComparedPart("pool", 1.0, 1.01, Verdict.SAME),
        ComparedPart("relu", None, 0.5),
    ),
    differences={"cores": ("4", "2"), "models": ("", "of the library, all fifty of them")},
    remarks=("A: 1 result in doubt left out.",),
)


def texts(found: ComparedTwo, width: int, most: int = 9) -> list[str]:
    return ["".join(span.text for span in line).rstrip() for line in laid_out(comparison_parts(found, most), width)]


def test_a_comparison_has_its_verdict_both_sides_the_parts_and_what_else_differs() -> None:
    assert texts(FOUND, 70) == [
        "Which system is faster: A c5 or B c6i?",
        "A is faster: B takes 1.50 times as long (95 % 1.45 to 1.55).",
        "",
        "A  c5: 8.000 ms (7.900 to 8.100), measured",
        "B  c6i: 12.00 ms (11.90 to 12.10), sum of 2 bricks",
        "",
        "bricks     A ms   B ms   B - A   change  B is",
        "conv 3x3  1.000  1.500  +0.500  +50.0 %  + slower",
        "pool      1.000  1.010  +0.010   +1.0 %  = same",
        "relu          -  0.500  +0.500        -",
        "",
        "What else differs",
        "cores   4  2",
        "models  -  of the library, all fifty of them",
        "",
        "A: 1 result in doubt left out.",
    ]


def test_a_narrow_comparison_gives_up_the_difference_and_has_long_values_below_one_another() -> None:
    lines = texts(FOUND, 42)
    assert "bricks     A ms   B ms   change  B is" in lines
    assert lines[-5:-2] == ["models  A -", "        B of the library, all fifty of", "        them"]


def test_sums_have_no_verdicts_and_no_part_may_be_shown() -> None:
    sums = replace(FOUND, parts=(ComparedPart("convolution", 1.0, 1.5),), differences={}, remarks=())
    assert "bricks        A ms   B ms   B - A   change" in texts(sums, 70)
    assert texts(sums, 70, most=0)[-3:] == ["", "What else differs", "nothing that the store tells"]
    assert not any("A ms" in it for it in texts(sums, 70, most=0))


@pytest.mark.parametrize(
    ("verdict", "ratio", "words"),
    [
        (Verdict.FASTER, 0.05, "B is faster: it takes 0.05 times as long as A"),
        (Verdict.SLOWER, 12.34, "A is faster: B takes 12.3 times as long "),
        (Verdict.SLOWER, 1234.5, "A is faster: B takes 1,234 times as long "),
        (Verdict.SAME, 1.0, "They cannot be told apart: B takes 1.00 times as long as A"),
    ],
)
def test_the_answer_is_one_sentence(verdict: Verdict, ratio: float, words: str) -> None:
    assert answer_words(replace(FOUND, verdict=verdict, ratio=ratio)).startswith(words)


def test_results_and_selections_have_no_kind_in_the_question() -> None:
    assert question_words(Kind.RESULT, "one", "two\n") == "Which is faster: A one or B two\\n?"
