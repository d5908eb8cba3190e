"""The cache on disk of what is read and derived from model files, so that a known model is neither read nor cut again.

A key is the digest of everything that an entry depends on: the content of the file, the settings, and the code. An
entry is written in one step and carries a checksum. If it cannot be read or written, its content is made again, which
takes longer and changes nothing.

Answers of frameworks take longest, and do not depend on this code: they are kept as JSON under keys without it.
Quantised copies of model files are kept as they are, with their checksums beside them.
"""

import hashlib
import io
import json
import os
import pickle
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from functools import lru_cache
from operator import attrgetter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from dlbricks_tui.files import read_bytes, read_text, replace_file, write_atomically
from dlbricks_tui.models.content import digest_of, without_cycle_search
from dlbricks_tui.models.graph import Layer, LayerGraph, Numbers, Operator, Shape, TensorType

# Entries of a thousand models take a tenth of it.
MOST_BYTES = 2**28
# Copies of about a hundred models.
MOST_COPIED_BYTES = 2**32
# The folders of entries, those of the answers of frameworks, and that of copies.
_FOLDER, INFERRED, FUSED, QUANTISED = "models", "inferred", "fused", "quantised"
_CHECKSUM_BYTES = 16
# The number of entries that a process writes before it looks at the size of all entries again.
_WRITES_PER_LOOK = 64
# A use is noted only if the last one was noted so long ago.
_SECONDS_BETWEEN_NOTES = 3600.0
_PACKAGE = Path(__file__).parent.parent
# The packages and modules whose code decides about entries.
_DECIDING = ("models", "bricks", "runtime/traits.py", "runtime/variant.py")


class ReadModel(NamedTuple):
    """A model as it was read, with the sizes of the files that hold its arrays, by their names."""

    graph: LayerGraph
    beside: Mapping[str, int] = {}

    def holds_for(self, path: Path) -> bool:
        """True if the files with the arrays are still there, beside the model's file."""
        try:
            return all((path.parent / name).stat().st_size == size for name, size in self.beside.items())
        except OSError:
            return False


@dataclass(frozen=True, slots=True)
class GraphAnswer:
    """The answer of a framework about a graph: the types of all outputs of its nodes, and the nodes that are unknown.

    After fusing, `symbol` is the fused graph that the types belong to, and `parts` are the nodes of the model file
    behind each of its nodes. Without them the types are those of the model file.
    """

    types: Sequence[Sequence[TensorType]]
    unknown: frozenset[int] = frozenset()
    symbol: str | None = None
    parts: Sequence[Sequence[int]] = ()
    # The framework that was asked.
    framework: str = ""
    # The numbers of small tensors in one run, by node and output.
    numbers: tuple[tuple[int, int, Numbers], ...] = ()
    # The nodes and outputs whose types are those of that run, or the reason why there was none.
    recorded: tuple[tuple[int, int], ...] = ()
    failure: str = ""


class Cache:
    """Entries by key. Any number of processes may share a folder."""

    def __init__(self, folder: Path, most_bytes: int = MOST_BYTES) -> None:
        self.folder = folder
        self._most_bytes = most_bytes
        self._writes = 0

    @without_cycle_search()
    def read(self, key: str) -> Any:
        """Return the content of an entry; None if it is absent, damaged or unreadable."""
        path = self.folder / _FOLDER / key
        try:
            content = read_bytes(path)
            with suppress(OSError):
                if time.time() - path.stat().st_mtime > _SECONDS_BETWEEN_NOTES:
                    os.utime(path)
            if content[:_CHECKSUM_BYTES] != _checksum(content[_CHECKSUM_BYTES:]):
                return None
            return _Unpickler(io.BytesIO(content[_CHECKSUM_BYTES:])).load()
        except _UNREADABLE:
            return None

    def write(self, key: str, content: object) -> None:
        """Write an entry, unless its folder cannot be written or its content is nested too deep."""
        path = self.folder / _FOLDER / key
        with suppress(OSError, RecursionError):
            file = io.BytesIO()
            pickler = pickle.Pickler(file, 5)
            pickler.dispatch_table = _REDUCERS
            pickler.dump(content)
            packed = file.getvalue()
            path.parent.mkdir(parents=True, exist_ok=True)
            # After a loss of power, the checksum tells.
            replace_file(path, lambda file: file.write(_checksum(packed) + packed), durable=False)
            if self._writes % _WRITES_PER_LOOK == 0:
                remove_oldest([self.folder / name for name in (_FOLDER, INFERRED, FUSED)], self._most_bytes)
            self._writes += 1

    def read_types(self, kind: str, key: str) -> GraphAnswer | None:
        """Return an answer of a framework about what it has INFERRED or FUSED; None if it is absent or damaged."""
        return types_in(self.folder / kind / f"{key}.json", key)

    def write_types(self, kind: str, key: str, found: GraphAnswer) -> None:
        """Keep an answer of a framework. Without a cache, the next read asks the framework again."""
        distinct: dict[TensorType, int] = {}
        nodes = [[distinct.setdefault(one, len(distinct)) for one in types] for types in found.types]
        document: dict[str, Any] = {"key": key, "framework": found.framework, "unknown": sorted(found.unknown)}
        if found.symbol is not None:
            document |= {"symbol": found.symbol, "parts": found.parts}
        document |= {"types": list(distinct), "nodes": nodes}
        if found.numbers or found.recorded or found.failure:
            document |= {"numbers": found.numbers, "recorded": found.recorded, "failure": found.failure}
        lines = (f"{json.dumps(name)}:{json.dumps(value, separators=(',', ':'))}" for name, value in document.items())
        with suppress(OSError):
            write_atomically(self.folder / kind / f"{key}.json", "{\n" + ",\n".join(lines) + "\n}\n")

    def copy(self, name: str, make: Callable[[Path], object]) -> Path:
        """Return a copy of a model file, which is made at a path unless it is there and whole.

        Raise OSError if the folder cannot be written.
        """
        path = self.folder / QUANTISED / name
        noted = path.with_suffix(".blake2b")
        with suppress(OSError, ValueError):
            if read_text(noted) == digest_of(path, "blake2b"):
                # The oldest copies are removed first.
                with suppress(OSError):
                    os.utime(path)
                return path
        path.parent.mkdir(parents=True, exist_ok=True)
        # The quantiser writes other files beside the copy, and leaves them if it crashes.
        with TemporaryDirectory(dir=path.parent, prefix="draft-") as drafts:
            draft = Path(drafts, name)
            make(draft)
            # The copy appears only once it is complete.
            write_atomically(noted, digest_of(draft, "blake2b"))
            draft.replace(path)
        remove_oldest([path.parent], MOST_COPIED_BYTES)
        return path


def remove_oldest(folders: Iterable[Path], most_bytes: int) -> None:
    """Remove the files used longest ago until three quarters are left, if they are too large together."""
    files = []
    for folder in folders:
        with suppress(OSError), os.scandir(folder) as found:
            files += [(it.stat().st_mtime, it.stat().st_size, it.path) for it in found if it.is_file()]
    left = sum(size for _, size, _ in files)
    if left <= most_bytes:
        return
    for _, size, path in sorted(files):
        if left <= most_bytes * 3 // 4:
            break
        with suppress(OSError):
            os.unlink(path)  # noqa: PTH108 - from scandir
            left -= size


def cache_key(*facts: object, content: bytes = b"") -> str:
    """Return the key for a content and further facts on which an entry depends. The code is one of them."""
    return hashlib.sha256(f"{_code_digest()} {facts!r}\0".encode() + content).hexdigest()


def answer_key(content: bytes, shapes: Mapping[int, Shape], *more: str) -> str:
    """Return the key of a framework's answer: for a file content, input shapes, and further facts."""
    # The first number changes with the stored form, and with the way in which files are read into nodes.
    facts = json.dumps([1, sorted(shapes.items()), *more])
    return hashlib.sha256(facts.encode() + b"\0" + content).hexdigest()


@lru_cache(maxsize=1)
def _code_digest() -> str:
    """Return a digest of the code that makes entries, and of the Python that writes them."""
    digest = hashlib.sha256(repr(sys.version_info[:2]).encode())
    for name in _DECIDING:
        place = _PACKAGE / name
        for path in sorted(place.rglob("*.py")) if place.is_dir() else (place,):
            digest.update(path.read_bytes())
    return digest.hexdigest()


def _reducer(kind: type[Any]) -> Callable[[Any], Any]:
    values = attrgetter(*(it.name for it in fields(kind)))
    return lambda instance: (kind, values(instance))


# By default, dataclasses with slots look up their fields for each instance, which takes as long as all the rest.
_REDUCERS: Mapping[type, Callable[[Any], Any]] = {kind: _reducer(kind) for kind in (Layer, Operator)}


def _checksum(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=_CHECKSUM_BYTES).digest()


class _Unpickler(pickle.Unpickler):
    """Reads entries. A foreign entry cannot run code, because it may name only classes of these packages."""

    def find_class(self, module: str, name: str) -> Any:
        """Return a class of a module that decides about entries."""
        if module.startswith(_MODULES) and "." not in name:
            found = super().find_class(module, name)
            if isinstance(found, type) and found.__module__ == module:
                return found
        raise pickle.UnpicklingError(f"an entry names {module}.{name}")


_MODULES = tuple([f"dlbricks_tui.{name.removesuffix('.py').replace('/', '.')}" for name in _DECIDING])
_UNREADABLE = (
    *(OSError, ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError, MemoryError),
    *(EOFError, ImportError, pickle.PickleError),
)


def types_in(path: Path, key: str) -> GraphAnswer | None:
    """Return the types in a file, of the cache or of a model; None if it is absent, damaged or of another key."""
    try:
        return parse_types(read_bytes(path), key)
    except OSError:
        return None


@without_cycle_search()
def parse_types(content: bytes, key: str) -> GraphAnswer | None:
    """Return the types in the content of such a file, None if it is damaged or of another key."""
    try:
        document = json.loads(content)
        if document["key"] != key:
            return None
        shapes = ((None if shape is None else tuple(map(int, shape)), str(dtype)) for shape, dtype in document["types"])
        distinct = [TensorType(*found) for found in shapes]
        # Almost every node has one output, so the tuples are shared.
        tuples: dict[tuple[int, ...], tuple[TensorType, ...]] = {}
        types = []
        for raw in document["nodes"]:
            places = tuple(raw)
            if (known := tuples.get(places)) is None:
                known = tuples[places] = tuple([distinct[place] for place in places])
            types.append(known)
        return GraphAnswer(
            tuple(types),
            frozenset(document["unknown"]),
            document.get("symbol"),
            tuple([tuple(numbers) for numbers in document.get("parts", ())]),
            str(document["framework"]),
            tuple([(int(node), int(output), tuple(held)) for node, output, held in document.get("numbers", ())]),
            tuple([(int(node), int(output)) for node, output in document.get("recorded", ())]),
            str(document.get("failure", "")),
        )
    except (ValueError, LookupError, TypeError, ArithmeticError, RecursionError):
        # Without a readable cache, the framework is asked again.
        return None
