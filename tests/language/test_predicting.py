"""Predicted latencies of bricks: by the speed of the host, and by bricks that were measured on it."""

import math
import random
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from dlbricks_tui.host.peaks import PeaksError
from dlbricks_tui.language import predicting
from dlbricks_tui.language.architecture import Architecture, WeightPrecision
from dlbricks_tui.language.composing import BrickTime, StepTime, step_time
from dlbricks_tui.language.decoder import Decoder, Step, decoder
from dlbricks_tui.language.predicting import BrickPredictor, BrickWork, HostRates, usual_ms, work_of
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.records import Peaks
from tests.language.stored import RATES, bricks_of, peaks_of
from tests.language.test_decoder import ONNX_RUNTIME, library

INT4 = WeightPrecision.INT4
SMALL, LARGE = library("qwen2.5-0.5b"), library("llama-3.2-1b")
STEPS = (Step.prefill(128), Step.decode(128), Step.decode(1024))
WHEN = "2026-11-28T20:46:00+00:00"
# Returns the true latency of a brick.
Truth = Callable[[BrickWork], float]


def layers(
    model: Architecture, *steps: Step, precision: WeightPrecision = INT4
) -> list[tuple[BrickWork, int, Decoder]]:
    graphs = [decoder(model, precision, step, ONNX_RUNTIME) for step in steps]
    return [(work_of(it), it.index, graph) for graph in graphs for it in graph.graph.layers]


def predicted(predictor: BrickPredictor, step: Step, model: Architecture = LARGE) -> StepTime:
    return step_time(decoder(model, INT4, step, ONNX_RUNTIME), predictor.time_of)


def with_measured(truth: Truth, model: Architecture = SMALL, rates: HostRates = RATES) -> BrickPredictor:
    measured = [(work, BrickTime(truth(work), 0.0, 0.0, WHEN)) for work, _, _ in layers(model, *STEPS)]
    return BrickPredictor(rates, measured)


def twice(work: BrickWork) -> float:
    return 2 * usual_ms(work, RATES)


@pytest.mark.parametrize("predictor", [BrickPredictor(RATES), with_measured(twice)])
def test_more_context_more_tokens_and_more_bytes_are_never_faster(predictor: BrickPredictor) -> None:
    contexts = [predicted(predictor, Step.decode(it)).ms for it in (16, 100, 512, 1024, 4096, 8192)]
    assert all(shorter < longer for shorter, longer in pairwise(contexts))
    prompts = [predicted(predictor, Step.prefill(it)).ms for it in (2, 16, 100, 512, 1024, 4096)]
    assert all(shorter < longer for shorter, longer in pairwise(prompts))
    sizes = [predicted(predictor, STEPS[1], replace(LARGE, inner=it)).ms for it in (1024, 2048, 8192)]
    assert all(smaller < larger for smaller, larger in pairwise(sizes))


@pytest.mark.parametrize("step", STEPS)
def test_a_host_of_half_the_speed_takes_twice_the_time(step: Step) -> None:
    slow = BrickPredictor(HostRates(RATES.bytes_per_ms / 2, RATES.operations_per_ms / 2))
    assert predicted(slow, step).ms == pytest.approx(2 * predicted(BrickPredictor(RATES), step).ms, rel=0.02)


@pytest.mark.parametrize("step", STEPS)
def test_measured_bricks_of_another_model_correct_predictions(step: Step) -> None:
    usual, corrected = predicted(BrickPredictor(RATES), step), predicted(with_measured(twice), step)
    assert corrected.ms == pytest.approx(2 * usual.ms)
    assert corrected.half_ms / corrected.ms < 0.4 < usual.half_ms / usual.ms
    assert corrected.coverage == 0.0


TINY = replace(SMALL, hidden=64, heads=2, kv_heads=1, head_size=32, rotary_size=32, inner=64, vocabulary=64)


def of_quick_calls(work: BrickWork) -> float:
    """Return the latency on a host that reads and computes as usual, and whose calls take a tenth."""
    busy = predicting._busy_share(work, RATES)
    return (busy + 0.1 * (1.0 - busy)) * usual_ms(work, RATES)


@pytest.mark.parametrize("step", STEPS)
def test_tiny_bricks_whose_calls_are_quick_say_little_about_large_ones(step: Step) -> None:
    usual, found = (predicted(it, step) for it in (BrickPredictor(RATES), with_measured(of_quick_calls, TINY)))
    assert 0.5 * usual.ms < found.ms < usual.ms < found.bounds_ms[1]


@pytest.mark.parametrize("model", [replace(SMALL, blocks=4), LARGE, library("llama-3.1-8b")], ids=lambda it: it.blocks)
def test_bricks_that_a_large_cache_held_predict_no_model_beyond_the_measured_bandwidth(model: Architecture) -> None:
    rates = HostRates(15e6, 16 * 60e6)

    def cached(work: BrickWork) -> float:
        return usual_ms(work, HostRates(10 * rates.bytes_per_ms, rates.operations_per_ms))

    found = predicted(with_measured(cached, rates=rates), STEPS[2], model)
    graph = decoder(model, INT4, STEPS[2], ONNX_RUNTIME)
    works = [(count, work_of(layer)) for layer, count in zip(graph.graph.layers, graph.counts, strict=True)]
    assert found.ms >= sum(count * it.bytes_read for count, it in works) / rates.bytes_per_ms
    # The cache may hold a small one, too.
    assert found.bounds_ms[0] < sum(count * cached(it) for count, it in works) < found.ms


def test_products_of_another_precision_tell_something() -> None:
    (work, index, graph) = layers(LARGE, Step.decode(128), precision=WeightPrecision.INT8)[-1]
    usual = BrickPredictor(RATES).time_of(graph.graph, index)
    found = with_measured(twice).time_of(graph.graph, index)
    assert found.ms == pytest.approx(2 * usual.ms)
    assert 0.35 < found.shared_half_ms / found.ms < usual.shared_half_ms / usual.ms
    assert work.bits == 8


def test_a_measured_brick_that_was_disturbed_hardly_counts() -> None:
    disturbed = [work for work, _, _ in layers(SMALL, Step.decode(128)) if work.op == "MatMulNBits"][1]
    found = with_measured(lambda work: twice(work) * (20 if work == disturbed else 1))
    assert predicted(found, Step.decode(512)).ms == pytest.approx(
        predicted(with_measured(twice), Step.decode(512)).ms, rel=0.05
    )


def made_up_host(seed: int) -> Truth:
    """Return latencies whose classes differ from usual ones by up to a factor of 2, and whose bricks vary by 5 %."""
    chance = random.Random(seed)
    common = chance.gauss(0, 0.2)
    of_class: dict[tuple[str, int, bool], float] = {}

    def truth(work: BrickWork) -> float:
        own = of_class.setdefault((work.op, work.bits, work.tokens == 1), common + chance.gauss(0, 0.2))
        return usual_ms(work, RATES) * math.exp(own + random.Random(f"{seed} {work}").gauss(0, 0.05))

    return truth


@pytest.mark.parametrize("is_measured", [False, True])
def test_intervals_hold_on_19_of_20_made_up_hosts(is_measured: bool) -> None:
    inside, hosts = 0, range(60)
    graphs = [decoder(LARGE, INT4, step, ONNX_RUNTIME) for step in STEPS]
    for host in hosts:
        truth = made_up_host(host)
        predictor = with_measured(truth) if is_measured else BrickPredictor(RATES)
        for graph in graphs:
            works = [work_of(it) for it in graph.graph.layers]
            true_ms = sum(count * truth(work) for work, count in zip(works, graph.counts, strict=True))
            low, high = step_time(graph, predictor.time_of).bounds_ms
            inside += low <= true_ms <= high
    assert inside >= 0.95 * len(hosts) * len(STEPS)


def stored(folder: Path, *peaks: Peaks) -> ResultsDatabase:
    """Return a store with each brick of a small model, which took twice the usual time."""
    store, decoders = ResultsDatabase(folder), (decoder(SMALL, INT4, it, ONNX_RUNTIME) for it in STEPS)
    store.add(*bricks_of(decoders, twice, system="here", runtime="ort"), *peaks)
    return store


def test_the_store_tells_peaks_and_bricks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def measure(system: str, threads: int) -> Peaks:
        raise AssertionError("stored peaks need no measurement")

    monkeypatch.setattr(predicting, "quick_peaks", measure)
    with stored(tmp_path, peaks_of("here", 1), peaks_of("here", 2)) as store:
        found = BrickPredictor.of_host(store, "here", "ort", 2)
        other = BrickPredictor.of_host(store, "here", "another runtime", 2)
    assert found.rates == other.rates == RATES and not found.rates.is_rough
    assert predicted(found, STEPS[1]).ms == pytest.approx(2 * predicted(other, STEPS[1]).ms)


def test_weights_of_bf16_are_half_as_many_bytes(tmp_path: Path) -> None:
    (work, index, graph) = layers(LARGE, Step.decode(128), precision=WeightPrecision.F32)[-1]
    with stored(tmp_path, peaks_of("here", 2)) as store:
        hosts = [BrickPredictor.of_host(store, "here", it, 2) for it in ("openvino", "openvino precision-bf16")]
    full, half = (it.time_of(graph.graph, index).ms for it in hosts)
    assert full - half == pytest.approx(work.weight_bytes / 2 / RATES.bytes_per_ms)


def test_peaks_are_measured_once_where_the_store_has_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def measure(system: str, threads: int) -> Peaks:
        calls.append(threads)
        return peaks_of(system, threads)

    monkeypatch.setattr(predicting, "quick_peaks", measure)
    predicting._quick_rates.cache_clear()
    with ResultsDatabase(tmp_path) as store:
        for _ in range(2):
            found = BrickPredictor.of_host(store, "here", "ort", 3).rates
            assert found == RATES and found.is_rough
    assert calls == [3]
    predicting._quick_rates.cache_clear()


def test_a_host_that_cannot_be_measured_gets_wide_intervals(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(system: str, threads: int) -> Peaks:
        raise PeaksError("no")

    monkeypatch.setattr(predicting, "quick_peaks", fail)
    predicting._quick_rates.cache_clear()
    with ResultsDatabase(tmp_path) as store:
        found = predicted(BrickPredictor.of_host(store, "here", "ort", 0), STEPS[1])
    assert found.half_ms / found.ms > 0.8
    predicting._quick_rates.cache_clear()
