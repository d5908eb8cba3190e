from dataclasses import replace

import pytest

from dlbricks_tui.language.architecture import Architecture, LanguageError

LLAMA = Architecture(
    family="llama",
    hidden=2048,
    blocks=16,
    heads=32,
    kv_heads=8,
    head_size=64,
    inner=8192,
    vocabulary=128_256,
    positions=131_072,
    is_tied=True,
    has_gelu=False,
    qkv_bias=False,
    output_bias=False,
    inner_bias=False,
    qk_norm=False,
    rotary_size=64,
)


def test_all_weights_are_counted() -> None:
    assert LLAMA.parameters == LLAMA.active_parameters == 1_235_814_400
    assert replace(LLAMA, is_tied=False).parameters - LLAMA.parameters == 128_256 * 2048
    assert replace(LLAMA, qk_norm=True).parameters - LLAMA.parameters == 16 * 2 * 64
    assert replace(LLAMA, has_outer_norms=True).parameters - LLAMA.parameters == 16 * 2 * 2048
    assert replace(LLAMA, qkv_bias=True).parameters - LLAMA.parameters == 16 * (2048 + 2 * 512)
    assert replace(LLAMA, output_bias=True).parameters - LLAMA.parameters == 16 * 2048
    assert replace(LLAMA, inner_bias=True).parameters - LLAMA.parameters == 16 * (2 * 8192 + 2048)


def test_idle_experts_are_not_active() -> None:
    mixture = replace(LLAMA, family="mixtral", experts=8, active_experts=2)
    assert mixture.parameters - LLAMA.parameters == 16 * (7 * 3 * 2048 * 8192 + 8 * 2048)
    assert mixture.parameters - mixture.active_parameters == 16 * 6 * 3 * 2048 * 8192


def test_blocks_of_equal_attention_are_of_one_kind() -> None:
    assert LLAMA.kinds == (0,) * 16
    assert replace(LLAMA, window=512, windowed=(True, True, False, True) * 4).kinds == (0, 0, 1, 0) * 4


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"hidden": 0}, "the hidden size is 0, and has to be a whole number from 1 to 131,072"),
        ({"hidden": True}, "the hidden size is True"),
        ({"inner": 2.5}, "the inner size is 2.5"),
        ({"blocks": 10**18}, "the number of blocks is more than 10"),
        ({"heads": -(10**5000)}, "the number of heads is less than -10"),
        ({"kv_heads": 7}, "key-value heads is 7, and has to divide the 32 heads"),
        ({"rotary_size": 66}, "the rotary size is 66, and has to be even, at most 64"),
        ({"rotary_size": 63}, "the rotary size is 63"),
        ({"window": 512}, "the window is 512, and 0 blocks are windowed"),
        ({"windowed": (True,) * 16}, "the window is 0, and 16 blocks are windowed"),
        ({"window": 512, "windowed": (True,)}, "1 blocks have a kind of attention, and all 16"),
        ({"experts": 8, "active_experts": 2}, "the number of experts is 8, which does not suit the family llama"),
        ({"family": "mixtral"}, "the number of experts is 0"),
        (
            {"family": "mixtral", "experts": 8, "active_experts": 9},
            "active experts is 9, and has to be from 1 to 8",
        ),
        ({"hidden": 2**17, "inner": 2**20, "blocks": 1024}, "the number of parameters is 42"),
    ],
)
def test_impossible_sizes_are_refused_in_one_line(sizes: dict[str, object], message: str) -> None:
    with pytest.raises(LanguageError) as error:
        replace(LLAMA, **sizes)  # type: ignore[arg-type]
    assert message in str(error.value)
    assert str(error.value).endswith("; correct the sizes of the model")
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 200
