import json

import pytest

from dlbricks_tui.store.labels import kind_of_label, label_of
from tests.store.samples import form


def test_a_label_names_operator_window_and_input() -> None:
    assert label_of(form(28).canonical) == "Convolution 3x3/2 1x64x56x28"


@pytest.mark.parametrize(
    ("operators", "label"),
    [
        ([{"op": "relu"}], "relu 1x3"),
        ([{"op": "Pooling", "params": {"kernel": [7, 7]}}], "Pooling 7x7 1x3"),
        ([{"op": "Pooling", "params": {"kernel": [2, 3], "stride": [1, 1]}}], "Pooling 2x3 1x3"),
        ([{"op": "Pooling", "params": {"kernel": [2, 3], "stride": [1, 2]}}], "Pooling 2x3/1x2 1x3"),
        ([{"op": "a"}, {"op": "b"}], "a+b 1x3"),
        ([{"op": name} for name in "abcde"], "a+b+c+d+... 1x3"),
    ],
)
def test_labels_of_other_bricks(operators: list[dict[str, object]], label: str) -> None:
    assert label_of(json.dumps({"operators": operators, "data": [[[1, 3], "float32"]]})) == label


def test_a_fused_operator_is_labelled_by_its_parts() -> None:
    conv = ["conv", [["kernel", [3, 3]], ["stride", [2, 2]]], [[0, 0], [1, 0]], []]
    inner = json.dumps(["variable", "variable", conv, ["relu", [], [[2, 0]], []], [[3, 0]]])
    fused = {"op": "mxnet._sg_mkldnn_conv", "params": {"with_act": True}, "inner": [inner]}
    assert label_of(json.dumps({"operators": [fused], "data": [[[1, 3], "float32"]]})) == "conv+relu 3x3/2 1x3"
    loop = {"op": "mxnet._foreach", "inner": [inner]}
    assert label_of(json.dumps({"operators": [loop], "data": []})) == "foreach"


def test_a_brick_without_a_data_input_has_a_label() -> None:
    assert label_of(json.dumps({"operators": [{"op": "zeros"}], "data": []})) == "zeros"


@pytest.mark.parametrize(
    "canonical", ["", "nonsense", "[]", "5", '{"operators": []}', '{"operators": [5], "data": []}']
)
def test_an_unknown_form_has_no_label(canonical: str) -> None:
    assert label_of(canonical) == ""


@pytest.mark.parametrize(
    ("label", "kind"),
    [
        ("conv+relu 3x3/2 1x64x56x56", "convolution"),
        ("batch_norm+relu 1x64x56x56", "batchnorm"),
        ("a+b+c+conv+... 1x3", "convolution"),
        ("contrib_quantize 1x3", "quantize"),
        ("my_own 1x3", "other"),
        ("", "other"),
    ],
)
def test_a_label_tells_the_kind_of_its_brick(label: str, kind: str) -> None:
    assert kind_of_label(label).value == kind


def test_an_operator_without_a_name_is_labelled_by_its_framework() -> None:
    assert label_of('{"data":[[null,"int64"]],"operators":[{"inputs":[],"op":"onnx."}]}') == "onnx."
