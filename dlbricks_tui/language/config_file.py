"""Read Hugging Face's config.json, and the header of a GGUF file, of which only the beginning has to be there.

Missing values get the defaults of the family's configuration in transformers. The package `gguf` maps the whole file
and makes an array of each word of the vocabulary: it refuses a part of a file, takes many times longer, and trusts the
counts in it.
"""

import json
import math
import struct
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from dlbricks_tui.language.architecture import MIXTURES, Architecture, LanguageError, shown_value

Values = Mapping[str, Any]

# - families: the form of blocks by model_type, and values of missing keys. Of a bias that is not named, a key of the
#   config says whether it is there. If the model has a window, blocks are windowed that layer_types names, else with
#   "last" all but the first max_window_layers, and with "most" all but each one of sliding_window_pattern.
# - other_names: those of GGUF, of onnxruntime-genai, and of decoders of models that also read images
# - gguf_keys: the keys of config.json, and where GGUF has their values
_FACTS = json.loads(Path(__file__).with_name("families.json").read_bytes())
_FORMS: Mapping[str, Values] = _FACTS["families"]
_OTHER_NAMES: Mapping[str, str] = _FACTS["other_names"]
GGUF_KEYS: Mapping[str, str] = _FACTS["gguf_keys"]
FAMILY_NAMES = frozenset([*_FORMS, *_OTHER_NAMES])

_MOST_BYTES = 4 * 2**20
_CURE = "give a config.json of Hugging Face, a GGUF file or a folder"
_SILUS, _GELUS = ("silu", "swish"), ("gelu", "gelu_new", "gelu_pytorch_tanh")
_FULL, _WINDOWED = "full_attention", "sliding_attention"
# Fields of an architecture by their keys.
_CAPS = {"attention_cap": "attn_logit_softcapping", "logit_cap": "final_logit_softcapping"}
_MIXTURE_KEYS = {"experts": "num_local_experts", "active_experts": "num_experts_per_tok"}
_SIZE_KEYS = {
    "hidden": "hidden_size",
    "blocks": "num_hidden_layers",
    "heads": "num_attention_heads",
    "kv_heads": "num_key_value_heads",
    "vocabulary": "vocab_size",
    "positions": "max_position_embeddings",
}
# Keys whose null is a value: without it, or computed.
_NULLABLE = frozenset({"num_key_value_heads", "head_dim", "sliding_window", *_CAPS.values()})
# Other names of the same values.
_SYNONYMS = {"num_experts": "num_local_experts", "experts_per_token": "num_experts_per_tok"}


def parsed_config(content: bytes) -> Values:
    if len(content) > _MOST_BYTES:
        raise LanguageError(f"it is too large for a config.json; {_CURE}")
    try:
        values = json.loads(content.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise LanguageError(f"it is not UTF-8 text: {error.reason} at byte {error.start}; {_CURE}") from None
    except json.JSONDecodeError as error:
        raise LanguageError(f"it is not JSON: {error}; {_CURE}") from None
    except (ValueError, RecursionError):
        raise LanguageError(f"it nests too deep, or has a number of thousands of digits; {_CURE}") from None
    if not isinstance(values, dict):
        raise LanguageError(f"it is not a JSON object; {_CURE}")
    return values


def architecture_of_config(values: Values) -> Architecture:
    """Return the architecture in a config.json; of a model that also reads images, that of its decoder."""
    inner = values.get("text_config")
    if isinstance(inner, dict):
        values = {"tie_word_embeddings": values.get("tie_word_embeddings"), **inner}
    name = values.get("model_type")
    kind = _OTHER_NAMES.get(name, name) if isinstance(name, str) else ""
    if kind not in _FORMS:
        unknown = "it has no model_type" if name is None else f"its family {shown_value(name)} is not known"
        raise LanguageError(f"{unknown}; known are {', '.join(form.get('family', it) for it, form in _FORMS.items())}")
    return _ConfigReader(kind, values).architecture()


class _ConfigReader:
    def __init__(self, kind: str, values: Values) -> None:
        given = {_SYNONYMS.get(key, key): it for key, it in values.items() if it is not None or key in _NULLABLE}
        self._form = form = _FORMS[kind]
        self._family: str = form.get("family", kind)
        self._values: Values = {**form["defaults"], **given}
        self._is_gemma: bool = form.get("is_gemma", False)

    def architecture(self) -> Architecture:
        """Return the architecture; its sizes are checked before others are computed from them."""
        form = self._form
        mixture = _MIXTURE_KEYS if self._family in MIXTURES else {}
        keys = {**_SIZE_KEYS, "inner": form.get("inner", "intermediate_size"), **mixture}
        values = self._values
        missing = [it for it in keys.values() if values.get(it) is None and not (it in values and it in _NULLABLE)]
        if missing:
            raise LanguageError(f"it has no {', '.join(missing)}: add what is missing, or give a complete file")
        if mixture and (values.get("mlp_only_layers") or self._size("decoder_sparse_step", 1) != 1):
            raise LanguageError("some of its blocks have no experts (mlp_only_layers, decoder_sparse_step): not known")
        heads, bias = self._size("num_attention_heads"), self._flag("attention_bias")
        head_size, hidden = self._size("head_dim", 0), self._size("hidden_size")
        if not head_size and heads > 0 and hidden % heads:
            raise LanguageError(
                f"hidden_size {shown_value(hidden)} does not divide by {shown_value(heads)} heads; state head_dim"
            )
        head_size = head_size or hidden // max(heads, 1)
        key = "hidden_activation" if values.get("hidden_activation") is not None else "hidden_act"
        activation = values.get(key, "silu")
        if activation not in (*_SILUS, *_GELUS):
            known = ", ".join(_SILUS + _GELUS)
            raise LanguageError(f"its {key} {shown_value(activation)} is not known; known are {known}")
        flags = {"qkv_bias": bias, "output_bias": bias, "inner_bias": self._flag("mlp_bias"), "qk_norm": False}
        numbers: dict[str, Any] = {name: self._size(key, heads) for name, key in keys.items()}
        sizes = Architecture(
            family=self._family,
            head_size=head_size,
            is_tied=self._flag("tie_word_embeddings"),
            has_gelu=activation in _GELUS,
            rotary_size=head_size,
            has_outer_norms=self._is_gemma,
            has_sinks=form.get("has_sinks", False),
            epsilon=self._number("rms_norm_eps", 1e-6),
            **numbers,
            **{name: form.get(name, usual) for name, usual in flags.items()},
        )
        found = self._windows(sizes)
        for place in (values, *(values.get(key) for key in ("rope_parameters", "rope_scaling"))):
            factor = place.get("partial_rotary_factor") if isinstance(place, Mapping) else None
            if factor is not None:
                found["rotary_size"] = int(head_size * _checked("partial_rotary_factor", factor))
                break
        if self._is_gemma:
            found |= {name: self._number(key, 0) for name, key in _CAPS.items()}
            found["embedding_scale"] = math.sqrt(sizes.hidden)
            found["attention_scale"] = self._number("query_pre_attn_scalar", least=1e-9) ** -0.5
        elif self._family == "granite":
            for scale in ("embedding", "residual", "attention"):
                found[f"{scale}_scale"] = self._number(f"{scale}_multiplier", 1)
            found["logit_scale"] = 1 / self._number("logits_scaling", 1, least=1e-9)
        return replace(sizes, **found)

    def _windows(self, sizes: Architecture) -> dict[str, Any]:
        kind, blocks = self._form["windows"], range(sizes.blocks)
        is_off = "use_sliding_window" in self._form["defaults"] and not self._flag("use_sliding_window")
        window = 0 if is_off or kind == "none" else self._size("sliding_window", 0)
        # A window as long as the context hides nothing.
        if not window or window >= sizes.positions:
            return {}
        layers = self._values.get("layer_types")
        if kind == "all":
            windowed = [True for _ in blocks]
        elif layers is not None:
            if not isinstance(layers, list) or any(it not in (_FULL, _WINDOWED) for it in layers):
                raise LanguageError(f"layer_types has to be a list of {_FULL} and {_WINDOWED}; others are not known")
            windowed = [it == _WINDOWED for it in layers]
        elif kind == "last":
            windowed = [block >= self._size("max_window_layers") for block in blocks]
        else:
            windowed = [(block + 1) % max(self._size("sliding_window_pattern"), 1) > 0 for block in blocks]
        return {"window": window, "windowed": tuple(windowed)} if any(windowed) else {}

    def _size(self, key: str, default: int | None = None) -> int:
        value = self._values.get(key)
        value = default if value is None else value
        if not isinstance(value, int) or isinstance(value, bool):
            raise LanguageError(f"{key} is {shown_value(value)}, and has to be a whole number; correct it")
        return value

    def _flag(self, key: str) -> bool:
        value = self._values.get(key, False)
        if not isinstance(value, bool):
            raise LanguageError(f"{key} is {shown_value(value)}, and has to be true or false; correct it")
        return value

    def _number(self, key: str, default: float | None = None, least: float = 0.0) -> float:
        value = self._values.get(key)
        return _checked(key, default if value is None else value, least)


def _checked(key: str, value: object, least: float = 0.0) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool) or not least <= value < 1e9:
        raise LanguageError(f"{key} is {shown_value(value)}, and has to be a number from {least} to 1e9; correct it")
    return float(value)


# The longest known headers have 16 MiB, mostly vocabulary. What lies beyond counts as missing.
MOST_HEADER_BYTES = 32 * 2**20
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
    """Return the architecture of the model in a GGUF file. The names of its tensors tell more than its values."""
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
    if not header.is_complete:
        raise _incomplete(header, "names of tensors, which tell if the table is the head, too")
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
    # Files that were put together again have 0 parts.
    is_whole = header.values.get("split.count", 1) in (0, 1)
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
