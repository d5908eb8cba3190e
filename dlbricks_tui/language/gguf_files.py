"""GGUF files with random weights: the tensors of a language model as llama.cpp names and quantises them.

The types of tensors are those that llama.cpp's own tool for quantising chooses.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from dlbricks_tui.errors import UserError
from dlbricks_tui.language.architecture import Architecture, LanguageError, WeightPrecision

if TYPE_CHECKING:
    from numpy import uint8
    from numpy.typing import NDArray

# llama.cpp's names of families. It reads Mistral's models as llama.
_FAMILIES = {
    **dict.fromkeys(("llama", "mistral", "mixtral"), "llama"),
    **{name: name for name in ("qwen2", "qwen3", "gemma2", "gemma3", "phi3", "granite")},
    "qwen3_moe": "qwen3moe",
    "gpt_oss": "gpt-oss",
}
# Those whose windows it knows; others attend to the whole context.
_WINDOWED = frozenset({"gemma2", "gemma3", "gpt_oss"})
# The numbers in a block of each type, and its bytes.
_SIZES: Mapping[str, tuple[int, int]] = {
    "F32": (1, 4),
    "F16": (1, 2),
    "Q4_0": (32, 18),
    "Q5_0": (32, 22),
    "Q8_0": (32, 34),
    "MXFP4": (32, 17),
    "Q4_K": (256, 144),
    "Q5_K": (256, 176),
    "Q6_K": (256, 210),
}
# Types for rows whose length is no multiple of 256.
_SHORTER = {"Q4_K": "Q5_0", "Q5_K": "Q8_0", "Q6_K": "Q8_0"}
_USUAL = {
    WeightPrecision.Q4_K_M: "Q4_K",
    WeightPrecision.Q4_0: "Q4_0",
    WeightPrecision.Q8_0: "Q8_0",
    WeightPrecision.F16: "F16",
}
# The numbers of the precisions in `general.file_type`.
_FILE_TYPES = {"F16": 1, "Q4_0": 2, "Q8_0": 7, "Q4_K": 15}
# Of each quantised type, where its blocks have scales: numbers of 16 bits.
_SCALES = {"Q4_0": (0,), "Q5_0": (0,), "Q8_0": (0,), "Q4_K": (0, 2), "Q5_K": (0, 2), "Q6_K": (208,)}
_PATTERN_BYTES, _PATTERN_STEP = 1 << 22, 7919
# Values stay near one.
_WEIGHT, _SCALE, _EXPONENT = 0.02, 0.001, 119


class GgufTensor(NamedTuple):
    """A tensor of a GGUF file; its first size is the length of a row."""

    name: str
    sizes: tuple[int, ...]
    type: str

    @property
    def size_bytes(self) -> int:
        numbers, size = _SIZES[self.type]
        return prod(self.sizes) // numbers * size


def as_llama_cpp_reads(model: Architecture) -> Architecture:
    """Return a model with the windows that llama.cpp knows; refuse families that it cannot have."""
    if model.family not in _FAMILIES:
        raise LanguageError(f"llama.cpp has no GGUF files of the family {model.family}: choose another runtime")
    if model.family in ("qwen2", "phi3") and model.heads * model.head_size != model.hidden:
        raise LanguageError(f"llama.cpp wants {model.family} with heads as wide as the model: choose another runtime")
    if model.family in _WINDOWED:
        return model
    return replace(model, window=0, windowed=())


def rich_blocks(model: Architecture, precision: WeightPrecision) -> tuple[bool, ...]:
    """Return for each block if it has some tensors with more bits than others, as Q4_K_M gives to half of them."""
    count, eighth = model.blocks, model.blocks // 8
    if precision is not WeightPrecision.Q4_K_M:
        return (False,) * count
    return tuple([it < eighth or it >= 7 * count // 8 or (it - eighth) % 3 == 2 for it in range(count)])


def gguf_tensors(model: Architecture, precision: WeightPrecision, rich: Sequence[bool]) -> list[GgufTensor]:
    """Return the tensors of a model with as many blocks as `rich` has; those have more bits where it says so."""
    found = [*_outer_tensors(model)]
    for number, is_rich in enumerate(rich):
        found += [it._replace(name=f"blk.{number}.{it.name}") for it in _block_tensors(model, is_rich)]
    return [it._replace(type=_stored_type(it, precision)) for it in found]


def _outer_tensors(model: Architecture) -> Iterator[GgufTensor]:
    table = (model.hidden, model.vocabulary)
    # gpt-oss is refused without a head of its own.
    is_tied = model.is_tied and model.family != "gpt_oss"
    yield GgufTensor("token_embd.weight", table, "Q6_K" if is_tied else "")
    if not is_tied:
        yield GgufTensor("output.weight", table, "Q6_K")
    yield GgufTensor("output_norm.weight", (model.hidden,), "F32")


def _block_tensors(model: Architecture, is_rich: bool) -> Iterator[GgufTensor]:
    """Yield the tensors of a block; without a type they have the usual one, and with one that of Q4_K_M."""
    hidden, queries, keys = model.hidden, model.heads * model.head_size, model.kv_heads * model.head_size
    more = "Q6_K" if is_rich else ""
    # llama.cpp spends more on small tensors of eight experts, and of Llama 70B.
    few_experts = model.experts == 8
    is_llama_70b = model.family in ("llama", "mistral") and model.blocks == 80 and model.heads != model.kv_heads
    if model.family == "phi3":
        yield from _linear("attn_qkv", hidden, queries + 2 * keys, bias=model.qkv_bias, kind="Q5_K")
    else:
        values = "Q8" if few_experts else more or ("Q5_K" if is_llama_70b else "")
        for name, size, kind in (("q", queries, ""), ("k", keys, "Q8" if few_experts else ""), ("v", keys, values)):
            yield from _linear(f"attn_{name}", hidden, size, bias=model.qkv_bias, kind=kind)
    yield from _linear("attn_output", queries, hidden, bias=model.output_bias, kind="Q5_K" if few_experts else "")
    outer = ("post_attention_norm", "post_ffw_norm") if model.has_outer_norms else ()
    second = "post_attention_norm" if model.family == "gpt_oss" else "ffn_norm"
    for name in ("attn_norm", second, *outer):
        yield GgufTensor(f"{name}.weight", (hidden,), "F32")
    if model.qk_norm:
        for name in ("attn_q_norm", "attn_k_norm"):
            yield GgufTensor(f"{name}.weight", (model.head_size,), "F32")
    if model.has_sinks:
        yield GgufTensor("attn_sinks.weight", (model.heads,), "F32")
    if not model.experts:
        inner = (("up", 2 * model.inner),) if model.family == "phi3" else (("gate", model.inner), ("up", model.inner))
        for name, size in inner:
            yield from _linear(f"ffn_{name}", hidden, size, bias=model.inner_bias)
        yield from _linear("ffn_down", model.inner, hidden, bias=model.inner_bias, kind=more)
        return
    yield from _linear("ffn_gate_inp", hidden, model.experts, bias=model.inner_bias, kind="F32")
    # gpt-oss was trained in this type.
    own = "MXFP4" if model.family == "gpt_oss" else ""
    sizes = (("gate", hidden, model.inner, own), ("up", hidden, model.inner, own))
    for name, width, size, kind in (*sizes, ("down", model.inner, hidden, own or more)):
        yield from _linear(f"ffn_{name}_exps", width, size, bias=model.inner_bias, kind=kind, count=model.experts)


def _linear(name: str, width: int, size: int, *, bias: bool, kind: str = "", count: int = 0) -> Iterator[GgufTensor]:
    several = (count,) * (count > 0)
    yield GgufTensor(f"{name}.weight", (width, size, *several), kind)
    if bias:
        yield GgufTensor(f"{name}.bias", (size, *several), "F32")


def _stored_type(tensor: GgufTensor, precision: WeightPrecision) -> str:
    """Return the type of a tensor in a precision, from the one in Q4_K_M."""
    kind, usual = tensor.type, _USUAL[precision]
    if kind in ("F32", "MXFP4"):
        return kind
    is_table = tensor.name in ("token_embd.weight", "output.weight")
    if precision in (WeightPrecision.F16, WeightPrecision.Q8_0) or (usual == "Q4_0" and not is_table and kind != "Q8"):
        kind = ""
    kind = "Q8_0" if kind == "Q8" else kind or usual
    if tensor.sizes[0] % _SIZES[kind][0]:
        # Tables with rows of another length have eight bits at once.
        kind = "Q8_0" if is_table and kind == "Q6_K" else _SHORTER.get(kind, kind)
    return "F16" if tensor.sizes[0] % _SIZES[kind][0] else kind


def size_bytes(tensors: Sequence[GgufTensor]) -> int:
    return sum(it.size_bytes for it in tensors)


def write_gguf(
    path: Path,
    model: Architecture,
    precision: WeightPrecision,
    rich: Sequence[bool],
    check: Callable[[], None] = lambda: None,
) -> None:
    """Write a model with as many blocks as `rich` has; `check` is called often, and may raise."""
    try:
        import gguf
        import numpy
    except ImportError as error:
        raise UserError(
            "models for llama.cpp are written by gguf, which is missing: pip install 'dlbricks-tui[llm]'"
        ) from error
    writer = gguf.GGUFWriter(path, arch=_FAMILIES[model.family])
    for key, value in _values(model, precision, len(rich)).items():
        # Python's integers have no sign in the file, as most keys want them.
        kinds = {int: gguf.GGUFValueType.UINT32, float: gguf.GGUFValueType.FLOAT32, list: gguf.GGUFValueType.ARRAY}
        writer.add_key_value(key, value, kinds.get(type(value), gguf.GGUFValueType.STRING))
    tensors = gguf_tensors(model, precision, rich)
    for it in tensors:
        stored = gguf.GGMLQuantizationType[it.type]
        writer.add_tensor_info(it.name, it.sizes[::-1], numpy.dtype("float32"), it.size_bytes, stored)
    try:
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_ti_data_to_file()
        for number, it in enumerate(tensors):
            check()
            writer.write_tensor_data(_content(it, number))
        writer.flush()
        # What is written later would disturb what is timed.
        with path.open("rb") as file:
            os.fsync(file.fileno())
    except OSError as error:
        raise LanguageError(f"{path.name} cannot be written to {path.parent}: {error.strerror or error}") from error
    finally:
        writer.close()


def _values(model: Architecture, precision: WeightPrecision, blocks: int) -> dict[str, Any]:
    """Return the keys and values of the file's header."""
    family = _FAMILIES[model.family]
    own: dict[str, Any] = {
        "context_length": model.positions,
        "embedding_length": model.hidden,
        "block_count": blocks,
        "feed_forward_length": model.inner,
        "vocab_size": model.vocabulary,
        "attention.head_count": model.heads,
        "attention.head_count_kv": model.kv_heads,
        "attention.key_length": model.head_size,
        "attention.value_length": model.head_size,
        "attention.layer_norm_rms_epsilon": float(model.epsilon),
        "rope.dimension_count": model.rotary_size,
    }
    if model.experts:
        own |= {"expert_count": model.experts, "expert_used_count": model.active_experts}
        own["expert_feed_forward_length"] = model.inner
    if model.window:
        own["attention.sliding_window"] = model.window
        own["attention.sliding_window_pattern"] = list(model.windowed[:blocks])
    if model.attention_cap:
        own["attn_logit_softcapping"] = model.attention_cap
    if model.logit_cap:
        own["final_logit_softcapping"] = model.logit_cap
    if model.family == "granite":
        own |= {"embedding_scale": model.embedding_scale, "residual_scale": model.residual_scale}
        own |= {"attention.scale": model.attention_scale, "logit_scale": 1.0 / model.logit_scale}
    return {
        "general.file_type": _FILE_TYPES[_USUAL[precision]],
        # Words do not matter, as the benchmark reads tokens at random.
        "tokenizer.ggml.model": "no_vocab",
        **{f"{family}.{key}": value for key, value in own.items()},
    }


def _content(tensor: GgufTensor, number: int) -> NDArray[uint8]:
    """Return the bytes of a tensor, each of which begins elsewhere in the pattern of its type."""
    import numpy

    pattern = _pattern(tensor.type)
    begin = number * _PATTERN_STEP % len(pattern)
    # It repeats as often as the tensor needs.
    return numpy.resize(numpy.roll(pattern, -begin, axis=0), tensor.size_bytes)


@cache
def _pattern(kind: str) -> NDArray[uint8]:
    """Return blocks of a type, of which each has a row; their numbers are those of trained weights in size."""
    import numpy

    _, size = _SIZES[kind]
    random, rows = numpy.random.default_rng(1), _PATTERN_BYTES // size
    if kind in ("F16", "F32"):
        factors = random.standard_normal(rows) * _WEIGHT if kind == "F16" else random.uniform(0.5, 1.5, rows)
        return factors.astype(f"<f{size}").view(numpy.uint8).reshape(rows, size)
    found = random.integers(0, 256, (rows, size), numpy.uint8)
    for place in _SCALES.get(kind, ()):
        scales = (random.uniform(0.5, 1.5, rows) * _SCALE).astype("<f2")
        found[:, place : place + 2] = scales.view(numpy.uint8).reshape(rows, 2)
    if kind == "MXFP4":
        found[:, 0] = _EXPONENT
    return found
