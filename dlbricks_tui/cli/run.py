"""`dlbricks run` and `dlbricks probe`: measure bricks of models, here or in a separate process."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

from dlbricks_tui.cli.options import (
    add_cutting_options,
    add_measuring_runtime_options,
    add_models_argument,
    inputs_of,
    runtime_given,
    values_of,
)
from dlbricks_tui.cli.output import narrate, show_parts, write, write_json
from dlbricks_tui.cli.parser import Arguments, Parser, Status
from dlbricks_tui.settings.cutting import CUTTING, LEVEL
from dlbricks_tui.settings.measuring import END_TO_END, ENOUGH, METHOD, PROBE_BRICKS, PROBE_SECONDS, RUNNING, TARGET
from dlbricks_tui.settings.variant import EXECUTION
from dlbricks_tui.wording.numbers import counted, in_ms, names_of, percent

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from dlbricks_tui.api.measuring import FollowedRun, MeasureOptions, RunJob
    from dlbricks_tui.jobs.folder import JobState
    from dlbricks_tui.runs.request import RunRequest
    from dlbricks_tui.runs.run import EstimatedModel, RunOutcome


def register(parser: Parser) -> None:
    """Add the options of `run`."""
    # Loaded here, as all that follows: the parsers of other commands need no store.
    from dlbricks_tui.api.measuring import MOST_MODELS_END_TO_END

    add_models_argument(parser, many=True)
    add_cutting_options(parser, level="fused")
    parser.add_settings(*EXECUTION, many=True)
    limit = f"yes, with --method inside, in a run of up to {MOST_MODELS_END_TO_END} models"
    parser.add_setting(END_TO_END, usual=limit)
    parser.add_setting(METHOD, usual="inside, unless runs are fixed in number or operators run at once")
    parser.add_setting(TARGET)
    add_measuring_options(parser)
    parser.add_schema("measuring.RunResult")
    parser.set_defaults(handler=run_models)


def register_probe(parser: Parser) -> None:
    """Add the options of `probe`."""
    add_models_argument(parser, many=True, needed=False, more=" (default: all with results in the store)")
    parser.add_settings(PROBE_SECONDS, PROBE_BRICKS)
    add_measuring_runtime_options(parser, many=False)
    parser.add_settings(*EXECUTION)
    for setting in (LEVEL, METHOD):
        parser.add_setting(setting, default=None, usual="that by which other systems have measured most")
    parser.end(probe, "measuring.ProbeResult", quiet=True)


def add_measuring_options(parser: Parser) -> None:
    """Take the runtime, the stopping rule and the way to show the run."""
    add_measuring_runtime_options(parser, many=True)
    parser.add_settings(*ENOUGH, to=parser.add_mutually_exclusive_group())
    parser.add_settings(*RUNNING)
    parser.add_quiet()
    parser.add_detach("run in another process; `dlbricks runs watch` shows it")
    parser.add_json()


def measure_options_of(args: Arguments) -> MeasureOptions:
    """Return the options that `add_measuring_options` takes."""
    from dlbricks_tui.api.measuring import MeasureOptions

    return MeasureOptions(**runtime_given(args), **values_of(args, (*ENOUGH, *RUNNING)))


def run_models(args: Arguments) -> int:
    """Start a run, and carry it out unless it is to be detached."""
    from dlbricks_tui.api.measuring import run_request

    given = values_of(args, (*CUTTING, LEVEL, *EXECUTION, END_TO_END, METHOD, TARGET))
    options = replace(measure_options_of(args), **given, **inputs_of(args))
    request = run_request(options, args.session.sources(args.models), args.session.data)
    request = replace(request, measured_only=not args.config.predicts)
    return carry_out(args.session.new_run(request), args)


def carry_out(run: RunJob, args: Arguments) -> int:
    """Carry a run out in this process and print its estimates, or start it in a separate process."""
    if args.detach:
        return _start_detached(run, as_json=args.json)
    outcome, followed = execute_shown(run, quiet=args.quiet, began=args.began)
    return conclude(outcome, followed, as_json=args.json)


def execute_shown(
    run: RunJob, *, quiet: bool, began: float | None = None, few_samples: bool = False
) -> tuple[RunOutcome, FollowedRun]:
    """Carry a run out in this process and show it; its time budget counts from the moment at which it began."""
    from dlbricks_tui.cli.progress import shown

    spent_seconds = 0.0 if began is None else time.monotonic() - began
    with shown(quiet=quiet, few_samples=few_samples) as display:
        return run.execute(display.take, spent_seconds), display.run


def conclude(outcome: RunOutcome, run: FollowedRun, *, as_json: bool) -> int:
    """Print the estimates of a run that has ended, and return its exit status."""
    request = outcome.request
    if as_json:
        from dlbricks_tui.api.measuring import run_result

        write_json(run_result(outcome.state, outcome))
    elif request.suite is not None and outcome.estimates is not None:
        write(f"{request.suite.results}\n")
    else:
        _show(outcome.estimates or (), request)
    return tell_end(outcome, run)


def tell_end(outcome: RunOutcome, run: FollowedRun) -> int:
    """Narrate the end of a run, and return its exit status."""
    state = outcome.state
    for _, one in outcome.estimates or ():
        if one.estimate.obstacle:
            tried = one.end_to_end or outcome.request.end_to_end
            cure = "" if tried else "; run it with --end-to-end to time the whole model"
            narrate(f"no estimate of {one.estimate.model} is possible: {one.estimate.obstacle}{cure}")
    if not run.quiet:
        narrate(_end_in_words(state, outcome.request))
    if state.was_stopped:
        narrate(f"what was measured is kept; `dlbricks runs resume {state.run}` goes on with the rest")
        return Status.INTERRUPTED
    # Nothing but its time budget ends a run without a fault before it has measured all.
    by_budget = state.is_finished and state.message
    cure = f"; `dlbricks runs resume {state.run} --time-budget S` gives it another" if by_budget else ""
    reaches_target = state.bricks.total and outcome.request.target is not None and not state.message
    if state.has_measured_nothing and not reaches_target:
        alone = "no layer can be measured alone"
        reason = state.message or (alone if outcome.request.end_to_end else f"{alone}, so use --end-to-end")
        narrate(f"nothing was measured: {reason}{cure}")
        return Status.DONE_WITH_FAILURES
    if cure:
        narrate(f"{state.message}{cure}")
    elif outcome.request.target is not None:
        narrate(*_missed(outcome.estimates or (), outcome.request.target))
    failures = state.bricks.failed + state.whole_models.failed + len(run.progress.left_out)
    return Status.of(failures or state.state.value == "failed")


def _missed(estimates: Iterable[EstimatedModel], target: float) -> Iterator[str]:
    """Yield the models whose intervals are wider than the target of a run that has measured what narrows them."""
    for _, one in estimates:
        composed = one.estimate.composed
        if composed is not None and composed.half_width > target:
            yield (
                f"{one.estimate.model}: the target of {percent(target, 1)} was not reached, the interval is "
                f"+-{percent(composed.half_width, 1)}, and no other brick narrows it; a smaller --target-ci measures "
                "longer"
            )


def _end_in_words(state: JobState, request: RunRequest) -> str:
    bricks, ended = state.bricks, f"run {state.run} {state.state.value} after {state.seconds:.1f} s: "
    if not request.bricks:
        return f"{ended}{counted(state.whole_models.measured, 'model')} timed end to end"
    left = bricks.total - bricks.measured - bricks.unfinished - bricks.reused - bricks.failed
    # With a message, its time was over before it had reached the target.
    reaches_target = request.target is not None and state.is_finished and not state.message
    spared = f", {left} not needed" if reaches_target else ""
    unfinished = f"{bricks.unfinished} unfinished, " if bricks.unfinished else ""
    known = f"{bricks.reused} known before, {bricks.failed} failed"
    return f"{ended}{counted(bricks.measured, 'brick')} measured, {unfinished}{known}{spared}"


def _start_detached(run: RunJob, *, as_json: bool) -> int:
    from dlbricks_tui.api.jobs import start_apart

    start_apart(run.folder, run.data)
    name = run.folder.run
    if as_json:
        from dlbricks_tui.api.measuring import run_result

        write_json(run_result(run.folder.state()))
    else:
        write(f"{name}\n")
    narrate(f"it runs in a separate process; `dlbricks runs watch {name}` shows its progress")
    return Status.DONE


def _show(found: Sequence[EstimatedModel], request: RunRequest) -> None:
    if len(request.parts) > 1 or len(request.batch_sizes) > 1:
        from dlbricks_tui.api.measuring import points_of_run
        from dlbricks_tui.cli.estimate import show_variants

        for name, held in points_of_run(found, request).items():
            show_variants(held, [name])
        return
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


def probe(args: Arguments) -> int:
    """Measure the most informative bricks, and print the estimates of the models."""
    from dlbricks_tui.api.measuring import ProbeOptions, known_systems, probe_request

    given = values_of(args, (*EXECUTION, PROBE_SECONDS, PROBE_BRICKS, LEVEL, METHOD))
    options = ProbeOptions(**runtime_given(args), **given, **inputs_of(args))
    request = probe_request(options, args.session.sources(args.models), args.session.data)
    others = known_systems(request, args.session.data)
    run = args.session.new_run(request)
    outcome, followed = execute_shown(run, quiet=args.quiet, began=args.began, few_samples=True)
    known = [one for _, one in outcome.estimates or () if one.estimate.composed is not None]
    if args.json:
        from dlbricks_tui.api.measuring import probe_result

        write_json(probe_result(outcome, others))
    elif known:
        from dlbricks_tui.documents.estimates import intervals_parts

        show_parts(intervals_parts(known))
    if not args.quiet:
        narrate(f"compared with {names_of(others)}")
    return tell_end(outcome, followed)
