"""The models that a user can name: the samples, added files and folders, and their titles."""

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from dlbricks_tui.atomic_write import in_turn, write_atomically
from dlbricks_tui.models.errors import ModelError, UnknownModelError
from dlbricks_tui.models.graph import GraphInput, Layer, Numbers, Shape, TensorType
from dlbricks_tui.models.input_shapes import listed
from dlbricks_tui.models.kinds import Kind
from dlbricks_tui.models.literals import numbers_of
from dlbricks_tui.models.neutral import plain_name
from dlbricks_tui.regular_files import read_json
from dlbricks_tui.runtime.traits import Format

TABLE1_PREFIX = "table1"
ONNX_SUFFIX = ".onnx"
MODEL_SUFFIXES = ("-symbol.json", "-symbol.json.gz", ONNX_SUFFIX)
FOLDERS_FILE = "model-folders.json"


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
            return (self._table1(name.removeprefix(f"{TABLE1_PREFIX}:")),)
        if looks_like_path(name):
            return (self._at(Path(name)),)
        sources = self.sources()
        found = {source.path: source for source in sources if source.name == name}
        if len(found) > 1:
            places = ", ".join(map(str, list(found)[:4]))
            raise UnknownModelError(f"{len(found)} models are called {name!r}; give a path: {places}")
        if not found:
            raise UnknownModelError(f"no model {name[:120]!r}: {_advice(name, sources)}")
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
            raise ModelError(f"{folder} is not a folder")
        found = len(_in_folder(folder))
        if not found:
            raise ModelError(f"{folder} holds no *-symbol.json or *.onnx file, here or below")

        def with_it(added: _Added) -> _Added:
            models = [path for path in added.models if not _is_below(path, folder)]
            left_out = [path for path in added.left_out if not _is_below(path, folder)]
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
                left_out = [other for other in added.left_out if not _is_below(other, path)]
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

    def _at(self, path: Path) -> ModelSource:
        """Return the model of a path, with the input shapes of the sample if it is one."""
        given = source_of(path)
        samples = (it for it in self.samples() if it.name == given.name and _is_same(it.path, path))
        # The path says which of its files is meant.
        return replace(next(samples, given), twin=None)

    def _table1(self, number: str) -> ModelSource:
        for source in self.samples():
            if source.table1_id == number:
                return source
        raise UnknownModelError(f"no Table 1 model {number[:40]!r}: the numbers go from 1 to 50")

    def _added(self) -> _Added:
        try:
            document = read_json(self._folders_file)
            return _Added(**{each.name: _paths_in(document[each.name]) for each in fields(_Added)})
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


def _paths_in(listed: object) -> tuple[Path, ...]:
    if not isinstance(listed, list) or not all(isinstance(path, str) for path in listed):
        raise ValueError("it has no lists of paths")
    return tuple(map(Path, listed))


def source_of(path: Path) -> ModelSource:
    """Return the source for a model file. The model gets the name of the file."""
    return ModelSource(_stem(path), path)


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


def _is_below(path: Path, folder: Path) -> bool:
    return folder in path.parents


def _without(path: Path, known: Sequence[Path]) -> tuple[Path, ...]:
    return tuple([other for other in known if other != path])


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
    # os.walk does not follow links to folders, and skips folders that it may not read.
    found = [Path(where) / name for where, _, names in os.walk(folder) for name in names]
    return [source_of(path) for path in sorted(found) if path.name.endswith(MODEL_SUFFIXES)]


def _from_manifest(entry: Mapping[str, object], samples: Path) -> ModelSource:
    inputs = entry["inputs"]
    if not isinstance(inputs, dict):
        raise TypeError("inputs are not an object")
    values = entry.get("values", {})
    if not isinstance(values, dict):
        raise TypeError("values are not an object")
    types, task, table1_id = entry.get("types"), entry.get("task"), entry.get("table1_id")
    found = ModelSource(
        str(entry["name"]),
        samples / str(entry["file"]),
        None if task is None else str(task),
        None if table1_id is None else str(table1_id),
        {str(name): tuple(int(axis) for axis in shape) for name, shape in inputs.items()},
        {str(name): numbers_of(value) for name, value in values.items()},
        None if types is None else samples / str(types),
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


_MOST_OPERATORS = 4
# Other titles are the neutral name of the operator.
_SHORT_NAMES = {
    "conv_transpose": "deconv",
    "upsample_nearest": "upsample",
    # Layers as ONNX Runtime and OpenVINO execute them.
    "Conv": "conv",
    "MaxPool": "max pool",
    "AveragePool": "mean pool",
    **dict.fromkeys(("Reorder", "ReorderInput", "ReorderOutput"), "layout conversion"),
}
# ONNX's names of parameters.
_NEUTRAL = {"kernel_shape": "kernel", "strides": "stride", "dilations": "dilation", "group": "groups"}
_JOINS = (Kind.CONCAT, Kind.COMBINE)
_UNKNOWN = "?"


def layer_title(layer: Layer) -> str:
    """Return the operators of a layer, its kernel and stride, its number of output channels, and the number of joined
    tensors.
    """
    names = [_short_name(op) for op in layer.op.split("+")]
    if activation := _params(layer).get("activation"):
        names.append(str(activation).lower())
    words = "+".join(names[:_MOST_OPERATORS]) + ("+..." if len(names) > _MOST_OPERATORS else "")
    joined = len(layer.data)
    of_many = f"of {joined}" if layer.kind in _JOINS and (joined > 2 or layer.kind is Kind.CONCAT) else ""
    return " ".join(filter(None, (words, *_window(layer), of_many)))


def shape_text(tensor: TensorType) -> str:
    """Return a shape as `1x64x56x56`."""
    return _UNKNOWN if tensor.shape is None else _by(tensor.shape) or "scalar"


def input_text(given: GraphInput) -> str:
    """Return the name of an input, its value if one is given, as `sr = 16000`, and its assumed sizes."""
    said = f"{given.name} = {','.join(map(str, given.value))}" if given.value else given.name
    return f"{said} ({_assumed(given)} assumed)" if given.assumed else said


def assumption(inputs: Iterable[GraphInput]) -> str:
    """Return which sizes of inputs are assumed, and how to give others; empty if there are none."""
    found = [it for it in inputs if it.assumed]
    sizes = [f"{_assumed(it)} in input {it.name[:80]}" for it in found]
    # Only first axes are.
    options = [f"--input {it.name[:80]}={','.join(['SIZE', *map(str, (it.type.shape or ())[1:])])}" for it in found]
    return f"assumed: {listed(sizes)}; {options[0]} gives another" if found else ""


def _assumed(given: GraphInput) -> str:
    return ", ".join(f"{axis[:80]} = 1" for axis in given.assumed)


def _window(layer: Layer) -> list[str]:
    params = _params(layer)
    kernel, strides, dilations = (params.get(name) or () for name in ("kernel", "stride", "dilation"))
    words = [_by(kernel) + (f"/{_once(strides)}" if {*strides} - {1} else ""), _width(layer)]
    words += [f"d{_once(dilations)}" if {*dilations} - {1} else ""]
    words += [f"g{params['groups']}" if params.get("groups", 1) != 1 else ""]
    if "scale" in params:
        words.append(f"x{params['scale']}")
    return words


def _width(layer: Layer) -> str:
    """Return the number of output channels or features of a layer with weights."""
    shape = layer.outputs[0].shape if layer.outputs else None
    if not shape or len(shape) < 2:
        return ""
    if layer.kind in (Kind.CONVOLUTION, Kind.DECONVOLUTION):
        return str(shape[1])
    return str(shape[-1]) if layer.kind is Kind.LINEAR else ""


def _params(layer: Layer) -> Mapping[str, Any]:
    """Return the parameters of the first operator with a kernel, else of the first operator. Fused operators hold
    theirs inside.
    """
    forms: list[Mapping[str, Any]] = [
        {_NEUTRAL.get(name, name): value for name, value in operator.params} for operator in layer.operators
    ]
    forms += [params for operator in layer.operators for inner in operator.inner for params in _nested_params(inner)]
    return next((params for params in forms if "kernel" in params), forms[0] if forms else {})


@lru_cache(maxsize=1 << 10)
def _nested_params(canonical: str) -> tuple[Mapping[str, Any], ...]:
    """Return the parameters of each operator in the canonical form of a subgraph."""
    *nodes, _heads = json.loads(canonical)
    return tuple([dict(node[1]) for node in nodes if isinstance(node, list)])


def _short_name(op: str) -> str:
    name = plain_name(op)
    return _SHORT_NAMES.get(name, name).replace("_", " ")


def _by(sizes: Sequence[int] | Shape) -> str:
    return "x".join(map(str, sizes))


def _once(sizes: Sequence[int]) -> str:
    """Return `2` for a stride of two along every axis, else the stride of each."""
    return str(sizes[0]) if len(set(sizes)) == 1 else _by(sizes)
