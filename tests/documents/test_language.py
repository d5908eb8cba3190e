from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest

from dlbricks_tui.documents.language import (
    basis_sentence,
    curve_parts,
    execution_words,
    fastest_first,
    language_command,
    language_parts,
    language_plots,
    library_parts,
    line_of,
)
from dlbricks_tui.documents.language_comparison import (
    comparison_parts,
    executions_parts,
    threads_sentence,
    what_ifs_parts,
)
from dlbricks_tui.documents.layout import laid_out
from dlbricks_tui.documents.parts import Part
from dlbricks_tui.language.orders import LanguagePhase
from dlbricks_tui.wording import numbers
from tests.api.language_answers import ENGINE, WHEN, answer, compared, library, predicted, too_large, variants, what_ifs
from tests.documents.snapshots import check


@pytest.fixture(autouse=True)
def _three_hours_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numbers, "now", lambda: datetime.fromisoformat(WHEN).timestamp() + 3 * 3600)


def text_of(parts: Sequence[Part], width: int) -> str:
    return "\n".join("".join(span.text for span in line).rstrip() for line in laid_out(parts, width))


@pytest.mark.parametrize("width", [80, 120])
def test_an_answer_says_speed_memory_and_where_the_time_goes(width: int) -> None:
    mixture: dict[str, Any] = {
        "active_parameters": 3_353_548_800,
        "bound_tokens_per_second": None,
        "head": "every token",
    }
    cases = {
        "measured": language_parts(answer()),
        "measured in part, a mixture": language_parts(answer(coverage=0.62, contexts=(), **mixture)),
        "end to end": language_parts(answer(measured=ENGINE, contexts=())),
        "end to end, predicted": language_parts(replace(predicted(measured=ENGINE, head="every token"), contexts=())),
        "does not fit": language_parts(too_large()),
    }
    check(f"language-{width}", cases, width)


def test_pictures_mark_what_is_predicted() -> None:
    of_both = language_plots(answer())
    check("language-plots", {it.title: it for it in (*of_both, *language_plots(predicted()))})
    assert [it.name for it in of_both[0].series] == [it.name for it in of_both[1].series], "they share a legend"
    assert language_plots(answer(prompts=())) == ()


def test_a_bound_far_above_the_points_is_left_out() -> None:
    assert language_plots(answer(bound_tokens_per_second=9.0))[0].levels
    assert not language_plots(answer(bound_tokens_per_second=90.0))[0].levels


@pytest.mark.parametrize("width", [80, 120])
def test_executions_are_compared_with_the_best_one(width: int) -> None:
    one, two, slow, large = variants()
    by_two = replace(two, runtime="openvino-2025.3 python-3.11 threads-2")
    cases = {
        "precisions and threads": comparison_parts(compared(two, one, slow, large), LanguagePhase.TOTAL),
        "for decoding": comparison_parts(compared(one, two, slow), LanguagePhase.DECODE),
        "runtimes": comparison_parts(compared(by_two, replace(one, threads=2)), LanguagePhase.TOTAL),
        "end to end": comparison_parts(compared(replace(two, measured=ENGINE), one), LanguagePhase.TOTAL),
        "none fits": comparison_parts(
            compared(too_large(), replace(too_large(), precision="int8")), LanguagePhase.PREFILL
        ),
    }
    check(f"language-comparison-{width}", cases, width)


@pytest.mark.parametrize("width", [80, 120])
def test_what_ifs_tell_the_predicted_and_the_measured_gain_of_each_phase(width: int) -> None:
    check(f"language-what-ifs-{width}", {"what-ifs": what_ifs_parts(answer(what_ifs=what_ifs()))}, width)
    assert not list(what_ifs_parts(answer()))


def test_threads_that_are_best_for_one_phase_each_gain_together() -> None:
    one, two, *_ = variants()
    assert threads_sentence([one, two]) == (
        "2 threads for prefill and 1 for decoding are best: an engine that allows both takes 21.2 s in all, against "
        "21.9 s"
    )
    assert threads_sentence([two]) == ""


@pytest.mark.parametrize("width", [60, 80, 120])
def test_the_library_lists_the_fastest_first_that_fit(width: int) -> None:
    cases = {
        "all": library_parts(library()),
        "fast enough": library_parts(library(), at_least=10),
        "none is fast enough": library_parts(library(), at_least=1000),
        "in two precisions": library_parts([*library()[:2], *(replace(it, precision="f32") for it in library()[:2])]),
    }
    check(f"language-library-{width}", cases, width)


def test_the_command_that_measures_names_what_is_not_usual() -> None:
    assert language_command(answer()) == "dlbricks llm llama-3.1-8b --threads 2"
    other = answer(model="my model.gguf", threads=0, precision="f32", prompt_tokens=64, generated_tokens=16)
    assert language_command(replace(other, runtime="openvino-2025.3 python-3.11 threads-default")) == (
        "dlbricks llm 'my model.gguf' --runtime openvino --precision f32 --prompt 64 --generate 16"
    )


def test_only_models_that_fit_are_fast_enough() -> None:
    found = fastest_first(library(), at_least=7.0)
    assert [it.model for it in found] == ["smollm2-135m", "llama-3.2-1b", "qwen3-30b-a3b", "llama-3.1-8b"]
    assert [it.fits for it in fastest_first(library())] == [True] * 4 + [False] * 3


def test_a_panel_has_everything_but_the_answer_in_a_line_and_the_curves_as_rows() -> None:
    told = text_of([*language_parts(answer(), on_screen=True), *executions_parts(variants(), LanguagePhase.TOTAL)], 100)
    assert told.startswith("Llama 3.1 8B: 8.03 billion parameters\n") and line_of(answer()) not in told
    assert all(each in told for each in ("Where the time goes", "Memory", "against best"))
    rows = text_of(list(curve_parts(answer())), 60).split("\n")
    assert any(it.split()[:2] == ["4,096", "~5.5"] for it in rows) and any("263 ms" in it for it in rows)


def test_a_share_that_nobody_would_notice_is_not_called_measured() -> None:
    assert execution_words(answer()).endswith("; measured 3 h ago")
    assert execution_words(answer(coverage=0.62)).endswith("; 62 % measured 3 h ago")
    assert execution_words(answer(coverage=0.001)).endswith("; predicted")


def test_no_line_is_wider_than_the_terminal() -> None:
    one = answer(measured=ENGINE, what_ifs=what_ifs())
    parts = [*language_parts(one), *what_ifs_parts(one), *library_parts(library())]
    parts += comparison_parts(compared(*variants()), LanguagePhase.TOTAL)
    for width in (60, 80, 100):
        found = text_of([it for it in parts if not hasattr(it, "plots")], width)
        assert max(map(len, found.split("\n"))) <= width


def test_the_answer_is_a_line() -> None:
    assert line_of(predicted(7.1, first_token_ms=4200.0)).startswith(
        "~7.1 tokens per second, the first after ~4.2 s; 5.1 GB of 23 GB"
    )
    assert line_of(too_large()).startswith("does not fit: 48 GB of 23 GB; with enough memory ~")


def test_memory_that_is_left_or_missing_is_told() -> None:
    assert text_of([*language_parts(answer(memory_bytes=5))], 80).endswith("it fits: 23 GB are left")
    assert text_of([*language_parts(too_large())], 80).endswith("it does not fit: 25 GB are missing")


def test_weights_of_openvino_are_told_to_be_there_twice() -> None:
    remark = "with scales and zeros; table and head have 8"
    told = [text_of([*language_parts(answer(runtime=it))], 120) for it in ("openvino-2026.4", "onnxruntime-1.32.0")]
    assert [remark in it for it in told] == [True, False]


def test_what_the_figures_rest_on_is_told_with_the_command_that_measures_the_rest() -> None:
    command = "`dlbricks llm llama-3.1-8b --threads 2` measures it"
    assert basis_sentence(answer()) == "the estimate rests on measurements made 3 h ago"
    in_part = answer(coverage=0.999, is_measured=False)
    told = "~ 99 % of the time rests on measurements made 3 h ago, the rest is predicted"
    assert basis_sentence(in_part) == f"{told}: {command}"
    assert basis_sentence(replace(in_part, is_measured=True)) == f"{told} from a shorter prompt, as the model is large"
    assert basis_sentence(predicted()) == f"~ all of it is predicted: {command}"
