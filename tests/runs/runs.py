"""Runs in a data folder of their own: in this process, or in one of their own that can be killed."""

import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from dlbricks_tui.folders import SAMPLE_MODELS, DataFolder
from dlbricks_tui.host.queue import HostQueue
from dlbricks_tui.jobs.events import Event
from dlbricks_tui.jobs.folder import JobState, RunFolder
from dlbricks_tui.measure.method import Method
from dlbricks_tui.measure.rounds import BatchLimits
from dlbricks_tui.models.graph import Level
from dlbricks_tui.models.library import Library
from dlbricks_tui.runs.control import create_run
from dlbricks_tui.runs.events import RunEvents
from dlbricks_tui.runs.request import ModelChoice, RunRequest, RuntimeChoice, chosen, read_request
from dlbricks_tui.runs.run import RunOutcome, execute
from dlbricks_tui.runs.work import Workplace
from dlbricks_tui.runtime.runtime import Runtime, Settings
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.records import EndToEnd, Failure, Measurement, Run, new_uuid
from tests.store.samples import system

if TYPE_CHECKING:
    import pytest

ROOT = Path(__file__).parents[2]
FAKE_WORKER = Path(__file__).parent / "fake_worker.py"
FAKE = Runtime("fake", sys.executable, "mxnet", "1.9.1", "3.11.0", Settings(1))
# Its types come with it, so that no framework is asked: 21 layers, 18 unique.
MODEL = "alexnet"
BRICKS = 18


def fake_interpreter(folder: Path) -> Path:
    """Return an interpreter that starts the fake worker whatever it is told to start."""
    interpreter = folder / "python"
    interpreter.write_text(f'#!/bin/sh\nshift\nexec {shlex.quote(sys.executable)} {FAKE_WORKER} "$@"\n')
    interpreter.chmod(0o755)
    return interpreter


@dataclass(frozen=True)
class Contents:
    """The contents of a store."""

    measurements: Sequence[Measurement]
    end_to_end: Sequence[EndToEnd]
    failures: Sequence[Failure]

    @property
    def measured(self) -> list[tuple[str, str]]:
        """The bricks in their contexts, as often as they were measured."""
        return [(it.brick, it.context) for it in self.measurements]


def move_results(store_folder: Path, *systems: str) -> None:
    """Make the results of a store those of other systems, so that this host has none."""
    with ResultsDatabase(store_folder) as store:
        measured, runs = store.records(Measurement), store.records(Run)
        for name in systems:
            store.add(system(name), *[replace(it, system=name, uuid=new_uuid()) for it in measured])
            store.add(*[replace(it, system=name, uuid=new_uuid()) for it in runs])
        store.delete(it.uuid for it in (*measured, *runs))


@dataclass(frozen=True)
class Site:
    """A data folder in which runs work, with a host of its own, and with the fake worker unless another is named."""

    path: Path
    worker_program: Path = FAKE_WORKER
    manners: Mapping[str, str] = field(default_factory=dict)
    nap_seconds: float = 0.0
    # True if naps end with `hurry`.
    can_hurry: bool = False

    @property
    def data(self) -> DataFolder:
        return DataFolder(self.path)

    @property
    def place(self) -> Workplace:
        return Workplace(
            self.data, worker_program=self.worker_program, limits=BatchLimits(programs=6, programs_beside_models=6)
        )

    @property
    def queue(self) -> HostQueue:
        return HostQueue(self.path / "host.lock")

    @property
    def environment(self) -> dict[str, str]:
        """The environment of the fake worker and of a process that starts it."""
        told = {"FAKE_MANNERS": json.dumps(dict(self.manners)), "FAKE_NAP": str(self.nap_seconds)}
        return told | ({"FAKE_SLOW": str(self.slow_file)} if self.can_hurry else {})

    @property
    def slow_file(self) -> Path:
        """A file that the test removes to let slow runs go on without naps."""
        return self.path / "slow"

    def slow(self, nap_seconds: float = 0.05) -> "Site":
        """The site with runs that cannot end before the test has acted on them."""
        self.path.mkdir(exist_ok=True)
        self.slow_file.touch()
        return replace(self, nap_seconds=nap_seconds, can_hurry=True)

    def hurry(self) -> None:
        """Let slow runs, and those that follow, end soon."""
        self.slow_file.unlink(missing_ok=True)

    def request(self, *models: str, **changes: Any) -> RunRequest:
        """A run of these models, or of the usual one, as they are written."""
        self.path.mkdir(exist_ok=True)
        sources = Library(SAMPLE_MODELS, self.path).find_all(models or (MODEL,))
        return RunRequest(models=chosen(sources), level=Level.WRITTEN, **{"runtime": FAKE, **changes})

    def choice(self, runtime: Runtime, models: tuple[ModelChoice, ...]) -> RuntimeChoice:
        """A further runtime of a run."""
        return RuntimeChoice(runtime, models, Method.ALONE)

    def run(self, request: RunRequest, listener: Callable[[Event], None] | None = None) -> JobState:
        """Execute a run in this process."""
        folder = create_run(request, self.data)
        return execute(folder, request, self.place, self.queue, listener).state

    def start(self, folder: RunFolder) -> "subprocess.Popen[bytes]":
        """Execute a run in a process of its own, which outlives its terminal."""
        where = (str(self.path), str(self.worker_program), str(folder.path))
        command = [sys.executable, str(Path(__file__)), *where]
        return subprocess.Popen(command, env={**os.environ, **self.environment}, stdin=subprocess.DEVNULL)

    def contents(self) -> Contents:
        """Return the contents of the store."""
        with ResultsDatabase(self.data.store) as store:
            assert not store.damage
            return Contents(store.records(Measurement), store.records(EndToEnd), store.records(Failure))

    def events(self, folder: RunFolder) -> tuple[Event, ...]:
        """Return all events of a run."""
        return RunEvents(folder.events_file).new()


def misbehaving(site: Site, monkeypatch: "pytest.MonkeyPatch", **manners: str) -> Site:
    """The site with programs of these operators behaving so."""
    rude = replace(site, manners=manners)
    for name, value in rude.environment.items():
        monkeypatch.setenv(name, value)
    return rude


@dataclass(frozen=True)
class Measured:
    """A site with a finished run, its outcome and its events."""

    site: Site
    outcome: RunOutcome
    events: tuple[Event, ...]

    @property
    def state(self) -> JobState:
        return self.outcome.state

    def copied(self, path: Path) -> Site:
        """Return a copy of the site in another folder."""
        shutil.copytree(self.site.path, path)
        return Site(path)


def main(data: str, worker_program: str, folder: str) -> None:
    """The process that `Site.start` starts; its environment is told already."""
    site, run = Site(Path(data), Path(worker_program)), RunFolder(Path(folder))
    execute(run, read_request(run.request_file), site.place, site.queue, detached=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
