"""`dlbricks jobs`: list the jobs of all kinds, watch, replay, pause, cancel or resume one."""

import argparse
import time
from collections.abc import Callable, Iterable
from contextlib import closing

from dlbricks_tui.answers.jobs import JobSummary, find_job, job_summaries, shown_kind, stored_jobs
from dlbricks_tui.cli.job_progress import JobNarration, live_console
from dlbricks_tui.cli.output import narrate, write_json
from dlbricks_tui.cli.parser import (
    Actions,
    Handler,
    Parser,
    Status,
    add_action,
    add_job_options,
    add_listing,
    add_schema_option,
)
from dlbricks_tui.cli.rendering import show_parts
from dlbricks_tui.documents.parts import Column, Table, name_column, word_column
from dlbricks_tui.fleet.folder import FleetFolder
from dlbricks_tui.jobs.errors import JobError
from dlbricks_tui.jobs.events import Event, EventReader, follow
from dlbricks_tui.jobs.folder import JobFolder, RunFolder, State
from dlbricks_tui.jobs.process import start_detached
from dlbricks_tui.jobs.replay import Replay, events_so_far, play
from dlbricks_tui.wording.jobs import unreadable_in_words
from dlbricks_tui.wording.numbers import ago, duration, names_of, or_dash

_SECONDS_BETWEEN_LOOKS = 0.2


def register(parser: Parser) -> None:
    """Add the actions of `jobs`; without one it lists."""
    actions = add_listing(parser, "list the jobs of all kinds, the newest last", list_jobs)
    add_schema_option(parser, "JobSummary", module="jobs", many=True)
    watching = _add(actions, "watch", "show a job until it ends; it goes on if you stop watching", _watch)
    replaying = _add(actions, "replay", "show a job again from its events, at any speed", _replay)
    _add(actions, "pause", "pause a run or fleet run, so that others can measure meanwhile", _pause)
    _add(actions, "cancel", "end a job; its results are kept", _cancel)
    resuming = _add(actions, "resume", "let a paused job go on, or work again on one that has ended early", _resume)
    add_job_options(watching, resuming, replaying)


def _add(actions: Actions, name: str, about: str, handler: Callable[[argparse.Namespace, JobFolder], int]) -> Parser:
    def handle(args: argparse.Namespace) -> int:
        folder = find_job(args.job, args.data)
        # Commands for runs and fleet runs have these names.
        args.run = args.fleet = folder.run
        args.follow, args.host, args.time_budget = True, None, None
        return handler(args, folder)

    parser = add_action(actions, name, about, handle)
    parser.add_argument("job", metavar="JOB", help="the id of a job, its beginning, or `last`")
    return parser


def list_jobs(args: argparse.Namespace) -> int:
    """List all jobs of the data folder."""
    stored = stored_jobs(args.data)
    for line in stored.unreadable.values():
        narrate(line)
    found = job_summaries(stored.states)
    if args.json:
        write_json(list(found))
    elif found:
        columns: tuple[Column[JobSummary], ...] = (
            name_column("models", lambda it: names_of(it.models)),
            word_column("kind", lambda it: it.kind),
            word_column("job", lambda it: it.id),
            word_column("state", lambda it: it.state.value),
            Column("started", lambda it: ago(it.started)),
            # An active job does not store its time by the second.
            Column("time", lambda it: "" if it.pid else duration(it.seconds)),
            Column("left", lambda it: or_dash(duration, it.seconds_left)),
        )
        show_parts([Table(columns, found)])
    elif not stored.unreadable:
        narrate("no job yet: `dlbricks run MODEL` makes the first")
    return Status.DONE_WITH_FAILURES if stored.unreadable else Status.DONE


def _watch(args: argparse.Namespace, folder: JobFolder) -> int:
    if (handler := _of_runs(folder, "watch_run", "show_status")) is not None:
        return handler(args)
    reader = _reader(folder)
    events = follow(reader, lambda: folder.state().active, lambda: time.sleep(_SECONDS_BETWEEN_LOOKS))
    return _show(events, folder, reader, args)


def _replay(args: argparse.Namespace, folder: JobFolder) -> int:
    if isinstance(folder, FleetFolder):
        return _watch(args, folder)
    if (handler := _of_runs(folder, "replay_stored", "show_status")) is not None:
        return handler(args)
    reader = _reader(folder)
    replay = Replay(events_so_far(folder, reader), args.speed, time.monotonic)
    return _show(play(replay, time.sleep), folder, reader, args)


def _pause(args: argparse.Namespace, folder: JobFolder) -> int:
    if (handler := _of_runs(folder, "pause_run", "pause_fleet")) is not None:
        return handler(args)
    raise JobError(f"a {folder.state().kind.value} cannot be paused: cancel it, and resume it later")


def _cancel(args: argparse.Namespace, folder: JobFolder) -> int:
    folder.cancel()
    return _confirm(folder, "is told to end", args)


def _resume(args: argparse.Namespace, folder: JobFolder) -> int:
    if (handler := _of_runs(folder, "resume_run", "resume_fleet")) is not None:
        return handler(args)
    state = folder.state()
    if state.active:
        raise JobError(f"job {folder.run} is {state.state.value} already; `dlbricks jobs watch {folder.run}` shows it")
    start_detached(folder, args.data, shown_kind(state.kind).kind.function)
    return _confirm(folder, "goes on in a separate process", args) if args.detach else _watch(args, folder)


def _of_runs(folder: JobFolder, of_run: str, of_fleet: str) -> Handler | None:
    """Return the command for a run or a fleet run; None for other jobs."""
    # Loaded here: other jobs need none of it.
    if isinstance(folder, RunFolder):
        from dlbricks_tui.cli import runs

        handler: Handler = getattr(runs, of_run)
        return handler
    if isinstance(folder, FleetFolder):
        from dlbricks_tui.cli import fleet

        found: Handler = getattr(fleet, of_fleet)
        return found
    return None


def _reader(folder: JobFolder) -> EventReader:
    return shown_kind(folder.state().kind).kind.reader(folder)


def _show(events: Iterable[Event], folder: JobFolder, reader: EventReader, args: argparse.Namespace) -> int:
    """Narrate events, and tell the end of the job."""
    shown = shown_kind(folder.state().kind)
    with closing(JobNarration(shown.words_for(folder), shown.passing, live_console(), quiet=args.quiet)) as narration:
        for event in events:
            narration.take(event)
    if unread := unreadable_in_words(reader.unreadable):
        narrate(unread)
    folder.mark_seen()
    state = folder.state()
    _confirm(folder, f"is {state.state.value}{f': {state.message}' if state.message else ''}", args)
    return Status.DONE if state.state is State.FINISHED or state.active else Status.DONE_WITH_FAILURES


def _confirm(folder: JobFolder, what: str, args: argparse.Namespace) -> int:
    if args.json:
        write_json(job_summaries([folder.state()])[0])
    narrate(f"job {folder.run} {what}")
    return Status.DONE
