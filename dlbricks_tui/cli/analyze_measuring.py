"""Measuring for `dlbricks analyze`: what the what-ifs lack, and proofs."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING

from dlbricks_tui.analysis.proving import (
    PROOF,
    ProofDone,
    ProofOrder,
    RoundsDone,
    carry_out_proofs,
    measure_peaks_of_host,
)
from dlbricks_tui.analysis.what_if import WhatIf
from dlbricks_tui.answers.analysing import (
    Analysis,
    MeasuringPlan,
    asked_what_ifs,
    lacks_in_words,
    plan_of,
    refuse_other_system,
)
from dlbricks_tui.cli.job_progress import JobNarration, live_console
from dlbricks_tui.cli.options import shapes_of, values_given
from dlbricks_tui.cli.output import narrate, narrate_waiting
from dlbricks_tui.cli.parser import Status
from dlbricks_tui.cli.run import tell_end
from dlbricks_tui.cli.run_progress import shown
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.host.peaks import PeaksError
from dlbricks_tui.host.queue import host_queue
from dlbricks_tui.jobs.folder import State
from dlbricks_tui.jobs.process import work_on
from dlbricks_tui.runs.control import create_run
from dlbricks_tui.runs.run import execute
from dlbricks_tui.runs.work import Workplace
from dlbricks_tui.wording.checks import what_if_words
from dlbricks_tui.wording.jobs import proof_line
from dlbricks_tui.wording.numbers import counted, duration

if TYPE_CHECKING:
    pass


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
    for each, what_ifs, unknown in asked:
        for what_if in unknown:
            narrate(f"{each.source.name} has no what-if {what_if}")
        narrate(_intention(each.source.name, what_ifs))
        order = ProofOrder(each.source, what_ifs, shapes_of(args), values_given(args))
        job = PROOF.create(args.data, (each.source.name,), order)
        with closing(JobNarration(partial(proof_line, order=order), (RoundsDone,), live_console())) as narration:
            state = work_on(PROOF, job, args.data, carry_out_proofs, narration.take)
        ended = [it for it in narration.taken if isinstance(it, ProofDone)]
        proved += sum(it.gain is not None for it in ended)
        failed += len(unknown) + sum(it.gain is None for it in ended)
        if state in (State.CANCELLED, State.INTERRUPTED):
            narrate(
                f"{job.state().message}; {counted(proved, 'proof')} before it {'is' if proved == 1 else 'are'} kept"
            )
            return Status.INTERRUPTED
        if state is State.FAILED:
            narrate(job.state().message)
            failed += 1
    return Status.DONE_WITH_FAILURES if failed else Status.DONE


def _intention(model: str, what_ifs: Sequence[WhatIf]) -> str:
    words = ", ".join(what_if_words(it.id) for it in what_ifs) or "no what-if"
    return f"proving for {model}: {words}; each takes a minute of rounds at most"
