"""Models of OpenVINO: read with synthetic weights or from a file, and compiled, with error messages of one line."""

from __future__ import annotations

import importlib
import os
import tempfile
from base64 import b64decode
from binascii import Error as Base64Error
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy

from dlbricks_tui.runtime.inside.backend import RefusalError
from dlbricks_tui.runtime.inside.onnx_backend import ONNX_ONLY, numpy_values
from dlbricks_tui.runtime.inside.onnx_bytes import Stored, nodes_of, unpacked, with_stored
from dlbricks_tui.runtime.inside.openvino_graph import CONVERSIONS, separated
from dlbricks_tui.runtime.inside.values import THREADS_VARIABLE, learned_values
from dlbricks_tui.runtime.protocol import ArrayType, Reason

PRECISION_VARIABLE = "DLBRICKS_PRECISION"
CACHE_VARIABLE = "DLBRICKS_CACHE"
# A user can give it to a runtime: the activations that share a scale in products of packed weights, 32 by default.
GROUP_VARIABLE = "OV_DYNAMIC_QUANTIZATION_GROUP_SIZE"
# Of its settings, beside those of caches, those that change the speed of language models.
_TOLD = ("DYNAMIC_QUANTIZATION_GROUP_SIZE", "INFERENCE_PRECISION_HINT")
INSTRUCTIONS_VARIABLE = "DNNL_MAX_CPU_ISA"
# Limits with which OpenVINO compiles nothing but single precision, although it lists others.
_NARROW = ("sse41", "avx", "avx2", "avx2_vnni")
_SINGLE = "f32"
DEVICE = "CPU"

_ALIGNMENT = 64
# OpenVINO's names of the precisions of caches, where they differ.
_TYPES_OF_CACHES = {"int8": "u8"}
# Lines of an error message that name places in the source, or say nothing about the model.
_ROUTINE = (
    "Exception from",
    "Check '",
    "FrontEnd API failed",
    "While validating",
    "Model wasn't fully converted",
    "Summary:",
    "To facilitate",
    "Loading input model",
)
# The operators in the summary of a failed conversion.
_LACKING, _FAILED = "No conversion rule found for operations: ", "Conversion is failed for: "
_OUT_OF_MEMORY = ("bad_alloc", "Failed to allocate", "out of memory", "Cannot allocate memory")
# Inputs that hold zero points, by operator.
_ZERO_POINTS = {
    "QuantizeLinear": (2,),
    "DequantizeLinear": (2,),
    "QLinearConv": (2, 5, 7),
    "QLinearMatMul": (2, 5, 7),
    "ConvInteger": (2, 3),
    "MatMulInteger": (2, 3),
}

Found = TypeVar("Found")


def load_openvino() -> Any:
    """Import `openvino`."""
    try:
        return importlib.import_module("openvino")
    except (ImportError, AttributeError, OSError) as error:
        raise RefusalError(Reason.NO_FRAMEWORK, f"OpenVINO cannot be imported: {error}") from error


def refuse_missing_precision(core: Any) -> None:
    """Refuse a precision in which this processor would compute with single precision instead."""
    asked = _precision()
    limit = os.environ.get(INSTRUCTIONS_VARIABLE, "").lower()
    if asked != _SINGLE and limit in _NARROW:
        raise RefusalError(Reason.NO_PRECISION, f"OpenVINO has no {asked} arithmetic with {limit} kernels")
    if asked != _SINGLE and asked.upper() not in core.get_property(DEVICE, "OPTIMIZATION_CAPABILITIES"):
        raise RefusalError(Reason.NO_PRECISION, f"OpenVINO has no {asked} arithmetic on this processor")


def ask(question: Callable[[], Found], reason: Reason) -> Found:
    """Call a function of OpenVINO; turn its errors into refusals."""
    try:
        return question()
    except MemoryError as error:
        raise RefusalError(Reason.TOO_LARGE, f"out of memory: {error}") from error
    except (RuntimeError, TypeError, ValueError) as error:
        message = first_line(str(error)) or type(error).__name__
        large = any(sign in str(error) for sign in _OUT_OF_MEMORY)
        raise RefusalError(Reason.TOO_LARGE if large else reason, message) from error


def first_line(message: str) -> str:
    """Return in one line what an error message says about the model: the operators that fail, and why."""
    lines = [line.strip().lstrip("- ") for line in message.splitlines() if line.strip("- ")]
    lacking = [line.replace(_LACKING, "OpenVINO lacks ") for line in lines if line.startswith(_LACKING)]
    failed = [line.replace(_FAILED, "OpenVINO rejects ") for line in lines if line.startswith(_FAILED)]
    routine = (*_ROUTINE, _LACKING, _FAILED)
    telling = [line for line in lines if not line.startswith(routine) and not line.endswith("with a message:")]
    told = telling[:1] or ([] if lacking or failed else lines[:1])
    parts = [*lacking, ": ".join([*failed, *told])]
    return "; ".join(filter(None, parts))[:400]


class ModelText:
    """An ONNX model in base64, and its nodes. The conversions in it are not part of what OpenVINO reads."""

    def __init__(self, text: str) -> None:
        try:
            self.content = b64decode(text, validate=True)
            self.nodes, self.conversions = separated(nodes_of(self.content))
        except (Base64Error, IndexError, KeyError, ValueError) as error:
            raise RefusalError(Reason.MALFORMED, f"not a model: {error}") from error

    def read(
        self, core: Any, shapes: Mapping[str, tuple[int, ...]], weights: Mapping[str, ArrayType], reason: Reason
    ) -> Any:
        """Return the model with inputs of these shapes, in order, and with values for its weights.

        The values lie in a file, which OpenVINO maps into memory: inside of a model it would copy them several times.
        """
        # Other zero points than 0 lead to other kernels, and most weights have this one.
        places = [(node.inputs, place) for node in self.nodes for place in _ZERO_POINTS.get(node.op, ())]
        zeros = {names[place] for names, place in places if place < len(names)}
        stored: dict[str, Stored] = {}
        try:
            with tempfile.TemporaryDirectory() as folder:
                with (Path(folder) / "weights").open("wb") as file:
                    for number, (name, found) in enumerate(weights.items()):
                        parts = _weight(found, 0 if name in zeros else number + 1)
                        file.write(bytes(-file.tell() % _ALIGNMENT))
                        stored[name] = Stored("weights", file.tell(), sum(part.nbytes for part in parts))
                        for part in parts:
                            file.write(part.data)
                path = Path(folder) / "model.onnx"
                path.write_bytes(with_stored(self.content, stored, CONVERSIONS))

                def read() -> Any:
                    # With open axes OpenVINO may run a model of contradicting shapes, without an error.
                    model = core.read_model(str(path))
                    if model.is_dynamic() and shapes:
                        model.reshape({place: list(shape) for place, shape in enumerate(shapes.values())})
                    return model

                return ask(read, reason)
        except OSError as error:
            raise RefusalError(Reason.TOO_LARGE, f"cannot write the weights to {error.filename}: {error}") from error


def model_in_file(core: Any, path: str, shapes: Mapping[str, tuple[int, ...]]) -> Any:
    """Return the model in a file, which may be gzipped, with its own weights and inputs of these shapes."""
    content = unpacked(path, Reason.UNBUILDABLE)

    def read() -> Any:
        model = core.read_model(content)
        model.reshape({name: list(shape) for name, shape in shapes.items()})
        return model

    return ask(read, Reason.UNBUILDABLE)


def compiled(core: Any, model: Any, reason: Reason, *, profiled: bool = False) -> Any:
    """Return a model as OpenVINO runs it: in one stream, and in the precision of the settings.

    By itself OpenVINO would compute in bfloat16 where the processor can.
    """
    given = {**settings(), "PERF_COUNT": "YES" if profiled else "NO"}
    return ask(lambda: core.compile_model(model, DEVICE, given), reason)


def settings() -> dict[str, str]:
    """Return the settings of the CPU plugin."""
    threads = os.environ.get(THREADS_VARIABLE, "")
    found = {
        "NUM_STREAMS": "1",
        # With 0, OpenVINO decides.
        "INFERENCE_NUM_THREADS": threads if threads.isdecimal() else "0",
        "INFERENCE_PRECISION_HINT": _precision(),
    }
    group = os.environ.get(GROUP_VARIABLE)
    if group:
        found["DYNAMIC_QUANTIZATION_GROUP_SIZE"] = group
    cache = os.environ.get(CACHE_VARIABLE)
    if cache:
        found["KV_CACHE_PRECISION"] = _TYPES_OF_CACHES.get(cache, cache)
    return found


def effective_settings(openvino: Any, core: Any) -> dict[str, str]:
    """Return what the plugin makes of these settings: the types and groups of caches, and of activations it rounds."""
    given = openvino.opset13.parameter([1], numpy.float32)
    found = compiled(core, openvino.Model([openvino.opset13.relu(given)], [given]), Reason.UNBUILDABLE)
    told = {}
    for name in found.get_property("SUPPORTED_PROPERTIES"):
        if name in _TOLD or "_CACHE_" in name:
            value = found.get_property(name)
            told[name] = str(value.get_type_name()) if hasattr(value, "get_type_name") else str(value)
    return told


def _precision() -> str:
    return os.environ.get(PRECISION_VARIABLE, _SINGLE)


def _weight(found: ArrayType, number: int) -> Sequence[Any]:
    """Return the values of a weight in parts; those of zero points are zero.

    OpenVINO runs equal layers on equal weights only once, so the values of each weight begin elsewhere.
    """
    values = numpy_values(found, learned_values).reshape(-1)
    if found.dtype in ONNX_ONLY:
        values = values[: -(-len(values) // ONNX_ONLY[found.dtype].per_byte)]
    if not number:
        return (numpy.zeros_like(values),)
    first = -number % max(1, len(values))
    return (values[first:], values[:first])
