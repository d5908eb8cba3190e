from collections.abc import Mapping
from dataclasses import replace

import pytest

from dlbricks_tui.models.graph import Feed, Layer, ParamValue, Shape, TensorType
from dlbricks_tui.models.kinds import kind_of
from dlbricks_tui.wording.answers import layer_title, shape_text
from tests.bricks.graphs import Spec, built

IMAGE: Shape = (1, 64, 56, 56)
FUSED = (
    '["variable","variable",["conv",[["kernel",[3,3]],["stride",[2,2]]],[[0,0],[1,0]],[]],'
    '["relu",[],[[2,0]],[]],[[3,0]]]'
)


def layer(op: str, *data: Shape, out: Shape = IMAGE, inner: tuple[str, ...] = (), **values: ParamValue) -> Layer:
    """Return a layer of one operator that reads tensors of these shapes."""
    names = tuple(op.split("+"))
    feeds = tuple([Feed(None, number) for number in range(len(data))])
    (made,) = built([Spec("relu", feeds)]).layers
    params, types, outputs = tuple(sorted(values.items())), tuple(map(TensorType, data)), (TensorType(out),)
    operator = replace(made.operators[0], op=names[0], params=params, outputs=outputs, inner=inner, parts=names)
    return replace(made, op=op, kind=kind_of(names[0]), operators=(operator,), data=types, outputs=outputs)


@pytest.mark.parametrize(
    ("described", "title"),
    [
        (layer("conv", IMAGE, kernel=(3, 3)), "conv 3x3 64"),
        (layer("onnx.com.microsoft.nchwc.Conv", IMAGE, kernel_shape=(3, 3), activation="Relu"), "conv+relu 3x3 64"),
        (layer("onnx.com.microsoft.nchwc.ReorderOutput", IMAGE, channels=64), "layout conversion"),
        (layer("conv", IMAGE, kernel=(7, 7), stride=(2, 2), dilation=(4, 4), groups=32), "conv 7x7/2 64 d4 g32"),
        (layer("conv", IMAGE, kernel=(1, 7), stride=(1, 2)), "conv 1x7/1x2 64"),
        (layer("conv_transpose", IMAGE, kernel=(4, 4), stride=(2, 2)), "deconv 4x4/2 64"),
        (layer("max_pool", IMAGE, kernel=(3, 3), stride=(2, 2)), "max pool 3x3/2"),
        (layer("global_mean_pool", IMAGE), "global mean pool"),
        (layer("linear", (1, 2048), out=(1, 1000)), "linear 1000"),
        (layer("linear", (1, 7, 64), out=(1, 7, 32), keep_axes=True), "linear 32"),
        (layer("batch_norm", IMAGE, epsilon=0.001), "batch norm"),
        (layer("upsample_nearest", IMAGE, scale=2), "upsample x2"),
        (layer("concat", IMAGE, IMAGE), "concat of 2"),
        (layer("add", IMAGE, IMAGE), "add"),
        (layer("sum", IMAGE, IMAGE, IMAGE), "sum of 3"),
        (layer("mxnet._contrib_BilinearResize2D", IMAGE), "BilinearResize2D"),
        (layer("mxnet._mul_scalar", IMAGE, scalar=2.0), "mul scalar"),
        (layer("conv+relu", IMAGE, inner=(FUSED,), with_act=True), "conv+relu 3x3/2 64"),
        (layer("square+sqrt+exp+log+abs", IMAGE), "square+sqrt+exp+log+..."),
        (replace(layer("constant"), operators=(), outputs=(TensorType((4, 2)),)), "constant"),
        (replace(layer("conv", IMAGE, kernel=(3, 3)), outputs=(TensorType(None),)), "conv 3x3"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_title_names_operators_window_and_width(described: Layer, title: str) -> None:
    assert layer_title(described) == title


def test_shapes_are_written_with_crosses() -> None:
    told: Mapping[Shape | None, str] = {(1, 3, 224, 224): "1x3x224x224", (): "scalar", None: "?"}
    assert {shape: shape_text(TensorType(shape)) for shape in told} == told
