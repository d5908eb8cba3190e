"""ONNX models for tests, built node by node."""

from collections.abc import Mapping, Sequence
from importlib.metadata import version
from math import prod
from pathlib import Path

import onnx
from onnx import GraphProto, ModelProto, NodeProto, TensorProto
from onnx.helper import make_graph, make_model, make_node, make_opsetid, make_tensor, make_tensor_value_info
from packaging.version import Version

from dlbricks_tui.models.graph import LayerGraph, Level, Numbers, Shape
from dlbricks_tui.models.input_shapes import ShapeMemory
from dlbricks_tui.models.library import source_of
from dlbricks_tui.models.loading import Loader
from tests.models.table_framework import TableFramework

LIGHT = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
# On Python 3.10 the newest ONNX Runtime is 1.23, which does not know version 24 of the operators.
ORT_VERSION = Version(version("onnxruntime"))
NEWEST_OPSET = 24 if Version("1.24") <= ORT_VERSION else 23
OPSET = 13


def floats(name: str, shape: Sequence[int]) -> TensorProto:
    """Return a weight."""
    return make_tensor(name, TensorProto.FLOAT, shape, [0.5] * prod(shape))


def integers(name: str, values: Sequence[int]) -> TensorProto:
    """Return a list of sizes or axes."""
    return make_tensor(name, TensorProto.INT64, (len(values),), values)


def model(
    nodes: Sequence[NodeProto],
    inputs: Mapping[str, Sequence[int | str | None]],
    outputs: Sequence[str],
    weights: Sequence[TensorProto] = (),
    opset: int = OPSET,
) -> ModelProto:
    """Return a model of floats."""
    graph = make_graph(
        list(nodes),
        "test",
        [make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in inputs.items()],
        [onnx.ValueInfoProto(name=name) for name in outputs],
        list(weights),
    )
    return make_model(graph, opset_imports=[make_opsetid("", opset)], ir_version=8)


def saved(folder: Path, made: ModelProto, name: str = "net") -> Path:
    """Write the model to a file."""
    path = folder / f"{name}.onnx"
    path.write_bytes(made.SerializeToString())
    return path


def loaded(
    folder: Path,
    made: ModelProto,
    given: Mapping[str, Shape] | None = None,
    values: Mapping[str, Numbers] | None = None,
    batch_size: int | None = None,
    memory: ShapeMemory | None = None,
) -> LayerGraph:
    """Return the written layers of the model."""
    loader = Loader(folder / "cache", TableFramework(), memory=memory)
    return loader.load(source_of(saved(folder, made)), Level.WRITTEN, given, values, batch_size)


def small(opset: int = OPSET) -> ModelProto:
    """Return a convolution, an activation, a pooling and a fully connected layer."""
    nodes = [
        make_node("Conv", ["x", "w", "b"], ["c"], name="conv1", pads=[1, 1, 1, 1]),
        make_node("Relu", ["c"], ["r"], name="relu1"),
        make_node("GlobalAveragePool", ["r"], ["p"], name="pool"),
        make_node("Reshape", ["p", "shape"], ["f"], name="flat"),
        make_node("Gemm", ["f", "v", "d"], ["y"], name="classes", transB=1),
    ]
    weights = [
        floats("w", (8, 3, 3, 3)),
        floats("b", (8,)),
        integers("shape", (1, -1)),
        floats("v", (10, 8)),
        floats("d", (10,)),
    ]
    return model(nodes, {"x": (1, 3, 16, 16)}, ["y"], weights, opset)


def kept_in(location: str, weight: TensorProto, **numbers: int) -> TensorProto:
    """Return the weight with its numbers in another file."""
    for name in ("float_data", "int64_data"):
        weight.ClearField(name)
    weight.data_location = TensorProto.EXTERNAL
    for key, value in {"location": location, **numbers}.items():
        weight.external_data.add(key=key, value=str(value))
    return weight


def with_everything() -> ModelProto:
    """Return an `If` with a constant and a weight inside, a computed shape, and a weight in the file `big`."""

    def inside(op: str, name: str) -> GraphProto:
        nodes = [
            make_node("Constant", [], [f"{name}_c"], value=floats("", (4,))),
            make_node(op, ["r", f"{name}_c"], [f"{name}_a"]),
            make_node("Mul", [f"{name}_a", f"{name}_w"], [f"{name}_result"]),
        ]
        result = make_tensor_value_info(f"{name}_result", TensorProto.FLOAT, None)
        return make_graph(nodes, name, [], [result], [floats(f"{name}_w", (4,))])

    nodes = [
        make_node("Add", ["x", "big"], ["a"], name="shift"),
        make_node("Relu", ["a"], ["r"], name="relu"),
        make_node("NonZero", ["r"], ["found"], name="where"),
        make_node("Shape", ["found"], ["sizes"], name="sizes"),
        make_node("ConstantOfShape", ["sizes"], ["filled"], name="filled", value=floats("", (1,))),
        branch("yes", inside("Mul", "yes"), inside("Add", "no"), "y"),
    ]
    made = model(nodes, {"x": (1, 4)}, ["y", "filled"], [kept_in("big", floats("big", (4,)), offset=0, length=16)])
    made.graph.input.append(make_tensor_value_info("yes", TensorProto.BOOL, ()))
    return made


def branch(condition: str, yes: GraphProto, no: GraphProto, output: str) -> NodeProto:
    """Return an `If`."""
    return make_node("If", [condition], [output], name="choice", then_branch=yes, else_branch=no)


def of_unknown_shapes() -> ModelProto:
    """Return a model of one layer whose output has one column per value other than zero."""
    return model([make_node("NonZero", ["x"], ["y"])], {"x": (1, 4)}, ["y"])


def of_varying_sizes() -> ModelProto:
    """Return a model like a voice: how many of 50 rows it puts out is drawn anew in each run."""
    nodes = [
        make_node("RandomUniform", [], ["drawn"], shape=(50,), seed=1.0),
        make_node("Greater", ["drawn", "half"], ["chosen"]),
        make_node("NonZero", ["chosen"], ["found"]),
        make_node("Squeeze", ["found", "first"], ["rows"]),
        make_node("MatMul", ["x", "w"], ["h"]),
        make_node("Gather", ["h", "rows"], ["kept"]),
        make_node("Relu", ["kept"], ["y"]),
    ]
    weights = [make_tensor("half", TensorProto.FLOAT, (), [0.5]), integers("first", [0]), floats("w", (4, 8))]
    return model(nodes, {"x": (50, 4)}, ["y"], weights)


def of_another_rank() -> ModelProto:
    """Return a recogniser whose output has four axes, where its file declares three."""
    nodes = [
        make_node("LSTM", ["x", "w", "r"], ["h"], hidden_size=8),
        make_node("Shape", ["h"], ["sizes"]),
        make_node("NonZero", ["sizes"], ["found"]),
        make_node("Squeeze", ["found", "first"], ["places"]),
        make_node("Gather", ["sizes", "places"], ["shape"]),
        make_node("Reshape", ["h", "shape"], ["y"]),
    ]
    weights = [floats("w", (1, 32, 4)), floats("r", (1, 32, 8)), integers("first", [0])]
    made = model(nodes, {"x": ("length", "batch", 4)}, ["y"], weights)
    made.graph.output[0].CopyFrom(make_tensor_value_info("y", TensorProto.FLOAT, ("length", "batch", 8)))
    return made


def of_a_detector() -> ModelProto:
    """Return a model like silero_vad: a recurrent state, a sampling rate that chooses a branch, and samples.

    A branch needs 256 samples at least, and the file names only some of its sizes.
    """

    def at(rate: str, width: int) -> GraphProto:
        nodes = [
            make_node("Unsqueeze", ["input", "one"], [f"{rate}_row"]),
            make_node("Conv", [f"{rate}_row", f"{rate}_w"], [f"{rate}_c"], strides=[width // 2]),
            make_node("Relu", [f"{rate}_c"], [f"{rate}_r"]),
            make_node("Transpose", [f"{rate}_r"], [f"{rate}_x"], perm=[2, 0, 1]),
            make_node("Split", ["state", "halves"], [f"{rate}_h", f"{rate}_c0"], axis=0),
            make_node(
                "LSTM",
                [f"{rate}_x", "lstm_w", "lstm_r", "", "", f"{rate}_h", f"{rate}_c0"],
                [f"{rate}_y", f"{rate}_hn", f"{rate}_cn"],
                hidden_size=128,
            ),
            make_node("Concat", [f"{rate}_hn", f"{rate}_cn"], [f"{rate}_state"], axis=0),
            make_node("ReduceMean", [f"{rate}_y"], [f"{rate}_out"], axes=[0, 1, 3], keepdims=0),
        ]
        outputs = [make_tensor_value_info(f"{rate}_{name}", TensorProto.FLOAT, None) for name in ("out", "state")]
        return make_graph(nodes, rate, [], outputs, [floats(f"{rate}_w", (16, 1, width))])

    nodes = [
        make_node("Equal", ["sr", "high"], ["is_high"]),
        make_node("If", ["is_high"], ["output", "stateN"], then_branch=at("sr16k", 256), else_branch=at("sr8k", 128)),
    ]
    weights = [
        *(floats("lstm_w", (1, 512, 16)), floats("lstm_r", (1, 512, 128))),
        *(make_tensor("high", TensorProto.INT64, (), [16_000]), integers("one", [1]), integers("halves", [1, 1])),
    ]
    made = model(nodes, {"input": (None, None), "state": (2, None, 128)}, ["output", "stateN"], weights)
    made.graph.input.append(make_tensor_value_info("sr", TensorProto.INT64, ()))
    return made


def with_a_sequence() -> ModelProto:
    """Return a model with two layers that cannot run alone: one writes a sequence, and one reads it."""
    nodes = [
        make_node("Relu", ["x"], ["r"]),
        make_node("SequenceConstruct", ["r", "x"], ["both"], name="pack"),
        make_node("SequenceAt", ["both", "first"], ["one"], name="unpack"),
        make_node("Sigmoid", ["one"], ["y"]),
    ]
    return model(nodes, {"x": (1, 4)}, ["y"], [make_tensor("first", TensorProto.INT64, (), [0])])


def finite_with_its_own_weights() -> ModelProto:
    """Return a model that computes square roots of negative numbers unless its weights have the values of the file."""
    nodes = [make_node("Sub", ["high", "x"], ["positive"]), make_node("Sqrt", ["positive"], ["y"])]
    return model(nodes, {"x": (1, 4)}, ["y"], [make_tensor("high", TensorProto.FLOAT, (4,), [100.0] * 4)])


def unfusable() -> ModelProto:
    """Return a model with a branch for inputs of 4 columns and one for inputs of 8.

    No optimiser accepts it once the columns are known. The file declares no columns, so it runs.
    """

    def columns(count: int) -> GraphProto:
        weight = floats(f"weight{count}", (count, 2))
        output = make_tensor_value_info(f"made{count}", TensorProto.FLOAT, None)
        product = make_node("MatMul", ["x", weight.name], [output.name])
        return make_graph([product], f"of {count} columns", [], [output], [weight])

    made = model([branch("yes", columns(4), columns(8), "y")], {"x": (1, "columns")}, ["y"])
    made.graph.input.append(make_tensor_value_info("yes", TensorProto.BOOL, ()))
    return made


def endless() -> ModelProto:
    """Return a model with a loop of 2^62 trips, whose output has a shape that only a run tells."""
    known = {"trip": TensorProto.INT64, "go on": TensorProto.BOOL}
    body = make_graph(
        [make_node("Identity", ["go on"], ["again"]), make_node("Add", ["value", "one"], ["sum"])],
        "body",
        [
            *(make_tensor_value_info(name, kind, []) for name, kind in known.items()),
            make_tensor_value_info("value", TensorProto.FLOAT, ["some"]),
        ],
        [
            make_tensor_value_info("again", TensorProto.BOOL, []),
            make_tensor_value_info("sum", TensorProto.FLOAT, ["others"]),
        ],
        [floats("one", (1,))],
    )
    nodes = [
        make_node("Loop", ["trips", "at first", "x"], ["y"], name="endless", body=body),
        make_node("Relu", ["y"], ["z"]),
    ]
    trips = make_tensor("trips", TensorProto.INT64, [], [1 << 62])
    return model(nodes, {"x": (4,)}, ["z"], [trips, make_tensor("at first", TensorProto.BOOL, [], [True])])
