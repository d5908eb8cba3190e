"""Results of a run and their provenance: stored first, then counted in the estimates, then told as events."""

import hashlib
import re
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from dlbricks_tui import __version__
from dlbricks_tui.errors import UserError
from dlbricks_tui.estimate.estimate import Estimate, estimate, is_wide
from dlbricks_tui.estimate.inquiry import Predictors
from dlbricks_tui.estimate.knowledge import Knowledge, Latency, MeasuredLatency, Pair, Predictor, Unmeasured
from dlbricks_tui.estimate.lookup import BrickResults
from dlbricks_tui.files import read_text, write_atomically
from dlbricks_tui.host.fingerprint import host_facts
from dlbricks_tui.jobs.events import Event
from dlbricks_tui.measure.events import Stop
from dlbricks_tui.measure.jobs import CutModel, Job, JobKey
from dlbricks_tui.measure.known import Conditions
from dlbricks_tui.measure.results import CarrierOccurrence, Recorder, ResultSink
from dlbricks_tui.measure.stopping import Samples, half_width_ms
from dlbricks_tui.measure.supervised_worker import reference_program
from dlbricks_tui.models.content import content_sha256
from dlbricks_tui.runs.events import EstimateChanged, ProgramFailed, ProgramLoaded, ProgramMeasured, ProgramUnfinished
from dlbricks_tui.runtime.errors import WorkerError
from dlbricks_tui.runtime.process import INSIDE, Worker
from dlbricks_tui.runtime.protocol import Described, Explain, Reason
from dlbricks_tui.runtime.runtime import UNTUNED, Runtime
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.records import ANY_CONTEXT, Facts, Provenance, Statistics, System, utc_now
from dlbricks_tui.store.selections import Way
from dlbricks_tui.store.statistics import mean_statistics

# The share of time that composing estimates may take: nothing is measured meanwhile.
_SHARE_OF_TIME = 0.02


class Remembered:
    """A predictor that predicts each brick once, by the results that were stored at first."""

    def __init__(self, predictor: Predictor) -> None:
        self._predictor = predictor
        self._known: dict[Unmeasured, Latency | None] = {}

    @property
    def shared(self) -> float:
        """The share of the half intervals that all predictions of a model have in common."""
        return self._predictor.shared

    def predict(self, bricks: Sequence[Unmeasured]) -> Sequence[Latency | None]:
        """Return the latency of each brick; None if it is unlike all measured ones."""
        new = [brick for brick in bricks if brick not in self._known]
        if new:
            self._known.update(zip(new, self._predictor.predict(new), strict=True))
        return [self._known[brick] for brick in bricks]


class LiveEstimates:
    """The models' estimates while their bricks are being measured; predicted before that, if there are predictors."""

    def __init__(
        self,
        models: Sequence[CutModel],
        store: ResultsDatabase,
        conditions: Conditions,
        predictors: Predictors | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._clock = clock
        predictor_of: dict[Way, Remembered] = {}
        self._decompositions = {model.name: model.decomposition for model in models}
        self._knowledge: dict[str, Knowledge] = {}
        self._users: defaultdict[JobKey, list[str]] = defaultdict(list)
        # By model and brick: inside of a carrier a brick is timed for all of its contexts.
        self._contexts: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
        for name, decomposition in self._decompositions.items():
            way = conditions.at(decomposition.graph.level)
            known = BrickResults(store, decomposition).knowledge(way)
            if predictors is not None:
                if way not in predictor_of:
                    predictor_of[way] = Remembered(predictors.of(way, decomposition.graph.traits))
                known = replace(known, predictor=partial(predictor_of.__getitem__, way))
            self._knowledge[name] = known
            for brick in decomposition.bricks:
                self._users[JobKey(brick, ANY_CONTEXT)].append(name)
            for brick, context in decomposition.pairs:
                self._users[JobKey(brick, context)].append(name)
                self._contexts[name, brick].append(context)
        self._changed: dict[str, None] = dict.fromkeys(self._decompositions)
        # The models whose last event used provisional statistics.
        self._unsettled: tuple[str, ...] = ()
        self._not_before = 0.0

    def learn(self, found: Mapping[JobKey, Statistics]) -> None:
        for model, measured in self._by_model(found).items():
            known = self._knowledge[model]
            self._knowledge[model] = replace(known, measured={**known.measured, **measured})
            self._changed[model] = None

    def give_up(self, target: JobKey, reason: str) -> None:
        """Note that a brick cannot be measured."""
        for model in self._users.get(target, ()):
            known = self._knowledge[model]
            failed = {**known.failed, **{(target.brick, it): reason for it in self._contexts_of(model, target)}}
            self._knowledge[model] = replace(known, failed=failed)
            self._changed[model] = None

    def changes(
        self, provisional: Callable[[], Mapping[JobKey, Statistics]] | None = None
    ) -> tuple[EstimateChanged, ...]:
        """Return the estimates that have changed, with provisional statistics; none if the last call was too recent.

        Without provisional statistics these are the final estimates, which are always returned.
        """
        begin = self._clock()
        if provisional is not None and begin < self._not_before:
            return ()
        so_far = {} if provisional is None else self._by_model(provisional())
        changed = dict.fromkeys((*self._changed, *self._unsettled, *so_far))
        self._changed, self._unsettled = {}, tuple(so_far)
        found = tuple(self._told(model, so_far.get(model, {})) for model in changed)
        end = self._clock()
        self._not_before = end + (end - begin) / _SHARE_OF_TIME
        return found

    def _by_model(self, found: Mapping[JobKey, Statistics]) -> dict[str, dict[Pair, MeasuredLatency]]:
        by_model: defaultdict[str, dict[Pair, MeasuredLatency]] = defaultdict(dict)
        for target, statistics in found.items():
            pair = target.brick, target.context
            latency = Latency(statistics.trimmed_mean_ms, statistics.low_ms, statistics.high_ms)
            for model in self._users.get(target, ()):
                for context in self._contexts_of(model, target):
                    by_model[model][target.brick, context] = MeasuredLatency(latency, pair, statistics.count)
        return by_model

    def _contexts_of(self, model: str, target: JobKey) -> Sequence[str]:
        """Return the contexts in a model that a result applies to."""
        return self._contexts[model, target.brick] if target.context == ANY_CONTEXT else (target.context,)

    def _told(self, model: str, so_far: Mapping[Pair, MeasuredLatency]) -> EstimateChanged:
        known = self._knowledge[model]
        now = estimate(self._decompositions[model], replace(known, measured={**so_far, **known.measured}))
        settled = {layer for part in now.parts if part.pair in known.measured for layer in part.layers}
        sampled = {layer for part in now.parts if part.pair in so_far for layer in part.layers} - settled
        return estimate_changed(model, now, len(sampled))


def estimate_changed(model: str, now: Estimate, sampled: int = 0) -> EstimateChanged:
    """Return the event of an estimate; so many of its measured layers have provisional latencies."""
    composed, coverage = now.composed, now.coverage
    return EstimateChanged(
        model=model,
        sequential_ms=None if composed is None else composed.sequential_ms,
        parallel_ms=None if composed is None else composed.parallel_ms,
        low_ms=None if composed is None else composed.latency.low_ms,
        high_ms=None if composed is None else composed.latency.high_ms,
        measured_layers=coverage.measured - sampled,
        sampled_layers=sampled,
        predicted_layers=coverage.predicted,
        missing_layers=coverage.missing,
        unmeasurable_layers=coverage.unmeasurable,
    )


class RunResults(ResultSink):
    """Stores results, updates the estimates, and tells all that as events, in this order."""

    def __init__(
        self,
        store: ResultsDatabase,
        recorder: Recorder,
        estimates: LiveEstimates,
        tell: Callable[[Event], None],
        save_counts: Callable[[], None],
    ) -> None:
        self._store = store
        self._recorder = recorder
        self._estimates = estimates
        self._tell = tell
        self._save_counts = save_counts
        # The programs that are measured. When a worker is lost later, they lack further samples only.
        self._measured: set[Job] = set()

    def save_counts(self) -> None:
        self._save_counts()

    def loaded(
        self, job: Job, first_run_seconds: float, earlier_ms: Sequence[float], *, allocates: bool = False
    ) -> None:
        self._tell(
            ProgramLoaded(
                first_run_ms=first_run_seconds * 1000,
                used_by=tuple(use.model for use in job.uses),
                samples_ms=tuple(earlier_ms),
                allocates=allocates,
                **job.about,
            )
        )

    def keep(self, timed: Sequence[tuple[Job, Samples]], noise: Facts, *, finished: bool = True) -> None:
        if not timed:
            return
        self._store.add(*[it for job, samples in timed for it in self._recorder.measured(job, samples, noise)])
        self._estimates.learn({job.key: samples.statistics for job, samples in timed if not samples.flags})
        self._measured.update(job for job, _ in timed if finished)
        for job, samples in timed:
            told = _measured(job, samples.statistics, samples.stop, samples.warm_up, samples.outliers)
            self._tell(told if finished else ProgramUnfinished(**_figures(job, samples.statistics)))

    def keep_occurrences(self, found: Mapping[Job, Sequence[CarrierOccurrence]], *, finished: bool) -> None:
        if not found:
            return
        records = (self._recorder.occurrences(job, places) for job, places in found.items())
        self._store.add(*chain.from_iterable(records))
        means = {job: mean_statistics([it.samples.statistics for it in places]) for job, places in found.items()}
        doubtful = {job for job, places in found.items() if any(it.samples.flags for it in places)}
        self._estimates.learn({job.key: statistics for job, statistics in means.items() if job not in doubtful})
        for job, statistics in means.items():
            # Its carriers decided when to stop. The reason tells if this brick's interval became narrow by then.
            wide = is_wide(statistics.trimmed_mean_ms, half_width_ms(statistics))
            stop = Stop.MOST_SAMPLES if wide else Stop.NARROW
            told = _measured(job, statistics, stop) if finished else ProgramUnfinished(**_figures(job, statistics))
            self._tell(told)

    def reopen(self, jobs: Sequence[Job]) -> None:
        self._measured.difference_update(jobs)

    def fail(self, job: Job, reason: str, message: str) -> None:
        if job in self._measured:
            return
        record = self._recorder.failed(job, reason, message)
        if reason not in (Reason.MALFORMED.value, Reason.NO_ROOM.value):
            # A malformed request is a fault of dlbricks, and a full disk one of the host: the next run tries again.
            self._store.add(record)
        self._estimates.give_up(job.key, f"{reason}: {record.message}")
        self._tell(ProgramFailed(reason=reason, message=record.message, **job.about))

    def tell_estimates(self, provisional: Callable[[], Mapping[JobKey, Statistics]] | None = None) -> None:
        """Tell the estimates that have changed; without provisional statistics they are final."""
        for event in self._estimates.changes(provisional):
            self._tell(event)


def _measured(
    job: Job, statistics: Statistics, stop: Stop | None, warm_up: int = 0, outliers: int = 0
) -> ProgramMeasured:
    reason = "" if stop is None else stop.value
    return ProgramMeasured(warm_up=warm_up, outliers=outliers, stop=reason, **_figures(job, statistics))


def _figures(job: Job, statistics: Statistics) -> dict[str, Any]:
    return {
        **job.about,
        "trimmed_mean_ms": statistics.trimmed_mean_ms,
        "low_ms": statistics.low_ms,
        "high_ms": statistics.high_ms,
        "samples": statistics.count,
    }


def provenance(
    run: str,
    system: System,
    runtime: Runtime,
    described: Described,
    models: Facts,
    *,
    protocol: str = "",
    evaluation: str = "",
    unmet: tuple[str, ...] = (),
) -> Provenance:
    """Return where the results come from that a worker of a runtime measures now; `models` are `model_digests`."""
    return Provenance(
        when=utc_now(),
        run=run,
        system=system.id,
        runtime=runtime.identity,
        protocol=protocol,
        packages=(("dlbricks", __version__), *described.packages.items()),
        host=host_facts(system),
        models=models,
        evaluation=evaluation,
        unmet=unmet,
    )


def keep_provenance(store: ResultsDatabase, found: Provenance) -> None:
    """Store where results come from, unless the store says the same of the run already."""
    known = store.provenance_of(found.run, found.runtime)
    if known is None or replace(known, when=found.when, uuid=found.uuid) != found:
        store.add(found)


def model_digests(files: Iterable[tuple[str, Path]]) -> Facts:
    """Return the SHA-256 of model files by the keys of the models; a file that has gone meanwhile is left out."""
    found: dict[str, str] = {}
    for key, path in files:
        # Models of equal layers have one key: the first file stands for them.
        if key not in found:
            try:
                found[key] = content_sha256(path)
            except UserError:
                continue
    return tuple(found.items())


# oneDNN tells its version in front of its first line of output, where its settings make it print. So a worker with
# these settings runs a small network once, apart from what is timed. The answer is kept in the cache: it holds for an
# installed package. This is the name among the packages, and the folder in the cache.
ONEDNN = "onednn"
_SECONDS_TO_TELL = 60.0
_TOLD = re.compile(r",oneDNN v(\S+)(?: \(commit (\w+)\))?")
_COMMIT_DIGITS = 12


def with_known_onednn(found: Provenance, runtime: Runtime, cache: Path) -> Provenance:
    """Return where results come from, with the version of oneDNN if that is in the cache."""
    return _with_version(found, _known(found, runtime, cache) or "")


def explaining(runtime: Runtime) -> Runtime:
    """Return the runtime of a worker that tells the version of oneDNN."""
    return replace(runtime, settings=UNTUNED).for_explaining()


def knows_no_onednn(runtime: Runtime, cache: Path) -> bool:
    """Return whether a runtime has a oneDNN and the cache no version of any."""
    return bool(runtime.traits.explaining_settings) and not (cache / ONEDNN).is_dir()


def with_onednn(
    found: Provenance, runtime: Runtime, cache: Path, log: Path, program: Path = INSIDE, early: Worker | None = None
) -> Provenance:
    """Return where results come from, with the version of oneDNN from the cache or from a worker, if it tells one."""
    known = _known(found, runtime, cache)
    if known is None:
        network = reference_program(runtime.traits.format).network
        try:
            with early or Worker(explaining(runtime), log, program) as worker:
                known = version_told(it.line for it in worker.ask(Explain(network), _SECONDS_TO_TELL).lines)
        except WorkerError:
            # Not kept in the cache: the next run asks again.
            return found
        # Without a cache, it asks again, too.
        with suppress(OSError):
            write_atomically(_file(found, runtime, cache), f"{known}\n")
    return _with_version(found, known)


def version_told(lines: Iterable[str]) -> str:
    """Return the version of oneDNN in its output: `2.4.0 (commit 0123456789ab)`; empty if it does not tell."""
    told = next((match for line in lines if (match := _TOLD.search(line))), None)
    if told is None:
        return ""
    return f"{told[1]} (commit {told[2][:_COMMIT_DIGITS]})" if told[2] else told[1]


def _known(found: Provenance, runtime: Runtime, cache: Path) -> str | None:
    """Return the version in the cache; empty if there is none to find out, None if it has to be asked for."""
    if not runtime.traits.explaining_settings or ONEDNN in dict(found.packages):
        return ""
    with suppress(OSError, UnicodeDecodeError):
        return read_text(_file(found, runtime, cache)).strip()
    return None


def _with_version(found: Provenance, version: str) -> Provenance:
    return replace(found, packages=(*found.packages, (ONEDNN, version))) if version else found


def _file(found: Provenance, runtime: Runtime, cache: Path) -> Path:
    # Another build of a framework has another oneDNN.
    installed = repr((runtime.python, [it for it in found.packages if it[0] != "dlbricks"]))
    return cache / ONEDNN / hashlib.sha256(installed.encode()).hexdigest()[:16]
