from dlbricks_tui.answers.comparisons.contrasts import ComparedPair, ComparedResults, ComparedSelection
from dlbricks_tui.documents.comparison import pair_columns, ratio_parts
from dlbricks_tui.documents.parts import Table
from dlbricks_tui.store.contrast import Verdict
from tests.documents.snapshots import check
from tests.documents.test_layout import texts


def pair(name: str, context: str, change: float, p_value: float | None, verdict: Verdict) -> ComparedPair:
    return ComparedPair(name, "brick", "b" * 64, context, "", "a", "b", 1.0, 1.0 + change, change, p_value, verdict)


PAIRS = (
    pair("conv", "plain", 0.5, 0.0001, Verdict.SLOWER),
    pair("resnet18_v1", "", 0.001, 0.2, Verdict.ALIKE),
    pair("relu", "", 0.3, None, Verdict.TOO_FEW),
)
A, B = ComparedSelection("one", 3, 3.0, 1), ComparedSelection("two", 4, 3.801, 0)
FOUND = ComparedResults(A, B, 1.25, (1.2, 1.3), 1, 0, 1, 1, (), PAIRS)


def test_a_contrast_has_the_ratio_the_verdicts_and_every_pair() -> None:
    check(
        "contrast",
        {"three pairs": [*ratio_parts(FOUND), Table(pair_columns(), PAIRS)]},
    )
    narrow = texts(50, Table(pair_columns(), PAIRS))
    assert "  p  " not in narrow[0] and "change" in narrow[0]


def test_nothing_in_common_has_no_ratio() -> None:
    for ratio, interval in ((None, None), (1.0, None), (None, (1.0, 1.0))):
        assert not list(ratio_parts(ComparedResults(A, B, ratio, interval, 0, 0, 0, 0, (), ())))
