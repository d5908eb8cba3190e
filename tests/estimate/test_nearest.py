"""Features of bricks, and predictions from the nearest measured ones on a simulated host."""

import json
import math
import random
from dataclasses import replace
from functools import cache
from itertools import chain

import numpy as np
import pytest

from dlbricks_tui.estimate import nearest as training
from dlbricks_tui.estimate.features import Features, Sizes, features_of
from dlbricks_tui.estimate.knowledge import Unmeasured
from dlbricks_tui.estimate.nearest import _NEAREST, Example, NearestBricks, Roofline, nearest, train
from dlbricks_tui.models.kinds import Kind
from tests.estimate.simulated import a_brick, conv, example, form, latency_ms, linear, models, relu


def of(canonical: str, context: str = "plain") -> Features:
    found = features_of(canonical, context)
    assert found is not None
    return found


def sizes(canonical: str, context: str = "plain") -> Sizes:
    return Sizes(*(round(math.exp(size), 6) for size in of(canonical, context).sizes))


def test_a_convolution_multiplies_each_weight_at_each_point_of_its_result() -> None:
    found = sizes(form("conv", [2, 64, 56, 56], [[128, 64, 3, 3]], kernel=[3, 3], stride=[2, 2], pads=[1, 1, 1, 1]))
    assert found.positions == 2 * 28 * 28
    assert found.arithmetic == 2 * 28 * 28 * 128 * 64 * 9
    assert (found.bytes_read, found.bytes_written) == (4 * 2 * 64 * 56 * 56, 4 * 2 * 128 * 28 * 28)
    assert (found.channels_read, found.channels_written, found.kernel, found.stride, found.groups) == (64, 128, 9, 4, 1)


def test_the_spelling_of_onnx_gives_the_same_sizes() -> None:
    neutral = form("conv", [1, 64, 56, 56], [[64, 64, 3, 3]], kernel=[3, 3], stride=[2, 2], pads=[1, 1, 1, 1])
    theirs = form(
        "onnx.com.microsoft.nchwc.Conv",
        [1, 64, 56, 56],
        [[64, 64, 3, 3]],
        kernel_shape=[3, 3],
        strides=[2, 2],
        pads=[1, 1, 1, 1],
        group=1,
    )
    assert sizes(theirs) == sizes(neutral)


@pytest.mark.parametrize(("op", "kernel"), [("QLinearConv", [[128, 64, 3, 3]]), ("QLinearAveragePool", [])])
def test_the_channels_of_an_image_may_be_its_last_axis(op: str, kernel: list[list[int]]) -> None:
    window = {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}
    last = form(f"onnx.com.microsoft.{op}", [2, 56, 56, 64], kernel, **window, channels_last=1)
    assert sizes(last) == sizes(form(f"onnx.com.microsoft.{op}", [2, 64, 56, 56], kernel, **window))


def test_a_depthwise_convolution_is_another_operator() -> None:
    found = of(form("conv", [1, 64, 28, 28], [[64, 1, 3, 3]], kernel=[3, 3], groups=64))
    assert (found.operator, found.kind) == ("depthwise conv", Kind.CONVOLUTION)
    assert math.exp(found.sizes[Sizes._fields.index("groups")]) == pytest.approx(64)


def test_products_multiply_rows_and_columns() -> None:
    found = sizes(linear(512, 1000))
    assert (found.arithmetic, found.channels_read, found.channels_written) == (512_000, 512, 1000)
    # Axes that a linear layer flattens are read channels.
    assert sizes(form("linear", [1, 512, 7, 7], [[4096, 25088]])).arithmetic == 4096 * 25088
    # A product of two tensors multiplies them.
    document = json.loads(form("onnx.MatMul", [1, 12, 64, 32]))
    document["data"].append([[1, 12, 32, 64], "float32"])
    assert sizes(json.dumps(document)).arithmetic == 12 * 64 * 32 * 64
    # A recurrence multiplies all of its weights in each step.
    found = sizes(form("onnx.LSTM", [7, 2, 16], [[1, 32, 16], [1, 32, 8]]))
    assert (found.arithmetic, found.positions, found.channels_read) == (14 * 32 * 24, 14, 16)


def test_a_fused_convolution_is_one_with_traits() -> None:
    nodes = [
        "variable",
        "variable",
        ["conv", [["kernel", [3, 3]]], [[0, 0], [1, 0]], []],
        ["relu", [], [[2, 0]], []],
        [[3, 0]],
    ]
    document = json.loads(conv(64, 64, 28))
    document["operators"] = [{"op": "mxnet._sg_mkldnn_conv", "inner": [json.dumps(nodes)], "inputs": []}]
    found = of(json.dumps(document))
    assert (found.operator, "with relu" in found.traits) == ("conv", True)


def test_channels_that_fill_no_block_are_traits() -> None:
    assert "writes part of a small block" in of(conv(64, 36, 28)).traits
    assert "writes part of a block" in of(conv(64, 24, 28)).traits
    assert not {trait for trait in of(conv(64, 32, 28)).traits if "block" in trait}


def test_a_pooling_writes_fewer_elements_and_an_embedding_reads_the_rows_that_are_looked_up() -> None:
    found = sizes(form("max_pool", [1, 64, 56, 56], kernel=[2, 2], stride=[2, 2]))
    assert found.bytes_written == 4 * 64 * 28 * 28
    assert sizes(form("global_mean_pool", [1, 64, 56, 56])).bytes_written == 4 * 64
    assert sizes(form("embedding", [1, 16], [[30_000, 512]])).bytes_of_weights == 4 * 16 * 512


@pytest.mark.parametrize(
    "canonical",
    [
        form("conv", None, [[64, 64, 3, 3]]),
        json.dumps({"data": [], "level": "fused", "operators": [], "version": 1, "weights": []}),
        form("conv", [10**200, 10**200, 7, 7], [[10**200, 10**200, 3, 3]], kernel=[3, 3]),
    ],
    ids=["no shape", "no operator", "impossible sizes"],
)
def test_a_brick_without_possible_sizes_has_no_features(canonical: str) -> None:
    assert features_of(canonical, "plain") is None


@pytest.mark.parametrize(
    ("shape", "weight", "params"),
    [
        ([1, 0, 7, 7], [0, 0, 3, 3], {"kernel": [3, 3]}),
        ([], [], {}),
        ([1, 3, 7, 7], [8, 3, 3, 3], {"kernel": "x", "stride": [0, 0], "pads": [-1, -1, -1, -1]}),
        ([1, 3, 7, 7], [8, 3, 3, 3], {"kernel": [99, 99], "dilation": [9, 9]}),
    ],
)
@pytest.mark.parametrize(
    "op", ["conv", "conv_transpose", "linear", "max_pool", "reduce_mean", "embedding", "onnx.LSTM", "onnx.Attention"]
)
def test_odd_shapes_and_parameters_have_some_size(
    op: str, shape: list[int], weight: list[int], params: dict[str, object]
) -> None:
    found = features_of(form(op, shape, [weight] if weight else [], **params), "plain")
    assert found is not None
    assert all(math.isfinite(size) and size >= 0 for size in found.sizes)


# Queries of 384 tokens for 12 heads of 64 numbers; MXNet has the tokens first.
QUERIES, CACHE, INTERLEAVED = [1, 384, 768], [1, 2, 500, 64], [384, 1, 3 * 768]


@pytest.mark.parametrize(
    ("op", "data", "weights", "arithmetic"),
    [
        ("onnx.MultiHeadAttention", [QUERIES] * 3, [], 2 * 384 * 384 * 768),
        ("onnx.Attention", [[1, 12, 384, 64], [1, 12, 100, 64]], [], 2 * 384 * 384 * 768),
        ("onnx.com.microsoft.Attention", [QUERIES], [[768, 3 * 768]], 2 * 384 * 384 * 768 + 384 * 768 * 3 * 768),
        # Queries, keys and values of 12 + 2 * 2 heads in one tensor.
        ("onnx.com.microsoft.GroupQueryAttention", [[1, 1, 1024], CACHE, CACHE, [1]], [], 2 * 500 * 768),
        ("mxnet._contrib_interleaved_matmul_selfatt_qk", [INTERLEAVED], [], 384 * 384 * 768),
        ("mxnet._contrib_interleaved_matmul_selfatt_valatt", [INTERLEAVED, [12, 384, 384]], [], 384 * 384 * 768),
        ("mxnet._contrib_interleaved_matmul_encdec_qk", [[9, 1, 768], [384, 1, 2 * 768]], [], 9 * 384 * 768),
        ("mxnet._contrib_interleaved_matmul_encdec_valatt", [[384, 1, 2 * 768], [12, 9, 384]], [], 9 * 384 * 768),
    ],
)
def test_attention_multiplies_queries_by_keys_and_scores_by_values(
    op: str, data: list[list[int]], weights: list[list[int]], arithmetic: int
) -> None:
    canonical = {
        "data": [[shape, "float32"] for shape in data],
        "operators": [{"op": op, "params": {"num_heads": 12, "heads": 12}}],
        "weights": [[shape, "float32"] for shape in weights],
    }
    assert sizes(json.dumps(canonical)).arithmetic == arithmetic
    assert of(json.dumps(canonical)).multiplies


def test_a_mask_that_is_sliced_is_no_matrix_to_multiply_by() -> None:
    slicing = {"op": "onnx.Slice", "inputs": [["weight", 0, 0]]}
    product = {"op": "onnx.MatMul", "inputs": [["data", 0, 0], ["data", 1, 0]]}
    canonical = {
        "data": [[[1, 6, 129, 64], "float32"], [[1, 6, 1, 64], "float32"]],
        "operators": [product, slicing],
        "weights": [[[1, 1, 1024, 1024], "bool"]],
    }
    found = sizes(json.dumps(canonical))
    assert (found.arithmetic, found.bytes_of_weights) == (6 * 129 * 64, 1)


def test_a_rotary_embedding_is_paid_for_each_of_its_elements() -> None:
    assert sizes(form("onnx.com.microsoft.RotaryEmbedding", [1, 384, 768], [])).arithmetic == 384 * 768


@cache
def trained(confidence: float = 0.95, noise: float = 0.05, host: float = 0.0, seed: int = 1, count: int = 40):  # type: ignore[no-untyped-def]
    return train(chain.from_iterable(models(seed, count, noise=noise, host=host)), confidence)


def test_bricks_are_predicted_by_the_law_of_their_operator() -> None:
    chance = random.Random(2)
    wanted = [a_brick(chance) for _ in range(200)]
    errors = [
        abs(found.value_ms / latency_ms(brick) - 1)
        for brick, found in zip(wanted, trained().predict(wanted), strict=True)
        if found is not None
    ]
    assert len(errors) == len(wanted)
    assert sorted(errors)[len(errors) // 2] < 0.05
    assert sum(error < 0.2 for error in errors) > 0.95 * len(errors)


@pytest.mark.parametrize(("confidence", "noise"), [(0.9, 0.2), (0.95, 0.05)])
def test_intervals_of_bricks_hold_as_often_as_stated(confidence: float, noise: float) -> None:
    predictor = trained(confidence, noise)
    chance = random.Random(3)
    wanted = [a_brick(chance) for _ in range(1000)]
    held = [
        found.low_ms <= latency_ms(brick, chance, noise) <= found.high_ms
        for brick, found in zip(wanted, predictor.predict(wanted), strict=True)
        if found is not None
    ]
    assert len(held) == len(wanted)
    assert confidence - 0.03 <= sum(held) / len(held) <= confidence + 0.045


@pytest.mark.parametrize(
    "brick", [form("lrn", [1, 64, 28, 28]), form("relu", None), conv(64 * 1024, 64 * 1024, 3)], ids=lambda _: ""
)
def test_an_unknown_operator_no_shape_and_a_brick_unlike_all_measured_ones_are_not_predicted(brick: str) -> None:
    wanted = [Unmeasured(brick, "plain")]
    assert trained().predict(wanted) == train([]).predict(wanted) == [None]


def test_four_measured_bricks_of_an_operator_are_too_few() -> None:
    chance = random.Random(4)
    bricks = [Unmeasured(relu(channels, 28), "plain") for channels in (16, 32, 64, 96, 128)]
    examples = [example(brick, latency_ms(brick, chance), str(number)) for number, brick in enumerate(bricks)]
    wanted = [Unmeasured(relu(48, 28), "plain")]
    assert train(examples[:4]).predict(wanted) == [None]
    assert train(examples).predict(wanted) != [None]


def test_an_interval_is_wider_the_less_a_brick_is_like_measured_ones() -> None:
    predictor = trained()

    def factor(brick: str) -> float:
        (found,) = predictor.predict([Unmeasured(brick, "plain")])
        assert found is not None
        return float(found.high_ms / found.value_ms)

    assert factor(conv(64, 64, 28)) < factor(conv(512, 512, 28)) < factor(conv(512, 512, 28, kernel=7))


@pytest.mark.parametrize(("apart", "counts"), [(10.0, "alike"), (1.5, "all")])
def test_of_two_vague_predictions_the_narrower_one_counts(apart: float, counts: str) -> None:
    brick, usual = Unmeasured(relu(80, 28), "plain"), trained().operators["relu"]
    (found,) = trained().predict([brick])
    assert found is not None
    vague = replace(usual, width=usual.width * math.log(30.0) / math.log(found.high_ms / found.value_ms))
    others = {
        str(n): replace(usual, roofline=Roofline(*(apart**n * rate for rate in usual.roofline))) for n in range(5)
    }
    predictor = replace(trained(), operators={**others, "relu": vague})
    (told,) = predictor.predict([brick])
    assert told is not None
    if counts == "alike":
        assert told.high_ms / told.value_ms == pytest.approx(30.0)
    else:
        assert [told] == predictor.from_all([brick])


def test_the_layout_of_the_inputs_counts() -> None:
    slow, fast = (
        [Unmeasured(relu(channels, 28), layout) for channels in (16, 32, 48, 64, 96, 128)]
        for layout in ("plain", "conv")
    )
    examples = [example(brick, 4 * latency_ms(brick), str(n)) for n, brick in enumerate(slow)]
    examples += [example(brick, latency_ms(brick), str(n)) for n, brick in enumerate(fast)]
    found = train(examples).predict([Unmeasured(relu(80, 28), "plain"), Unmeasured(relu(80, 28), "conv")])
    ratio = found[0].value_ms / found[1].value_ms if found[0] and found[1] else math.nan
    assert 3 < ratio < 5


def test_of_bricks_at_the_same_distance_the_first_measured_count() -> None:
    # Versions of NumPy order equal numbers differently.
    generator = np.random.default_rng(7)
    for _ in range(50):
        distances = generator.integers(0, 4, size=(6, 40)).astype(float)
        distances[:, ::9] = np.inf
        excess = generator.normal(size=40)
        first = np.argsort(distances, axis=1, kind="stable")
        alone = np.sort(first[:, :_NEAREST], axis=1)
        expected = [nearest(distances[row : row + 1, alone[row]], excess[alone[row]]) for row in range(6)]
        found = nearest(distances, excess)
        assert found.excess == pytest.approx([float(it.excess[0]) for it in expected])


# How far the speed of a host varies from model to model.
HOSTS = (0.0, 0.1, 0.2)


def holds(predictor: NearestBricks, model: list[Example]) -> bool:
    """True if the interval of the sum of all bricks holds their latency."""
    found = predictor.predict([Unmeasured(each.canonical, each.context) for each in model])
    known = [(each.latency_ms, latency) for each, latency in zip(model, found, strict=True) if latency is not None]
    beyond_ms = sum(real_ms - latency.value_ms for real_ms, latency in known)
    halves_ms = [
        latency.high_ms - latency.value_ms if beyond_ms > 0 else latency.value_ms - latency.low_ms
        for _, latency in known
    ]
    own = math.sqrt(1 - predictor.shared**2) * math.hypot(*halves_ms)
    return abs(beyond_ms) <= math.hypot(predictor.shared * sum(halves_ms), own)


@pytest.mark.parametrize(
    ("confidence", "host", "count"),
    [
        # Errors that add up most; the soak has those that do not.
        (0.9, 0.2, 100),
        *(pytest.param(confidence, host, 400, marks=pytest.mark.soak) for confidence in (0.9, 0.95) for host in HOSTS),
    ],
)
def test_intervals_of_sums_hold_as_often_as_stated_even_if_errors_add_up(
    confidence: float, host: float, count: int
) -> None:
    predictor = train(chain.from_iterable(models(1, 120, host=host)), confidence)
    assert (predictor.shared < 0.4) is (host == 0.0) and predictor.shared <= 1.0
    held = [holds(predictor, model) for model in models(2, count, host=host)]
    assert confidence - 0.04 <= sum(held) / len(held) <= min(1.0, confidence + 0.06)


def test_a_single_model_gives_intervals_of_the_usual_width() -> None:
    (only,) = models(1, 1, bricks=60)
    found = train(only)
    assert found.shared == 0.5
    assert {each.width for each in found.operators.values()} == {4.0}


def test_the_newest_bricks_of_a_large_operator_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training, "_MOST_OF_AN_OPERATOR", 50)
    # The old ones took ten times as long.
    new = [each for each in chain.from_iterable(models(1, 20)) if '"op":"relu"' in each.canonical][:50]
    found = train([*[each._replace(latency_ms=10 * each.latency_ms) for each in new], *new])
    assert {name: len(held.excess) for name, held in found.operators.items()} == {"relu": 50}
    asked = [Unmeasured(each.canonical, each.context) for each in new]
    assert found.predict(asked) == train(new).predict(asked)


def test_intervals_can_be_those_of_another_predictor() -> None:
    every = list(chain.from_iterable(models(1, 20)))
    whole = train(every)
    part = train(every[: len(every) // 2], widths_of=whole)
    assert part.shared == whole.shared
    assert all(each.width == whole.operators[name].width for name, each in part.operators.items())
    assert any(len(each.excess) < len(whole.operators[name].excess) for name, each in part.operators.items())
