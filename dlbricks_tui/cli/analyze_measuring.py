"""Measuring for `dlbricks analyze`: what the what-ifs lack, and proofs."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing, suppress
from typing import TYPE_CHECKING

from dlbricks_tui.analysis.proving import Listener, ProofProgress, Prover
from dlbricks_tui.analysis.what_if import WhatIf
from dlbricks_tui.answers.analysis.analysing import Analysis
from dlbricks_tui.answers.analysis.lacking import MeasuringPlan, lacks_in_words, measure_peaks_of_host, plan_of
from dlbricks_tui.answers.analysis.proof_process import asked_what_ifs, refuse_other_system
from dlbricks_tui.cli.options import shapes_of, values_given
from dlbricks_tui.cli.output import narrate, narrate_waiting, narration_console
from dlbricks_tui.cli.parser import Status
from dlbricks_tui.cli.run import tell_end
from dlbricks_tui.cli.run_progress import shown
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.host.peaks import PeaksError
from dlbricks_tui.host.queue import host_queue
from dlbricks_tui.measure.stopping import FEWEST_SAMPLES
from dlbricks_tui.printable import printable
from dlbricks_tui.runs.control import RunStopped, StopSignals, create_run
from dlbricks_tui.runs.run import execute
from dlbricks_tui.runs.work import Workplace
from dlbricks_tui.store.records import Proof
from dlbricks_tui.wording.numbers import counted, duration, signed_percent

if TYPE_CHECKING:
    from rich.console import Console
    from rich.live import Live

_SECONDS_PER_LINE = 10.0


def measure_lacking(args: argparse.Namespace, found: Sequence[Analysis]) -> Status:
    """Measure what the analyses of these models lack, and narrate it before it starts."""
    refuse_other_system(found)
    inputs, values = shapes_of(args), values_given(args)
    plans = [plan_of(each, args.kinds, args.data, inputs, values) for each in found]
    plans = [plan for plan in plans if not plan.is_empty]
    if not plans:
        narrate("the what-ifs lack nothing that this host can measure")
        return Status.DONE
    for plan in plans:
        lacking = counted(len(plan.lacks), "execution") if plan.lacks else "peaks"
        narrate(f"{plan.model} lacks {lacking}, about {duration(plan.seconds)}:")
        for kind, words in lacks_in_words(plan):
            narrate(f"  {kind}: {words}")
    if len(plans) > 1:
        narrate(f"all of them take about {duration(sum(plan.seconds for plan in plans))}")
    return _measure_all(plans, args.data)


def _measure_all(plans: Sequence[MeasuringPlan], data: DataFolder) -> Status:
    status = Status.DONE
    # Models have the same peaks.
    for threads in dict.fromkeys(plan.peaks_threads for plan in plans if plan.peaks_threads is not None):
        try:
            measure_peaks_of_host(threads, data, narrate_waiting)
        except PeaksError as refusal:
            narrate(str(refusal))
            status = Status.DONE_WITH_FAILURES
    for request in (request for plan in plans for request in plan.requests):
        folder = create_run(request, data)
        with shown() as progress:
            outcome = execute(folder, request, Workplace(data), host_queue(), progress.take)
        ended = tell_end(outcome, quiet=False, left_out=len(progress.progress.left_out))
        if ended == Status.INTERRUPTED:
            return Status.INTERRUPTED
        # What one execution lacks does not keep the others from an answer.
        status = Status.DONE_WITH_FAILURES if ended else status
    return status


def prove_what_ifs(args: argparse.Namespace, found: Sequence[Analysis]) -> Status:
    """Prove the what-ifs that are asked for, and narrate each gain; what is finished is kept if it is interrupted."""
    refuse_other_system(found)
    asked = asked_what_ifs(found, args.prove, args.kinds)
    failed = proved = 0
    with closing(_narration()) as narration, StopSignals(ignore_hangup=False) as signals:
        try:
            for each, what_ifs, unknown in asked:
                for what_if in unknown:
                    failed += 1
                    narrate(f"{each.source.name} has no what-if {what_if}")
                narrate(_intention(each.source.name, what_ifs))
                prover = Prover(
                    source=each.source,
                    place=Workplace(args.data),
                    signals=signals,
                    listener=narration,
                    inputs=shapes_of(args),
                    values=values_given(args),
                )
                for outcome in prover.prove_all(what_ifs, host_queue()):
                    if outcome.proof is None:
                        failed += 1
                        narrate(f"{outcome.what_if.id} of {each.source.name} cannot be proved: {outcome.failure}")
                    else:
                        proved += 1
                        narrate(_gains(outcome.proof))
        except RunStopped as stopped:
            narrate(f"{stopped.why}; {counted(proved, 'proof')} before it {'is' if proved == 1 else 'are'} kept")
            return Status.INTERRUPTED
    return Status.DONE_WITH_FAILURES if failed else Status.DONE


class ProofNarration(Listener):
    """Shows how far a proof is: a terminal has one line that changes, others get a line now and then."""

    def __init__(self, console: Console | None, clock: Callable[[], float] = time.monotonic) -> None:
        self._open = ExitStack()
        self._clock = clock
        self._live: Live | None = None
        if console is not None:
            from rich.live import Live

            # Drawn between rounds, while neither model is timed.
            self._live = self._open.enter_context(Live(console=console, auto_refresh=False, transient=True))
        self._show_again_at = clock() + _SECONDS_PER_LINE

    def close(self) -> None:
        """Give the terminal back."""
        with suppress(OSError):
            self._open.close()

    def waiting(self, holder: str) -> None:
        """Narrate the work for whose end the proof waits."""
        narrate_waiting(holder)

    def progress(self, so_far: ProofProgress) -> None:
        """Show the gain so far."""
        gain = signed_percent(so_far.gain.value)
        if so_far.rounds >= FEWEST_SAMPLES:
            gain += f" +- {50 * (so_far.gain.high - so_far.gain.low):.1f} points"
        line = f"{so_far.what_if}: {gain} after {counted(so_far.rounds, 'round')}"
        if self._live is not None:
            from rich.text import Text

            # The proof goes on when the terminal is gone.
            with suppress(OSError):
                self._live.update(Text(printable(line)), refresh=True)
        elif self._clock() >= self._show_again_at:
            narrate(line)
            self._show_again_at = self._clock() + _SECONDS_PER_LINE


def _narration() -> ProofNarration:
    console = narration_console()
    return ProofNarration(console if console.is_terminal and not console.is_dumb_terminal else None)


def _intention(model: str, what_ifs: Sequence[WhatIf]) -> str:
    ids = ", ".join(it.id for it in what_ifs) or "no what-if"
    return f"proving {ids} of {model}: each takes a minute of rounds at most"


def _gains(proof: Proof) -> str:
    low, high = signed_percent(proof.gain_low), signed_percent(proof.gain_high)
    return (
        f"{proof.what_if}: measured {signed_percent(proof.gain)} ({low} to {high}), predicted "
        f"{signed_percent(proof.predicted_gain)}, in {counted(proof.before.count, 'round')}"
    )
