"""The spare process of a workbench: real processes with a fake worker."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from dlbricks_tui.api.jobs import start_run
from dlbricks_tui.host.queue import HostQueue, host_queue
from dlbricks_tui.host_files import HostFiles
from dlbricks_tui.jobs.folder import RunFolders, State, store_request
from dlbricks_tui.measure.events import BatchStarted
from dlbricks_tui.measure.stopping import FixedRuns
from dlbricks_tui.runs.events import WorkerReplaced
from dlbricks_tui.runs.request import RunRequest
from dlbricks_tui.runs.results import ONEDNN
from dlbricks_tui.share.spare import SpareRun
from tests.host.lines import turn_of
from tests.runs.killing import all_are_gone, eventually, has_told, is_alive, workers_of
from tests.runs.runs import BRICKS, FAKE, ROOT, Site, fake_interpreter

# A workbench that prepares a run, tells the process and waits.
WORKBENCH = """
import sys, time
from pathlib import Path
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.runs.request import read_request
from dlbricks_tui.share.spare import SpareRun
spare = SpareRun(DataFolder(Path(sys.argv[1])))
spare.prepare(read_request(Path(sys.argv[2])), lambda: False)
print(spare._process.pid, flush=True)
time.sleep(600)
"""


@pytest.fixture
def site(tmp_path: Path) -> Site:
    fake_interpreter(tmp_path)
    found = Site(tmp_path / "data")
    # No worker has to tell it.
    (found.data.cache / ONEDNN).mkdir(parents=True)
    return found


@pytest.fixture
def spare(site: Site) -> Iterator[SpareRun]:
    found = SpareRun(site.data)
    yield found
    found.end()


@pytest.fixture
def slow_site(site: Site, monkeypatch: pytest.MonkeyPatch) -> Site:
    """The site, where runs of the spare process cannot end before the test has acted on them."""
    found = site.slow()
    for name, value in found.environment.items():
        monkeypatch.setenv(name, value)
    return found


def request_of(site: Site, threads: int = 1) -> RunRequest:
    fake = replace(FAKE, python=str(site.path.with_name("python"))).with_threads(threads)
    return site.request(runtime=fake, rule=FixedRuns(3))


def prepared(spare: SpareRun, request: RunRequest) -> tuple[int, int]:
    """Prepare a run; return the process and its worker."""
    spare.prepare(request, lambda: False)
    assert spare._process is not None
    pid = spare._process.pid
    eventually(lambda: workers_of(pid))
    return pid, workers_of(pid)[0]


def test_the_next_run_takes_the_spare_with_its_worker_and_measures_the_same(
    slow_site: Site, spare: SpareRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    pid, worker = prepared(spare, request_of(slow_site))
    # As the settings have not changed, the worker stays.
    assert prepared(spare, request_of(slow_site)) == (pid, worker)
    folder = RunFolders(slow_site.data.runs).find(start_run(request_of(slow_site), slow_site.data, spare))
    assert folder.state().process.pid == pid
    # The run outlives the workbench.
    spare.end()
    eventually(lambda: folder.state().state is State.RUNNING)
    assert not list(slow_site.data.log.iterdir()) and folder.worker_log.exists()
    assert workers_of(pid) == [worker] and Path(f"/proc/{pid}/cwd").readlink() == folder.path
    with monkeypatch.context() as patch:
        # As before it joins the line of the host.
        patch.setattr("dlbricks_tui.share.spare.host_queue", lambda: HostQueue(slow_site.path / "no-line"))
        spare.prepare(request_of(slow_site, 2), lambda: False)
    assert spare._process is None
    slow_site.hurry()
    eventually(lambda: not folder.state().active)
    assert (folder.state().state, folder.state().bricks.measured) == (State.FINISHED, BRICKS)
    assert not has_told(folder, WorkerReplaced)
    usual = replace(request_of(slow_site), again=True)
    other = RunFolders(slow_site.data.runs).find(start_run(usual, slow_site.data, spare))
    assert other.state().process.pid != pid
    eventually(lambda: not other.state().active)
    taken = {run.run: [it for it in slow_site.contents().measurements if it.run == run.run] for run in (folder, other)}
    ids = [{(it.system, it.runtime, it.protocol) for it in found} for found in taken.values()]
    assert ids[0] == ids[1] and len(ids[0]) == 1


def test_a_worker_that_tells_the_version_of_onednn_waits_with_the_first_one_and_is_gone_before_it_measures(
    slow_site: Site, spare: SpareRun
) -> None:
    (slow_site.data.cache / ONEDNN).rmdir()
    pid, _ = prepared(spare, request_of(slow_site))
    eventually(lambda: len(workers_of(pid)) == 2)
    workers = workers_of(pid)
    folder = RunFolders(slow_site.data.runs).find(start_run(request_of(slow_site), slow_site.data, spare))
    eventually(lambda: has_told(folder, BatchStarted))
    (worker,) = workers_of(pid)
    assert worker in workers
    slow_site.hurry()
    eventually(lambda: not folder.state().active)
    assert folder.state().is_finished


def test_after_other_settings_another_worker_takes_the_place_of_the_first(site: Site, spare: SpareRun) -> None:
    pid, worker = prepared(spare, request_of(site))
    spare.prepare(request_of(site, 2), lambda: False)
    eventually(lambda: workers_of(pid) not in ([], [worker]))
    (second,) = workers_of(pid)
    assert all_are_gone([worker])
    # A run with settings that were never told has the process and a worker of its own.
    folder = RunFolders(site.data.runs).find(start_run(request_of(site, 3), site.data, spare))
    assert folder.state().process.pid == pid
    eventually(lambda: not folder.state().active)
    assert folder.state().is_finished and all_are_gone([second])
    assert {it.runtime.split()[2] for it in site.contents().measurements} == {"threads-3"}


def test_a_run_whose_spare_was_killed_has_a_process_of_its_own(site: Site, spare: SpareRun) -> None:
    pid, worker = prepared(spare, request_of(site))
    os.kill(pid, signal.SIGKILL)
    eventually(lambda: all_are_gone([pid, worker]))
    folder = RunFolders(site.data.runs).find(start_run(request_of(site), site.data, spare))
    eventually(lambda: not folder.state().active)
    assert folder.state().is_finished


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_spare_ends_with_its_workbench(site: Site, number: signal.Signals) -> None:
    request = site.data.path / "request.json"
    store_request(request, request_of(site))
    command = [sys.executable, "-c", WORKBENCH, str(site.data.path), str(request)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as workbench:
        assert workbench.stdout is not None
        pid = int(workbench.stdout.readline())
        eventually(lambda: workers_of(pid))
        workers = workers_of(pid)
        workbench.send_signal(number)
    eventually(lambda: all_are_gone([pid, *workers]))


def test_none_is_there_while_other_work_measures_or_memory_is_short_or_the_question_is_over(
    site: Site, spare: SpareRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    spare.prepare(request_of(site), lambda: True)
    assert spare._process is None
    pid, worker = prepared(spare, request_of(site))
    with monkeypatch.context() as patch:
        patch.setattr(HostFiles, "fields", lambda *_: {"MemAvailable": "1000000 kB"})
        spare.prepare(request_of(site), lambda: False)
    eventually(lambda: all_are_gone([pid, worker]))
    theirs = turn_of(host_queue(), "another", site.path)
    spare.prepare(request_of(site), lambda: False)
    assert spare._process is None
    theirs.leave()
    spare.prepare(request_of(site), lambda: False)
    assert spare._process is not None and is_alive(spare._process.pid)
