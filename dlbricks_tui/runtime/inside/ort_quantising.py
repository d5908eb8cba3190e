"""Quantised copies of model files, by ONNX Runtime's own tool.

A copy has the speed of a quantised model and not its accuracy: the ranges of tensors are those of one run on synthetic
inputs.
"""

from __future__ import annotations

import errno
import importlib
import logging
from collections.abc import Mapping, Sequence
from functools import reduce
from operator import mul
from pathlib import Path
from typing import Any

import numpy

from dlbricks_tui.runtime.inside.backend import RefusalError
from dlbricks_tui.runtime.inside.onnx_bytes import unpacked
from dlbricks_tui.runtime.inside.ort_session import PROVIDERS, errors_of, first_line
from dlbricks_tui.runtime.inside.values import VALUES, given_values, sampled_values
from dlbricks_tui.runtime.protocol import ArrayType, Network, Quantise, Quantised, Reason

_CONVOLUTIONS = ("Conv", "ConvTranspose")
_PRODUCTS = ("MatMul", "Gemm", "Attention", "LSTM", "GRU", "RNN")
# Without convolutions: with ranges found in each run, they would be slower than those of floats.
_DYNAMIC = ("MatMul", "Attention", "LSTM", "Gather", "EmbedLayerNormalization")
# The version of the operators that allows a scale for each filter.
_PER_CHANNEL_VERSION = 13
# Data types by ONNX's numbers.
_FLOAT, _INT8 = 1, 3


def write_quantised(request: Quantise) -> Quantised:
    """Write a quantised copy of the network's file, and beside it the prepared file, which the caller removes.

    If `dynamically` is set, models with more matrix products than convolutions are quantised dynamically. All others
    are quantised statically.
    """
    network, copy = request.network, request.copy
    try:
        onnx, ort = importlib.import_module("onnx"), importlib.import_module("onnxruntime")
        tool = importlib.import_module("onnxruntime.quantization")
        shapes = importlib.import_module("onnxruntime.quantization.shape_inference")
    except ImportError as error:
        raise RefusalError(Reason.NO_FRAMEWORK, f"the quantiser cannot be imported: {error}") from error
    # Silence the advice of the tool about accuracy.
    logging.disable(logging.WARNING)
    content = unpacked(network.file, Reason.UNBUILDABLE)
    try:
        prepared = str(Path(copy).with_name("prepared.onnx"))
        if isinstance(content, bytes):
            Path(prepared).write_bytes(content)
        # It computes constants, and merges batch norms into convolutions.
        original = content if isinstance(content, str) else prepared
        shapes.quant_pre_process(original, prepared, skip_symbolic_shape=True)
        model = onnx.load(prepared)
        _complete(onnx, model, network.inputs)
        onnx.save(model, prepared)
        if request.dynamically and _count(model, _PRODUCTS) > _count(model, _CONVOLUTIONS):
            # Inference does not tell the types of tensors behind operators of other domains.
            others = {"DefaultTensorType": _FLOAT}
            kinds, weights = list(_DYNAMIC), tool.QuantType.QInt8
            tool.quantize_dynamic(prepared, copy, kinds, weight_type=weights, extra_options=others)
        else:
            tool.quantize_static(
                prepared,
                copy,
                _OneInput(network),
                per_channel=any(not it.domain and it.version >= _PER_CHANNEL_VERSION for it in model.opset_import),
                # With signed activations, ONNX Runtime computes many layers with floats.
                activation_type=tool.QuantType.QUInt8,
                weight_type=tool.QuantType.QInt8,
            )
        ort.InferenceSession(copy, providers=PROVIDERS)
        quantised = onnx.load(copy)
    except MemoryError as error:
        raise RefusalError(Reason.TOO_LARGE, "there is not enough memory") from error
    except (*errors_of(ort), *_errors_of_tool(onnx)) as error:
        is_full = isinstance(error, OSError) and error.errno == errno.ENOSPC
        reason = f"there is no space left in {Path(copy).parent.parent}" if is_full else first_line(error)
        raise RefusalError(Reason.UNBUILDABLE, reason) from error
    if not any(stored.data_type == _INT8 and len(stored.dims) > 1 for stored in quantised.graph.initializer):
        raise RefusalError(Reason.UNBUILDABLE, "none of its layers has weights that can be quantised")
    return Quantised()


def _errors_of_tool(onnx: Any) -> Sequence[type[BaseException]]:
    """Return the errors that the tool raises for models that it does not understand; it has none of its own."""
    decoding = importlib.import_module("google.protobuf.message").Error
    importlib.import_module("onnx.version_converter")
    checking = (
        onnx.checker.ValidationError,
        onnx.shape_inference.InferenceError,
        onnx.version_converter.ConvertError,
    )
    return (*checking, decoding, TypeError, LookupError, AttributeError, ArithmeticError, AssertionError, OSError)


def _complete(onnx: Any, model: Any, inputs: Mapping[str, ArrayType]) -> None:
    """Prepare a model for the tool.

    - Name all nodes, as the tool tells them apart by name.
    - Remove weights from the inputs, where old files list them.
    - Fill weights that repeat one number with values of both signs. Files without stored weights have such weights,
      with which the ranges of most tensors would begin at zero.
    """
    for declared in list(model.graph.input):
        if declared.name not in inputs:
            model.graph.input.remove(declared)
    for number, node in enumerate(model.graph.node):
        node.name = node.name or f"{node.op_type}_{number}"
    for stored in model.graph.initializer:
        if stored.data_type != _FLOAT or len(stored.dims) < 2:
            continue
        values = onnx.numpy_helper.to_array(stored)
        if values.size > 1 and (values == values.flat[0]).all():
            spread = (2 / reduce(mul, values.shape[1:], 1)) ** 0.5
            filled = numpy.resize(sampled_values((VALUES,), "float32") * numpy.float32(spread), values.shape)
            stored.CopyFrom(onnx.numpy_helper.from_array(filled, stored.name))


def _count(model: Any, operators: Sequence[str]) -> int:
    return sum(node.op_type in operators for node in model.graph.node)


class _OneInput:
    """The inputs of the run in which the tool finds the ranges of tensors."""

    def __init__(self, network: Network) -> None:
        values = network.values
        self._left: list[Mapping[str, Any]] = [
            {
                name: given_values(*found, numbers=values[name]) if name in values else sampled_values(*found)
                for name, found in network.inputs.items()
            }
        ]

    def get_next(self) -> Mapping[str, Any] | None:
        """Return the inputs once, then None, which ends the tool's loop."""
        return self._left.pop() if self._left else None
