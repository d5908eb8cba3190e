"""A fleet of real processes: a scheduler and two hosts over TLS, and a driver that is killed and resumed."""

import os
import signal
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from onnx import ModelProto
from onnx.helper import make_node

from dlbricks_tui.api.jobs import start_apart
from dlbricks_tui.fleet.folder import FleetFolder, create_fleet
from dlbricks_tui.fleet.request import EVENTS, FleetHostState, FleetRequest, ResultStored, TaskGiven
from dlbricks_tui.fleet.scheduler import Certificates
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.jobs.errors import JobError
from dlbricks_tui.jobs.events import Event, EventReader
from dlbricks_tui.jobs.folder import RunFolders, State
from dlbricks_tui.measure.method import Method
from dlbricks_tui.measure.stopping import FixedRuns
from dlbricks_tui.models.graph import Level
from dlbricks_tui.runs.request import ModelChoice, RunRequest
from dlbricks_tui.runtime.registry import Registry
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.records import Measurement
from tests.fleet.cluster import Cluster
from tests.models.onnx_models import floats, model, saved
from tests.runs.killing import eventually

HOSTS = ("one", "two")
MODEL = "a"
RUNS = 20


def chain(widths: Sequence[int]) -> ModelProto:
    """Return a chain of convolutions and activations."""
    nodes, weights, last, channels = [], [], "x", 3
    for number, width in enumerate(widths):
        weights.append(floats(f"w{number}", (width, channels, 3, 3)))
        nodes.append(make_node("Conv", [last, f"w{number}"], [f"c{number}"], pads=[1, 1, 1, 1]))
        nodes.append(make_node("Relu", [f"c{number}"], [f"r{number}"]))
        last, channels = f"r{number}", width
    return model(nodes, {"x": (1, 3, 12, 12)}, [last], weights)


@pytest.fixture
def data(tmp_path: Path) -> DataFolder:
    return DataFolder(tmp_path / "home")


@pytest.fixture
def cluster(tmp_path: Path, data: DataFolder) -> Iterator[Cluster]:
    certificates = Certificates(data.certificates)
    certificates.create()
    (tmp_path / "cluster").mkdir()
    made = Cluster(tmp_path / "cluster", certificates)
    try:
        made.start(len(HOSTS))
        yield made
    finally:
        made.stop()


def fleet_of(tmp_path: Path, data: DataFolder, **hosts: Any) -> FleetFolder:
    """Return a fleet run of a small model."""
    path = saved(tmp_path, chain((4, 8, 12)), MODEL)
    run = RunRequest(
        models=(ModelChoice(MODEL, path),),
        runtime=Registry(data.path).find("onnxruntime").with_threads(1),
        level=Level.WRITTEN,
        method=Method.ALONE,
        rule=FixedRuns(RUNS),
    )
    return create_fleet(FleetRequest(run=run, probe_seconds=0.0, **hosts), data)


def events_of(folder: FleetFolder) -> tuple[Event, ...]:
    return EventReader(folder.events_file, EVENTS).new()


def was_given_a_task(folder: FleetFolder, host: str) -> bool:
    return any(isinstance(it, TaskGiven) and it.host == host for it in events_of(folder))


def has_run_in(data: DataFolder, *states: State) -> bool:
    return any(run.state in states for run in RunFolders(data.runs).states())


def is_in(folder: FleetFolder, host: str, *states: FleetHostState) -> bool:
    row = folder.progress().hosts.get(host)
    return row is not None and row.state in states


def test_a_finished_fleet_run_stays_so_if_its_scheduler_is_gone(tmp_path: Path, data: DataFolder) -> None:
    # Port 1 is one that nothing listens on.
    folder = fleet_of(tmp_path, data, scheduler="tcp://127.0.0.1:1")
    folder.set_state(replace(folder.state(), state=State.FINISHED))
    before = folder.state()
    with pytest.raises(JobError, match=r"did not start: nothing answers at tcp://127\.0\.0\.1:1"):
        start_apart(folder, data)
    assert folder.state() == before
    assert not events_of(folder)


def test_each_result_is_stored_once_although_a_host_and_the_driver_are_killed(
    tmp_path: Path, data: DataFolder, cluster: Cluster
) -> None:
    folder = fleet_of(tmp_path, data, scheduler=cluster.address)
    start_apart(folder, data)
    # The hosts are paused as soon as they have a task: their runs wait in the middle while the test acts on them.
    for host in HOSTS:
        eventually(partial(was_given_a_task, folder, host))
        folder.command_host(host, "pause")
    for host in HOSTS:
        eventually(partial(has_run_in, cluster.data_of(host), State.PAUSED, State.FINISHED))
    # One host dies with its task, and comes back.
    cluster.kill_host("one")
    eventually(partial(is_in, folder, "one", FleetHostState.LOST, FleetHostState.DONE))
    cluster.start_worker("one")
    eventually(partial(is_in, folder, "one", FleetHostState.PAUSED, FleetHostState.DONE))
    folder.command_host("one", "resume")
    # The driver dies while the other one is paused in the middle of its task, and another driver goes on.
    os.kill(folder.state().process.pid, signal.SIGKILL)
    eventually(lambda: folder.state().state is State.INTERRUPTED)
    start_apart(folder, data)
    eventually(lambda: not folder.state().active)
    assert (folder.state().state, folder.state().message) == (State.FINISHED, "")
    progress = folder.progress()
    assert {name: row.state for name, row in progress.hosts.items()} == dict.fromkeys(HOSTS, FleetHostState.DONE)
    with ResultsDatabase(data.store) as store:
        found = store.records(Measurement)
    systems = {row.system for row in progress.hosts.values()}
    assert len(systems) == len(HOSTS)
    # A run that was cancelled in the middle keeps its samples, too.
    counted = Counter((it.system, it.brick, it.context) for it in found if it.statistics.count == RUNS)
    assert set(counted.values()) == {1}
    assert len(counted) % len(HOSTS) == 0
    assert {it.system for it in found} == systems
    # What the hosts have in their own stores is what is here.
    there = set()
    for host in HOSTS:
        with ResultsDatabase(cluster.data_of(host).store) as store:
            there |= {it.uuid for it in store.records(Measurement)}
    assert {it.uuid for it in found} == there
    told = [it for it in events_of(folder) if isinstance(it, ResultStored)]
    assert len({(it.host, it.brick) for it in told}) == len({(it.system, it.brick) for it in found})
    assert {(it.host, it.model) for it in progress.estimates.values()} == {(it, MODEL) for it in HOSTS}
    assert all(it.missing_layers == 0 and it.sequential_ms for it in progress.estimates.values())
