"""ONNX models for tests, built node by node."""

from collections.abc import Mapping, Sequence
from importlib.metadata import version
from math import prod
from pathlib import Path

import onnx
from onnx import GraphProto, ModelProto, NodeProto, TensorProto
from onnx.helper import make_graph, make_model, make_node, make_opsetid, make_tensor, make_tensor_value_info
from onnx.parser import parse_graph
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


def written(text: str, opset: int = OPSET) -> ModelProto:
    """Return a model from a text in ONNX's syntax. A weight of which one number is written has it everywhere."""
    graph = parse_graph(text)
    _fill(graph)
    return make_model(graph, opset_imports=[make_opsetid("", opset)], ir_version=8)


def _fill(graph: GraphProto) -> None:
    for weight in graph.initializer:
        if len(weight.float_data) == 1:
            weight.float_data.extend(list(weight.float_data) * (prod(weight.dims) - 1))
    for inner in (it.g for node in graph.node for it in node.attribute if it.HasField("g")):
        _fill(inner)


def small(opset: int = OPSET) -> ModelProto:
    """Return a convolution, an activation, a pooling and a fully connected layer."""
    return written(
        """test (float[1,3,16,16] x) => (y)
        <float[8,3,3,3] w = {0.5}, float[8] b = {0.5}, int64[2] shape = {1, -1}, float[10,8] v = {0.5},
         float[10] d = {0.5}> {
            [conv1] c = Conv <pads = [1, 1, 1, 1]> (x, w, b)
            [relu1] r = Relu (c)
            [pool] p = GlobalAveragePool (r)
            [flat] f = Reshape (p, shape)
            [classes] y = Gemm <transB = 1> (f, v, d)
        }""",
        opset,
    )


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
    inside = """<{0}_branch = {1} () => (float[] {1}_result) <float[4] {1}_w = {{0.5}}> {{
        {1}_c = Constant <value = float[4] {{0.5, 0.5, 0.5, 0.5}}> ()
        {1}_a = {2} (r, {1}_c)
        {1}_result = Mul ({1}_a, {1}_w)
    }}>"""
    branches = ", ".join(inside.format(*it)[1:-1] for it in (("else", "no", "Add"), ("then", "yes", "Mul")))
    made = written(
        f"""test (float[1,4] x, bool yes) => (y, filled) <float[4] big = {{0.5}}> {{
            [shift] a = Add (x, big)
            [relu] r = Relu (a)
            [where] found = NonZero (r)
            [sizes] sizes = Shape (found)
            [filled] filled = ConstantOfShape <value = float[1] {{0.5}}> (sizes)
            [choice] y = If <{branches}> (yes)
        }}"""
    )
    kept_in("big", made.graph.initializer[0], offset=0, length=16)
    return made


def branch(condition: str, yes: GraphProto, no: GraphProto, output: str) -> NodeProto:
    """Return an `If`."""
    return make_node("If", [condition], [output], name="choice", then_branch=yes, else_branch=no)


def of_unknown_shapes() -> ModelProto:
    """Return a model of one layer whose output has one column per value other than zero."""
    return written("test (float[1,4] x) => (y) { y = NonZero (x) }")


def of_varying_sizes() -> ModelProto:
    """Return a model like a voice: how many of 50 rows it puts out is drawn anew in each run."""
    return written(
        """test (float[50,4] x) => (y) <float half = {0.5}, int64[1] first = {0}, float[4,8] w = {0.5}> {
            drawn = RandomUniform <shape = [50], seed = 1.0> ()
            chosen = Greater (drawn, half)
            found = NonZero (chosen)
            rows = Squeeze (found, first)
            h = MatMul (x, w)
            kept = Gather (h, rows)
            y = Relu (kept)
        }"""
    )


def of_another_rank() -> ModelProto:
    """Return a recogniser whose output has four axes, where its file declares three."""
    return written(
        """test (float[length,batch,4] x) => (float[length,batch,8] y)
        <float[1,32,4] w = {0.5}, float[1,32,8] r = {0.5}, int64[1] first = {0}> {
            h = LSTM <hidden_size = 8> (x, w, r)
            sizes = Shape (h)
            found = NonZero (sizes)
            places = Squeeze (found, first)
            shape = Gather (sizes, places)
            y = Reshape (h, shape)
        }"""
    )


def of_a_detector() -> ModelProto:
    """Return a model like silero_vad: a recurrent state, a sampling rate that chooses a branch, and samples.

    A branch needs 256 samples at least, and the file names only some of its sizes.
    """
    inside = """{0}_branch = {1} () => (float[] {1}_out, float[] {1}_state) <float[16,1,{2}] {1}_w = {{0.5}}> {{
        {1}_row = Unsqueeze (input, one)
        {1}_c = Conv <strides = [{3}]> ({1}_row, {1}_w)
        {1}_r = Relu ({1}_c)
        {1}_x = Transpose <perm = [2, 0, 1]> ({1}_r)
        {1}_h, {1}_c0 = Split <axis = 0> (state, halves)
        {1}_y, {1}_hn, {1}_cn = LSTM <hidden_size = 128> ({1}_x, lstm_w, lstm_r, , , {1}_h, {1}_c0)
        {1}_state = Concat <axis = 0> ({1}_hn, {1}_cn)
        {1}_out = ReduceMean <axes = [0, 1, 3], keepdims = 0> ({1}_y)
    }}"""
    rates = ("else", "sr8k", 128, 64), ("then", "sr16k", 256, 128)
    return written(
        f"""test (float[?,?] input, float[2,?,128] state, int64 sr) => (output, stateN)
        <float[1,512,16] lstm_w = {{0.5}}, float[1,512,128] lstm_r = {{0.5}}, int64 high = {{16000}},
         int64[1] one = {{1}}, int64[2] halves = {{1, 1}}> {{
            is_high = Equal (sr, high)
            output, stateN = If <{", ".join(inside.format(*it) for it in rates)}> (is_high)
        }}"""
    )


def with_a_sequence() -> ModelProto:
    """Return a model with two layers that cannot run alone: one writes a sequence, and one reads it."""
    return written(
        """test (float[1,4] x) => (y) <int64 first = {0}> {
            r = Relu (x)
            [pack] both = SequenceConstruct (r, x)
            [unpack] one = SequenceAt (both, first)
            y = Sigmoid (one)
        }"""
    )


def finite_with_its_own_weights() -> ModelProto:
    """Return a model that computes square roots of negative numbers unless its weights have the values of the file."""
    return written(
        "test (float[1,4] x) => (y) <float[4] high = {100.0}> { positive = Sub (high, x)  y = Sqrt (positive) }"
    )


def unfusable() -> ModelProto:
    """Return a model with a branch for inputs of 4 columns and one for inputs of 8.

    No optimiser accepts it once the columns are known. The file declares no columns, so it runs.
    """
    inside = "{0}_branch = of{1} () => (float[] made{1}) <float[{1},2] w{1} = {{0.5}}> {{ made{1} = MatMul (x, w{1}) }}"
    branches = ", ".join(inside.format(*it) for it in (("else", 8), ("then", 4)))
    return written(f"test (float[1,columns] x, bool yes) => (y) {{ [choice] y = If <{branches}> (yes) }}")


def endless() -> ModelProto:
    """Return a model with a loop of 2^62 trips, whose output has a shape that only a run tells."""
    return written(
        f"""test (float[4] x) => (z) <int64 trips = {{{1 << 62}}}, bool begin = {{1}}> {{
            [endless] y = Loop <body = body (int64 trip, bool on, float[some] value) => (bool again, float[others] sum)
            <float[1] one = {{0.5}}> {{
                again = Identity (on)
                sum = Add (value, one)
            }}> (trips, begin, x)
            z = Relu (y)
        }}"""
    )
