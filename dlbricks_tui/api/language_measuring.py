"""The process that measures language models: by their carriers, in rounds, and each brick goes to the store."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, suppress
from dataclasses import dataclass, field, replace
from statistics import fmean

from dlbricks_tui.analysis.whole_models import turn_on_host
from dlbricks_tui.bricks.carriers import whole
from dlbricks_tui.bricks.identity import brick_of
from dlbricks_tui.host.fingerprint import caches, fingerprint
from dlbricks_tui.host.peaks import PeaksError, measure_peaks
from dlbricks_tui.host.queue import HostQueue, WorkKind, arrival, host_queue, queued
from dlbricks_tui.host_files import HostFiles
from dlbricks_tui.jobs.control import StopSignals
from dlbricks_tui.jobs.events import Event, Waiting
from dlbricks_tui.jobs.process import work_in_process
from dlbricks_tui.language.architecture import LanguageError
from dlbricks_tui.language.composing import PROTOCOL, StepTime
from dlbricks_tui.language.decoder import Decoder, Extent, Step, distinct_blocks
from dlbricks_tui.language.end_to_end import (
    LANGUAGE_LOG,
    WholeModelEngine,
    WholeModelRuns,
    drive,
    engine_of,
    engine_results,
    open_whole_model,
    require_memory,
)
from dlbricks_tui.language.llama_cpp import LlamaHost, measured_tests
from dlbricks_tui.language.llama_rounds import LlamaRounds, open_rounds
from dlbricks_tui.language.orders import (
    LANGUAGE,
    LanguageFailed,
    LanguageMeasured,
    LanguageMessage,
    LanguageOrder,
    LanguageQuestion,
    LanguageRound,
    is_llama_cpp,
)
from dlbricks_tui.language.predicting import BrickPredictor, measured_steps, work_of
from dlbricks_tui.measure.carriers import COPIES, CarrierJob, groups
from dlbricks_tui.measure.events import RoundDone
from dlbricks_tui.measure.inside import Inside
from dlbricks_tui.measure.jobs import Job, JobKey, Use, expected_ms, memory_bytes
from dlbricks_tui.measure.known import Conditions, known_in
from dlbricks_tui.measure.noise import NoiseMonitor
from dlbricks_tui.measure.results import CarrierOccurrence, Recorder, ResultSink, runtime_record
from dlbricks_tui.measure.stopping import Adaptive
from dlbricks_tui.measure.supervised_worker import TimeLimits, memory_reference
from dlbricks_tui.measure.time_left import Agenda, stages
from dlbricks_tui.models.networks import whole_network
from dlbricks_tui.runs.results import keep_provenance, provenance
from dlbricks_tui.runs.work import Workplace, open_worker
from dlbricks_tui.runtime.llama_bench import LlamaTest
from dlbricks_tui.runtime.protocol import Program
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.records import Statistics, System, new_uuid
from dlbricks_tui.wording.numbers import delay_text, duration, memory_text, rate_words

# One carrier and what the runtime makes of it may take this share of the memory.
_MOST_MEMORY = 0.8
_LESS = "stop other programs, or take fewer bits (--precision), a smaller model, or --predict"
# A carrier is timed for about so long at most, if its latency varies.
_MOST_SECONDS = 25.0
_PROBE_RULE = Adaptive(target=0.03, least=5, most=8, most_seconds=2.0)
# Carriers that are loaded at the same time take at most so much memory, unless a single one does.
_MOST_AT_ONCE = 3 << 30
# A carrier has more than two blocks of a kind up to so many bytes of weights.
_ROOMY_BYTES = 96 << 20
# Between two runs at most so much other memory is passed over, or so many times what a larger cache of this host holds.
_MOST_BETWEEN_BYTES, _TIMES_THE_CACHE = 1 << 28, 1.25
# A carrier with more weights is loaded once, and profiled in its first rounds only.
_HEAVY_BYTES = 1 << 27
# The weights of a carrier take no more memory, unless a block or the head alone does.
_MOST_BYTES = 1 << 30


def main(folder: str, data: str) -> None:
    """Measure the models of the order; the entry point of the process."""
    sys.exit(
        work_in_process(
            LANGUAGE,
            folder,
            data,
            lambda job: measure_models(job.request, Workplace(job.data), job.tell, job.signals, host_queue()),
        )
    )


def measure_models(
    order: LanguageOrder, place: Workplace, write: Callable[[Event], None], signals: StopSignals, queue: HostQueue
) -> None:
    """Measure what the store lacks for each question."""
    _Measuring(order, place, write, signals).measure(queue)


@dataclass
class _Measuring:
    order: LanguageOrder
    place: Workplace
    write: Callable[[Event], None]
    signals: StopSignals
    system: System = field(default_factory=fingerprint)
    run: str = field(default_factory=new_uuid)
    # A measurement ends by its own rule.
    seconds_left: float | None = None

    def measure(self, queue: HostQueue) -> None:
        arrived, questions = arrival(), self.order.questions
        task = queued(WorkKind.LANGUAGE, list({it.model.name: None for it in questions}), self.place.data.path)
        with turn_on_host(
            queue, task, self.signals, lambda ahead: self.write(Waiting(holder=ahead)), arrived
        ) as ticket:
            for number, asked in enumerate(questions):
                began = time.monotonic()
                ticket.progress(number / len(questions), None)
                place = f" ({number + 1} of {len(questions)})" if len(questions) > 1 else ""
                self.write(LanguageMessage(f"{asked.words}: measuring{place}"))
                try:
                    if is_llama_cpp(asked.runtime):
                        self._measure_small_models(asked)
                    else:
                        self._measure_bricks(asked)
                    self._drive(asked)
                except LanguageError as error:
                    self._tell_failure(asked, error)
                    continue
                seconds = duration(time.monotonic() - began)
                self.write(LanguageMeasured(f"{asked.words}: measured in {seconds}"))

    def _tell_failure(self, asked: LanguageQuestion, error: LanguageError) -> None:
        self.write(LanguageFailed(f"{asked.words}: not measured: {error}"))

    def _measure_bricks(self, asked: LanguageQuestion) -> None:
        system, runtime, place, waiting = self.system, asked.runtime, self.place, self.signals.waiting
        conditions = Conditions(system.id, runtime.identity, PROTOCOL)
        with ResultsDatabase(place.data.store) as store:
            host = BrickPredictor.of_host(store, system.id, runtime.identity, asked.threads)
            is_probe = self.order.probe
            steps = self.order.steps or measured_steps(asked, host, is_probe=is_probe)
            decoders = [asked.decoder(step) for step in steps]
            keys = dict.fromkeys(JobKey(brick=key) for it in decoders for key in it.keys)
            wants_whole = self.order.end_to_end and engine_results(store, system.id, asked) is None
            # Carriers and the whole model have to see the same minutes.
            known = {} if wants_whole else known_in(store, conditions, keys).measured
            carriers = carrier_jobs(asked, steps, known, is_probe=is_probe)
            if not carriers:
                return
            # What a runtime makes of the weights is there, too, in each copy: such workers would be killed.
            least = min(2 * COPIES * memory_bytes(it.carrier.graph.layers) for it in carriers)
            require_memory(least, system.memory_bytes, "the smallest part", _LESS)
            store.add(system, runtime_record(runtime, system))
            self._keep_peaks(store, asked.threads)
            so_far = {key.brick: found.trimmed_mean_ms for key, found in known.items()}
            alone = [it for it, step in zip(decoders, steps, strict=True) if step.batch == 1]
            sink = _Sink(store, Recorder(self.run, conditions), asked.model.name, alone, self.write, so_far)
            memory, log = int(_MOST_MEMORY * system.memory_bytes), place.data.log / LANGUAGE_LOG
            with ExitStack() as opened:
                beside = self._whole_model(asked, opened) if wants_whole else None
                worker = opened.enter_context(
                    open_worker(runtime, place.worker_program, log, waiting, lambda _: None, memory, TimeLimits())
                )
                described = worker.describe()
                keep_provenance(
                    store, provenance(self.run, system, runtime, described, (), protocol=conditions.protocol)
                )
                rule = _PROBE_RULE if is_probe else Adaptive(most_seconds=_MOST_SECONDS)
                # What a carrier takes together with what the runtime makes of it.
                together = list(groups(carriers, min(memory, _MOST_AT_ONCE)))
                agenda = Agenda(stages((), together))
                # A probe waits for no quiet host.
                reference, noise = memory_reference(), NoiseMonitor(0.0) if is_probe else NoiseMonitor()
                timing = Inside(worker, sink, self, rule, sink.take, reference, noise, beside=beside, agenda=agenda)
                for number, group in enumerate(together, start=1):
                    if beside is not None:
                        beside.part = number / len(together)
                    timing.time_carriers(group, len(carriers), memory)
                if beside is not None:
                    store.add(*beside.records(timing.track, system, self.run))
                    if beside.failure is not None:
                        self._tell_failure(asked, beside.failure)
                for carrier in carriers:
                    if not {*carrier.bricks.values()} <= {*timing.kept}:
                        reasons = worker.reasons.items()
                        lost = next((it for name, it in reasons if name.partition(",")[0] == carrier.name), None)
                        raise LanguageError(
                            "it was not measured to the end" if lost is None else lost.message or lost.reason
                        )

    def _measure_small_models(self, asked: LanguageQuestion) -> None:
        """Time what the store lacks in llama.cpp, which tells no times of layers."""
        system, identity = self.system, asked.runtime.identity
        if self.order.probe:
            title = asked.runtime.traits.title
            raise LanguageError(f"{title} tells no times of layers, of which a probe takes a few: leave --probe out")
        with ResultsDatabase(self.place.data.store) as store:
            # Times of small models say something about others beside the rates that they were predicted by.
            store.add(system)
            self._keep_peaks(store, asked.threads)
            rates = BrickPredictor.of_host(store, system.id, identity, asked.threads).rates
            host = LlamaHost.of_host(store, system.id, identity, rates)
            wants_whole = self.order.end_to_end and host.whole(asked) is None
            tests = measured_tests(asked, host)
            if not wants_whole and all(host.measured(asked, it) is not None for it in tests):
                return
            with open_rounds(asked, tests, host, self.place.data.cache, self.checkpoint) as rounds:
                if wants_whole:
                    self._add_whole_model(asked, rounds)
                rounds.run(lambda number, known: self._tell_round(asked, number, known))
                store.add(*rounds.records(system, self.run))
                if rounds.failure is not None:
                    self._tell_failure(asked, rounds.failure)

    def _add_whole_model(self, asked: LanguageQuestion, rounds: LlamaRounds) -> None:
        self.write(LanguageMessage(f"{asked.model.name}: building the whole model for {asked.runtime.traits.title}"))
        try:
            rounds.write_whole(self.system.memory_bytes)
        except LanguageError as error:
            self._tell_failure(asked, error)

    def _tell_round(self, asked: LanguageQuestion, number: int, known: Mapping[LlamaTest, StepTime]) -> None:
        prefill, *decode = known.values()
        rate = rate_words(1000.0 / fmean(it.ms for it in decode))
        self.write(LanguageRound(f"{asked.model.name}: round {number}, prefill {delay_text(prefill.ms)}, {rate}"))

    def _keep_peaks(self, store: ResultsDatabase, threads: int) -> None:
        """Store the peaks beside which bricks say something about other systems, unless they are there."""
        if all((it.system, it.threads) != (self.system.id, threads) for it in store.peaks()):
            with suppress(PeaksError):
                store.add(measure_peaks(self.system.id, threads))

    def _whole_model(self, asked: LanguageQuestion, opened: ExitStack) -> WholeModelRuns | None:
        """Open the whole model, or tell why it cannot be timed."""
        try:
            return WholeModelRuns(asked, opened.enter_context(self._opened(asked)))
        except LanguageError as error:
            self._tell_failure(asked, error)
            return None

    def _opened(self, asked: LanguageQuestion) -> AbstractContextManager[WholeModelEngine]:
        def tell(size_bytes: int) -> None:
            size = memory_text(size_bytes)
            self.write(
                LanguageMessage(f"{asked.model.name}: building the whole model, {size}, for {engine_of(asked.runtime)}")
            )

        waiting, memory = self.signals.waiting, self.system.memory_bytes
        return open_whole_model(asked, self.place.data, waiting, self.checkpoint, tell, memory)

    def _drive(self, asked: LanguageQuestion) -> None:
        """Let users ask the whole model, and store the delays of their answers."""
        if not self.order.drives:
            return
        with ResultsDatabase(self.place.data.store) as store, self._opened(asked) as engine:
            for each in self.order.drives:
                self.checkpoint()
                self.write(LanguageRound(f"{asked.model.name}: driving {each.words}, about {duration(each.seconds)}"))
                store.add(*drive(asked, each, engine, self.system, self.run))

    def checkpoint(self) -> None:
        self.signals.check()


@dataclass
class _Sink(ResultSink):
    """Stores bricks as they are done, and tells how far the model is."""

    store: ResultsDatabase
    recorder: Recorder
    model: str
    steps: Sequence[Decoder]
    write: Callable[[Event], None]
    # What bricks take so far.
    ms: dict[str, float]
    rounds: int = 0

    def keep_occurrences(self, found: Mapping[Job, Sequence[CarrierOccurrence]], *, finished: bool) -> None:
        if finished:
            self.store.add(*(it for job, of in found.items() for it in self.recorder.occurrences(job, of)))

    def tell_estimates(self, provisional: Callable[[], Mapping[JobKey, Statistics]]) -> None:
        self.ms.update({key.brick: found.trimmed_mean_ms for key, found in provisional().items()})

    def take(self, event: Event) -> None:
        if not isinstance(event, RoundDone):
            return
        self.rounds += 1
        told = [f"round {self.rounds}"]
        prefill_ms, *decode_ms = map(self._step_ms, self.steps)
        if prefill_ms is not None:
            told.append(f"prefill {delay_text(prefill_ms)}")
        if known := [it for it in decode_ms if it]:
            told.append(rate_words(1000.0 / fmean(known)))
        if event.seconds_left > 0:
            told.append(f"about {duration(event.seconds_left)} left")
        self.write(LanguageRound(f"{self.model}: {', '.join(told)}"))

    def _step_ms(self, step: Decoder) -> float | None:
        """Return the latency of a step so far; None if a brick was not measured yet."""
        if not all(key in self.ms for key in step.keys):
            return None
        return sum(self.ms[key] * count for key, count in zip(step.keys, step.counts, strict=True))


def carrier_jobs(
    asked: LanguageQuestion, steps: Sequence[Step], known: Mapping[JobKey, object], *, is_probe: bool = False
) -> list[CarrierJob]:
    """Return carriers for the steps, as far as they have bricks that are not `known`.

    A large model has its blocks and its head in different carriers, without a second block of a kind. A probe has a
    block only.
    """
    found: list[CarrierJob] = []
    jobs: dict[JobKey, Job] = {}
    for carrier in (it for step in steps for it in _carriers(asked, step, is_probe)):
        keys = [JobKey(brick=it) for it in carrier.keys]
        if all(key in known or key in jobs for key in keys):
            continue
        for layer, key in enumerate(keys):
            if key not in known and key not in jobs:
                graph, brick = carrier.graph, brick_of(carrier.graph, (layer,))
                jobs[key] = Job(
                    key=key,
                    label=graph.layers[layer].name,
                    canonical=brick.canonical,
                    graph=graph,
                    layers=(layer,),
                    uses=(Use(graph.name, carrier.counts[layer]),),
                    expected_ms=expected_ms(brick.canonical),
                    memory_bytes=memory_bytes([graph.layers[layer]]),
                    number=len(jobs),
                )
        # What runs first finds code in no cache: another place of the brick counts, if there is one.
        later = {key for key, count in zip(keys, carrier.counts, strict=True) if count > 1}
        bricks = {
            place: jobs[key]
            for place, (key, count) in enumerate(zip(keys, carrier.counts, strict=True))
            if key in jobs and (count > 1 or key not in later)
        }
        found.append(_carrier_job(len(found), carrier, bricks))
    return found


def _carriers(asked: LanguageQuestion, step: Step, is_probe: bool) -> Iterator[Decoder]:
    name, model = asked.model.name, asked.sizes
    if is_probe:
        yield asked.decoder(step, distinct_blocks(model, fewest=True), name, Extent.BLOCKS)
        return
    usual, blocks = asked.decoder(step, name=name), distinct_blocks(model)
    size = usual.graph.weight_bytes
    if size > _MOST_BYTES:
        for extent in (Extent.BLOCKS, Extent.HEAD):
            yield asked.decoder(step, distinct_blocks(model, fewest=True), name, extent)
    elif len(blocks) == 1:
        yield usual
    else:
        # More blocks of a small model: the caches hold some of its weights.
        each = max(1, (size - asked.decoder(step, (0,)).graph.weight_bytes) // (len(blocks) - 1))
        others = [it for it in range(model.blocks) if it not in blocks][: max(0, (_ROOMY_BYTES - size) // each)]
        yield asked.decoder(step, sorted({*blocks, *others}), name)


def _carrier_job(number: int, carrier: Decoder, bricks: Mapping[int, Job]) -> CarrierJob:
    graph = carrier.graph
    network, owners = whole_network(graph)
    names = list(network.inputs)
    in_place = {names[given]: place for given, place in carrier.in_place.items()}
    network = replace(network, in_place=in_place, distinct=True)
    layers = zip(graph.layers, carrier.counts, strict=True)
    largest_cache = max((it.bytes for it in caches(HostFiles())), default=0)
    most = max(_MOST_BETWEEN_BYTES, int(_TIMES_THE_CACHE * largest_cache))
    between = min(sum((count - 1) * work_of(layer).bytes_read for layer, count in layers), most)
    program = Program(network, between_bytes=between, only_reads=True)
    expected = sum(expected_ms(brick_of(graph, (layer.index,)).canonical) for layer in graph.layers)
    is_heavy = graph.weight_bytes > _HEAVY_BYTES
    return CarrierJob(f"step {number}", "", whole(graph), program, expected, owners, bricks, is_heavy=is_heavy)
