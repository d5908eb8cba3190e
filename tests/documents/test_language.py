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
from dlbricks_tui.documents.parts import Part, Sentence
from dlbricks_tui.documents.token_loads import token_load_line, token_load_parts, token_load_plots
from dlbricks_tui.language.architecture import LanguagePhase
from dlbricks_tui.wording import numbers
from tests.api.language_answers import (
    ENGINE,
    WHEN,
    answer,
    compared,
    library,
    predicted,
    token_load_answer,
    too_large,
    variants,
    what_ifs,
)
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


@pytest.mark.parametrize("width", [60, 80, 120])
def test_the_library_lists_the_fastest_first_that_fit(width: int) -> None:
    cases = {
        "all": library_parts(library()),
        "fast enough": library_parts(library(), at_least=10),
        "none is fast enough": library_parts(library(), at_least=1000),
        "in two precisions": library_parts([*library()[:2], *(replace(it, precision="f32") for it in library()[:2])]),
    }
    check(f"language-library-{width}", cases, width)


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


def test_no_line_is_wider_than_the_terminal() -> None:
    one = answer(measured=ENGINE, what_ifs=what_ifs())
    parts = [*language_parts(one), *what_ifs_parts(one), *library_parts(library())]
    parts += comparison_parts(compared(*variants()), LanguagePhase.TOTAL)
    for width in (60, 80, 100):
        found = text_of([it for it in parts if not hasattr(it, "plots")], width)
        assert max(map(len, found.split("\n"))) <= width


def test_answers_are_told_in_sentences() -> None:
    one, two, *_ = variants()
    other = answer(model="my", path="my model.gguf", threads=0, precision="f32", prompt_tokens=64, generated_tokens=16)
    in_part = answer(coverage=0.999, is_measured=False)
    # Weights of OpenVINO are there twice.
    memory = answer(memory_bytes=5), too_large(), answer(runtime="openvino-2026.4")
    check(
        "language-words",
        {
            "lines": map(line_of, (predicted(7.1, first_token_ms=4200.0), too_large())),
            "what figures rest on": map(
                basis_sentence, (answer(), in_part, replace(in_part, is_measured=True), predicted())
            ),
            # A share that nobody would notice is not called measured.
            "executions": [execution_words(answer(coverage=share)) for share in (1.0, 0.999, 0.62, 0.001)],
            "commands": [
                language_command(answer()),
                language_command(replace(other, runtime="openvino-2025.3 python-3.11 threads-default")),
            ],
            # Each is best for one phase.
            "threads": [threads_sentence([one, two]), threads_sentence([two])],
            **{f"memory {number}": [*language_parts(it)][-4:] for number, it in enumerate(memory, 1)},
        },
        width=140,
    )


def test_predictions_by_peaks_of_a_moment_say_so_with_the_cure() -> None:
    rough, load = predicted(has_rough_peaks=True), token_load_answer(is_driven=False, coverage=0.0)
    one, many = [*language_parts(rough)], [*library_parts([rough, predicted(threads=1, has_rough_peaks=True)])]
    users = [*token_load_parts(replace(load, has_rough_peaks=True))]
    for parts, cure in ((one, " 2`"), (many, " 1`, `dlbricks doctor --peaks --threads 2`"), (users, " 2`")):
        (told,) = [it.text for it in parts if isinstance(it, Sentence) and "for a moment" in it.text]
        assert told.endswith(f"differ each time; to store them: `dlbricks doctor --peaks --threads{cure}"), told
    for stored in (predicted(), answer(has_rough_peaks=True)):
        assert not [it for it in language_parts(stored) if isinstance(it, Sentence) and "for a moment" in it.text]


@pytest.mark.parametrize("width", [80, 120])
def test_users_are_served_in_several_ways(width: int) -> None:
    cases = {
        "driven": token_load_answer(),
        "predicted, with pauses": token_load_answer((), is_driven=False, coverage=0.0, think_s=20.0),
        "bounds that nothing meets": token_load_answer((1,), first_token_ms=100.0),
        "memory for few prompts": token_load_answer((), is_driven=False, host_memory_bytes=500_000_000),
        "too little memory": token_load_answer((), is_driven=False, host_memory_bytes=100_000_000),
    }
    check(f"token_loads_{width}", {name: [*token_load_parts(it)] for name, it in cases.items()}, width)
    bounds: list[dict[str, Any]] = [{}, {"per_token_ms": 21.0}, {"first_token_ms": 1.0}]
    bounds.append({"first_token_ms": 1e7, "per_token_ms": 1e6})
    lines = [token_load_line(token_load_answer(**it)) for it in bounds]
    check("token_loads_lines", {"lines": lines})


@pytest.mark.parametrize("think_s", [1.0, 5.0])
def test_a_predicted_delay_is_in_its_interval_where_faster_steps_make_users_wait_for_longer(think_s: float) -> None:
    # A batch may end before the next request, which has to wait then.
    for way in token_load_answer((3, 5), is_driven=False, think_s=think_s).ways:
        for it in way.loads:
            for delay, (low, high) in (
                (it.predicted.first_token, it.first_token_interval_ms),
                (it.predicted.per_token, it.per_token_interval_ms),
            ):
                assert low <= delay.bounded_ms <= high


def test_the_pictures_of_users_show_both_bounds_and_every_way() -> None:
    first, later = token_load_plots(token_load_answer())
    assert [it.value for it in (*first.levels, *later.levels)] == [4.0, 60.0]
    for plot in (first, later):
        assert [it.name for it in plot.series] == ["single", "static", "continuous"]
        assert all(plot.up.low <= y <= plot.up.high for it in plot.series for _, y in it.points)
