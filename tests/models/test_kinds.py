"""The kinds of operators."""

import pytest

from dlbricks_tui.models.kinds import Kind, kind_of


@pytest.mark.parametrize(
    ("op", "kind"),
    [
        ("onnx.ai.onnx.ml.TreeEnsembleClassifier", Kind.TREES),
        ("onnx.ai.onnx.ml.LabelEncoder", Kind.EMBEDDING),
        ("onnx.ai.onnx.ml.Scaler", Kind.ELEMENTWISE),
        ("onnx.ai.onnx.ml.LinearClassifier", Kind.LINEAR),
        ("onnx.ai.onnx.ml.ZipMap", Kind.RESHAPE),
        ("onnx.com.microsoft.QLinearSigmoid", Kind.ELEMENTWISE),
        ("onnx.com.microsoft.QLinearSoftmax", Kind.SOFTMAX),
        ("onnx.com.microsoft.MatMulNBits", Kind.LINEAR),
        ("onnx.com.microsoft.DynamicQuantizeLSTM", Kind.RECURRENT),
        ("onnx.com.microsoft.nchwc.Upsample", Kind.RESIZE),
        ("onnx.Attention", Kind.ATTENTION),
        ("onnx.NonMaxSuppression", Kind.SLICE),
        ("onnx.ScatterND", Kind.SLICE),
        ("onnx.SplitToSequence", Kind.SLICE),
        ("onnx.GridSample", Kind.RESIZE),
        ("onnx.Loop", Kind.RECURRENT),
        ("onnx.NoSuchOperator", Kind.OTHER),
    ],
)
def test_operators_of_real_files_have_a_kind(op: str, kind: Kind) -> None:
    assert kind_of(op) is kind
