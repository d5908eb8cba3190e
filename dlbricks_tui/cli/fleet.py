"""`dlbricks fleet`: measure on many hosts, watch and control such runs, and set the hosts up."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from dlbricks_tui.cli.options import add_cutting_options, add_models_argument, inputs_of, values_of
from dlbricks_tui.cli.output import narrate, narrate_once, show_parts, write, write_json
from dlbricks_tui.cli.parser import Arguments, Handler, Parser, Status, UsageError, path_in
from dlbricks_tui.settings.cutting import CUTTING, LEVEL
from dlbricks_tui.settings.language import GENERATE, PROMPT, WEIGHTS, WEIGHTS_BESIDE
from dlbricks_tui.settings.measuring import ENOUGH, PROBE, QUESTION
from dlbricks_tui.settings.variant import EXECUTION
from dlbricks_tui.wording.numbers import counted

if TYPE_CHECKING:
    from dlbricks_tui.api.fleets import FleetJob
    from dlbricks_tui.fleet.request import FleetProgress
    from dlbricks_tui.jobs.folder import JobState

_ALLOW_PLAIN = "use a scheduler without TLS (tcp://) although other machines can reach it"


def register(parser: Parser) -> None:
    """Add the actions of `fleet`; without one it lists."""
    parser.add_listing("list the fleet runs, the newest last", list_fleets)
    parser.add_schema("fleets.FleetSummary", many=True)
    _add_run(parser)
    watching = _add(parser, "status", "show the hosts of a fleet run, and the models on them", show_status, newest=True)
    watching.add_flag("--follow", about="go on until the fleet run ends")
    watching.add_schema("fleets.FleetResult")
    resume = "let paused hosts go on, or carry on with a fleet run that has ended early"
    for name, about, handler in (
        ("pause", "let the hosts pause, so that others can measure there", pause_fleet),
        ("cancel", "end a fleet run, or the work of one host; results are kept", cancel_fleet),
        ("resume", resume, resume_fleet),
    ):
        added = _add(parser, name, about, handler)
        added.add_argument("--host", metavar="NAME", help="only this host")
    watching.add_quiet()
    added.add_detach()
    added.only("--detach", where=lambda it: it.host is None, why="is for all hosts: leave it or --host out")
    added.add_quiet()
    adding = _add(parser, "add", "let more hosts take part in a fleet run", add_hosts)
    adding.add_file("--hosts", about="the hosts file", required=True)
    _add_host_actions(parser)


def _add_run(parser: Parser) -> None:
    about = "measure the bricks of models on many hosts; the models stay here"
    running = parser.add_action("run", about, run_fleet, json=False)
    add_models_argument(running, many=True, needed=False)
    about = "a language model, as `dlbricks llm` takes it: tokens per second and their cost on each host"
    running.add_repeatable("--llm", "MODEL", about)
    running.add_settings(PROMPT, GENERATE)
    running.add_setting(WEIGHTS_BESIDE, many=True, default=(WEIGHTS.kind.read(WEIGHTS.usual),))
    where = running.add_mutually_exclusive_group(required=True)
    about = "hosts to reach over SSH (see docs/guides/many-hosts.md)"
    running.add_file("--hosts", about=about, to=where)
    about = "a dask scheduler, such as tls://10.0.0.1:8786"
    where.add_argument("--scheduler", metavar="ADDRESS", default="", help=about)
    running.add_settings(QUESTION, PROBE)
    running.add_flag("--allow-plain", about=_ALLOW_PLAIN)
    add_cutting_options(running, level="fused")
    running.add_settings(*EXECUTION, many=True)
    # Loaded here, as in `run_fleet`: other actions measure nothing.
    from dlbricks_tui.cli.run import add_measuring_options

    add_measuring_options(running)
    of_language = [it.option for it in (PROMPT, GENERATE, WEIGHTS_BESIDE)]
    running.only(*of_language, where=lambda it: it.llm, why="is for language models: name one by --llm")
    more = f"is for a MODEL: a language model takes {WEIGHTS_BESIDE.option}"
    running.only(*(it.option for it in EXECUTION), where=lambda it: it.models, why=more)
    cut = (*(it.option for it in (*CUTTING, LEVEL, *ENOUGH)), "--input", "--value")
    running.only(*cut, where=lambda it: it.models, why="is for a MODEL: leave it out for language models alone")
    running.only("--allow-plain", where=lambda it: it.scheduler, why="is for --scheduler: leave it out")
    running.add_schema("fleets.FleetResult")


def _add_host_actions(parser: Parser) -> None:
    doctor = parser.add_action("doctor", "name what hosts lack, and set them up", examine_fleet)
    doctor.add_file("--hosts", about="the hosts file", required=True)
    doctor.add_flag("--install", about="set up what is missing, without root")
    about = "with --install: a folder of wheels for hosts without internet"
    doctor.add_file("--wheels", metavar="DIR", about=about)
    doctor.add_repeatable("--runtime", "NAME", "needed there")
    doctor.add_flag("--all", about="list what is as it should be, too")
    doctor.add_schema("fleets.FleetExamination")
    making = parser.add_action("init", "make the certificates of a fleet, unless they are there", make_certificates)
    making.add_argument("folder", metavar="DIR", nargs="?", type=path_in, help="(default: in the data folder)")
    about = "measure on this host for the driver of a dask scheduler"
    worker = parser.add_action("worker", about, work_on_this_host, json=False)
    worker.add_argument("scheduler", metavar="ADDRESS", help="the scheduler, such as tls://10.0.0.1:8786")
    worker.add_argument("--name", metavar="NAME", required=True, help="the name of this host in the fleet")
    about = "the certificates of hosts (default: in the data folder)"
    worker.add_file("--certificates", metavar="DIR", about=about)
    worker.add_flag("--allow-plain", about=_ALLOW_PLAIN)


def _add(parser: Parser, name: str, about: str, handler: Handler, *, newest: bool = False) -> Parser:
    added = parser.add_action(name, about, handler)
    about_id = "the id of a fleet run, its beginning, or `last`"
    if newest:
        added.add_argument("fleet", metavar="ID", nargs="?", default="last", help=f"{about_id} (default: last)")
    else:
        added.add_argument("fleet", metavar="ID", help=about_id)
    return added


def run_fleet(args: Arguments) -> int:
    """Start a fleet run, and drive it unless it is to be detached."""
    from dlbricks_tui.api.fleets import FleetJob, FleetOptions, fleet_request
    from dlbricks_tui.api.language_answers import LanguageOptions
    from dlbricks_tui.api.measuring import remarks_on_run
    from dlbricks_tui.cli.run import measure_options_of

    if not args.models and not args.llm:
        raise UsageError("no model is named: give a MODEL, or a language model by --llm MODEL")
    measuring = replace(measure_options_of(args), **values_of(args, (*CUTTING, LEVEL, *EXECUTION)), **inputs_of(args))
    options = FleetOptions(
        hosts=args.hosts,
        scheduler=args.scheduler,
        **values_of(args, (QUESTION, PROBE)),
        allow_plain=args.allow_plain,
        measuring=measuring,
        language_models=tuple(args.llm),
        language=LanguageOptions(**values_of(args, (PROMPT, GENERATE, WEIGHTS_BESIDE))),
    )
    request = fleet_request(options, args.session.sources(args.models), args.session.data)
    fleet = FleetJob.create(request, args.session.data)
    narrate_once(*remarks_on_run(request.run))
    return _drive(fleet, args)


def show_status(args: Arguments) -> int:
    """Show a fleet run as it is now, or until it ends."""
    fleet = _fleet(args)
    if args.follow:
        from dlbricks_tui.api.jobs import events_until_end, reader_of
        from dlbricks_tui.cli.progress import shown_fleet

        with shown_fleet(fleet, quiet=args.quiet) as shown:
            for event in events_until_end(fleet.folder, reader_of(fleet.folder)):
                shown.take(event)
    state, progress = fleet.folder.state(), fleet.folder.progress()
    _show(fleet, as_json=args.json)
    _tell_reason(state, progress)
    return Status.DONE if state.active else _status(fleet, is_end=args.follow)


def list_fleets(args: Arguments) -> int:
    """List all fleet runs of the data folder."""
    from dlbricks_tui.api.fleets import fleet_summary, stored_fleets
    from dlbricks_tui.cli.jobs import show_list
    from dlbricks_tui.documents.run import FLEET_COLUMNS

    stored = stored_fleets(args.session.data)
    none = "no fleet run yet: `dlbricks fleet run MODEL --hosts FILE` makes the first"
    return show_list(
        list(map(fleet_summary, stored.states)), FLEET_COLUMNS, stored.unreadable.values(), none, as_json=args.json
    )


def pause_fleet(args: Arguments) -> int:
    """Pause all hosts of a fleet run, or one of them."""
    fleet = _fleet(args)
    if args.host is None:
        fleet.folder.pause()
        return _confirm(fleet, "pauses after the current rounds", args)
    fleet.folder.command_host(args.host, "pause")
    return _confirm(fleet, f"pauses on {args.host} after the current round", args)


def cancel_fleet(args: Arguments) -> int:
    """Ask a fleet run to end, or one host to end its work."""
    fleet = _fleet(args)
    if args.host is None:
        fleet.folder.cancel()
        return _confirm(fleet, "is told to end", args)
    fleet.folder.command_host(args.host, "cancel")
    return _confirm(fleet, f"gives {args.host} no more work", args)


def resume_fleet(args: Arguments) -> int:
    """Let paused hosts go on, or drive a fleet run again that has no driver."""
    fleet = _fleet(args)
    if args.host is not None:
        fleet.folder.command_host(args.host, "resume")
        return _confirm(fleet, f"goes on with {args.host}", args)
    if not fleet.folder.state().active and fleet.folder.is_complete:
        _show(fleet, as_json=args.json)
        narrate(f"fleet run {fleet.folder.run} is complete: there is nothing to resume")
        return _status(fleet)
    return _drive(fleet, args) if fleet.resume() else _confirm(fleet, "goes on", args)


def add_hosts(args: Arguments) -> int:
    """Let the hosts of another hosts file take part."""
    fleet = _fleet(args)
    return _confirm(fleet, f"takes in {', '.join(fleet.add_hosts(args.hosts))}", args)


def _drive(fleet: FleetJob, args: Arguments) -> int:
    """Drive a fleet run in this process and print what was found, or start it in a separate process."""
    run = fleet.folder.run
    if args.detach:
        fleet.drive_apart()
        if args.json:
            _show(fleet, as_json=True)
        else:
            write(f"{run}\n")
        narrate(f"it runs in a separate process; `dlbricks fleet status {run} --follow` shows its progress")
        return Status.DONE
    from dlbricks_tui.cli.progress import shown_fleet

    with shown_fleet(fleet, quiet=args.quiet) as shown:
        state = fleet.drive(shown.take)
    _show(fleet, as_json=args.json)
    if not args.quiet:
        bricks = state.bricks
        narrate(
            f"fleet run {run} {state.state.value} after {state.seconds:.1f} s: "
            f"{counted(bricks.measured, 'brick')} measured, {bricks.reused:,} known before, {bricks.failed:,} failed"
        )
    _tell_reason(state, fleet.folder.progress())
    return _status(fleet)


def _tell_reason(state: JobState, progress: FleetProgress) -> None:
    """Tell why a fleet run has ended, unless the table of its hosts has told it."""
    if state.message and not any(row.message and row.message in state.message for row in progress.hosts.values()):
        narrate(state.message)


def _status(fleet: FleetJob, *, is_end: bool = True) -> int:
    """Return the exit status for a fleet run that has ended; `is_end` is True if this command has followed its end."""
    state = fleet.folder.state()
    if state.was_stopped:
        narrate(f"what was measured is kept; `dlbricks fleet resume {state.run}` goes on with the rest")
        return Status.INTERRUPTED if is_end else Status.DONE_WITH_FAILURES
    return Status.of(fleet.result().has_failures)


def _show(fleet: FleetJob, *, as_json: bool) -> None:
    found = fleet.result()
    if as_json:
        write_json(found)
    else:
        from dlbricks_tui.documents.fleet import fleet_parts

        show_parts(fleet_parts(found, tuple(fleet.folder.progress().hosts.values())))


def _fleet(args: Arguments) -> FleetJob:
    from dlbricks_tui.api.fleets import FleetJob

    return FleetJob.find(args.fleet, args.session.data)


def _confirm(fleet: FleetJob, what: str, args: Arguments) -> int:
    if args.json:
        _show(fleet, as_json=True)
    narrate(f"fleet run {fleet.folder.run} {what}")
    return Status.DONE


def examine_fleet(args: Arguments) -> int:
    """Examine the hosts of a hosts file, and set them up if asked to."""
    from dlbricks_tui.api.fleets import examined_hosts, fleet_examination
    from dlbricks_tui.documents.fleet import examination_parts

    found = examined_hosts(
        args.hosts, args.session.data, args.runtime, install=args.install, wheels=args.wheels, step=narrate
    )
    for host in found:
        if host.installed:
            narrate(f"{host.host}: {host.installed}")
    if args.json:
        write_json(fleet_examination(found))
    else:
        show_parts(examination_parts(found, everything=args.all))
    ready = all(host.state.value == "ready" for host in found)
    if not ready and not args.install and any(host.can_be_set_up for host in found):
        narrate("`--install` sets up what is missing")
    return Status.of(not ready)


def make_certificates(args: Arguments) -> int:
    """Make the certificates and private keys of a fleet, or name those that are there."""
    from dlbricks_tui.api.fleets import made_certificates

    certificates, is_new = made_certificates(args.folder, args.session.data)
    if args.json:
        write_json({"folder": str(certificates.folder), "hosts": [str(path) for path in certificates.of_hosts]})
    else:
        write(f"{certificates.folder}\n")
    if not is_new:
        narrate("they are there already, and stay as they are")
    copying = certificates.copying_to("FOLDER")
    narrate(f"workers that you start yourself need a copy: `{copying}`; over SSH they get one by themselves")
    return Status.DONE


def work_on_this_host(args: Arguments) -> int:
    """Measure on this host until the process is told to end."""
    from dlbricks_tui.api.fleets import work_for_fleet

    work_for_fleet(
        args.scheduler,
        args.name,
        args.session.data,
        narrate,
        certificates=args.certificates,
        allow_plain=args.allow_plain,
    )
    return Status.DONE
