"""A kind of job: its request, events and function; and the refusal of jobs in a demonstration."""

from dataclasses import dataclass
from typing import Generic, TypeVar

from dlbricks_tui.folders import DataFolder
from dlbricks_tui.host.queue import WorkKind
from dlbricks_tui.jobs.errors import JobError
from dlbricks_tui.jobs.events import EventKinds, EventReader
from dlbricks_tui.jobs.folder import JobFolder, JobFolders, stored_request
from dlbricks_tui.recorded_host import NOTHING_IS_MEASURED, recorded_host

Request = TypeVar("Request")


@dataclass(frozen=True, slots=True)
class JobKind(Generic[Request]):
    """A kind of job: its request, its events, and the function that works on one in a process, as `module:name`."""

    work: WorkKind
    request: type[Request]
    events: EventKinds
    # It is called with the paths of the job's folder and of the data folder. `module` alone means `module:main`.
    function: str

    def reader(self, folder: JobFolder) -> EventReader:
        """Return the reader of the events of such a job."""
        return EventReader(folder.events_file, self.events)

    def request_of(self, folder: JobFolder) -> Request:
        return stored_request(folder.request_file, self.request)

    def create(self, data: DataFolder, models: tuple[str, ...], request: Request, run: str = "") -> JobFolder:
        """Create a job that a process can work on, of this id if there is one."""
        refuse_in_demonstration(self.work)
        return JobFolders(data.jobs).create(models, self.work, run, request)

    def last_unseen(self, data: DataFolder, model: str = "") -> JobFolder | None:
        """Return the newest such job, about a model, whose end nobody has seen; it may have ended."""
        folders = JobFolders(data.jobs)
        for state in reversed(folders.states()):
            if state.kind is self.work and (not model or model in state.models):
                folder = folders.find(state.run)
                return None if folder.seen_file.exists() else folder
        return None


def refuse_in_demonstration(work: WorkKind = WorkKind.RUN) -> None:
    if recorded_host() is not None and work is not WorkKind.EXPORT:
        raise JobError(NOTHING_IS_MEASURED)
