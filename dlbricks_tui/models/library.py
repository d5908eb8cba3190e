"""The models that a user can name: the samples, added files and folders."""

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path

from dlbricks_tui.files import in_turn, read_json, write_atomically
from dlbricks_tui.models.errors import ModelError, UnknownModelError
from dlbricks_tui.models.graph import Numbers, Shape
from dlbricks_tui.models.neutral import numbers_of
from dlbricks_tui.runtime.traits import Format

TABLE1_PREFIX = "table1"
ONNX_SUFFIX = ".onnx"
MODEL_SUFFIXES = ("-symbol.json", "-symbol.json.gz", ONNX_SUFFIX)
FOLDERS_FILE = "model-folders.json"
_ADVICE = "give the path of a *-symbol.json or *.onnx file, table1:ID (1 to 50), or a name that `dlbricks models` lists"


@dataclass(frozen=True, slots=True)
class ModelSource:
    """The place and name of a model, and facts that are known before it is read."""

    name: str
    path: Path
    task: str | None = None
    table1_id: str | None = None
    # Shapes of the data inputs, if a manifest tells them.
    inputs: Mapping[str, Shape] = field(default_factory=dict)
    # Values of inputs that are settings, if a manifest tells them.
    values: Mapping[str, Numbers] = field(default_factory=dict)
    # The file with inferred types that came with the model.
    types: Path | None = None
    layers: int | None = None
    unique_layers: int | None = None
    # The same model in a file of another format.
    twin: "ModelSource | None" = None

    @property
    def format(self) -> Format:
        """The file format, by the name of the file."""
        return Format.ONNX if self.path.name.endswith(ONNX_SUFFIX) else Format.MXNET

    @property
    def formats(self) -> tuple[Format, ...]:
        """The formats of all its files."""
        own = {self.format} if self.twin is None else {self.format, self.twin.format}
        return tuple([form for form in Format if form in own])

    def in_format(self, form: Format) -> "ModelSource":
        """Return the model with its file of that format, or unchanged if it has none."""
        if self.twin is None or self.twin.format is not form:
            return self
        return replace(self.twin, twin=replace(self, twin=None))


def shared_formats(sources: Iterable[ModelSource]) -> tuple[Format, ...]:
    """Return the formats that all of the models have."""
    found = [source.formats for source in sources]
    return tuple([form for form in Format if all(form in formats for formats in found)])


@dataclass(frozen=True, slots=True)
class _Added:
    """The user's additions to the library, as stored in the data folder."""

    folders: tuple[Path, ...] = ()
    models: tuple[Path, ...] = ()
    # Files in the folders that the user has removed from the library.
    left_out: tuple[Path, ...] = ()


class Library:
    """All models by name. A model with files of several formats is one model, and has the preferred one first."""

    def __init__(self, samples: Path, data: Path, preferred: Format = Format.MXNET) -> None:
        self._samples = samples
        self._preferred = preferred
        self.data = data
        self._folders_file = data / FOLDERS_FILE

    def sources(self) -> tuple[ModelSource, ...]:
        """Return all models: Table 1 by number, the other samples, the added files, then the added folders."""
        added = self._added()
        files = [source_of(path) for path in added.models if _is_file(path)]
        in_folders = [source for folder in added.folders for source in _in_folder(folder)]
        return (*self.samples(), *files, *(source for source in in_folders if source.path not in added.left_out))

    def samples(self) -> tuple[ModelSource, ...]:
        """Return the models that come with dlbricks."""
        manifest = self._samples / "manifest.json"
        try:
            entries = json.loads(manifest.read_bytes())["models"]
            return tuple([_from_manifest(entry, self._samples).in_format(self._preferred) for entry in entries])
        except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
            raise ModelError(f"{manifest} cannot be read ({error}); install dlbricks-tui again") from None

    def find(self, name: str) -> tuple[ModelSource, ...]:
        """Return the model of that path, library name or `table1:ID`; `table1` stands for all fifty."""
        if name == TABLE1_PREFIX:
            return tuple([source for source in self.samples() if source.table1_id is not None])
        if name.startswith(f"{TABLE1_PREFIX}:"):
            number = name.removeprefix(f"{TABLE1_PREFIX}:")
            if not (numbered := [source for source in self.samples() if source.table1_id == number]):
                raise UnknownModelError(f"no Table 1 model {number[:40]!r}: the numbers go from 1 to 50")
            return (numbered[0],)
        if looks_like_path(name):
            given = source_of(Path(name))
            # A sample has its input shapes. The path says which of its files is meant.
            samples = (it for it in self.samples() if it.name == given.name and _is_same(it.path, given.path))
            return (replace(next(samples, given), twin=None),)
        sources = self.sources()
        found = {source.path: source for source in sources if source.name == name}
        if len(found) > 1:
            places = ", ".join(map(str, list(found)[:4]))
            raise UnknownModelError(f"{len(found)} models are called {name!r}; give a path: {places}")
        if not found:
            from difflib import get_close_matches

            names = {source.name.lower(): source.name for source in sources}
            close = [repr(names[lower]) for lower in get_close_matches(name[:120].lower(), names, n=3)]
            advice = f"did you mean {' or '.join(close)}?" if close else _ADVICE
            raise UnknownModelError(f"no model {name[:120]!r}: {advice}")
        return tuple(found.values())

    def find_all(self, names: Iterable[str]) -> tuple[ModelSource, ...]:
        """Return the models of several names, in that order, each once."""
        found = {(source.path, source.name): source for name in names for source in self.find(name)}
        return tuple(found.values())

    def folders(self) -> tuple[Path, ...]:
        """Return the added folders."""
        return self._added().folders

    def missing(self) -> tuple[Path, ...]:
        """Return the added folders and files that do not exist now."""
        added = self._added()
        folders = [folder for folder in added.folders if not _is_folder(folder)]
        return (*folders, *(path for path in added.models if not _is_file(path)))

    def add_folder(self, folder: Path) -> int:
        """Add a folder and return the number of models in it."""
        folder = _absolute(folder)
        if not _is_folder(folder):
            raise ModelError(f"there is no folder {folder}; give the path of a model file, or of a folder of them")
        found = len(_in_folder(folder))
        if not found:
            raise ModelError(f"{folder} holds no *-symbol.json or *.onnx file, here or below")

        def with_it(added: _Added) -> _Added:
            models = [path for path in added.models if folder not in path.parents]
            left_out = [path for path in added.left_out if folder not in path.parents]
            return _Added((*_without(folder, added.folders), folder), tuple(models), tuple(left_out))

        self._change(with_it)
        return found

    def add_model(self, path: Path) -> ModelSource:
        """Add a file, unless the library lists it already, and return its source."""
        source = source_of(_absolute(path))
        sample = next((each for each in self.samples() if source.path == each.in_format(source.format).path), None)
        if sample is not None:
            return sample

        def with_it(added: _Added) -> _Added:
            left_out = _without(source.path, added.left_out)
            models = _without(source.path, added.models)
            listed = any(source in _in_folder(folder) for folder in added.folders)
            return replace(added, models=models if listed else (*models, source.path), left_out=left_out)

        self._change(with_it)
        return source

    def remove(self, path: Path) -> None:
        """Remove a folder or a single file from the library. The files themselves stay."""
        path = _absolute(path)

        def without_it(added: _Added) -> _Added:
            if path in added.folders:
                left_out = [other for other in added.left_out if path not in other.parents]
                return replace(added, folders=_without(path, added.folders), left_out=tuple(left_out))
            if path in added.models:
                return replace(added, models=_without(path, added.models))
            if any(source.path == path for folder in added.folders for source in _in_folder(folder)):
                return replace(added, left_out=(*_without(path, added.left_out), path))
            if any(path in (it.path, it.twin and it.twin.path) for it in self.samples()):
                raise ModelError(f"{path} comes with dlbricks: it stays in the library")
            known = ", ".join(map(str, (*added.folders, *added.models))) or "none"
            raise ModelError(f"{path} is not in the library; the folders and files that were added are: {known}")

        self._change(without_it)

    def _added(self) -> _Added:
        try:
            document = read_json(self._folders_file)
            listed = {each.name: document[each.name] for each in fields(_Added)}
            if not all(isinstance(it, list) and all(isinstance(path, str) for path in it) for it in listed.values()):
                raise ValueError("it has no lists of paths")
            return _Added(**{name: tuple(map(Path, paths)) for name, paths in listed.items()})
        except FileNotFoundError:
            return _Added()
        except (OSError, ValueError, LookupError, TypeError) as error:
            raise ModelError(f"{self._folders_file} cannot be read ({error}); repair or remove it") from None

    def _change(self, change: Callable[[_Added], _Added]) -> None:
        try:
            with in_turn(self._folders_file):
                added = change(self._added())
                listed = {each.name: [str(path) for path in getattr(added, each.name)] for each in fields(added)}
                write_atomically(self._folders_file, f"{json.dumps(listed, indent=2)}\n")
        except OSError as error:
            raise ModelError(f"{self._folders_file} cannot be written: {error.strerror}") from None


def source_of(path: Path) -> ModelSource:
    """Return the source for a model file. The model gets the name of the file."""
    suffixes = (it for it in (*MODEL_SUFFIXES, ".json.gz", ".json") if path.name.endswith(it) and path.name != it)
    return ModelSource(path.name.removesuffix(next(suffixes, "")), path)


def looks_like_path(name: str) -> bool:
    """Return whether a word is the path of a file, or is written like one."""
    return os.sep in name or name.endswith((".json", ".gz", ONNX_SUFFIX)) or os.path.isfile(name)  # noqa: PTH113 - as below


def _is_folder(folder: Path) -> bool:
    return os.path.isdir(folder)  # noqa: PTH112 - unlike Path's own function, it accepts any text


def _is_file(path: Path) -> bool:
    return os.path.isfile(path)  # noqa: PTH113 - as above


def _is_same(path: Path, other: Path) -> bool:
    try:
        return path.samefile(other)
    except OSError:
        return False


def _without(path: Path, known: Sequence[Path]) -> tuple[Path, ...]:
    return tuple([other for other in known if other != path])


def _absolute(folder: Path) -> Path:
    try:
        return folder.expanduser().absolute()
    except RuntimeError as error:
        raise ModelError(f"{folder}: {error}") from None


def _in_folder(folder: Path) -> list[ModelSource]:
    # os.walk does not follow links to folders, and skips folders that it may not read.
    found = [Path(where) / name for where, _, names in os.walk(folder) for name in names]
    return [source_of(path) for path in sorted(found) if path.name.endswith(MODEL_SUFFIXES)]


def _from_manifest(entry: Mapping[str, object], samples: Path) -> ModelSource:
    inputs, values = entry["inputs"], entry.get("values", {})
    if not isinstance(inputs, dict) or not isinstance(values, dict):
        raise TypeError("inputs or values are not an object")
    texts = {name: None if entry.get(name) is None else str(entry[name]) for name in ("types", "task", "table1_id")}
    found = ModelSource(
        str(entry["name"]),
        samples / str(entry["file"]),
        texts["task"],
        texts["table1_id"],
        {str(name): tuple(int(axis) for axis in shape) for name, shape in inputs.items()},
        {str(name): numbers_of(value) for name, value in values.items()},
        None if texts["types"] is None else samples / texts["types"],
        *_counts(entry),
    )
    onnx = entry.get("onnx")
    if not isinstance(onnx, dict):
        return found
    layers, unique = _counts(onnx)
    twin = replace(found, path=samples / str(onnx["file"]), types=None, layers=layers, unique_layers=unique)
    return replace(found, twin=twin)


def _counts(entry: Mapping[str, object]) -> tuple[int | None, int | None]:
    """Return the numbers of layers and of unique layers, if the manifest has them."""
    layers, unique = entry.get("layers"), entry.get("unique_layers")
    return layers if isinstance(layers, int) else None, unique if isinstance(unique, int) else None
