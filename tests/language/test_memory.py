"""The memory of language models, compared with the peaks of onnxruntime-genai."""

from dataclasses import replace

import pytest

from dlbricks_tui.language.architecture import Architecture, WeightPrecision
from dlbricks_tui.language.composing import MemoryNeed, memory_need
from dlbricks_tui.language.opening import NamedModel
from dlbricks_tui.language.orders import LanguageQuestion
from dlbricks_tui.runtime.runtime import Runtime
from dlbricks_tui.runtime.variant import CachePrecision
from tests.language.test_decoder import library

INT4, F32 = WeightPrecision.INT4, WeightPrecision.F32
RUNTIME = Runtime("here", "python", "onnxruntime", "1.32", "3.11")


def need(
    model: Architecture, precision: WeightPrecision, context: int, prompt: int, runtime: Runtime = RUNTIME
) -> MemoryNeed:
    """Return the memory of a context with a prompt at its beginning."""
    asked = LanguageQuestion(NamedModel("model", model), runtime, precision, prompt, context - prompt)
    return memory_need(asked, asked.decoder(asked.steps[0]))


def made_up(hidden: int, blocks: int, heads: tuple[int, int, int], inner: int, vocabulary: int) -> Architecture:
    number, kv_heads, size = heads
    return Architecture(
        family="llama",
        hidden=hidden,
        blocks=blocks,
        heads=number,
        kv_heads=kv_heads,
        head_size=size,
        inner=inner,
        vocabulary=vocabulary,
        positions=8192,
        is_tied=True,
        has_gelu=False,
        qkv_bias=False,
        output_bias=False,
        inner_bias=False,
        qk_norm=False,
        rotary_size=size,
    )


SMALL = made_up(768, 12, (12, 4, 64), 2048, 32_000)
UNTIED = replace(made_up(1024, 20, (16, 8, 64), 3072, 64_000), is_tied=False)
WIDE = made_up(1536, 16, (12, 4, 128), 5120, 100_000)


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


@pytest.mark.parametrize("name", ["llama-3.2-1b", "gpt-oss-20b", "qwen3-30b-a3b", "llama-3.1-70b", "gemma-2-2b"])
def test_fewer_bits_and_shorter_prompts_need_less(name: str) -> None:
    model = library(name)
    needs = [need(model, precision, 640, 512).total for precision in (INT4, WeightPrecision.INT8, F32)]
    assert needs == sorted(needs)
    assert needs[0] > model.parameters * 0.6
    assert need(model, INT4, 640, 16).buffers <= need(model, INT4, 640, 512).buffers
