"""Read the files of the authors' repository (github.com/rai-project/synthetic_benchmark).

It has a folder per system and a file per model:

- `data/mxnet_model/<system>/<model>.csv`: times of the whole model.
- `data/mxnet_layer_sequence/seq_0/<system>/<model>.csv`: times of each of its layers alone.
"""

import csv
import io
import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from dlbricks_tui.bricks.identity import Brick, brick_of, whole_model
from dlbricks_tui.models.graph import LayerGraph
from dlbricks_tui.models.library import ModelSource
from dlbricks_tui.regular_files import open_regular
from dlbricks_tui.store.errors import ExchangeError, StoreError

_MODELS = Path("data", "mxnet_model")
_LAYERS = Path("data", "mxnet_layer_sequence", "seq_0")
# The largest of the authors' files has less than 1 MB.
_MOST_BYTES = 32 << 20


class BrokenFileError(StoreError):
    """A file that differs from the authors' format."""


class Row(NamedTuple):
    """A model or a layer, with the text of its list of times; `layer` is None for the whole model."""

    line: int
    model: str
    layer: str | None
    times: str


@dataclass(frozen=True, slots=True)
class FileColumns:
    """The names of the columns that are read from a kind of file."""

    model: str
    times: str
    # The first and the last layer of a row.
    layers: tuple[str, str] | None = None


_MODEL_COLUMNS = FileColumns("name", "raw_time")
_LAYER_COLUMNS = FileColumns("model_name", "raw_path_time", ("start_name", "end_name"))


class TimesFile(NamedTuple):
    """One file of a checkout."""

    path: Path
    columns: FileColumns

    def rows(self) -> list[Row]:
        """Return all rows; raise BrokenFileError if any part of the file cannot be read."""
        try:
            return list(self._rows())
        except OSError as error:
            raise BrokenFileError(f"cannot be read: {error.strerror}") from error
        except UnicodeDecodeError as error:
            raise BrokenFileError("is not text") from error
        except csv.Error as error:
            raise BrokenFileError(f"is not a table of comma-separated values: {error}") from error

    def _rows(self) -> Iterator[Row]:
        if self.path.stat().st_size > _MOST_BYTES:
            raise BrokenFileError(f"is larger than {_MOST_BYTES >> 20} MiB, unlike all of the authors' files")
        with io.TextIOWrapper(open_regular(self.path), encoding="utf-8-sig", newline="") as file:
            # Strict: otherwise a file that ends within quotes would pass.
            table = csv.DictReader(file, strict=True)
            self._check(table.fieldnames or ())
            for fields in table:
                yield self._row(table.line_num, fields)

    def _check(self, names: Collection[str]) -> None:
        columns = self.columns
        missing = [name for name in (columns.model, *(columns.layers or ()), columns.times) if name not in names]
        if missing:
            raise BrokenFileError(f"has no column {' and no '.join(missing)}")

    def _row(self, line: int, fields: dict[str, str | None]) -> Row:
        columns = self.columns
        model, times = fields[columns.model], fields[columns.times]
        if model is None or times is None:
            raise BrokenFileError(f"ends in the middle of line {line}")
        if columns.layers is None:
            return Row(line, model, None, times)
        first, last = (fields[name] or "" for name in columns.layers)
        # A sequence of several layers gets a name that no layer has.
        return Row(line, model, first if first == last else f"{first} ... {last}", times)


class SystemFiles(NamedTuple):
    """The files of one system in a checkout."""

    system: str
    files: tuple[TimesFile, ...]


def systems_of(checkout: Path) -> list[SystemFiles]:
    """Return the files of a checkout by system."""
    try:
        models, layers = _folders(checkout / _MODELS), _folders(checkout / _LAYERS)
        names = sorted(models.keys() | layers.keys())
        return [
            SystemFiles(name, (*_files(models.get(name), _MODEL_COLUMNS), *_files(layers.get(name), _LAYER_COLUMNS)))
            for name in names
        ]
    except OSError as error:
        raise ExchangeError(f"cannot read {checkout}: {error.strerror}") from error


def _folders(parent: Path) -> dict[str, Path]:
    return {folder.name: folder for folder in parent.iterdir() if folder.is_dir()} if parent.is_dir() else {}


def _files(folder: Path | None, columns: FileColumns) -> list[TimesFile]:
    paths = sorted(folder.iterdir()) if folder else []
    return [TimesFile(path, columns) for path in paths if path.suffix == ".csv"]


# Models whose name in the files differs from the paper, with their number in Table 1.
_OTHER_NAMES = {
    "ResNet-101 Trained on YFCC100m Geotagged Data": "12",
    "Unguided Volumetric Regression Net for 3D Face Reconstruction": "47",
}
_QUOTES = str.maketrans("", "", "\"'`\u2018\u2019\u201c\u201d")


@dataclass(frozen=True, slots=True)
class ImportedModel:
    """A model of Table 1: its name here, its key, and its bricks by the names of the layers."""

    name: str
    key: str
    bricks: Mapping[str, Brick]

    def brick(self, layer: str) -> Brick | None:
        """Return the brick of a layer, None if the model has no such layer."""
        return self.bricks.get(_layer_key(layer))


class PublishedModels:
    """The models of Table 1 by the authors' names; each is loaded on first use."""

    def __init__(self, sources: Iterable[ModelSource], load: Callable[[ModelSource], LayerGraph]) -> None:
        of_table1 = {source.table1_id: source for source in sources if source.table1_id is not None}
        self._sources = {_model_key(source.name): source for source in of_table1.values()}
        self._sources |= {
            _model_key(name): of_table1[number] for name, number in _OTHER_NAMES.items() if number in of_table1
        }
        self._load = load
        self._known: dict[str, ImportedModel] = {}

    def find(self, name: str) -> ImportedModel | None:
        """Return the model of that name, None if it is not in Table 1."""
        source = self._sources.get(_model_key(name))
        if source is None:
            return None
        if source.name not in self._known:
            self._known[source.name] = _published(source.name, self._load(source))
        return self._known[source.name]


def _published(name: str, graph: LayerGraph) -> ImportedModel:
    bricks = {_layer_key(layer.name): brick_of(graph, [layer.index]) for layer in graph.layers}
    return ImportedModel(name, whole_model(graph).key, bricks)


def _model_key(name: str) -> str:
    # The files are inconsistent in spaces, hyphens and quotes, and no two models differ only in these.
    return "".join(filter(str.isalnum, unicodedata.normalize("NFKC", name).casefold()))


def _layer_key(name: str) -> str:
    # Some layers differ only in punctuation or capitals: 1/2 is not 12.
    return "".join(name.translate(_QUOTES).split())
