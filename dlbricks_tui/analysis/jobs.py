"""Jobs of an analysis: the proofs of what-ifs, and the measurement of the peaks of this host."""

import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from dlbricks_tui.analysis.proving import Prover, RoundsDone
from dlbricks_tui.analysis.what_if import MeasuredGain, WhatIf, measured_gain
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.host.fingerprint import fingerprint
from dlbricks_tui.host.peaks import keep_peaks
from dlbricks_tui.host.queue import WorkKind, host_queue
from dlbricks_tui.jobs.control import StopSignals
from dlbricks_tui.jobs.events import Event, Waiting, event_kinds
from dlbricks_tui.jobs.kinds import JobKind
from dlbricks_tui.jobs.process import JobAtWork, work_in_process
from dlbricks_tui.models.graph import Numbers, Shape
from dlbricks_tui.models.library import ModelSource
from dlbricks_tui.runs.work import Workplace

# A viewer that draws after each round would disturb the next one.
_SECONDS_BETWEEN_ROUNDS = 1.0


@dataclass(frozen=True, slots=True)
class ProofOrder:
    """The what-ifs of a model to prove, and the shapes and values of its inputs."""

    source: ModelSource
    what_ifs: tuple[WhatIf, ...]
    inputs: Mapping[str, Shape] = field(default_factory=dict)
    values: Mapping[str, Numbers] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ProofDone(Event):
    """The end of a proof: its gain after so many rounds, or the reason why there is none."""

    what_if: str
    gain: MeasuredGain | None
    failure: str
    rounds: int = 0


PROOF = JobKind(WorkKind.PROOF, ProofOrder, event_kinds(RoundsDone, ProofDone), f"{__name__}:work_on_proofs")


def thinned(tell: Callable[[Event], None], clock: Callable[[], float] = time.monotonic) -> Callable[[Event], None]:
    """Return the function that tells the rounds of each proof at most once a second, and all other events."""
    what_if, due = "", 0.0

    def tell_some(event: Event) -> None:
        nonlocal what_if, due
        if isinstance(event, RoundsDone):
            now = clock()
            if event.what_if == what_if and event.rounds > 1 and now < due:
                return
            what_if, due = event.what_if, now + _SECONDS_BETWEEN_ROUNDS
        tell(event)

    return tell_some


def prove(order: ProofOrder, place: Workplace, signals: StopSignals, tell: Callable[[Event], None]) -> None:
    """Prove what-ifs; the proofs before an error or a signal are stored."""
    prover = Prover(
        source=order.source,
        place=place,
        signals=signals,
        tell=thinned(tell),
        inputs=order.inputs,
        values=order.values,
    )
    for outcome in prover.prove_all(order.what_ifs, host_queue()):
        proof = outcome.proof
        gain, rounds = (None, 0) if proof is None else (measured_gain(proof), proof.before.count)
        tell(ProofDone(outcome.what_if.id, gain, outcome.failure, rounds))


def carry_out_proofs(job: JobAtWork[ProofOrder]) -> None:
    """Prove the what-ifs of a job."""
    prove(job.request, Workplace(job.data), job.signals, job.tell)


def work_on_proofs(folder: str, data: str) -> None:
    """Prove the what-ifs of a job; the entry point of its process."""
    sys.exit(work_in_process(PROOF, folder, data, carry_out_proofs))


@dataclass(frozen=True, slots=True)
class PeaksOrder:
    """The number of threads whose peaks are to be measured."""

    threads: int


PEAKS = JobKind(WorkKind.PEAKS, PeaksOrder, event_kinds(), f"{__name__}:work_on_peaks")


def measure_peaks_of_host(threads: int, data: DataFolder, tell_waiting: Callable[[str], None]) -> None:
    """Measure the peaks of this host once it is their turn, and store them."""
    keep_peaks(data.store, fingerprint(), threads, host_queue(), data.path, tell_waiting)


def work_on_peaks(folder: str, data: str) -> None:
    """Measure the peaks that a job asks for; the entry point of its process."""

    def measure(job: JobAtWork[PeaksOrder]) -> None:
        measure_peaks_of_host(job.request.threads, job.data, lambda ahead: job.tell(Waiting(holder=ahead)))

    sys.exit(work_in_process(PEAKS, folder, data, measure))
