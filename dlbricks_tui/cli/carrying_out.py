"""What `dlbricks run` and `dlbricks runs resume` do with a run: carry it out, show it, and say what came of it."""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING

from dlbricks_tui.cli.output import Json, data_console, narrate, show, write, write_json
from dlbricks_tui.cli.status import Status
from dlbricks_tui.wording.numbers import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dlbricks_tui.bricks.decomposition import Decomposition
    from dlbricks_tui.estimate.system_estimate import SystemEstimate
    from dlbricks_tui.runs.request import RunRequest
    from dlbricks_tui.runs.run_folder import RunFolder, RunState, Tally
    from dlbricks_tui.settings import DataFolder


def carry_out(args: argparse.Namespace, folder: RunFolder, request: RunRequest) -> int:
    """Carries a run out in this process and prints the estimates that come of it, or starts it apart."""
    if args.detach:
        return _start_apart(args, folder)
    from dlbricks_tui.cli.run_progress import shown
    from dlbricks_tui.runs.host_lock import host_lock
    from dlbricks_tui.runs.work import Workplace
    from dlbricks_tui.share.running import execute_any

    place = Workplace(args.data, spent_seconds=time.monotonic() - args.began)
    with shown(quiet=args.quiet) as progress:
        state = execute_any(folder, request, place, host_lock(), progress.take)
    return conclude(args, folder, state, left_out=len(progress.progress.left_out))


def conclude(args: argparse.Namespace, folder: RunFolder, state: RunState, *, left_out: int = 0) -> int:
    """Prints what a run that has ended has found out, and returns how that counts."""
    from dlbricks_tui.runs.request import read_request
    from dlbricks_tui.runs.run_folder import State

    request = read_request(folder.request_file)
    # A run that was stopped before it had read its models has no estimates, and no time left to read them.
    unread = bool(state.message) and not state.bricks.total and not state.whole_models.total
    # Of a suite nobody here knows the models.
    found = [] if request.suite is not None or unread else _estimates(args.data, folder, request)
    if args.json:
        write_json(_document(state, request, found))
    elif request.suite is not None and not unread:
        write(f"{request.suite.results}\n")
    else:
        _show(found)
    for _, one in found:
        if one.estimate.obstacle:
            cure = "" if one.end_to_end else "; run it with --end-to-end to time the whole model"
            narrate(f"no estimate of {one.estimate.model} is possible: {one.estimate.obstacle}{cure}")
    bricks = state.bricks
    if not args.quiet:
        _tell_end(state)
    if state.state in (State.INTERRUPTED, State.CANCELLED):
        narrate(f"what was measured is kept; `dlbricks runs resume {state.run}` goes on with the rest")
        return Status.INTERRUPTED
    if _measured_nothing(state):
        narrate(f"nothing was measured: {state.message or 'no layer can be measured alone, so use --end-to-end'}")
        return Status.DONE_WITH_FAILURES
    failures = bricks.failed + state.whole_models.failed + left_out
    return Status.DONE_WITH_FAILURES if failures or state.state is State.FAILED else Status.DONE


def _tell_end(state: RunState) -> None:
    bricks = state.bricks
    narrate(
        f"run {state.run} {state.state.value} after {state.seconds:.1f} s: "
        f"{counted(bricks.measured, 'brick')} measured, {_if_any(bricks.unfinished, 'unfinished')}"
        f"{bricks.reused} known before, {bricks.failed} failed"
    )


def tally_document(tally: Tally) -> dict[str, Json]:
    """Counts by the contract of the command line."""
    return {"total": tally.total, "run": tally.measured, "reused": tally.reused, "failed": tally.failed}


def _measured_nothing(state: RunState) -> bool:
    """True if a run had something to measure and has neither a result nor a failure."""
    tallies = (state.bricks, state.whole_models)
    results = sum(it.measured + it.unfinished for it in tallies)
    known, failed = sum(it.reused for it in tallies), sum(it.failed for it in tallies)
    to_measure = sum(it.total for it in tallies) - known - failed
    return not results and not failed and (to_measure > 0 or not known)


def _if_any(count: int, what: str) -> str:
    return f"{count} {what}, " if count else ""


def _start_apart(args: argparse.Namespace, folder: RunFolder) -> int:
    from dlbricks_tui.share.launch import start_detached

    start_detached(folder, args.data)
    if args.json:
        state = folder.state()
        counts = tally_document(state.bricks)
        write_json(
            {"run": folder.run, "state": state.state.value, "bricks": counts, "seconds": state.seconds, "models": []}
        )
    else:
        write(f"{folder.run}\n")
    narrate(f"it runs apart; `dlbricks runs watch {folder.run}` shows how it gets on")
    return Status.DONE


def _estimates(data: DataFolder, folder: RunFolder, request: RunRequest) -> list[tuple[Decomposition, SystemEstimate]]:
    from dlbricks_tui.estimate.inquiry import Inquiry
    from dlbricks_tui.host.fingerprint import fingerprint
    from dlbricks_tui.models.library import Library
    from dlbricks_tui.runs.preparation import prepare
    from dlbricks_tui.settings import SAMPLE_MODELS
    from dlbricks_tui.store.store import Store

    system, runtime = fingerprint().id, request.runtime.identity
    library = Library(SAMPLE_MODELS, data.path)
    subjects = prepare(request, library, data.cache, folder.worker_log, lambda _: None)
    found = []
    with Store(data.store) as store:
        for subject in subjects:
            inquiry = Inquiry(store.generation, subject.decomposition)
            found.append((subject.decomposition, inquiry.on(system, runtime) or inquiry.empty(system, runtime)))
    return found


def _document(state: RunState, request: RunRequest, found: Sequence[tuple[Decomposition, SystemEstimate]]) -> Json:
    from dlbricks_tui.cli.estimate_output import estimate_document

    results: dict[str, Json] = {} if request.suite is None else {"results": str(request.suite.results)}
    return {
        **results,
        "run": state.run,
        "state": state.state.value,
        "message": state.message,
        "bricks": tally_document(state.bricks),
        "end_to_end": tally_document(state.whole_models),
        "unfinished": state.bricks.unfinished + state.whole_models.unfinished,
        "seconds": state.seconds,
        "models": [estimate_document(decomposition, one) for decomposition, one in found],
    }


def _show(found: Sequence[tuple[Decomposition, SystemEstimate]]) -> None:
    from dlbricks_tui.cli.estimate_view import estimate_view, estimates_view
    from dlbricks_tui.wording.numbers import precise_milliseconds

    if len(found) > 1:
        show(*estimates_view([one for _, one in found], data_console()))
        return
    for decomposition, one in found:
        if one.estimate.composed is not None or one.estimate.obstacle:
            show(*estimate_view(decomposition, one, data_console()))
        elif one.end_to_end is not None:
            latency = precise_milliseconds(one.end_to_end.value_ms)
            write(f"{one.estimate.model}: {latency} ms end to end; no layer was measured\n")
