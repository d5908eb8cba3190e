"""The work of layers, and the memory of language models, compared with the peaks of engines."""

from dataclasses import replace

import pytest

from dlbricks_tui.bricks.identity import brick_of
from dlbricks_tui.language.architecture import Architecture, WeightPrecision
from dlbricks_tui.language.composing import BrickTime, MemoryNeed, StepTime, memory_need, step_time, steps_time
from dlbricks_tui.language.decoder import ATTENTION, Decoder, ModelPart, Step, decoder
from dlbricks_tui.language.opening import NamedModel
from dlbricks_tui.language.orders import LanguageQuestion
from dlbricks_tui.language.predicting import BrickWork, bytes_read, work_of
from dlbricks_tui.models.graph import LayerGraph
from dlbricks_tui.runtime.runtime import Runtime
from dlbricks_tui.runtime.variant import CachePrecision
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


# Latencies of language models from those of their bricks.

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
    asked = LanguageQuestion(NamedModel("model", model), RUNTIME, WeightPrecision.INT4, 1, 1)
    read = {context: bytes_read(asked, asked.decoder(Step.decode(context))) for context in (0, 1000)}
    weights = (model.parameters - model.vocabulary * model.hidden) * (0.5 + 4 / 32)
    assert read[0] == pytest.approx(weights, rel=0.01)
    assert read[1000] - read[0] == pytest.approx(1000 * 2 * 32 * 8 * 128 * 4, rel=0.01)


def test_a_batch_reads_weights_once_and_the_cache_of_each_answer() -> None:
    alone, together = (works(LLAMA, WeightPrecision.INT4, Step.decode(300, batch))[1] for batch in (1, 4))
    for one, four in zip(alone, together, strict=True):
        if one.op == ATTENTION:
            # It still is the kernel of a decoding step.
            assert (four.kind, four.tokens) == (one.kind, 1)
            assert (four.cache_bytes, four.operations) == (4 * one.cache_bytes, 4 * one.operations)
        elif one.op == "MatMulNBits":
            assert (four.tokens, four.weight_bytes) == (4, one.weight_bytes)
            assert four.operations == 4 * one.operations


INT4, F32 = WeightPrecision.INT4, WeightPrecision.F32
RUNTIME = Runtime("here", "python", "onnxruntime", "1.32", "3.11")


def need(
    model: Architecture, precision: WeightPrecision, context: int, prompt: int, runtime: Runtime = RUNTIME
) -> MemoryNeed:
    """Return the memory of a context with a prompt at its beginning."""
    asked = LanguageQuestion(NamedModel("model", model), runtime, precision, prompt, context - prompt)
    return memory_need(asked, asked.decoder(asked.steps[0]))


SMALL, UNTIED, WIDE = (
    replace(
        LLAMA,
        hidden=hidden,
        blocks=blocks,
        heads=heads,
        kv_heads=kv_heads,
        head_size=size,
        rotary_size=size,
        inner=inner,
        vocabulary=vocabulary,
        is_tied=is_tied,
    )
    for hidden, blocks, heads, kv_heads, size, inner, vocabulary, is_tied in (
        (768, 12, 12, 4, 64, 2048, 32_000, True),
        (1024, 20, 16, 8, 64, 3072, 64_000, False),
        (1536, 16, 12, 4, 128, 5120, 100_000, True),
    )
)


# The highest resident memory of a process that read a prompt and made 3 tokens, in MiB (onnxruntime-genai 0.18).
@pytest.mark.parametrize(
    ("model", "precision", "prompt", "peak"),
    [
        (SMALL, F32, 16, 630),
        (SMALL, F32, 1024, 742),
        (UNTIED, INT4, 16, 371),
        (UNTIED, INT4, 256, 575),
        (UNTIED, INT4, 1024, 998),
        (UNTIED, INT4, 2000, 1326),
        (WIDE, INT4, 16, 755),
        (WIDE, INT4, 256, 813),
        (WIDE, INT4, 512, 961),
        (WIDE, INT4, 1024, 1253),
        (WIDE, F32, 16, 3644),
        (WIDE, F32, 1024, 3643),
    ],
)
def test_the_engine_holds_as_much(model: Architecture, precision: WeightPrecision, prompt: int, peak: int) -> None:
    assert need(model, precision, prompt + 3, prompt).total / 2**20 == pytest.approx(peak, rel=0.07)


# The same of models of the library, with two threads.
@pytest.mark.parametrize(
    ("name", "precision", "prompt", "peak"),
    [
        ("smollm2-135m", INT4, 512, 333),
        ("smollm2-135m", F32, 1024, 965),
        ("smollm2-360m", WeightPrecision.INT8, 16, 634),
        ("qwen2.5-0.5b", INT4, 16, 621),
        ("qwen2.5-0.5b", INT4, 1024, 1272),
        ("qwen3-0.6b", INT4, 512, 1121),
        ("gemma-3-270m", F32, 700, 2504),
        ("gemma-3-1b", INT4, 1024, 2263),
        ("llama-3.2-1b", INT4, 512, 1601),
        ("tinyllama-1.1b", INT4, 1024, 1500),
    ],
)
def test_the_engine_holds_as_much_of_known_models(
    name: str, precision: WeightPrecision, prompt: int, peak: int
) -> None:
    assert need(library(name), precision, prompt + 3, prompt).total / 2**20 == pytest.approx(peak, rel=0.05)


# The same of openvino-genai 2026.4.1 with one thread.
@pytest.mark.parametrize(
    ("name", "precision", "cache", "prompt", "peak"),
    [
        ("smollm2-135m", INT4, CachePrecision.INT8, 16, 344),
        ("smollm2-135m", INT4, CachePrecision.INT8, 512, 372),
        ("smollm2-135m", INT4, CachePrecision.INT8, 2000, 465),
        ("smollm2-135m", INT4, CachePrecision.F32, 512, 388),
        ("smollm2-135m", INT4, CachePrecision.F32, 2000, 529),
        ("smollm2-135m", WeightPrecision.INT8, CachePrecision.INT8, 512, 456),
        ("smollm2-135m", F32, CachePrecision.INT8, 512, 1427),
        ("qwen2.5-0.5b", INT4, CachePrecision.INT8, 16, 799),
        ("qwen2.5-0.5b", INT4, CachePrecision.INT8, 512, 860),
    ],
)
def test_openvino_holds_as_much_of_known_models(
    name: str, precision: WeightPrecision, cache: CachePrecision, prompt: int, peak: int
) -> None:
    runtime = replace(RUNTIME, framework="openvino").with_cache(cache)
    found = need(library(name), precision, prompt + 3, prompt, runtime)
    assert found.total / 2**20 == pytest.approx(peak, rel=0.08)


def test_the_cache_grows_with_the_context_and_in_windowed_blocks_only_up_to_the_window() -> None:
    model = library("gemma-3-1b")
    rows = [2 * 4 * model.kv_heads * model.head_size * it for it in (model.windowed.count(True), 1)]
    cache = need(model, INT4, 4096, 512).cache
    full = model.windowed.count(False)
    assert cache == rows[0] * (model.window + 16) + rows[1] * full * 4096
    # The engine gives no block a shorter cache than the window.
    assert need(model, INT4, 64, 60).cache == rows[0] * (model.window + 16) + rows[1] * full * model.window


@pytest.mark.parametrize("framework", ["onnxruntime", "openvino"])
def test_a_batch_needs_more_caches_and_buffers_of_prompts_and_no_second_process(framework: str) -> None:
    runtime = replace(RUNTIME, framework=framework)
    asked = LanguageQuestion(NamedModel("model", library("smollm2-135m")), runtime, INT4, 1, 1)
    found = asked.decoder(asked.steps[0])
    one, eight = memory_need(asked, found), memory_need(asked, found, 8, 8)
    assert eight.cache == 8 * one.cache
    assert eight.buffers < 1.3 * one.buffers
    longer = replace(asked, prompt=512)
    one, eight = memory_need(longer, found), memory_need(longer, found, 8, 8)
    assert eight.weights == one.weights
    assert one.buffers < eight.buffers < 8 * one.buffers


@pytest.mark.parametrize("name", ["llama-3.2-1b", "gpt-oss-20b", "qwen3-30b-a3b", "llama-3.1-70b", "gemma-2-2b"])
def test_fewer_bits_and_shorter_prompts_need_less(name: str) -> None:
    model = library(name)
    needs = [need(model, precision, 640, 512).total for precision in (INT4, WeightPrecision.INT8, F32)]
    assert needs == sorted(needs)
    assert needs[0] > model.parameters * 0.6
    assert need(model, INT4, 640, 16).buffers <= need(model, INT4, 640, 512).buffers
