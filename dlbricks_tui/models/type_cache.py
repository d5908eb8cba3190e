"""Inferred types, kept on disk, so that a model that was read before needs no framework."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dlbricks_tui.atomic_write import write_atomically
from dlbricks_tui.models.content import without_cycle_search
from dlbricks_tui.models.graph import Numbers, Shape, TensorType
from dlbricks_tui.regular_files import read_bytes

# Changes with the stored form, and with the way in which files are read into nodes.
CACHE_VERSION = 1


@dataclass(frozen=True, slots=True)
class CachedTypes:
    """The types of all outputs of all nodes, the nodes that the framework does not know, and its identity.

    `symbol` is the fused graph that the types belong to, and `parts` are the nodes of the model file behind each of its
    nodes. Without them the types are those of the model file.
    """

    types: tuple[tuple[TensorType, ...], ...]
    unknown: frozenset[int] = frozenset()
    framework: str = ""
    symbol: str | None = None
    parts: tuple[tuple[int, ...], ...] = ()
    # The numbers of small tensors in one run, by node and output.
    numbers: tuple[tuple[int, int, Numbers], ...] = ()
    # The nodes and outputs whose types are those of that run, or the reason why there was none.
    recorded: tuple[tuple[int, int], ...] = ()
    failure: str = ""


def cache_key(content: bytes, shapes: Mapping[int, Shape], *more: str) -> str:
    """Return the key for a file content, input shapes, and further facts on which the answer depends."""
    facts = json.dumps([CACHE_VERSION, sorted(shapes.items()), *more])
    return hashlib.sha256(facts.encode() + b"\0" + content).hexdigest()


def write_types(path: Path, key: str, found: CachedTypes) -> None:
    """Store inferred types; raise OSError if the folder cannot be written."""
    write_atomically(path, _rendered(key, found))


def read_types(path: Path, key: str) -> CachedTypes | None:
    """Return the content of a cache file, None if it is absent, damaged or of another key."""
    try:
        content = read_bytes(path)
    except OSError:
        return None
    return parse_types(content, key)


@without_cycle_search()
def parse_types(content: bytes, key: str) -> CachedTypes | None:
    """Return the types in the content of a cache file, None if it is damaged or of another key."""
    try:
        document = json.loads(content)
        if document["key"] != key:
            return None
        return _parsed(document)
    except (ValueError, LookupError, TypeError, ArithmeticError, RecursionError):
        # Without a readable cache, the framework is asked again.
        return None


def _rendered(key: str, found: CachedTypes) -> str:
    distinct: dict[TensorType, int] = {}
    nodes = [[distinct.setdefault(one, len(distinct)) for one in types] for types in found.types]
    document: dict[str, Any] = {"key": key, "framework": found.framework, "unknown": sorted(found.unknown)}
    if found.symbol is not None:
        document |= {"symbol": found.symbol, "parts": found.parts}
    document |= {"types": list(distinct), "nodes": nodes}
    if found.numbers or found.recorded or found.failure:
        document |= {"numbers": found.numbers, "recorded": found.recorded, "failure": found.failure}
    lines = (f"{json.dumps(name)}:{json.dumps(value, separators=(',', ':'))}" for name, value in document.items())
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _parsed(document: Mapping[str, Any]) -> CachedTypes:
    distinct = [_type(raw) for raw in document["types"]]
    # Almost every node has one output, so the tuples are shared.
    tuples: dict[tuple[int, ...], tuple[TensorType, ...]] = {}
    types = []
    for raw in document["nodes"]:
        numbers = tuple(raw)
        found = tuples.get(numbers)
        if found is None:
            found = tuples[numbers] = tuple([distinct[number] for number in numbers])
        types.append(found)
    parts = tuple([tuple(numbers) for numbers in document.get("parts", ())])
    numbers = tuple([(int(node), int(output), tuple(held)) for node, output, held in document.get("numbers", ())])
    recorded = tuple([(int(node), int(output)) for node, output in document.get("recorded", ())])
    return CachedTypes(
        tuple(types),
        frozenset(document["unknown"]),
        str(document["framework"]),
        document.get("symbol"),
        parts,
        numbers,
        recorded,
        str(document.get("failure", "")),
    )


def _type(raw: Sequence[Any]) -> TensorType:
    shape, dtype = raw
    return TensorType(None if shape is None else tuple([int(axis) for axis in shape]), str(dtype))
