"""Jobs of all kinds, each a process of its own: started, listed, followed, told in words, paused, ended, resumed."""

import os
import signal
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from operator import itemgetter
from typing import Any, NamedTuple, TypeAlias

from dlbricks_tui.analysis.proving import PEAKS, PROOF, RoundsDone
from dlbricks_tui.api.documents import taken
from dlbricks_tui.api.measuring import resumed_run
from dlbricks_tui.api.suites import EXPORT
from dlbricks_tui.errors import UserError
from dlbricks_tui.fleet.folder import FleetFolder, FleetFolders
from dlbricks_tui.fleet.request import EVENTS
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.host.queue import Place, WorkKind, host_queue
from dlbricks_tui.jobs.errors import JobError
from dlbricks_tui.jobs.events import Event, EventReader, Replay, Waiting, events_so_far, follow
from dlbricks_tui.jobs.folder import (
    FolderList,
    JobFolder,
    JobFolders,
    JobState,
    RunFolder,
    RunFolders,
    State,
    StoredJobs,
    only_one,
)
from dlbricks_tui.jobs.kinds import JobKind
from dlbricks_tui.jobs.process import start_detached, wait_until_begun
from dlbricks_tui.language.orders import LANGUAGE, LanguageFailed, LanguageRound
from dlbricks_tui.runs.control import create_run
from dlbricks_tui.runs.events import RunEvents
from dlbricks_tui.runs.request import RunRequest
from dlbricks_tui.scenarios.scenario import LOAD_TEST, LoadProgress
from dlbricks_tui.share.exporting import BricksChecked
from dlbricks_tui.share.spare import SpareRun
from dlbricks_tui.traces.trace import TRACE
from dlbricks_tui.wording.jobs import LoadWords, export_line, language_line, proof_line, trace_line, unreadable_in_words
from dlbricks_tui.wording.numbers import names_of


@dataclass(frozen=True, slots=True)
class JobSummary:
    """A job of the data folder; `pid` is the process that works on it."""

    id: str
    kind: str
    state: State
    # What it waits for, or the reason for an early end.
    message: str
    models: tuple[str, ...]
    # The time (ISO 8601, UTC).
    started: str
    seconds: float
    # As it tells other work of this host; None if that is not known.
    seconds_left: float | None
    pid: int | None


class JobWords(NamedTuple):
    """How a kind of job tells its events."""

    words: Callable[[Event], str]
    # Progress: each line takes the place of the last one.
    passing: tuple[type[Event], ...] = ()
    # Told by quiet commands, too.
    failures: tuple[type[Event], ...] = ()

    def line(self, event: Event) -> str:
        """Return the line for an event; empty if others say the same."""
        return f"waiting for {event.holder}" if isinstance(event, Waiting) else self.words(event)


# The kinds of jobs besides runs and fleet runs, each with the function that returns the words for a request.
_Words: TypeAlias = Callable[[Any], JobWords]
_KINDS: Mapping[WorkKind, tuple[JobKind[Any], _Words]] = {
    PROOF.work: (PROOF, lambda order: JobWords(partial(proof_line, order=order), (RoundsDone,))),
    PEAKS.work: (PEAKS, lambda _: JobWords(lambda _: "")),
    LOAD_TEST.work: (LOAD_TEST, lambda order: JobWords(LoadWords(order.scenario), (LoadProgress,))),
    TRACE.work: (TRACE, lambda _: JobWords(trace_line)),
    EXPORT.work: (EXPORT, lambda _: JobWords(export_line, (BricksChecked,))),
    LANGUAGE.work: (LANGUAGE, lambda _: JobWords(language_line, (LanguageRound,), (LanguageFailed,))),
}
_SECONDS_BETWEEN_LOOKS = 0.2


def _kind_of(folder: JobFolder) -> tuple[JobKind[Any], _Words]:
    work = folder.state().kind
    if work not in _KINDS:
        raise JobError(f"a {work.value} tells no events")
    return _KINDS[work]


def words_of(kind: str, request: Any) -> JobWords:
    """Return the words for the events of a job of a kind, such as `trace`."""
    return _KINDS[WorkKind(kind)][1](request)


def words_for(folder: JobFolder) -> JobWords:
    """Return the words for the events of a stored job."""
    kind, words = _kind_of(folder)
    return words(kind.request_of(folder))


def reader_of(folder: JobFolder) -> EventReader:
    """Return the reader of the events of a job of any kind."""
    if isinstance(folder, RunFolder):
        return RunEvents(folder.events_file)
    if isinstance(folder, FleetFolder):
        return EventReader(folder.events_file, EVENTS)
    return _kind_of(folder)[0].reader(folder)


def events_until_end(folder: JobFolder, reader: EventReader) -> Iterator[Event]:
    """Yield the events of a job from the first one on, until it has ended."""
    return follow(reader, lambda: folder.state().active, lambda: time.sleep(_SECONDS_BETWEEN_LOOKS))


def replay_of(folder: JobFolder, reader: EventReader, speed: float) -> Replay:
    """Return a replay of the events that a job has written until now."""
    return Replay(events_so_far(folder, reader), speed, time.monotonic)


def start_apart(folder: JobFolder, data: DataFolder) -> None:
    """Work on a job of any kind in a separate process, and return when it has begun."""
    if isinstance(folder, RunFolder):
        function = "dlbricks_tui.share.suite_runs"
    elif isinstance(folder, FleetFolder):
        function = "dlbricks_tui.fleet.driver"
    else:
        function = _kind_of(folder)[0].function
    start_detached(folder, data, function)


def start_run(request: RunRequest, data: DataFolder, spare: SpareRun | None = None) -> str:
    """Start a run in a separate process, which may be ready for it, and return its id."""
    folder = create_run(request, data)
    if spare is not None and (process := spare.take(folder)) is not None:
        wait_until_begun(folder, process)
    else:
        start_apart(folder, data)
    return folder.run


def start_job(kind: str, request: Any, models: Sequence[str], data: DataFolder) -> JobFolder:
    """Start a job of a kind, such as `trace`, in a separate process."""
    made = _KINDS[WorkKind(kind)][0]
    folder = made.create(data, tuple(models), request)
    start_detached(folder, data, made.function)
    return folder


def resume_job(job: str, data: DataFolder) -> None:
    """Let a paused job go on, or work again in a separate process on one that has ended early.

    Raise JobError if nothing of it is missing.
    """
    folder = find_job(job, data)
    state = folder.state()
    if isinstance(folder, FleetFolder):
        # Loaded here: other jobs have no hosts that may refuse.
        from dlbricks_tui.api.fleets import FleetJob

        if FleetJob(folder, data).resume():
            start_apart(folder, data)
    elif state.active and state.process.alive:
        folder.go_on()
    elif isinstance(folder, RunFolder) and state.is_finished:
        # A run that had a time budget may lack something.
        resumed_run(folder, data)
        start_apart(folder, data)
    elif state.is_finished:
        raise JobError(f"{folder.noun} {folder.run} is finished: there is nothing to resume")
    else:
        start_apart(folder, data)


def pause_or_resume(job: str, data: DataFolder) -> str:
    """Pause a job that goes on, or let one go on that is paused or has ended early; return what happens."""
    folder = find_job(job, data)
    name = f"{folder.noun.capitalize()} {job}"
    if folder.state().active and not folder.pause_file.exists():
        folder.pause()
        return f"{name} pauses after its current round."
    resume_job(job, data)
    return f"{name} goes on."


def _places(data: DataFolder) -> tuple[FolderList[Any], ...]:
    return RunFolders(data.runs), FleetFolders(data.fleets), JobFolders(data.jobs)


def stored_jobs(data: DataFolder) -> StoredJobs:
    """Return the states of all jobs, the newest last, and the jobs whose state cannot be read."""
    found = [place.stored() for place in _places(data)]
    # Of each place, later jobs come later although the clock was set back.
    latest = [accumulate((state.started for state in each.states), max) for each in found]
    dated = [pair for each, starts in zip(found, latest, strict=True) for pair in zip(starts, each.states, strict=True)]
    states = tuple([it for _, it in sorted(dated, key=itemgetter(0))])
    return StoredJobs(states, {run: line for each in found for run, line in each.unreadable.items()})


def cancel_job(job: str, data: DataFolder) -> None:
    """Ask a job to end; what it has stored is kept."""
    find_job(job, data).cancel()


def find_job(wanted: str, data: DataFolder) -> JobFolder:
    """Find a job by its id, or by the beginning of its id if that is unique; `last` is the newest."""
    if wanted == "last":
        stored = stored_jobs(data)
        # Ids begin with the date: an unreadable job may be newer.
        wanted = max([*(it.run for it in stored.states[-1:]), *stored.unreadable], default="")
        if not wanted:
            raise JobError("there is no job yet; `dlbricks run` starts one")
    found: JobFolder = only_one(wanted, [folder for place in _places(data) for folder in place.folders()], JobFolder)
    # One that cannot be read is refused.
    found.state()
    return found


def going_on(data: DataFolder) -> Iterator[str]:
    """Yield a line for each piece of work of a data folder that goes on when the workbench is left."""
    places = [it for it in host_queue().places() if it.data_folder == str(data.path.absolute())]
    names = {it.id: it.brief for it in places if it.id}
    with suppress(UserError):
        # One that is paused, or reads its models, is not in the line.
        names |= {it.run: names_of(it.models) for it in RunFolders(data.runs).states() if it.active}
    for run, name in names.items():
        yield f"{name} goes on in the background: dlbricks shows it again, `dlbricks runs watch {run}` follows it"
    for place in places:
        if not place.id:
            yield f"{place.brief} goes on in the background: dlbricks shows it again"


def job_summaries(states: Sequence[JobState]) -> tuple[JobSummary, ...]:
    """Return jobs with the time that is left of those that measure."""
    # A process tells it in the line of the host.
    left = {place.pid: place.seconds_left for place in host_queue().places() if place.measures}
    return tuple(
        taken(
            JobSummary,
            it,
            id=it.run,
            kind=it.kind.value,
            seconds_left=left.get(it.process.pid) if it.active else None,
            pid=it.process.pid if it.active and it.process.alive else None,
        )
        for it in states
    )


def is_run(kind: str) -> bool:
    """Return whether work of a kind is a run."""
    return kind in (WorkKind.RUN, WorkKind.PROBE)


def has_screen(kind: str) -> bool:
    """Return whether a job of a kind has a screen of its own; a box shows the others."""
    return is_run(kind) or kind == WorkKind.FLEET


def can_be_followed(place: Place, data: DataFolder) -> bool:
    """Return whether the data folder tells more of work in the line of the host."""
    is_here = place.data_folder == str(data.path.absolute())
    return is_here and place.kind not in (WorkKind.PEAKS, WorkKind.KERNELS)


def end_work(place: Place) -> str:
    """Ask the process of work in the line to end; return the problem with that, empty if there is none."""
    # Its number may belong to another process by now.
    if not place.process.alive:
        return f"{place.brief} has ended."
    try:
        os.kill(place.pid, signal.SIGTERM)
    except ProcessLookupError:
        return ""
    except PermissionError:
        return f"Process {place.pid} belongs to {place.user}: ask them."
    return ""


_MOST_LINES = 8


class ToldJob:
    """The state of a job, and the newest lines that it has told."""

    def __init__(self, folder: JobFolder) -> None:
        self.folder = folder
        self.state = folder.state()
        self.lines: deque[str] = deque(maxlen=_MOST_LINES)
        self._reader = reader_of(folder)
        self._line_of = words_for(folder).line

    @property
    def unread(self) -> str:
        """The events that could not be read, in words; empty if all could."""
        return unreadable_in_words(self._reader.unreadable)

    def look(self) -> bool:
        """Return whether anything has changed."""
        # Before reading the events, so that the last ones are read.
        before, self.state = self.state, self.folder.state()
        events = self._reader.new()
        self.lines.extend(filter(None, map(self._line_of, events)))
        return bool(events) or self.state != before
