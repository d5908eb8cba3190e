"""`dlbricks runs`: what runs there are, how they get on, and telling them what to do."""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING

from dlbricks_tui.cli.output import Json, narrate, show, write_json
from dlbricks_tui.cli.parser import Groups, Parser, add_json_option, add_quiet_option
from dlbricks_tui.cli.status import Status

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dlbricks_tui.runs.run_folder import RunFolder, RunState

_SECONDS_BETWEEN_LOOKS = 0.2
_MOST_NAMES = 3


def register(groups: Groups) -> None:
    """Adds `runs` with its actions; without one it lists."""
    parser = groups.add_parser("runs", help="list the runs, watch, pause, cancel or resume one")
    add_json_option(parser)
    parser.set_defaults(handler=list_runs)
    actions = parser.add_subparsers(title="actions", metavar="ACTION")
    listing = actions.add_parser("list", help="list the runs, the newest last (what `runs` does by itself)")
    add_json_option(listing)
    listing.set_defaults(handler=list_runs)
    watching = _add(
        actions, "watch", "show how a run gets on until it ends; the run goes on if you stop watching", watch_run
    )
    _add(actions, "pause", "let a run stand still, and others measure meanwhile", pause_run)
    _add(actions, "cancel", "end a run; what it has measured is kept", cancel_run)
    resuming = _add(actions, "resume", "let a paused run go on, or carry on with one that has ended early", resume_run)
    for action in (watching, resuming):
        add_quiet_option(action)
    resuming.add_argument("--detach", action="store_true", help="carry on in a process apart")


def list_runs(args: argparse.Namespace) -> int:
    """Lists all runs of the data folder."""
    from dlbricks_tui.runs.run_folder import RunFolders

    states = RunFolders(args.data.runs).states()
    if args.json:
        write_json([_document(state) for state in states])
    elif states:
        _show(states)
    else:
        narrate("no run yet: `dlbricks run MODEL` makes the first")
    return Status.DONE


def watch_run(args: argparse.Namespace) -> int:
    """Shows a run from its beginning to its end."""
    from dlbricks_tui.cli.carrying_out import conclude
    from dlbricks_tui.cli.run_progress import shown
    from dlbricks_tui.runs.event_file import follow

    folder = _find(args)
    with shown(quiet=args.quiet) as progress:
        for event in follow(
            folder.events_file, lambda: folder.state().active, lambda: time.sleep(_SECONDS_BETWEEN_LOOKS)
        ):
            progress.take(event)
    return conclude(args, folder, folder.state(), left_out=len(progress.progress.left_out))


def pause_run(args: argparse.Namespace) -> int:
    """Asks a run to stand still."""
    return _told(args, _find(args).pause, "will stand still after the round that it is at")


def cancel_run(args: argparse.Namespace) -> int:
    """Asks a run to end."""
    return _told(args, _find(args).cancel, "is told to end")


def resume_run(args: argparse.Namespace) -> int:
    """Lets a paused run go on; one without a process is taken up again."""
    from dlbricks_tui.cli.carrying_out import carry_out
    from dlbricks_tui.runs.errors import RunError
    from dlbricks_tui.runs.request import read_request
    from dlbricks_tui.runs.run_folder import State

    folder = _find(args)
    state = folder.state()
    if not state.active:
        return carry_out(args, folder, read_request(folder.request_file))
    if state.state is State.PAUSED or folder.pause_file.exists():
        return _told(args, folder.unpause, "goes on")
    raise RunError(f"run {folder.run} is {state.state.value} already; `dlbricks runs watch {folder.run}` shows it")


def _add(actions: Groups, name: str, explained: str, handler: Callable[[argparse.Namespace], int]) -> Parser:
    parser = actions.add_parser(name, help=explained)
    parser.add_argument("run", metavar="RUN", help="the id of a run, how it begins, or `last`")
    add_json_option(parser)
    parser.set_defaults(handler=handler)
    return parser


def _find(args: argparse.Namespace) -> RunFolder:
    from dlbricks_tui.runs.run_folder import RunFolders

    return RunFolders(args.data.runs).find(args.run)


def _told(args: argparse.Namespace, tell: Callable[[], None], what: str) -> int:
    tell()
    folder = _find(args)
    if args.json:
        write_json(_document(folder.state()))
    narrate(f"run {folder.run} {what}")
    return Status.DONE


def _document(state: RunState) -> Json:
    from dlbricks_tui.cli.carrying_out import tally_document

    return {
        "run": state.run,
        "state": state.state.value,
        "message": state.message,
        "models": list(state.models),
        "bricks": tally_document(state.bricks),
        "end_to_end": tally_document(state.whole_models),
        "unfinished": state.bricks.unfinished + state.whole_models.unfinished,
        "started": state.started,
        "seconds": state.seconds,
        "pid": state.process.pid if state.active else None,
    }


def _show(states: Sequence[RunState]) -> None:
    from dlbricks_tui.cli.tables import name_cell, plain_table
    from dlbricks_tui.wording.numbers import duration

    table = plain_table("MODELS", "RUN", "STATE", "BRICKS", "MEASURED", "KNOWN", "FAILED", "TIME")
    for state in states:
        bricks = state.bricks
        counts = (bricks.total, bricks.measured, bricks.reused, bricks.failed)
        # Of one that goes on nobody keeps the time by the second.
        took = "" if state.active else duration(state.seconds)
        table.add_row(name_cell(_names(state.models)), state.run, state.state.value, *map(str, counts), took)
    show(table)


def _names(models: Sequence[str]) -> str:
    more = len(models) - _MOST_NAMES
    return ", ".join(models[:_MOST_NAMES]) + (f" and {more} more" if more > 0 else "")
