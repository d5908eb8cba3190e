import pytest

from dlbricks_tui.models.graph import Level
from dlbricks_tui.runtime.variant import InstructionSet, Precision, Variant
from dlbricks_tui.store.change import Verdict
from dlbricks_tui.wording.checks import (
    change_words,
    check_heading,
    combination_words,
    p_phrase,
    unmeasured_line,
    verdict_counts,
    verdict_line,
)


@pytest.mark.parametrize(("p_value", "told"), [(None, ""), (0.0421, "p = 0.042"), (0.0001, "p < 0.001")])
def test_a_p_value_has_its_name(p_value: float | None, told: str) -> None:
    assert p_phrase(p_value) == told


def test_a_combination_is_named_without_what_is_usual() -> None:
    assert combination_words("mxnet", Variant(threads=None), Level.FUSED) == "mxnet, default threads"
    unusual = Variant(threads=1, batch=2, precision=Precision.BF16, instructions=InstructionSet.AVX2)
    told = "mxnet, 1 thread, batch 2, bf16, avx2 kernels, written"
    assert combination_words("mxnet", unusual, Level.WRITTEN) == told


def test_a_verdict_is_one_line_with_its_figures_and_notes() -> None:
    words = change_words(0.072, 0.061, -0.083)
    assert words == "+7.2 % (+6.1 to -8.3 %)"
    assert verdict_line(Verdict.SLOWER, "net", 1.0, 1.072, words, 0.042, ["why", "turbo"]) == (
        "slower   net: 1.000 ms -> 1.072 ms, +7.2 % (+6.1 to -8.3 %), p = 0.042; why; turbo"
    )
    assert verdict_line(Verdict.UNKNOWN, "net", 1, 1, "", None, []) == "unknown  net: 1.000 ms -> 1.000 ms"
    assert unmeasured_line("net", "it failed") == "unknown  net: it failed"
    assert verdict_counts([Verdict.SAME, Verdict.SLOWER, Verdict.SAME]) == "1 slower, 2 same"


def test_a_check_says_what_it_does() -> None:
    assert check_heading("a.toml", "", 1, 1, 0.03) == (
        "checking 1 combination of a.toml, each in 1 process; changes up to 3.0 % count as none"
    )
    assert check_heading("a.toml", "3 d ago", 2, 4, 0.03).startswith(
        "checking 2 combinations of a.toml, measured 3 d ago, each in 4 processes;"
    )
