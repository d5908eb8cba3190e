from dataclasses import replace
from datetime import datetime

import pytest

from dlbricks_tui.answers.pairs import ComparedPart, ComparedSide, ComparedTwo
from dlbricks_tui.answers.sides import PairKind
from dlbricks_tui.documents.comparison import answer_words, comparison_parts, question_words
from dlbricks_tui.store.change import Verdict
from dlbricks_tui.wording import numbers
from tests.documents.snapshots import check
from tests.store.samples import WHEN

FOUND = ComparedTwo(
    of=PairKind.SYSTEM,
    a=ComparedSide("c5", "measured", 8.0, (7.9, 8.1)),
    b=ComparedSide("c6i", "sum of 2 bricks", 12.0, (11.9, 12.1)),
    ratio=1.5,
    interval=(1.45, 1.55),
    verdict=Verdict.SLOWER,
    reason="",
    parts_are="bricks",
    parts=(
        ComparedPart("conv 3x3", 1.0, 1.5, Verdict.SLOWER),
        ComparedPart("pool", 1.0, 1.01, Verdict.SAME),
        ComparedPart("relu", None, 0.5),
    ),
    differences={"cores": ("4", "2"), "models": ("", "of the library, all fifty of them")},
    remarks=("A: 1 result in doubt left out.",),
)


def test_a_comparison_has_its_verdict_both_sides_the_parts_and_what_else_differs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(numbers, "now", lambda: datetime.fromisoformat(WHEN).timestamp() + 7200)
    sums = replace(FOUND, parts=(ComparedPart("convolution", 1.0, 1.5),), differences={}, remarks=())
    aged = replace(FOUND, a=replace(FOUND.a, since=WHEN), parts=(ComparedPart("none", 0.0, 1.5, Verdict.UNKNOWN),))
    check(
        "comparison",
        {
            "several parts": comparison_parts(FOUND, 9),
            "the first part": comparison_parts(replace(aged, verdict=Verdict.FASTER), 1),
            "sums": comparison_parts(sums, 9),
            "no parts": comparison_parts(replace(sums, verdict=Verdict.SAME), 0),
        },
        width=70,
    )
    check("comparison-narrow", {"several parts": comparison_parts(FOUND, 9)}, width=42)


@pytest.mark.parametrize(
    ("verdict", "ratio", "words"),
    [
        (Verdict.FASTER, 0.05, "B is faster: it takes 0.05 times as long as A (95 % 1.45 to 1.55)."),
        (Verdict.SLOWER, 12.34, "A is faster: B takes 12.3 times as long (95 % 1.45 to 1.55)."),
        (Verdict.SLOWER, 9.996, "A is faster: B takes 10.00 times as long (95 % 1.45 to 1.55)."),
        (Verdict.SLOWER, 100.0, "A is faster: B takes 100 times as long (95 % 1.45 to 1.55)."),
        (Verdict.SLOWER, 1234.5, "A is faster: B takes 1,234 times as long (95 % 1.45 to 1.55)."),
        (Verdict.SAME, 1.0, "They cannot be told apart: B takes 1.00 times as long as A (95 % 1.45 to 1.55)."),
    ],
)
def test_the_answer_is_one_sentence(verdict: Verdict, ratio: float, words: str) -> None:
    assert answer_words(replace(FOUND, verdict=verdict, ratio=ratio)) == words


def test_an_unknown_verdict_has_its_reason() -> None:
    found = replace(FOUND, verdict=Verdict.UNKNOWN, reason="it may be chance")
    assert answer_words(found).endswith("as A (95 % 1.45 to 1.55); it may be chance.")


def test_results_and_selections_have_no_kind_in_the_question() -> None:
    assert question_words(PairKind.RESULT, "one", "two\n") == "Which is faster: A one or B two\\n?"
