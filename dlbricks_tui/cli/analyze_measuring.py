"""Measuring for `dlbricks analyze`: what the what-ifs lack, and proofs."""

import argparse
from collections.abc import Sequence

from dlbricks_tui.analysis.proving import Listener, Prover
from dlbricks_tui.analysis.what_if import WhatIf
from dlbricks_tui.answers.analysing import Analysis
from dlbricks_tui.answers.proving import MeasuringPlan, ProvingError, asked_what_ifs, plan_of, refuse_other_system
from dlbricks_tui.cli.options import shapes_of, values_given
from dlbricks_tui.cli.output import narrate
from dlbricks_tui.cli.parser import Status
from dlbricks_tui.cli.run import tell_end
from dlbricks_tui.cli.run_progress import shown
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.host.host_lock import host_lock
from dlbricks_tui.runs.control import RunStopped, StopSignals
from dlbricks_tui.runs.launch import create_run
from dlbricks_tui.runs.run import execute
from dlbricks_tui.runs.work import Workplace
from dlbricks_tui.store.records import Proof
from dlbricks_tui.wording.numbers import counted, duration, signed_percent


def measure_lacking(args: argparse.Namespace, found: Sequence[Analysis]) -> Status:
    """Measure what the what-ifs of these models lack, and narrate it before it starts."""
    refuse_other_system(found)
    inputs, values = shapes_of(args), values_given(args)
    plans = [plan_of(each, args.kinds, args.data, inputs, values) for each in found]
    plans = [plan for plan in plans if plan.lacks]
    if not plans:
        narrate("the what-ifs lack nothing that this host can measure")
        return Status.DONE
    for plan in plans:
        narrate(f"{plan.model} lacks {counted(len(plan.lacks), 'execution')}, about {duration(plan.seconds)}:")
        for lack in plan.lacks:
            narrate(f"  {'baseline' if lack.kind is None else lack.kind.value}: {lack.in_words}")
    if len(plans) > 1:
        narrate(f"all of them take about {duration(sum(plan.seconds for plan in plans))}")
    return _measure_all(plans, args.data)


def _measure_all(plans: Sequence[MeasuringPlan], data: DataFolder) -> Status:
    status = Status.DONE
    for request in (request for plan in plans for request in plan.requests):
        folder = create_run(request, data)
        with shown() as progress:
            outcome = execute(folder, request, Workplace(data), host_lock(), progress.take)
        ended = tell_end(outcome, quiet=False, left_out=len(progress.progress.left_out))
        if ended == Status.INTERRUPTED:
            return Status.INTERRUPTED
        # What one execution lacks does not keep the others from an answer.
        status = Status.DONE_WITH_FAILURES if ended else status
    return status


def prove_what_ifs(args: argparse.Namespace, found: Sequence[Analysis]) -> Status:
    """Prove the what-ifs that are asked for, and narrate each gain; what is finished is kept if it is interrupted."""
    refuse_other_system(found)
    asked = [(each, asked_what_ifs(each, args.prove, args.kinds)) for each in found]
    if not any(what_ifs for _, what_ifs in asked):
        raise ProvingError("there is no what-if to prove: --measure measures what they lack")
    failed = proved = 0
    with StopSignals(ignore_hangup=False) as signals:
        try:
            for each, what_ifs in asked:
                narrate(_intention(each.source.name, what_ifs))
                prover = Prover(
                    source=each.source,
                    place=Workplace(args.data),
                    signals=signals,
                    listener=_Narration(),
                    inputs=shapes_of(args),
                    values=values_given(args),
                )
                for outcome in prover.prove_all(what_ifs, host_lock()):
                    if outcome.proof is None:
                        failed += 1
                        narrate(f"{outcome.what_if.id} cannot be proved: {outcome.failure}")
                    else:
                        proved += 1
                        narrate(_gains(outcome.proof))
        except RunStopped as stopped:
            narrate(f"{stopped.why}; {counted(proved, 'proof')} before it {'is' if proved == 1 else 'are'} kept")
            return Status.INTERRUPTED
    return Status.DONE_WITH_FAILURES if failed else Status.DONE


class _Narration(Listener):
    def waiting(self, holder: str) -> None:
        """Narrate what the proof waits for."""
        narrate(f"waiting for {holder}")


def _intention(model: str, what_ifs: Sequence[WhatIf]) -> str:
    ids = ", ".join(it.id for it in what_ifs) or "no what-if"
    return f"proving {ids} of {model}: each takes a minute of rounds at most"


def _gains(proof: Proof) -> str:
    low, high = signed_percent(proof.gain_low), signed_percent(proof.gain_high)
    return (
        f"{proof.what_if}: measured {signed_percent(proof.gain)} ({low} to {high}), predicted "
        f"{signed_percent(proof.predicted_gain)}, in {counted(proof.before.count, 'round')}"
    )
