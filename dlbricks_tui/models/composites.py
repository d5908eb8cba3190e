"""The operators of a model file that form one layer, its repetitions, and quantised layers among them."""

import hashlib
import os
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, NamedTuple, NoReturn

from dlbricks_tui.atomic_write import write_atomically
from dlbricks_tui.models.cache import cache_key, remove_oldest
from dlbricks_tui.models.digraphs import depth_first, topological_order
from dlbricks_tui.models.errors import ModelError, UnreadableModelError
from dlbricks_tui.models.graph import Feed, LayerGraph
from dlbricks_tui.models.kinds import Kind
from dlbricks_tui.models.library import ONNX_SUFFIX, ModelSource
from dlbricks_tui.regular_files import open_regular, read_text
from dlbricks_tui.runtime.errors import WorkerLostError, WorkerRefusedError

if TYPE_CHECKING:
    from dlbricks_tui.models.frameworks import WorkerFramework

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
        LayerNodes(nodes[key].name or f"{nodes[key].op.lower()}{key}", None, ((key,),))
        if isinstance(key, int)
        else _composite(nodes, key, numbers, where)
        for key, numbers in members.items()
    ]
    # The layers in topological order, otherwise in the order of the file.
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


def _composite(nodes: Mapping[int, AnnotatedNode], name: str, numbers: list[int], where: str) -> LayerNodes:
    """Return the layer of the nodes that share a `__layer__`."""

    def refuse(what: str) -> NoReturn:
        raise UnreadableModelError(f"{where}: layer {name[:80]!r} {what}")

    def agreed(attribute: str) -> str | None:
        found = {nodes[number].annotations.get(attribute) for number in numbers}
        if len(found) > 1:
            shown = " and ".join(sorted(repr(text and text[:40]) for text in found)[:2])
            refuse(f"has operators of different {attribute}: {shown}")
        return found.pop()

    said_times, said_kind = agreed(TIMES_ATTRIBUTE), agreed(KIND_ATTRIBUTE)
    text = "1" if said_times is None else said_times
    # Check the length first: Python takes long to read a long row of digits.
    if len(text) > 7 or not (text.isascii() and text.isdigit()) or not 1 <= int(text) <= MOST_TIMES:
        refuse(f"has {TIMES_ATTRIBUTE} {text[:20]!r}; give a number from 1 to {MOST_TIMES}")
    if said_kind is not None and said_kind not in _KINDS:
        refuse(f"has {KIND_ATTRIBUTE} {said_kind[:40]!r}; it must be one of {', '.join(_KINDS)}")
    times, kind = int(text), None if said_kind is None else _KINDS[said_kind]
    if len(numbers) == times == 1:
        return LayerNodes(name, kind, (tuple(numbers),))
    size, rest = divmod(len(numbers), times)
    if rest:
        refuse(f"has {len(numbers)} operators, which is not {times} times the same")
    parts = [numbers[start : start + size] for start in range(0, len(numbers), size)]
    written = [[nodes[number].op for number in part] for part in parts]
    if any(ops != written[0] for ops in written):
        refuse(f"is repeated {times} times, but its repetitions differ")
    # An order that depends on the wiring only, as files list equal layers differently.
    place = {number: position for position, number in enumerate(parts[0])}
    sources = [[place[source] for source in nodes[number].sources if source in place] for number in parts[0]]
    read = {source for found in sources for source in found}
    unread = [position for position in range(size) if position not in read]
    order = depth_first([*sources, unread])[:-1]
    return LayerNodes(name, kind, tuple([tuple([part[place] for place in order]) for part in parts]))


class GroupedNodes:
    """The layers of a model file, the place of each node in them, and the outputs that leave each layer."""

    def __init__(self, layers: Sequence[LayerNodes], reads: Iterable[tuple[int | None, int, int | None]]) -> None:
        """`reads` are the node and output that are read, and the reader; None for inputs and outputs of the model."""
        self.layers = layers
        # The layer of each node, and its number among the nodes of one repetition.
        self.place: dict[int | None, tuple[int, int]] = {
            node: (layer, number)
            for layer, group in enumerate(layers)
            for repetition in group.repetitions
            for number, node in enumerate(repetition)
        }
        leaving: list[set[tuple[int, int]]] = [set() for _ in layers]
        for node, output, reader in reads:
            source = self.place.get(node)
            if source is not None and (reader not in self.place or self.place[reader][0] != source[0]):
                leaving[source[0]].add((source[1], output))
        # For each layer, from a node within the repetition and its output to the number of the result.
        self.results = [{result: number for number, result in enumerate(sorted(found))} for found in leaving]

    def feed(self, node: int, output: int) -> Feed:
        """Return an output of a node as other layers read it."""
        layer, member = self.place[node]
        return Feed(layer, self.results[layer][member, output])


_GIBIBYTE = 1 << 30
# The quantiser holds several copies of the weights in memory, and a model file has less than 2 GiB.
MOST_WEIGHT_BYTES = _GIBIBYTE
# Copies of about a hundred models.
MOST_KEPT_BYTES = 4 * _GIBIBYTE
_FOLDER = "quantised"
_CHUNK = 1 << 20


def quantised_copy(
    source: ModelSource, content: bytes, written: LayerGraph, cache: Path, framework: "WorkerFramework"
) -> ModelSource:
    """Return a model with a quantised copy of its file, which is written unless the cache has it.

    `content` is that of the file without large arrays, and `written` its layers.
    """
    _require_quantisable(source.name, written)
    path = cache / _FOLDER / f"{cache_key(framework.quantiser, content=content)}{ONNX_SUFFIX}"
    inputs = {it.name: it.type for it in written.inputs if it.type.shape is not None}
    has_copy, noted = False, path.with_suffix(".blake2b")
    with suppress(OSError, ValueError):
        has_copy = read_text(noted) == _checksum(path)
    if has_copy:
        # The oldest copies are removed first.
        with suppress(OSError):
            os.utime(path)
    else:
        values = {it.name: it.value for it in written.inputs if it.value}
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            # The quantiser writes other files beside the copy, and leaves them if it crashes.
            with TemporaryDirectory(dir=path.parent, prefix="draft-") as drafts:
                draft = Path(drafts, path.name)
                framework.quantise(source.path.absolute(), draft, inputs, values)
                # The copy appears only once it is complete.
                write_atomically(noted, _checksum(draft))
                draft.replace(path)
        except (WorkerRefusedError, WorkerLostError) as refused:
            raise ModelError(f"{source.name} cannot be quantised: {refused}") from None
        except OSError as error:
            problem = f"{path.parent} cannot be written: {error.strerror}"
            raise ModelError(f"{source.name} cannot be quantised: {problem}") from None
        remove_oldest([path.parent], MOST_KEPT_BYTES)
    return replace(source, path=path, inputs={name: it.shape or () for name, it in inputs.items()}, twin=None)


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
