"""Operators that both formats have are the same bricks in files of either format."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from onnx import TensorProto, defs
from onnx.helper import make_node, make_tensor

from dlbricks_tui.bricks.identity import brick_of
from dlbricks_tui.models.graph import Layer, LayerGraph, Shape
from dlbricks_tui.models.kinds import Kind, kind_of
from dlbricks_tui.models.library import source_of
from dlbricks_tui.models.loading import Loader
from dlbricks_tui.models.neutral import SHARED_OPS
from dlbricks_tui.models.onnx.neutral import ONNX_PREFIX, ONNX_TRANSLATIONS
from sample_models.builders.symbol_writer import SymbolWriter
from tests.models.onnx_models import floats, integers, loaded, model
from tests.models.table_framework import Params, Rule, TableFramework

IMAGE = (1, 8, 12, 12)


def numbers(name: str, *values: float) -> TensorProto:
    return make_tensor(name, TensorProto.FLOAT, (len(values),) if len(values) > 1 else (), values)


@dataclass(frozen=True)
class Pair:
    """An operator in each format; `stored` are the inputs of ONNX's after its data."""

    mxnet: str
    onnx: str
    params: dict[str, Any] = field(default_factory=dict)
    attributes: dict[str, Any] = field(default_factory=dict)
    stored: Sequence[TensorProto] = ()
    data: int = 1
    opset: int = 13


def activation(act_type: str, onnx: str) -> Pair:
    return Pair("Activation", onnx, {"act_type": act_type})


PAIRS = [
    Pair(
        "Convolution", "Conv", {"kernel": (1, 1), "num_filter": 4}, {}, (floats("w", (4, 8, 1, 1)), floats("b", (4,)))
    ),
    Pair(
        "Convolution",
        "Conv",
        {"kernel": (3, 3), "num_filter": 8, "num_group": 8, "stride": (2, 2), "dilate": (2, 2), "no_bias": True},
        {"group": 8, "strides": [2, 2], "dilations": [2, 2]},
        (floats("w", (8, 1, 3, 3)),),
    ),
    Pair(
        "Deconvolution",
        "ConvTranspose",
        {"kernel": (4, 4), "num_filter": 4, "stride": (2, 2), "pad": (1, 1)},
        {"strides": [2, 2], "pads": [1, 1, 1, 1]},
        (floats("w", (8, 4, 4, 4)),),
    ),
    Pair(
        "BatchNorm",
        "BatchNormalization",
        {"eps": 1e-3},
        {"epsilon": 1e-3},
        tuple(floats(f"n{place}", (8,)) for place in range(4)),
    ),
    Pair(
        "InstanceNorm",
        "InstanceNormalization",
        {"eps": 1e-3},
        {"epsilon": 1e-3},
        (floats("g", (8,)), floats("b", (8,))),
    ),
    Pair("LRN", "LRN", {"nsize": 5}, {"size": 5, "bias": 2.0}),
    Pair(
        "Pooling",
        "MaxPool",
        {"kernel": (3, 3), "stride": (2, 2), "pad": (1, 1), "pool_type": "max"},
        {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]},
    ),
    Pair(
        "Pooling",
        "MaxPool",
        {"kernel": (3, 3), "stride": (2, 2), "pool_type": "max", "pooling_convention": "full"},
        {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1},
    ),
    Pair(
        "Pooling",
        "AveragePool",
        {"kernel": (3, 3), "pad": (1, 1), "pool_type": "avg"},
        {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "count_include_pad": 1},
    ),
    Pair("Pooling", "GlobalMaxPool", {"global_pool": True, "pool_type": "max", "kernel": (1, 1)}),
    Pair("Pooling", "GlobalAveragePool", {"global_pool": True, "pool_type": "avg", "kernel": (1, 1)}),
    activation("relu", "Relu"),
    activation("sigmoid", "Sigmoid"),
    activation("tanh", "Tanh"),
    activation("softrelu", "Softplus"),
    activation("softsign", "Softsign"),
    Pair("LeakyReLU", "LeakyRelu", {"act_type": "leaky", "slope": 0.1}, {"alpha": 0.1}),
    Pair("LeakyReLU", "Elu", {"act_type": "elu", "slope": 0.5}, {"alpha": 0.5}),
    Pair("LeakyReLU", "Selu", {"act_type": "selu"}),
    Pair("LeakyReLU", "PRelu", {"act_type": "prelu"}, {}, (floats("slope", (8,)),)),
    Pair("LeakyReLU", "Gelu", {"act_type": "gelu"}, opset=20),
    Pair("clip", "Clip", {"a_min": 0.0, "a_max": 6.0}, {}, (numbers("least", 0.0), numbers("most", 6.0))),
    Pair("clip", "Clip", {"a_min": 0.0, "a_max": 6.0}, {"min": 0.0, "max": 6.0}, opset=7),
    Pair("exp", "Exp"),
    Pair("log", "Log"),
    Pair("sqrt", "Sqrt"),
    Pair("_copy", "Identity"),
    Pair("Dropout", "Dropout", {"p": 0.3}, {}, (numbers("ratio", 0.3),)),
    Pair("Dropout", "Dropout", {"p": 0.3}, {"ratio": 0.3}, opset=7),
    Pair("softmax", "Softmax", {"axis": 1}, {"axis": -3}),
    Pair("elemwise_add", "Add", data=2),
    Pair("elemwise_sub", "Sub", data=2),
    Pair("elemwise_mul", "Mul", data=2),
    Pair("elemwise_div", "Div", data=2),
    Pair("add_n", "Sum", {"num_args": 3}, data=3),
    Pair("Concat", "Concat", {"num_args": 2, "dim": 2}, {"axis": -2}, data=2),
    Pair("Flatten", "Flatten"),
    Pair("Reshape", "Reshape", {"shape": (0, -1, 6)}, {}, (integers("to", (1, -1, 6)),)),
    Pair("transpose", "Transpose", {"axes": (0, 2, 3, 1)}, {"perm": [0, 2, 3, 1]}),
    Pair("transpose", "Transpose"),
    Pair(
        "Pad",
        "Pad",
        {"pad_width": (0, 0, 0, 0, 1, 2, 3, 4), "mode": "constant"},
        {},
        (integers("pads", (0, 0, 1, 3, 0, 0, 2, 4)),),
    ),
    Pair(
        "Pad",
        "Pad",
        {"pad_width": (0, 0, 0, 0, 1, 1, 1, 1), "mode": "reflect"},
        {"pads": [0, 0, 1, 1, 0, 0, 1, 1], "mode": "reflect"},
        opset=7,
    ),
    Pair("broadcast_to", "Expand", {"shape": (3, 8, 12, 12)}, {}, (integers("to", (3, 8, 12, 12)),)),
    Pair("mean", "ReduceMean", {"axis": (2, 3), "keepdims": True}, {"axes": [-1, -2]}),
    Pair("max", "ReduceMax", {"axis": (1,)}, {"axes": [1], "keepdims": 0}),
    Pair("sum", "ReduceSum", {}, {"keepdims": 0}),
    Pair("sum", "ReduceSum", {"axis": (1,)}, {"keepdims": 0}, (integers("axes", (1,)),)),
    Pair(
        "UpSampling",
        "Upsample",
        {"scale": 2, "sample_type": "nearest", "num_args": 1},
        {"mode": "nearest"},
        (numbers("scales", 1.0, 1.0, 2.0, 2.0),),
        opset=9,
    ),
    Pair(
        "UpSampling",
        "Resize",
        {"scale": 3, "sample_type": "nearest", "num_args": 1},
        {"mode": "nearest"},
        (numbers("scales", 1.0, 1.0, 3.0, 3.0),),
        opset=10,
    ),
    Pair(
        "UpSampling",
        "Resize",
        {"scale": 2, "sample_type": "nearest", "num_args": 1},
        {
            "mode": "nearest",
            "coordinate_transformation_mode": "asymmetric",
            "nearest_mode": "floor",
            "cubic_coeff_a": -0.75,
        },
        (make_tensor("roi", TensorProto.FLOAT, (0,), ()), numbers("scales", 1.0, 1.0, 2.0, 2.0)),
    ),
]


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: f"{pair.onnx}-{pair.opset}")
def test_an_operator_is_the_same_brick_in_both_formats(pair: Pair, tmp_path: Path) -> None:
    names = [f"x{place}" for place in range(pair.data)]
    node = make_node(pair.onnx, [*names, *(it.name for it in pair.stored)], ["y"], **pair.attributes)
    onnx = loaded(tmp_path, model([node], dict.fromkeys(names, IMAGE), ["y"], pair.stored, pair.opset))
    (layer,) = onnx.layers
    assert layer.op in SHARED_OPS
    mxnet = read_mxnet(tmp_path, pair, layer)
    assert brick_of(mxnet, (0,)).canonical == brick_of(onnx, (0,)).canonical


@pytest.mark.parametrize(
    ("attributes", "scales"),
    [
        ({}, (1, 1, 2, 2)),
        ({"mode": "linear", "coordinate_transformation_mode": "asymmetric"}, (1, 1, 2, 2)),
        ({"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}, (1, 1, 2, 3)),
        ({"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}, (1, 1, 0.5, 0.5)),
        ({"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}, (1, 2, 2, 2)),
    ],
)
def test_a_resize_that_does_more_than_repeat_elements_keeps_its_name(
    attributes: dict[str, Any], scales: Sequence[float], tmp_path: Path
) -> None:
    node = make_node("Resize", ["x", "", "scales"], ["y"], **attributes)
    graph = loaded(tmp_path, model([node], {"x": IMAGE}, ["y"], [numbers("scales", *scales)]))
    assert graph.layers[0].op == "onnx.Resize"


def read_mxnet(folder: Path, pair: Pair, twin: Layer) -> LayerGraph:
    """Return a network of that operator, with the types that ONNX's inference finds."""

    def infer(data: Sequence[Shape], params: Params) -> tuple[list[Shape], list[Shape]]:
        return [it.shape or () for it in twin.outputs], [it.shape or () for it in twin.weights]

    rule: Rule = infer
    writer = SymbolWriter()
    data = [writer.input(f"data{place}", IMAGE) for place in range(pair.data)]
    if pair.params.get("act_type") == "prelu":
        data.append(writer.learned("gamma", (8,)))
    path = folder / "net-symbol.json"
    path.write_bytes(writer.render(writer.op(pair.mxnet, *data, **pair.params)))
    return Loader(folder / "cache", TableFramework(more={pair.mxnet: rule})).load(source_of(path))


def test_each_operator_mapped_to_a_shared_one_is_compared() -> None:
    # It takes two axes, and is compared with the others of an image network.
    elsewhere = {"Gemm"}
    assert {pair.onnx for pair in PAIRS} == ONNX_TRANSLATIONS.keys() - elsewhere


def test_every_operator_mapped_to_a_shared_one_is_an_onnx_operator_with_a_kind() -> None:
    for op in ONNX_TRANSLATIONS:
        assert defs.has(op), op
        assert kind_of(f"{ONNX_PREFIX}{op}") is not Kind.OTHER
