"""Language models are measured by their carriers with the real ONNX Runtime, and answered from the store."""

import os
import re
import signal
from dataclasses import replace
from typing import Any

import pytest

from dlbricks_tui.api import language_measuring as measuring
from dlbricks_tui.api import language_models as asking
from dlbricks_tui.api.language_answers import LanguageOptions
from dlbricks_tui.api.language_measuring import carrier_jobs
from dlbricks_tui.errors import UserError
from dlbricks_tui.host.fingerprint import DataCache, fingerprint
from dlbricks_tui.host.peaks import PeaksError
from dlbricks_tui.jobs.events import Event, JobEnded
from dlbricks_tui.language import predicting
from dlbricks_tui.language.architecture import LanguageError, WeightPrecision
from dlbricks_tui.language.composing import BrickTime, known_bricks
from dlbricks_tui.language.decoder import Extent, Step, steps_for
from dlbricks_tui.language.opening import open_language_model
from dlbricks_tui.language.orders import (
    LanguageFailed,
    LanguageMeasured,
    LanguageMessage,
    LanguageQuestion,
    LanguageRound,
    stored_precision,
)
from dlbricks_tui.language.predicting import BrickPredictor, HostRates, measured_steps, work_of
from dlbricks_tui.measure.carriers import CarrierJob
from dlbricks_tui.measure.stopping import Adaptive
from dlbricks_tui.measure.supervised_worker import SupervisedWorker
from dlbricks_tui.runtime.errors import RegistryError
from dlbricks_tui.runtime.protocol import Profile, Request
from dlbricks_tui.runtime.variant import CachePrecision
from dlbricks_tui.store.change import Verdict
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.records import Peaks
from tests.language.bench import TINY, Bench


def test_a_model_is_measured_once_and_answered_from_the_store(bench: Bench) -> None:
    assert bench.measure(bench.order()), bench.told
    begins, *rounds, done = bench.told
    assert begins == LanguageMessage("tiny, ONNX Runtime, int4, 1 thread: measuring")
    assert isinstance(done, LanguageMeasured) and done.line.startswith(
        "tiny, ONNX Runtime, int4, 1 thread: measured in "
    )
    assert {*map(type, rounds)} == {LanguageRound} and isinstance(rounds[-1], LanguageRound)
    assert re.fullmatch(r"tiny: round \d+, prefill [\d.]+ ms, [\d,.]+ tokens per second(, .*)?", rounds[-1].line)

    options = LanguageOptions(prompt=24, generate=9, threads=(1,))
    (answer,) = asking.stored_answers([TINY], options, bench.data)
    assert (answer.coverage, answer.is_predicted, answer.is_measured) == (1.0, False, True)
    assert answer.total_ms == pytest.approx(answer.prefill_ms + 8 * 1000 / answer.decode_tokens_per_second)
    low, high = answer.intervals.decode_tokens_per_second
    assert 0 < low < answer.decode_tokens_per_second < high
    own = [it.context for it in answer.contexts if not it.predicted]
    assert own == [24, 31]
    assert [it.prompt_tokens for it in answer.prompts if not it.predicted] == [24]
    assert {it.part for it in answer.parts} >= {"products", "attention", "norms", "head", "table"}

    stored = bench.measured()
    assert bench.measure(bench.order())
    assert [*map(type, bench.told)] == [LanguageMessage, LanguageMeasured]
    assert bench.measured() == stored

    # Another context needs other attention bricks only.
    assert bench.measure(bench.order(bench.question(generate=5)))
    with ResultsDatabase(bench.data.store) as store:
        known = known_bricks(store, fingerprint().id, bench.runtime.identity)
    keys = {key for step in steps_for(24, 5) for key in bench.question().decoder(step).keys}
    assert keys <= known.keys()


def test_a_what_if_is_predicted_and_proved_by_the_bricks_of_the_change(bench: Bench) -> None:
    options = LanguageOptions(prompt=24, generate=9, threads=(1,), runtimes=("onnxruntime",), prove=("head-last",))
    order = asking.language_order([TINY], options, bench.data)
    assert [it.scores_last_only for it in order.questions] == [False, True]
    assert bench.measure(order), bench.told
    (answer,) = asking.stored_answers([TINY], replace(options, what_ifs=True), bench.data)
    found = {it.id: it for it in answer.what_ifs}
    assert {name for name, it in found.items() if it.measured} == {"head-last"}
    prefill, decode = found["head-last"].measured[1:]
    assert prefill.ratio < 1.0 and decode.ratio == pytest.approx(1.0, abs=0.2)
    with pytest.raises(UserError, match="no what-if 'magic' of tiny; there are "):
        asking.language_order([TINY], replace(options, prove=("magic",)), bench.data)


def test_a_probe_measures_a_block_and_predicts_the_head(bench: Bench) -> None:
    # The widest part of most models is their head.
    model = replace(TINY, architecture=replace(TINY.architecture, vocabulary=4096))
    assert bench.measure(bench.order(bench.question(model), probe=True)), bench.told
    options = LanguageOptions(prompt=24, generate=9, threads=(1,))
    (probed,) = asking.stored_answers([model], options, bench.data)
    assert 0.1 < probed.coverage < 1.0 and not probed.is_measured
    with ResultsDatabase(bench.data.store) as store:
        known = known_bricks(store, fingerprint().id, bench.runtime.identity)
        assert [it.threads for it in store.peaks()] == [1], "other systems compare their peaks"
    prefill, decode = (bench.question(model).decoder(it, (0, 2), extent=Extent.BLOCKS) for it in probed_steps(bench))
    assert {*prefill.keys, *decode.keys} == {*known}
    # A measurement takes the rest.
    assert bench.measure(bench.order(bench.question(model)))
    (answer,) = asking.stored_answers([model], options, bench.data)
    assert answer.coverage == 1.0 and answer.is_measured
    low, high = probed.intervals.decode_tokens_per_second
    assert low < answer.decode_tokens_per_second < high


def probed_steps(bench: Bench) -> tuple[Step, ...]:
    predictor = BrickPredictor(HostRates(1e7, 1e8))
    return measured_steps(bench.question(), predictor, is_probe=True)


def test_models_whose_context_is_too_short_are_left_out(bench: Bench) -> None:
    options = LanguageOptions(prompt=4000, generate=128, threads=(1,))
    found = asking.stored_answers(
        [open_language_model("tinyllama-1.1b"), open_language_model("qwen2.5-0.5b")], options, bench.data
    )
    assert [it.model for it in found] == ["qwen2.5-0.5b"]
    with pytest.raises(LanguageError, match=r"tinyllama-1.1b holds 2,048 tokens, .*: ask for fewer"):
        asking.stored_answers([open_language_model("tinyllama-1.1b")], options, bench.data)


def test_a_probe_of_a_large_model_has_one_block_and_a_short_prompt(bench: Bench) -> None:
    asked = bench.question(open_language_model("llama-3.1-70b"), 512, 128)
    steps = measured_steps(asked, BrickPredictor(HostRates(1e7, 1e8)), is_probe=True)
    assert [32 <= it.tokens < 128 for it in steps] == [True, False]
    jobs = carrier_jobs(asked, steps, {}, is_probe=True)
    assert [len(it.program.network.in_place) for it in jobs] == [2, 2]
    whole = carrier_jobs(asked, asked.steps, {})
    sizes = [sum(it.carrier.graph.weight_bytes for it in found) for found in (jobs, whole)]
    assert 2 * sizes[0] < sizes[1]


def test_an_empty_store_is_answered_by_predictions(bench: Bench) -> None:
    options = LanguageOptions(prompt=24, generate=9, threads=(1, 2), precisions=tuple(WeightPrecision))
    found = asking.stored_answers([TINY], options, bench.data)
    everything = [(precision, threads) for precision in ("int4", "int8", "f32") for threads in (1, 2)]
    assert sorted((it.precision, it.threads) for it in found) == sorted(everything)
    assert [it.total_ms for it in found] == sorted(it.total_ms for it in found), "the best is first"
    assert {change.verdict for it in found[1:] for change in it.changes} == {Verdict.UNKNOWN}
    assert {it.coverage for it in found} == {0.0}
    assert {it.measured_when for it in found} == {None}


def test_a_cache_is_that_of_the_engine_and_one_that_it_lacks_is_refused(bench: Bench) -> None:
    def asked(*caches: CachePrecision) -> list[tuple[str | None, bool]]:
        options = LanguageOptions(prompt=24, generate=9, threads=(1,), caches=caches)
        found = asking.stored_answers([TINY], options, bench.data)
        return [(it.cache, "DLBRICKS_CACHE" in it.runtime) for it in found]

    assert asked() == asked(CachePrecision.F32) == [("f32", False)]
    with pytest.raises(RegistryError, match="has no choice of precisions of the cache: leave int8 out"):
        asked(CachePrecision.F32, CachePrecision.INT8)


def test_openvino_computes_in_bf16_and_refuses_mixtures_of_experts(bench: Bench) -> None:
    openvino = replace(bench.runtime, framework="openvino")
    assert stored_precision(openvino, WeightPrecision.BF16) is WeightPrecision.BF16
    with pytest.raises(LanguageError, match="stores weights as int4, int8, f32, and not as bf16"):
        stored_precision(bench.runtime, WeightPrecision.BF16)
    for precision, cache, other in (("bf16", "f32", "bf16"), ("int4", "bf16", "f32")):
        with pytest.raises(LanguageError, match=f"{cache}: choose --cache {other}, f16 or int8"):
            stored_precision(openvino.with_cache(CachePrecision(cache)), WeightPrecision(precision))
    mixture = open_language_model("qwen3-30b-a3b")
    with pytest.raises(LanguageError, match="OpenVINO lacks the operator for mixtures of experts"):
        _ = replace(bench.question(), model=mixture, runtime=openvino).sizes


def test_a_bandwidth_that_cannot_be_measured_bounds_nothing(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(system: str, threads: int) -> Peaks:
        raise PeaksError("no")

    options = LanguageOptions(prompt=24, generate=9, threads=(1,))
    (known,) = asking.stored_answers([TINY], options, bench.data)
    assert known.bound_tokens_per_second
    monkeypatch.setattr(predicting, "quick_peaks", fail)
    predicting._quick_rates.cache_clear()
    (unknown,) = asking.stored_answers([TINY], options, bench.data)
    predicting._quick_rates.cache_clear()
    assert unknown.bound_tokens_per_second is None


def test_a_model_that_cannot_run_or_does_not_fit_is_told_and_its_bricks_and_the_others_are_measured(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dlbricks_tui.language.end_to_end.HostFiles.fields", lambda *_: {"MemAvailable": "50000 kB"})

    def refused(asked: LanguageQuestion, *given: Any, is_probe: bool) -> list[CarrierJob]:
        found = carrier_jobs(asked, *given, is_probe=is_probe)
        if asked.model.name != "bad":
            return found
        broken = replace(found[0].program.network, symbol="bm90IGEgbW9kZWw=")
        return [replace(it, program=replace(it.program, network=broken)) for it in found]

    monkeypatch.setattr(measuring, "carrier_jobs", refused)
    asked = bench.order(bench.question(replace(TINY, name="bad")), bench.question(), end_to_end=True)
    assert bench.measure(asked)
    begins, *_ = bench.told
    first, failure, second = (it for it in bench.told if isinstance(it, LanguageFailed))
    assert "GB of memory" in first.line and "GB of memory" in second.line, "a whole model is not written"
    assert not list(bench.data.cache.glob("whole-model-*"))
    assert begins == LanguageMessage("bad, ONNX Runtime, int4, 1 thread: measuring (1 of 2)")
    assert failure.line.startswith("bad, ONNX Runtime, int4, 1 thread: not measured: ")
    assert "protobuf" in failure.line
    assert isinstance(bench.told[-1], LanguageMeasured)


def test_no_worker_is_started_for_parts_that_the_free_memory_cannot_hold(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dlbricks_tui.language.end_to_end.HostFiles.fields", lambda *_: {"MemAvailable": "100 kB"})
    monkeypatch.setattr(measuring, "open_worker", lambda *_: pytest.fail("a worker was started"))
    bench.measure(bench.order(bench.question()))
    (failure,) = (it for it in bench.told if isinstance(it, LanguageFailed))
    assert "the smallest part needs about 0.0 GB of memory" in failure.line


def test_a_model_whose_workers_are_lost_when_it_runs_tells_how(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    ask = SupervisedWorker._ask

    def killed(worker: SupervisedWorker, request: Request[Any], seconds: float) -> Any:
        if isinstance(request, Profile):
            worker.interrupt()
        return ask(worker, request, seconds)

    monkeypatch.setattr(SupervisedWorker, "_ask", killed)
    assert bench.measure(bench.order())
    (failure,) = (it for it in bench.told if isinstance(it, LanguageFailed))
    assert "not measured: the worker of default-onnx was killed by SIGKILL" in failure.line


def test_a_signal_stops_it_and_results_stay(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measuring, "Adaptive", lambda **_: Adaptive(target=1e-6, least=3, most=10_000))

    def take(event: Event) -> None:
        bench.told.append(event)
        if isinstance(event, LanguageRound):
            os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr(bench, "take", take)
    assert not bench.measure(bench.order())
    assert isinstance(bench.told[-1], JobEnded) and bench.told[-1].message == "it was cancelled"


def test_a_long_prompt_of_a_large_model_stands_for_fewer_tokens(bench: Bench) -> None:
    predictor = BrickPredictor(HostRates(1e7, 1e8))
    steps = steps_for(512, 128)
    small = measured_steps(bench.question(open_language_model("smollm2-135m"), 512, 128), predictor)
    assert small == (Step.prefill(512), Step.decode(512), Step.decode(638)) == steps
    large, *others = measured_steps(bench.question(open_language_model("llama-3.1-70b"), 512, 128), predictor)
    assert 32 <= large.tokens < 256
    assert tuple(others) == steps[2:]


def test_what_was_measured_is_not_replaced_by_a_shorter_prompt_on_a_host_that_is_slower_than_thought(
    bench: Bench,
) -> None:
    asked, rates = bench.question(open_language_model("smollm2-135m"), 512, 128), HostRates(1e5, 1e6)
    assert measured_steps(asked, BrickPredictor(rates))[0].tokens < 512
    known = dict.fromkeys(asked.decoder(asked.steps[0]).keys, BrickTime(1.0, 0.1, 0.1, "2026-11-30T08:00:00+00:00"))
    assert measured_steps(asked, BrickPredictor(rates, known=known)) == asked.steps


def carriers(bench: Bench, name: str, *steps: Step) -> list[CarrierJob]:
    asked = bench.question(open_language_model(name), 512, 128)
    return carrier_jobs(asked, steps or asked.steps, {})


def test_carriers_of_a_large_model_hold_a_block_or_the_head(bench: Bench) -> None:
    small = carriers(bench, "llama-3.2-1b")
    assert len(small) == 3
    jobs = carriers(bench, "llama-3.1-70b")
    # The head is that of the first token behind the prompt.
    assert [len(it.program.network.in_place) for it in jobs] == [2, 0, 2, 0, 2]
    for job in jobs:
        assert job.carrier.graph.weight_bytes < 0.75 * (1 << 30)
        assert job.program.between_bytes in (0, 1 << 28)
        assert job.program.network.distinct


def test_a_cache_that_holds_more_is_emptied_between_two_runs(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measuring, "caches", lambda _: (DataCache(2, 1 << 20, 1), DataCache(3, 1 << 29, 64)))
    assert {it.program.between_bytes for it in carriers(bench, "llama-3.1-70b")} == {0, 5 << 27}


def test_most_of_a_small_model_is_its_carrier_and_blocks_behind_the_first_count(bench: Bench) -> None:
    (small,) = carriers(bench, "smollm2-135m", Step.decode(128))
    # Nearly all of its 30 blocks.
    assert len(small.program.network.in_place) >= 2 * 25
    assert small.program.between_bytes < 16 << 20
    (large,) = carriers(bench, "llama-3.2-1b", Step.decode(128))
    products = [place for place, job in large.bricks.items() if "MatMulNBits" in job.canonical]
    # Those of the second block, and the head: the first block runs right after other code.
    assert [large.carrier.graph.layers[it].op for it in products] == ["onnx.com.microsoft.MatMulNBits"] * 6
    assert min(products) > len(large.carrier.graph.layers) // 2


def test_older_versions_of_onnx_runtime_keep_whole_caches_of_windowed_blocks(bench: Bench) -> None:
    older, newer = (
        replace(bench.question(), runtime=replace(bench.runtime, version=it)) for it in ("1.23.2", "1.32.0")
    )
    found = older.decoder(Step.decode(100))
    caches = {found.graph.inputs[it].type.shape for it in found.in_place}
    assert caches == {(1, TINY.architecture.kv_heads, 101, 32)}
    windowed, *_ = [it for it in found.graph.layers if "GroupQueryAttention" in it.op]
    assert work_of(windowed).cache_bytes == 16 * 2 * TINY.architecture.kv_heads * 32 * 4
    assert newer.sizes is TINY.architecture
