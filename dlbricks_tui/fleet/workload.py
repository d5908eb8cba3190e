"""The workload of a fleet run: parcels, which travel to hosts in the place of models, and the bricks in them.

A parcel is the carrier of a model: its written layers without repeated modules, as a model file without names and
weights. Each one is read back at home, and only bricks that are the same there are wanted of hosts. The bricks of
language models need no parcel, as each host writes them from the sizes of the model.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from dlbricks_tui.bricks.decomposition import decompose
from dlbricks_tui.bricks.identity import brick_of
from dlbricks_tui.errors import UserError
from dlbricks_tui.fleet.messages import MOST_PARCEL_BYTES, Parcel
from dlbricks_tui.fleet.request import FleetError, ParcelError
from dlbricks_tui.folders import SAMPLE_MODELS, DataFolder
from dlbricks_tui.host.fingerprint import fingerprint
from dlbricks_tui.jobs.events import Event
from dlbricks_tui.language.architecture import LanguagePhase
from dlbricks_tui.language.composing import PROTOCOL, memory_need
from dlbricks_tui.language.decoder import Extent, Step, distinct_blocks
from dlbricks_tui.language.orders import LanguageOrder, LanguageQuestion
from dlbricks_tui.language.predicting import BrickPredictor, HostRates, measured_steps
from dlbricks_tui.measure.jobs import CutModel, Job, JobKey, Use, cut_model, expected_ms, memory_bytes
from dlbricks_tui.measure.known import Known
from dlbricks_tui.measure.method import Method
from dlbricks_tui.measure.plan import Plan, keys_of, plan
from dlbricks_tui.models.errors import ModelError
from dlbricks_tui.models.frameworks import WorkerFramework
from dlbricks_tui.models.graph import LayerGraph, Level
from dlbricks_tui.models.input_shapes import ShapeMemory
from dlbricks_tui.models.library import ONNX_SUFFIX, Library, ModelSource, source_of
from dlbricks_tui.models.loading import Loader
from dlbricks_tui.runs.events import ModelLeftOut, ModelLoading
from dlbricks_tui.runs.planning import label_of_model, loaded_graph
from dlbricks_tui.runs.request import RunRequest
from dlbricks_tui.runs.results import model_digests
from dlbricks_tui.runtime.errors import WorkerLostError
from dlbricks_tui.runtime.runtime import Runtime
from dlbricks_tui.runtime.traits import Format
from dlbricks_tui.runtime.variant import Precision, stated_threads
from dlbricks_tui.share.errors import UnsuitableLayersError
from dlbricks_tui.share.onnx_network import network_of, short_network_of
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.records import Facts, System

MXNET_SUFFIX = "-symbol.json"
# Which prompt can be measured in seconds is decided at home, for a host with so many threads.
_THREADS = 4


class PackedModel(NamedTuple):
    """A model of this host, and the parcel that other hosts measure in its place."""

    model: CutModel
    parcel: Parcel


def pack(
    request: RunRequest, library: Library, cache: Path, log: Path, tell: Callable[[Event], None]
) -> tuple[PackedModel, ...]:
    """Return each model of a run with one runtime, in each batch size, with its parcel.

    Tell which models are left out, and why; if none can travel, raise the error of the first.
    """
    packed: list[PackedModel] = []
    refusals: list[UserError] = []
    with ExitStack() as opened:
        packing = _Packing(request, library, cache, log, opened)
        choices = [(source, size) for source in request.sources(library) for size in request.batch_sizes or (None,)]
        for number, (source, batch_size) in enumerate(choices, start=1):
            label = label_of_model(source, batch_size)
            tell(ModelLoading(model=label, number=number, of=len(choices)))
            try:
                packed.append(packing.packed(source, batch_size, label, tell))
            except (ModelError, WorkerLostError, ParcelError) as refusal:
                tell(ModelLeftOut(model=label, reason=str(refusal)))
                refusals.append(refusal)
    if refusals and not packed:
        raise refusals[0]
    return tuple(packed)


class _Packing:
    """Packs the models of a request one after another, with the same worker."""

    def __init__(self, request: RunRequest, library: Library, cache: Path, log: Path, opened: ExitStack) -> None:
        self._request = request
        memory = ShapeMemory(library.data)
        most_bytes = request.memory_limit_bytes or fingerprint().memory_bytes

        def loader(runtime: Runtime) -> Loader:
            worker = opened.enter_context(WorkerFramework(runtime, log))
            return Loader(cache, worker, worker, memory, most_bytes)

        runtime = request.runtime
        self._plain = self._loader = loader(runtime)
        if runtime.settings.precision is Precision.INT8:
            # Hosts quantise what they measure in integers by themselves.
            self._plain = loader(replace(runtime, settings=replace(runtime.settings, precision=Precision.F32)))
        self._drafts = Path(opened.enter_context(TemporaryDirectory(prefix="dlbricks-parcels-")))

    def packed(
        self, source: ModelSource, batch_size: int | None, label: str, tell: Callable[[Event], None]
    ) -> PackedModel:
        """Return a model with its parcel: the shortest network that holds as many of its bricks as possible."""
        request = self._request
        graph = loaded_graph(self._loader, source, batch_size, request, tell)
        decomposition = decompose(graph.named(source.name), request.measured_cutting, self._loader.cache)
        file = graph.file if request.runtime.traits.runs_model_files else None
        model = cut_model(decomposition, file, lowered=graph.level is not request.level, label=label)
        wanted = frozenset(self._keys(model))
        if not wanted:
            raise ParcelError(f"{source.name} has no brick that can be measured")
        inputs, values = dict(request.inputs), dict(request.values)
        written = self._plain.load(source, Level.WRITTEN, inputs, values, batch_size)
        best, held, why = None, frozenset[JobKey](), ""
        for content in self._contents(source.name, written):
            try:
                found = wanted.intersection(self._held_in(content, written))
            except ModelError as error:
                why = f": {error}"
                continue
            if best is None or len(found) > len(held):
                best, held = content, found
            if held == wanted:
                break
        if best is None or not held:
            raise ParcelError(f"{source.name} cannot travel to other hosts: read back, it has other bricks{why}")
        sha256, bricks = hashlib.sha256(best).hexdigest(), frozenset(it.brick for it in held)
        return PackedModel(model, Parcel(sha256=sha256, suffix=_suffix(written), content=best, bricks=bricks))

    def _keys(self, model: CutModel) -> tuple[JobKey, ...]:
        # A model with layers that only its whole file can run has a key of its own.
        return tuple([key for key in keys_of((model,), method=self._request.method) if key.brick])

    def _contents(self, name: str, written: LayerGraph) -> Iterator[bytes]:
        """Yield the model without its repeated modules, if it has any, then the whole model."""
        # Bricks that are timed alone have contexts, which depend on everything in the model.
        for read in (short_network_of, network_of) if self._request.method is Method.INSIDE else (network_of,):
            try:
                content = read(written)
            except UnsuitableLayersError as error:
                raise ParcelError(f"{name} cannot travel to other hosts: it {error}") from None
            if content is not None and len(content) > MOST_PARCEL_BYTES:
                raise ParcelError(
                    f"{name} cannot travel to other hosts: without weights it has {len(content) / 2**20:.0f} MiB, and "
                    f"{MOST_PARCEL_BYTES >> 20} MiB are the most"
                )
            if content is not None:
                yield content

    def _held_in(self, content: bytes, written: LayerGraph) -> tuple[JobKey, ...]:
        """Return the keys of the bricks that a host with this runtime and processor finds in a network."""
        path = self._drafts / f"{hashlib.sha256(content).hexdigest()}{_suffix(written)}"
        try:
            path.write_bytes(content)
        except OSError as error:
            raise ParcelError(f"cannot write {path}: {error.strerror}; free some space") from error
        alone = replace(self._request, inputs=(), values=())
        graph = loaded_graph(self._loader, source_of(path), None, alone, lambda _: None)
        decomposition = decompose(graph, alone.measured_cutting, self._loader.cache)
        path.unlink()
        return self._keys(cut_model(decomposition))


def _suffix(graph: LayerGraph) -> str:
    return ONNX_SUFFIX if graph.format is Format.ONNX else MXNET_SUFFIX


@dataclass(frozen=True, eq=False)
class FleetPart:
    """A runtime of a fleet run with its models, and the parcels that hold their bricks."""

    request: RunRequest
    models: tuple[CutModel, ...]
    # By the name of the model.
    parcels: Mapping[str, Parcel] = field(repr=False)

    @property
    def protocol(self) -> str:
        """The id of the method by which its bricks are stored."""
        return self.request.method.id

    def plan(self, known: Known) -> Plan:
        """Return what is left to measure, and what is known."""
        return plan(self.models, known, self.request.rule, False, self.request.method)

    @cached_property
    def jobs(self) -> Mapping[JobKey, Job]:
        """The bricks that any parcel holds, the most informative first."""
        found = self.plan(Known())
        return {job.key: job for job in found.jobs if self.holders(job)}

    def holders(self, job: Job) -> Sequence[Parcel]:
        """Return the parcels that hold a brick."""
        users = (self.parcels[use.model] for use in job.uses)
        return [parcel for parcel in users if job.key.brick in parcel.bricks]

    @cached_property
    def keys(self) -> Mapping[str, Sequence[JobKey]]:
        """The keys of the bricks that each parcel holds, by its hash."""
        found: dict[str, dict[JobKey, None]] = {}
        for key, job in self.jobs.items():
            for parcel in self.holders(job):
                found.setdefault(parcel.sha256, {})[key] = None
        return {sha256: tuple(keys) for sha256, keys in found.items()}


@dataclass(frozen=True)
class FleetWorkload:
    """All parts of a fleet run, and the SHA-256 of the model files by the keys of the models."""

    parts: tuple[FleetPart, ...]
    digests: Facts = ()


def read_workload(request: RunRequest, data: DataFolder, log: Path, tell: Callable[[Event], None]) -> FleetWorkload:
    """Cut the models, and pack the networks that travel. Models that cannot travel are left out, which is told.

    Raise the first of the reasons if no model is left.
    """
    refusals: list[UserError] = []
    parts: list[FleetPart] = []
    files: list[tuple[str, Path]] = []
    for part in request.parts:
        library = Library(SAMPLE_MODELS, data.path, part.runtime.traits.format)
        try:
            packed = pack(part, library, data.cache, log, tell)
        except (ModelError, WorkerLostError, FleetError) as refusal:
            refusals.append(refusal)
            continue
        parcels = {it.model.name: it.parcel for it in packed}
        parts.append(FleetPart(part, tuple([it.model for it in packed]), parcels))
        paths = {choice.name: choice.path for choice in part.models}
        named = [(it.model.key, it.model.decomposition.graph.name) for it in packed]
        files += [(key, paths[name]) for key, name in named if name in paths]
    if not parts:
        raise refusals[0]
    return FleetWorkload(tuple(parts), model_digests(files))


@dataclass(frozen=True, eq=False)
class LanguagePart(FleetPart):
    """A language model of a fleet run in a runtime."""

    asked: LanguageQuestion

    @classmethod
    def of(cls, asked: LanguageQuestion, request: RunRequest) -> LanguagePart:
        """Return the part for a question; the other settings are those of a request."""
        # Inside of networks, as carriers are: a brick is done as soon as it has a result.
        own = replace(request, models=(), others=(), runtime=asked.runtime, method=Method.INSIDE)
        return cls(own, (), {}, asked)

    @property
    def name(self) -> str:
        """The model as estimates name it: they are about one generated token."""
        return f"{self.asked.model.name}, {self.asked.precision.value}, per token"

    @property
    def protocol(self) -> str:
        return PROTOCOL

    @cached_property
    def _steps(self) -> tuple[Step, ...]:
        return measured_steps(self.asked, BrickPredictor(HostRates.guessed(self.asked.threads or _THREADS)))

    @cached_property
    def jobs(self) -> Mapping[JobKey, Job]:
        """The bricks of its steps."""
        found: dict[JobKey, Job] = {}
        for decoder in map(self.asked.decoder, self._steps):
            for layer, count in zip(decoder.graph.layers, decoder.counts, strict=True):
                brick = brick_of(decoder.graph, (layer.index,))
                job = Job(
                    key=JobKey(brick=brick.key),
                    label=layer.name,
                    canonical=brick.canonical,
                    graph=decoder.graph,
                    layers=(layer.index,),
                    uses=(Use(self.name, count),),
                    expected_ms=expected_ms(brick.canonical),
                    memory_bytes=memory_bytes([layer]),
                    number=len(found),
                )
                found.setdefault(job.key, job)
        return found

    @cached_property
    def _probed(self) -> frozenset[str]:
        blocks = distinct_blocks(self.asked.sizes, fewest=True)
        steps = (self._steps[0], self._steps[-1])
        return frozenset(key for it in steps for key in self.asked.decoder(it, blocks, extent=Extent.BLOCKS).keys)

    def chosen(self, free: Mapping[JobKey, Job], *, is_probe: bool) -> tuple[Job, ...]:
        """Return the bricks of the next task: all that are free, or of a probe those of a block."""
        return tuple([job for key, job in free.items() if not is_probe or key.brick in self._probed])

    def order(self, *, is_probe: bool) -> LanguageOrder:
        """Return what a host has to do for a task."""
        steps = (self._steps[0], self._steps[-1]) if is_probe else self._steps
        return LanguageOrder((self.asked,), probe=is_probe, steps=steps)

    def plan(self, known: Known) -> Plan:
        jobs = self.jobs.items()
        return Plan(
            jobs=tuple([job for key, job in jobs if key not in known.measured and key not in known.failed]),
            reused=frozenset(key for key, _ in jobs if key in known.measured),
            failed={job: known.failed[key] for key, job in jobs if key in known.failed and key not in known.measured},
        )

    def on_host(self, store: ResultsDatabase, system: System, runtime: str) -> Mapping[str, Any]:
        """Return what the estimate of a host tells, by its results in a store and by those of others."""
        host = BrickPredictor.of_system(store, system, runtime, stated_threads(runtime) or 0)
        times, found = host.phases(self.asked), [host.decoder(self.asked, it) for it in self.asked.steps]
        keys = {key for it in found for key in it.keys}
        measured = len(keys & host.known.keys())
        layers = {"measured_layers": measured, "predicted_layers": len(keys) - measured}
        if memory_need(self.asked, found[0]).total > system.memory_bytes:
            return {**layers, "fits": False}
        decode, first = times[LanguagePhase.DECODE], {"first_token_ms": times[LanguagePhase.PREFILL].ms}
        ends = zip(("low_ms", "high_ms"), decode.bounds_ms, strict=True)
        token = {"sequential_ms": decode.ms, "per_second": 1000 / decode.ms, **dict(ends)}
        return {**layers, **token, **first, "fits": True}
