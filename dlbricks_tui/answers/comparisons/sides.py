"""The sides of a comparison, by the names of files or selections: results, each with its execution and origin."""

import hashlib
import os
from array import array
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

from dlbricks_tui.answers.comparisons.named import NamedSelection, select_named
from dlbricks_tui.errors import UserError
from dlbricks_tui.evaluations.baseline import newest_by_id
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.models.content import without_cycle_search
from dlbricks_tui.models.graph import Level
from dlbricks_tui.runtime.variant import Kernels, Precision, Variant, stated_kernels, stated_precision, stated_threads
from dlbricks_tui.share.signatures import signature_beside
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.errors import DamagedResultError
from dlbricks_tui.store.exporting import ExportFormat
from dlbricks_tui.store.importing import read_export
from dlbricks_tui.store.labels import label_of
from dlbricks_tui.store.records import (
    ANY_CONTEXT,
    BrickForm,
    EndToEnd,
    Facts,
    Measurement,
    Provenance,
    Record,
    Result,
    RuntimeRecord,
    Statistics,
    System,
)
from dlbricks_tui.wording.checks import combination_words

# The records that a comparison reads.
COMPARED: tuple[type[Record], ...] = (EndToEnd, Measurement, System, RuntimeRecord, Provenance, BrickForm)


class ComparisonError(UserError):
    """Results that cannot be compared."""


class Subject(NamedTuple):
    """The subject of a result: a whole model (context and place are empty), or a brick in a context.

    `key` is the key of the model or brick. `place` is the layer, if the method has no contexts: it times each layer.
    """

    is_model: bool
    key: str
    context: str = ""
    place: Facts = ()


@dataclass(frozen=True, slots=True)
class ResultExecution:
    """The circumstances of a result that affect its latency. Only results of corresponding executions are compared."""

    system: str
    framework: str
    version: str
    python: str
    threads: int | None
    batch: int
    precision: Precision
    kernels: Kernels
    variables: Facts
    level: Level
    method: str

    @property
    def variant(self) -> Variant:
        """The variant of the runtime."""
        return Variant(threads=self.threads, batch=self.batch, precision=self.precision, **asdict(self.kernels))

    @property
    def in_words(self) -> str:
        """The framework and the variant, without what is usual: `onnxruntime, 1 thread`."""
        return combination_words(self.framework, self.variant, self.level)


@dataclass(frozen=True, slots=True)
class Found:
    """A good result with its samples after the warm-up. Many are held at once, so samples are an array."""

    id: str
    subject: Subject
    name: str
    execution: ResultExecution
    # The version of dlbricks that measured it; empty if it is not known.
    release: str
    # The identity of the runtime.
    runtime: str
    run: str
    when: str
    statistics: Statistics
    samples_ms: "array[float]"


def executions_of(results: Iterable[Found]) -> list[ResultExecution]:
    """Return the executions of results, each once."""
    # Many results share one object: hashing each of them would take longer.
    return list(dict.fromkeys({id(it.execution): it.execution for it in results}.values()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """The results of a file, of a selection of the store, or of one label among those of several."""

    name: str
    results: tuple[Found, ...]
    systems: Mapping[str, System] = field(default_factory=dict)
    runtimes: Mapping[str, RuntimeRecord] = field(default_factory=dict)
    origins: tuple[Provenance, ...] = ()
    # The number of results with a reason for doubt, which are not compared.
    in_doubt: int = 0
    # Lines of the file without a record.
    refused: tuple[str, ...] = ()
    # The state of the signature of the file in words; empty if it is not known.
    signature: str = ""
    # SHA-256 of the files of models, by the keys of the models.
    contents: Mapping[str, str] = field(default_factory=dict)

    @property
    def methods(self) -> frozenset[str]:
        """The ids of the methods of its results."""
        return frozenset(it.method for it in executions_of(self.results))

    @property
    def digest(self) -> str:
        """A hash of the ids of all results: files with the same results have the same one."""
        return hashlib.sha256("".join(sorted(it.id for it in self.results)).encode()).hexdigest()


def side_of(name: str, records: Iterable[Record], refused: Sequence[str] = (), signature: str = "") -> Side:
    """Return the side with the good results among these records; raise ComparisonError if there are none."""
    known = list(records)
    systems = newest_by_id(it for it in known if isinstance(it, System))
    runtimes = newest_by_id(it for it in known if isinstance(it, RuntimeRecord))
    origins = tuple([it for it in known if isinstance(it, Provenance)])
    timed = [it for it in known if isinstance(it, EndToEnd | Measurement)]
    good = [it for it in timed if it.good]
    if not good:
        why = f"all {len(timed):,} of its results are in doubt" if timed else "it has no results of models or bricks"
        raise ComparisonError(f"{name} has nothing to compare: {why}; measure them by `dlbricks run`, and export again")
    bricks = {it.brick for it in good if isinstance(it, Measurement)}
    names = {it.key: label_of(it.canonical) for it in known if isinstance(it, BrickForm) and it.key in bricks}
    taker = _Taker(runtimes, _releases(origins), names)
    return Side(
        name=name,
        results=tuple(map(taker.found, good)),
        systems=systems,
        runtimes=runtimes,
        origins=origins,
        in_doubt=len(timed) - len(good),
        refused=tuple(refused),
        signature=signature,
        contents={model: str(digest) for it in origins for model, digest in it.models if digest},
    )


def _releases(origins: Iterable[Provenance]) -> Mapping[tuple[str, str], str]:
    return {(it.run, it.runtime): str(dict(it.packages).get("dlbricks", "")) for it in origins}


class _Taker:
    """Makes results of records; equal executions, subjects and texts share one object."""

    def __init__(
        self, runtimes: Mapping[str, RuntimeRecord], releases: Mapping[tuple[str, str], str], names: Mapping[str, str]
    ) -> None:
        self._runtimes, self._releases, self._names = runtimes, releases, names
        self._executions: dict[tuple[object, ...], ResultExecution] = {}
        self._subjects: dict[Subject, Subject] = {}
        self._texts: dict[str, str] = {}

    def found(self, result: Result) -> Found:
        statistics = result.statistics
        if isinstance(result, EndToEnd):
            subject, name = Subject(True, result.model), result.name
        else:
            # With contexts, a brick is timed once for all layers.
            place = result.occurrence if result.context == ANY_CONTEXT else ()
            subject = Subject(False, result.brick, result.context, place)
            name = self._names.get(result.brick) or result.brick
        return Found(
            result.uuid,
            self._subjects.setdefault(subject, subject),
            self._texts.setdefault(name, name),
            self._execution(result),
            self._releases.get((result.run, result.runtime), ""),
            self._texts.setdefault(result.runtime, result.runtime),
            self._texts.setdefault(result.run, result.run),
            result.when,
            statistics,
            # The statistics are those of the samples after the warm-up.
            array("d", result.samples_ms[len(result.samples_ms) - statistics.count :]),
        )

    def _execution(self, result: Result) -> ResultExecution:
        held = result.system, result.runtime, result.level, result.protocol, result.batch_size
        known = self._executions.get(held)
        if known is None:
            runtime = self._runtimes[result.runtime]
            known = self._executions[held] = ResultExecution(
                result.system,
                runtime.framework,
                runtime.version,
                ".".join(runtime.python.split(".")[:2]),
                stated_threads(result.runtime),
                result.batch_size,
                stated_precision(result.runtime),
                stated_kernels(result.runtime),
                tuple(sorted(runtime.settings)),
                result.level,
                result.protocol,
            )
        return known


_ENDINGS = tuple(it.value for it in ExportFormat)
# A process takes a third of a second to start.
_LARGE_BYTES = 1 << 20


def named_sides(names: Sequence[str], data: DataFolder) -> list[Side]:
    """Return the sides of these names, in their order: files, or words of `dlbricks results compare`."""
    files = [name for name in names if is_file(name)]
    found = dict(zip(files, read_sides([Path(name) for name in files]), strict=True))
    if len(files) < len(names):
        with ResultsDatabase(data.store) as store:
            found |= {name: side_of_selection(store, select_named(store, name)) for name in names if name not in found}
    return [found[name] for name in names]


def is_file(name: str) -> bool:
    """Return whether a name is that of a file; anything else selects results of the store."""
    return Path(name).exists() or name.lower().endswith(_ENDINGS)


def side_of_selection(store: ResultsDatabase, named: NamedSelection) -> Side:
    """Return the good results of a selection of the store; raise ComparisonError if there are none."""
    records: list[Record] = [*store.systems(), *store.runtimes(), *store.records(BrickForm)]
    # Those of other runs would tell of circumstances that these results did not have.
    runs = named.selection.distinct("run")
    records += [it for it in store.records(Provenance) if it.run in runs]
    for position in range(len(named.selection)):
        # The store reports damaged results.
        with suppress(DamagedResultError):
            records.append(named.selection.result(position))
    return side_of(named.words, records)


@without_cycle_search()
def read_side(path: Path) -> Side:
    """Return the results of a file of `dlbricks results export`."""
    records, refused = read_export(path, COMPARED)
    return side_of(str(path), records, [str(it) for it in refused], _signature_of(path))


def _signature_of(path: Path) -> str:
    """Return whether a signature is beside a file, which only an import verifies."""
    found = signature_beside(path)
    return "none" if found is None else f"{found.name}, not verified"


def read_sides(paths: Sequence[Path]) -> list[Side]:
    """Return the results of several files, in their order."""
    for place, path in enumerate(paths):
        if any(_is_same_file(path, other) for other in paths[:place]):
            raise ComparisonError(f"{path} is named twice: a comparison needs different files")
    at_once = min(len(paths), os.cpu_count() or 1)
    if at_once < 2 or sum(map(_size_of, paths)) - max(map(_size_of, paths)) < _LARGE_BYTES:
        return [read_side(path) for path in paths]
    # This process reads, too: the first file, while others read the rest.
    with ProcessPoolExecutor(at_once - 1, mp_context=get_context("spawn")) as pool:
        others = [pool.submit(read_side, path) for path in paths[1:]]
        return [read_side(paths[0]), *(it.result() for it in others)]


def _is_same_file(path: Path, other: Path) -> bool:
    return path.exists() and other.exists() and path.samefile(other)


def _size_of(path: Path) -> int:
    return path.stat().st_size if path.is_file() else 0
