"""`dlbricks jobs`, `runs` and `demo`: list, watch, replay, pause, cancel or resume jobs; replay a recorded run."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any

from dlbricks_tui.cli.output import narrate, show_parts, write, write_json
from dlbricks_tui.cli.parser import Arguments, Handler, Parser, Status, Typed, UsageError
from dlbricks_tui.settings.measuring import TIME_BUDGET
from dlbricks_tui.wording.numbers import duration

if TYPE_CHECKING:
    from dlbricks_tui.documents.parts import Column
    from dlbricks_tui.jobs.events import Event, EventReader
    from dlbricks_tui.jobs.folder import JobFolder, RunFolder


def register(parser: Parser) -> None:
    """Add the actions of `jobs`; without one it lists."""
    parser.add_listing("list the jobs of all kinds, the newest last", list_jobs)
    parser.add_schema("jobs.JobSummary", many=True)
    about = "show a job until it ends; it goes on if you stop watching"
    watching = _add_job(parser, "watch", about, _watch, watch_run, "show_status")
    about = "show a job again from its events, at any speed"
    # The events of a fleet run tell of hosts that measure at the same time.
    replaying = _add_job(parser, "replay", about, _replay, replay_stored, "show_status")
    _add_job(parser, "pause", "pause a job, so that others can measure meanwhile", _pause, pause_run, "pause_fleet")
    _add_job(parser, "cancel", "end a job; its results are kept", _cancel)
    about = "let a paused job go on, or work again on one that has ended early"
    resuming = _add_job(parser, "resume", about, _resume, resume_run, "resume_fleet")
    _add_options(watching, replaying, resuming)


def register_runs(parser: Parser) -> None:
    """Add the actions of `runs`; without one it lists."""
    parser.add_listing("list the runs, the newest last", list_runs)
    parser.add_schema("measuring.RunSummary", many=True)
    about = "show the progress of a run until it ends; the run goes on if you stop watching"
    watching = _add_of_run(parser, "watch", about, watch_run)
    about = "show a run again from its events, at any speed; nothing is measured"
    replaying = _add_of_run(parser, "replay", about, replay_stored)
    replaying.add_schema("measuring.ReplayedRun")
    _add_of_run(parser, "pause", "pause a run, so that others can measure meanwhile", pause_run)
    _add_of_run(parser, "cancel", "end a run; its results are kept", cancel_run)
    about = "let a paused run go on, or carry on with one that has ended early"
    resuming = _add_of_run(parser, "resume", about, resume_run)
    _add_options(watching, replaying, resuming)
    about = "another time budget in seconds, `inf` for none (default: that of the run, anew)"
    resuming.add_argument("--time-budget", metavar="S", type=budget, help=about)


def register_demo(parser: Parser) -> None:
    """Add the options of `demo`."""
    parser.add_speed(default=4.0)
    parser.add_quiet()
    parser.end(demonstrate, "measuring.ReplayedRun")
    parser.set_defaults(reads_config=False)


def _add_options(watching: Parser, replaying: Parser, resuming: Parser) -> None:
    watching.add_quiet()
    replaying.add_speed()
    replaying.add_quiet()
    resuming.add_detach()
    resuming.add_quiet()


def _add_job(
    parser: Parser,
    name: str,
    about: str,
    handler: Callable[[Arguments, JobFolder], int],
    of_run: Handler | None = None,
    of_fleet: str = "",
) -> Parser:
    """Add an action on jobs of any kind, which commands for runs and fleet runs may carry out."""

    def handle(args: Arguments) -> int:
        # Loaded here, as all that follows: the list of runs starts sooner without.
        from dlbricks_tui.api.jobs import find_job

        folder = find_job(args.job, args.session.data)
        args.run = args.fleet = folder.run
        args.follow, args.host, args.time_budget = True, None, None
        if folder.noun == "run" and of_run is not None:
            return of_run(args)
        if folder.noun == "fleet run" and of_fleet:
            if name == "replay" and args.speed != 1:
                raise UsageError("a fleet run is shown as it is now, at no --speed: leave it out")
            from dlbricks_tui.cli import fleet

            status: int = getattr(fleet, of_fleet)(args)
            return status
        return handler(args, folder)

    added = parser.add_action(name, about, handle)
    added.add_argument("job", metavar="JOB", help="the id of a job, its beginning, or `last`")
    return added


def _add_of_run(parser: Parser, name: str, about: str, handler: Handler) -> Parser:
    added = parser.add_action(name, about, handler)
    added.add_argument("run", metavar="RUN", help="the id of a run, its beginning, or `last`")
    return added


def budget(text: str) -> float:
    """Return the seconds in a text, infinitely many for `inf`."""
    return math.inf if text == "inf" else Typed(TIME_BUDGET.kind)(text)


def show_list(
    rows: Sequence[Any], columns: tuple[Column[Any], ...], unreadable: Collection[str], none: str, *, as_json: bool
) -> int:
    """Show rows as a table or a document, and name those that cannot be read; `none` says how to get a first one."""
    narrate(*unreadable)
    if as_json:
        write_json(rows)
    elif rows:
        from dlbricks_tui.documents.parts import Table

        show_parts([Table(columns, rows)])
    elif not unreadable:
        narrate(none)
    return Status.of(unreadable)


def list_jobs(args: Arguments) -> int:
    """List all jobs of the data folder."""
    from dlbricks_tui.api.jobs import job_summaries, stored_jobs
    from dlbricks_tui.documents.run import JOB_COLUMNS

    stored = stored_jobs(args.session.data)
    none = "no job yet: `dlbricks run MODEL` makes the first"
    found = job_summaries(stored.states)
    return show_list(found, JOB_COLUMNS, stored.unreadable.values(), none, as_json=args.json)


def _watch(args: Arguments, folder: JobFolder) -> int:
    from dlbricks_tui.api.jobs import events_until_end, reader_of

    reader = reader_of(folder)
    return _show(events_until_end(folder, reader), folder, reader, args)


def _replay(args: Arguments, folder: JobFolder) -> int:
    from dlbricks_tui.api.jobs import reader_of, replay_of

    reader = reader_of(folder)
    return _show(replay_of(folder, reader, args.speed).play(), folder, reader, args)


def _pause(args: Arguments, folder: JobFolder) -> int:
    folder.pause()
    return _confirm(folder, "pauses: what it has stored is kept", args)


def _cancel(args: Arguments, folder: JobFolder) -> int:
    folder.cancel()
    return _confirm(folder, "is told to end", args)


def _resume(args: Arguments, folder: JobFolder) -> int:
    from dlbricks_tui.api.jobs import resume_job

    resume_job(folder.run, args.session.data)
    return _confirm(folder, "goes on in a separate process", args) if args.detach else _watch(args, folder)


def _show(events: Iterable[Event], folder: JobFolder, reader: EventReader, args: Arguments) -> int:
    """Narrate events, and tell the end of the job."""
    from dlbricks_tui.api.jobs import words_for
    from dlbricks_tui.cli.progress import JobNarration, live_console
    from dlbricks_tui.wording.jobs import unreadable_in_words

    with closing(JobNarration(words_for(folder), live_console(), quiet=args.quiet)) as narration:
        for event in events:
            narration.take(event)
    if unread := unreadable_in_words(reader.unreadable):
        narrate(unread)
    folder.mark_seen()
    state = folder.state()
    _confirm(folder, f"{state.state.in_words}{f': {state.message}' if state.message else ''}", args)
    return Status.of(not (state.is_finished or state.active))


def detached(kind: str, request: Any, models: Sequence[str], args: Arguments) -> JobFolder:
    """Start a job of a kind in a separate process, and tell its id."""
    from dlbricks_tui.api.jobs import start_job

    folder = start_job(kind, request, models, args.session.data)
    if not args.json:
        write(f"{folder.run}\n")
    narrate(f"it runs in a separate process; `{folder.watched_by} {folder.run}` shows its progress")
    return folder


def detach(kind: str, request: Any, models: Sequence[str], args: Arguments) -> int:
    """Start a job in a separate process; with `--json`, print its document."""
    from dlbricks_tui.api.jobs import job_summaries

    folder = detached(kind, request, models, args)
    if args.json:
        write_json(job_summaries([folder.state()])[0])
    return Status.DONE


def _confirm(folder: JobFolder, what: str, args: Arguments) -> int:
    if args.json:
        from dlbricks_tui.api.jobs import job_summaries

        write_json(job_summaries([folder.state()])[0])
    narrate(f"job {folder.run} {what}")
    return Status.DONE


def list_runs(args: Arguments) -> int:
    """List all runs of the data folder."""
    from dlbricks_tui.api.measuring import RunFolders, run_summary
    from dlbricks_tui.documents.run import RUN_COLUMNS

    stored = RunFolders(args.session.data.runs).stored()
    found = [run_summary(state) for state in stored.states]
    none = "no run yet: `dlbricks run MODEL` makes the first"
    return show_list(found, RUN_COLUMNS, stored.unreadable.values(), none, as_json=args.json)


def watch_run(args: Arguments) -> int:
    """Show a run from its beginning to its end."""
    from dlbricks_tui.api.jobs import events_until_end, reader_of
    from dlbricks_tui.api.measuring import read_outcome
    from dlbricks_tui.cli.progress import shown
    from dlbricks_tui.cli.run import conclude

    folder = _folder(args)
    with shown(quiet=args.quiet) as display:
        for event in events_until_end(folder, reader_of(folder)):
            display.take(event)
    return conclude(read_outcome(folder, args.session.data), display.run, as_json=args.json)


def replay_stored(args: Arguments) -> int:
    """Show a run again."""
    return replay_run(_folder(args), args)


def pause_run(args: Arguments) -> int:
    """Pause a run after its current round."""
    folder = _folder(args)
    folder.pause()
    return _confirm_run(folder, "pauses after its current round", args)


def cancel_run(args: Arguments) -> int:
    """Ask a run to end."""
    folder = _folder(args)
    folder.cancel()
    return _confirm_run(folder, "is told to end", args)


def resume_run(args: Arguments) -> int:
    """Let a paused run go on, or take up a run without a process again."""
    from dlbricks_tui.api.measuring import resumed_run

    folder = _folder(args)
    run = resumed_run(folder, args.session.data, args.time_budget)
    if run is None:
        return _confirm_run(folder, "goes on", args)
    from dlbricks_tui.cli.run import carry_out

    return carry_out(run, args)


def replay_run(folder: RunFolder, args: Arguments) -> int:
    """Show the events of a run again, print the last estimates that they tell, and return the exit status."""
    from dlbricks_tui.api.jobs import reader_of, replay_of
    from dlbricks_tui.api.measuring import replayed_run
    from dlbricks_tui.cli.progress import shown
    from dlbricks_tui.documents.run import replay_parts

    replay = replay_of(folder, reader_of(folder), args.speed)
    if not args.quiet:
        speed = "at its own speed" if args.speed == 1 else f"{args.speed:g} times as fast"
        told = f"{duration(replay.length)} of it, {speed}; nothing is measured now"
        narrate(f"replay of run {folder.run}: {told}")
    with shown(quiet=args.quiet, clock=lambda: replay.position) as display:
        for event in replay.play():
            display.take(event)
    found = replayed_run(folder.run, display.progress, replay.length)
    if args.json:
        write_json(found)
    else:
        show_parts(replay_parts(found))
    if not args.quiet:
        now = folder.state()
        then = ", and may go on" if now.active else f", then {now.state.value}"
        so_far = "" if display.progress.ended else then
        was = "had" if found.state.value == "failed" else "was"
        narrate(f"end of the replay: run {folder.run} {was} {found.state.value}{so_far}")
    return Status.DONE


def _folder(args: Arguments) -> RunFolder:
    from dlbricks_tui.api.measuring import RunFolders

    return RunFolders(args.session.data.runs).find(args.run)


def _confirm_run(folder: RunFolder, what: str, args: Arguments) -> int:
    if args.json:
        from dlbricks_tui.api.measuring import run_summary

        write_json(run_summary(folder.state()))
    narrate(f"run {folder.run} {what}")
    return Status.DONE


def demonstrate(args: Arguments) -> int:
    """Open the workbench on recorded results; without a terminal, replay a run and print its estimates."""
    from dlbricks_tui.api.demonstration import open_demonstration
    from dlbricks_tui.api.measuring import RunFolders
    from dlbricks_tui.config.config import Sources

    with open_demonstration() as found:
        if args.demonstrate is not None and not args.json:
            # The user's own settings may name runtimes that were not recorded.
            sources = Sources(found.data.config, os.environ, args.settings)
            status: int = args.demonstrate(found, sources, args.speed)
            return status
        if not args.quiet:
            narrate(f"a demonstration: all numbers were {found.host.origin}")
        return replay_run(RunFolders(found.data.runs).find(found.replayed), args)
