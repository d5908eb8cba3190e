import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlbricks_tui.language.architecture import Architecture, LanguageError
from dlbricks_tui.language.config_file import GgufHeader, architecture_of_gguf
from tests.language.gguf_files import LLAMA, TABLES, gguf


def read(content: bytes) -> Architecture:
    return architecture_of_gguf(GgufHeader(content))


def as_family(name: str, **values: object) -> dict[str, object]:
    """The values of another family; an underscore pair stands for a point."""
    own = {key.replace("llama.", f"{name}."): value for key, value in LLAMA.items()}
    return own | {"general.architecture": name} | {f"{name}.{key.replace('__', '.')}": it for key, it in values.items()}


@pytest.mark.parametrize("version", [2, 3])
def test_sizes_are_those_of_the_file(version: int) -> None:
    found = read(gguf(LLAMA, TABLES, version=version))
    assert (found.family, found.hidden, found.blocks, found.inner) == ("llama", 256, 4, 704)
    assert (found.heads, found.kv_heads, found.head_size, found.rotary_size) == (4, 2, 64, 64)
    # The table has rows for more words than there are.
    assert (found.vocabulary, found.positions, found.epsilon, found.is_tied) == (1024, 4096, 1e-5, False)


def test_the_vocabulary_is_counted_and_not_kept() -> None:
    header = GgufHeader(gguf(LLAMA))
    assert header.values["tokenizer.ggml.tokens"] == range(1000)
    assert architecture_of_gguf(header).vocabulary == 1000


@pytest.mark.parametrize("behind", [b"word17", b"token_embd", b"output.weight"])
def test_a_part_that_does_not_tell_if_the_table_is_the_head_is_refused(behind: bytes) -> None:
    content = gguf(LLAMA, TABLES)
    with pytest.raises(LanguageError, match="if the table is the head, too; give more of the file: 32 MiB are enough"):
        read(content[: content.index(behind)])


def test_the_tensors_tell_biases_norms_and_a_tied_table() -> None:
    names = ("attn_q.bias", "attn_output.bias", "ffn_up.bias", "attn_q_norm.weight", "attn_norm.weight")
    found = read(gguf(LLAMA, {f"blk.0.{name}": (1,) for name in names}))
    assert (found.qkv_bias, found.output_bias, found.inner_bias, found.qk_norm) == (True, True, True, True)
    assert found.is_tied
    # Other files have the other tensors.
    for parts, is_tied in ((0, True), (1, True), (3, False)):
        part = read(gguf({**LLAMA, "split.count": parts}, {"blk.0.attn_norm.weight": (1,)}))
        assert part.is_tied is is_tied


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (as_family("qwen2"), {"family": "qwen2", "qkv_bias": True}),
        (as_family("qwen3", attention__key_length=128), {"family": "qwen3", "head_size": 128, "qk_norm": True}),
        (as_family("gemma2", attention__sliding_window=512), {"windowed": (True, False, True, False), "is_tied": True}),
        (as_family("gemma3", attention__sliding_window=512), {"family": "gemma3", "windowed": (True,) * 4}),
        (
            as_family(
                "gemma3", attention__sliding_window=512, attention__sliding_window_pattern=[True, False, False, True]
            ),
            {"windowed": (True, False, False, True)},
        ),
        (as_family("phi3", rope__dimension_count=48), {"family": "phi3", "rotary_size": 48}),
        (as_family("granite", residual_scale=0.22, logit_scale=8.0), {"residual_scale": 0.22, "logit_scale": 1 / 8}),
        (as_family("llama", expert_count=8, expert_used_count=2), {"family": "mixtral", "experts": 8}),
        (as_family("llama", expert_count=0, expert_used_count=0), {"family": "llama", "experts": 0}),
        (
            as_family("qwen3moe", expert_count=8, expert_used_count=2, expert_feed_forward_length=96),
            {"family": "qwen3_moe", "inner": 96, "active_experts": 2},
        ),
        (
            as_family("gpt-oss", expert_count=8, expert_used_count=4, attention__sliding_window=128),
            {"family": "gpt_oss", "has_sinks": True, "windowed": (True, False, True, False)},
        ),
        (as_family("llama", feed_forward_length=[96] * 4), {"inner": 96}),
    ],
)
def test_each_family_is_read(values: dict[str, object], expected: dict[str, Any]) -> None:
    found = read(gguf(values))
    assert {name: getattr(found, name) for name in expected} == expected


def huge(*, values: int = 0, tensors: int = 0) -> bytes:
    return b"GGUF" + struct.pack("<IQQ", 3, tensors, values)


def without(*names: str) -> dict[str, object]:
    return {name: value for name, value in LLAMA.items() if name not in names}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "it is not a GGUF file"),
        (b"PK\x03\x04", "it is not a GGUF file"),
        (b"GGUF", "it has no general.architecture; give more of the file"),
        (gguf(LLAMA, version=1), "its GGUF version is 1: only 2 and 3"),
        (b"GGUF" + struct.pack(">I", 3), "its GGUF version is 50,331,648: only 2 and 3, in little-endian order"),
        (huge(values=2**63), "it is a broken GGUF file: it claims 9,223,"),
        (huge(tensors=2**63), "it is a broken GGUF file: it claims 0 values and 9,223,"),
        (huge(values=1) + struct.pack("<Q", 2**63), "it has no general.architecture"),
        (gguf({}, extra=1) + struct.pack("<Q1sI", 1, b"x", 99), "it has a value of type 99"),
        # An array of arrays, and arrays that claim more items than any file has.
        (gguf({}, extra=1) + struct.pack("<Q1sIIQ", 1, b"x", 9, 9, 1), "it has a value of type 9"),
        (gguf({}, extra=1) + struct.pack("<Q1sIIQ", 1, b"x", 9, 8, 2**63), "it has no general.architecture"),
        (gguf({}, extra=1) + struct.pack("<Q1sIIQ", 1, b"x", 9, 0, 2**63), "it has no general.architecture"),
        (gguf(LLAMA, {"t": (1,) * 9}), "it has a tensor of 9 axes"),
        (gguf({**LLAMA, "general.architecture": "mamba\x1b"}), r"its family 'mamba\x1b' is not known; known are"),
        (gguf({**LLAMA, "general.architecture": 7}), "it has no general.architecture; give a complete file"),
        (gguf(without("llama.block_count")), "it has no llama.block_count; give a complete file"),
        (gguf(without("llama.block_count"), extra=1), "it has no llama.block_count; give more of the file"),
        (gguf(without("tokenizer.ggml.tokens")), "it has no llama.vocab_size"),
        (gguf({**LLAMA, "llama.block_count": 2**31}), "the number of blocks is 2,147,483,648"),
        (gguf({**LLAMA, "llama.block_count": "many"}), "num_hidden_layers is 'many'"),
        (gguf({**LLAMA, "llama.block_count": [0.5] * 9999}), "num_hidden_layers is an object"),
        (gguf({**LLAMA, "llama.feed_forward_length": [1, 2, 3, 4]}), "its blocks differ in feed_forward_length"),
        (gguf(LLAMA, {"token_embd.weight": (256, 2**63)}), "the size of the vocabulary is more than"),
    ],
)
def test_broken_files_are_refused_in_one_line(content: bytes, message: str) -> None:
    with pytest.raises(LanguageError) as error:
        read(content)
    assert message in str(error.value)
    assert str(error.value).isprintable()
    assert len(str(error.value)) < 300


@given(st.integers(4, 900), st.binary(min_size=1, max_size=8), st.integers(100, 20_000))
def test_any_change_is_read_or_refused_in_one_line(place: int, change: bytes, end: int) -> None:
    content = gguf(LLAMA, TABLES)
    try:
        read((content[:place] + change + content[place + len(change) :])[:end])
    except LanguageError as error:
        assert str(error).isprintable()
