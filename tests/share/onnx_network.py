"""Small private networks in ONNX's format."""

from collections.abc import Sequence
from typing import Any

from onnx import ModelProto
from onnx.helper import make_node

from tests.models.onnx_models import floats, integers, model

SECRET = "unobtainium"


def network(widths: Sequence[int], name: str = SECRET, side: int = 16) -> ModelProto:
    """Return a chain of convolution, relu and pooling for each width, and a classifier."""
    nodes, weights, read, channels = [], [], "image", 3
    for number, width in enumerate(widths):
        weights += [floats(f"{name}_w{number}", (width, channels, 3, 3)), floats(f"{name}_b{number}", (width,))]
        window: dict[str, Any] = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}
        nodes += [
            make_node("Conv", [read, *(it.name for it in weights[-2:])], [f"{name}_c{number}"], **window),
            make_node("Relu", [f"{name}_c{number}"], [f"{name}_r{number}"]),
            make_node("MaxPool", [f"{name}_r{number}"], [f"{name}_p{number}"], kernel_shape=[2, 2], strides=[2, 2]),
        ]
        read, channels = f"{name}_p{number}", width
    left = channels * (side >> len(widths)) ** 2
    weights += [integers(f"{name}_shape", (1, left)), floats(f"{name}_v", (10, left)), floats(f"{name}_d", (10,))]
    nodes += [
        make_node("Reshape", [read, f"{name}_shape"], [f"{name}_f"]),
        make_node("Gemm", [f"{name}_f", f"{name}_v", f"{name}_d"], [f"{name}_y"], transB=1),
        make_node("Softmax", [f"{name}_y"], ["scores"], axis=1),
    ]
    return model(nodes, {"image": (1, 3, side, side)}, ["scores"], weights)
