from dlbricks_tui.answers.comparisons.contrasts import ComparedPair, ComparedResults, ComparedSelection
from dlbricks_tui.documents.contrast import pair_columns, ratio_parts
from dlbricks_tui.documents.layout import laid_out
from dlbricks_tui.documents.parts import Table
from dlbricks_tui.store.contrast import Verdict


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
    lines = laid_out([*ratio_parts(FOUND), Table(pair_columns(), PAIRS)], 100)
    assert ["".join(span.text for span in line).rstrip() for line in lines] == [
        "B takes 1.250 times as long (95 % 1.200 to 1.300, geometric mean of 3); together 3.000 and 3.801 ms",
        "1 slower, 1 alike, 1 too few samples; only in A 1, only in B 0",
        "brick or model   A ms   B ms   change       p  B is",
        "conv [plain]    1.000  1.500  +50.0 %  <0.001  + slower",
        "resnet18_v1     1.000  1.001   +0.1 %   0.200  = alike",
        "relu            1.000  1.300  +30.0 %       -  ? too few samples",
    ]


def test_nothing_in_common_has_no_ratio() -> None:
    assert not list(ratio_parts(ComparedResults(A, B, None, None, 0, 0, 0, 0, (), ())))
