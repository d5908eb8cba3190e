"""The work of jobs in the process of a test."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest

from dlbricks_tui.folders import DataFolder
from dlbricks_tui.jobs.events import Event, JobEnded, JobStarted
from dlbricks_tui.jobs.folder import State
from dlbricks_tui.jobs.kinds import JobKind
from dlbricks_tui.jobs.process import JobAtWork, work_on

Request = TypeVar("Request")


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

    return work_on(kind, kind.create(data, (), request), data, work, hear) is State.FINISHED


def stands_for_processes(monkeypatch: pytest.MonkeyPatch, *command: str | Path, manner: str = "") -> None:
    """Let a command stand for the processes of jobs: it gets the folders of job and data, and a manner."""

    def command_of(_: str, folder: str, data: str) -> list[str]:
        return [sys.executable, *map(str, command), folder, data, *filter(None, [manner])]

    monkeypatch.setattr("dlbricks_tui.jobs.process.command_of", command_of)
