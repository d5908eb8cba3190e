"""The work of jobs in the process of a test."""

import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

import pytest

from dlbricks_tui.analysis.what_if import Execution
from dlbricks_tui.folders import SAMPLE_MODELS, DataFolder
from dlbricks_tui.jobs.events import Event, JobEnded, JobStarted
from dlbricks_tui.jobs.folder import State
from dlbricks_tui.jobs.kinds import JobKind
from dlbricks_tui.jobs.process import JobAtWork, work_on
from dlbricks_tui.measure.supervised_worker import TimeLimits
from dlbricks_tui.models.graph import Level
from dlbricks_tui.models.library import Library, ModelSource
from tests.runs.runs import FAKE, MODEL, Site

Request = TypeVar("Request")


def fake(**variables: str) -> Execution:
    """The fake worker with these variables, whose latencies hardly vary."""
    settings = replace(FAKE.settings, environment=tuple({"FAKE_NOISE": "0.001", **variables}.items()))
    return Execution(replace(FAKE, settings=settings), Level.WRITTEN)


@dataclass
class Bench:
    """A data folder in which jobs with a model are carried out, the events of the last one, and what they set off."""

    site: Site
    limits: TimeLimits = field(default_factory=TimeLimits)
    act: Callable[[Event], None] = lambda _: None
    told: list[Event] = field(default_factory=list)

    @property
    def source(self) -> ModelSource:
        self.site.path.mkdir(exist_ok=True)
        (found,) = Library(SAMPLE_MODELS, self.site.path).find(MODEL)
        return found

    def take(self, event: Event) -> None:
        self.told.append(event)
        self.act(event)

    def carry(self, kind: JobKind[Request], request: Request, work: Callable[[JobAtWork[Request]], None]) -> bool:
        """Return whether a job came to its end in this process."""
        self.told = []
        return carried_out(kind, request, self.site.data, work, self.take)

    def messages(self, kind: type[Event]) -> list[Any]:
        """The events of a kind."""
        return [it for it in self.told if isinstance(it, kind)]


def carried_out(
    kind: JobKind[Request],
    request: Request,
    data: DataFolder,
    work: Callable[[JobAtWork[Request]], None],
    take: Callable[[Event], None],
) -> bool:
    """Do the work of a job, and return whether it came to its end; `take` gets its events, and why it ended early."""

    def hear(event: Event) -> None:
        if not isinstance(event, JobStarted) and not (isinstance(event, JobEnded) and event.state == "finished"):
            take(event)

    return work_on(kind, kind.create(data, (), request), data, work, hear).state is State.FINISHED


def stands_for_processes(monkeypatch: pytest.MonkeyPatch, *command: str | Path, manner: str = "") -> None:
    """Let a command stand for the processes of jobs: it gets the folders of job and data, and a manner."""

    def command_of(_: str, folder: str, data: str) -> list[str]:
        return [sys.executable, *map(str, command), folder, data, *filter(None, [manner])]

    monkeypatch.setattr("dlbricks_tui.jobs.process.command_of", command_of)
