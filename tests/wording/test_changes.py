"""Changes, what-ifs, and the best systems."""

from dataclasses import replace

import pytest

from dlbricks_tui.models.graph import Level
from dlbricks_tui.runtime.variant import InstructionSet, Precision, Variant
from dlbricks_tui.store.change import Verdict
from dlbricks_tui.wording.answers import (
    change_words,
    check_heading,
    p_phrase,
    short_combination,
    unmeasured_line,
    verdict_counts,
    verdict_line,
    what_if_words,
)
from dlbricks_tui.wording.jobs import machines_answer, machines_question
from tests.estimate.test_comparison import incomplete, on, ranked


@pytest.mark.parametrize(("p_value", "told"), [(None, ""), (0.0421, "p = 0.042"), (0.0001, "p < 0.001")])
def test_a_p_value_has_its_name(p_value: float | None, told: str) -> None:
    assert p_phrase(p_value) == told


def test_a_combination_is_named_without_what_is_usual() -> None:
    assert short_combination("mxnet", Variant(threads=None), Level.FUSED) == "mxnet, default threads"
    unusual = Variant(threads=1, batch=2, precision=Precision.BF16, instructions=InstructionSet.AVX2)
    told = "mxnet, 1 thread, batch 2, bf16, avx2 kernels, written"
    assert short_combination("mxnet", unusual, Level.WRITTEN) == told


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


@pytest.mark.parametrize(
    ("what_if", "words"),
    [
        ("parallel-2", "run 2 branches at once"),
        ("kernels-avx2", "use avx2 kernels"),
        ("kernels-default", "use all kernels"),
        ("kernels-basic", "optimise less: basic"),
        ("runtime-onnxruntime", "run it in ONNX Runtime"),
        ("runtime-mix", "mix the fastest runtimes"),
        ("runtime-default-engine", "use the default engine"),
        ("fusion", "fuse more layers"),
        ("fusion-off", "fuse no layers"),
        ("precision-int8", "compute in int8"),
        ("threads-1", "use 1 thread"),
        ("batch-8", "use batches of 8"),
        ("runtime-of-a-later-version", "runtime-of-a-later-version"),
    ],
)
def test_a_what_if_is_told_in_plain_words(what_if: str, words: str) -> None:
    assert what_if_words(what_if) == words


def test_the_question_names_the_model_if_there_is_one() -> None:
    assert machines_question("net") == "Which system is quickest and cheapest for net?"
    assert machines_question("") == "Which system is quickest and cheapest for a model?"


def test_the_quickest_and_the_cheapest_system_are_told_with_latency_and_cost() -> None:
    told = machines_answer("net", ranked(on("c5.xlarge", 6), on("c5.2xlarge", 4), on("mine", 5)))
    assert told.startswith(
        "c5.2xlarge (4.000 ms: MXNet, default threads, batch 1) is the quickest of 3 systems; "
        "c5.xlarge (6.000 ms: MXNet, default threads, batch 1) is the cheapest: $ "
    )
    assert machines_answer("net", ranked(on("c5.xlarge", 4), on("mine", 5))).startswith(
        "c5.xlarge (4.000 ms: MXNet, default threads, batch 1) is the quickest of 2 systems, and the cheapest: $ "
    )


def test_what_is_missing_for_an_answer_is_told() -> None:
    assert machines_answer("net", ()) == "net was not measured on any system."
    only = machines_answer("net", ranked(on("mine", 5)))
    assert only == "Only mine (5.000 ms: MXNet, default threads, batch 1) has results of it."
    told = machines_answer("net", ranked(on("mine", 5), replace(incomplete(), end_to_end=None)))
    assert "is the quickest of 2 systems" in told and "write prices into prices.toml" in told
