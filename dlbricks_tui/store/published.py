"""The authors' times as results: a layer's as a measurement of its brick, a model's as end to end; their import."""

import csv
import hashlib
import io
import json
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from dlbricks_tui.bricks.identity import Brick, brick_of, whole_model
from dlbricks_tui.files import open_regular
from dlbricks_tui.models.graph import LayerGraph, Level
from dlbricks_tui.models.library import ModelSource
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.documents import ExchangeError, StoreError
from dlbricks_tui.store.records import (
    ANY_CONTEXT,
    PUBLISHED,
    BrickForm,
    EndToEnd,
    Measurement,
    Result,
    RuntimeRecord,
    System,
)
from dlbricks_tui.store.statistics import summarise

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
            table, columns = csv.DictReader(file, strict=True), self.columns
            names = (columns.model, *(columns.layers or ()), columns.times)
            if missing := [name for name in names if name not in (table.fieldnames or ())]:
                raise BrokenFileError(f"has no column {' and no '.join(missing)}")
            for fields in table:
                model, times = fields[columns.model], fields[columns.times]
                if model is None or times is None:
                    raise BrokenFileError(f"ends in the middle of line {table.line_num}")
                first, last = (fields[name] or "" for name in columns.layers) if columns.layers else (None, None)
                # A sequence of several layers gets a name that no layer has.
                yield Row(table.line_num, model, first if first == last else f"{first} ... {last}", times)


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
            graph = self._load(source)
            bricks = {_layer_key(layer.name): brick_of(graph, [layer.index]) for layer in graph.layers}
            self._known[source.name] = ImportedModel(source.name, whole_model(graph).key, bricks)
        return self._known[source.name]


def _model_key(name: str) -> str:
    # The files are inconsistent in spaces, hyphens and quotes, and no two models differ only in these.
    return "".join(filter(str.isalnum, unicodedata.normalize("NFKC", name).casefold()))


def _layer_key(name: str) -> str:
    # Some layers differ only in punctuation or capitals: 1/2 is not 12.
    return "".join(name.translate(_QUOTES).split())


# The digits after a backtick are the precision of the number before it.
_PLAIN = re.compile(r"[\d.,\s+-]+", re.ASCII)
_NUMBER = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+))(?:`[\d.]*)?(?:\*\^([+-]?\d+))?", re.ASCII)


def parse_numbers(text: str) -> tuple[float, ...]:
    """Return the numbers of a list as the Wolfram Language prints it, such as `{1., -2.5, 1.571141*^6}`.

    Raise ValueError, whose message completes "the list ...", for anything else.
    """
    inside = text.strip()
    if not (inside.startswith("{") and inside.endswith("}")):
        raise ValueError("is not in braces")
    inside = inside[1:-1].strip()
    if _PLAIN.fullmatch(inside):
        # Nearly all lists are plain; one with a fault is read again below, to name it.
        with suppress(ValueError):
            return tuple(map(float, inside.split(",")))
    found = []
    for item in inside.split(",") if inside else ():
        match = _NUMBER.fullmatch(item.strip())
        if not match:
            raise ValueError(f"has {item.strip()[:40]!r} for a number")
        digits, exponent = match.groups()
        found.append(float(f"{digits}e{exponent}" if exponent else digits))
    return tuple(found)


_GIBIBYTE = 1 << 30
_HASWELL = "Intel Xeon E5-2666 v3"
_SKYLAKE = "Intel Xeon Platinum 8124M"


class _Type(NamedTuple):
    cpu: str
    virtual_cpus: int
    memory_gib: float


# The instance types as Amazon describes them, with the processors of 2019.
_TYPES = {
    "c4.xlarge": _Type(_HASWELL, 4, 7.5),
    "c4.2xlarge": _Type(_HASWELL, 8, 15),
    "c5.large": _Type(_SKYLAKE, 2, 4),
    "c5.xlarge": _Type(_SKYLAKE, 4, 8),
    "c5.2xlarge": _Type(_SKYLAKE, 8, 16),
    "c5n.xlarge": _Type(_SKYLAKE, 4, 10.5),
}
_UNKNOWN = _Type("unknown", 0, 0)


def system_of(name: str) -> System:
    """Return the system of a folder in the checkout; of an unknown instance type it has only the name."""
    known = _TYPES.get(name, _UNKNOWN)
    return System(
        id=name,
        name=name,
        cpu=known.cpu,
        cores=known.virtual_cpus,
        memory_bytes=int(known.memory_gib * _GIBIBYTE),
        instance_type=name,
        facts=(("vendor", "Amazon EC2"),) if known is not _UNKNOWN else (),
    )


# The files have neither the version nor the settings of the framework.
RUNTIME = RuntimeRecord(
    id="mxnet-2019-wolfram",
    name="MXNet of 2019 as the Wolfram Language runs it",
    framework="mxnet",
    version="unknown",
    python="none",
    threads=0,
)
# The files have no dates either: this is the date of publication.
_WHEN = "2019-10-19T00:00:00.000000+00:00"
_MICROSECONDS_PER_MS = 1000.0
# The authors have 50. The bootstrap of a very long list would take too much memory.
_MOST_SAMPLES = 1000


class UnusableRowError(Exception):
    """A row that gives no result; the message completes "it ..."."""


class RowResult(NamedTuple):
    """The result of a row, and the form of its brick if it has one."""

    result: Result
    form: BrickForm | None = None


def result_of(row: Row, model: ImportedModel, system: str) -> RowResult:
    """Return a row as a result; every layer is a separate measurement, even if several are the same brick."""
    brick = None if row.layer is None else model.brick(row.layer)
    if row.layer is not None and brick is None:
        raise UnusableRowError("is not a layer of it here")
    samples_ms = _samples_ms(row.times)
    # A hash of the row, so that importing again finds it. Without the statistics, which another machine may round
    # differently.
    row_is = [PUBLISHED, system, model.name, row.layer, model.key if brick is None else brick.key, samples_ms]
    common: dict[str, Any] = {
        "uuid": hashlib.sha256(json.dumps(row_is).encode()).hexdigest()[:32],
        "when": _WHEN,
        "system": system,
        "runtime": RUNTIME.id,
        "level": Level.WRITTEN,
        "protocol": PUBLISHED,
        "run": "",
        "statistics": summarise(samples_ms),
        "samples_ms": samples_ms,
    }
    if brick is None:
        return RowResult(EndToEnd(model=model.key, name=model.name, **common))
    occurrence = (("model", model.name), ("layer", row.layer))
    measured = Measurement(brick=brick.key, context=ANY_CONTEXT, occurrence=occurrence, **common)
    return RowResult(measured, BrickForm(key=brick.key, canonical=brick.canonical))


def _samples_ms(times: str) -> tuple[float, ...]:
    try:
        microseconds = parse_numbers(times)
    except ValueError as error:
        raise UnusableRowError(f"has times that cannot be read: the list {error}") from error
    if not microseconds:
        raise UnusableRowError("has no times")
    if len(microseconds) > _MOST_SAMPLES:
        raise UnusableRowError(f"has {len(microseconds)} times, more than the {_MOST_SAMPLES} that can be taken")
    if not all(0 <= each < math.inf for each in microseconds):
        raise UnusableRowError("has a negative or infinite time")
    return tuple([each / _MICROSECONDS_PER_MS for each in microseconds])


_LONGEST_NAME = 120


@dataclass(frozen=True, slots=True)
class UnmatchedRow:
    """A row about a model of Table 1 that gives no result, with the reason."""

    file: str
    line: int
    model: str
    layer: str | None
    reason: str

    def __str__(self) -> str:
        what = self.model if self.layer is None else f"{self.model}: layer {self.layer!r}"
        return f"{self.file} line {self.line}: {what} {self.reason}"


@dataclass(slots=True)
class SystemReport:
    """The outcome for one system of a checkout."""

    system: str
    new: int = 0
    known: int = 0
    # The models with results of layers, and those timed end to end.
    by_layers: set[str] = field(default_factory=set)
    end_to_end: set[str] = field(default_factory=set)
    unmatched: list[UnmatchedRow] = field(default_factory=list)
    # The number of rows about each model outside of Table 1.
    outside: Counter[str] = field(default_factory=Counter)
    # The files that were skipped, each with the reason.
    broken: list[str] = field(default_factory=list)


def import_checkout(store: ResultsDatabase, checkout: Path, models: PublishedModels) -> Iterator[SystemReport]:
    """Import the authors' measurements, system by system; known results are skipped."""
    systems = systems_of(checkout)
    if not systems:
        raise ExchangeError(
            f"{checkout} has no folder data/mxnet_model/SYSTEM and no data/mxnet_layer_sequence/seq_0/SYSTEM: "
            "name a checkout of github.com/rai-project/synthetic_benchmark"
        )
    for system, files in systems:
        report = SystemReport(system)
        # All results of a file are stored at once.
        for file in files:
            name = str(file.path.relative_to(checkout))
            try:
                rows = file.rows()
            except BrokenFileError as broken:
                report.broken.append(f"{name} {broken}")
                continue
            if results := list(_results(rows, name, models, report)):
                forms = dict.fromkeys(each.form for each in results if each.form is not None)
                # Definitions first: a crash must not leave results that refer to nothing.
                store.add(system_of(system), RUNTIME, *forms)
                new = store.add(*(each.result for each in results))
                report.new += new
                report.known += len(results) - new
        yield report


def _results(rows: Iterable[Row], file: str, models: PublishedModels, report: SystemReport) -> Iterator[RowResult]:
    """Yield the results of the rows about models of Table 1; the others are reported."""
    for row in rows:
        model = models.find(row.model)
        if model is None:
            report.outside[row.model[:_LONGEST_NAME]] += 1
            continue
        try:
            found = result_of(row, model, report.system)
        except UnusableRowError as error:
            layer = None if row.layer is None else row.layer[:_LONGEST_NAME]
            report.unmatched.append(UnmatchedRow(file, row.line, model.name, layer, str(error)))
            continue
        (report.end_to_end if row.layer is None else report.by_layers).add(model.name)
        yield found
