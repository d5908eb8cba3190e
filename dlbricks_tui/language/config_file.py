"""Read Hugging Face's config.json. Missing values get the defaults of the family's configuration in transformers."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from dlbricks_tui.language.architecture import MIXTURES, Architecture, LanguageError, shown_value

Values = Mapping[str, object]


def parsed_config(content: bytes) -> Values:
    try:
        values = json.loads(content.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise LanguageError(f"it is not UTF-8 text: {error.reason} at byte {error.start}") from None
    except json.JSONDecodeError as error:
        raise LanguageError(f"it is not JSON: {error}; give a config.json of Hugging Face") from None
    except (ValueError, RecursionError):
        raise LanguageError("it nests too deep, or has a number of thousands of digits") from None
    if not isinstance(values, dict):
        raise LanguageError("it is not a JSON object; give a config.json of Hugging Face")
    return values


def architecture_of_config(values: Values) -> Architecture:
    """Return the architecture in a config.json; of a model that also reads images, that of its decoder."""
    inner = values.get("text_config")
    if isinstance(inner, dict):
        values = {"tie_word_embeddings": values.get("tie_word_embeddings"), **inner}
    name = values.get("model_type")
    form = _FORMS.get(_OTHER_NAMES.get(name, name)) if isinstance(name, str) else None
    if form is None:
        unknown = "it has no model_type" if name is None else f"its family {shown_value(name)} is not known"
        raise LanguageError(f"{unknown}; known are {', '.join(_FORMS)}")
    return _ConfigReader(form, values).architecture()


@dataclass(frozen=True, slots=True)
class _Form:
    """The form of a family's blocks. None for a bias: a key of the file says so."""

    family: str
    # The blocks that are windowed if the model has a window. Those that layer_types names, else:
    # - last: all but the first max_window_layers
    # - most: all but each second one, or as sliding_window_pattern says
    windows: Literal["none", "all", "last", "most"]
    defaults: Values = field(default_factory=dict)
    qkv_bias: bool | None = None
    output_bias: bool | None = None
    inner_bias: bool | None = False


_GEMMA: Values = {
    "head_dim": 256,
    "hidden_act": "gelu_pytorch_tanh",
    "tie_word_embeddings": True,
    "query_pre_attn_scalar": 256,
    "sliding_window": 4096,
}
_GEMMA2: Values = {**_GEMMA, "attn_logit_softcapping": 50.0, "final_logit_softcapping": 30.0}
# Google's files of the larger models leave out sizes that are defaults.
_GEMMA3: Values = {
    **_GEMMA,
    "sliding_window_pattern": 6,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "vocab_size": 262_208,
    "max_position_embeddings": 131_072,
}
_QWEN: Values = {"use_sliding_window": False, "sliding_window": 4096, "max_window_layers": 28}
_GPT_OSS: Values = {"head_dim": 64, "sliding_window": 128, "rms_norm_eps": 1e-5, "attention_bias": True}
_OWN_KEYS: Values = {"num_key_value_heads": None}

# By model_type.
_FORMS: Mapping[str, _Form] = {
    "llama": _Form("llama", "none", _OWN_KEYS, inner_bias=None),
    "qwen2": _Form("qwen2", "last", _QWEN, True, False),
    "qwen3": _Form("qwen3", "last", {**_QWEN, "head_dim": 128}),
    "mistral": _Form("mistral", "all", {"sliding_window": 4096}, False, False),
    "gemma2": _Form("gemma2", "most", _GEMMA2),
    "gemma3_text": _Form("gemma3", "most", _GEMMA3),
    "phi3": _Form("phi3", "all", {**_OWN_KEYS, "rms_norm_eps": 1e-5}, False, False),
    "granite": _Form("granite", "none", {**_OWN_KEYS, "attention_multiplier": 1.0}, inner_bias=None),
    "qwen3_moe": _Form("qwen3_moe", "all", _QWEN),
    "mixtral": _Form("mixtral", "all", {"rms_norm_eps": 1e-5}, False, False),
    "gpt_oss": _Form("gpt_oss", "most", _GPT_OSS, inner_bias=True),
}
# Names of GGUF and of onnxruntime-genai.
_OTHER_NAMES = {"gemma3": "gemma3_text", "gpt-oss": "gpt_oss", "gptoss": "gpt_oss", "qwen3moe": "qwen3_moe"}
FAMILY_NAMES = frozenset([*_FORMS, *_OTHER_NAMES])

_WITH_QK_NORM = ("qwen3", "qwen3_moe", "gemma3")
_SILUS, _GELUS = ("silu", "swish"), ("gelu", "gelu_new", "gelu_pytorch_tanh")
_FULL, _WINDOWED = "full_attention", "sliding_attention"
_CAPS = ("attn_logit_softcapping", "final_logit_softcapping")
# Keys whose null is a value: without it, or computed.
_NULLABLE = frozenset({"num_key_value_heads", "head_dim", "sliding_window", *_CAPS})
_EXPERTS, _ACTIVE_EXPERTS = "num_local_experts", "num_experts_per_tok"
# Other names of the same values.
_SYNONYMS = {"num_experts": _EXPERTS, "experts_per_token": _ACTIVE_EXPERTS}
_SIZES = ("hidden_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads")
_LENGTHS = ("vocab_size", "max_position_embeddings")


class _ConfigReader:
    def __init__(self, form: _Form, values: Values) -> None:
        given = {_SYNONYMS.get(key, key): it for key, it in values.items() if it is not None or key in _NULLABLE}
        self._form = form
        self._values: Values = {**form.defaults, **given}
        self._is_gemma = form.family.startswith("gemma")

    def architecture(self) -> Architecture:
        """Return the architecture; its sizes are checked before others are computed from them."""
        form, family = self._form, self._form.family
        inner = "moe_intermediate_size" if family == "qwen3_moe" else "intermediate_size"
        mixture = (_EXPERTS, _ACTIVE_EXPERTS) if family in MIXTURES else ()
        needed = (*_SIZES, *_LENGTHS, inner, *mixture)
        missing = [it for it in needed if self._values.get(it) is None and not (it in self._values and it in _NULLABLE)]
        if missing:
            raise LanguageError(f"it has no {', '.join(missing)}: add what is missing, or give a complete file")
        if mixture and (self._values.get("mlp_only_layers") or self._size("decoder_sparse_step", 1) != 1):
            raise LanguageError("some of its blocks have no experts (mlp_only_layers, decoder_sparse_step): not known")
        heads = self._size("num_attention_heads")
        head_size = self._head_size(heads)
        bias = self._flag("attention_bias")
        caps = [self._number(it, 0) if self._is_gemma else 0.0 for it in _CAPS]
        experts, active = (self._size(it) for it in mixture) if mixture else (0, 0)
        sizes = Architecture(
            family=family,
            hidden=self._size("hidden_size"),
            blocks=self._size("num_hidden_layers"),
            heads=heads,
            kv_heads=self._size("num_key_value_heads", heads),
            head_size=head_size,
            inner=self._size(inner),
            vocabulary=self._size("vocab_size"),
            positions=self._size("max_position_embeddings"),
            is_tied=self._flag("tie_word_embeddings"),
            has_gelu=self._has_gelu(),
            qkv_bias=bias if form.qkv_bias is None else form.qkv_bias,
            output_bias=bias if form.output_bias is None else form.output_bias,
            inner_bias=self._flag("mlp_bias") if form.inner_bias is None else form.inner_bias,
            qk_norm=family in _WITH_QK_NORM,
            rotary_size=head_size,
            attention_cap=caps[0],
            logit_cap=caps[1],
            has_outer_norms=self._is_gemma,
            has_sinks=family == "gpt_oss",
            experts=experts,
            active_experts=active,
            epsilon=self._number("rms_norm_eps", 1e-6),
        )
        found = self._with_windows(replace(sizes, rotary_size=self._rotary_size(sizes.head_size)))
        if self._is_gemma:
            scale = self._number("query_pre_attn_scalar", least=1e-9) ** -0.5
            return replace(found, embedding_scale=math.sqrt(found.hidden), attention_scale=scale)
        if family != "granite":
            return found
        return replace(
            found,
            embedding_scale=self._number("embedding_multiplier", 1),
            residual_scale=self._number("residual_multiplier", 1),
            attention_scale=self._number("attention_multiplier", 1),
            logit_scale=1 / self._number("logits_scaling", 1, least=1e-9),
        )

    def _with_windows(self, found: Architecture) -> Architecture:
        is_off = "use_sliding_window" in self._form.defaults and not self._flag("use_sliding_window")
        window = 0 if is_off or self._form.windows == "none" else self._size("sliding_window", 0)
        # A window as long as the context hides nothing.
        if not window or window >= found.positions:
            return found
        windowed = self._windowed(found.blocks)
        return replace(found, window=window, windowed=windowed) if any(windowed) else found

    def _windowed(self, blocks: int) -> tuple[bool, ...]:
        if self._form.windows == "all":
            return (True,) * blocks
        kinds = self._values.get("layer_types")
        if kinds is not None:
            if not isinstance(kinds, list) or any(it not in (_FULL, _WINDOWED) for it in kinds):
                raise LanguageError(f"layer_types has to be a list of {_FULL} and {_WINDOWED}; others are not known")
            return tuple([it == _WINDOWED for it in kinds])
        if self._form.windows == "last":
            first = self._size("max_window_layers")
            return tuple([block >= first for block in range(blocks)])
        every = max(self._size("sliding_window_pattern"), 1) if self._form.family == "gemma3" else 2
        return tuple([(block + 1) % every > 0 for block in range(blocks)])

    def _head_size(self, heads: int) -> int:
        stated, hidden = self._size("head_dim", 0), self._size("hidden_size")
        if not stated and heads > 0 and hidden % heads:
            raise LanguageError(
                f"hidden_size {shown_value(hidden)} does not divide by {shown_value(heads)} heads; state head_dim"
            )
        return stated or hidden // max(heads, 1)

    def _rotary_size(self, head_size: int) -> int:
        for place in (self._values, *(self._values.get(key) for key in ("rope_parameters", "rope_scaling"))):
            factor = place.get("partial_rotary_factor") if isinstance(place, Mapping) else None
            if factor is not None:
                return int(head_size * _checked("partial_rotary_factor", factor))
        return head_size

    def _has_gelu(self) -> bool:
        key = "hidden_activation" if self._values.get("hidden_activation") is not None else "hidden_act"
        name = self._values.get(key, "silu")
        if name not in (*_SILUS, *_GELUS):
            raise LanguageError(f"its {key} {shown_value(name)} is not known; known are {', '.join(_SILUS + _GELUS)}")
        return name in _GELUS

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
