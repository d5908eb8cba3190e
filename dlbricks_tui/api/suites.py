"""Suites: models, runtimes and decoys for one are exported as a job, one is measured, its results are imported."""

import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from dlbricks_tui.api.measuring import MeasureOptions, request_of
from dlbricks_tui.api.open_models import Choices, ModelSpec
from dlbricks_tui.api.opening import InputOptions, ModelLoaders, library
from dlbricks_tui.api.session import SILENT
from dlbricks_tui.bricks.decomposition import decompose
from dlbricks_tui.errors import UserError
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.host.fingerprint import fingerprint
from dlbricks_tui.host.queue import WorkKind
from dlbricks_tui.jobs.errors import JobError
from dlbricks_tui.jobs.events import Event, event_kinds
from dlbricks_tui.jobs.folder import JobFolder, JobState, State
from dlbricks_tui.jobs.kinds import JobKind
from dlbricks_tui.jobs.process import JobAtWork, JobProcess, start_detached, work_in_process, work_on
from dlbricks_tui.measure.method import Method
from dlbricks_tui.models.errors import FusionRefusedError, ModelError
from dlbricks_tui.models.frameworks import WorkerFramework
from dlbricks_tui.models.graph import Level, Shape
from dlbricks_tui.models.kinds import Kind
from dlbricks_tui.models.library import Library, ModelSource
from dlbricks_tui.runs.request import RunRequest, RuntimeChoice, SuiteChoice
from dlbricks_tui.runtime.errors import WorkerLostError
from dlbricks_tui.runtime.registry import Registry
from dlbricks_tui.runtime.runtime import Runtime
from dlbricks_tui.runtime.traits import TRAITS, Format
from dlbricks_tui.runtime.variant import Precision, several
from dlbricks_tui.share.errors import ShareError
from dlbricks_tui.share.exporting import (
    BricksChecked,
    ExportNoted,
    SuiteWritten,
    assemble,
    chosen_decoys,
    like_sized,
    write_assembled,
)
from dlbricks_tui.share.mxnet_excerpts import MXNetReader
from dlbricks_tui.share.onnx_excerpts import OnnxReader
from dlbricks_tui.share.packing import Packing, SuiteModel
from dlbricks_tui.share.results_file import SuiteImport, import_results, read_results
from dlbricks_tui.share.suite_files import (
    Manifest,
    Seed,
    fresh_seed,
    key_path,
    open_suite,
    read_key,
    refuse_existing,
    seed_of,
)
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.wording.numbers import counted

_IMAGES, _TRANSFORMERS, _OTHERS = "convolutional", "transformer", "other"
# The tasks of samples of each kind; other samples are of other kinds.
_TASKS = {_IMAGES: frozenset({"IC", "IP", "OD", "RG", "SS"}), _TRANSFORMERS: frozenset({"TE", "TG"})}


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteOptions(InputOptions):
    """The contents of a suite. Without runtimes, it is for all installed ones that read the models."""

    level: Level = Level.FUSED
    runtimes: Sequence[str] = ()
    # Empty: that of each model's file.
    batch: Sequence[int] = ()
    precision: Precision = Precision.F32
    decoys: int = 3
    # Models to choose decoys from, instead of samples.
    decoys_from: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class ExportOrder:
    """The models of a suite, its contents, and its new file or folder."""

    sources: tuple[ModelSource, ...]
    options: SuiteOptions
    path: Path
    # The secret that ids follow from, in hexadecimal digits.
    seed: str
    # The file for the key; None: in the data folder.
    key: Path | None = None


@dataclass(frozen=True, slots=True)
class EndedExport:
    """The end of an export; `written` is None if nothing was written."""

    state: JobState
    written: SuiteWritten | None

    def document(self) -> dict[str, Any] | None:
        """Return the suite as a JSON document."""
        if (it := self.written) is None:
            return None
        return {
            "suite": it.suite,
            "path": it.path,
            "key": it.key,
            "bricks": it.bricks,
            "decoys": it.decoy_bricks,
            "left_out": [each._asdict() for each in it.untravelled],
        }


EXPORT = JobKind(
    WorkKind.EXPORT, ExportOrder, event_kinds(ExportNoted, BricksChecked, SuiteWritten), f"{__name__}:export_in_process"
)


def start_export(specs: Sequence[ModelSpec], choices: Choices, path: Path, data: DataFolder) -> JobFolder:
    """Start a process that writes the bricks of models, as the choices cut them, into a suite."""
    # Each model has its own shapes.
    sources = tuple(replace(it.source, inputs={**it.source.inputs, **it.shapes}) for it in specs)
    options = SuiteOptions(
        level=choices.level,
        batch=() if choices.batch is None else (choices.batch,),
        precision=choices.precision,
    )
    order = ExportOrder(sources, options, path.absolute(), fresh_seed().secret.hex())
    folder = EXPORT.create(data, tuple(it.name for it in sources), order)
    start_detached(folder, data, EXPORT.function)
    return folder


async def written_suite(job: JobFolder, data: DataFolder) -> SuiteWritten | None:
    """Follow an export that has started to its end; None if it was cancelled."""
    written: list[SuiteWritten] = []
    try:
        await JobProcess.started_before(EXPORT, job, data).follow(
            lambda event: written.append(event) if isinstance(event, SuiteWritten) else None
        )
    except JobError:
        if job.state().state is not State.CANCELLED:
            raise
    return written[0] if written else None


def export_in_process(folder: str, data: str) -> None:
    """Export a suite; the entry point of its process."""
    sys.exit(work_in_process(EXPORT, folder, data, export))


def export_order(
    names: Sequence[str], options: SuiteOptions, path: Path, data: DataFolder, *, seed: str | None, key: Path | None
) -> ExportOrder:
    """Return the order to export models; refuse a place that exists, so that no job is left of it."""
    refuse_existing(path)
    secret = (fresh_seed() if seed is None else seed_of(seed)).secret.hex()
    sources = tuple(library(data).find_all(names))
    return ExportOrder(sources, options, path.absolute(), secret, None if key is None else key.absolute())


def export_here(order: ExportOrder, data: DataFolder, take: Callable[[Event], None]) -> EndedExport:
    """Export a suite in this process; raise ShareError if it fails."""
    written: list[SuiteWritten] = []

    def keep(event: Event) -> None:
        if isinstance(event, SuiteWritten):
            written.append(event)
        take(event)

    job = EXPORT.create(data, tuple(it.name for it in order.sources), order)
    state = work_on(EXPORT, job, data, export, keep)
    if not written and not state.was_stopped:
        raise ShareError(state.message)
    return EndedExport(state, written[0] if written else None)


def export(job: JobAtWork[ExportOrder]) -> None:
    """Write the suite of some models and its key, and tell what happens; if the job is stopped, neither is there."""
    order, data = job.request, job.data
    options, seed = order.options, Seed(bytes.fromhex(order.seed))
    with job.signals.waiting(), ExitStack() as opened:
        # Reading models takes long.
        refuse_existing(order.path)
        suite = _Export(order.sources, options, data, job.tell, opened)
        private = suite.private()
        decoys = suite.decoys(private, seed, library(data))
        sent = f"{counted(len(suite.names(private)), 'model')} and {counted(len(suite.names(decoys)), 'decoy')}"
        job.tell(ExportNoted(f"checking that the bricks of {sent} arrive unchanged"))
        assembled = assemble(private, decoys, seed, options.level, suite.packings, options.precision, job.tell)
        key = order.key or key_path(data, assembled.manifest.suite)
        write_assembled(assembled, order.path, key)
    job.tell(
        SuiteWritten(
            suite=assembled.manifest.suite,
            path=str(order.path),
            key=str(key),
            bricks=len(assembled.key.meanings),
            decoy_bricks=len(assembled.key.decoys),
            decoys=len(suite.names(decoys)),
            untravelled=assembled.left_out,
            left_out=tuple(suite.left_out),
        )
    )


class _Export:
    """The runtimes of a suite, each with its worker."""

    def __init__(
        self,
        sources: Sequence[ModelSource],
        options: SuiteOptions,
        data: DataFolder,
        tell: Callable[[Event], None],
        opened: ExitStack,
    ) -> None:
        self._options = options
        self._data = data
        self._tell = tell
        self._opened = opened
        self._memory = fingerprint().memory_bytes
        self._drafts = Path(opened.enter_context(TemporaryDirectory(prefix="dlbricks-suite-")))
        self._loaders = opened.enter_context(ModelLoaders(data, SILENT, most_bytes=self._memory))
        self._runtimes = _runtimes(options, sources, Registry(data.path))
        formats = {runtime.traits.format for runtime in self._runtimes}
        self._sources = [_readable(source, formats) for source in sources]
        self.packings: Mapping[str, Packing] = {it.framework: self._packing(it) for it in self._runtimes}
        # The reasons, one for each model that cannot be read.
        self.left_out: list[str] = []

    def private(self) -> tuple[SuiteModel, ...]:
        """Return the bricks of the private models; raise the first refusal where none can be read."""
        found: list[SuiteModel] = []
        first: UserError | None = None
        for source in self._sources:
            try:
                found += self._taken(source, self._options.inputs)
            except (ModelError, WorkerLostError) as refusal:
                self._tell(ExportNoted(f"left out: {refusal}"))
                self.left_out.append(str(refusal))
                first = first or refusal
        if first is not None and not found:
            raise first
        return tuple(found)

    def decoys(self, private: Sequence[SuiteModel], seed: Seed, known: Library) -> tuple[SuiteModel, ...]:
        """Return decoys for each kind of private models: of the same format, and quantised if those are.

        Samples are of about their size, too.
        """
        found: list[SuiteModel] = []
        mine, options = {source.path: source.name for source in self._sources}, self._options
        offered = known.find_all(options.decoys_from) if options.decoys_from else known.samples()
        by_kind: dict[tuple[Format, bool, str], list[SuiteModel]] = {}
        for model in private:
            by_kind.setdefault(kind_of(model), []).append(model)
        for (form, quantised, kind), alike in by_kind.items():
            readable = [it.in_format(form) for it in offered if form in it.formats]
            others: Sequence[ModelSource] = [source for source in readable if source.path not in mine]
            take = partial(self._taken, precision=Precision.INT8 if quantised else options.precision)
            if not options.decoys_from:
                named = {it.decomposition.graph.name: it for it in alike}
                own = {path: named[name] for path, name in mine.items() if name in named}
                others = self._of_kind(others, kind)
                near = like_sized([*others, *(it for it in readable if it.path in own)], own, options.decoys)
                # Some may be unreadable, or have no bricks of their own.
                with suppress(ShareError):
                    found += chosen_decoys(near, options.decoys, seed, alike, take)
                    continue
            found += chosen_decoys(others, options.decoys, seed, alike, take)
        return tuple(found)

    def _of_kind(self, pool: Sequence[ModelSource], kind: str) -> Sequence[ModelSource]:
        """Return the samples of a kind, or all where they are too few."""
        kinds = {task: name for name, tasks in _TASKS.items() for task in tasks}
        alike = [source for source in pool if kinds.get(source.task or "", _OTHERS) == kind]
        wanted = self._options.decoys
        if len({source.path for source in alike}) >= wanted:
            return alike
        self._tell(
            ExportNoted(
                f"the samples have fewer than {wanted} networks like yours: decoys are of other kinds too, which a "
                "reader can tell apart; name better ones with --decoys-from"
            )
        )
        return pool

    def names(self, models: Sequence[SuiteModel]) -> Collection[tuple[str, Format]]:
        """Return what tells models apart, whatever runtime reads them and in whatever batch size."""
        return {(it.decomposition.graph.name, it.decomposition.graph.format) for it in models}

    def _taken(
        self, source: ModelSource, shapes: Mapping[str, Shape], precision: Precision | None = None
    ) -> Sequence[SuiteModel]:
        level, values = self._options.level, self._options.values
        found: list[SuiteModel] = []
        for runtime in (it for it in self._runtimes if it.traits.format is source.format):
            loader = self._loaders.loader(runtime if precision is None else runtime.with_precision(precision))
            for batch in self._options.batch or (None,):
                try:
                    graph = loader.load(source, level, shapes, values, batch).named(source.name)
                except FusionRefusedError as refused:
                    raise FusionRefusedError(f"{refused}{self._way_out(runtime)}") from None
                is_symbol = source.format is Format.MXNET
                written = None if is_symbol else loader.load(source, Level.WRITTEN, shapes, values, batch)
                # Single layers, of which longer sequences consist.
                found.append(SuiteModel(decompose(graph, cache=loader.cache), written))
        return found

    def _way_out(self, refusing: Runtime) -> str:
        """Return what exports a model that a runtime cannot fuse; empty if nothing may."""
        others = [it.name for it in self._runtimes if it.traits.format is refusing.traits.format and it is not refusing]
        if others:
            return f"; leave {refusing.traits.title} out: --runtime {','.join(others)}"
        return "" if refusing.traits.always_fuses else "; export its written layers: --level written"

    def _packing(self, runtime: Runtime) -> Packing:
        if runtime.traits.format is Format.MXNET:
            framework = self._opened.enter_context(WorkerFramework(runtime, self._data.log / "framework.log"))
            return Packing(MXNetReader(framework, self._options.level, self._memory).read)
        # Excerpts of quantised models are quantised in their files.
        plain = runtime.with_precision(Precision.F32) if (runtime.settings.precision is Precision.INT8) else runtime
        drafts = self._drafts / runtime.framework
        drafts.mkdir()
        return Packing(OnnxReader(self._loaders.loader(plain), self._options.level, drafts, self._memory).read)


def _runtimes(options: SuiteOptions, sources: Sequence[ModelSource], registry: Registry) -> tuple[Runtime, ...]:
    """Return a runtime of each framework that is named, or that is installed and reads some of the models."""
    if options.runtimes:
        named = [registry.find_installed(name) for name in options.runtimes]
    else:
        formats = {source.format for source in sources}
        named = [it for it in registry.all() if it.traits.format in formats and it.computes_in(options.precision)]
        if options.level is Level.WRITTEN:
            named = [it for it in named if not it.traits.always_fuses]
    for runtime in named if options.level is Level.WRITTEN else ():
        if runtime.traits.always_fuses:
            raise ShareError(
                f"{runtime.traits.title} always fuses layers, so a suite for it cannot have written ones: "
                "use --level fused, or name another --runtime"
            )
    first = {runtime.framework: runtime for runtime in reversed(named)}
    found = tuple(first[name].with_precision(options.precision) for name in dict.fromkeys(it.framework for it in named))
    if not found:
        registry.runtime_for({source.format for source in sources})
        raise ShareError(f"no runtime here computes in {options.precision.value}: choose another --precision")
    return found


def _readable(source: ModelSource, formats: Collection[Format]) -> ModelSource:
    """Return a model in a format that some runtime reads."""
    for form in (source.format, *formats):
        if form in formats and form in source.formats:
            return source.in_format(form)
    raise ShareError(
        f"{source.name} is an {source.format.value} model, and no runtime of the suite runs those; name another "
        "--runtime, or none"
    )


def kind_of(model: SuiteModel) -> tuple[Format, bool, str]:
    """Return the format of a model, whether its file is quantised, and what kind of network it is."""
    graph = model.written or model.decomposition.graph
    is_convolutional = any(layer.kind is Kind.CONVOLUTION for layer in graph.layers)
    quantised = graph.format is Format.ONNX and graph.is_quantised
    # Others have a softmax at their end only.
    has_attention = any(
        layer.kind is Kind.ATTENTION or (layer.kind is Kind.SOFTMAX and graph.successors[layer.index])
        for layer in graph.layers
    )
    kind = _IMAGES if is_convolutional else _TRANSFORMERS if has_attention else _OTHERS
    return graph.format, quantised, kind


class SuiteRun(NamedTuple):
    """The request of a run, and the titles of frameworks whose bricks it leaves out as they are not installed."""

    request: RunRequest
    absent: tuple[str, ...]


def suite_run_at(options: MeasureOptions, suite: Path, results: Path, data: DataFolder) -> SuiteRun:
    """Return the request of a run that measures a suite, by the installed runtimes that it is for, or by named ones.

    Raise ShareError for a suite that cannot be read, or a place that is none for the file of results.
    """
    # Before a run of it waits for its turn.
    manifest = open_suite(suite).manifest
    if not results.absolute().parent.is_dir():
        raise ShareError(f"-o {results}: there is no folder {results.absolute().parent}")
    if results.is_dir():
        raise ShareError(f"-o {results}: that is a folder; name a file in it")
    runtimes = _runtimes_for(options, manifest, Registry(data.path))
    choices = [
        RuntimeChoice(runtime.with_threads(threads), (), Method.INSIDE)
        for runtime in runtimes
        for threads in several(options.threads) or (None,)
    ]
    if options.fixed_runs is not None:
        raise ShareError("a fixed number of runs applies to bricks that are timed alone: leave it out for suites")
    choice = SuiteChoice(suite.absolute(), results.absolute())
    request = replace(request_of(options, choices[0], *choices[1:]), suite=choice, level=manifest.level)
    present = {runtime.framework for runtime in runtimes}
    absent = tuple(TRAITS[name].title for name in manifest.frameworks if name not in present)
    return SuiteRun(request, absent)


def _runtimes_for(options: MeasureOptions, manifest: Manifest, registry: Registry) -> Sequence[Runtime]:
    wanted = " or ".join(TRAITS[name].title for name in manifest.frameworks)
    named = [registry.find_installed(name) for name in several(options.runtime)]
    for runtime in named:
        if runtime.framework not in manifest.frameworks:
            raise ShareError(
                f"runtime {runtime.name} is {runtime.traits.title}, and the suite is for {wanted}; "
                "name another --runtime, or none"
            )
    # That of the settings is the first of its framework.
    usual = [registry.find(options.usual_runtime)] if options.usual_runtime else []
    known = registry.all()
    installed = [it for it in (*(it for it in usual if it in known), *known) if it.computes_in(manifest.precision)]
    first = [next((it for it in installed if it.framework == name), None) for name in manifest.frameworks]
    found = named or [runtime for runtime in first if runtime is not None]
    if not found:
        raise ShareError(
            f"the suite is for {wanted} in {manifest.precision.value}, and no such runtime is installed here: "
            f"{TRAITS[manifest.frameworks[0]].install_here}"
        )
    return [runtime.with_precision(manifest.precision) for runtime in found]


def import_suite_results(store: ResultsDatabase, path: Path, data: DataFolder, key: Path | None = None) -> SuiteImport:
    """Store the results of the private models' bricks; without a key file, that in the data folder counts."""
    results = read_results(path)
    return import_results(store, read_key(key or key_path(data, results.suite)), results, str(path))
