"""Writes small GGUF files."""

import struct
from collections.abc import Mapping, Sequence

LLAMA: Mapping[str, object] = {
    "general.architecture": "llama",
    "general.file_type": 15,
    "llama.context_length": 4096,
    "llama.embedding_length": 256,
    "llama.block_count": 4,
    "llama.feed_forward_length": 704,
    "llama.attention.head_count": 4,
    "llama.attention.head_count_kv": 2,
    "llama.attention.layer_norm_rms_epsilon": 1e-5,
    "llama.rope.dimension_count": 64,
    "tokenizer.ggml.tokens": [f"word{number}" for number in range(1000)],
    "tokenizer.ggml.scores": [0.5] * 1000,
}
TABLES = {"token_embd.weight": (256, 1024), "blk.0.attn_norm.weight": (256,), "output.weight": (256, 1024)}


def gguf(
    values: Mapping[str, object],
    tensors: Mapping[str, Sequence[int]] | None = None,
    *,
    version: int = 3,
    extra: int = 0,
) -> bytes:
    """Return a file; it claims some extra values."""
    tensors = tensors or {}
    parts = [b"GGUF", struct.pack("<IQQ", version, len(tensors), len(values) + extra)]
    parts += [_text(name) + _value(value) for name, value in values.items()]
    for name, sizes in tensors.items():
        parts += [_text(name), struct.pack(f"<I{len(sizes)}QIQ", len(sizes), *sizes, 0, 0)]
    return b"".join(parts)


def _text(text: str) -> bytes:
    return struct.pack("<Q", len(text.encode())) + text.encode()


def _value(value: object) -> bytes:
    kind, content = _typed(value)
    return struct.pack("<I", kind) + content


def _typed(value: object) -> tuple[int, bytes]:
    if isinstance(value, str):
        return 8, _text(value)
    if isinstance(value, bool):
        return 7, struct.pack("<?", value)
    if isinstance(value, int):
        return 4, struct.pack("<I", value)
    if isinstance(value, float):
        return 6, struct.pack("<f", value)
    assert isinstance(value, list)
    items = [_typed(it) for it in value]
    return 9, struct.pack("<IQ", items[0][0], len(items)) + b"".join([content for _, content in items])
