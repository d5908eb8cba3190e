"""The process that measures language models: by their carriers, in rounds, and each brick goes to the store.

It reads an order from its standard input, and writes messages as lines.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import fmean

from dlbricks_tui.analysis.whole_models import turn_on_host
from dlbricks_tui.bricks.carriers import whole
from dlbricks_tui.bricks.identity import brick_of
from dlbricks_tui.bricks.programs import carrier_program
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.host.fingerprint import fingerprint
from dlbricks_tui.host.queue import HostQueue, QueuedWork, WorkKind, arrival, host_queue
from dlbricks_tui.language.architecture import Architecture, LanguageError, WeightPrecision
from dlbricks_tui.language.composing import PROTOCOL
from dlbricks_tui.language.decoder import Decoder, Extent, Step, decoder, distinct_blocks
from dlbricks_tui.language.end_to_end import ENGINE, EngineQuestion, WholeModelRuns, engine_results, open_whole_model
from dlbricks_tui.language.opening import NamedModel
from dlbricks_tui.language.orders import (
    LanguageMessage,
    LanguageOrder,
    LanguageRound,
    LanguageStopped,
    LanguageVariant,
    LanguageWaits,
    ModelBegins,
    ModelMeasured,
    ModelNotMeasured,
    WholeModelBegins,
    encode,
)
from dlbricks_tui.language.predicting import BrickPredictor, measured_steps, work_of
from dlbricks_tui.measure.carriers import CarrierJob, groups
from dlbricks_tui.measure.events import Event, RoundDone
from dlbricks_tui.measure.inside import Inside
from dlbricks_tui.measure.jobs import Job, JobKey, Use, expected_ms, memory_bytes
from dlbricks_tui.measure.known import Conditions, known_in
from dlbricks_tui.measure.noise import NoiseMonitor
from dlbricks_tui.measure.results import CarrierOccurrence, Recorder, ResultSink, runtime_record
from dlbricks_tui.measure.stopping import Adaptive
from dlbricks_tui.measure.supervised_worker import SupervisedWorker, TimeLimits
from dlbricks_tui.measure.time_left import Agenda, stages
from dlbricks_tui.models.graph import TensorType
from dlbricks_tui.models.onnx.neutral import native_node
from dlbricks_tui.models.onnx.writer import OnnxSheet
from dlbricks_tui.runs.control import StopSignals, carry_out, take_order
from dlbricks_tui.runs.results import keep_provenance, provenance
from dlbricks_tui.runs.work import Workplace, open_worker
from dlbricks_tui.runtime.protocol import ArrayType, Network, Program
from dlbricks_tui.runtime.traits import Traits
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.records import Facts, Statistics, System, new_uuid

Write = Callable[[LanguageMessage], None]

_LOG = "language.log"
# One carrier and what the runtime makes of it may take this share of the memory.
_MOST_MEMORY = 0.8
# The reference reads this much memory, as decoding does: it shows when other guests of the host take bandwidth.
_REFERENCE_BYTES = 1 << 26
# A carrier is timed for about so long at most, if its latency varies.
_MOST_SECONDS = 25.0
# Carriers that are loaded at the same time take at most so much memory, unless a single one does.
_MOST_AT_ONCE = 3 << 30
# A carrier has more than two blocks of a kind up to so many bytes of weights.
_ROOMY_BYTES = 96 << 20
# Between two runs at most so much other memory is passed over: more than the caches of any processor hold.
_MOST_BETWEEN_BYTES = 1 << 28
# A carrier with more weights is loaded once, and profiled in its first rounds only.
_HEAVY_BYTES = 1 << 27
# The weights of a carrier take no more memory, unless a block or the head alone does.
_MOST_BYTES = 1 << 30


def main(data: str) -> None:
    """Measure the models of the order; the entry point of the process."""
    order, write = take_order()
    place = Workplace(DataFolder(Path(data)))
    ended = execute(order, place, lambda message: write(encode(message)), host_queue())
    sys.exit(0 if ended else 1)


def execute(order: LanguageOrder, place: Workplace, write: Write, queue: HostQueue) -> bool:
    """Measure what the store lacks of each model in each variant; return whether that came to its end."""

    def work(signals: StopSignals) -> None:
        _Measuring(order, place, write, signals).measure(queue)

    return carry_out(work, place.data, lambda reason: write(LanguageStopped(reason=reason)))


@dataclass
class _Measuring:
    order: LanguageOrder
    place: Workplace
    write: Write
    signals: StopSignals
    system: System = field(default_factory=fingerprint)
    run: str = field(default_factory=new_uuid)
    # A measurement ends by its own rule.
    seconds_left: float | None = None

    def measure(self, queue: HostQueue) -> None:
        arrived = arrival()
        task = QueuedWork(WorkKind.LANGUAGE, [it.name for it in self.order.models], self.place.data.path)
        pairs = [(variant.fitted(model), variant) for model in self.order.models for variant in self.order.variants]
        with turn_on_host(
            queue, task, self.signals, lambda ahead: self.write(LanguageWaits(holder=ahead)), arrived
        ) as ticket:
            for number, (model, variant) in enumerate(pairs, start=1):
                began = time.monotonic()
                ticket.progress((number - 1) / len(pairs), None)
                self.write(ModelBegins(model=model.name, variant=variant.words, number=number, of=len(pairs)))
                try:
                    self._measure_bricks(model, variant)
                except LanguageError as error:
                    self._tell_failure(model, variant, error)
                    continue
                seconds = time.monotonic() - began
                self.write(ModelMeasured(model=model.name, variant=variant.words, seconds=seconds))

    def _tell_failure(self, model: NamedModel, variant: LanguageVariant, error: LanguageError) -> None:
        self.write(ModelNotMeasured(model=model.name, variant=variant.words, reason=str(error)))

    def _measure_bricks(self, model: NamedModel, variant: LanguageVariant) -> None:
        order, system, runtime, place = self.order, self.system, variant.runtime, self.place
        conditions = Conditions(system.id, runtime.identity, PROTOCOL)
        sizes, precision, traits = model.architecture, variant.precision, runtime.traits
        with ResultsDatabase(place.data.store) as store:
            host = BrickPredictor.of_host(store, system.id, runtime.identity, variant.threads)
            steps = measured_steps(order.prompt, order.generate, sizes, variant, host)
            decoders = [decoder(sizes, precision, step, traits) for step in steps]
            keys = dict.fromkeys(JobKey(brick=key) for it in decoders for key in it.keys)
            asked = EngineQuestion(model, variant, order.prompt, order.generate)
            wants_whole = order.end_to_end and engine_results(store, system.id, asked) is None
            # Carriers and the whole model have to see the same minutes.
            known = {} if wants_whole else known_in(store, conditions, keys).measured
            carriers = carrier_jobs(model.name, sizes, precision, traits, steps, known)
            if not carriers:
                return
            store.add(system, runtime_record(runtime, system))
            so_far = {key.brick: found.trimmed_mean_ms for key, found in known.items()}
            sink = _Sink(store, Recorder(self.run, conditions), model.name, decoders, self.write, so_far)
            memory, log = int(_MOST_MEMORY * system.memory_bytes), place.data.log / _LOG
            waiting, limits = self.signals.waiting, TimeLimits()
            with (
                self._beside(asked, wants_whole) as beside,
                open_worker(runtime, place.worker_program, log, waiting, lambda _: None, memory, limits) as worker,
            ):
                described = worker.describe()
                keep_provenance(store, provenance(self.run, system, runtime, described, (), protocol=PROTOCOL))
                rule = Adaptive(most_seconds=_MOST_SECONDS)
                # What a carrier takes together with what the runtime makes of it.
                together = list(groups(carriers, min(memory, _MOST_AT_ONCE)))
                agenda = Agenda(stages((), together))
                reference, noise = memory_reference(), NoiseMonitor()
                timing = Inside(worker, sink, self, rule, sink.take, reference, noise, beside=beside, agenda=agenda)
                for number, group in enumerate(together, start=1):
                    if beside is not None:
                        beside.part = number / len(together)
                    timing.time_carriers(group, len(carriers), memory)
                if beside is not None:
                    store.add(*beside.records(timing.track, system, self.run))
                    if beside.failure is not None:
                        self._tell_failure(model, variant, beside.failure)
                self._refuse_unmeasured(worker, carriers, timing)

    def _refuse_unmeasured(self, worker: SupervisedWorker, carriers: Sequence[CarrierJob], timing: Inside) -> None:
        """Raise LanguageError with the reason if a carrier could not be measured."""
        for carrier in carriers:
            if not {*carrier.bricks.values()} <= {*timing.kept}:
                worker.load(carrier.name, carrier.program)
                lost = worker.take_losses().get(carrier.name)
                raise LanguageError("it was not measured to the end" if lost is None else lost.message or lost.reason)

    @contextmanager
    def _beside(self, asked: EngineQuestion, is_wanted: bool) -> Iterator[WholeModelRuns | None]:
        """Open the whole model, if it is wanted; tell why it cannot be timed."""

        def tell(size_bytes: int) -> None:
            self.write(WholeModelBegins(model=asked.model.name, engine=ENGINE, size_bytes=size_bytes))

        found = None
        with ExitStack() as opened:
            data, waiting, memory = self.place.data, self.signals.waiting, self.system.memory_bytes
            files = open_whole_model(asked, data.cache, data.log / _LOG, waiting, self.checkpoint, tell, memory)
            try:
                found = opened.enter_context(files) if is_wanted else None
            except LanguageError as error:
                self._tell_failure(asked.model, asked.variant, error)
            yield found

    def checkpoint(self) -> None:
        self.signals.check()


@dataclass
class _Sink(ResultSink):
    """Stores bricks as they are done, and tells how far the model is."""

    store: ResultsDatabase
    recorder: Recorder
    model: str
    steps: Sequence[Decoder]
    write: Write
    # What bricks take so far.
    ms: dict[str, float]
    rounds: int = 0

    def keep_occurrences(
        self, found: Mapping[Job, Sequence[CarrierOccurrence]], noise: Facts, *, finished: bool
    ) -> None:
        records = [it for job, places in found.items() for it in self.recorder.occurrences(job, places, noise)]
        if records and finished:
            self.store.add(*records)

    def tell_estimates(self, provisional: Callable[[], Mapping[JobKey, Statistics]]) -> None:
        self.ms.update({key.brick: found.trimmed_mean_ms for key, found in provisional().items()})

    def take(self, event: Event) -> None:
        if isinstance(event, RoundDone):
            self.rounds += 1
            prefill_ms, *decode_ms = map(self._step_ms, self.steps)
            known = [it for it in decode_ms if it]
            self.write(
                LanguageRound(
                    model=self.model,
                    number=self.rounds,
                    prefill_ms=prefill_ms,
                    decode_tokens_per_second=1000.0 / fmean(known) if known else None,
                    seconds_left=event.seconds_left,
                )
            )

    def _step_ms(self, step: Decoder) -> float | None:
        """Return the latency of a step so far; None if a brick was not measured yet."""
        found = [self.ms.get(key) for key in step.keys]
        known = [ms * count for ms, count in zip(found, step.counts, strict=True) if ms is not None]
        return sum(known) if len(known) == len(found) else None


def carrier_jobs(
    name: str,
    model: Architecture,
    precision: WeightPrecision,
    traits: Traits,
    steps: Sequence[Step],
    known: Mapping[JobKey, object],
) -> list[CarrierJob]:
    """Return carriers for the steps, as far as they have bricks that are not `known`.

    A large model has its blocks and its head in different carriers, without a second block of a kind.
    """
    found: list[CarrierJob] = []
    jobs: dict[JobKey, Job] = {}
    for carrier in _carriers(name, model, precision, traits, steps):
        keys = [JobKey(brick=it) for it in carrier.keys]
        if all(key in known or key in jobs for key in keys):
            continue
        for layer, key in zip(carrier.graph.layers, keys, strict=True):
            if key not in known and key not in jobs:
                jobs[key] = _job(carrier, layer.index, key, len(jobs))
        # What runs first finds code in no cache: another place of the brick counts, if there is one.
        later = {key: count for key, count in zip(keys, carrier.counts, strict=True) if count > 1}
        bricks = {
            place: jobs[key]
            for place, (key, count) in enumerate(zip(keys, carrier.counts, strict=True))
            if key in jobs and (count > 1 or key not in later)
        }
        found.append(_carrier_job(len(found), carrier, bricks))
    return found


def _carriers(
    name: str, model: Architecture, precision: WeightPrecision, traits: Traits, steps: Sequence[Step]
) -> Iterator[Decoder]:
    for step in steps:
        usual = decoder(model, precision, step, traits, name=name)
        blocks = distinct_blocks(model)
        if usual.graph.weight_bytes > _MOST_BYTES:
            fewest = distinct_blocks(model, fewest=True)
            for extent in (Extent.BLOCKS, Extent.HEAD):
                yield decoder(model, precision, step, traits, fewest, name, extent=extent)
        elif len(blocks) == 1:
            yield usual
        else:
            # More blocks of a small model: the caches hold some of its weights.
            first = decoder(model, precision, step, traits, (0,)).graph.weight_bytes
            each = max(1, (usual.graph.weight_bytes - first) // (len(blocks) - 1))
            more = max(0, (_ROOMY_BYTES - usual.graph.weight_bytes) // each)
            others = [it for it in range(model.blocks) if it not in blocks][:more]
            yield decoder(model, precision, step, traits, sorted({*blocks, *others}), name)


def _job(carrier: Decoder, layer: int, key: JobKey, number: int) -> Job:
    graph, brick = carrier.graph, brick_of(carrier.graph, (layer,))
    return Job(
        key=key,
        label=graph.layers[layer].name,
        canonical=brick.canonical,
        graph=graph,
        layers=(layer,),
        uses=(Use(graph.name, carrier.counts[layer]),),
        expected_ms=expected_ms(brick.canonical),
        memory_bytes=memory_bytes([graph.layers[layer]]),
        number=number,
    )


def _carrier_job(number: int, carrier: Decoder, bricks: Mapping[int, Job]) -> CarrierJob:
    graph = carrier.graph
    written = carrier_program(graph)
    names = list(written.program.network.inputs)
    in_place = {names[given]: place for given, place in carrier.in_place.items()}
    network = replace(written.program.network, in_place=in_place, distinct=True)
    layers = zip(graph.layers, carrier.counts, strict=True)
    between = min(sum((count - 1) * work_of(layer).bytes_read for layer, count in layers), _MOST_BETWEEN_BYTES)
    program = replace(written.program, network=network, between_bytes=between, only_reads=True)
    expected = sum(expected_ms(brick_of(graph, (layer.index,)).canonical) for layer in graph.layers)
    is_heavy = graph.weight_bytes > _HEAVY_BYTES
    return CarrierJob(f"step {number}", "", whole(graph), program, expected, written.owners, bricks, is_heavy=is_heavy)


def memory_reference() -> Program:
    """Return a program that reads memory with all threads."""
    from onnx.helper import make_node

    rows = 64
    found = TensorType((rows, _REFERENCE_BYTES // rows // 4))
    sheet = OnnxSheet()
    node = make_node("ReduceMax", ["data"], ["result"], axes=[1], keepdims=1)
    data = sheet.variable("data", found, learned=False)
    text = sheet.text([(sheet.operator(native_node(node, {}, 13), "reference", [(data, 0)]), 0)])
    return Program(Network(text, {"data": ArrayType(found.shape or (), found.dtype)}, {}))
