"""The models that a person can name: the samples, and what lies in the folders that were added."""

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from dlbricks_tui.atomic_write import in_turn, write_atomically
from dlbricks_tui.models.errors import ModelError, UnknownModelError
from dlbricks_tui.models.graph import Shape
from dlbricks_tui.runtime.runtime import Format

TABLE1_PREFIX = "table1"
ONNX_SUFFIX = ".onnx"
MODEL_SUFFIXES = ("-symbol.json", "-symbol.json.gz", ONNX_SUFFIX)
FOLDERS_FILE = "model-folders.json"


@dataclass(frozen=True, slots=True)
class ModelSource:
    """Where a model is, what it is called, and what is known of it before it is read."""

    name: str
    path: Path
    task: str | None = None
    table1_id: str | None = None
    # The data inputs with their shapes, where a manifest says them.
    inputs: Mapping[str, Shape] = field(default_factory=dict)
    # Inferred types that were delivered with the model.
    types: Path | None = None
    layers: int | None = None
    unique_layers: int | None = None

    @property
    def format(self) -> Format:
        """What it is written in, which its file's name tells."""
        return Format.ONNX if self.path.name.endswith(ONNX_SUFFIX) else Format.MXNET


class Library:
    """All models by name; the samples come first."""

    def __init__(self, samples: Path, data: Path) -> None:
        self._samples = samples
        self._folders_file = data / FOLDERS_FILE

    def sources(self) -> tuple[ModelSource, ...]:
        """Every model of the library: Table 1 by number, the other samples, then the added folders."""
        return (*self.samples(), *(source for folder in self.folders() for source in _in_folder(folder)))

    def samples(self) -> tuple[ModelSource, ...]:
        """The models that are delivered with the product."""
        manifest = self._samples / "manifest.json"
        try:
            entries = json.loads(manifest.read_bytes())["models"]
            return tuple([_from_manifest(entry, self._samples) for entry in entries])
        except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
            raise ModelError(f"{manifest} cannot be read ({error}); install dlbricks-tui again") from None

    def find(self, name: str) -> tuple[ModelSource, ...]:
        """The model of that path, library name or `table1:ID`; `table1` gives all fifty."""
        if name == TABLE1_PREFIX:
            return tuple([source for source in self.samples() if source.table1_id is not None])
        if name.startswith(f"{TABLE1_PREFIX}:"):
            return (self._table1(name.removeprefix(f"{TABLE1_PREFIX}:")),)
        if _looks_like_path(name):
            return (source_of(Path(name)),)
        sources = self.sources()
        found = {source.path: source for source in sources if source.name == name}
        if len(found) > 1:
            places = ", ".join(map(str, list(found)[:4]))
            raise UnknownModelError(f"{len(found)} models are called {name!r}; give a path: {places}")
        if not found:
            raise UnknownModelError(f"no model {name[:120]!r}: {_advice(name, sources)}")
        return tuple(found.values())

    def find_all(self, names: Iterable[str]) -> tuple[ModelSource, ...]:
        """The models of several names, in that order, each once."""
        found = {(source.path, source.name): source for name in names for source in self.find(name)}
        return tuple(found.values())

    def folders(self) -> tuple[Path, ...]:
        """The folders that were added."""
        try:
            listed = json.loads(self._folders_file.read_bytes())["folders"]
            return tuple([Path(folder) for folder in listed])
        except FileNotFoundError:
            return ()
        except (OSError, ValueError, LookupError, TypeError) as error:
            raise ModelError(f"{self._folders_file} cannot be read ({error}); mend or remove it") from None

    def missing_folders(self) -> tuple[Path, ...]:
        """Those of the added folders that are there no more, or not now."""
        return tuple([folder for folder in self.folders() if not _is_folder(folder)])

    def add_folder(self, folder: Path) -> int:
        """Adds a folder and returns how many models it holds now."""
        folder = _absolute(folder)
        if not _is_folder(folder):
            raise ModelError(f"{folder} is not a folder")
        found = len(_in_folder(folder))
        if not found:
            raise ModelError(f"{folder} holds no *-symbol.json or *.onnx file, here or below")
        self._change_folders(lambda known: [*(other for other in known if other != folder), folder])
        return found

    def remove_folder(self, folder: Path) -> None:
        """Forgets a folder; its files stay."""
        folder = _absolute(folder)

        def without(known: Sequence[Path]) -> list[Path]:
            if folder not in known:
                listed = ", ".join(map(str, known)) or "none"
                raise ModelError(f"{folder} is not in the library; the folders are: {listed}")
            return [other for other in known if other != folder]

        self._change_folders(without)

    def _table1(self, number: str) -> ModelSource:
        for source in self.samples():
            if source.table1_id == number:
                return source
        raise UnknownModelError(f"no Table 1 model {number[:40]!r}: the numbers go from 1 to 50")

    def _change_folders(self, change: Callable[[Sequence[Path]], list[Path]]) -> None:
        try:
            with in_turn(self._folders_file):
                document = json.dumps({"folders": [str(folder) for folder in change(self.folders())]}, indent=2)
                write_atomically(self._folders_file, f"{document}\n")
        except OSError as error:
            raise ModelError(f"{self._folders_file} cannot be written: {error.strerror}") from None


def source_of(path: Path) -> ModelSource:
    """A model file as a model; it is called what the file is called."""
    return ModelSource(_stem(path), path)


def _looks_like_path(name: str) -> bool:
    return os.sep in name or name.endswith((".json", ".gz", ONNX_SUFFIX)) or os.path.isfile(name)  # noqa: PTH113 - as below


def _is_folder(folder: Path) -> bool:
    return os.path.isdir(folder)  # noqa: PTH112 - which, unlike Path's own, takes any text


def _advice(name: str, sources: Sequence[ModelSource]) -> str:
    from difflib import get_close_matches

    names = {source.name.lower(): source.name for source in sources}
    close = [repr(names[lower]) for lower in get_close_matches(name[:120].lower(), names, n=3)]
    if close:
        return f"did you mean {' or '.join(close)}?"
    return (
        "give the path of a *-symbol.json or *.onnx file, table1:ID (1 to 50), or a name that `dlbricks models` lists"
    )


def _absolute(folder: Path) -> Path:
    try:
        return folder.expanduser().absolute()
    except RuntimeError as error:
        raise ModelError(f"{folder}: {error}") from None


def _stem(path: Path) -> str:
    for suffix in (*MODEL_SUFFIXES, ".json.gz", ".json"):
        if path.name.endswith(suffix) and len(path.name) > len(suffix):
            return path.name.removesuffix(suffix)
    return path.name


def _in_folder(folder: Path) -> list[ModelSource]:
    # os.walk neither follows links to folders nor stops at one that may not be read.
    found = [Path(where) / name for where, _, names in os.walk(folder) for name in names]
    return [source_of(path) for path in sorted(found) if path.name.endswith(MODEL_SUFFIXES)]


def _from_manifest(entry: Mapping[str, object], samples: Path) -> ModelSource:
    inputs = entry["inputs"]
    if not isinstance(inputs, dict):
        raise TypeError("inputs are not an object")
    types, layers, unique = entry.get("types"), entry.get("layers"), entry.get("unique_layers")
    task, table1_id = entry.get("task"), entry.get("table1_id")
    return ModelSource(
        str(entry["name"]),
        samples / str(entry["file"]),
        None if task is None else str(task),
        None if table1_id is None else str(table1_id),
        {str(name): tuple(int(axis) for axis in shape) for name, shape in inputs.items()},
        None if types is None else samples / str(types),
        layers if isinstance(layers, int) else None,
        unique if isinstance(unique, int) else None,
    )
