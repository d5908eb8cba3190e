"""Whole models are timed beside their carriers, and found again in the store."""

import re
from contextlib import nullcontext
from dataclasses import replace

import pytest

from dlbricks_tui.api import language_models as asking
from dlbricks_tui.api.language_answers import LanguageOptions
from dlbricks_tui.host.fingerprint import fingerprint
from dlbricks_tui.language.end_to_end import (
    WholeModelRuns,
    engine_results,
    open_whole_model,
)
from dlbricks_tui.language.orders import LanguageFailed, LanguageMeasured, LanguageMessage, LanguageQuestion
from dlbricks_tui.measure.noise import HostTrack
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.records import EndToEnd, new_uuid
from dlbricks_tui.wording.jobs import language_line
from tests.language.bench import TINY, Bench, FakeEngine, question


def stored(bench: Bench, asked: LanguageQuestion, engine: FakeEngine) -> WholeModelRuns:
    """Return a whole model that was timed as often as it wants and stored."""
    whole = WholeModelRuns(asked, engine)
    while whole.wants_more:
        whole.sample(0)
    track = HostTrack()
    track.read(1.0)
    with ResultsDatabase(bench.data.store) as store:
        store.add(*whole.records(track, fingerprint(), new_uuid()))
    return whole


def test_each_step_but_the_first_behind_the_prompt_is_a_sample(bench: Bench) -> None:
    asked, engine = question(bench), FakeEngine()
    stored(bench, asked, engine)
    with ResultsDatabase(bench.data.store) as store:
        found = engine_results(store, fingerprint().id, asked)
    assert found is not None
    assert (found.engine, found.prefill_ms) == ("onnxruntime-genai 1.2", 100.0)
    assert found.decode_tokens_per_second == 100.0, "the first step took 20 ms"
    assert engine.asked[1] == (24, 33)


def test_a_step_behind_the_prompt_is_timed_also_where_one_token_is_asked_for(bench: Bench) -> None:
    asked, engine = question(bench, generate=1), FakeEngine()
    stored(bench, asked, engine)
    with ResultsDatabase(bench.data.store) as store:
        found = engine_results(store, fingerprint().id, asked)
    assert found is not None and (found.prefill_ms, found.decode_tokens_per_second) == (100.0, 50.0)


def test_other_questions_have_other_results(bench: Bench) -> None:
    stored(bench, question(bench), FakeEngine())
    others = [
        question(bench, prompt=25),
        question(bench, generate=100),
        question(
            bench, model=replace(TINY, architecture=replace(TINY.architecture, blocks=4, windowed=(True, False) * 2))
        ),
        question(bench, runtime=bench.runtime.with_threads(2)),
    ]
    with ResultsDatabase(bench.data.store) as store:
        assert [engine_results(store, fingerprint().id, it) for it in others] == [None] * 4
        assert engine_results(store, "elsewhere", question(bench)) is None


def test_the_runs_are_spread_over_the_groups_of_carriers(bench: Bench) -> None:
    whole = WholeModelRuns(question(bench), FakeEngine())
    counts = []
    for part in (0.5, 1.0):
        whole.part = part
        while whole.wants_more:
            whole.sample(0)
        counts.append(len(whole._runs))
    assert counts == [6, 12]


def test_an_engine_that_ends_early_leaves_no_result(bench: Bench) -> None:
    whole = stored(bench, question(bench), FakeEngine(lives=3))
    assert str(whole.failure) == "the engine has ended"
    with ResultsDatabase(bench.data.store) as store:
        assert not store.records(EndToEnd)


def test_folders_of_killed_processes_are_removed(bench: Bench) -> None:
    left = bench.data.cache / "whole-model-left"
    left.mkdir(parents=True)

    def stop() -> None:
        raise KeyboardInterrupt

    with (
        pytest.raises(KeyboardInterrupt),
        open_whole_model(question(bench), bench.data, nullcontext, stop, lambda _: None, 1 << 34),
    ):
        pass
    assert not list(bench.data.cache.glob("whole-model-*"))


@pytest.mark.onnxruntime_genai
def test_a_whole_model_is_timed_in_the_rounds_of_its_carriers_once(bench: Bench) -> None:
    assert bench.measure(bench.order(end_to_end=True)), bench.told
    told = language_line(bench.told[1])
    assert re.fullmatch(r"tiny: building the whole model, \d+ MB, for onnxruntime-genai", told)
    assert not any(isinstance(it, LanguageFailed) for it in bench.told)
    measured = bench.measured()
    options = LanguageOptions(prompt=24, generate=9, threads=(1,))
    (answer,) = asking.stored_answers([TINY], options, bench.data)
    assert answer.measured is not None
    assert answer.measured.engine.startswith("onnxruntime-genai 0.")
    assert answer.measured.prefill_ms > 0
    assert not list(bench.data.cache.glob("whole-model-*"))

    assert bench.measure(bench.order(end_to_end=True)), bench.told
    assert [*map(type, bench.told)] == [LanguageMessage, LanguageMeasured]
    assert bench.measured() == measured
