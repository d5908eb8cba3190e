"""`dlbricks runs`: list the runs, watch, pause, cancel or resume one."""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING

from dlbricks_tui.cli.output import narrate, show, write_json
from dlbricks_tui.cli.parser import Groups, Parser, Status, add_json_option, add_quiet_option, add_schema_option
from dlbricks_tui.cli.run import Showing, carry_out, conclude, showing_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dlbricks_tui.runs.run_folder import RunFolder, RunState
    from dlbricks_tui.settings import DataFolder

_SECONDS_BETWEEN_LOOKS = 0.2


def register(groups: Groups) -> None:
    """Add `runs` with its actions; without one it lists."""
    parser = groups.add_parser("runs", help="list the runs, watch, pause, cancel or resume one")
    add_json_option(parser)
    add_schema_option(parser, "RunSummary", many=True)
    parser.set_defaults(handler=list_runs)
    actions = parser.add_subparsers(title="actions", metavar="ACTION")
    listing = actions.add_parser("list", help="list the runs, the newest last (as `runs` does by itself)")
    add_json_option(listing)
    listing.set_defaults(handler=list_runs)
    watching = _add(
        actions, "watch", "show the progress of a run until it ends; the run goes on if you stop watching", watch_run
    )
    _add(actions, "pause", "pause a run, so that others can measure meanwhile", pause_run)
    _add(actions, "cancel", "end a run; its results are kept", cancel_run)
    resuming = _add(actions, "resume", "let a paused run go on, or carry on with one that has ended early", resume_run)
    for action in (watching, resuming):
        add_quiet_option(action)
    resuming.add_argument("--detach", action="store_true", help="carry on in a process of its own")


def list_runs(args: argparse.Namespace) -> int:
    """List all runs of the data folder."""
    from dlbricks_tui.runs.run_folder import RunFolders

    states = RunFolders(args.data.runs).states()
    if args.json:
        from dlbricks_tui.answers.documents import document
        from dlbricks_tui.answers.results import run_summary

        write_json(document([run_summary(state) for state in states]))
    elif states:
        _show(states)
    else:
        narrate("no run yet: `dlbricks run MODEL` makes the first")
    return Status.DONE


def watch_run(args: argparse.Namespace) -> int:
    """Show a run from its beginning to its end."""
    from dlbricks_tui.cli.run_progress import shown
    from dlbricks_tui.runs.events import follow
    from dlbricks_tui.runs.run import read_outcome

    folder = _find(args.data, args.run)
    with shown(quiet=args.quiet) as progress:
        for event in follow(
            folder.events_file, lambda: folder.state().active, lambda: time.sleep(_SECONDS_BETWEEN_LOOKS)
        ):
            progress.take(event)
    left_out = len(progress.progress.left_out)
    return conclude(read_outcome(folder, args.data), Showing(args.json, args.quiet), left_out=left_out)


def pause_run(args: argparse.Namespace) -> int:
    """Pause a run after its current round."""
    folder = _find(args.data, args.run)
    folder.pause()
    return _confirm(folder, "pauses after its current round", as_json=args.json)


def cancel_run(args: argparse.Namespace) -> int:
    """Ask a run to end."""
    folder = _find(args.data, args.run)
    folder.cancel()
    return _confirm(folder, "is told to end", as_json=args.json)


def resume_run(args: argparse.Namespace) -> int:
    """Let a paused run go on, or take up a run without a process again."""
    from dlbricks_tui.runs.errors import RunError
    from dlbricks_tui.runs.request import read_request
    from dlbricks_tui.runs.run_folder import State

    folder = _find(args.data, args.run)
    state = folder.state()
    if not state.active:
        return carry_out(folder, read_request(folder.request_file), args.data, showing_of(args))
    if state.state is State.PAUSED or folder.pause_file.exists():
        folder.unpause()
        return _confirm(folder, "goes on", as_json=args.json)
    raise RunError(f"run {folder.run} is {state.state.value} already; `dlbricks runs watch {folder.run}` shows it")


def _add(actions: Groups, name: str, explained: str, handler: Callable[[argparse.Namespace], int]) -> Parser:
    parser = actions.add_parser(name, help=explained)
    parser.add_argument("run", metavar="RUN", help="the id of a run, its beginning, or `last`")
    add_json_option(parser)
    parser.set_defaults(handler=handler)
    return parser


def _find(data: DataFolder, run: str) -> RunFolder:
    from dlbricks_tui.runs.run_folder import RunFolders

    return RunFolders(data.runs).find(run)


def _confirm(folder: RunFolder, what: str, *, as_json: bool) -> int:
    if as_json:
        from dlbricks_tui.answers.documents import document
        from dlbricks_tui.answers.results import run_summary

        write_json(document(run_summary(folder.state())))
    narrate(f"run {folder.run} {what}")
    return Status.DONE


def _show(states: Sequence[RunState]) -> None:
    from dlbricks_tui.cli.drawing import name_cell, plain_table
    from dlbricks_tui.wording.numbers import duration
    from dlbricks_tui.wording.runs import names_of

    table = plain_table("MODELS", "RUN", "STATE", "BRICKS", "MEASURED", "KNOWN", "FAILED", "TIME")
    for state in states:
        bricks = state.bricks
        counts = (bricks.total, bricks.measured, bricks.reused, bricks.failed)
        # An active run does not store its time by the second.
        took = "" if state.active else duration(state.seconds)
        table.add_row(name_cell(names_of(state.models)), state.run, state.state.value, *map(str, counts), took)
    show(table)
