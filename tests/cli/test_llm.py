"""`dlbricks llm`, by code that pretends to measure and to predict."""

import json
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from dlbricks_tui.api.jobs import words_of
from dlbricks_tui.api.language_answers import (
    LanguageAnswer,
    LanguageIntervals,
    LanguageOptions,
    LanguageWhatIf,
    left_out,
)
from dlbricks_tui.cli.progress import JobNarration
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.jobs.errors import JobError
from dlbricks_tui.jobs.events import Event, Waiting
from dlbricks_tui.language.architecture import LanguagePhase, WeightPrecision
from dlbricks_tui.language.opening import open_language_model
from dlbricks_tui.language.orders import LanguageMeasured, LanguageMessage, LanguageOrder, LanguageRound
from dlbricks_tui.runtime.variant import InstructionSet
from dlbricks_tui.wording import numbers
from tests.api.language_answers import ENGINE, WHEN, answer, library, predicted, what_ifs
from tests.cli.people import Command, document, one_line, schema_kept

MODEL, OTHER = "llama-3.2-1b", "smollm2-135m"
ASKING = "dlbricks_tui.api.language_models"
# What the contract promises.
KEYS = {
    *("model", "system", "runtime", "precision", "threads", "prompt_tokens", "generated_tokens"),
    *("prefill_ms", "first_token_ms", "prefill_tokens_per_second", "decode_tokens_per_second", "total_ms"),
    *("intervals", "memory_bytes", "fits", "coverage", "measured"),
}
ROUND = LanguageRound(f"{MODEL}: round 1")
MESSAGES: tuple[Event, ...] = (
    Waiting(holder="another run"),
    LanguageMessage(f"{MODEL}: measuring"),
    ROUND,
    LanguageMeasured(f"{MODEL}: measured in 42 s"),
)


class Asked:
    """Pretends to answer, and keeps what it was asked."""

    def __init__(self) -> None:
        self.messages: Sequence[Event] = MESSAGES
        self.raises: BaseException | None = None
        self.options = LanguageOptions()
        self.end_to_end = self.probe = False
        self.has_measured = self.is_in_store = False
        self.what_ifs: tuple[LanguageWhatIf, ...] = ()

    def answers(
        self, models: Sequence[Any], options: LanguageOptions, make: Callable[..., LanguageAnswer]
    ) -> tuple[LanguageAnswer, ...]:
        self.options = options
        return tuple(
            make(14.2 / threads, model=it.name, title=it.title, precision=precision.value, threads=threads)
            if not self.what_ifs
            else make(7.1, model=it.name, title=it.title, what_ifs=self.what_ifs)
            for it in models
            for precision in options.precisions
            for threads in options.threads or (2,)
        )

    def stored(self, models: Sequence[Any], options: LanguageOptions, _: Any) -> tuple[LanguageAnswer, ...]:
        found = self.answers(models, options, answer if self.is_in_store else predicted)
        return tuple(replace(it, measured=ENGINE) for it in found) if self.is_in_store and self.end_to_end else found

    def measure(self, order: LanguageOrder, _: Any, take: Callable[[Event], None]) -> None:
        self.has_measured, self.end_to_end, self.probe = True, order.end_to_end, order.probe
        for message in self.messages:
            take(message)
        if self.raises is not None:
            raise self.raises
        self.is_in_store = True


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Asked:
    asked = Asked()
    monkeypatch.setattr(f"{ASKING}.measure", asked.measure)
    monkeypatch.setattr(f"{ASKING}.stored_answers", asked.stored)
    monkeypatch.setattr(f"{ASKING}.library_answers", lambda *_: library())
    monkeypatch.setattr("dlbricks_tui.api.language_answers.left_out", lambda *_, **__: ())
    monkeypatch.setattr(numbers, "now", lambda: datetime.fromisoformat(WHEN).timestamp() + 3 * 3600)
    monkeypatch.setenv("COLUMNS", "80")
    return asked


def test_the_document_has_the_keys_of_the_contract(asked: Asked, dlbricks: Command) -> None:
    for words in ([MODEL], [MODEL, "--predict"], [MODEL, "--end-to-end"], ["--list"]):
        found = document(dlbricks("llm", *words, "--json"))
        schema_kept(found, "llm")
        assert found[0].keys() == {it.name for it in fields(LanguageAnswer)} >= KEYS
        assert found[0]["intervals"].keys() == {it.name for it in fields(LanguageIntervals)}
        timed = words[-1] == "--end-to-end"
        assert (found[0]["measured"] or {}).keys() == (
            {"engine", "prefill_ms", "decode_tokens_per_second", "when"} if timed else set()
        )
    assert not asked.options.threads


def test_what_the_store_lacks_is_measured_first_and_narrated(asked: Asked, dlbricks: Command) -> None:
    status, out, told = dlbricks("llm", MODEL, "--predict")
    assert (status, told, asked.has_measured) == (0, "", False) and "~7.1 tokens per second" in out
    status, out, told = dlbricks("llm", MODEL)
    assert status == 0
    assert out.startswith("Llama 3.2 1B\n7.1 tokens per second, the first after 3.9 s; 5.1 GB of 23 GB\n")
    assert told.splitlines() == ["waiting for another run", f"{MODEL}: measuring", f"{MODEL}: measured in 42 s"]
    assert dlbricks("llm", MODEL, "--quiet")[2] == ""


def test_options_reach_the_question(asked: Asked, dlbricks: Command) -> None:
    words = "--prompt 64 --generate 16 --precision int8,f32 --threads 1,2 --runtime onnxruntime --end-to-end"
    status, out, _ = dlbricks("llm", MODEL, *words.split(), "--cache", "f32")
    options = asked.options
    assert (status, asked.end_to_end, asked.probe) == (0, True, False)
    assert dlbricks("llm", MODEL, "--probe")[0] == 0
    assert (asked.end_to_end, asked.probe) == (False, True)
    assert dlbricks("llm", MODEL, "--probe", "--predict")[0] == dlbricks("llm", "--list", "--probe")[0] == 2
    assert [it.value for it in options.caches] == ["f32"]
    assert (options.prompt, options.generate, options.threads) == (64, 16, (1, 2))
    assert [it.value for it in options.precisions] == ["int8", "f32"]
    assert options.runtimes == ("onnxruntime",)
    assert "AGAINST BEST" in out, "several executions are compared"
    dlbricks("--set", "run.threads=1", "llm", MODEL)
    assert asked.options.threads == (1,)


def test_all_executions_are_compared_after_an_estimate_of_the_time(
    asked: Asked, dlbricks: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dlbricks_tui.api.language_answers.runtimes_here", lambda _: ("onnxruntime", "openvino"))
    # This processor does not compute in bf16.
    monkeypatch.setattr(
        "dlbricks_tui.api.language_answers.instruction_sets", lambda _: (InstructionSet.AVX2, InstructionSet.ALL)
    )
    # A probe takes seconds, also of a large model.
    told = dlbricks("llm", "smollm2-135m", "--compare", "--probe")[2]
    assert told.startswith("14 executions: 14 to measure\n")
    asked.is_in_store = False
    status, out, told = dlbricks("llm", MODEL, "--compare", "--for", "decode")
    options = asked.options
    assert status == 0 and "AGAINST BEST" in out
    assert told.startswith("14 executions: 14 to measure, about ")
    assert options.runtimes == ("onnxruntime", "openvino") and len(options.threads) == 2
    assert options.precisions == tuple(it for it in WeightPrecision if it is not WeightPrecision.BF16)
    assert options.best_for is LanguagePhase.DECODE
    dlbricks("llm", MODEL, "--compare", "--precision", "int8", "--threads", "3", "--runtime", "openvino", "--predict")
    options = asked.options
    assert ([it.value for it in options.precisions], options.threads) == (["int8"], (3,))
    assert options.runtimes == ("openvino",)


def test_what_ifs_follow_the_answer_and_some_are_proved(asked: Asked, dlbricks: Command) -> None:
    asked.what_ifs = what_ifs()
    status, out, _ = dlbricks("llm", MODEL, "--what-if")
    assert status == 0 and asked.options.what_ifs and not asked.options.prove
    assert "What could be faster" in out and "(--prove head-last)" in out
    dlbricks("llm", MODEL, "--prove", "head-last,threads-1", "--quiet")
    assert asked.options.what_ifs and asked.options.prove == ("head-last", "threads-1")
    (found,) = json.loads(dlbricks("llm", MODEL, "--what-if", "--predict", "--json")[1])
    schema_kept([found], "llm")
    assert [it["id"] for it in found["what_ifs"]] == ["weights-int4", "head-last", "threads-1-2"]
    assert found["what_ifs"][0]["measured"][0]["verdict"] == "faster"


def test_several_models_are_answered_one_after_another(asked: Asked, dlbricks: Command) -> None:
    status, out, told = dlbricks("llm", MODEL, OTHER, MODEL, "--quiet")
    assert (status, told) == (0, "")
    titles = ["Llama 3.2 1B", "SmolLM2 135M"]
    assert [line for line in out.splitlines() if line in titles] == titles
    status, out, told = dlbricks("llm", MODEL, "nonsense", "--json", "--quiet")
    assert (status, [it["model"] for it in json.loads(out)], told.count("\n")) == (1, [MODEL], 1)
    assert told.startswith("left out: ") and "nonsense" in told


def test_the_library_is_listed_the_fastest_first(asked: Asked, dlbricks: Command) -> None:
    status, out, told = dlbricks("llm", "--list")
    assert (status, told) == (0, "")
    assert out.startswith("4 of 7 models fit into the 23 GB of this host\n")
    assert max(map(len, out.splitlines())) <= 80
    found = json.loads(dlbricks("llm", "--list", "--at-least", 10, "--json")[1])
    assert [it["model"] for it in found] == ["smollm2-135m", "llama-3.2-1b", "qwen3-30b-a3b"]
    status, out, _ = dlbricks("llm", "--list", "--at-least", 100_000)
    assert status == 0 and out.startswith("0 of 7 models fit")


def test_what_no_answer_has_is_told_with_its_number_and_reason(dlbricks: Command, tmp_path: Path) -> None:
    models = [open_language_model(it) for it in ("llama-2-7b", "llama-2-13b", MODEL)]
    options = LanguageOptions(prompt=4096, precisions=(WeightPrecision.BF16, WeightPrecision.INT4))
    of_models, of_precisions = left_out(models, options, DataFolder(tmp_path))
    assert of_models.startswith("2 models left out (llama-2-7b, llama-2-13b): llama-2-7b holds 4,096 tokens, and")
    assert of_precisions.startswith("1 precision left out (bf16): ONNX Runtime stores weights as ")
    assert not [*left_out(models[2:], LanguageOptions(), DataFolder(tmp_path))]
    assert "models left out (llama-2-7b, " in dlbricks("llm", "--list", "--prompt", 8192)[2]
    # Where there is no answer, the error tells why, once.
    impossible = ("--precision", "q4_0", "--runtime", "onnxruntime", "--predict")
    assert "and not as q4_0" in one_line(dlbricks("llm", MODEL, *impossible))


def test_bad_input_gets_one_line(asked: Asked, dlbricks: Command) -> None:
    refused: dict[tuple[object, ...], str] = {
        (): "no model is named: give a MODEL, or --list",
        ("--list", MODEL): "MODEL and --list do not go together",
        ("--list", "--end-to-end"): "--list measures nothing",
        (MODEL, "--at-least", 5): "give --list with it",
        (MODEL, "--end-to-end", "--predict"): "not allowed with argument --end-to-end",
        ("nonsense", "gibberish"): "nonsense",
        (MODEL, "--for", "decode"): "--for decides between executions",
        (MODEL, "--what-if", "--detach"): "--detach shows nothing",
        (MODEL, "--compare", "--what-if"): "not allowed with argument --compare",
        (MODEL, "--what-if", "--threads", "1,2"): "what-ifs change one execution",
        (MODEL, "--prove", "head-last", "--compare"): "--prove measures changes of one execution",
        (MODEL, "--prove", "head-last", "--predict"): "--predict measures nothing, and --prove measures",
        ("--list", "--compare"): "--list shows all models",
        (OTHER, "--prompt", 8192): f"{OTHER} holds 8,192 tokens",
    }
    for words, complaint in refused.items():
        assert complaint in one_line(dlbricks("llm", *words)), words
    assert not asked.has_measured


def test_a_process_that_fails_is_status_1_and_the_answer_predicted(asked: Asked, dlbricks: Command) -> None:
    asked.messages = []
    asked.raises = JobError("the process ended with status 1")
    status, out, told = dlbricks("llm", MODEL, "--quiet")
    assert (status, told) == (1, "the process ended with status 1\n")
    assert "~7.1 tokens per second" in out


def test_rounds_are_told_once_in_some_seconds(capsys: pytest.CaptureFixture[str]) -> None:
    now = [0.0]
    narration = JobNarration(words_of("language model", None), None, lambda: now[0])
    for seconds in range(22):
        now[0] = float(seconds)
        narration.take(ROUND)
    assert capsys.readouterr().err.splitlines() == [ROUND.line] * 2
