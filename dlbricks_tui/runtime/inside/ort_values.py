"""Arrays of ONNX Runtime."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from dlbricks_tui.runtime.inside.onnx_bytes import as_texts
from dlbricks_tui.runtime.inside.onnx_values import ONNX_ONLY, TEXT, Filling, numpy_values
from dlbricks_tui.runtime.protocol import ArrayType


def array_value(ort: Any, found: ArrayType, filling: Filling) -> Any:
    """Return an array of ONNX Runtime; `filling` makes its numbers, and whole numbers for texts."""
    if found.dtype == TEXT:
        return _texts(ort, filling(found.shape, "int64"))
    values = numpy_values(found, filling)
    if found.dtype in ONNX_ONLY:
        return ort.OrtValue.ortvalue_from_numpy_with_onnx_type(values, ONNX_ONLY[found.dtype].number)
    return ort.OrtValue.ortvalue_from_numpy(values)


def _texts(ort: Any, numbers: Any) -> Any:
    """Return whole numbers as texts. Only ONNX Runtime itself makes arrays of texts that it can bind."""
    (texts,) = _text_maker(ort).run_with_ort_values(None, {"data": ort.OrtValue.ortvalue_from_numpy(numbers)})
    return texts


@lru_cache(maxsize=1)
def _text_maker(ort: Any) -> Any:
    settings = ort.SessionOptions()
    settings.use_per_session_threads = False
    return ort.InferenceSession(as_texts(), settings, providers=["CPUExecutionProvider"])
