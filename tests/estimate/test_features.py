import json
import math

import pytest

from dlbricks_tui.estimate.features import Features, Sizes, features_of
from dlbricks_tui.models.kinds import Kind
from tests.estimate.simulated import conv, form, linear


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
    "op", ["conv", "conv_transpose", "linear", "max_pool", "reduce_mean", "embedding", "onnx.LSTM"]
)
def test_odd_shapes_and_parameters_have_some_size(
    op: str, shape: list[int], weight: list[int], params: dict[str, object]
) -> None:
    found = features_of(form(op, shape, [weight] if weight else [], **params), "plain")
    assert found is not None
    assert all(math.isfinite(size) and size >= 0 for size in found.sizes)
