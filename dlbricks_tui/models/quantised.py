"""Quantised copies of model files, which show how fast a model would be with integers of 8 bits."""

import hashlib
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Protocol

from dlbricks_tui.atomic_write import write_atomically
from dlbricks_tui.models.cache import cache_key, remove_oldest
from dlbricks_tui.models.errors import ModelError
from dlbricks_tui.models.graph import LayerGraph, Numbers, TensorType
from dlbricks_tui.models.library import ONNX_SUFFIX, ModelSource
from dlbricks_tui.regular_files import open_regular, read_text
from dlbricks_tui.runtime.errors import WorkerLostError, WorkerRefusedError

_GIBIBYTE = 1 << 30
# The quantiser holds several copies of the weights in memory, and a model file has less than 2 GiB.
MOST_WEIGHT_BYTES = _GIBIBYTE
# Copies of about a hundred models.
MOST_KEPT_BYTES = 4 * _GIBIBYTE
_FOLDER = "quantised"
_CHUNK = 1 << 20


class Quantiser(Protocol):
    """The interface of a tool that quantises model files."""

    @property
    def quantiser(self) -> str:
        """The tool with its version, and what decides how it quantises. The cache separates their copies."""

    def quantise(self, file: Path, copy: Path, inputs: Mapping[str, TensorType], values: Mapping[str, Numbers]) -> None:
        """Write a quantised copy of a model file. This may raise a WorkerError."""


def quantised_copy(
    source: ModelSource, content: bytes, written: LayerGraph, cache: Path, quantiser: Quantiser
) -> ModelSource:
    """Return a model with a quantised copy of its file, which is written unless the cache has it.

    `content` is that of the file without large arrays, and `written` its layers.
    """
    _require_quantisable(source.name, written)
    path = cache / _FOLDER / f"{cache_key(quantiser.quantiser, content=content)}{ONNX_SUFFIX}"
    inputs = {it.name: it.type for it in written.inputs if it.type.shape is not None}
    if _is_whole(path):
        # The oldest copies are removed first.
        with suppress(OSError):
            os.utime(path)
    else:
        values = {it.name: it.value for it in written.inputs if it.value}
        _write_copy(source, path, lambda draft: quantiser.quantise(source.path.absolute(), draft, inputs, values))
    return replace(source, path=path, inputs={name: it.shape or () for name, it in inputs.items()}, twin=None)


def _is_whole(path: Path) -> bool:
    """Return whether the cache has a copy with the checksum that was noted beside it."""
    with suppress(OSError, ValueError):
        return read_text(_checksum_of(path)) == _checksum(path)
    return False


def _checksum_of(path: Path) -> Path:
    return path.with_suffix(".blake2b")


def _checksum(path: Path) -> str:
    digest = hashlib.blake2b()
    with open_regular(path) as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def _require_quantisable(name: str, written: LayerGraph) -> None:
    """Raise ModelError for a model that the quantiser cannot take."""
    if written.is_quantised:
        raise ModelError(f"{name} is quantised in its file, and runs as it is: choose precision f32")
    dtypes = {weight.dtype for layer in written.layers for weight in layer.weights}
    if half := dtypes & {"float16", "bfloat16"}:
        raise ModelError(
            f"{name} has weights of type {half.pop()}, and the quantiser needs float32: give the file that it was "
            "made from, or choose precision f32"
        )
    arrays = {layer.array(place): it.size_bytes for layer in written.layers for place, it in enumerate(layer.weights)}
    if sum(arrays.values()) > MOST_WEIGHT_BYTES:
        held, most = sum(arrays.values()) / _GIBIBYTE, MOST_WEIGHT_BYTES / _GIBIBYTE
        raise ModelError(
            f"{name} has {held:.1f} GiB of weights, and models of at most {most:g} GiB can be quantised here: quantise "
            "its file yourself, and measure that file in precision f32"
        )


def _write_copy(source: ModelSource, path: Path, write: Callable[[Path], None]) -> None:
    """Write a copy of a model's file, which appears only once it is complete."""
    name, folder = source.name, path.parent
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # The quantiser writes other files beside the copy, and leaves them if it crashes.
        with TemporaryDirectory(dir=folder, prefix="draft-") as drafts:
            draft = Path(drafts, path.name)
            write(draft)
            write_atomically(_checksum_of(path), _checksum(draft))
            draft.replace(path)
    except (WorkerRefusedError, WorkerLostError) as refused:
        raise ModelError(f"{name} cannot be quantised: {refused}") from None
    except OSError as error:
        raise ModelError(f"{name} cannot be quantised: {folder} cannot be written: {error.strerror}") from None
    remove_oldest([folder], MOST_KEPT_BYTES)
