"""The operators of a model file that form one layer, its repetitions, and quantised layers among them."""

import hashlib
import os
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple, NoReturn, Protocol

from dlbricks_tui.atomic_write import write_atomically
from dlbricks_tui.models.cache import cache_key, remove_oldest
from dlbricks_tui.models.digraphs import depth_first, topological_order
from dlbricks_tui.models.errors import ModelError, UnreadableModelError
from dlbricks_tui.models.graph import LayerGraph, Numbers, TensorType
from dlbricks_tui.models.kinds import Kind
from dlbricks_tui.models.library import ONNX_SUFFIX, ModelSource
from dlbricks_tui.regular_files import open_regular, read_text
from dlbricks_tui.runtime.errors import WorkerLostError, WorkerRefusedError

LAYER_ATTRIBUTE = "__layer__"
KIND_ATTRIBUTE = "__kind__"
TIMES_ATTRIBUTE = "__times__"
MOST_TIMES = 1_000_000
_KINDS = {kind.value: kind for kind in Kind}


@dataclass(frozen=True, slots=True)
class LayerNodes:
    """The nodes of one layer: operators or a stored array. Each repetition has the same order."""

    name: str
    kind: Kind | None
    repetitions: tuple[tuple[int, ...], ...]

    @property
    def members(self) -> tuple[int, ...]:
        """The nodes of the first repetition."""
        return self.repetitions[0]

    @property
    def times(self) -> int:
        return len(self.repetitions)


class AnnotatedNode(NamedTuple):
    """An operator or stored array of a model file: its annotations, and the numbers of the nodes that it reads."""

    name: str
    op: str
    annotations: Mapping[str, str]
    sources: Sequence[int]


def group_nodes(nodes: Mapping[int, AnnotatedNode], where: str) -> tuple[LayerNodes, ...]:
    """Return the layers of these nodes, given by their numbers, in topological order; `where` names the file."""
    members: dict[str | int, list[int]] = defaultdict(list)
    for number, node in nodes.items():
        declared = node.annotations.get(LAYER_ATTRIBUTE)
        if declared is None and TIMES_ATTRIBUTE in node.annotations:
            label = f"node {number} ({node.name[:80]!r})"
            raise UnreadableModelError(f"{where}: {label} has {TIMES_ATTRIBUTE} but no {LAYER_ATTRIBUTE} to repeat")
        members[number if declared is None else declared].append(number)
    groups = [
        _single(nodes[key], key) if isinstance(key, int) else _Composite(nodes, key, numbers, where).group()
        for key, numbers in members.items()
    ]
    return _in_order(nodes, groups, where)


def _single(node: AnnotatedNode, number: int) -> LayerNodes:
    return LayerNodes(node.name or f"{node.op.lower()}{number}", None, ((number,),))


class _Composite:
    """The nodes that share a `__layer__`."""

    def __init__(self, nodes: Mapping[int, AnnotatedNode], name: str, numbers: list[int], where: str) -> None:
        self._nodes = nodes
        self._name = name
        self._numbers = numbers
        self._where = where

    def group(self) -> LayerNodes:
        times, kind = self._times(), self._kind()
        if len(self._numbers) == times == 1:
            return LayerNodes(self._name, kind, (tuple(self._numbers),))
        size, rest = divmod(len(self._numbers), times)
        if rest:
            self._refuse(f"has {len(self._numbers)} operators, which is not {times} times the same")
        parts = [self._numbers[start : start + size] for start in range(0, len(self._numbers), size)]
        written = [[self._nodes[number].op for number in part] for part in parts]
        if any(ops != written[0] for ops in written):
            self._refuse(f"is repeated {times} times, but its repetitions differ")
        order = _depth_first(self._nodes, parts[0])
        return LayerNodes(self._name, kind, tuple([tuple([part[place] for place in order]) for part in parts]))

    def _times(self) -> int:
        text = self._agreed(TIMES_ATTRIBUTE)
        if text is None:
            return 1
        # Check the length first: Python takes long to read a long row of digits.
        if len(text) > 7 or not (text.isascii() and text.isdigit()) or not 1 <= int(text) <= MOST_TIMES:
            self._refuse(f"has {TIMES_ATTRIBUTE} {text[:20]!r}; give a number from 1 to {MOST_TIMES}")
        return int(text)

    def _kind(self) -> Kind | None:
        text = self._agreed(KIND_ATTRIBUTE)
        if text is not None and text not in _KINDS:
            self._refuse(f"has {KIND_ATTRIBUTE} {text[:40]!r}; it must be one of {', '.join(_KINDS)}")
        return None if text is None else _KINDS[text]

    def _agreed(self, attribute: str) -> str | None:
        found = {self._nodes[number].annotations.get(attribute) for number in self._numbers}
        if len(found) > 1:
            shown = " and ".join(sorted(repr(text and text[:40]) for text in found)[:2])
            self._refuse(f"has operators of different {attribute}: {shown}")
        return found.pop()

    def _refuse(self, what: str) -> NoReturn:
        raise UnreadableModelError(f"{self._where}: layer {self._name[:80]!r} {what}")


def _depth_first(nodes: Mapping[int, AnnotatedNode], members: Sequence[int]) -> list[int]:
    """Return the places of the members in an order that depends on the wiring only, as files list equal layers
    differently.
    """
    place = {number: position for position, number in enumerate(members)}
    sources = [[place[source] for source in nodes[number].sources if source in place] for number in members]
    read = {source for found in sources for source in found}
    unread = [position for position in range(len(members)) if position not in read]
    return depth_first([*sources, unread])[:-1]


def _in_order(nodes: Mapping[int, AnnotatedNode], groups: Sequence[LayerNodes], where: str) -> tuple[LayerNodes, ...]:
    """Return the groups in topological order, otherwise in the order of the file."""
    owner = {node: number for number, group in enumerate(groups) for part in group.repetitions for node in part}
    sources = [
        {owner[source] for node in group.members for source in nodes[node].sources if source in owner} - {number}
        for number, group in enumerate(groups)
    ]
    order = topological_order(sources)
    if len(order) < len(groups):
        stuck = groups[min(set(range(len(groups))).difference(order))]
        raise UnreadableModelError(
            f"{where}: layer {stuck.name[:80]!r} is part of a cycle of layers, or depends on one"
        )
    return tuple([groups[number] for number in order])


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
