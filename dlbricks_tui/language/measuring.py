"""Language models are measured by their carriers, in rounds, and each brick goes to the store."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from statistics import fmean

from dlbricks_tui.analysis.whole_models import turn_on_host
from dlbricks_tui.host.fingerprint import fingerprint
from dlbricks_tui.host.queue import HostQueue, Kind, QueuedWork, arrival
from dlbricks_tui.language.carriers import carrier_jobs, keys_of
from dlbricks_tui.language.decoder import Decoder, decoder
from dlbricks_tui.language.end_to_end import EngineQuestion, WholeModelRuns, engine_results, open_whole_model
from dlbricks_tui.language.engine import ENGINE
from dlbricks_tui.language.errors import LanguageError
from dlbricks_tui.language.library import NamedModel
from dlbricks_tui.language.messages import (
    LanguageMessage,
    LanguageRound,
    LanguageWaits,
    ModelBegins,
    ModelMeasured,
    ModelNotMeasured,
    WholeModelBegins,
)
from dlbricks_tui.language.orders import LanguageOrder, LanguageVariant, measured_steps
from dlbricks_tui.language.predicting import BrickPredictor
from dlbricks_tui.language.stored import PROTOCOL
from dlbricks_tui.measure.carriers import CarrierJob, groups
from dlbricks_tui.measure.events import Event, RoundDone
from dlbricks_tui.measure.inside import Inside
from dlbricks_tui.measure.jobs import Job, JobKey
from dlbricks_tui.measure.known import Conditions, known_in
from dlbricks_tui.measure.noise import NoiseMonitor
from dlbricks_tui.measure.results import CarrierOccurrence, Recorder, ResultSink, runtime_record
from dlbricks_tui.measure.stopping import Adaptive
from dlbricks_tui.measure.supervised_worker import SupervisedWorker, TimeLimits
from dlbricks_tui.models.graph import TensorType
from dlbricks_tui.models.onnx.native import native_node
from dlbricks_tui.models.onnx.writer import OnnxSheet
from dlbricks_tui.runs.control import StopSignals
from dlbricks_tui.runs.provenance import keep_provenance, provenance
from dlbricks_tui.runs.work import Workplace, open_worker
from dlbricks_tui.runtime.protocol import ArrayType, Network, Program
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.records import Facts, Statistics, new_uuid

_LOG = "language.log"
# One carrier and what the runtime makes of it may take this share of the memory.
_MOST_MEMORY = 0.8
# The reference reads this much memory, as decoding does: it shows when other guests of the host take bandwidth.
_REFERENCE_BYTES = 1 << 26
# A carrier is timed for about so long at most, if its latency varies.
_MOST_SECONDS = 25.0
# Carriers that are loaded at the same time take at most so much memory, unless a single one does.
_MOST_AT_ONCE = 3 << 30


def measure_models(
    order: LanguageOrder,
    place: Workplace,
    signals: StopSignals,
    write: Callable[[LanguageMessage], None],
    queue: HostQueue,
    limits: TimeLimits | None = None,
) -> None:
    """Measure what the store lacks of each model in each variant; `RunStopped` ends it, and what is stored stays."""
    _Measuring(order, place, signals, write, limits or TimeLimits()).measure(queue)


class _Measuring:
    def __init__(
        self,
        order: LanguageOrder,
        place: Workplace,
        signals: StopSignals,
        write: Callable[[LanguageMessage], None],
        limits: TimeLimits,
    ) -> None:
        self._order = order
        self._place = place
        self._signals = signals
        self._write = write
        self._limits = limits
        self._system = fingerprint()
        self._run = new_uuid()

    def measure(self, queue: HostQueue) -> None:
        arrived = arrival()
        task = QueuedWork(Kind.LANGUAGE, [it.name for it in self._order.models], self._place.data.path)

        def tell(ahead: str) -> None:
            self._write(LanguageWaits(holder=ahead))

        pairs = [(variant.fitted(model), variant) for model in self._order.models for variant in self._order.variants]
        with turn_on_host(queue, task, self._signals, tell, arrived) as ticket:
            for number, (model, variant) in enumerate(pairs, start=1):
                words = variant.words
                began = time.monotonic()
                ticket.progress((number - 1) / len(pairs), None)
                self._write(ModelBegins(model=model.name, variant=words, number=number, of=len(pairs)))
                try:
                    self._measure_bricks(model, variant)
                except LanguageError as error:
                    self._write(ModelNotMeasured(model=model.name, variant=words, reason=str(error)))
                    continue
                seconds = time.monotonic() - began
                self._write(ModelMeasured(model=model.name, variant=words, seconds=seconds))

    def _measure_bricks(self, model: NamedModel, variant: LanguageVariant) -> None:
        conditions = Conditions(self._system.id, variant.runtime.identity, PROTOCOL)
        architecture = model.architecture
        with ResultsDatabase(self._place.data.store) as store:
            predictor = BrickPredictor.of_host(store, self._system.id, variant.runtime.identity, variant.threads)
            order = self._order
            steps = measured_steps(order.prompt, order.generate, architecture, variant, predictor)
            whole = [decoder(architecture, variant.precision, step, variant.runtime.traits) for step in steps]
            keys = dict.fromkeys(key for it in whole for key in keys_of(it))
            asked = EngineQuestion(model, variant, order.prompt, order.generate)
            wants_whole = order.end_to_end and engine_results(store, self._system.id, asked) is None
            # Carriers and the whole model have to see the same minutes.
            known = {} if wants_whole else known_in(store, conditions, keys).measured
            carriers = carrier_jobs(
                model.name,
                architecture,
                variant.precision,
                variant.runtime.traits,
                steps,
                known,
            )
            if not carriers:
                return
            store.add(self._system, runtime_record(variant.runtime, self._system))
            so_far = {key.brick: found.trimmed_mean_ms for key, found in known.items()}
            sink = _Sink(store, Recorder(self._run, conditions), model.name, whole, so_far, self._write)
            memory = int(_MOST_MEMORY * self._system.memory_bytes)
            with (
                self._beside(asked, wants_whole) as beside,
                open_worker(
                    variant.runtime,
                    self._place.worker_program,
                    self._place.data.log / _LOG,
                    self._signals.waiting,
                    lambda _: None,
                    memory,
                    self._limits,
                ) as worker,
            ):
                described = worker.describe()
                keep_provenance(
                    store,
                    provenance(self._run, self._system, variant.runtime, described, (), protocol=PROTOCOL),
                )
                rule = Adaptive(most_seconds=_MOST_SECONDS)
                timing = Inside(worker, sink, self, rule, sink.take, memory_reference(), NoiseMonitor(), beside=beside)
                # What a carrier takes together with what the runtime makes of it.
                together = list(groups(carriers, min(memory, _MOST_AT_ONCE)))
                for number, group in enumerate(together, start=1):
                    if beside is not None:
                        beside.part = number / len(together)
                    timing.time_carriers(group, len(carriers), memory)
                if beside is not None:
                    store.add(*beside.records(timing.track, self._system, self._run))
                    if beside.failure is not None:
                        self._lacks_whole(asked, beside.failure)
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
        name = asked.model.name

        def tell(size_bytes: int) -> None:
            self._write(WholeModelBegins(model=name, engine=ENGINE, size_bytes=size_bytes))

        with ExitStack() as opened:
            whole = None
            if is_wanted:
                data, waiting = self._place.data, self._signals.waiting
                files = open_whole_model(
                    asked, data.cache, data.log / _LOG, waiting, self.checkpoint, tell, self._system.memory_bytes
                )
                try:
                    whole = opened.enter_context(files)
                except LanguageError as error:
                    self._lacks_whole(asked, error)
            yield whole

    def _lacks_whole(self, asked: EngineQuestion, error: LanguageError) -> None:
        """Tell why the whole model was not timed; its bricks are."""
        words = asked.variant.words
        self._write(ModelNotMeasured(model=asked.model.name, variant=words, reason=str(error)))

    @property
    def seconds_left(self) -> float | None:
        """None: a measurement ends by its own rule."""
        return None

    def checkpoint(self) -> None:
        """Raise `RunStopped` if the user has stopped the process."""
        self._signals.check()


class _Sink(ResultSink):
    """Stores bricks as they are done, and tells how far the model is."""

    def __init__(
        self,
        store: ResultsDatabase,
        recorder: Recorder,
        model: str,
        steps: Sequence[Decoder],
        known: Mapping[str, float],
        write: Callable[[LanguageMessage], None],
    ) -> None:
        self._store = store
        self._recorder = recorder
        self._model = model
        self._steps = steps
        self._write = write
        self._rounds = 0
        # What bricks take so far.
        self._ms = dict(known)

    def keep_occurrences(
        self, found: Mapping[Job, Sequence[CarrierOccurrence]], noise: Facts, *, finished: bool
    ) -> None:
        records = [it for job, places in found.items() for it in self._recorder.occurrences(job, places, noise)]
        if records and finished:
            self._store.add(*records)

    def tell_estimates(self, provisional: Callable[[], Mapping[JobKey, Statistics]]) -> None:
        self._ms.update({key.brick: found.trimmed_mean_ms for key, found in provisional().items()})

    def take(self, event: Event) -> None:
        """Tell the end of a round."""
        if isinstance(event, RoundDone):
            self._rounds += 1
            prefill_ms, *decode_ms = [self._step_ms(it) for it in self._steps]
            known = [it for it in decode_ms if it]
            self._write(
                LanguageRound(
                    model=self._model,
                    number=self._rounds,
                    prefill_ms=prefill_ms,
                    decode_tokens_per_second=1000.0 / fmean(known) if known else None,
                    seconds_left=event.seconds_left,
                )
            )

    def _step_ms(self, step: Decoder) -> float | None:
        """Return the latency of a step so far; None if a brick was not measured yet."""
        found = [self._ms.get(key.brick) for key in keys_of(step)]
        known = [ms * count for ms, count in zip(found, step.counts, strict=True) if ms is not None]
        return sum(known) if len(known) == len(found) else None


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
