from typing import Any

import pytest

from dlbricks_tui.language.architecture import Architecture, LanguageError
from dlbricks_tui.language.config_file import architecture_of_config, parsed_config

SIZES = {
    "hidden_size": 256,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 704,
    "vocab_size": 1024,
    "max_position_embeddings": 4096,
}
EXPERTS = {"num_local_experts": 8, "num_experts_per_tok": 2}


def read(family: str, **values: Any) -> Architecture:
    return architecture_of_config({"model_type": family, **SIZES, **values})


def test_sizes_are_those_of_the_file() -> None:
    found = read("llama", rms_norm_eps=1e-5, tie_word_embeddings=True, quantization_config={"bits": 4}, torch_dtype="x")
    assert (found.family, found.hidden, found.blocks, found.inner) == ("llama", 256, 4, 704)
    assert (found.heads, found.kv_heads, found.head_size, found.rotary_size) == (4, 2, 64, 64)
    assert (found.vocabulary, found.positions, found.epsilon, found.is_tied) == (1024, 4096, 1e-5, True)
    assert (found.has_gelu, found.window, found.windowed, found.kinds) == (False, 0, (), (0, 0, 0, 0))


@pytest.mark.parametrize(
    ("family", "values", "expected"),
    [
        ("llama", {"num_key_value_heads": None}, {"kv_heads": 4}),
        ("llama", {"head_dim": None}, {"head_size": 64}),
        ("llama", {"head_dim": 32}, {"head_size": 32, "rotary_size": 32}),
        ("llama", {"attention_bias": True}, {"qkv_bias": True, "output_bias": True, "inner_bias": False}),
        ("llama", {"mlp_bias": True}, {"qkv_bias": False, "inner_bias": True}),
        ("llama", {"sliding_window": 128}, {"window": 0}),
        ("qwen2", {}, {"qkv_bias": True, "output_bias": False, "is_tied": False, "window": 0}),
        ("qwen3", {}, {"head_size": 128, "qk_norm": True, "qkv_bias": False}),
        ("gemma2", {}, {"head_size": 256, "is_tied": True, "has_outer_norms": True, "has_gelu": True}),
        ("gemma2", {}, {"attention_cap": 50, "logit_cap": 30, "embedding_scale": 16, "attention_scale": 1 / 16}),
        ("gemma2", {"final_logit_softcapping": None, "query_pre_attn_scalar": 144}, {"logit_cap": 0, "qk_norm": False}),
        ("gemma3_text", {}, {"qk_norm": True, "attention_cap": 0, "has_outer_norms": True}),
        ("phi3", {"partial_rotary_factor": 0.75, "num_key_value_heads": None}, {"rotary_size": 48, "kv_heads": 4}),
        ("phi3", {"rope_parameters": {"partial_rotary_factor": 0.5}}, {"rotary_size": 32, "epsilon": 1e-5}),
        ("granite", {"logits_scaling": 8, "residual_multiplier": 0.22}, {"logit_scale": 1 / 8, "residual_scale": 0.22}),
        ("granite", {"embedding_multiplier": 12.0}, {"embedding_scale": 12, "attention_scale": 1}),
        ("mixtral", EXPERTS, {"experts": 8, "active_experts": 2, "inner": 704, "window": 0}),
        (
            "qwen3_moe",
            {"num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 96},
            {"experts": 8, "inner": 96, "head_size": 64, "qk_norm": True},
        ),
        ("gpt_oss", EXPERTS, {"has_sinks": True, "qkv_bias": True, "output_bias": True, "inner_bias": True}),
        ("gpt_oss", {"num_local_experts": 8, "experts_per_token": 4}, {"active_experts": 4, "head_size": 64}),
    ],
)
def test_families_differ_in_form_and_defaults(family: str, values: dict[str, Any], expected: dict[str, Any]) -> None:
    found = read(family, **values)
    assert {name: getattr(found, name) for name in expected} == expected


FULL, WINDOWED = "full_attention", "sliding_attention"


@pytest.mark.parametrize(
    ("family", "values", "window", "windowed"),
    [
        ("mistral", {"sliding_window": None}, 0, ""),
        ("mistral", {"sliding_window": 512}, 512, "1111"),
        ("mistral", {"sliding_window": 4096}, 0, ""),
        ("mistral", {"max_position_embeddings": 8192}, 4096, "1111"),
        ("phi3", {"sliding_window": 2047}, 2047, "1111"),
        ("qwen2", {"sliding_window": 512, "max_window_layers": 2}, 0, ""),
        ("qwen2", {"sliding_window": 512, "max_window_layers": 2, "use_sliding_window": True}, 512, "0011"),
        ("qwen3", {"sliding_window": 512, "use_sliding_window": True}, 0, ""),
        ("qwen3", {"sliding_window": 9, "use_sliding_window": True, "layer_types": [FULL, WINDOWED] * 2}, 9, "0101"),
        ("gemma2", {"sliding_window": 512}, 512, "1010"),
        ("gemma2", {"sliding_window": 512, "layer_types": [FULL, FULL, FULL, WINDOWED]}, 512, "0001"),
        ("gemma3_text", {"sliding_window": 512}, 512, "1111"),
        ("gemma3_text", {"sliding_window": 512, "sliding_window_pattern": 3}, 512, "1101"),
        ("gemma3_text", {"sliding_window": 512, "sliding_window_pattern": 1}, 0, ""),
        ("gpt_oss", EXPERTS, 128, "1010"),
    ],
)
def test_each_family_has_its_windows(family: str, values: dict[str, Any], window: int, windowed: str) -> None:
    found = read(family, **values)
    assert (found.window, "".join([str(int(it)) for it in found.windowed])) == (window, windowed)


def test_a_model_that_reads_images_has_its_decoder_inside() -> None:
    # As Google's file of the model with 4 billion parameters: other sizes are defaults.
    decoder = {"model_type": "gemma3_text", "hidden_size": 2560, "intermediate_size": 10_240, "num_hidden_layers": 34}
    found = architecture_of_config({"model_type": "gemma3", "text_config": {**decoder, "sliding_window": 1024}})
    assert (found.heads, found.kv_heads, found.head_size, found.vocabulary) == (8, 4, 256, 262_208)
    assert (found.window, sum(found.windowed), found.is_tied) == (1024, 29, True)
    for name, family in (("qwen2_5_vl_text", "qwen2"), ("qwen3_vl_text", "qwen3")):
        assert architecture_of_config({"text_config": {"model_type": name, **SIZES}}) == read(family)
    # Older files have the decoder outside.
    assert read("qwen2_5_vl", vision_config={"hidden_size": 1280}) == read("qwen2")
    outer = {"tie_word_embeddings": True, "text_config": {"model_type": "mistral", **SIZES}}
    assert architecture_of_config({"model_type": "mistral3", **outer}).is_tied


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "it is not JSON: Expecting value"),
        ("[]", "it is not a JSON object"),
        ("[" * 100_000, "nests too deep"),
        (f'{{"hidden_size": {"9" * 5000}}}', "a number of thousands of digits"),
        ("{}", "it has no model_type; known are llama, qwen2, "),
        (
            '{"model_type": "mamba\\u001b[31m"}',
            r"its family 'mamba\x1b[31m' is not known; known are llama, qwen2, qwen3, mistral, gemma2, gemma3, phi3",
        ),
        ('{"model_type": ["llama"]}', "its family a list is not known"),
        ('{"model_type": "llama"}', "it has no hidden_size, num_hidden_layers, num_attention_heads, vocab_size, "),
    ],
)
def test_other_texts_are_refused_in_one_line(text: str, message: str) -> None:
    with pytest.raises(LanguageError) as error:
        architecture_of_config(parsed_config(text.encode()))
    assert message in str(error.value)
    assert str(error.value).isprintable()
    assert len(str(error.value)) < 300


@pytest.mark.parametrize(
    ("family", "values", "message"),
    [
        ("llama", {"hidden_size": -1}, "hidden_size -1 does not divide by 4 heads"),
        ("llama", {"hidden_size": "256"}, "hidden_size is '256', and has to be a whole number"),
        ("llama", {"hidden_size": 256.0}, "hidden_size is 256.0, and has to be a whole number"),
        ("llama", {"hidden_size": {"a": [1] * 1000}}, "hidden_size is an object, and has to be a whole number"),
        ("llama", {"num_attention_heads": 0}, "the number of heads is 0"),
        ("llama", {"num_attention_heads": 3}, "hidden_size 256 does not divide by 3 heads; state head_dim"),
        ("gemma2", {"num_hidden_layers": 10**18}, "the number of blocks is more than 10"),
        ("llama", {"vocab_size": None, "num_hidden_layers": None}, "it has no num_hidden_layers, vocab_size: add"),
        ("llama", {"rms_norm_eps": float("nan")}, "rms_norm_eps is nan, and has to be a number"),
        ("llama", {"tie_word_embeddings": 1}, "tie_word_embeddings is 1, and has to be true or false"),
        ("llama", {"hidden_act": "relu"}, "its hidden_act 'relu' is not known; known are silu"),
        ("llama", {"hidden_act": []}, "its hidden_act a list is not known"),
        ("phi3", {"partial_rotary_factor": "all"}, "partial_rotary_factor is 'all'"),
        ("gemma2", {"layer_types": ["mamba", []]}, "layer_types has to be a list of full_attention and"),
        ("gemma2", {"layer_types": 3}, "layer_types has to be a list"),
        ("gemma2", {"query_pre_attn_scalar": 0}, "query_pre_attn_scalar is 0, and has to be a number from"),
        ("granite", {"logits_scaling": 0}, "logits_scaling is 0"),
        ("mixtral", {}, "it has no num_local_experts, num_experts_per_tok"),
        (
            "qwen3_moe",
            {**EXPERTS, "moe_intermediate_size": 9, "mlp_only_layers": [1]},
            "some of its blocks have no exp",
        ),
    ],
)
def test_wrong_values_are_refused_in_one_line(family: str, values: dict[str, Any], message: str) -> None:
    with pytest.raises(LanguageError) as error:
        read(family, **({"sliding_window": 512} if family == "gemma2" else {}) | values)
    assert message in str(error.value)
    assert str(error.value).isprintable()
    assert len(str(error.value)) < 200
