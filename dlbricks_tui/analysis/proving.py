"""Proofs: what-ifs that are carried out. The whole model is timed end to end before and after the change.

1. Read the model as each of the two executions has it.
2. Load it into one worker for each, from its file where the runtime runs files.
3. Time both in alternating rounds, and store the proof.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import NamedTuple

from dlbricks_tui.analysis.paired_rounds import (
    PairedSamples,
    ProofError,
    ProofRule,
    TimedModel,
    paired_gain,
    time_in_turns,
    with_placement,
)
from dlbricks_tui.analysis.what_if import Execution, Gain, WhatIf
from dlbricks_tui.analysis.whole_models import execution_worker, load_whole, turn_on_host, whole_model
from dlbricks_tui.errors import UserError
from dlbricks_tui.host.fingerprint import fingerprint
from dlbricks_tui.host.queue import HostQueue, Kind, QueuedWork, Ticket
from dlbricks_tui.measure.carriers import COPIES
from dlbricks_tui.measure.jobs import Job
from dlbricks_tui.measure.results import runtime_record
from dlbricks_tui.measure.supervised_worker import TimeLimits
from dlbricks_tui.models.graph import Numbers, Shape
from dlbricks_tui.models.library import ModelSource
from dlbricks_tui.runs.control import RunStopped, StopSignals
from dlbricks_tui.runs.onednn import with_onednn
from dlbricks_tui.runs.provenance import model_digests, provenance
from dlbricks_tui.runs.work import Workplace
from dlbricks_tui.runtime.protocol import Described
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.records import Proof, Provenance, System, utc_now
from dlbricks_tui.store.statistics import summarise

_LOG = "proofs.log"
# Of the memory of the host, both models together may take this share.
_MOST_MEMORY = 0.9


class ProofProgress(NamedTuple):
    """The rounds so far of a what-if that is being proved, and the gain that they show."""

    what_if: str
    rounds: int
    gain: Gain
    # None until there is a second round.
    seconds_left: float | None = None


class Outcome(NamedTuple):
    """A what-if with its proof, or else the reason why it could not be proved."""

    what_if: WhatIf
    proof: Proof | None
    failure: str = ""


class Listener:
    """Takes what there is to tell while what-ifs are proved; this base ignores it."""

    def waiting(self, holder: str) -> None:
        """Take the work before it in the line, for whose end the proof waits."""

    def progress(self, so_far: ProofProgress) -> None:
        """Take a round that counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prover:
    """Proves the what-ifs of a model; results are those that a user of each runtime gets."""

    source: ModelSource
    place: Workplace
    signals: StopSignals
    listener: Listener
    rule: ProofRule = field(default_factory=ProofRule)
    inputs: Mapping[str, Shape] = field(default_factory=dict)
    values: Mapping[str, Numbers] = field(default_factory=dict)
    limits: TimeLimits = field(default_factory=TimeLimits)

    def prove_all(self, what_ifs: Sequence[WhatIf], queue: HostQueue) -> Iterator[Outcome]:
        """Prove each what-if, and store its proof before it is yielded.

        No run measures meanwhile. `RunStopped` ends it early: the proofs until then are in the store.
        """
        task = QueuedWork(Kind.PROOF, [self.source.name], self.place.data.path)
        with turn_on_host(queue, task, self.signals, self.listener.waiting) as ticket:
            for number, what_if in enumerate(what_ifs):
                self.signals.check()
                try:
                    outcome = Outcome(what_if, self.prove(what_if, ticket, (number, len(what_ifs))))
                except UserError as error:
                    outcome = Outcome(what_if, None, str(error))
                yield outcome

    def prove(self, what_if: WhatIf, ticket: Ticket, place: tuple[int, int]) -> Proof:
        """Prove a what-if, and store the proof; `place` is the number of proofs before it, and of all."""
        if what_if.change is None:
            raise ProofError("no runtime can run it: it is a bound")
        system = fingerprint()
        with self.signals.waiting():
            before, after = (self._job(it) for it in (what_if.baseline, what_if.change))
        items = before.graph.batch_size / after.graph.batch_size
        copies = int(_MOST_MEMORY * system.memory_bytes / (before.memory_bytes + after.memory_bytes))
        if not copies:
            raise ProofError("the memory of this host does not hold the model twice, for both executions")

        first = 0.0

        def tell(rounds: int, gain: Gain) -> None:
            nonlocal first
            self.signals.check()
            now, left = time.monotonic(), None
            if rounds == 1:
                first = now
            else:
                # The time of the first round is that of the others.
                seconds = (now - first) * rounds / (rounds - 1)
                left = self.rule.seconds_left(rounds, seconds, gain)
                ticket.progress((place[0] + seconds / (seconds + left)) / place[1], left)
            self.listener.progress(ProofProgress(what_if.id, rounds, gain, left))

        described: list[Described] = []
        with (
            self._loaded(what_if.baseline, before, system, min(copies, COPIES), described) as timed_before,
            self._loaded(what_if.change, after, system, min(copies, COPIES), described) as timed_after,
        ):
            samples = time_in_turns(timed_before, timed_after, self.rule, tell, items)
        proof = _proof(what_if, what_if.change, before, after, samples, system)
        executions = (what_if.baseline, what_if.change)
        runtimes = (runtime_record(it.runtime, system) for it in executions)
        origins = self._origins(proof, executions, (before, after), described, system)
        with ResultsDatabase(self.place.data.store) as store:
            store.add(system, *runtimes, proof)
            store.add(*origins)
        return proof

    def _origins(
        self,
        proof: Proof,
        executions: Sequence[Execution],
        jobs: Sequence[Job],
        described: Sequence[Described],
        system: System,
    ) -> Iterator[Provenance]:
        """Yield where the samples on each runtime come from."""
        for runtime, versions in {it.runtime: known for it, known in zip(executions, described, strict=True)}.items():
            path = self.source.in_format(runtime.traits.format).path
            own = [job.key.model for it, job in zip(executions, jobs, strict=True) if it.runtime == runtime]
            found = provenance(proof.uuid, system, runtime, versions, model_digests((key, path) for key in own))
            log, program = self.place.data.log / _LOG, self.place.worker_program
            # It is measured and stored: an interrupt only leaves this version out.
            with suppress(RunStopped), self.signals.waiting():
                found = with_onednn(found, runtime, self.place.data.cache, log, program)
            yield found

    def _job(self, execution: Execution) -> Job:
        log = self.place.data.log / _LOG
        return whole_model(self.source, execution, self.place, log, self.inputs, self.values)

    @contextmanager
    def _loaded(
        self, execution: Execution, job: Job, system: System, copies: int, described: list[Described]
    ) -> Iterator[TimedModel]:
        """Load a model into a new worker, in up to so many copies; add the versions in the worker to `described`."""
        with execution_worker(
            execution,
            self.place,
            self.place.data.log / _LOG,
            self.signals.waiting,
            lambda _: None,
            system.memory_bytes,
            self.limits,
        ) as worker:
            described.append(worker.describe())
            yield load_whole(job, execution, lambda program: TimedModel(worker, program, job.expected_ms, copies))


def _proof(
    what_if: WhatIf, change: Execution, before: Job, after: Job, samples: PairedSamples, system: System
) -> Proof:
    items = before.graph.batch_size / after.graph.batch_size
    gain = with_placement(paired_gain(samples.before_ms, samples.after_ms, items))
    return Proof(
        when=utc_now(),
        model=before.key.model,
        name=before.graph.name,
        system=system.id,
        what_if=what_if.id,
        kind=what_if.kind.value,
        runtime=what_if.baseline.runtime.identity,
        level=before.graph.level,
        batch_size=before.graph.batch_size,
        changed_runtime=change.runtime.identity,
        changed_level=after.graph.level,
        changed_batch_size=after.graph.batch_size,
        before=summarise(samples.before_ms),
        after=summarise(samples.after_ms),
        gain=gain.value,
        gain_low=gain.low,
        gain_high=gain.high,
        predicted_gain=what_if.gain.value,
        predicted_low=what_if.gain.low,
        predicted_high=what_if.gain.high,
        samples_ms=tuple(samples.before_ms),
        changed_samples_ms=tuple(samples.after_ms),
    )
