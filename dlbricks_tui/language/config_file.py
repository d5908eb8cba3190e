"""Read Hugging Face's config.json. Missing values get the defaults of the family's configuration in transformers."""

import json
import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from dlbricks_tui.language.architecture import MIXTURES, Architecture, LanguageError, shown_value

Values = Mapping[str, Any]

# - families: the form of blocks by model_type, and values of missing keys. Of a bias that is not named, a key of the
#   config says whether it is there. If the model has a window, blocks are windowed that layer_types names, else with
#   "last" all but the first max_window_layers, and with "most" all but each one of sliding_window_pattern.
# - other_names: those of GGUF and of onnxruntime-genai
# - gguf_keys: the keys of config.json, and where GGUF has their values
_FACTS = json.loads(Path(__file__).with_name("families.json").read_bytes())
_FORMS: Mapping[str, Values] = _FACTS["families"]
_OTHER_NAMES: Mapping[str, str] = _FACTS["other_names"]
GGUF_KEYS: Mapping[str, str] = _FACTS["gguf_keys"]
FAMILY_NAMES = frozenset([*_FORMS, *_OTHER_NAMES])

_MOST_BYTES = 4 * 2**20
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
        raise LanguageError("it is too large for a config.json; give one of Hugging Face, a GGUF file or a folder")
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
