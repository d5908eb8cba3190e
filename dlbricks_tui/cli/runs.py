"""`dlbricks runs`: list the runs, watch, replay, pause, cancel or resume one."""

import argparse
import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from dlbricks_tui.answers.measuring import ReplayedModel, ReplayedRun, replayed_run
from dlbricks_tui.cli.output import narrate, write_json
from dlbricks_tui.cli.parser import (
    Actions,
    Handler,
    Parser,
    Status,
    Typed,
    add_action,
    add_job_options,
    add_listing,
    add_schema_option,
)
from dlbricks_tui.cli.rendering import show_parts
from dlbricks_tui.cli.run_progress import shown
from dlbricks_tui.documents.parts import BLANK_LINE, Column, Part, Sentence, Table, bar_column, name_column
from dlbricks_tui.jobs.errors import JobError
from dlbricks_tui.jobs.folder import JobState, RunFolder, RunFolders, State
from dlbricks_tui.jobs.replay import Replay, events_so_far, play
from dlbricks_tui.runs.events import RunEvents
from dlbricks_tui.settings.measuring import TIME_BUDGET
from dlbricks_tui.wording.numbers import duration, in_ms, milliseconds, names_of, or_dash, partly, signed_percent

_SECONDS_BETWEEN_LOOKS = 0.2


def register(parser: Parser) -> None:
    """Add the actions of `runs`; without one it lists."""
    actions = add_listing(parser, "list the runs, the newest last", list_runs)
    add_schema_option(parser, "RunSummary", module="measuring", many=True)
    watching = _add(
        actions, "watch", "show the progress of a run until it ends; the run goes on if you stop watching", watch_run
    )
    replaying = _add(
        actions, "replay", "show a run again from its events, at any speed; nothing is measured", replay_stored
    )
    add_schema_option(replaying, "ReplayedRun", module="measuring")
    _add(actions, "pause", "pause a run, so that others can measure meanwhile", pause_run)
    _add(actions, "cancel", "end a run; its results are kept", cancel_run)
    resuming = _add(actions, "resume", "let a paused run go on, or carry on with one that has ended early", resume_run)
    add_job_options(watching, resuming, replaying)
    resuming.add_argument(
        "--time-budget",
        metavar="S",
        type=_budget,
        help="another time budget in seconds, `inf` for none (default: that of the run, anew)",
    )


def list_runs(args: argparse.Namespace) -> int:
    """List all runs of the data folder."""
    found = RunFolders(args.data.runs).stored()
    states = found.states
    for line in found.unreadable.values():
        narrate(line)
    if args.json:
        from dlbricks_tui.answers.measuring import run_summary

        write_json([run_summary(state) for state in states])
    elif states:
        _show(states)
    elif not found.unreadable:
        narrate("no run yet: `dlbricks run MODEL` makes the first")
    return Status.DONE_WITH_FAILURES if found.unreadable else Status.DONE


def watch_run(args: argparse.Namespace) -> int:
    """Show a run from its beginning to its end."""
    # Loaded here, as in `resume_run`: the other actions start sooner without.
    from dlbricks_tui.cli.run import Showing, conclude
    from dlbricks_tui.cli.run_progress import shown
    from dlbricks_tui.jobs.events import follow
    from dlbricks_tui.runs.run import read_outcome

    folder = _folder(args)
    with shown(quiet=args.quiet) as progress:
        for event in follow(
            RunEvents(folder.events_file), lambda: folder.state().active, lambda: time.sleep(_SECONDS_BETWEEN_LOOKS)
        ):
            progress.take(event)
    left_out = len(progress.progress.left_out)
    return conclude(read_outcome(folder, args.data), Showing(args.json, args.quiet), left_out=left_out)


def replay_stored(args: argparse.Namespace) -> int:
    """Show a run again."""
    return replay_run(_folder(args), args.speed, ReplayShowing(json=args.json, quiet=args.quiet))


def pause_run(args: argparse.Namespace) -> int:
    """Pause a run after its current round."""
    folder = _folder(args)
    folder.pause()
    return _confirm(folder, "pauses after its current round", as_json=args.json)


def cancel_run(args: argparse.Namespace) -> int:
    """Ask a run to end."""
    folder = _folder(args)
    folder.cancel()
    return _confirm(folder, "is told to end", as_json=args.json)


def resume_run(args: argparse.Namespace) -> int:
    """Let a paused run go on, or take up a run without a process again."""
    folder = _folder(args)
    state = folder.state()
    if not state.active:
        from dlbricks_tui.cli.run import carry_out, showing_of
        from dlbricks_tui.runs.request import read_request, write_request

        request = read_request(folder.request_file)
        is_whole = state.state is State.FINISHED and state.bricks.is_complete and state.whole_models.is_complete
        # A run with a budget may have planned a part only.
        if is_whole and request.time_budget_seconds is None and args.time_budget is None:
            # Its tally is the record of what it has done.
            again = "`dlbricks run MODEL --again` measures anew"
            raise JobError(f"run {folder.run} is finished, and nothing of it is missing: {again}")
        if args.time_budget is not None:
            # Stored for a separate process, and for the next time.
            budget = None if math.isinf(args.time_budget) else args.time_budget
            request = replace(request, time_budget_seconds=budget)
            write_request(folder.request_file, request)
        return carry_out(folder, request, args.data, showing_of(args))
    if args.time_budget is not None:
        raise JobError(f"run {folder.run} is {state.state.value}: cancel it before you resume it with another budget")
    if state.state is State.PAUSED or folder.pause_file.exists():
        folder.unpause()
        return _confirm(folder, "goes on", as_json=args.json)
    raise JobError(f"run {folder.run} is {state.state.value} already; `dlbricks runs watch {folder.run}` shows it")


def _budget(text: str) -> float:
    """Return the seconds in a text, infinitely many for `inf`."""
    return math.inf if text == "inf" else Typed(TIME_BUDGET.kind)(text)


def _add(actions: Actions, name: str, about: str, handler: Handler) -> Parser:
    parser = add_action(actions, name, about, handler)
    parser.add_argument("run", metavar="RUN", help="the id of a run, its beginning, or `last`")
    return parser


def _folder(args: argparse.Namespace) -> RunFolder:
    return RunFolders(args.data.runs).find(args.run)


def _confirm(folder: RunFolder, what: str, *, as_json: bool) -> int:
    if as_json:
        from dlbricks_tui.answers.measuring import run_summary

        write_json(run_summary(folder.state()))
    narrate(f"run {folder.run} {what}")
    return Status.DONE


def _show(states: Sequence[JobState]) -> None:
    from dlbricks_tui.cli.rendering import show_parts
    from dlbricks_tui.documents.parts import Column, Table, name_column

    columns: tuple[Column[JobState], ...] = (
        name_column("models", lambda it: names_of(it.models)),
        Column("run", lambda it: it.run),
        Column("state", lambda it: it.state.value),
        Column("bricks", lambda it: it.bricks.total),
        Column("measured", lambda it: it.bricks.measured),
        Column("known", lambda it: it.bricks.reused),
        Column("failed", lambda it: it.bricks.failed),
        # An active run does not store its time by the second.
        Column("time", lambda it: "" if it.active else duration(it.seconds)),
    )
    show_parts([Table(columns, states)])


@dataclass(frozen=True, slots=True)
class ReplayShowing:
    """How a replay is shown."""

    json: bool = False
    quiet: bool = False


def replay_run(folder: RunFolder, speed: float, showing: ReplayShowing) -> int:
    """Show the events of a run again, print the last estimates that they tell, and return the exit status."""
    events = events_so_far(folder, RunEvents(folder.events_file))
    replay, seconds = Replay(events, speed, time.monotonic), events[-1].seconds
    if not showing.quiet:
        narrate(
            f"replay of run {folder.run}: {duration(seconds)} of it, {speed:g} times as fast; nothing is measured now"
        )
    with shown(quiet=showing.quiet, clock=lambda: replay.position) as display:
        for event in play(replay, time.sleep):
            display.take(event)
    found = replayed_run(folder.run, display.progress, seconds)
    if showing.json:
        write_json(found)
    else:
        show_parts(_replayed_parts(found))
    if not showing.quiet:
        so_far = "" if display.progress.ended else ", and may go on"
        narrate(f"end of the replay: run {folder.run} was {found.state.value}{so_far}")
    return Status.DONE


def _replayed_parts(found: ReplayedRun) -> Iterator[Part]:
    if not found.models:
        yield Sentence("its events tell no estimate")
        return
    longest_ms = max((it.sequential_ms or 0.0 for it in found.models), default=0.0) or 1.0
    columns: tuple[Column[ReplayedModel], ...] = (
        name_column("model", lambda it: it.model),
        Column("sequential", lambda it: _sum(it, it.sequential_ms)),
        bar_column(lambda it: (it.sequential_ms or 0.0) / longest_ms),
        Column("95 %", _interval),
        Column("parallel", lambda it: _sum(it, it.parallel_ms)),
        Column("layers", lambda it: f"{it.measured_layers}/{it.layers}"),
        Column("end to end", lambda it: or_dash(in_ms, it.measured_ms)),
        Column("error", lambda it: or_dash(signed_percent, it.error)),
    )
    yield Sentence(found.runtime)
    yield BLANK_LINE
    yield Table(columns, found.models)


def _sum(it: ReplayedModel, latency_ms: float | None) -> str:
    return "-" if latency_ms is None else partly(latency_ms, part=it.measured_layers < it.layers)


def _interval(it: ReplayedModel) -> str:
    if it.low_ms is None or it.high_ms is None:
        return "-"
    return f"{milliseconds(it.low_ms, precise=True)} to {in_ms(it.high_ms)}"
