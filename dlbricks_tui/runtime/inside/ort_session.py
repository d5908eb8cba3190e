"""Sessions of ONNX Runtime for models whose weights have no values, and quantised copies by its own tool.

A copy has the speed of a quantised model and not its accuracy: the ranges of tensors are those of one run on synthetic
inputs.
"""

from __future__ import annotations

import errno
import importlib
import logging
import os
import re
from base64 import b64decode
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial, reduce
from operator import mul
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy

from dlbricks_tui.runtime.inside.backend import RefusalError, imported
from dlbricks_tui.runtime.inside.onnx_backend import (
    ONNX_ONLY,
    TEXT,
    Filling,
    numpy_values,
    text_array,
    unpacked,
)
from dlbricks_tui.runtime.inside.values import (
    THREADS_VARIABLE,
    VALUES,
    array_bytes,
    fill_distinct,
    given_values,
    learned_values,
    numpy_dtype,
    sampled_values,
)
from dlbricks_tui.runtime.protocol import ArrayType, Network, Quantise, Quantised, Reason, Tensor

# The number of operators that run at the same time.
AT_ONCE_VARIABLE = "ORT_INTER_OP_THREADS"
# The level up to which models are optimised: a key of LEVELS.
OPTIMISATION_VARIABLE = "ORT_OPTIMISATION"
LEVELS = {
    "all": "ORT_ENABLE_ALL",
    "extended": "ORT_ENABLE_EXTENDED",
    "basic": "ORT_ENABLE_BASIC",
    "none": "ORT_DISABLE_ALL",
}
ONLY_ERRORS = 3
_ALIGNMENT = 64
# Larger pieces of memory go back to the kernel when they are freed.
_MOST_KEPT_BYTES = 32 << 20
PROVIDERS = ["CPUExecutionProvider"]

_SAID_FIRST = re.compile(r"^\[ONNXRuntimeError\] : \d+ : \w+ : ")
_OUT_OF_MEMORY = ("bad_alloc", "Failed to allocate memory", "out of memory")
_NUMPYS = {"float": "float32", "double": "float64", "string": "object"}
_TENSOR = re.compile(r"tensor\((\w+)\)$")


def load_onnxruntime() -> Any:
    """Import `onnxruntime`, with the numbers of threads in the settings."""
    ort = imported("onnxruntime", "ONNX Runtime")
    # Sessions share one pool: threads of another session would still spin while the next one is timed.
    ort.set_global_thread_pool_sizes(_number(THREADS_VARIABLE, 0), _number(AT_ONCE_VARIABLE, 1))
    return ort


def ask(ort: Any, question: Callable[[], Any], reason: Reason) -> Any:
    """Call a function of ONNX Runtime; turn its errors into refusals."""
    try:
        return question()
    except errors_of(ort) as error:
        message = first_line(error)
        raise RefusalError(Reason.TOO_LARGE if lacks_memory(error) else reason, message) from error


def options(ort: Any, *, optimised: bool, side_by_side: bool = False) -> Any:
    found = ort.SessionOptions()
    found.log_severity_level = ONLY_ERRORS
    found.use_per_session_threads = False
    if side_by_side:
        found.execution_mode = ort.ExecutionMode.ORT_PARALLEL
    name = (os.environ.get(OPTIMISATION_VARIABLE) or "all") if optimised else "none"
    if name not in LEVELS:
        known = ", ".join(LEVELS)
        raise RefusalError(Reason.UNBUILDABLE, f"{OPTIMISATION_VARIABLE} is {name[:40]!r}: set it to one of {known}")
    found.graph_optimization_level = getattr(ort.GraphOptimizationLevel, LEVELS[name])
    return found


def weight_values(ort: Any, weights: Mapping[str, ArrayType], *, distinct: bool) -> Mapping[str, Any]:
    """Return values for weights, in a normal range, by name; `distinct` ones are all different."""
    if distinct:
        return _distinct_weights(ort, weights)
    return {name: array_value(ort, found, learned_values) for name, found in weights.items()}


def _distinct_weights(ort: Any, weights: Mapping[str, ArrayType]) -> Mapping[str, Any]:
    """Return different values in one piece of memory, for which the kernel has large pages.

    The weights that a session packs then get the small pages that a process takes first, scattered as they are in an
    engine: behind others they would lie together, and be read faster by an eighth (docs/log/language.md).
    """
    room = numpy.empty(sum(array_bytes([it]) + _ALIGNMENT for it in weights.values()) + _ALIGNMENT, numpy.uint8)
    end, found = 0, {}
    for number, (name, kind) in enumerate(weights.items()):
        begin = end + -(room.ctypes.data + end) % _ALIGNMENT
        end = begin + array_bytes([kind])
        kept = room[begin:end].view(numpy_dtype(kind.dtype)).reshape(kind.shape)
        fill_distinct(kept, number)
        found[name] = ort.OrtValue.ortvalue_from_numpy(kept)
    return found


def session(ort: Any, model: str, values: Mapping[str, Any], settings: Any, reason: Reason) -> Any:
    """Return a session of a model with these values for its weights, as constants."""

    def make() -> Any:
        if values:
            settings.add_external_initializers(list(values), list(values.values()))
        return ort.InferenceSession(b64decode(model), settings, providers=PROVIDERS)

    return ask(ort, make, reason)


def session_of_file(ort: Any, path: str, settings: Any, reason: Reason) -> Any:
    """Return a session of a model file, which may be gzipped, with its own weights."""
    model = unpacked(path, reason)
    return ask(ort, lambda: ort.InferenceSession(model, settings, providers=PROVIDERS), reason)


def tensor_type(declared: Any) -> Tensor:
    """Return the type of an input or output; the shape is None if a size is unknown.

    ONNX Runtime reports an unknown number of axes like that of a single number.
    """
    shape = declared.shape
    known = shape and all(isinstance(size, int) and size >= 0 for size in shape)
    return Tensor(tuple(shape) if known else None, numpys_name(declared.type))


def numpys_name(declared: str) -> str | None:
    """Return numpy's name for the data type of a `tensor(float)`; None for types other than tensors."""
    found = _TENSOR.match(declared)
    return _NUMPYS.get(found[1], found[1]) if found else None


def bind_inputs(binding: Any, names: Iterable[str], arrays: Sequence[Any]) -> None:
    for place, name in enumerate(names):
        binding.bind_ortvalue_input(name, arrays[place])


def bind_new_outputs(binding: Any, names: Sequence[str], in_place: Mapping[int, Any]) -> None:
    """Let the next run write some of these outputs in place, and make new arrays for the others."""
    for place, name in enumerate(names):
        if place in in_place:
            binding.bind_ortvalue_output(name, in_place[place])
        else:
            binding.bind_output(name)


def large_outputs(
    names: Sequence[str], kinds: Sequence[ArrayType | None], in_place: Mapping[int, Any]
) -> dict[str, ArrayType]:
    """Return the outputs so large that memory for them comes from the kernel in each run, as logits of a prompt."""
    found = ((place, name, kind) for place, (name, kind) in enumerate(zip(names, kinds)))  # noqa: B905
    return {
        name: kind
        for place, name, kind in found
        if kind is not None and place not in in_place and array_bytes([kind]) > _MOST_KEPT_BYTES
    }


def bind_large_outputs(ort: Any, binding: Any, outputs: Mapping[str, ArrayType]) -> None:
    """Let the next run write these outputs to memory that nothing has touched yet."""
    for name, (shape, dtype) in outputs.items():
        made = ort.OrtValue.ortvalue_from_shape_and_type(list(shape), numpy_dtype(dtype), "cpu")
        binding.bind_ortvalue_output(name, made)


def _number(variable: str, default: int) -> int:
    text = os.environ.get(variable, "")
    return int(text) if text.isdecimal() else default


def errors_of(ort: Any) -> tuple[type[BaseException], ...]:
    """Return the classes of ONNX Runtime's errors, which have no common base."""
    state = vars(ort.capi.onnxruntime_pybind11_state).values()
    own = [it for it in state if isinstance(it, type) and issubclass(it, Exception)]
    return (*own, RuntimeError, ValueError, MemoryError)


def lacks_memory(error: BaseException) -> bool:
    return isinstance(error, MemoryError) or any(sign in str(error) for sign in _OUT_OF_MEMORY)


def first_line(error: BaseException) -> str:
    """Return the first line of an error of ONNX Runtime."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return _SAID_FIRST.sub("", lines[0])[:400] if lines else type(error).__name__


def array_value(ort: Any, found: ArrayType, filling: Filling) -> Any:
    """Return an array of ONNX Runtime; `filling` makes its numbers, and texts or whole numbers for texts."""
    if found.dtype == TEXT:
        made = filling(found.shape, "int64")
        settings = ort.SessionOptions()
        settings.use_per_session_threads = False
        # Only ONNX Runtime itself makes arrays of texts that it can bind.
        model = text_array([str(it) for it in made.ravel().tolist()], made.shape)
        (texts,) = ort.InferenceSession(model, settings, providers=PROVIDERS).run_with_ort_values(None, {})
        return texts
    values = numpy_values(found, filling)
    if found.dtype in ONNX_ONLY:
        return ort.OrtValue.ortvalue_from_numpy_with_onnx_type(values, ONNX_ONLY[found.dtype].number)
    return ort.OrtValue.ortvalue_from_numpy(values)


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
    names = ("onnx", "onnxruntime", "onnxruntime.quantization", "onnxruntime.quantization.shape_inference")
    onnx, ort, tool, shapes = [imported(name, "the quantiser") for name in names]
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
                _one_input(network),
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


def _one_input(network: Network) -> SimpleNamespace:
    """Return what gives the tool the inputs of one run, which tells the ranges of tensors, and then None, its end."""
    values = network.values
    inputs = {
        name: given_values(*found, numbers=values[name]) if name in values else sampled_values(*found)
        for name, found in network.inputs.items()
    }
    return SimpleNamespace(get_next=partial(next, iter([inputs]), None))
