"""The authors' times as results: a layer's as a measurement of its brick, a model's as end to end; their import."""

import csv
import io
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from dlbricks_tui.bricks.identity import Brick, brick_of, whole_model
from dlbricks_tui.files import open_regular
from dlbricks_tui.models.graph import LayerGraph, Level
from dlbricks_tui.models.library import ModelSource
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.documents import BrokenDocumentError, ExchangeError, hash_of
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

# The columns that are read from the files in a folder: model and times, and the first and the last layer of a row.
_COLUMNS: Mapping[Path, tuple[str, ...]] = {
    Path("data", "mxnet_model"): ("name", "raw_time"),
    Path("data", "mxnet_layer_sequence", "seq_0"): ("model_name", "raw_path_time", "start_name", "end_name"),
}
# The largest of the authors' files has less than 1 MB.
_MOST_BYTES = 32 << 20


class Row(NamedTuple):
    """A model or a layer, with the text of its list of times; `layer` is None for the whole model."""

    line: int
    model: str
    layer: str | None
    times: str


def rows_of(path: Path, columns: Sequence[str]) -> list[Row]:
    """Return all rows of a file; raise BrokenDocumentError if any part of it cannot be read."""
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise BrokenDocumentError(f"is larger than {_MOST_BYTES >> 20} MiB, unlike all of the authors' files")
        with io.TextIOWrapper(open_regular(path), encoding="utf-8-sig", newline="") as file:
            # Strict: otherwise a file that ends within quotes would pass.
            return list(_rows(csv.DictReader(file, strict=True), columns))
    except OSError as error:
        raise BrokenDocumentError(f"cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise BrokenDocumentError("is not text") from error
    except csv.Error as error:
        raise BrokenDocumentError(f"is not a table of comma-separated values: {error}") from error


def _rows(table: "csv.DictReader[str]", columns: Sequence[str]) -> Iterator[Row]:
    if missing := [name for name in columns if name not in (table.fieldnames or ())]:
        raise BrokenDocumentError(f"has no column {' and no '.join(missing)}")
    for fields in table:
        model, times, *layers = (fields[name] for name in columns)
        if model is None or times is None:
            raise BrokenDocumentError(f"ends in the middle of line {table.line_num}")
        first, last = (name or "" for name in layers) if layers else (None, None)
        # A sequence of several layers gets a name that no layer has.
        yield Row(table.line_num, model, first if first == last else f"{first} ... {last}", times)


def systems_of(checkout: Path) -> dict[str, list[tuple[Path, Sequence[str]]]]:
    """Return the files of a checkout by system, each with its columns."""
    found: dict[str, list[tuple[Path, Sequence[str]]]] = {}
    try:
        for place, columns in _COLUMNS.items():
            parent = checkout / place
            for folder in parent.iterdir() if parent.is_dir() else ():
                if folder.is_dir():
                    paths = sorted(it for it in folder.iterdir() if it.suffix == ".csv")
                    found.setdefault(folder.name, []).extend((path, columns) for path in paths)
    except OSError as error:
        raise ExchangeError(f"cannot read {checkout}: {error.strerror}") from error
    return dict(sorted(found.items()))


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
_NUMBER = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+))(?:`[\d.]*)?(?:\*\^([+-]?\d+))?", re.ASCII)


def parse_numbers(text: str) -> tuple[float, ...]:
    """Return the numbers of a list as the Wolfram Language prints it, such as `{1., -2.5, 1.571141*^6}`.

    Raise BrokenDocumentError for anything else.
    """
    inside = text.strip()
    if not (inside.startswith("{") and inside.endswith("}")):
        raise BrokenDocumentError("has times that cannot be read: the list is not in braces")
    inside = inside[1:-1].strip()
    found = []
    for item in inside.split(",") if inside else ():
        match = _NUMBER.fullmatch(item.strip())
        if not match:
            raise BrokenDocumentError(f"has times that cannot be read: the list has {item.strip()[:40]!r} for a number")
        digits, exponent = match.groups()
        found.append(float(f"{digits}e{exponent}" if exponent else digits))
    return tuple(found)


_GIBIBYTE = 1 << 30
_HASWELL = "Intel Xeon E5-2666 v3"
_SKYLAKE = "Intel Xeon Platinum 8124M"

# Processor, virtual processors and GiB of the instance types as Amazon describes them, in 2019.
_TYPES = {
    "c4.xlarge": (_HASWELL, 4, 7.5),
    "c4.2xlarge": (_HASWELL, 8, 15),
    "c5.large": (_SKYLAKE, 2, 4),
    "c5.xlarge": (_SKYLAKE, 4, 8),
    "c5.2xlarge": (_SKYLAKE, 8, 16),
    "c5n.xlarge": (_SKYLAKE, 4, 10.5),
}


def system_of(name: str) -> System:
    """Return the system of a folder in the checkout; of an unknown instance type it has only the name."""
    cpu, cores, memory_gib = _TYPES.get(name, ("unknown", 0, 0))
    return System(
        id=name,
        name=name,
        cpu=cpu,
        cores=cores,
        memory_bytes=int(memory_gib * _GIBIBYTE),
        instance_type=name,
        facts=(("vendor", "Amazon EC2"),) if name in _TYPES else (),
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


def result_of(row: Row, model: ImportedModel, system: str) -> tuple[Result, BrickForm | None]:
    """Return a row as a result, and the form of its brick; raise BrokenDocumentError if it gives none.

    Every layer is a separate measurement, even if several are the same brick.
    """
    brick = None if row.layer is None else model.brick(row.layer)
    if row.layer is not None and brick is None:
        raise BrokenDocumentError("is not a layer of it here")
    samples_ms = _samples_ms(row.times)
    # A hash of the row, so that importing again finds it. Without the statistics, which another machine may round
    # differently.
    row_is = [PUBLISHED, system, model.name, row.layer, model.key if brick is None else brick.key, samples_ms]
    common: dict[str, Any] = {
        "uuid": hash_of(row_is),
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
        return EndToEnd(model=model.key, name=model.name, **common), None
    occurrence = (("model", model.name), ("layer", row.layer))
    measured = Measurement(brick=brick.key, context=ANY_CONTEXT, occurrence=occurrence, **common)
    return measured, BrickForm(key=brick.key, canonical=brick.canonical)


def _samples_ms(times: str) -> tuple[float, ...]:
    microseconds = parse_numbers(times)
    if not microseconds:
        raise BrokenDocumentError("has no times")
    if len(microseconds) > _MOST_SAMPLES:
        raise BrokenDocumentError(f"has {len(microseconds)} times, more than the {_MOST_SAMPLES} that can be taken")
    if not all(0 <= each < math.inf for each in microseconds):
        raise BrokenDocumentError("has a negative or infinite time")
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
    for system, files in systems.items():
        report = SystemReport(system)
        # All results of a file are stored at once.
        for path, columns in files:
            name = str(path.relative_to(checkout))
            try:
                rows = rows_of(path, columns)
            except BrokenDocumentError as broken:
                report.broken.append(f"{name} {broken}")
                continue
            if results := list(_results(rows, name, models, report)):
                forms = dict.fromkeys(form for _, form in results if form is not None)
                # Definitions first: a crash must not leave results that refer to nothing.
                store.add(system_of(system), RUNTIME, *forms)
                new = store.add(*(result for result, _ in results))
                report.new += new
                report.known += len(results) - new
        yield report


def _results(
    rows: Iterable[Row], file: str, models: PublishedModels, report: SystemReport
) -> Iterator[tuple[Result, BrickForm | None]]:
    """Yield the results of the rows about models of Table 1; the others are reported."""
    for row in rows:
        model = models.find(row.model)
        if model is None:
            report.outside[row.model[:_LONGEST_NAME]] += 1
            continue
        try:
            found = result_of(row, model, report.system)
        except BrokenDocumentError as error:
            layer = None if row.layer is None else row.layer[:_LONGEST_NAME]
            report.unmatched.append(UnmatchedRow(file, row.line, model.name, layer, str(error)))
            continue
        (report.end_to_end if row.layer is None else report.by_layers).add(model.name)
        yield found
