"""Read the header of a GGUF file, of which only the beginning has to be there.

The package `gguf` maps the whole file and makes an array of each word of the vocabulary: it refuses a part of a file,
takes many times longer, and trusts the counts in it.
"""

import struct
from contextlib import suppress
from dataclasses import replace
from typing import Any

from dlbricks_tui.language.architecture import Architecture, LanguageError
from dlbricks_tui.language.config_file import FAMILY_NAMES, GGUF_KEYS, architecture_of_config

# The longest known headers have 16 MiB, mostly vocabulary. What lies beyond counts as missing.
MOST_BYTES = 32 * 2**20
_MOST_VALUES, _MOST_TENSORS, _MOST_AXES = 1000, 100_000, 8
_LONGEST_KEPT = 1024

_STRING, _ARRAY = 8, 9
# The forms of numbers, by their type in the file.
_NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
# Every model has the first of these keys.
_REQUIRED = tuple(GGUF_KEYS)[:6]


class GgufHeader:
    """The values of a GGUF file by name, and the sizes of its tensors, as far as the beginning of the file tells."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._at = 4
        # Of a list of texts, or of many numbers, a range of its length.
        self.values: dict[str, Any] = {}
        self.tensors: dict[str, tuple[int, ...]] = {}
        # The part of the file does not end before.
        self.is_complete = False
        if content[:4] != b"GGUF":
            raise LanguageError("it is not a GGUF file: it does not begin with GGUF")
        with suppress(EOFError):
            self._read()

    def _read(self) -> None:
        version = self._number("I")
        if version not in (2, 3):
            raise LanguageError(f"its GGUF version is {version:,}: only 2 and 3, in little-endian order, are read")
        tensors, values = self._number("Q"), self._number("Q")
        if tensors > _MOST_TENSORS or values > _MOST_VALUES:
            raise LanguageError(f"it is a broken GGUF file: it claims {values:,} values and {tensors:,} tensors")
        for _ in range(values):
            self._read_value(self._text())
        for _ in range(tensors):
            name, axes = self._text(), self._number("I")
            if axes > _MOST_AXES:
                raise LanguageError(f"it is a broken GGUF file: it has a tensor of {axes:,} axes")
            self.tensors[name] = self._numbers("Q", axes)
            # Its type, and its place in the file.
            self._skip(12)
        self.is_complete = True

    def _read_value(self, name: str) -> None:
        values, kind = self.values, self._number("I")
        if kind == _STRING:
            values[name] = self._text()[:_LONGEST_KEPT]
        elif kind != _ARRAY:
            values[name] = self._number(_form(kind))
        else:
            kind, length = self._number("I"), self._number("Q")
            # The length is known even where the items are missing.
            values[name] = range(length)
            if kind == _STRING:
                self._skip_texts(length)
            elif length <= _LONGEST_KEPT:
                values[name] = list(self._numbers(_form(kind), length))
            else:
                self._skip(struct.calcsize(_form(kind)) * length)

    def _number(self, form: str) -> Any:
        return self._numbers(form, 1)[0]

    def _numbers(self, form: str, count: int) -> tuple[Any, ...]:
        return struct.unpack_from(f"<{count}{form}", self._content, self._skip(struct.calcsize(f"<{form}") * count))

    def _text(self) -> str:
        start = self._skip(self._number("Q"))
        return self._content[start : self._at].decode(errors="replace")

    def _skip_texts(self, count: int) -> None:
        # A vocabulary has hundred thousands.
        at, last, length_at = self._at, len(self._content) - 8, struct.Struct("<Q").unpack_from
        for _ in range(count):
            if at > last:
                raise EOFError
            at += 8 + length_at(self._content, at)[0]
        self._skip(at - self._at)

    def _skip(self, length: int) -> int:
        """Return the place before the skipped part; raise EOFError if the content ends within it."""
        start = self._at
        if length > len(self._content) - start:
            raise EOFError
        self._at += length
        return start


def _form(kind: int) -> str:
    if kind not in _NUMBERS:
        raise LanguageError(f"it is a broken GGUF file: it has a value of type {kind:,}")
    return _NUMBERS[kind]


def architecture_of_gguf(header: GgufHeader) -> Architecture:
    """Return the architecture of the model in a GGUF file. Its tensors tell more than its values, if they are there."""
    name = header.values.get("general.architecture")
    if not isinstance(name, str):
        raise _incomplete(header, "general.architecture")
    values = {key.removeprefix(f"{name}."): value for key, value in header.values.items()}
    config = {key: _of_all_blocks(own, values[own]) for key, own in GGUF_KEYS.items() if own in values}
    config.setdefault("intermediate_size", config.get("moe_intermediate_size"))
    # Mixtral is written as llama, and so are Mistral's models.
    config["model_type"] = "mixtral" if name == "llama" and config.get("num_local_experts") else name
    table, tokens = header.tensors.get("token_embd.weight", ()), values.get("tokenizer.ggml.tokens")
    if len(table) == 2:
        config["vocab_size"] = table[1]
    elif isinstance(tokens, range):
        config.setdefault("vocab_size", tokens.stop)
    windowed = values.get("attention.sliding_window_pattern")
    if isinstance(windowed, list):
        config["layer_types"] = ["sliding_attention" if it else "full_attention" for it in windowed]
    missing = [f"{name}.{GGUF_KEYS[key]}" for key in _REQUIRED if config.get(key) is None]
    if missing and name in FAMILY_NAMES:
        raise _incomplete(header, ", ".join(missing))
    found = architecture_of_config({"num_key_value_heads": None, "head_dim": None, **config})
    rotary_size = values.get("rope.dimension_count")
    return _with_tensors(replace(found, rotary_size=rotary_size) if isinstance(rotary_size, int) else found, header)


def _incomplete(header: GgufHeader, missing: str) -> LanguageError:
    cure = "give a complete file" if header.is_complete else "give more of the file: 32 MiB are enough"
    return LanguageError(f"it has no {missing}; {cure}")


def _of_all_blocks(name: str, value: object) -> object:
    if isinstance(value, list) and value:
        if len(set(value)) != 1:
            raise LanguageError(f"its blocks differ in {name}: such models are not known")
        value = value[0]
    # Numbers of 32 bits have seven digits.
    return float(f"{value:.7g}") if isinstance(value, float) else value


def _with_tensors(found: Architecture, header: GgufHeader) -> Architecture:
    """Return the architecture with what only the names of all tensors tell."""
    is_whole = header.is_complete and header.values.get("split.count", 1) == 1
    if not is_whole or "blk.0.attn_norm.weight" not in header.tensors:
        return found
    names = {it.removeprefix("blk.0.") for it in header.tensors}
    return replace(
        found,
        is_tied="output.weight" not in names,
        qkv_bias=not names.isdisjoint({"attn_q.bias", "attn_qkv.bias"}),
        output_bias="attn_output.bias" in names,
        inner_bias=not names.isdisjoint({"ffn_up.bias", "ffn_up_exps.bias"}),
        qk_norm="attn_q_norm.weight" in names,
    )
