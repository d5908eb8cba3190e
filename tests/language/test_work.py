"""The work of layers: the bytes that a step reads, and its operations."""

from dataclasses import replace

import pytest

from dlbricks_tui.bricks.identity import brick_of
from dlbricks_tui.language.architecture import Architecture, WeightPrecision
from dlbricks_tui.language.decoder import ATTENTION, Decoder, Step, decoder
from dlbricks_tui.language.predicting import BrickWork, work_of
from tests.language.test_decoder import ONNX_RUNTIME, library

LLAMA = library("llama-3.2-1b")


def works(model: Architecture, precision: WeightPrecision, step: Step) -> tuple[Decoder, list[BrickWork]]:
    found = decoder(model, precision, step, ONNX_RUNTIME)
    return found, [work_of(it) for it in found.graph.layers]


def attention(model: Architecture, step: Step) -> list[BrickWork]:
    return [it for it in works(model, WeightPrecision.INT4, step)[1] if it.op == ATTENTION]


@pytest.mark.parametrize("precision", list(WeightPrecision))
@pytest.mark.parametrize("name", ["llama-3.2-1b", "gemma-2-2b", "qwen3-0.6b", "phi-3-mini", "gpt-oss-20b"])
@pytest.mark.parametrize("step", [Step.decode(300), Step.prefill(64, 128)])
def test_a_stored_brick_has_the_work_of_its_layer(name: str, precision: WeightPrecision, step: Step) -> None:
    found, layers = works(library(name), precision, step)
    assert layers == [work_of(brick_of(found.graph, (it.index,)).canonical) for it in found.graph.layers]


@pytest.mark.parametrize("precision", list(WeightPrecision))
@pytest.mark.parametrize("name", ["llama-3.2-1b", "gemma-3-1b", "qwen3-0.6b"])
def test_a_token_takes_two_operations_for_each_weight(name: str, precision: WeightPrecision) -> None:
    model = library(name)
    found, layers = works(model, precision, Step.decode(100))
    operations = sum(
        count * it.operations for it, count in zip(layers, found.counts, strict=True) if it.op.startswith("MatMul")
    )
    # The head is a product, and multiplies with the table if they are tied.
    table = 0 if model.is_tied else model.vocabulary * model.hidden
    assert operations == pytest.approx(2 * (model.parameters - table), rel=0.001)


def test_weights_are_read_once_with_their_scales_whatever_the_number_of_tokens() -> None:
    for step in (Step.decode(100), Step.prefill(64)):
        _, layers = works(LLAMA, WeightPrecision.INT4, step)
        numbers = LLAMA.vocabulary * LLAMA.hidden
        assert layers[-1].weight_bytes == numbers // 2 + numbers // 32 * 4


def test_of_a_table_only_rows_of_tokens_are_read() -> None:
    _, layers = works(LLAMA, WeightPrecision.F32, Step.prefill(64))
    (table,) = [it for it in layers if it.op == "Gather" and it.weight_bytes]
    assert table.weight_bytes == 64 * LLAMA.hidden * 4


def test_a_token_attends_to_the_whole_context_and_a_prompt_to_half_of_itself() -> None:
    row = 2 * LLAMA.kv_heads * LLAMA.head_size * 4
    per_pair = 4 * LLAMA.heads * LLAMA.head_size
    (decoding, *_) = attention(LLAMA, Step.decode(1023))
    assert (decoding.cache_bytes, decoding.operations) == (1024 * row, 1024 * per_pair)
    (prompt, *_) = attention(LLAMA, Step.prefill(256, 1024))
    assert prompt.operations == 256 * 257 // 2 * per_pair


def test_a_windowed_block_reads_no_more_than_its_window() -> None:
    model = replace(library("gemma-3-1b"), window=512)
    read = {context: attention(model, Step.decode(context))[0].cache_bytes for context in (99, 511, 512, 4000)}
    row = 2 * model.kv_heads * model.head_size * 4
    assert read == {99: 100 * row, 511: 512 * row, 512: 512 * row, 4000: 512 * row}


def test_a_token_reads_its_experts_and_a_prompt_nearly_all() -> None:
    model = library("qwen3-30b-a3b")
    share = {}
    for tokens, step in ((1, Step.decode(10)), (256, Step.prefill(256))):
        _, layers = works(model, WeightPrecision.INT4, step)
        (experts, *_) = [it for it in layers if it.op == "QMoE"]
        share[tokens] = experts.weight_bytes / (3 * model.experts * model.hidden * model.inner * (0.5 + 4 / 32))
        assert experts.operations == tokens * 2 * 3 * model.active_experts * model.hidden * model.inner
    assert share[1] == pytest.approx(model.active_experts / model.experts)
    assert 0.99 < share[256] <= 1.0
