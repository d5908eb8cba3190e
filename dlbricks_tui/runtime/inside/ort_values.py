"""Arrays of ONNX Runtime."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from dlbricks_tui.runtime.inside.onnx_bytes import as_texts, text_array
from dlbricks_tui.runtime.inside.onnx_values import ONNX_ONLY, TEXT, Filling, numpy_values
from dlbricks_tui.runtime.protocol import ArrayType


def array_value(ort: Any, found: ArrayType, filling: Filling) -> Any:
    """Return an array of ONNX Runtime; `filling` makes its numbers, and texts or whole numbers for texts."""
    if found.dtype == TEXT:
        made = filling(found.shape, "int64")
        return _given_texts(ort, made) if made.dtype == object else _texts(ort, made)
    values = numpy_values(found, filling)
    if found.dtype in ONNX_ONLY:
        return ort.OrtValue.ortvalue_from_numpy_with_onnx_type(values, ONNX_ONLY[found.dtype].number)
    return ort.OrtValue.ortvalue_from_numpy(values)


def _texts(ort: Any, numbers: Any) -> Any:
    """Return whole numbers as texts. Only ONNX Runtime itself makes arrays of texts that it can bind."""
    (texts,) = _text_maker(ort).run_with_ort_values(None, {"data": ort.OrtValue.ortvalue_from_numpy(numbers)})
    return texts


def _given_texts(ort: Any, texts: Any) -> Any:
    (made,) = _session(ort, text_array(texts.ravel().tolist(), texts.shape)).run_with_ort_values(None, {})
    return made


@lru_cache(maxsize=1)
def _text_maker(ort: Any) -> Any:
    return _session(ort, as_texts())


def _session(ort: Any, model: bytes) -> Any:
    settings = ort.SessionOptions()
    settings.use_per_session_threads = False
    return ort.InferenceSession(model, settings, providers=["CPUExecutionProvider"])
