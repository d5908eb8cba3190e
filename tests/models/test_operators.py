from collections.abc import Mapping
from struct import pack, unpack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlbricks_tui.models.graph import ParamValue, TensorType
from dlbricks_tui.models.kinds import KIND_OF_OP, ONNX_KIND_OF_OP, Kind, heaviest, kind_of
from dlbricks_tui.models.mxnet.neutral import MXNET_PREFIX, neutral_operator, schema
from dlbricks_tui.models.neutral import (
    SHARED_OPS,
    LiteralError,
    Neutral,
    Site,
    guess_value,
    parse_value,
    single_precision,
)

Attributes = Mapping[str, str]

IMAGE = TensorType((1, 8, 32, 32))


def neutral(op: str, attributes: Attributes, *inputs: TensorType, output: TensorType | None = None) -> Neutral:
    return neutral_operator(op, attributes, Site(inputs or (IMAGE,), (output or IMAGE,)))


CONV = {"kernel": "(3, 3)", "num_filter": "8"}
POOL = {"kernel": "(3, 3)", "pool_type": "max"}
MEAN_POOL = {"kernel": "(3, 3)", "pool_type": "avg"}

EQUAL: list[tuple[str, Attributes, str, Attributes]] = [
    ("Convolution", CONV, "Convolution", {**CONV, "kernel": "(3L, 3L)"}),
    ("Convolution", CONV, "Convolution", {**CONV, "kernel": "[3,3]", "stride": "[1,1]", "dilate": "(1L, 1L)"}),
    ("Convolution", CONV, "Convolution", {**CONV, "pad": "(0, 0)", "stride": "()", "num_group": "1"}),
    ("Convolution", CONV, "Convolution", {**CONV, "layout": "NCHW", "workspace": "512", "cudnn_tune": "fastest"}),
    ("Convolution", CONV, "Convolution", {**CONV, "layout": "None", "cudnn_off": "True"}),
    ("Deconvolution", CONV, "Deconvolution", {**CONV, "adj": "(0, 0)", "target_shape": "(0, 0)"}),
    ("FullyConnected", {"num_hidden": "4"}, "FullyConnected", {"num_hidden": "4L", "flatten": "1"}),
    ("BatchNorm", {}, "BatchNorm", {"eps": "0.0010000000474974513", "axis": "-3"}),
    ("BatchNorm", {}, "BatchNorm", {"momentum": "0.5", "fix_gamma": "False", "use_global_stats": "true"}),
    ("_contrib_SyncBatchNorm", {"key": "bn1"}, "_contrib_SyncBatchNorm", {"key": "bn2", "ndev": "8"}),
    ("Pooling", POOL, "Pooling", {**POOL, "pooling_convention": "valid", "stride": "(1, 1)", "pad": "(0, 0)"}),
    ("Pooling", MEAN_POOL, "Pooling", {**MEAN_POOL, "count_include_pad": "False"}),
    (
        "Pooling",
        {**POOL, "global_pool": "1"},
        "Pooling",
        {"global_pool": "True", "kernel": "(7, 7)", "stride": "(2, 2)"},
    ),
    ("Concat", {"num_args": "2"}, "concat", {"num_args": "2", "dim": "-3"}),
    ("softmax", {}, "softmax", {"axis": "3", "temperature": "None"}),
    ("elemwise_add", {}, "_Plus", {}),
    ("add_n", {"num_args": "3"}, "ElementWiseSum", {"num_args": "3"}),
    ("Flatten", {}, "flatten", {}),
    ("Dropout", {}, "Dropout", {"p": "0.5", "mode": "training", "cudnn_off": "0"}),
    ("LeakyReLU", {"act_type": "leaky"}, "LeakyReLU", {"slope": "0.25"}),
    ("LeakyReLU", {"act_type": "gelu"}, "LeakyReLU", {"act_type": "gelu", "slope": "0.1"}),
    ("mean", {"axis": "(2, 3)"}, "mean", {"axis": "(-1, -2)", "keepdims": "0"}),
    ("mean", {}, "mean", {"axis": "(0, 1, 2, 3)"}),
    ("transpose", {}, "transpose", {"axes": "(3, 2, 1, 0)"}),
    ("Reshape", {"shape": "(0, -1)"}, "reshape", {"shape": "(-2)", "reverse": "True"}),
    ("broadcast_to", {"shape": "(0, 8, 32, 32)"}, "broadcast_to", {"shape": "(1, 8, 32, 32)"}),
    ("expand_dims", {"axis": "-1"}, "expand_dims", {"axis": "4"}),
    ("stack", {"axis": "-5", "num_args": "2"}, "stack", {"num_args": "2"}),
    ("SwapAxis", {"dim1": "-1", "dim2": "-2"}, "swapaxes", {"dim1": "3", "dim2": "2"}),
    ("squeeze", {"axis": "(-4,)"}, "squeeze", {"axis": "(0,)"}),
    ("_plus_scalar", {"scalar": "0.1"}, "_PlusScalar", {"scalar": "0.10000000149011612", "is_int": "False"}),
    ("SoftmaxOutput", {}, "Softmax", {"grad_scale": "2", "normalization": "batch", "use_ignore": "True"}),
    (
        "Pad",
        {"mode": "edge", "pad_width": "(0,0,0,0,1,1,1,1)"},
        "pad",
        {"mode": "edge", "pad_width": "(0,0,0,0,1,1,1,1)", "constant_value": "7"},
    ),
    (
        "Embedding",
        {"input_dim": "9", "output_dim": "4"},
        "Embedding",
        {"input_dim": "9", "output_dim": "4", "sparse_grad": "True", "dtype": "float32"},
    ),
    ("clip", {"a_min": "-0", "a_max": "6"}, "clip", {"a_min": "0.0", "a_max": "6.0"}),
    ("NobodyHasThis", {"k": "(3L, 3L)", "on": "True"}, "NobodyHasThis", {"on": "true", "k": "[3,3]"}),
    ("_contrib_MultiBoxPrior", {"sizes": "(0.5, 1.0)"}, "_contrib_MultiBoxPrior", {"sizes": "[0.5,1]"}),
]

DIFFERENT: list[tuple[str, Attributes, str, Attributes]] = [
    *(
        ("Convolution", CONV, "Convolution", {**CONV, **change})
        for change in (
            {"kernel": "(3, 1)"},
            {"stride": "(2, 2)"},
            {"stride": "(1, 2)"},
            {"pad": "(1, 0)"},
            {"dilate": "(2, 2)"},
            {"num_group": "8"},
            {"layout": "NHWC"},
            # This MXNet does not have the parameter, so it may be significant.
            {"precision": "low"},
            {"kernel": "three"},
        )
    ),
    ("Convolution", CONV, "Convolution_v1", CONV),
    ("Convolution", CONV, "Deconvolution", CONV),
    ("Deconvolution", CONV, "Deconvolution", {**CONV, "adj": "(1, 1)"}),
    ("Deconvolution", CONV, "Deconvolution", {**CONV, "target_shape": "(64, 64)"}),
    ("FullyConnected", {}, "FullyConnected", {"flatten": "False"}),
    ("BatchNorm", {}, "BatchNorm", {"eps": "0.00101"}),
    ("BatchNorm", {}, "BatchNorm", {"axis": "3"}),
    ("BatchNorm", {}, "BatchNorm", {"output_mean_var": "True"}),
    ("BatchNorm", {}, "BatchNorm", {"min_calib_range": "0", "max_calib_range": "1"}),
    ("BatchNorm", {}, "BatchNorm_v1", {}),
    ("Pooling", POOL, "Pooling", MEAN_POOL),
    ("Pooling", POOL, "Pooling", {**POOL, "pool_type": "sum"}),
    ("Pooling", POOL, "Pooling", {**POOL, "global_pool": "True"}),
    ("Pooling", POOL, "Pooling", {**POOL, "pooling_convention": "full"}),
    ("Pooling", {**POOL, "pooling_convention": "same"}, "Pooling", {**POOL, "pooling_convention": "full"}),
    ("Pooling", POOL, "Pooling_v1", POOL),
    ("Pooling", {**POOL, "layout": "NHWC"}, "Pooling", POOL),
    ("Pooling", {"global_pool": "1", "layout": "NHWC"}, "Pooling", {"global_pool": "1"}),
    ("Pooling", {"pool_type": "lp", "p_value": "1"}, "Pooling", {"pool_type": "lp", "p_value": "2"}),
    ("Pooling", {**MEAN_POOL, "pad": "(1, 1)"}, "Pooling", {**MEAN_POOL, "pad": "(1, 1)", "count_include_pad": "0"}),
    ("Concat", {}, "Concat", {"dim": "2"}),
    ("Concat", {}, "stack", {}),
    ("softmax", {}, "softmax", {"axis": "1"}),
    ("softmax", {}, "softmax", {"temperature": "2"}),
    ("softmax", {}, "softmax", {"use_length": "True"}),
    ("softmax", {}, "log_softmax", {}),
    ("softmax", {}, "SoftmaxActivation", {}),
    ("elemwise_add", {}, "broadcast_add", {}),
    ("elemwise_add", {}, "add_n", {}),
    ("elemwise_add", {}, "elemwise_sub", {}),
    ("Activation", {"act_type": "relu"}, "relu", {}),
    ("Activation", {"act_type": "relu"}, "Activation", {"act_type": "tanh"}),
    ("Activation", {"act_type": "relu"}, "LeakyReLU", {}),
    ("Dropout", {}, "Dropout", {"mode": "always"}),
    ("Dropout", {}, "Dropout", {"p": "0.2"}),
    ("Dropout", {"mode": "always"}, "Dropout", {"mode": "always", "p": "0.2"}),
    ("LeakyReLU", {"act_type": "leaky"}, "LeakyReLU", {"act_type": "elu"}),
    ("LeakyReLU", {"act_type": "leaky"}, "LeakyReLU", {"act_type": "leaky", "slope": "0.1"}),
    ("LeakyReLU", {"act_type": "leaky"}, "LeakyReLU", {"act_type": "rrelu"}),
    ("LeakyReLU", {"act_type": "selu"}, "LeakyReLU", {"act_type": "gelu"}),
    ("mean", {"axis": "(2, 3)"}, "mean", {"axis": "(2,)"}),
    ("mean", {"axis": "(2, 3)"}, "mean", {"axis": "(2, 3)", "keepdims": "True"}),
    ("mean", {"axis": "(2, 3)"}, "mean", {"axis": "(2, 3)", "exclude": "True"}),
    ("mean", {}, "sum", {}),
    ("expand_dims", {"axis": "-1"}, "expand_dims", {"axis": "3"}),
    ("transpose", {}, "transpose", {"axes": "(0, 2, 3, 1)"}),
    ("Reshape", {}, "Flatten", {}),
    ("UpSampling", {"scale": "2", "sample_type": "nearest"}, "UpSampling", {"scale": "2", "sample_type": "bilinear"}),
    ("UpSampling", {"scale": "2", "sample_type": "nearest"}, "UpSampling", {"scale": "4", "sample_type": "nearest"}),
    ("Pad", {"mode": "edge", "pad_width": "(0,0,1,1)"}, "Pad", {"mode": "reflect", "pad_width": "(0,0,1,1)"}),
    ("Pad", {"mode": "edge", "pad_width": "(0,0,1,1)"}, "Pad", {"mode": "edge", "pad_width": "(0,1,0,1)"}),
    ("Custom", {"op_type": "mine", "strength": "1"}, "Custom", {"op_type": "mine", "strength": "2"}),
    ("Custom", {"op_type": "mine"}, "Custom", {"op_type": "yours"}),
    ("RNN", {"mode": "lstm", "state_size": "8"}, "RNN", {"mode": "gru", "state_size": "8"}),
    ("_plus_scalar", {"scalar": "1"}, "_plus_scalar", {"scalar": "2"}),
    ("SliceChannel", {"num_outputs": "2"}, "SliceChannel", {"num_outputs": "2", "squeeze_axis": "1"}),
    ("Cast", {"dtype": "float16"}, "Cast", {"dtype": "float32"}),
    ("NobodyHasThis", {"k": "3"}, "NobodyHasThis", {"k": "4"}),
    ("NobodyHasThis", {}, "SomebodyHasThis", {}),
]


@pytest.mark.parametrize(("op", "attributes", "other", "others"), EQUAL)
def test_equal_computations_are_one_operator(op: str, attributes: Attributes, other: str, others: Attributes) -> None:
    assert neutral(op, attributes) == neutral(other, others)


@pytest.mark.parametrize(("op", "attributes", "other", "others"), DIFFERENT)
def test_different_computations_are_two_operators(
    op: str, attributes: Attributes, other: str, others: Attributes
) -> None:
    assert neutral(op, attributes) != neutral(other, others)


def test_resizing_several_inputs_together_stays_an_mxnet_operator() -> None:
    params = {"scale": "2", "sample_type": "nearest", "num_args": "2"}
    assert neutral("UpSampling", params).op == "upsample_nearest"
    assert neutral("UpSampling", params, IMAGE, IMAGE).op == "mxnet.UpSampling"


def test_the_spelling_of_a_scalar_counts_for_integer_tensors() -> None:
    integers = TensorType((1, 8), "int32")
    one, other = ({"scalar": "2", "is_int": text} for text in ("True", "False"))
    assert neutral("_mul_scalar", one, integers) != neutral("_mul_scalar", other, integers)


def test_parameters_stay_unchanged_without_shapes() -> None:
    unknown = TensorType(None)
    assert neutral("softmax", {}, unknown) == Neutral("softmax", (("axis", -1),))
    assert neutral("Reshape", {"shape": "(0, -1)"}, unknown, output=unknown) == Neutral(
        "mxnet.Reshape", (("shape", (0, -1)),)
    )


def test_an_unknown_operator_keeps_its_name_and_all_its_parameters() -> None:
    assert neutral("NobodyHasThis", {"momentum": "0.9", "mode": "fast"}) == Neutral(
        "mxnet.NobodyHasThis", (("mode", "fast"), ("momentum", 0.9))
    )


def test_every_operator_of_the_list_of_kinds_exists() -> None:
    for op in KIND_OF_OP.keys() - ONNX_KIND_OF_OP.keys():
        found = schema(op.removeprefix(MXNET_PREFIX))
        assert op in SHARED_OPS or (found is not None and op.removeprefix(MXNET_PREFIX) == found.name), op


def test_adding_inputs_and_summing_elements_are_different_kinds() -> None:
    assert kind_of(neutral("add_n", {}).op) is Kind.COMBINE
    assert kind_of(neutral("sum", {}).op) is Kind.REDUCE
    assert kind_of(neutral("sum", {"exclude": "True"}).op) is Kind.REDUCE


def test_a_layer_of_several_operators_is_of_the_kind_of_the_heaviest() -> None:
    assert heaviest([Kind.ELEMENTWISE, Kind.CONVOLUTION, Kind.BATCHNORM]) is Kind.CONVOLUTION
    assert heaviest([Kind.RESHAPE, Kind.BROADCAST]) is Kind.BROADCAST
    assert heaviest([Kind.FLATTEN, Kind.RESHAPE]) is Kind.FLATTEN


# The kinds of operators.


@given(st.floats(width=32, allow_nan=False))
def test_a_number_of_32_bits_survives_its_shortest_spelling(value: float) -> None:
    short = single_precision(value)
    assert unpack("f", pack("f", short)) == (value,)
    assert single_precision(short) == short
    assert single_precision(float(f"{value:.9g}")) == short


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("inf", "int"),
        ("nan", "int"),
        ("1.5", "int"),
        ("2", "bool"),
        ("nan", "bool"),
        ("many", "int"),
        ("(1, two)", "tuple"),
        ("(1,,2)", "tuple"),
        ("((1, 2), (3, 4))", "tuple"),
        ("1" * 65, "int"),
        ("9" * 1_000_000, "float"),
        ("١٢", "int"),
        ("1\x00", "int"),
    ],
)
def test_a_value_of_another_type_is_refused(text: str, kind: str) -> None:
    with pytest.raises(LiteralError) as refusal:
        parse_value(text, kind)
    assert len(str(refusal.value)) < 100


@pytest.mark.parametrize(
    ("text", "value"),
    [("()", ()), ("[]", ()), ("None", None), ("", None), ("3", (3,)), ("(3,)", (3,)), ("(None, 2)", (None, 2))],
)
def test_empty_short_and_open_tuples_are_read(text: str, value: ParamValue) -> None:
    assert parse_value(text, "tuple") == value


@pytest.mark.parametrize("text", ["inf", "1e300", "1e39"])
def test_a_number_beyond_32_bits_is_infinite(text: str) -> None:
    assert parse_value(text, "float") == float("inf")


@given(st.text(), st.sampled_from(["bool", "int", "float", "tuple", "text"]))
def test_any_text_is_a_value_or_refused(text: str, kind: str) -> None:
    guess_value(text)
    try:
        value = parse_value(text, kind)
    except LiteralError:
        return
    expected = {"bool": bool, "int": int, "float": float, "tuple": tuple, "text": str}[kind]
    assert value is None or type(value) is expected
