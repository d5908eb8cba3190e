"""Hosts of a fleet for tests: they carry out tasks with the fake worker, in this process or in one of their own."""

import hashlib
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from dlbricks_tui.bricks.decomposition import decompose
from dlbricks_tui.errors import UserError
from dlbricks_tui.fleet.at_host import carry_out_task, take
from dlbricks_tui.fleet.messages import HostMessage, Parcel, ResultFound, Task, TaskProgress
from dlbricks_tui.fleet.workload import MXNET_SUFFIX
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.jobs.folder import JobFolder, RunFolder
from dlbricks_tui.measure.jobs import cut_model
from dlbricks_tui.measure.method import Method
from dlbricks_tui.measure.plan import keys_of
from dlbricks_tui.measure.stopping import Adaptive
from dlbricks_tui.models.graph import LayerGraph, Level
from dlbricks_tui.models.library import source_of
from dlbricks_tui.models.loading import Loader
from dlbricks_tui.runs.request import RunRequest, read_request
from dlbricks_tui.runs.run import execute
from dlbricks_tui.share.onnx_network import network_of
from tests.models import symbols
from tests.models.table_framework import TableFramework
from tests.runs.runs import FAKE, Site

# Few samples, as latencies are made up.
RULE = Adaptive(least=2, most=4)
REQUEST = RunRequest(models=(), runtime=FAKE, level=Level.WRITTEN, method=Method.INSIDE, rule=RULE)
SHAPE = {"data": (1, 3, 16, 16)}


def written(folder: Path, file: bytes | None = None) -> LayerGraph:
    """Return the written layers of a small network, or of another file."""
    path = folder / "net-symbol.json"
    path.write_bytes(file or symbols.content(symbols.small_network()))
    return Loader(folder / "cache", TableFramework()).load(source_of(path), Level.WRITTEN, SHAPE)


def bricks_of(graph: LayerGraph) -> tuple[str, ...]:
    """Return the keys of the bricks that a run measures."""
    return tuple([key.brick for key in keys_of((cut_model(decompose(graph)),), method=Method.INSIDE)])


@dataclass
class FakeHost:
    """A host with a data folder of its own."""

    site: Site
    # The runs that were started, and what was told.
    started: list[str] = field(default_factory=list)
    parcels: list[Path] = field(default_factory=list)
    told: list[HostMessage] = field(default_factory=list)
    processes: "list[subprocess.Popen[bytes]]" = field(default_factory=list)

    @property
    def data(self) -> DataFolder:
        return self.site.data

    def receive(self, parcel: Parcel) -> None:
        """Take a parcel whose types are known without a framework."""
        path = take(self.data, parcel.sha256, parcel.suffix, parcel.content)
        self.parcels.append(path)
        Loader(self.data.cache, TableFramework()).load(source_of(path), Level.WRITTEN)

    def carry_out(self, task: Task, nap: Callable[[], None] = lambda: None, *, detached: bool = False) -> Any:
        """Carry out a task, and return its messages."""
        self.told.clear()
        start = self._detach if detached else self._execute

        def look_again() -> None:
            nap()
            time.sleep(0.01)

        ended = carry_out_task(self.data, task, self.parcels, self.told.append, start, look_again)
        return [*(it for it in self.told if not isinstance(it, TaskProgress)), ended]

    def _execute(self, folder: JobFolder, _: DataFolder) -> None:
        self.started.append(folder.run)
        assert isinstance(folder, RunFolder)
        request = read_request(folder.request_file)
        # The outcome is told by events.
        with suppress(UserError):
            execute(folder, request, self.site.place, self.site.queue, with_estimates=False)

    def _detach(self, folder: JobFolder, _: DataFolder) -> None:
        self.started.append(folder.run)
        assert isinstance(folder, RunFolder)
        process = self.site.start(folder)
        self.processes.append(process)
        while folder.state().process.pid != process.pid and process.poll() is None:
            time.sleep(0.01)

    def end(self) -> None:
        for process in self.processes:
            process.kill()
            process.wait()


def records(messages: Any, table: str) -> list[Any]:
    """Return the records of a table among messages."""
    return [it.record for it in messages if isinstance(it, ResultFound) and it.record["table"] == table]


def task_of(parcel: Parcel, name: str = "task-1", **changes: Any) -> Task:
    """Return a task of all bricks of a parcel."""
    bricks = changes.pop("bricks", tuple(sorted(parcel.bricks)))
    return Task(id=name, request=replace(REQUEST, **changes), bricks=bricks)


def small_parcel(folder: Path) -> Parcel:
    """Return the parcel of a small network."""
    graph = written(folder)
    content = network_of(graph)
    sha256 = hashlib.sha256(content).hexdigest()
    return Parcel(sha256=sha256, suffix=MXNET_SUFFIX, content=content, bricks=frozenset(bricks_of(graph)))
