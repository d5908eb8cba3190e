"""The jobs of a data folder, each a process of its own: started, listed, read, paused, ended and resumed."""

from __future__ import annotations

import os
import signal
from collections import deque
from dataclasses import replace
from typing import TYPE_CHECKING

from dlbricks_tui.api.jobs import find_job, reader_of, shown_kind, stored_jobs, words_for
from dlbricks_tui.host.queue import WorkKind
from dlbricks_tui.jobs import process
from dlbricks_tui.jobs.folder import JobFolder, RunFolder, RunFolders, StoredJobs
from dlbricks_tui.runs.control import create_run
from dlbricks_tui.share.suites.running import start_detached
from dlbricks_tui.wording.jobs import unreadable_in_words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dlbricks_tui.folders import DataFolder
    from dlbricks_tui.host.queue import Place
    from dlbricks_tui.jobs.events import Event, EventReader
    from dlbricks_tui.jobs.folder import JobState
    from dlbricks_tui.runs.request import RunRequest


class Jobs:
    """All jobs of a data folder but fleet runs."""

    def __init__(self, data: DataFolder) -> None:
        self._data = data

    def start(self, request: RunRequest) -> str:
        """Start a run in a new process and return its id."""
        folder = create_run(request, self._data)
        start_detached(folder, self._data)
        return folder.run

    def stored(self) -> StoredJobs:
        """Return the states of the jobs, and the jobs whose state cannot be read."""
        found = stored_jobs(self._data)
        return replace(found, states=tuple(it for it in found.states if it.kind is not WorkKind.FLEET))

    def find(self, job: str) -> JobFolder:
        return find_job(job, self._data)

    def resume(self, job: str) -> None:
        """Resume a job that is paused, or that ended before it was complete."""
        folder = self.find(job)
        if folder.pause_file.exists() and folder.state().active:
            folder.unpause()
        elif isinstance(folder, RunFolder):
            start_detached(folder, self._data)
        else:
            process.start_detached(folder, self._data, shown_kind(folder.state().kind).kind.function)

    def pause_or_resume(self, run: str) -> str:
        """Pause a run that goes on, or let one go on that is paused or has ended early; return what happens."""
        folder = RunFolders(self._data.runs).find(run)
        if folder.state().active and not folder.pause_file.exists():
            folder.pause()
            return f"Run {run} pauses after its current round."
        self.resume(run)
        return f"Run {run} goes on."

    def cancel(self, run: str) -> None:
        RunFolders(self._data.runs).find(run).cancel()


def is_run(kind: str) -> bool:
    """Return whether work of a kind is a run, which has a screen of its own."""
    return kind in (WorkKind.RUN, WorkKind.PROBE)


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


class JobNews:
    """The state of a job, and its new events; cheap while nothing happens."""

    def __init__(self, folder: JobFolder, reader: EventReader) -> None:
        self.folder = folder
        self.state: JobState = folder.state()
        self._reader = reader

    def new(self) -> Sequence[Event] | None:
        """Return the events since the last look; None if nothing has changed, not even the state."""
        # Before reading the events, so that the last ones are read.
        before, self.state = self.state, self.folder.state()
        events = self._reader.new()
        return events if events or self.state != before else None


_MOST_LINES = 8


class ToldJob(JobNews):
    """The newest lines that a job has told."""

    def __init__(self, folder: JobFolder) -> None:
        super().__init__(folder, reader_of(folder))
        self.lines: deque[str] = deque(maxlen=_MOST_LINES)
        self._line_of = words_for(folder).line

    @property
    def unread(self) -> str:
        """What could not be read of it; empty if there is nothing."""
        return unreadable_in_words(self._reader.unreadable)

    def look(self) -> bool:
        """Return whether anything has changed."""
        events = self.new()
        self.lines.extend(filter(None, map(self._line_of, events or ())))
        return events is not None
