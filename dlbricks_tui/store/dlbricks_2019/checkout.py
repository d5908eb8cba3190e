"""Read the files of the authors' repository (github.com/rai-project/synthetic_benchmark).

It has a folder per system and a file per model:

- `data/mxnet_model/<system>/<model>.csv`: times of the whole model.
- `data/mxnet_layer_sequence/seq_0/<system>/<model>.csv`: times of each of its layers alone.
"""

import csv
import io
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

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
class Columns:
    """The names of the columns that are read from a kind of file."""

    model: str
    times: str
    # The first and the last layer of a row.
    layers: tuple[str, str] | None = None


_MODEL_COLUMNS = Columns("name", "raw_time")
_LAYER_COLUMNS = Columns("model_name", "raw_path_time", ("start_name", "end_name"))


class TimesFile(NamedTuple):
    """One file of a checkout."""

    path: Path
    columns: Columns

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


def _files(folder: Path | None, columns: Columns) -> list[TimesFile]:
    paths = sorted(folder.iterdir()) if folder else []
    return [TimesFile(path, columns) for path in paths if path.suffix == ".csv"]
