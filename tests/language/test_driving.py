"""Users of a whole model: their answers are stored, found again, and made by the real engine."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from dlbricks_tui.api import language_measuring
from dlbricks_tui.api.language_models import stored_answers
from dlbricks_tui.api.loads import TokenLoadOptions, order_of_load, token_load
from dlbricks_tui.host.fingerprint import fingerprint
from dlbricks_tui.language.end_to_end import WholeModelEngine, driven_load
from dlbricks_tui.language.orders import (
    Drive,
    LanguageFailed,
    LanguageMeasured,
    LanguageMessage,
    LanguageOrder,
    LanguageRound,
)
from dlbricks_tui.scenarios.tokens import TokenQueue, TokenScenario, TokenServing
from dlbricks_tui.store.database import ResultsDatabase
from tests.language.bench import STEPS, TINY, Bench, FakeEngine, question
from tests.language.test_whole_model import folder, runtime_with, written

__all__ = ["folder"]

ASKED = TokenScenario(
    prompt=24, generate=9, percentile=90.0, first_token_ms=2000.0, per_token_ms=100.0, think_s=0.0, batch=2
)
QUEUE = TokenQueue(ASKED, STEPS)


def drive_of(serving: TokenServing, users: int, asked: TokenScenario = ASKED) -> Drive:
    return Drive(asked, serving, asked.pauses(users, STEPS.answer_ms(asked.generate), is_driven=True), 3.0)


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> FakeEngine:
    """The engine of drives, whose bricks are not measured."""
    engine = FakeEngine()

    @contextmanager
    def opened(*_: Any) -> Iterator[WholeModelEngine]:
        yield engine

    monkeypatch.setattr(language_measuring, "open_whole_model", opened)
    monkeypatch.setattr(language_measuring, "carrier_jobs", lambda *_, **__: [])
    return engine


def test_the_users_of_an_order_are_driven_and_found_again(bench: Bench, engine: FakeEngine) -> None:
    asked = question(bench, generate=9, batches=(1, 2))
    drives = (drive_of(TokenServing.SINGLE, 3), drive_of(TokenServing.STATIC, 4))
    assert bench.measure(LanguageOrder((asked,), drives=drives))
    # Each is loaded anew, and warmed up.
    assert engine.asked == ["load", 1, 1, "load", 2, 2]
    assert [*map(type, bench.told)] == [LanguageMessage, LanguageRound, LanguageRound, LanguageMeasured]
    assert getattr(bench.told[2], "line", "") == "tiny: driving 4 users, static batches, about 3 s"
    with ResultsDatabase(bench.data.store) as store:
        for it in drives:
            found = driven_load(store, fingerprint().id, asked, ASKED, it.serving, it.users)
            assert found is not None
            assert found.engine == "onnxruntime-genai 1.2"
            assert found.load == QUEUE.load(it.serving, it.users, it.pauses), "with the same pauses"
            # Another bound asks the same of the engine.
            strict = replace(ASKED, first_token_ms=1.0)
            again = driven_load(store, fingerprint().id, asked, strict, it.serving, it.users)
            assert again is not None and not again.load.within
        others: list[tuple[Any, TokenScenario, TokenServing, int]] = [
            (asked, ASKED, TokenServing.SINGLE, 2),
            (asked, ASKED, TokenServing.STATIC, 3),
            (asked, replace(ASKED, think_s=1.0), TokenServing.SINGLE, 3),
            (asked, replace(ASKED, batch=4), TokenServing.STATIC, 4),
            (replace(asked, prompt=25), ASKED, TokenServing.SINGLE, 3),
            (replace(asked, runtime=bench.runtime.with_threads(2)), ASKED, TokenServing.SINGLE, 3),
        ]
        assert [driven_load(store, fingerprint().id, *it) for it in others] == [None] * len(others)


def test_an_engine_that_ends_is_told_and_the_prediction_stays(bench: Bench, engine: FakeEngine) -> None:
    engine.lives = 0
    asked = question(bench, generate=9, batches=(1, 2))
    assert bench.measure(LanguageOrder((asked,), drives=(drive_of(TokenServing.SINGLE, 3),)))
    (failed,) = (it for it in bench.told if isinstance(it, LanguageFailed))
    assert failed.line == "tiny, ONNX Runtime, int4, 1 thread: not measured: the engine has ended"
    with ResultsDatabase(bench.data.store) as store:
        assert driven_load(store, fingerprint().id, asked, ASKED, TokenServing.SINGLE, 3) is None


@pytest.mark.onnxruntime_genai
def test_the_real_engine_serves_users_who_wait_for_their_answers(folder: Path) -> None:
    installed = replace(runtime_with(folder.parent), version=version("onnxruntime"))
    written(folder)
    with WholeModelEngine(installed, folder, folder.parent / "log") as started:
        for batch in (1, 2):
            answers = started.serve(40, 4, batch, ((0.0, 0.0), (0.0,), (0.0, 0.05)))
            assert sorted(it.user for it in answers) == [0, 0, 1, 2, 2]
            assert all(it.asked_ns <= it.first_ns < it.ended_ns for it in answers)
            # Both of the first batch get their first token at once.
            assert len({it.first_ns for it in answers[:2]}) == 3 - batch
            first, last = (it for it in answers if it.user == 2)
            assert last.asked_ns - first.ended_ns == pytest.approx(5e7, rel=0.01)


def test_the_steps_of_a_load_take_as_long_as_in_the_answer_about_the_model(bench: Bench) -> None:
    options = TokenLoadOptions(prompt=24, generate=9, threads=(1,))
    (answer,) = stored_answers([TINY], options, bench.data)
    load = token_load(TINY, options, bench.data)
    assert load.prefill_ms == answer.prefill_ms
    assert (load.ways[0].memory_bytes, load.host_memory_bytes) == (answer.memory_bytes, answer.host_memory_bytes)
    single, static, continuous = (it.memory_bytes for it in load.ways)
    assert load.ways[0].fits is answer.fits and single < continuous < static, "prompts are read at once"


@pytest.mark.onnxruntime_genai
def test_steps_of_batches_are_measured_and_users_of_the_whole_model_driven(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dlbricks_tui.scenarios.tokens._DRIVEN", 4)
    options = TokenLoadOptions(prompt=24, generate=9, threads=(1,), batch=2, users=(2,), first_token_ms=1.0)
    assert token_load(TINY, options, bench.data).coverage == 0.0
    assert bench.measure(order_of_load(TINY, options, bench.data)), bench.told
    assert not [it for it in bench.told if isinstance(it, LanguageFailed)]
    assert re.fullmatch(
        r"tiny: driving \d+ users?, (single|static batches), about .*", getattr(bench.told[-2], "line", "")
    )
    answer = token_load(TINY, options, bench.data)
    assert answer.coverage == 1.0
    assert [(it.answers, it.predicted) for it in answer.steps] == [(1, False), (2, False)]
    single, static, continuous = ([it for it in way.loads if it.predicted.users == 2] for way in answer.ways)
    for (it,) in (single, static):
        assert it.driven is not None and it.driven.load.answers > 0
        assert it.driven.load.first_token.p50_ms > 0 < it.driven.load.tokens_per_second
    assert continuous[0].driven is None
