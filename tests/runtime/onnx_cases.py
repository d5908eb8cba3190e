"""Small ONNX models of each sort that real files are made of. Each reads `x`, unless its sort needs other inputs."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy
from onnx import ModelProto, TensorProto
from onnx.helper import make_tensor, tensor_dtype_to_np_dtype
from onnx.numpy_helper import from_array
from onnx.parser import parse_model

from tests.models.onnx_models import NEWEST_OPSET

Cases = Mapping[str, Callable[[], ModelProto]]


def network(graph: str, opset: int = 17, functions: str = "", **domains: int) -> ModelProto:
    """Return a model in ONNX's text format; `domains` are further operator sets, with underscores for points.

    Weights without values get small numbers.
    """
    used = {"": opset} | {name.replace("_", "."): version for name, version in domains.items()}
    sets = ", ".join(f'"{name}" : {version}' for name, version in used.items())
    made = parse_model(f"<ir_version: {8 if opset < 21 else 10}, opset_import: [{sets}]> case {graph} {functions}")
    for it in made.graph.value_info:
        kind, shape = it.type.tensor_type.elem_type, [axis.dim_value for axis in it.type.tensor_type.shape.dim]
        made.graph.initializer.append(_small_numbers(it.name, kind, shape))
    del made.graph.value_info[:]
    return made


def _small_numbers(name: str, kind: int, shape: list[int]) -> TensorProto:
    count = int(numpy.prod(shape))
    if kind == TensorProto.INT4:
        return make_tensor(name, kind, shape, [1, -2, 3, 0] * (count // 4))
    dtype: Any = tensor_dtype_to_np_dtype(kind)
    places = numpy.arange(count)
    values = places % 7 / 10 + 0.1 if numpy.issubdtype(dtype, numpy.floating) else places % 5
    return from_array(values.astype(dtype).reshape(shape), name)


def of_precision(name: str) -> ModelProto:
    return network(
        f"""({name}[1,3,8,8] x) => (y) <{name}[8,3,3,3] w, {name}[8] b, {name}[8,5] v> {{
            c = Conv <pads = [1, 1, 1, 1]> (x, w, b)
            r = Relu (c)
            p = GlobalAveragePool (r)
            f = Flatten (p)
            y = MatMul (f, v)
        }}"""
    )


def classic(opset: int) -> ModelProto:
    """Return operators that changed their form over the operator sets."""
    bias, read = (", float[5] c5", ", c5") if opset < 11 else ("", "")
    return network(
        f"""(float[1,3,8,8] x) => (y)
        <float[4,3,3,3] w, float[4] b, float[4] v = {{1.1, 1.2, 1.3, 1.4}}, float[64,5] k{bias}> {{
            c = Conv <pads = [1, 1, 1, 1]> (x, w, b)
            n = BatchNormalization (c, b, b, b, v)
            r = Relu (n)
            m = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (r)
            f = Flatten (m)
            g = Gemm (f, k{read})
            y = Softmax <axis = 1> (g)
        }}""",
        opset,
    )


CASES: Cases = {
    # Its lengths are left out, and its initial states are inputs.
    "LSTM in both directions": lambda: network(
        """(float[5,1,3] x, float[2,1,4] h, float[2,1,4] c) => (y, y_h, y_c)
        <float[2,16,3] w, float[2,16,4] r, float[2,32] b> {
            y, y_h, y_c = LSTM <hidden_size = 4, direction = "bidirectional"> (x, w, r, b, , h, c)
        }"""
    ),
    "LSTM with peepholes": lambda: network(
        """(float[5,1,3] x) => (y_c) <float[1,16,3] w, float[1,16,4] r, float[1,12] p> {
            , , y_c = LSTM <hidden_size = 4> (x, w, r, , , , , p)
        }"""
    ),
    # A convolution and a matrix product between pairs of QuantizeLinear and DequantizeLinear.
    "quantised pairs": lambda: network(
        """(float[1,3,8,8] x) => (y)
        <float s = {0.02}, uint8 z = {3}, int8[8,3,3,3] wq, float[8] ws, int8[8] wz = {0, 0, 0, 0, 0, 0, 0, 0},
        int32[8] bq, float bs = {0.01}, int8[8,5] vq, int8 vz = {0}> {
            xq = QuantizeLinear (x, s, z)
            xd = DequantizeLinear (xq, s, z)
            wd = DequantizeLinear <axis = 0> (wq, ws, wz)
            bd = DequantizeLinear (bq, bs)
            c = Conv <pads = [1, 1, 1, 1]> (xd, wd, bd)
            r = Relu (c)
            rq = QuantizeLinear (r, s, z)
            rd = DequantizeLinear (rq, s, z)
            p = GlobalAveragePool (rd)
            f = Flatten (p)
            vd = DequantizeLinear (vq, s, vz)
            y = MatMul (f, vd)
        }"""
    ),
    # Integer operators with scales, from standard ONNX and from ONNX Runtime.
    "quantised operators": lambda: network(
        """(float[1,3,8,8] x) => (y, e)
        <float s = {0.02}, uint8 z = {3}, int8[8,3,3,3] w, int8 wz = {0}, int32[8] b, int8[16,5] k> {
            q = QuantizeLinear (x, s, z)
            c = QLinearConv <pads = [1, 1, 1, 1]> (q, s, z, w, s, wz, s, z, b)
            m = com.microsoft.QLinearSigmoid (c, s, z, s, z)
            l = com.microsoft.QLinearLeakyRelu <alpha = 0.1> (m, s, z, s, z)
            a = com.microsoft.QLinearAdd (c, s, z, l, s, z, s, z)
            u = com.microsoft.QLinearMul (a, s, z, l, s, z, s, z)
            t = com.microsoft.QLinearConcat <axis = 1> (s, z, u, s, z, a, s, z)
            v = com.microsoft.QLinearAveragePool <kernel_shape = [2, 2]> (t, s, z, s, z)
            p = com.microsoft.QLinearGlobalAveragePool (v, s, z, s, z)
            f = Flatten (p)
            o = QLinearMatMul (f, s, z, k, s, wz, s, z)
            n = com.microsoft.QLinearSoftmax <opset = 13, axis = -1> (o, s, z, s, z)
            g = com.microsoft.QGemm (f, s, z, k, s, wz, , s, z)
            y = DequantizeLinear (n, s, z)
            e = DequantizeLinear (g, s, z)
        }""",
        com_microsoft=1,
    ),
    "blocks of four bits": lambda: network(
        """(float[2,8] x) => (y) <int4[8,4] w, float[2,4] s> {
            d = DequantizeLinear <axis = 0, block_size = 4> (w, s)
            y = MatMul (x, d)
        }""",
        21,
    ),
    "blockwise product": lambda: network(
        """(float[2,32] x) => (y) <uint8[4,1,16] w, float[4] s> {
            y = com.microsoft.MatMulNBits <K = 32, N = 4, bits = 4, block_size = 32> (x, w, s)
        }""",
        com_microsoft=1,
    ),
    "half precision": partial(of_precision, "float16"),
    "brain floats": lambda: network(
        "(bfloat16[2,8] x) => (y) { c = Cast <to = 1> (x) r = Relu (c) y = Cast <to = 16> (r) }"
    ),
    # It gathers its states, too.
    "Loop with trips from an input": lambda: network(
        """(float[1,4] x, int64 trips) => (last, rows) <float[4,4] w> {
            r = Relu (x)
            last, rows = Loop (trips, , r) <
                body = inside (int64 turn, bool on, float[1,4] state) => (bool go, float[1,4] new, float[1,4] row) {
                    go = Identity (on)
                    new = MatMul (state, w)
                    row = Identity (new)
                }
            >
        }"""
    ),
    "Scan": lambda: network(
        """(float[6,4] x, float[4] h) => (last, rows) <float[4] w> {
            last, rows = Scan (h, x) <
                num_scan_inputs = 1,
                body = inside (float[4] state, float[4] item) => (float[4] new, float[4] row) {
                    new = Add (state, item)
                    row = Mul (new, w)
                }
            >
        }"""
    ),
    # The condition follows from the numbers of the input.
    "If by data": lambda: network(
        """(float[1,4] x) => (y) <float bound = {100.0}, float[4,4] w, float[4,4] v> {
            most = ReduceMax <keepdims = 0> (x)
            large = Greater (most, bound)
            [choice] y = If (large) <
                then_branch = inside () => (float[] yes_y) { yes = MatMul (x, w) yes_y = Tanh (yes) },
                else_branch = inside () => (float[] no_y) { no = MatMul (x, v) no_y = Relu (no) }
            >
        }"""
    ),
    "lookup and attention": lambda: network(
        """(int32[1,6] ids) => (y)
        <float[50,8] words, float[16,8] places, float[8] g, float[8] b, float[8,24] w, float[24] wb, float[3,8] v> {
            e, m = com.microsoft.EmbedLayerNormalization (ids, , words, places, , g, b)
            a = com.microsoft.Attention <num_heads = 2> (e, w, wb)
            k = com.microsoft.SkipLayerNormalization (a, e, g, b)
            u = com.microsoft.BiasGelu (k, b)
            f = com.microsoft.FastGelu (u)
            h = com.microsoft.MultiHeadAttention <num_heads = 2> (f, f, f)
            y = com.microsoft.FusedMatMul <transB = 1> (h, v)
        }""",
        com_microsoft=1,
    ),
    # A file that ONNX Runtime saved with its own layout.
    "saved in blocks": lambda: network(
        """(float[1,3,8,8] x) => (y) <float[16,3,3,3] w, float[16] b, float[16,5] v> {
            c = com.microsoft.nchwc.Conv <pads = [1, 1, 1, 1], activation = "Relu"> (x, w, b)
            p = com.microsoft.nchwc.MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (c)
            a = com.microsoft.nchwc.GlobalAveragePool (p)
            o = com.microsoft.nchwc.ReorderOutput <channels = 16> (a)
            f = Flatten (o)
            y = com.microsoft.FusedGemm <activation = "Relu"> (f, v)
        }""",
        com_microsoft=1,
        com_microsoft_nchwc=1,
    ),
    "tree classifier of texts": lambda: network(
        """(float[4,3] x) => (string[] label, seq(map(string, float)) maps) {
            s = ai.onnx.ml.Scaler <offset = [0.1, 0.1, 0.1], scale = [2.0, 2.0, 2.0]> (x)
            label, scores = ai.onnx.ml.TreeEnsembleClassifier <
                class_treeids = [0, 0], class_nodeids = [1, 2], class_ids = [0, 0], class_weights = [0.2, 0.8],
                classlabels_strings = ["no", "yes"], nodes_treeids = [0, 0, 0], nodes_nodeids = [0, 1, 2],
                nodes_featureids = [1, 0, 0], nodes_modes = ["BRANCH_LEQ", "LEAF", "LEAF"],
                nodes_values = [0.5, 0.0, 0.0], nodes_truenodeids = [1, 0, 0], nodes_falsenodeids = [2, 0, 0],
                nodes_missing_value_tracks_true = [0, 0, 0]
            > (s)
            maps = ai.onnx.ml.ZipMap <classlabels_strings = ["no", "yes"]> (scores)
        }""",
        ai_onnx_ml=3,
    ),
    # Texts become numbers, which are looked up.
    "texts": lambda: network(
        """(string[1,6] words) => (y) <float[3,8] table> {
            ids = ai.onnx.ml.LabelEncoder <keys_strings = ["a", "b"], values_int64s = [0, 1], default_int64 = 2> (words)
            g = Gather (table, ids)
            y = ReduceMean <axes = [1], keepdims = 0> (g)
        }""",
        ai_onnx_ml=2,
    ),
    "sequences": lambda: network(
        """(float[3,4] x) => (y) <int64 one = {1}> {
            parts = SplitToSequence <axis = 0, keepdims = 0> (x)
            second = SequenceAt (parts, one)
            more = SequenceInsert (parts, second)
            y = ConcatFromSequence <axis = 0, new_axis = 1> (more)
        }"""
    ),
    "no batch axis": lambda: network(
        "(float[8] x) => (y) <float[8,5] w> { m = MatMul (x, w) y = Softmax <axis = 0> (m) }"
    ),
    "empty weight": lambda: network(
        "(float[3,4] x) => (y) <float[4,4] w, float[0,4] e> { c = Concat <axis = 0> (x, e) y = MatMul (c, w) }"
    ),
    "scalars": lambda: network("(float x) => (y) <float one = {1.0}> { m = Mul (x, x) y = Add (m, one) }"),
    "function": lambda: network(
        "(float[1,4] x) => (y) { t = mine.Twice (x) y = Relu (t) }",
        functions='<domain: "mine", opset_import: ["" : 17]> Twice (a) => (b) { b = Add (a, a) }',
        mine=1,
    ),
    # Shapes depend on data.
    "NonZero": lambda: network(
        """(float[3,4] x) => (y) {
            r = Relu (x)
            found = NonZero (r)
            c = Cast <to = 1> (found)
            y = ReduceMean <keepdims = 0> (c)
        }"""
    ),
    # The model computes the target of a reshape of open axes.
    "dynamic reshape": lambda: network(
        """(float[batch,3,4] x) => (y) <int64[1] first = {0}, int64[1] rest = {-1}, float[12,5] w> {
            shape = Shape (x)
            batch = Gather (shape, first)
            target = Concat <axis = 0> (batch, rest)
            r = Relu (x)
            f = Reshape (r, target)
            y = MatMul (f, w)
        }"""
    ),
    **{f"opset {opset}": partial(classic, opset) for opset in (7, 13, NEWEST_OPSET)},
}
