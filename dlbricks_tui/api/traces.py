"""Traces: a model run level by level in a separate process, and the trace as plain values and for other programs."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from statistics import median
from tempfile import TemporaryFile
from typing import TYPE_CHECKING

from dlbricks_tui.api.documents import taken
from dlbricks_tui.api.measuring import MeasureOptions, run_request
from dlbricks_tui.api.opening import InputOptions, RuntimeOptions, files_for
from dlbricks_tui.errors import UserError
from dlbricks_tui.files import write_named
from dlbricks_tui.jobs.errors import JobError
from dlbricks_tui.models.graph import Level
from dlbricks_tui.runtime.variant import Precision, stated_precision, stated_threads
from dlbricks_tui.settings.analysing import INFERENCES
from dlbricks_tui.settings.cutting import LEVEL
from dlbricks_tui.settings.setting import fields_of, require_allowed
from dlbricks_tui.settings.variant import BATCH, VARIANT
from dlbricks_tui.store.records import Fact
from dlbricks_tui.traces.file import StoredTrace, StoredTraces, find_trace, read_trace, stored_traces, trace_path
from dlbricks_tui.traces.trace import (
    USUAL_INFERENCES,
    LevelTrace,
    MissingLevel,
    Trace,
    TraceError,
    TraceLevel,
    TraceOrder,
    TrackKind,
    layer_times,
    slowest_first,
)

if TYPE_CHECKING:
    from dlbricks_tui.api.open_models import Choices, ModelSpec
    from dlbricks_tui.config.config import Config
    from dlbricks_tui.folders import DataFolder
    from dlbricks_tui.jobs.events import Event
    from dlbricks_tui.models.library import ModelSource

# A trace of a large model takes less.
_NEEDED_BYTES = 1 << 20


class TraceProcessError(TraceError):
    """The process that traces a model cannot be started, or ended before the model was traced."""


class TraceFormat(str, Enum):
    """The formats of the files that other programs open."""

    PERFETTO = "perfetto"
    CHROME = "chrome"


# Files with other endings may have any format.
_FORMATS = {".json": TraceFormat.CHROME, ".pftrace": TraceFormat.PERFETTO, ".perfetto-trace": TraceFormat.PERFETTO}


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceOptions(RuntimeOptions, InputOptions):
    """Options of a trace: how the model is executed, and what is traced. None: as a run would decide."""

    level: Level = Level.FUSED
    # Of each level in each round.
    inferences: int = USUAL_INFERENCES
    levels: tuple[TraceLevel, ...] = tuple(TraceLevel)

    def __post_init__(self) -> None:
        require_allowed(self, (INFERENCES, BATCH), TraceError)
        if not self.levels:
            raise TraceError("a trace has one level or more: name some")


def trace_order(options: TraceOptions, source: ModelSource, data: DataFolder) -> TraceOrder:
    """Return the order to trace a model; raise a UserError where no runtime of this host can run it so."""
    # Loaded here: the options of a trace need no executions.
    from dlbricks_tui.analysis.what_if import Execution

    request = run_request(
        MeasureOptions(**fields_of(options, (*VARIANT, LEVEL)), usual_runtime=options.usual_runtime), [source], data
    )
    runtime = request.runtime
    if runtime.traits.always_fuses and options.level is Level.WRITTEN:
        raise TraceError(f"{runtime.traits.title} fuses the layers of a network: choose level fused")
    (file,) = files_for([source], runtime)
    return TraceOrder(
        source=file,
        execution=Execution(runtime, options.level, options.batch),
        # In the order in which they add instruments.
        levels=tuple(it for it in TraceLevel if it in options.levels),
        inferences=options.inferences,
        inputs=options.inputs,
        values=options.values,
    )


def trace_model(order: TraceOrder, data: DataFolder, take: Callable[[Event], None]) -> Trace:
    """Trace a model, and pass on the events of the process; raise TraceProcessError if it fails."""
    # Loaded here: stored traces need no process.
    from dlbricks_tui.api.followed_jobs import TraceJob

    job = TraceJob(order, data)
    try:
        job.run(take)
    except JobError as error:
        raise TraceProcessError(f"the model was not traced: {error}") from error
    if not job.done:
        raise TraceProcessError("the process that traces ended without a trace")
    return read_trace(trace_path(data.traces, job.done))


def stored_trace(wanted: str, data: DataFolder) -> Trace:
    """Return a stored trace by its id, or by the beginning of its id; `last` is the newest."""
    return read_trace(find_trace(data.traces, wanted))


def whole_trace(stored: StoredTrace) -> Trace:
    """Read a trace with all of its spans."""
    return read_trace(stored.path)


def traces_of(data: DataFolder, model: str = "") -> StoredTraces:
    """Return the traces of a data folder, or those of a model; files that cannot be read may be of any model."""
    found = stored_traces(data.traces)
    return replace(found, traces=tuple(it for it in found.traces if not model or it.header.model == model))


def format_of(file: Path, wanted: TraceFormat | None = None) -> TraceFormat:
    """Return the format of a file: by its ending, or else the wanted one; raise TraceError if they differ."""
    known = _FORMATS.get(file.suffix.casefold())
    if known is not None and wanted not in (None, known):
        raise TraceError(f"{file}: {file.suffix} is the ending of the format {known.value}: leave --format out")
    return known or wanted or TraceFormat.PERFETTO


def require_place(file: Path, *, is_replaced: bool) -> None:
    """Raise TraceError if a trace cannot be written to a file, so that this is known before the model is traced."""
    if file.is_dir():
        raise TraceError(f"{file} is a folder: name a file in it")
    if file.is_file() and not is_replaced:
        raise TraceError(f"{file} is there already: name another file, or replace it with --force")
    # A device or a pipe is written to as it is.
    if not file.exists() or file.is_file():
        # A link still leads to the replaced file.
        _require_room(file.resolve().parent, file)


def require_room(data: DataFolder) -> None:
    """Raise TraceError if the data folder cannot take a trace."""
    try:
        data.traces.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise TraceError(f"cannot write {data.traces}: {error.strerror}; choose another --data-dir") from error
    _require_room(data.traces, data.traces)


def _require_room(folder: Path, named: Path) -> None:
    if not folder.is_dir():
        raise TraceError(f"cannot write {named}: there is no folder {folder}")
    try:
        # Only a file shows whether the disk has room, and whether this user may write there.
        with TemporaryFile(dir=folder) as file:
            file.write(bytes(_NEEDED_BYTES))
            file.flush()
    except OSError as error:
        raise TraceError(f"cannot write {named}: {error.strerror}") from error


def write_in(file: Path, trace: Trace, form: TraceFormat | None = None) -> None:
    """Write a trace for another program, completely or not at all; by default the ending tells the format."""
    # Each is loaded where it is used: Perfetto's definitions take a while.
    if (form or format_of(file)) is TraceFormat.PERFETTO:
        from dlbricks_tui.traces.formats import perfetto_bytes

        content = perfetto_bytes(trace)
    else:
        from dlbricks_tui.traces.formats import chrome_json

        content = chrome_json(trace).encode()
    try:
        write_named(file, lambda opened: opened.write(content))
    except OSError as error:
        raise TraceError(
            f"cannot write {file}: {error.strerror}; the trace is stored: "
            f"`dlbricks trace --from {trace.id} -o FILE` writes it elsewhere"
        ) from error


@dataclass(frozen=True, slots=True)
class TrackResult:
    """A track with the number of its spans."""

    name: str
    kind: TrackKind
    spans: int


@dataclass(frozen=True, slots=True)
class Total:
    """A sum over a level, such as `cycles`."""

    name: str
    value: Fact


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelResult:
    """A level: the median of its inferences, what its instruments add, and how much it holds."""

    level: TraceLevel
    # Null if no inference was timed.
    inference_ms: float | None
    # The median inference minus that of the level below; null for the lowest level.
    overhead_ms: float | None
    # Of all rounds.
    inferences: int
    spans: int
    tracks: tuple[TrackResult, ...]
    counters: tuple[str, ...]
    totals: tuple[Total, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerResult:
    """A layer: its median time in the inferences of the layer level, and the stored time of its brick."""

    layer: int
    name: str
    kind: str
    brick: str
    context: str
    in_model_ms: float
    # Null without a stored result under the same conditions.
    brick_ms: float | None
    # In the model minus the brick.
    difference_ms: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceResult:
    """A trace: what each level takes and adds, and the layers in the model beside their bricks."""

    id: str
    when: str
    model: str
    system: str
    runtime: str
    # That of the layers.
    level: Level
    batch: int
    threads: int | None
    precision: Precision
    # The file for other programs, and its format; null if none was written.
    file: Path | None
    format: TraceFormat | None
    levels: tuple[LevelResult, ...]
    missing: tuple[MissingLevel, ...]
    # The slowest first; empty if the layer level was not traced.
    layers: tuple[LayerResult, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceSummary:
    """A trace of the data folder."""

    id: str
    when: str
    model: str
    system: str
    runtime: str
    level: Level
    batch: int
    # That of the data folder.
    stored: Path
    size_bytes: int


def trace_result(trace: Trace, file: Path | None = None, form: TraceFormat | None = None) -> TraceResult:
    """Return a trace as a document; `file` has been written in the format."""
    return taken(
        TraceResult,
        trace,
        level=trace.graph_level,
        batch=trace.batch_size,
        threads=stated_threads(trace.runtime),
        precision=stated_precision(trace.runtime),
        file=file,
        format=form,
        levels=tuple(map(_level, trace.levels)),
        layers=tuple(
            taken(LayerResult, it, it.layer, layer=it.layer.index) for it in slowest_first(layer_times(trace))
        ),
    )


def trace_summary(stored: StoredTrace) -> TraceSummary:
    """Return a trace of the data folder as a document."""
    header = stored.header
    return taken(TraceSummary, header, stored, level=header.graph_level, batch=header.batch_size, stored=stored.path)


def _level(level: LevelTrace) -> LevelResult:
    return taken(
        LevelResult,
        level,
        inference_ms=median(level.inference_ms) if level.inference_ms else None,
        inferences=len(level.inference_ms),
        spans=sum(len(track.spans) for track in level.tracks),
        tracks=tuple(TrackResult(it.name, it.kind, len(it.spans)) for it in level.tracks),
        counters=tuple(it.name for it in level.counters),
        totals=tuple(Total(name, value) for name, value in level.totals),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceSettings(TraceOptions):
    """The options of a trace, and the names of the runtimes to choose from."""

    registered: tuple[str, ...]

    @property
    def offered_levels(self) -> tuple[tuple[TraceLevel, ...], ...]:
        """Each level with all below it."""
        return tuple(tuple(TraceLevel)[:count] for count in range(len(TraceLevel), 0, -1))


def first_settings(data: DataFolder, source: ModelSource, choices: Choices, config: Config) -> TraceSettings:
    """Return the settings to begin with: those in view, else those of the config."""
    # Loaded here: commands need neither.
    from dlbricks_tui.api.new_runs import runtimes_for
    from dlbricks_tui.runtime.registry import Registry

    registry, runtimes = Registry(data.path), runtimes_for((source,), data)
    usual, threads = runtimes[0], choices.threads or config.threads
    with suppress(UserError):
        if config.runtime is not None and (named := registry.find(config.runtime).name) in runtimes:
            usual = named
    with suppress(UserError):
        if choices.runtime is not None:
            # Of the store's runtimes that this host lacks, one with the same framework measures.
            found = registry.with_identity(choices.runtime) or registry.find(choices.runtime.partition("-")[0])
            if found.name in runtimes:
                usual, threads = found.name, stated_threads(choices.runtime)
    return TraceSettings(registered=runtimes, runtime=usual, threads=threads, batch=choices.batch)


def order_of(data: DataFolder, spec: ModelSpec, choices: Choices, settings: TraceSettings) -> TraceOrder:
    """Return the order to trace a model; raise a UserError where this host cannot trace it."""
    precision = None if choices.precision is Precision.F32 else choices.precision
    require_room(data)
    return trace_order(replace(settings, precision=precision, inputs=spec.shapes), spec.source, data)
