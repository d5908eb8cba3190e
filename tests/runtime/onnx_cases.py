"""Small ONNX models of each sort that real files are made of. Each reads `x`, unless its sort needs other inputs."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy
from onnx import FunctionProto, GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto
from onnx.helper import (
    make_graph,
    make_model,
    make_node,
    make_opsetid,
    make_tensor,
    make_tensor_type_proto,
    make_tensor_value_info,
)
from onnx.numpy_helper import from_array

from tests.models.onnx_models import NEWEST_OPSET

FLOAT, HALF, BFLOAT, INT8, UINT8 = (
    TensorProto.FLOAT,
    TensorProto.FLOAT16,
    TensorProto.BFLOAT16,
    TensorProto.INT8,
    TensorProto.UINT8,
)
INT32, INT64, BOOL, STRING = TensorProto.INT32, TensorProto.INT64, TensorProto.BOOL, TensorProto.STRING

Cases = Mapping[str, Callable[[], ModelProto]]
# An input: its data type and sizes.
Input = tuple[int, Sequence[int | str]]
Node = tuple[Any, ...]


def network(
    nodes: Sequence[NodeProto],
    inputs: Mapping[str, Input],
    outputs: Sequence[str | ValueInfoProto],
    weights: Mapping[str, Any] | None = None,
    opset: int = 17,
    functions: Sequence[FunctionProto] = (),
    **domains: int,
) -> ModelProto:
    """Return a model; `domains` are further operator sets, with underscores for points."""
    graph = make_graph(
        list(nodes),
        "case",
        [make_tensor_value_info(name, kind, sizes) for name, (kind, sizes) in inputs.items()],
        [ValueInfoProto(name=it) if isinstance(it, str) else it for it in outputs],
        [from_array(numpy.asarray(value), name) for name, value in (weights or {}).items()],
    )
    used = {"": opset} | {name.replace("_", "."): version for name, version in domains.items()}
    sets = [make_opsetid(*it) for it in used.items()]
    return make_model(graph, opset_imports=sets, ir_version=8 if opset < 21 else 10, functions=list(functions))


def numbers(*shape: int, kind: str = "float32") -> Any:
    """Return small numbers of that shape."""
    count = int(numpy.prod(shape))
    return (numpy.arange(count) % 7 / 10 + 0.1).astype(kind).reshape(shape)


def small_integers(*shape: int, kind: str = "int8") -> Any:
    return (numpy.arange(int(numpy.prod(shape))) % 5).astype(kind).reshape(shape)


def scalar(value: float, kind: str = "float32") -> Any:
    return numpy.array(value, kind)


def lstm_in_both_directions() -> ModelProto:
    """Return an LSTM of four units. Its lengths are left out, and its initial states are inputs."""
    weights = {"w": numbers(2, 16, 3), "r": numbers(2, 16, 4), "b": numbers(2, 32)}
    outputs = ["y", "y_h", "y_c"]
    reads = ["x", "w", "r", "b", "", "h", "c"]
    node = make_node("LSTM", reads, outputs, hidden_size=4, direction="bidirectional")
    states: dict[str, Input] = {name: (FLOAT, [2, 1, 4]) for name in "hc"}
    return network([node], {"x": (FLOAT, [5, 1, 3]), **states}, outputs, weights)


def lstm_with_peepholes() -> ModelProto:
    weights = {"w": numbers(1, 16, 3), "r": numbers(1, 16, 4), "p": numbers(1, 12)}
    node = make_node("LSTM", ["x", "w", "r", "", "", "", "", "p"], ["", "", "y_c"], hidden_size=4)
    return network([node], {"x": (FLOAT, [5, 1, 3])}, ["y_c"], weights)


def quantised_pairs() -> ModelProto:
    """Return a convolution and a matrix product between pairs of QuantizeLinear and DequantizeLinear."""
    nodes = [
        make_node("QuantizeLinear", ["x", "s", "z"], ["xq"]),
        make_node("DequantizeLinear", ["xq", "s", "z"], ["xd"]),
        make_node("DequantizeLinear", ["wq", "ws", "wz"], ["wd"], axis=0),
        make_node("DequantizeLinear", ["bq", "bs"], ["bd"]),
        make_node("Conv", ["xd", "wd", "bd"], ["c"], pads=[1, 1, 1, 1]),
        make_node("Relu", ["c"], ["r"]),
        make_node("QuantizeLinear", ["r", "s", "z"], ["rq"]),
        make_node("DequantizeLinear", ["rq", "s", "z"], ["rd"]),
        make_node("GlobalAveragePool", ["rd"], ["p"]),
        make_node("Flatten", ["p"], ["f"]),
        make_node("DequantizeLinear", ["vq", "s", "vz"], ["vd"]),
        make_node("MatMul", ["f", "vd"], ["y"]),
    ]
    weights = {
        "s": scalar(0.02),
        "z": scalar(3, "uint8"),
        "wq": small_integers(8, 3, 3, 3),
        "ws": numbers(8) / 10,
        "wz": numpy.zeros(8, "int8"),
        "bq": small_integers(8, kind="int32"),
        "bs": scalar(0.01),
        "vq": small_integers(8, 5),
        "vz": scalar(0, "int8"),
    }
    return network(nodes, {"x": (FLOAT, [1, 3, 8, 8])}, ["y"], weights)


def blocks_of_four_bits() -> ModelProto:
    weight = make_tensor("w", TensorProto.INT4, (8, 4), [1, -2, 3, 0] * 8)
    nodes = [
        make_node("DequantizeLinear", ["w", "s"], ["d"], axis=0, block_size=4),
        make_node("MatMul", ["x", "d"], ["y"]),
    ]
    made = network(nodes, {"x": (FLOAT, [2, 8])}, ["y"], {"s": numbers(2, 4)}, opset=21)
    made.graph.initializer.append(weight)
    return made


def quantised_operators() -> ModelProto:
    """Return integer operators with scales, from standard ONNX and from ONNX Runtime."""
    microsoft = {"domain": "com.microsoft"}
    nodes = [
        make_node("QuantizeLinear", ["x", "s", "z"], ["q"]),
        make_node("QLinearConv", ["q", "s", "z", "w", "s", "wz", "s", "z", "b"], ["c"], pads=[1, 1, 1, 1]),
        make_node("QLinearSigmoid", ["c", "s", "z", "s", "z"], ["m"], **microsoft),
        make_node("QLinearLeakyRelu", ["m", "s", "z", "s", "z"], ["l"], alpha=0.1, **microsoft),
        make_node("QLinearAdd", ["c", "s", "z", "l", "s", "z", "s", "z"], ["a"], **microsoft),
        make_node("QLinearMul", ["a", "s", "z", "l", "s", "z", "s", "z"], ["u"], **microsoft),
        make_node("QLinearConcat", ["s", "z", "u", "s", "z", "a", "s", "z"], ["t"], axis=1, **microsoft),
        make_node("QLinearAveragePool", ["t", "s", "z", "s", "z"], ["v"], kernel_shape=[2, 2], **microsoft),
        make_node("QLinearGlobalAveragePool", ["v", "s", "z", "s", "z"], ["p"], **microsoft),
        make_node("Flatten", ["p"], ["f"]),
        make_node("QLinearMatMul", ["f", "s", "z", "k", "s", "wz", "s", "z"], ["o"]),
        make_node("QLinearSoftmax", ["o", "s", "z", "s", "z"], ["n"], opset=13, axis=-1, **microsoft),
        make_node("QGemm", ["f", "s", "z", "k", "s", "wz", "", "s", "z"], ["g"], **microsoft),
        make_node("DequantizeLinear", ["n", "s", "z"], ["y"]),
        make_node("DequantizeLinear", ["g", "s", "z"], ["e"]),
    ]
    weights = {
        "s": scalar(0.02),
        "z": scalar(3, "uint8"),
        "w": small_integers(8, 3, 3, 3),
        "wz": scalar(0, "int8"),
        "b": small_integers(8, kind="int32"),
        "k": small_integers(16, 5),
    }
    return network(nodes, {"x": (FLOAT, [1, 3, 8, 8])}, ["y", "e"], weights, com_microsoft=1)


def blockwise_product() -> ModelProto:
    node = make_node("MatMulNBits", ["x", "w", "s"], ["y"], domain="com.microsoft", K=32, N=4, bits=4, block_size=32)
    weights = {"w": small_integers(4, 1, 16, kind="uint8"), "s": numbers(4)}
    return network([node], {"x": (FLOAT, [2, 32])}, ["y"], weights, com_microsoft=1)


def of_precision(kind: int, name: str) -> ModelProto:
    nodes = [
        make_node("Conv", ["x", "w", "b"], ["c"], pads=[1, 1, 1, 1]),
        make_node("Relu", ["c"], ["r"]),
        make_node("GlobalAveragePool", ["r"], ["p"]),
        make_node("Flatten", ["p"], ["f"]),
        make_node("MatMul", ["f", "v"], ["y"]),
    ]
    weights = {"w": numbers(8, 3, 3, 3, kind=name), "b": numbers(8, kind=name), "v": numbers(8, 5, kind=name)}
    return network(nodes, {"x": (kind, [1, 3, 8, 8])}, ["y"], weights)


def brain_floats() -> ModelProto:
    nodes = [make_node("Cast", ["x"], ["c"], to=FLOAT), make_node("Relu", ["c"], ["r"])]
    return network([*nodes, make_node("Cast", ["r"], ["y"], to=BFLOAT)], {"x": (BFLOAT, [2, 8])}, ["y"])


def inside(nodes: Sequence[NodeProto], outputs: Mapping[str, tuple[int, Any]], reads: Any = ()) -> GraphProto:
    return make_graph(
        list(nodes), "inside", list(reads), [make_tensor_value_info(name, *found) for name, found in outputs.items()]
    )


def loop() -> ModelProto:
    """Return a loop of as many steps as an input says, which also gathers its states."""
    reads = [
        make_tensor_value_info("turn", INT64, ()),
        make_tensor_value_info("on", BOOL, ()),
        make_tensor_value_info("state", FLOAT, (1, 4)),
    ]
    nodes = [
        make_node("Identity", ["on"], ["go"]),
        make_node("MatMul", ["state", "w"], ["new"]),
        make_node("Identity", ["new"], ["row"]),
    ]
    body = inside(nodes, {"go": (BOOL, ()), "new": (FLOAT, (1, 4)), "row": (FLOAT, (1, 4))}, reads)
    looped = make_node("Loop", ["trips", "", "r"], ["last", "rows"], body=body)
    inputs: dict[str, Input] = {"x": (FLOAT, [1, 4]), "trips": (INT64, [])}
    return network([make_node("Relu", ["x"], ["r"]), looped], inputs, ["last", "rows"], {"w": numbers(4, 4)})


def scan() -> ModelProto:
    reads = [make_tensor_value_info("state", FLOAT, (4,)), make_tensor_value_info("item", FLOAT, (4,))]
    nodes = [make_node("Add", ["state", "item"], ["new"]), make_node("Mul", ["new", "w"], ["row"])]
    body = inside(nodes, {"new": (FLOAT, (4,)), "row": (FLOAT, (4,))}, reads)
    node = make_node("Scan", ["h", "x"], ["last", "rows"], body=body, num_scan_inputs=1)
    return network([node], {"x": (FLOAT, [6, 4]), "h": (FLOAT, [4])}, ["last", "rows"], {"w": numbers(4)})


def if_by_data() -> ModelProto:
    """Return an `If` whose condition follows from the numbers of the input."""
    yes = inside(
        [make_node("MatMul", ["x", "w"], ["yes"]), make_node("Tanh", ["yes"], ["yes_y"])], {"yes_y": (FLOAT, None)}
    )
    no = inside([make_node("MatMul", ["x", "v"], ["no"]), make_node("Relu", ["no"], ["no_y"])], {"no_y": (FLOAT, None)})
    nodes = [
        make_node("ReduceMax", ["x"], ["most"], keepdims=0),
        make_node("Greater", ["most", "bound"], ["large"]),
        make_node("If", ["large"], ["y"], then_branch=yes, else_branch=no, name="choice"),
    ]
    weights = {"bound": scalar(100.0), "w": numbers(4, 4), "v": numbers(4, 4)}
    return network(nodes, {"x": (FLOAT, [1, 4])}, ["y"], weights)


def lookup_and_attention() -> ModelProto:
    microsoft = {"domain": "com.microsoft"}
    nodes = [
        make_node("EmbedLayerNormalization", ["ids", "", "words", "places", "", "g", "b"], ["e", "m"], **microsoft),
        make_node("Attention", ["e", "w", "wb"], ["a"], num_heads=2, **microsoft),
        make_node("SkipLayerNormalization", ["a", "e", "g", "b"], ["k"], **microsoft),
        make_node("BiasGelu", ["k", "b"], ["u"], **microsoft),
        make_node("FastGelu", ["u"], ["f"], **microsoft),
        make_node("MultiHeadAttention", ["f", "f", "f"], ["h"], num_heads=2, **microsoft),
        make_node("FusedMatMul", ["h", "v"], ["y"], transB=1, **microsoft),
    ]
    weights = {
        "words": numbers(50, 8),
        "places": numbers(16, 8),
        "g": numbers(8),
        "b": numbers(8),
        "w": numbers(8, 24),
        "wb": numbers(24),
        "v": numbers(3, 8),
    }
    return network(nodes, {"ids": (INT32, [1, 6])}, ["y"], weights, com_microsoft=1)


def in_blocks() -> ModelProto:
    """Return a file that ONNX Runtime saved with its own layout."""
    blocks = {"domain": "com.microsoft.nchwc"}
    nodes = [
        make_node("Conv", ["x", "w", "b"], ["c"], pads=[1, 1, 1, 1], activation="Relu", **blocks),
        make_node("MaxPool", ["c"], ["p"], kernel_shape=[2, 2], strides=[2, 2], **blocks),
        make_node("GlobalAveragePool", ["p"], ["a"], **blocks),
        make_node("ReorderOutput", ["a"], ["o"], channels=16, **blocks),
        make_node("Flatten", ["o"], ["f"]),
        make_node("FusedGemm", ["f", "v"], ["y"], activation="Relu", domain="com.microsoft"),
    ]
    weights = {"w": numbers(16, 3, 3, 3), "b": numbers(16), "v": numbers(16, 5)}
    return network(nodes, {"x": (FLOAT, [1, 3, 8, 8])}, ["y"], weights, com_microsoft=1, com_microsoft_nchwc=1)


def trees() -> ModelProto:
    """Return a classifier of texts."""
    tree: dict[str, Any] = {
        "nodes_treeids": [0, 0, 0],
        "nodes_nodeids": [0, 1, 2],
        "nodes_featureids": [1, 0, 0],
        "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF"],
        "nodes_values": [0.5, 0.0, 0.0],
        "nodes_truenodeids": [1, 0, 0],
        "nodes_falsenodeids": [2, 0, 0],
        "nodes_missing_value_tracks_true": [0, 0, 0],
    }
    learned = {"domain": "ai.onnx.ml"}
    scaled = make_node("Scaler", ["x"], ["s"], offset=[0.1] * 3, scale=[2.0] * 3, **learned)
    labels: dict[str, Any] = {"classlabels_strings": ["no", "yes"]}
    node = make_node(
        "TreeEnsembleClassifier",
        ["s"],
        ["label", "scores"],
        class_treeids=[0, 0],
        class_nodeids=[1, 2],
        class_ids=[0, 0],
        class_weights=[0.2, 0.8],
        **labels,
        **tree,
        **learned,
    )
    zipped = make_node("ZipMap", ["scores"], ["maps"], **labels, **learned)
    value = make_tensor_type_proto(FLOAT, ())
    maps = ValueInfoProto(name="maps")
    maps.type.sequence_type.elem_type.map_type.key_type = STRING
    maps.type.sequence_type.elem_type.map_type.value_type.CopyFrom(value)
    label = make_tensor_value_info("label", STRING, None)
    return network([scaled, node, zipped], {"x": (FLOAT, [4, 3])}, [label, maps], ai_onnx_ml=3)


def texts() -> ModelProto:
    """Return a model that maps texts to numbers and looks them up."""
    nodes = [
        make_node(
            "LabelEncoder",
            ["words"],
            ["ids"],
            domain="ai.onnx.ml",
            keys_strings=["a", "b"],
            values_int64s=[0, 1],
            default_int64=2,
        ),
        make_node("Gather", ["table", "ids"], ["g"]),
        make_node("ReduceMean", ["g"], ["y"], axes=[1], keepdims=0),
    ]
    return network(nodes, {"words": (STRING, [1, 6])}, ["y"], {"table": numbers(3, 8)}, ai_onnx_ml=2)


def sequences() -> ModelProto:
    nodes = [
        make_node("SplitToSequence", ["x"], ["parts"], axis=0, keepdims=0),
        make_node("SequenceAt", ["parts", "one"], ["second"]),
        make_node("SequenceInsert", ["parts", "second"], ["more"]),
        make_node("ConcatFromSequence", ["more"], ["y"], axis=0, new_axis=1),
    ]
    return network(nodes, {"x": (FLOAT, [3, 4])}, ["y"], {"one": numpy.array(1)})


def without_batch_axis() -> ModelProto:
    nodes = [make_node("MatMul", ["x", "w"], ["m"]), make_node("Softmax", ["m"], ["y"], axis=0)]
    return network(nodes, {"x": (FLOAT, [8])}, ["y"], {"w": numbers(8, 5)})


def of_scalars() -> ModelProto:
    nodes = [make_node("Mul", ["x", "x"], ["m"]), make_node("Add", ["m", "one"], ["y"])]
    return network(nodes, {"x": (FLOAT, [])}, ["y"], {"one": scalar(1.0)})


def function_in_a_file() -> ModelProto:
    function = FunctionProto(
        name="Twice", domain="mine", input=["a"], output=["b"], opset_import=[make_opsetid("", 17)]
    )
    function.node.append(make_node("Add", ["a", "a"], ["b"]))
    nodes = [make_node("Twice", ["x"], ["t"], domain="mine"), make_node("Relu", ["t"], ["y"])]
    return network(nodes, {"x": (FLOAT, [1, 4])}, ["y"], functions=[function], mine=1)


def found_by_data() -> ModelProto:
    """Return shapes that depend on data: NonZero, then layers that read its result."""
    nodes = [
        make_node("Relu", ["x"], ["r"]),
        make_node("NonZero", ["r"], ["found"]),
        make_node("Cast", ["found"], ["c"], to=FLOAT),
        make_node("ReduceMean", ["c"], ["y"], keepdims=0),
    ]
    return network(nodes, {"x": (FLOAT, [3, 4])}, ["y"])


def dynamic_reshape() -> ModelProto:
    """Return a reshape of open axes whose target the model computes."""
    nodes = [
        make_node("Shape", ["x"], ["shape"]),
        make_node("Gather", ["shape", "first"], ["batch"]),
        make_node("Concat", ["batch", "rest"], ["target"], axis=0),
        make_node("Relu", ["x"], ["r"]),
        make_node("Reshape", ["r", "target"], ["f"]),
        make_node("MatMul", ["f", "w"], ["y"]),
    ]
    weights = {"first": numpy.array([0]), "rest": numpy.array([-1]), "w": numbers(12, 5)}
    return network(nodes, {"x": (FLOAT, ["batch", 3, 4])}, ["y"], weights)


def classic(opset: int) -> ModelProto:
    """Return operators that changed their form over the operator sets."""
    nodes = [
        make_node("Conv", ["x", "w", "b"], ["c"], pads=[1, 1, 1, 1]),
        make_node("BatchNormalization", ["c", "b", "b", "b", "v"], ["n"]),
        make_node("Relu", ["n"], ["r"]),
        make_node("MaxPool", ["r"], ["m"], kernel_shape=[2, 2], strides=[2, 2]),
        make_node("Flatten", ["m"], ["f"]),
        make_node("Gemm", ["f", "k"], ["g"]),
        make_node("Softmax", ["g"], ["y"], axis=1),
    ]
    weights = {"w": numbers(4, 3, 3, 3), "b": numbers(4), "v": numbers(4) + 1, "k": numbers(64, 5)}
    if opset < 11:
        weights["c5"] = numbers(5)
        nodes[5] = make_node("Gemm", ["f", "k", "c5"], ["g"])
    return network(nodes, {"x": (FLOAT, [1, 3, 8, 8])}, ["y"], weights, opset)


CASES: Cases = {
    "LSTM in both directions": lstm_in_both_directions,
    "LSTM with peepholes": lstm_with_peepholes,
    "quantised pairs": quantised_pairs,
    "quantised operators": quantised_operators,
    "blocks of four bits": blocks_of_four_bits,
    "blockwise product": blockwise_product,
    "half precision": lambda: of_precision(HALF, "float16"),
    "brain floats": brain_floats,
    "Loop with trips from an input": loop,
    "Scan": scan,
    "If by data": if_by_data,
    "lookup and attention": lookup_and_attention,
    "saved in blocks": in_blocks,
    "tree classifier of texts": trees,
    "texts": texts,
    "sequences": sequences,
    "no batch axis": without_batch_axis,
    "scalars": of_scalars,
    "function": function_in_a_file,
    "NonZero": found_by_data,
    "dynamic reshape": dynamic_reshape,
    **{f"opset {opset}": partial(classic, opset) for opset in (7, 13, NEWEST_OPSET)},
}
