"""`dlbricks fleet`: measure on many hosts, and watch and control such runs."""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from dlbricks_tui.answers.fleets import FleetOptions, fleet_request, require_resumable
from dlbricks_tui.cli.fleet_hosts import add_host_actions, add_hosts_option
from dlbricks_tui.cli.options import (
    add_cutting_options,
    add_models_argument,
    add_variant_options,
    inputs_of,
    values_of,
)
from dlbricks_tui.cli.output import narrate, write, write_json
from dlbricks_tui.cli.parser import (
    Actions,
    Handler,
    Parser,
    Status,
    add_action,
    add_job_options,
    add_listing,
    add_schema_option,
    add_setting,
)
from dlbricks_tui.fleet.errors import FleetError
from dlbricks_tui.jobs.folder import JobState, State
from dlbricks_tui.models.graph import Level
from dlbricks_tui.settings.cutting import CUTTING, LEVEL
from dlbricks_tui.settings.fleets import PROBE, QUESTION
from dlbricks_tui.settings.variant import EXECUTION
from dlbricks_tui.wording.numbers import counted, names_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dlbricks_tui.answers.fleets import FleetSummary
    from dlbricks_tui.fleet.folder import FleetFolder
    from dlbricks_tui.fleet.request import FleetProgress

_SECONDS_BETWEEN_LOOKS = 0.5


def register(parser: Parser) -> None:
    """Add the actions of `fleet`; without one it lists."""
    actions = add_listing(parser, "list the fleet runs, the newest last", list_fleets)
    add_schema_option(parser, "FleetSummary", module="fleets", many=True)
    _add_run(actions)
    watching = _add(
        actions, "status", "show the hosts of a fleet run, and the models on them", show_status, newest=True
    )
    watching.add_argument("--follow", action="store_true", help="go on until the fleet run ends")
    add_schema_option(watching, "FleetResult", module="fleets")
    for name, about, handler in (
        ("pause", "let the hosts pause, so that others can measure there", pause_fleet),
        ("cancel", "end a fleet run, or the work of one host; results are kept", cancel_fleet),
    ):
        _add(actions, name, about, handler).add_argument("--host", metavar="NAME", help="only this host")
    resuming = _add(
        actions, "resume", "let paused hosts go on, or carry on with a fleet run that has ended early", resume_fleet
    )
    resuming.add_argument("--host", metavar="NAME", help="only this host")
    add_job_options(watching, resuming)
    adding = _add(actions, "add", "let more hosts take part in a fleet run", add_hosts)
    add_hosts_option(adding)
    add_host_actions(actions)


def _add_run(actions: Actions) -> None:
    running = add_action(
        actions, "run", "measure the bricks of models on many hosts; the models stay here", run_fleet, json=False
    )
    add_models_argument(running, many=True)
    where = running.add_mutually_exclusive_group(required=True)
    where.add_argument(
        "--hosts", metavar="FILE", type=Path, help="hosts to reach over SSH (see docs/guides/many-hosts.md)"
    )
    where.add_argument(
        "--scheduler", metavar="ADDRESS", default="", help="a dask scheduler, such as tls://10.0.0.1:8786"
    )
    add_setting(running, QUESTION)
    add_setting(running, PROBE)
    running.add_argument(
        "--allow-plain",
        action="store_true",
        help="use a scheduler without TLS (tcp://) although other machines can reach it",
    )
    add_cutting_options(running, level=Level.FUSED)
    add_variant_options(running)
    from dlbricks_tui.cli.run import add_measuring_options

    add_measuring_options(running)
    add_schema_option(running, "FleetResult", module="fleets")


def _add(actions: Actions, name: str, about: str, handler: Handler, *, newest: bool = False) -> Parser:
    parser = add_action(actions, name, about, handler)
    about_id = "the id of a fleet run, its beginning, or `last`"
    if newest:
        parser.add_argument("fleet", metavar="ID", nargs="?", default="last", help=f"{about_id} (default: last)")
    else:
        parser.add_argument("fleet", metavar="ID", help=about_id)
    return parser


def run_fleet(args: argparse.Namespace) -> int:
    """Start a fleet run, and drive it unless it is to be detached."""
    from dlbricks_tui.answers.opening import library
    from dlbricks_tui.cli.run import measure_options_of, tell_variants
    from dlbricks_tui.fleet.folder import create_fleet

    measuring = replace(measure_options_of(args), **values_of(args, (*CUTTING, LEVEL, *EXECUTION)), **inputs_of(args))
    options = FleetOptions(
        hosts=args.hosts,
        scheduler=args.scheduler,
        **values_of(args, (QUESTION, PROBE)),
        allow_plain=args.allow_plain,
        measuring=measuring,
    )
    request = fleet_request(options, library(args.data).find_all(args.models), args.data)
    folder = create_fleet(request, args.data)
    tell_variants(request.run)
    return _drive(folder, args)


def show_status(args: argparse.Namespace) -> int:
    """Show a fleet run as it is now, or until it ends."""
    folder = _folder(args)
    if args.follow:
        from dlbricks_tui.cli.fleet_progress import shown_fleet
        from dlbricks_tui.fleet.request import EVENTS
        from dlbricks_tui.jobs.events import EventReader

        reader = EventReader(folder.events_file, EVENTS)
        with shown_fleet(quiet=args.quiet) as shown:
            is_active = True
            while is_active:
                # Looked at before reading, so that the last events are read.
                is_active = folder.state().active
                for event in reader.new():
                    shown.take(event)
                if is_active:
                    time.sleep(_SECONDS_BETWEEN_LOOKS)
    state, progress = folder.state(), folder.progress()
    _show(state, progress, as_json=args.json)
    _tell_reason(state, progress)
    return Status.DONE if state.active else _status(state, progress, is_end=args.follow)


def list_fleets(args: argparse.Namespace) -> int:
    """List all fleet runs of the data folder."""
    from dlbricks_tui.answers.fleets import fleet_summary
    from dlbricks_tui.fleet.folder import FleetFolders

    stored = FleetFolders(args.data.fleets).stored()
    found = [fleet_summary(state) for state in stored.states]
    for line in stored.unreadable.values():
        narrate(line)
    if args.json:
        write_json(found)
    elif found:
        _list(found)
    elif not stored.unreadable:
        narrate("no fleet run yet: `dlbricks fleet run MODEL --hosts FILE` makes the first")
    return Status.DONE_WITH_FAILURES if stored.unreadable else Status.DONE


def pause_fleet(args: argparse.Namespace) -> int:
    """Pause all hosts of a fleet run, or one of them."""
    folder = _folder(args)
    if args.host is None:
        folder.pause()
        return _confirm(folder, "pauses after the current rounds", args)
    folder.command_host(args.host, "pause")
    return _confirm(folder, f"pauses on {args.host} after the current round", args)


def cancel_fleet(args: argparse.Namespace) -> int:
    """Ask a fleet run to end, or one host to end its work."""
    folder = _folder(args)
    if args.host is None:
        folder.cancel()
        return _confirm(folder, "is told to end", args)
    folder.command_host(args.host, "cancel")
    return _confirm(folder, f"gives {args.host} no more work", args)


def resume_fleet(args: argparse.Namespace) -> int:
    """Let paused hosts go on, or drive a fleet run again that has no driver."""
    folder = _folder(args)
    state = folder.state()
    if args.host is not None:
        folder.command_host(args.host, "resume")
        return _confirm(folder, f"goes on with {args.host}", args)
    if not state.active and folder.is_complete:
        progress = folder.progress()
        _show(state, progress, as_json=args.json)
        narrate(f"fleet run {folder.run} is complete: there is nothing to resume")
        return _status(state, progress)
    if not state.active:
        require_resumable(folder)
        return _drive(folder, args)
    if state.state is State.PAUSED or folder.pause_file.exists():
        folder.unpause()
        return _confirm(folder, "goes on", args)
    raise FleetError(
        f"fleet run {folder.run} is {state.state.value} already; `dlbricks fleet status {folder.run} --follow` shows it"
    )


def add_hosts(args: argparse.Namespace) -> int:
    """Let the hosts of another hosts file take part."""
    from dlbricks_tui.fleet.folder import read_fleet_request
    from dlbricks_tui.fleet.hosts_file import read_hosts

    folder = _folder(args)
    if scheduler := read_fleet_request(folder.request_file).scheduler:
        raise FleetError(
            f"the hosts of fleet run {folder.run} join by themselves: start `dlbricks fleet worker {scheduler} --name "
            "NAME` on the new one"
        )
    hosts = read_hosts(args.hosts)
    folder.add_hosts(hosts)
    return _confirm(folder, f"takes in {', '.join(host.name for host in hosts)}", args)


def _drive(folder: FleetFolder, args: argparse.Namespace) -> int:
    """Drive a fleet run in this process and print what was found, or start it in a separate process."""
    from dlbricks_tui.fleet.driving.running import FleetPlace, execute_fleet, start_detached

    if args.detach:
        start_detached(folder, args.data)
        if args.json:
            _show(folder.state(), folder.progress(), as_json=True)
        else:
            write(f"{folder.run}\n")
        narrate(f"it runs in a separate process; `dlbricks fleet status {folder.run} --follow` shows its progress")
        return Status.DONE
    from dlbricks_tui.cli.fleet_progress import shown_fleet

    with shown_fleet(quiet=args.quiet) as shown:
        state = execute_fleet(folder, FleetPlace(args.data), shown.take)
    progress = folder.progress()
    _show(state, progress, as_json=args.json)
    if not args.quiet:
        bricks = state.bricks
        narrate(
            f"fleet run {state.run} {state.state.value} after {state.seconds:.1f} s: "
            f"{counted(bricks.measured, 'brick')} measured, {bricks.reused:,} known before, {bricks.failed:,} failed"
        )
    _tell_reason(state, progress)
    return _status(state, progress)


def _tell_reason(state: JobState, progress: FleetProgress) -> None:
    """Tell why a fleet run has ended, unless the table of its hosts has told it."""
    if state.message and not any(row.message and row.message in state.message for row in progress.hosts.values()):
        narrate(state.message)


def _list(found: Sequence[FleetSummary]) -> None:
    from dlbricks_tui.cli.rendering import show_parts
    from dlbricks_tui.documents.parts import Column, Table, name_column

    columns: tuple[Column[FleetSummary], ...] = (
        name_column("models", lambda it: names_of(it.models)),
        Column("fleet run", lambda it: it.fleet),
        Column("state", lambda it: it.state.value),
        Column("bricks", lambda it: it.bricks),
        Column("measured", lambda it: it.measured),
        Column("known", lambda it: it.known),
        Column("failed", lambda it: it.failed),
    )
    show_parts([Table(columns, found)])


def _status(state: JobState, progress: FleetProgress, *, is_end: bool = True) -> int:
    """Return the exit status for a fleet run that has ended; `is_end` is True if this command has followed its end."""
    from dlbricks_tui.answers.fleets import fleet_result

    if state.state in (State.INTERRUPTED, State.CANCELLED):
        narrate(f"what was measured is kept; `dlbricks fleet resume {state.run}` goes on with the rest")
        return Status.INTERRUPTED if is_end else Status.DONE_WITH_FAILURES
    return Status.DONE_WITH_FAILURES if fleet_result(state, progress).has_failures else Status.DONE


def _show(state: JobState, progress: FleetProgress, *, as_json: bool) -> None:
    from dlbricks_tui.answers.fleets import fleet_result

    found = fleet_result(state, progress)
    if as_json:
        write_json(found)
    else:
        from dlbricks_tui.cli.rendering import show_parts
        from dlbricks_tui.documents.fleet import fleet_parts

        show_parts(fleet_parts(found, tuple(progress.hosts.values())))


def _folder(args: argparse.Namespace) -> FleetFolder:
    from dlbricks_tui.fleet.folder import FleetFolders

    return FleetFolders(args.data.fleets).find(args.fleet)


def _confirm(folder: FleetFolder, what: str, args: argparse.Namespace) -> int:
    if args.json:
        _show(folder.state(), folder.progress(), as_json=True)
    narrate(f"fleet run {folder.run} {what}")
    return Status.DONE
