"""`dlbricks scenario --kind tokens`, by code that pretends to measure and to predict."""

from collections.abc import Callable
from typing import Any

import pytest

from dlbricks_tui.api.loads import TokenLoadAnswer, TokenLoadOptions
from dlbricks_tui.jobs.events import Event
from dlbricks_tui.language.architecture import WeightPrecision
from dlbricks_tui.language.orders import LanguageFailed, LanguageMeasured
from tests.api.token_load_answers import token_load_answer
from tests.cli.people import Command, document, one_line, schema_kept

ASKING = "dlbricks_tui.api.loads"
USERS = ("scenario", "smollm2-135m", "--kind", "tokens")


class AskedLoad:
    """Pretends to answer, and keeps what it was asked."""

    def __init__(self) -> None:
        self.options = TokenLoadOptions()
        self.message: Event = LanguageMeasured("smollm2-135m: measured in 42 s")
        self.has_measured = False

    def stored(self, _: Any, options: TokenLoadOptions, __: Any) -> TokenLoadAnswer:
        self.options = options
        bounds = {"first_token_ms": options.first_token_ms, "per_token_ms": options.per_token_ms}
        return token_load_answer(options.users, is_driven=self.has_measured, **bounds)

    def measure(
        self, model: Any, options: TokenLoadOptions, data: Any, take: Callable[[Event], None]
    ) -> TokenLoadAnswer:
        self.has_measured = True
        take(self.message)
        return self.stored(model, options, data)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> AskedLoad:
    asked = AskedLoad()
    monkeypatch.setattr(f"{ASKING}.token_load", asked.stored)
    monkeypatch.setattr(f"{ASKING}.measure_token_load", asked.measure)
    monkeypatch.setenv("COLUMNS", "80")
    return asked


def test_users_are_measured_and_driven_unless_a_prediction_is_enough(dlbricks: Command, asked: AskedLoad) -> None:
    status, out, told = dlbricks(*USERS, "--first-token-ms", "4000")
    assert (status, asked.has_measured) == (0, True)
    assert "by static batches" in out and "driven: onnxruntime-genai" in out
    assert "measured in 42 s" in told
    asked.has_measured = False
    status, out, told = dlbricks(*USERS, "--first-token-ms", "4000", "--predict")
    assert (status, asked.has_measured, told) == (0, False, "")
    assert "driven:" not in out


def test_every_option_counts(dlbricks: Command, asked: AskedLoad) -> None:
    words = "--users 1,4 --prompt 64 --generate 16 --first-token-ms 1500 --per-token-ms 50 --think-s 5 --batch 4"
    more = "--percentile 95 --precision int8 --threads 2 --runtime onnxruntime"
    dlbricks(*USERS, *words.split(), *more.split())
    assert asked.options == TokenLoadOptions(
        prompt=64,
        generate=16,
        precisions=(WeightPrecision.INT8,),
        threads=(2,),
        runtimes=("onnxruntime",),
        first_token_ms=1500.0,
        per_token_ms=50.0,
        percentile=95.0,
        think_s=5.0,
        batch=4,
        users=(1, 4),
    )


def test_json_keeps_its_schema(dlbricks: Command, asked: AskedLoad) -> None:
    found = document(dlbricks(*USERS, "--users", "2", "--first-token-ms", "4000", "--json"))
    schema_kept(found, "scenario")
    assert [it["serving"] for it in found["ways"]] == ["single", "static", "continuous"]
    load = found["ways"][1]["loads"][0]
    assert load["predicted"]["users"] == load["driven"]["load"]["users"] == 2


@pytest.mark.parametrize(
    ("words", "status"),
    [("--users 4 --first-token-ms 4000", 0), ("--users 40 --first-token-ms 4000", 1), ("--first-token-ms 9", 1)],
)
def test_the_status_says_whether_the_users_are_served(
    dlbricks: Command, asked: AskedLoad, words: str, status: int
) -> None:
    assert dlbricks(*USERS, *words.split(), "--predict")[0] == status


def test_an_engine_that_failed_is_told_and_the_prediction_shown(dlbricks: Command, asked: AskedLoad) -> None:
    asked.message = LanguageFailed("smollm2-135m: not measured: no room")
    status, out, told = dlbricks(*USERS, "--first-token-ms", "4000", "--quiet")
    assert status == 1 and "no room" in told and "static" in out


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("smollm2-135m --kind tokens --rate 3", "--rate is not for --kind tokens: leave it out"),
        ("smollm2-135m --kind tokens --bound-ms 3", "--bound-ms is not for --kind tokens: leave it out"),
        (
            "smollm2-135m --kind tokens --precision bf16",
            "ONNX Runtime stores weights as int4, int8, f32, and not as bf16",
        ),
        ("smollm2-135m --kind tokens --users 0", "give a whole number from 1 to 256"),
        ("squeezenet1.1 --kind single --users 3", "--users is for --kind tokens: leave it out"),
        ("squeezenet1.1 --kind single --precision int4", "--precision int4 is for --kind tokens"),
        ("no-such-model --kind tokens", "no language model 'no-such-model'"),
    ],
)
def test_what_does_not_go_together_is_refused_in_a_line(dlbricks: Command, words: str, told: str) -> None:
    assert told in one_line(dlbricks("scenario", *words.split()))


def test_contexts_that_are_too_long_and_other_runtimes_are_refused(dlbricks: Command) -> None:
    refused = dlbricks(*USERS, "--predict", "--prompt", "9000")
    assert "smollm2-135m holds 8,192 tokens" in one_line(refused)
    refused = dlbricks(*USERS, "--predict", "--runtime", "openvino")
    assert "users are served by ONNX Runtime only" in one_line(refused)
