"""Operators under their neutral names: equal and different ones of MXNet, and those that both formats have."""

from ast import literal_eval
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from struct import pack, unpack
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, defs
from onnx.helper import make_node, make_tensor

from dlbricks_tui.bricks.identity import brick_of
from dlbricks_tui.models.graph import Layer, LayerGraph, ParamValue, Shape, TensorType
from dlbricks_tui.models.kinds import KIND_OF_OP, ONNX_KIND_OF_OP, Kind, heaviest, kind_of
from dlbricks_tui.models.library import source_of
from dlbricks_tui.models.loading import Loader
from dlbricks_tui.models.mxnet_operators import MXNET_PREFIX, neutral_operator, schema
from dlbricks_tui.models.neutral import (
    SHARED_OPS,
    LiteralError,
    Neutral,
    Site,
    guess_value,
    parse_value,
    single_precision,
)
from dlbricks_tui.models.onnx_operators import ONNX_PREFIX, ONNX_TRANSLATIONS
from sample_models.builders.symbol_writer import SymbolWriter
from tests.models.onnx_models import floats, integers, loaded, model
from tests.models.table_framework import Params, TableFramework

IMAGE = TensorType((1, 8, 32, 32))


def neutral(op: str, attributes: Params, *inputs: TensorType, output: TensorType | None = None) -> Neutral:
    return neutral_operator(op, tuple(attributes.items()), Site(inputs or (IMAGE,), (output or IMAGE,)))


# An operator with its parameters, and what else it may be with others, which come to the first ones.
EQUAL = """
Convolution kernel=(3,3) num_filter=8: kernel=(3L,3L); kernel=[3,3] stride=[1,1] dilate=(1L,1L)
Convolution kernel=(3,3): pad=(0,0) stride=() num_group=1; layout=NCHW workspace=512 cudnn_tune=fastest
Convolution kernel=(3,3): layout=None cudnn_off=True
Deconvolution kernel=(3,3): adj=(0,0) target_shape=(0,0)
FullyConnected num_hidden=4: num_hidden=4L flatten=1
BatchNorm: eps=0.0010000000474974513 axis=-3; momentum=0.5 fix_gamma=False use_global_stats=true
_contrib_SyncBatchNorm key=bn1: key=bn2 ndev=8
Pooling kernel=(3,3) pool_type=max: pooling_convention=valid stride=(1,1) pad=(0,0)
Pooling kernel=(3,3) pool_type=avg: count_include_pad=False
Pooling kernel=(3,3) global_pool=1: global_pool=True kernel=(7,7) stride=(2,2)
Concat num_args=2: concat dim=-3
softmax: axis=3 temperature=None
elemwise_add: _Plus
add_n num_args=3: ElementWiseSum
Flatten: flatten
Dropout: p=0.5 mode=training cudnn_off=0
LeakyReLU: act_type=leaky; slope=0.25
LeakyReLU act_type=gelu: slope=0.1
mean axis=(2,3): axis=(-1,-2) keepdims=0
mean: axis=(0,1,2,3)
transpose: axes=(3,2,1,0)
Reshape shape=(0,-1): reshape shape=(-2) reverse=True
broadcast_to shape=(0,8,32,32): shape=(1,8,32,32)
expand_dims axis=-1: axis=4
stack num_args=2: axis=-5
SwapAxis dim1=-1 dim2=-2: swapaxes dim1=3 dim2=2
squeeze axis=(-4,): axis=(0,)
_plus_scalar scalar=0.1: _PlusScalar scalar=0.10000000149011612 is_int=False
SoftmaxOutput: Softmax grad_scale=2 normalization=batch use_ignore=True
Pad mode=edge pad_width=(0,0,0,0,1,1,1,1): pad constant_value=7
Embedding input_dim=9 output_dim=4: sparse_grad=True dtype=float32
clip a_min=-0 a_max=6: a_min=0.0 a_max=6.0
NobodyHasThis k=(3L,3L) on=True: on=true k=[3,3]
_contrib_MultiBoxPrior sizes=(0.5,1.0): sizes=[0.5,1]
"""
# This MXNet does not have the parameter `precision`, so it may be significant.
DIFFERENT = """
Convolution kernel=(3,3): kernel=(3,1); stride=(2,2); stride=(1,2); pad=(1,0); dilate=(2,2); num_group=8; layout=NHWC
Convolution kernel=(3,3): precision=low; kernel=three; Convolution_v1; Deconvolution
Deconvolution kernel=(3,3): adj=(1,1); target_shape=(64,64)
FullyConnected: flatten=False
BatchNorm: eps=0.00101; axis=3; output_mean_var=True; min_calib_range=0 max_calib_range=1; BatchNorm_v1
Pooling kernel=(3,3) pool_type=max: pool_type=avg; pool_type=sum; global_pool=True; pooling_convention=full; layout=NHWC
Pooling kernel=(3,3) pooling_convention=same: pooling_convention=full; Pooling_v1
Pooling global_pool=1: layout=NHWC
Pooling pool_type=lp p_value=1: p_value=2
Pooling kernel=(3,3) pool_type=avg pad=(1,1): count_include_pad=0
Concat: dim=2; stack
softmax: axis=1; temperature=2; use_length=True; log_softmax; SoftmaxActivation
elemwise_add: broadcast_add; add_n; elemwise_sub
Activation act_type=relu: relu; act_type=tanh
Dropout: mode=always; p=0.2
Dropout mode=always: p=0.2
LeakyReLU act_type=leaky: act_type=elu; slope=0.1; act_type=rrelu
LeakyReLU act_type=selu: act_type=gelu
mean axis=(2,3): axis=(2,); keepdims=True; exclude=True; sum
expand_dims axis=-1: axis=3
transpose: axes=(0,2,3,1)
Reshape: Flatten
UpSampling scale=2 sample_type=nearest: sample_type=bilinear; scale=4
Pad mode=edge pad_width=(0,0,1,1): mode=reflect; pad_width=(0,1,0,1)
Custom op_type=mine strength=1: strength=2; op_type=yours
RNN mode=lstm state_size=8: mode=gru
_plus_scalar scalar=1: scalar=2
SliceChannel num_outputs=2: squeeze_axis=1
Cast dtype=float16: dtype=float32
NobodyHasThis k=3: k=4; SomebodyHasThis
"""


def written(text: str) -> tuple[str, dict[str, str]]:
    """Return the name of an operator, which may be absent, and its parameters."""
    words = text.split()
    name = words.pop(0) if words and "=" not in words[0] else ""
    return name, dict(word.split("=", 1) for word in words)


def compared(table: str) -> Iterator[tuple[str, str]]:
    for line in table.strip().splitlines():
        one, others = line.split(":")
        yield from ((one, other) for other in others.split(";"))


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [*((*pair, True) for pair in compared(EQUAL)), *((*pair, False) for pair in compared(DIFFERENT))],
)
def test_equal_computations_are_one_operator_and_different_ones_are_two(one: str, other: str, equal: bool) -> None:
    (op, params), (renamed, changes) = written(one), written(other)
    assert (neutral(op, params) == neutral(renamed or op, params | changes)) == equal


def test_inputs_decide_what_an_operator_and_its_parameters_mean() -> None:
    params = {"scale": "2", "sample_type": "nearest", "num_args": "2"}
    assert neutral("UpSampling", params).op == "upsample_nearest"
    assert neutral("UpSampling", params, IMAGE, IMAGE).op == "mxnet.UpSampling"
    # The spelling of a scalar counts for tensors of integers.
    one, other = ({"scalar": "2", "is_int": text} for text in ("True", "False"))
    integers = TensorType((1, 8), "int32")
    assert neutral("_mul_scalar", one, integers) != neutral("_mul_scalar", other, integers)
    # Without shapes, parameters stay as they are, and so do those of an unknown operator.
    unknown = TensorType(None)
    assert neutral("softmax", {}, unknown) == Neutral("softmax", (("axis", -1),))
    reshaped = neutral("Reshape", {"shape": "(0, -1)"}, unknown, output=unknown)
    assert reshaped == Neutral("mxnet.Reshape", (("shape", (0, -1)),))
    found = neutral("NobodyHasThis", {"momentum": "0.9", "mode": "fast"})
    assert found == Neutral("mxnet.NobodyHasThis", (("mode", "fast"), ("momentum", 0.9)))


# The kinds of operators.


def test_every_operator_of_the_list_of_kinds_exists() -> None:
    for op in KIND_OF_OP.keys() - ONNX_KIND_OF_OP.keys():
        found = schema(op.removeprefix(MXNET_PREFIX))
        assert op in SHARED_OPS or (found is not None and op.removeprefix(MXNET_PREFIX) == found.name), op
    for op in ONNX_TRANSLATIONS:
        assert defs.has(op), op
        assert kind_of(f"{ONNX_PREFIX}{op}") is not Kind.OTHER


def test_adding_inputs_and_summing_elements_are_different_kinds_and_the_heaviest_counts() -> None:
    kinds = {kind_of(neutral("sum", params).op) for params in ({}, {"exclude": "True"})}
    assert (kind_of(neutral("add_n", {}).op), kinds) == (Kind.COMBINE, {Kind.REDUCE})
    assert heaviest([Kind.ELEMENTWISE, Kind.CONVOLUTION, Kind.BATCHNORM]) is Kind.CONVOLUTION
    assert heaviest([Kind.RESHAPE, Kind.BROADCAST]) is Kind.BROADCAST
    assert heaviest([Kind.FLATTEN, Kind.RESHAPE]) is Kind.FLATTEN


# The spellings of values.


@given(st.floats(width=32, allow_nan=False))
def test_a_number_of_32_bits_survives_its_shortest_spelling(value: float) -> None:
    short = single_precision(value)
    assert unpack("f", pack("f", short)) == (value,)
    assert single_precision(short) == short
    assert single_precision(float(f"{value:.9g}")) == short


@pytest.mark.parametrize(
    ("kind", "texts"),
    [
        ("int", ("inf", "nan", "1.5", "many", "1" * 65, "١٢", "1\x00")),
        ("bool", ("2", "nan")),
        ("tuple", ("(1, two)", "(1,,2)", "((1, 2), (3, 4))")),
        ("float", ("9" * 1_000_000,)),
    ],
)
def test_a_value_of_another_type_is_refused(kind: str, texts: Sequence[str]) -> None:
    for text in texts:
        with pytest.raises(LiteralError) as refusal:
            parse_value(text, kind)
        assert len(str(refusal.value)) < 100


def test_empty_short_and_open_tuples_and_numbers_beyond_32_bits_are_read() -> None:
    told: Mapping[str, ParamValue] = {"()": (), "[]": (), "None": None, "": None, "3": (3,), "(None, 2)": (None, 2)}
    assert {text: parse_value(text, "tuple") for text in told} == told
    assert {parse_value(text, "float") for text in ("inf", "1e300", "1e39")} == {float("inf")}


@given(st.text(), st.sampled_from(["bool", "int", "float", "tuple", "text"]))
def test_any_text_is_a_value_or_refused(text: str, kind: str) -> None:
    guess_value(text)
    try:
        value = parse_value(text, kind)
    except LiteralError:
        return
    expected = {"bool": bool, "int": int, "float": float, "tuple": tuple, "text": str}[kind]
    assert value is None or type(value) is expected


# Operators that both formats have are the same bricks in files of either format: MXNet's, and ONNX's with its version
# and with its stored inputs, which are floats of a shape, integers (`i:`), or numbers (`f:`).
PAIRS = """
Convolution kernel=(1,1) num_filter=4 | Conv | 4,8,1,1 4
Convolution kernel=(3,3) num_filter=8 num_group=8 stride=(2,2) dilate=(2,2) no_bias=True
    | Conv group=8 strides=[2,2] dilations=[2,2] | 8,1,3,3
Deconvolution kernel=(4,4) num_filter=4 stride=(2,2) pad=(1,1) | ConvTranspose strides=[2,2] pads=[1,1,1,1] | 8,4,4,4
BatchNorm eps=0.001 | BatchNormalization epsilon=0.001 | 8 8 8 8
BatchNorm eps=1e-5 | BatchNormalization | 8 8 8 8
InstanceNorm eps=0.001 | InstanceNormalization epsilon=0.001 | 8 8
InstanceNorm eps=1e-5 | InstanceNormalization | 8 8
LRN nsize=5 | LRN size=5 bias=2.0 |
FullyConnected num_hidden=4 | Gemm transB=1 | 4,8 4
Pooling kernel=(3,3) stride=(2,2) pad=(1,1) pool_type=max | MaxPool kernel_shape=[3,3] strides=[2,2] pads=[1,1,1,1] |
Pooling kernel=(3,3) stride=(2,2) pool_type=max pooling_convention=full
    | MaxPool kernel_shape=[3,3] strides=[2,2] ceil_mode=1 |
Pooling kernel=(3,3) pad=(1,1) pool_type=avg | AveragePool kernel_shape=[3,3] pads=[1,1,1,1] count_include_pad=1 |
Pooling kernel=(1,1) global_pool=True pool_type=max | GlobalMaxPool |
Pooling kernel=(1,1) global_pool=True pool_type=avg | GlobalAveragePool |
Activation act_type=relu | Relu |
Activation act_type=sigmoid | Sigmoid |
Activation act_type=tanh | Tanh |
Activation act_type=softrelu | Softplus |
Activation act_type=softsign | Softsign |
LeakyReLU act_type=leaky slope=0.1 | LeakyRelu alpha=0.1 |
LeakyReLU act_type=leaky slope=0.01 | LeakyRelu |
LeakyReLU act_type=elu slope=0.5 | Elu alpha=0.5 |
LeakyReLU act_type=elu slope=1.0 | Elu |
LeakyReLU act_type=selu | Selu |
LeakyReLU act_type=prelu | PRelu | 8
LeakyReLU act_type=gelu | Gelu@20 |
clip a_min=0.0 a_max=6.0 | Clip | f:0 f:6
clip a_min=0.0 a_max=6.0 | Clip@7 min=0.0 max=6.0 |
exp | Exp |
log | Log |
sqrt | Sqrt |
_copy | Identity |
Dropout p=0.3 | Dropout | f:0.3
Dropout p=0.3 | Dropout@7 ratio=0.3 |
Dropout p=0.5 | Dropout |
softmax axis=1 | Softmax axis=-3 |
elemwise_add*2 | Add |
elemwise_sub*2 | Sub |
elemwise_mul*2 | Mul |
elemwise_div*2 | Div |
add_n*3 num_args=3 | Sum |
Concat*2 num_args=2 dim=2 | Concat axis=-2 |
Flatten | Flatten |
Reshape shape=(0,-1,6) | Reshape | i:1,-1,6
transpose axes=(0,2,3,1) | Transpose perm=[0,2,3,1] |
transpose | Transpose |
Pad pad_width=(0,0,0,0,1,2,3,4) mode=constant | Pad | i:0,0,1,3,0,0,2,4
Pad pad_width=(0,0,0,0,1,1,1,1) mode=reflect | Pad@7 pads=[0,0,1,1,0,0,1,1] mode=reflect |
broadcast_to shape=(3,8,12,12) | Expand | i:3,8,12,12
mean axis=(2,3) keepdims=True | ReduceMean axes=[-1,-2] |
max axis=(1,) | ReduceMax axes=[1] keepdims=0 |
sum | ReduceSum keepdims=0 |
sum axis=(1,) | ReduceSum keepdims=0 | i:1
UpSampling scale=2 sample_type=nearest num_args=1 | Upsample@9 mode=nearest | f:1,1,2,2
UpSampling scale=3 sample_type=nearest num_args=1 | Resize@10 mode=nearest | f:1,1,3,3
UpSampling scale=2 sample_type=nearest num_args=1
    | Resize mode=nearest coordinate_transformation_mode=asymmetric nearest_mode=floor cubic_coeff_a=-0.75
    | f: f:1,1,2,2
"""


class Pair(NamedTuple):
    """An operator in each format; `stored` are the inputs of ONNX's after its data."""

    mxnet: str
    params: dict[str, Any]
    onnx: str
    attributes: dict[str, Any]
    stored: Sequence[TensorProto]
    data: int
    opset: int


def numbers(name: str, values: Sequence[float]) -> TensorProto:
    return make_tensor(name, TensorProto.FLOAT, () if len(values) == 1 else (len(values),), values)


def stored_as(name: str, text: str) -> TensorProto:
    kind, _, sizes = text.rpartition(":")
    found = [literal_eval(it) for it in sizes.split(",") if it]
    return numbers(name, found) if kind == "f" else integers(name, found) if kind == "i" else floats(name, found)


def valued(text: str) -> Any:
    return literal_eval(text) if text[0] in "([-" or text[0].isdigit() or text == "True" else text


def pairs() -> Iterator[Pair]:
    for line in PAIRS.strip().replace("\n    |", " |").splitlines():
        mxnet, onnx, stored = line.split("|")
        (op, params), (other, attributes) = written(mxnet), written(onnx)
        name, _, count = op.partition("*")
        other, _, opset = other.partition("@")
        arrays = [stored_as(f"stored{place}", text) for place, text in enumerate(stored.split())]
        of_each = [{key: valued(text) for key, text in them.items()} for them in (params, attributes)]
        yield Pair(name, of_each[0], other, of_each[1], arrays, int(count or 1), int(opset or 13))


@pytest.mark.parametrize("pair", [*pairs()], ids=lambda pair: f"{pair.onnx}-{pair.opset}")
def test_an_operator_is_the_same_brick_in_both_formats(pair: Pair, tmp_path: Path) -> None:
    names, shape = [f"x{place}" for place in range(pair.data)], (1, 8) if pair.onnx == "Gemm" else (1, 8, 12, 12)
    node = make_node(pair.onnx, [*names, *(it.name for it in pair.stored)], ["y"], **pair.attributes)
    onnx = loaded(tmp_path, model([node], dict.fromkeys(names, shape), ["y"], pair.stored, pair.opset))
    (layer,) = onnx.layers
    assert layer.op in SHARED_OPS
    mxnet = read_mxnet(tmp_path, pair, shape, layer)
    assert brick_of(mxnet, (0,)).canonical == brick_of(onnx, (0,)).canonical


def read_mxnet(folder: Path, pair: Pair, shape: Shape, twin: Layer) -> LayerGraph:
    """Return a network of that operator, with the types that ONNX's inference finds."""

    def infer(data: Sequence[Shape], params: Params) -> tuple[list[Shape], list[Shape]]:
        return [it.shape or () for it in twin.outputs], [it.shape or () for it in twin.weights]

    writer = SymbolWriter()
    data = [writer.input(f"data{place}", shape) for place in range(pair.data)]
    if pair.params.get("act_type") == "prelu":
        data.append(writer.learned("gamma", (8,)))
    path = folder / "net-symbol.json"
    path.write_bytes(writer.render(writer.op(pair.mxnet, *data, **pair.params)))
    return Loader(folder / "cache", TableFramework(more={pair.mxnet: infer})).load(source_of(path))


def test_each_operator_mapped_to_a_shared_one_is_compared() -> None:
    assert {pair.onnx for pair in pairs()} == ONNX_TRANSLATIONS.keys()


ASYMMETRIC = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}


@pytest.mark.parametrize(
    ("attributes", "scales"),
    [
        ({}, (1, 1, 2, 2)),
        ({"mode": "linear", "coordinate_transformation_mode": "asymmetric"}, (1, 1, 2, 2)),
        *((ASYMMETRIC, scales) for scales in ((1, 1, 2, 3), (1, 1, 0.5, 0.5), (1, 2, 2, 2))),
    ],
)
def test_a_resize_that_does_more_than_repeat_elements_keeps_its_name(
    attributes: dict[str, Any], scales: Sequence[float], tmp_path: Path
) -> None:
    node = make_node("Resize", ["x", "", "scales"], ["y"], **attributes)
    graph = loaded(tmp_path, model([node], {"x": (1, 8, 12, 12)}, ["y"], [numbers("scales", scales)]))
    assert graph.layers[0].op == "onnx.Resize"


@pytest.mark.parametrize("op", ["LogSoftmax", "Hardmax"])
def test_an_axis_is_part_of_a_brick_as_far_as_it_changes_the_work(op: str, tmp_path: Path) -> None:
    def key(shape: Shape, opset: int, **attributes: Any) -> str:
        made = model([make_node(op, ["x"], ["y"], **attributes)], {"x": shape}, ["y"], opset=opset)
        return brick_of(loaded(tmp_path, made), (0,)).key

    matrix, image = (2, 8), (2, 8, 4)
    assert len({key(matrix, 13), key(matrix, 13, axis=1), key(matrix, 13, axis=-1), key(matrix, 11)}) == 1
    assert key(image, 13) == key(image, 13, axis=2) == key(image, 11, axis=-1)
    assert len({key(image, 13), key(image, 13, axis=1), key(image, 11), key(image, 11, axis=0)}) == 4
