"""Latencies of language models from those of their bricks."""

import pytest

from dlbricks_tui.language.architecture import WeightPrecision
from dlbricks_tui.language.composing import BrickTime, StepTime, step_time, steps_time
from dlbricks_tui.language.decoder import Step, decoder
from dlbricks_tui.language.layers import ModelPart
from dlbricks_tui.language.predicting import bytes_read
from dlbricks_tui.models.graph import LayerGraph
from tests.language.test_decoder import ONNX_RUNTIME, library

WHEN = "2026-11-28T20:46:00+00:00"


def of_one_millisecond(graph: LayerGraph, layer: int) -> BrickTime:
    return BrickTime(1.0, 0.1, 0.02, WHEN)


@pytest.mark.parametrize("name", ["llama-3.2-1b", "gemma-3-1b"])
def test_each_layer_of_the_model_counts(name: str) -> None:
    model = library(name)
    few = decoder(model, WeightPrecision.INT4, Step.decode(64), ONNX_RUNTIME)
    whole = decoder(model, WeightPrecision.INT4, Step.decode(64), ONNX_RUNTIME, range(model.blocks))
    found = step_time(few, of_one_millisecond)
    assert found.ms == len(whole.graph.layers)
    assert sum(found.parts_ms.values()) == pytest.approx(found.ms)
    assert found.parts_ms[ModelPart.HEAD] == 1.0
    assert found.parts_ms[ModelPart.PRODUCTS] == model.blocks * 5
    assert (found.coverage, found.when) == (1.0, WHEN)


def test_errors_that_bricks_share_add_up_and_others_do_not() -> None:
    model = library("llama-3.2-1b")
    few = decoder(model, WeightPrecision.INT4, Step.decode(64), ONNX_RUNTIME)
    shared = step_time(few, lambda graph, layer: BrickTime(1.0, 0.0, 0.02, WHEN))
    assert shared.half_ms == pytest.approx(0.02 * shared.ms)
    apart = step_time(few, lambda graph, layer: BrickTime(1.0, 0.02, 0.0, WHEN))
    assert apart.half_ms < 0.3 * shared.half_ms
    predicted = step_time(few, lambda graph, layer: BrickTime(1.0, 0.0, 0.5))
    assert predicted.coverage == 0.0
    assert predicted.bounds_ms == pytest.approx((0.5 * predicted.ms, 1.5 * predicted.ms))


def test_an_interval_never_reaches_zero() -> None:
    low, high = StepTime(10.0, 30.0, {}, 0.0, "").bounds_ms
    assert 0 < low < 1
    assert high == 40.0


def test_decoding_takes_the_mean_of_its_first_and_last_step() -> None:
    first = StepTime(10.0, 1.0, {ModelPart.ATTENTION: 2.0}, 1.0, "2026-01-01")
    last = StepTime(14.0, 2.0, {ModelPart.ATTENTION: 6.0}, 0.5, "2026-01-02")
    found = steps_time((0.5, first), (0.5, last))
    assert found == StepTime(12.0, 1.5, {ModelPart.ATTENTION: 4.0}, 17 / 24, "2026-01-02")


def test_a_token_reads_the_weights_of_the_model_and_its_cache() -> None:
    model = library("llama-3.1-8b")
    read = {
        context: bytes_read(decoder(model, WeightPrecision.INT4, Step.decode(context), ONNX_RUNTIME))
        for context in (0, 1000)
    }
    weights = (model.parameters - model.vocabulary * model.hidden) * (0.5 + 4 / 32)
    assert read[0] == pytest.approx(weights, rel=0.01)
    assert read[1000] - read[0] == pytest.approx(1000 * 2 * 32 * 8 * 128 * 4, rel=0.01)
