"""`dlbricks run`: measure the bricks of models that the store lacks, here or in a separate process."""

import argparse
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from dlbricks_tui.answers.estimates import TIME_WHOLE, model_estimate
from dlbricks_tui.answers.measuring import MOST_MODELS_END_TO_END, MeasureOptions, run_request, run_result
from dlbricks_tui.answers.opening import library
from dlbricks_tui.cli.options import (
    add_cutting_options,
    add_measuring_runtime_options,
    add_models_argument,
    add_variant_options,
    inputs_of,
    runtime_given,
    values_of,
)
from dlbricks_tui.cli.output import narrate, narrate_once, write, write_json
from dlbricks_tui.cli.parser import (
    Parser,
    Status,
    add_json_option,
    add_quiet_option,
    add_schema_option,
    add_setting,
    add_settings,
)
from dlbricks_tui.cli.run_progress import shown
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.host.fingerprint import fingerprint
from dlbricks_tui.host.queue import host_queue
from dlbricks_tui.jobs.folder import JobState, RunFolder, State
from dlbricks_tui.models.graph import Level
from dlbricks_tui.runs.control import create_run
from dlbricks_tui.runs.request import RunRequest
from dlbricks_tui.runs.run import EstimatedModel, RunOutcome
from dlbricks_tui.runs.work import Workplace
from dlbricks_tui.runtime.variant import remarks_on
from dlbricks_tui.settings.cutting import CUTTING, LEVEL
from dlbricks_tui.settings.measuring import END_TO_END, ENOUGH, METHOD, RUNNING, TARGET
from dlbricks_tui.settings.variant import EXECUTION
from dlbricks_tui.share.suites.running import execute_any, start_detached
from dlbricks_tui.wording.numbers import counted, in_ms, too_many_threads


def register(parser: Parser) -> None:
    """Add the options of `run`."""
    add_models_argument(parser, many=True)
    add_cutting_options(parser, level=Level.FUSED)
    add_variant_options(parser)
    limit = f"yes, with --method inside, in a run of up to {MOST_MODELS_END_TO_END} models"
    add_setting(parser, END_TO_END, usual=limit)
    usual = "inside, unless runs are fixed in number or operators run at once"
    add_setting(parser, METHOD, usual=usual)
    add_setting(parser, TARGET)
    add_measuring_options(parser)
    add_schema_option(parser, "RunResult", module="measuring")
    parser.set_defaults(handler=run_models)


def add_measuring_options(parser: Parser) -> None:
    """Take the runtime, the stopping rule and the way to show the run."""
    add_measuring_runtime_options(parser, many=True)
    add_settings(parser.add_mutually_exclusive_group(), *ENOUGH)
    add_settings(parser, *RUNNING)
    add_quiet_option(parser)
    parser.add_argument("--detach", action="store_true", help="run in another process; `dlbricks runs watch` shows it")
    add_json_option(parser)


def run_models(args: argparse.Namespace) -> int:
    """Start a run, and carry it out unless it is to be detached."""
    options = replace(
        measure_options_of(args),
        **values_of(args, (*CUTTING, LEVEL, *EXECUTION, END_TO_END, METHOD, TARGET)),
        **inputs_of(args),
    )
    request = run_request(options, library(args.data).find_all(args.models), args.data)
    folder = create_run(request, args.data)
    tell_variants(request)
    return carry_out(folder, request, args.data, showing_of(args))


def tell_variants(request: RunRequest) -> None:
    """Narrate what a user should know of the threads and precisions of a run."""
    settings = [part.runtime.settings for part in request.parts]
    if warning := too_many_threads((it.threads for it in settings), fingerprint().cores):
        narrate_once(warning)
    for remark in remarks_on(it.precision for it in settings):
        narrate_once(remark)


def measure_options_of(args: argparse.Namespace) -> MeasureOptions:
    """Return the options that `add_measuring_options` takes."""
    return MeasureOptions(
        **runtime_given(args),
        **values_of(args, (*ENOUGH, *RUNNING)),
    )


@dataclass(frozen=True, slots=True)
class Showing:
    """Options of a command for showing a run."""

    json: bool
    quiet: bool
    detach: bool = False
    # The moment at which the command began; a time budget counts from there.
    began: float = 0.0


def showing_of(args: argparse.Namespace) -> Showing:
    """Return how the command is to show its run."""
    return Showing(args.json, args.quiet, args.detach, args.began)


def carry_out(folder: RunFolder, request: RunRequest, data: DataFolder, showing: Showing) -> int:
    """Carry a run out in this process and print its estimates, or start it in a separate process."""
    if showing.detach:
        return _start_detached(folder, data, as_json=showing.json)
    place = Workplace(data, spent_seconds=time.monotonic() - showing.began)
    with shown(quiet=showing.quiet) as progress:
        outcome = execute_any(folder, request, place, host_queue(), progress.take)
    return conclude(outcome, showing, left_out=len(progress.progress.left_out))


def conclude(outcome: RunOutcome, showing: Showing, *, left_out: int = 0) -> int:
    """Print the estimates of a run that has ended, and return its exit status."""
    request, state, found = outcome.request, outcome.state, outcome.estimates or ()
    if showing.json:
        _write_result(state, request, found)
    elif request.suite is not None and outcome.estimates is not None:
        write(f"{request.suite.results}\n")
    else:
        _show(found, request)
    return tell_end(outcome, quiet=showing.quiet, left_out=left_out)


def tell_end(outcome: RunOutcome, *, quiet: bool, left_out: int = 0) -> int:
    """Narrate the end of a run, and return its exit status; `left_out` models could not be read."""
    state = outcome.state
    for _, one in outcome.estimates or ():
        if one.estimate.obstacle:
            tried = one.end_to_end or outcome.request.end_to_end
            cure = "" if tried else "; run it with --end-to-end to time the whole model"
            narrate(f"no estimate of {one.estimate.model} is possible: {one.estimate.obstacle}{cure}")
    if not quiet:
        _tell_end(state, outcome.request)
    if state.state in (State.INTERRUPTED, State.CANCELLED):
        narrate(f"what was measured is kept; `dlbricks runs resume {state.run}` goes on with the rest")
        return Status.INTERRUPTED
    cure = f"; `dlbricks runs resume {state.run} --time-budget S` gives it another" if _ended_by_budget(state) else ""
    if _measured_nothing(state):
        alone = "no layer can be measured alone"
        reason = state.message or (alone if outcome.request.end_to_end else f"{alone}, so use --end-to-end")
        narrate(f"nothing was measured: {reason}{cure}")
        return Status.DONE_WITH_FAILURES
    if cure:
        narrate(f"{state.message}{cure}")
    failures = state.bricks.failed + state.whole_models.failed + left_out
    return Status.DONE_WITH_FAILURES if failures or state.state is State.FAILED else Status.DONE


def _tell_end(state: JobState, request: RunRequest) -> None:
    bricks = state.bricks
    left = bricks.total - bricks.measured - bricks.unfinished - bricks.reused - bricks.failed
    if not request.bricks:
        timed = counted(state.whole_models.measured, "model")
        narrate(f"run {state.run} {state.state.value} after {state.seconds:.1f} s: {timed} timed end to end")
        return
    spared = f", {left} not needed" if request.target is not None and state.state is State.FINISHED else ""
    unfinished = f"{bricks.unfinished} unfinished, " if bricks.unfinished else ""
    narrate(
        f"run {state.run} {state.state.value} after {state.seconds:.1f} s: "
        f"{counted(bricks.measured, 'brick')} measured, {unfinished}{bricks.reused} known before, "
        f"{bricks.failed} failed{spared}"
    )


def _ended_by_budget(state: JobState) -> bool:
    # Nothing else ends a run without a fault before it has measured all.
    return state.state is State.FINISHED and bool(state.message)


def _measured_nothing(state: JobState) -> bool:
    """Return True if a run had something to measure and has neither a result nor a failure."""
    tallies = (state.bricks, state.whole_models)
    results = sum(it.measured + it.unfinished for it in tallies)
    known, failed = sum(it.reused for it in tallies), sum(it.failed for it in tallies)
    to_measure = sum(it.total for it in tallies) - known - failed
    return not results and not failed and (to_measure > 0 or not known)


def _start_detached(folder: RunFolder, data: DataFolder, *, as_json: bool) -> int:
    start_detached(folder, data)
    if as_json:
        write_json(run_result(folder.state()))
    else:
        write(f"{folder.run}\n")
    narrate(f"it runs in a separate process; `dlbricks runs watch {folder.run}` shows its progress")
    return Status.DONE


def _write_result(state: JobState, request: RunRequest, found: Sequence[EstimatedModel]) -> None:
    models = [model_estimate(decomposition, one) for decomposition, one in found]
    if request.end_to_end:
        # The model was timed just now, or cannot be.
        models = [replace(it, next_step=None) if it.next_step == TIME_WHOLE else it for it in models]
    write_json(run_result(state, models, None if request.suite is None else request.suite.results))


def _show(found: Sequence[EstimatedModel], request: RunRequest) -> None:
    if len(request.parts) > 1 or len(request.batch_sizes) > 1:
        _show_variants(found, request)
        return
    # Loaded here: a detached run and the JSON document need no tables.
    from dlbricks_tui.cli.rendering import show_parts
    from dlbricks_tui.documents.estimate import EstimateDocument
    from dlbricks_tui.documents.estimates import estimates_parts

    if len(found) > 1:
        show_parts(estimates_parts([one for _, one in found]))
        return
    for decomposition, one in found:
        if one.estimate.composed is not None or one.estimate.obstacle:
            show_parts(EstimateDocument(decomposition.graph, one).whole())
        elif one.end_to_end is not None:
            latency = in_ms(one.end_to_end.value_ms)
            write(f"{one.estimate.model}: {latency} end to end; no layer was measured\n")


def _show_variants(found: Sequence[EstimatedModel], request: RunRequest) -> None:
    from dlbricks_tui.cli.estimate_remarks import write_variants
    from dlbricks_tui.estimate.ranking import Point

    runtimes = {part.runtime.identity: part.runtime for part in request.parts}
    points: dict[str, list[Point]] = {}
    for decomposition, one in found:
        runtime = runtimes[one.way.runtime]
        point = Point(runtime.name, runtime.settings.threads, one)
        points.setdefault(decomposition.graph.name, []).append(point)
    for name, held in points.items():
        write_variants(held, [name])
