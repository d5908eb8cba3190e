from dataclasses import replace

from dlbricks_tui.answers.changes import ComparedPair, ComparedResults, ComparedSelection
from dlbricks_tui.documents.comparison import pair_columns, ratio_parts
from dlbricks_tui.documents.parts import Table
from dlbricks_tui.store.change import Verdict
from tests.documents.snapshots import check
from tests.documents.test_layout import texts


def pair(name: str, context: str, change: float, p_value: float | None, verdict: Verdict) -> ComparedPair:
    reason = "fewer than 5 samples" if verdict is Verdict.UNKNOWN else ""
    figures = 1.0, 1.0 + change, change, p_value, verdict, reason
    return ComparedPair(name, "brick", "b" * 64, context, "", "mxnet, 1 thread", "a", "b", *figures)


PAIRS = (
    pair("conv", "plain", 0.5, 0.0001, Verdict.SLOWER),
    pair("resnet18_v1", "", 0.001, 0.2, Verdict.SAME),
    pair("relu", "", 0.3, None, Verdict.UNKNOWN),
)
A, B = ComparedSelection("one", 3, 3.0, 1), ComparedSelection("two", 4, 3.801, 0)
FOUND = ComparedResults(A, B, 1.25, (1.2, 1.3), 1, 0, 1, 1, (), PAIRS)


def test_a_contrast_has_the_ratio_the_verdicts_and_every_pair() -> None:
    check(
        "contrast",
        {"three pairs": [*ratio_parts(FOUND), Table(pair_columns(PAIRS), PAIRS)]},
    )
    narrow = texts(50, Table(pair_columns(PAIRS), PAIRS))
    assert "  p  " not in narrow[0] and "change" in narrow[0]


def test_rows_of_one_model_name_their_runtimes() -> None:
    both = replace(PAIRS[1], execution="openvino, 1 thread"), replace(PAIRS[1], execution="mxnet, 1 thread")
    lines = texts(100, Table(pair_columns(both), both))
    assert "runtime" in lines[0] and "openvino, 1 thread" in lines[1] and "mxnet, 1 thread" in lines[2]


def test_nothing_in_common_has_no_ratio() -> None:
    for ratio, interval in ((None, None), (1.0, None), (None, (1.0, 1.0))):
        assert not list(ratio_parts(ComparedResults(A, B, ratio, interval, 0, 0, 0, 0, (), ())))
