"""Read the header of a GGUF file, of which only the beginning has to be there.

The package `gguf` maps the whole file and makes an array of each value of the vocabulary: it refuses a part of a file,
takes seconds, and trusts the counts in it.
"""

import struct
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from dlbricks_tui.language.architecture import Architecture
from dlbricks_tui.language.config_file import architecture_of_config
from dlbricks_tui.language.errors import LanguageError, UnknownFamilyError

# The longest known headers have 16 MiB, mostly vocabulary. What lies beyond counts as missing.
MOST_BYTES = 32 * 2**20
_MOST_VALUES = 1000
_MOST_TENSORS = 100_000
_LONGEST_KEPT = 1024

_VERSIONS = (2, 3)
_STRING, _ARRAY = 8, 9
_LENGTH = struct.Struct("<Q")
# The forms of numbers, by their type in the file.
_NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}


@dataclass(frozen=True, slots=True)
class _Skipped:
    """A value too long to keep, and the number of its items."""

    length: int


@dataclass(slots=True)
class GgufHeader:
    """The values of a GGUF file by name, and the sizes of its tensors."""

    values: dict[str, object] = field(default_factory=dict)
    # None: the part of the file ends before they are complete.
    tensors: Mapping[str, tuple[int, ...]] | None = None

    @property
    def precision(self) -> int | None:
        """The bits of most weights, if the file says so."""
        kind = self.values.get("general.file_type")
        return _BITS.get(kind) if isinstance(kind, int) else None


class _EndOfPartError(Exception):
    """The part of the file ends."""


class _Cursor:
    """A place in the beginning of a file."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._at = 0

    def number(self, form: str) -> int | float:
        """Return the next number."""
        return self.numbers(form, 1)[0]

    def count(self) -> int:
        """Return the next count of items or bytes."""
        return int(self.number("Q"))

    def numbers(self, form: str, count: int) -> tuple[int | float, ...]:
        """Return the next numbers."""
        start = self._at
        self.skip(struct.calcsize(f"<{form}") * count)
        return struct.unpack_from(f"<{count}{form}", self._content, start)

    def text(self) -> str:
        """Return the next text."""
        length = self.count()
        start = self._at
        self.skip(length)
        return self._content[start : self._at].decode(errors="replace")

    def skip_texts(self, count: int) -> None:
        """Move on by some texts, of which a vocabulary has hundred thousands."""
        at, end, length_at = self._at, len(self._content), _LENGTH.unpack_from
        for _ in range(count):
            if at > end - 8:
                raise _EndOfPartError
            at += 8 + length_at(self._content, at)[0]
        self.skip(at - self._at)

    def skip(self, length: int) -> None:
        """Move on by some bytes."""
        if length > len(self._content) - self._at:
            raise _EndOfPartError
        self._at += length


def gguf_header(content: bytes) -> GgufHeader:
    """Return what the beginning of a GGUF file tells."""
    if content[:4] != b"GGUF":
        raise LanguageError("it is not a GGUF file: it does not begin with GGUF")
    cursor, header = _Cursor(content), GgufHeader()
    try:
        cursor.skip(4)
        version = cursor.number("I")
        if version not in _VERSIONS:
            raise LanguageError(f"its GGUF version is {version}, and only 2 and 3 in little-endian order are read")
        tensors, values = cursor.count(), cursor.count()
        if tensors > _MOST_TENSORS or values > _MOST_VALUES:
            raise LanguageError(f"it is a broken GGUF file: it claims {values:,} values and {tensors:,} tensors")
        for _ in range(values):
            name = cursor.text()
            _read_value(cursor, header.values, name)
        header.tensors = dict([_tensor(cursor) for _ in range(tensors)])
    except _EndOfPartError:
        pass
    return header


def _read_value(cursor: _Cursor, values: dict[str, object], name: str) -> None:
    kind = int(cursor.number("I"))
    if kind == _STRING:
        text = cursor.text()
        values[name] = text if len(text) <= _LONGEST_KEPT else _Skipped(len(text))
    elif kind != _ARRAY:
        values[name] = cursor.number(_form(kind))
    else:
        kind, length = int(cursor.number("I")), cursor.count()
        # The length is known even where the items are missing.
        values[name] = _Skipped(length)
        if kind == _STRING:
            cursor.skip_texts(length)
        elif length <= _LONGEST_KEPT:
            values[name] = list(cursor.numbers(_form(kind), length))
        else:
            cursor.skip(struct.calcsize(f"<{_form(kind)}") * length)


def _form(kind: int) -> str:
    if kind not in _NUMBERS:
        raise LanguageError(f"it is a broken GGUF file: it has a value of type {kind}")
    return _NUMBERS[kind]


def _tensor(cursor: _Cursor) -> tuple[str, tuple[int, ...]]:
    name, axes = cursor.text(), int(cursor.number("I"))
    if axes > 8:
        raise LanguageError(f"it is a broken GGUF file: it has a tensor of {axes:,} axes")
    sizes = tuple([cursor.count() for _ in range(axes)])
    # Its type, and its place in the file.
    cursor.skip(12)
    return name, sizes


# By general.architecture. Mistral's models are written as llama, and so is Mixtral.
_MODEL_TYPES = {
    "llama": "llama",
    "qwen2": "qwen2",
    "qwen3": "qwen3",
    "gemma2": "gemma2",
    "gemma3": "gemma3_text",
    "phi3": "phi3",
    "granite": "granite",
    "qwen3moe": "qwen3_moe",
    "gpt-oss": "gpt_oss",
}
# The keys of config.json, and where GGUF has their values.
_KEYS = {
    "hidden_size": "embedding_length",
    "num_hidden_layers": "block_count",
    "num_attention_heads": "attention.head_count",
    "num_key_value_heads": "attention.head_count_kv",
    "head_dim": "attention.key_length",
    "intermediate_size": "feed_forward_length",
    "moe_intermediate_size": "expert_feed_forward_length",
    "vocab_size": "vocab_size",
    "max_position_embeddings": "context_length",
    "rms_norm_eps": "attention.layer_norm_rms_epsilon",
    "sliding_window": "attention.sliding_window",
    "attn_logit_softcapping": "attn_logit_softcapping",
    "final_logit_softcapping": "final_logit_softcapping",
    "embedding_multiplier": "embedding_scale",
    "residual_multiplier": "residual_scale",
    "attention_multiplier": "attention.scale",
    "logits_scaling": "logit_scale",
    "num_local_experts": "expert_count",
    "num_experts_per_tok": "expert_used_count",
}
_REQUIRED = ("hidden_size", "num_hidden_layers", "num_attention_heads", "max_position_embeddings")

# The bits of the products, by general.file_type.
_BITS = {
    0: 32,
    1: 16,
    2: 4,
    3: 4,
    7: 8,
    8: 5,
    9: 5,
    10: 2,
    11: 3,
    12: 3,
    13: 3,
    14: 4,
    15: 4,
    16: 5,
    17: 5,
    18: 6,
    19: 2,
    20: 2,
    21: 2,
    22: 3,
    23: 3,
    24: 1,
    25: 4,
    26: 3,
    27: 3,
    28: 2,
    29: 2,
    30: 4,
    31: 1,
    32: 16,
    36: 2,
    37: 2,
    38: 4,
    39: 4,
    40: 1,
}


def architecture_of_gguf(header: GgufHeader) -> Architecture:
    """Return the architecture of the model in a GGUF file. Its tensors tell more than its values, if they are there."""
    name = header.values.get("general.architecture")
    if not isinstance(name, str):
        raise _incomplete(header, "general.architecture")
    if name not in _MODEL_TYPES:
        raise UnknownFamilyError(f"its architecture {name[:40]!r} is not known; known are {', '.join(_MODEL_TYPES)}")
    values = {key.removeprefix(f"{name}."): value for key, value in header.values.items()}
    config = {key: _of_all_blocks(own, values[own]) for key, own in _KEYS.items() if own in values}
    is_mixture = name == "llama" and config.get("num_local_experts", 0) != 0
    table = (header.tensors or {}).get("token_embd.weight", ())
    tokens = values.get("tokenizer.ggml.tokens")
    if len(table) == 2:
        config["vocab_size"] = table[1]
    elif isinstance(tokens, _Skipped):
        config.setdefault("vocab_size", tokens.length)
    config.setdefault("intermediate_size", config.get("moe_intermediate_size"))
    missing = [f"{name}.{_KEYS[key]}" for key in (*_REQUIRED, "intermediate_size", "vocab_size") if not config.get(key)]
    if missing:
        raise _incomplete(header, ", ".join(missing))
    windowed = values.get("attention.sliding_window_pattern")
    if isinstance(windowed, list):
        config["layer_types"] = ["sliding_attention" if it else "full_attention" for it in windowed]
    found = architecture_of_config(
        {
            "num_key_value_heads": None,
            "head_dim": None,
            **config,
            "model_type": "mixtral" if is_mixture else _MODEL_TYPES[name],
        }
    )
    rotary_size = values.get("rope.dimension_count")
    if isinstance(rotary_size, int):
        found = replace(found, rotary_size=rotary_size)
    return _with_tensors(found, header)


def _incomplete(header: GgufHeader, missing: str) -> LanguageError:
    cure = "give a complete file" if header.tensors is not None else "give more of the file: 32 MiB are enough"
    return LanguageError(f"it has no {missing}; {cure}")


def _of_all_blocks(name: str, value: object) -> object:
    if isinstance(value, list):
        if len(set(value)) != 1:
            raise UnknownFamilyError(f"its blocks differ in {name}: such models are not known")
        value = value[0]
    # Numbers of 32 bits have seven digits.
    return float(f"{value:.7g}") if isinstance(value, float) else value


def _with_tensors(found: Architecture, header: GgufHeader) -> Architecture:
    """Return the architecture with what only the names of the tensors tell, unless other files have some of them."""
    tensors = header.tensors or {}
    if header.values.get("split.count", 1) != 1 or "blk.0.attn_norm.weight" not in tensors:
        return found

    def has_any(*names: str) -> bool:
        return any(f"blk.0.{name}" in tensors for name in names)

    return replace(
        found,
        is_tied="output.weight" not in tensors,
        qkv_bias=has_any("attn_q.bias", "attn_qkv.bias"),
        output_bias=has_any("attn_output.bias"),
        inner_bias=has_any("ffn_up.bias", "ffn_up_exps.bias"),
        qk_norm=has_any("attn_q_norm.weight"),
    )
