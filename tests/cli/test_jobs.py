"""`dlbricks jobs` with runs, a fleet run and a proof whose work is made up, replays of runs, and `dlbricks demo`."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from dlbricks_tui.analysis.proving import PROOF, ProofDone, ProofOrder, RoundsDone
from dlbricks_tui.analysis.what_if import Gain, MeasuredGain
from dlbricks_tui.api import jobs
from dlbricks_tui.api.demonstration import Demonstration
from dlbricks_tui.cli.main import main
from dlbricks_tui.config.config import Sources
from dlbricks_tui.errors import UserError
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.host.queue import HOST_LOCK_VARIABLE, HostQueue, ProcessIdentity, WorkKind, queued
from dlbricks_tui.jobs.control import JobStopped
from dlbricks_tui.jobs.errors import JobError
from dlbricks_tui.jobs.events import Event, Waiting
from dlbricks_tui.jobs.folder import JobFolder, JobFolders, State, Tally, store_request
from dlbricks_tui.jobs.process import JobAtWork, work_on
from dlbricks_tui.models.library import ModelSource
from dlbricks_tui.recorded_host import recorded_host
from dlbricks_tui.runs.request import RunRequest
from dlbricks_tui.runtime.registry import Registry
from tests.cli.people import Command
from tests.fleet.sample_fleet import sample_fleet
from tests.runs.live_runs import NOBODY, RUN, ended, in_the_middle, planned, put_run

GAIN = MeasuredGain(9.0, 0.42, (0.40, 0.44), 15.6, "2026-11-27T00:00:00+00:00")
TOLD: tuple[Event, ...] = (
    Waiting(holder="a run"),
    RoundsDone("threads-1", 7, Gain(0.41, 0.38, 0.44), 12.0),
    ProofDone("threads-1", GAIN, "", 12),
)
# Rounds are told now and then.
LINES = ["waiting for a run", "use 1 thread: measured +42.0 % (+40.0 % to +44.0 %), predicted nothing, in 12 rounds"]


@pytest.fixture
def data(data_folder: str) -> DataFolder:
    return DataFolder(Path(data_folder))


def proof(data: DataFolder, error: Exception | None = None) -> JobFolder:
    """Return a job whose work was done in this process."""
    folder = PROOF.create(data, ("net",), ProofOrder(ModelSource("net", Path("/net.onnx")), ()))

    def work(job: JobAtWork[ProofOrder]) -> None:
        for event in TOLD:
            job.tell(event)
        if error is not None:
            raise error

    work_on(PROOF, folder, data, work)
    return folder


def test_jobs_of_all_kinds_are_listed_and_damaged_ones_named(dlbricks: Command, data: DataFolder) -> None:
    assert dlbricks("jobs")[2] == "no job yet: `dlbricks run MODEL` makes the first\n"
    run, fleet, job = put_run(data, [planned(), ended()]), sample_fleet(data), proof(data)
    earlier = data.jobs / "trace-20261121-080000-ab12"
    earlier.mkdir()
    (earlier / "process.json").write_text('{"pid": 4194305, "started": "gone"}')
    status, out, _ = dlbricks("jobs", "--json")
    found = {it["id"]: it for it in json.loads(out)}
    assert status == 0 and {it["kind"] for it in found.values()} == {"run", "fleet run", "proof", "trace"}
    assert (found[job.run]["state"], found[job.run]["models"], found[job.run]["pid"]) == ("finished", ["net"], None)
    assert found[run.run]["kind"] == "run" and found[fleet.run]["kind"] == "fleet run"
    assert found[earlier.name]["state"] == "interrupted"
    (job.path / "state.json").write_text("{}")
    status, out, told = dlbricks("jobs", "list")
    assert status == 1 and "is damaged" in told
    assert f"trace      {earlier.name}" in out


def test_the_time_left_is_that_which_a_job_tells_other_work(
    dlbricks: Command, data: DataFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(HOST_LOCK_VARIABLE, str(tmp_path / "host.lock"))
    ticket = HostQueue(tmp_path / "host.lock").join(queued(WorkKind.PROOF, ["net"], data.path))
    assert ticket.try_take()
    ticket.progress(0.5, 1000.0)
    folder = PROOF.create(data, ("net",), ProofOrder(ModelSource("net", Path("/net.onnx")), ()))
    (found,) = json.loads(dlbricks("jobs", "--json")[1])
    ticket.leave()
    assert found["id"] == folder.run and 900 < found["seconds_left"] <= 1000


@pytest.mark.parametrize("action", [("watch",), ("replay", "--speed", "1000")])
def test_a_job_is_watched_and_replayed_by_its_id_its_beginning_or_as_the_last(
    dlbricks: Command, data: DataFolder, action: tuple[str, ...]
) -> None:
    folder = proof(data)
    for name in (folder.run, folder.run[:-1], "last"):
        status, _, told = dlbricks("jobs", *action, name)
        assert (status, told.splitlines()) == (0, [*LINES, f"job {folder.run} is finished"])
    with folder.events_file.open("ab") as file:
        file.write(b'{"event":"Flown","when":"2026-11-21T08:00:00+00:00"}\n')
    assert "1 event of another version left out: Flown\n" in dlbricks("jobs", *action, "last")[2]
    status, out, told = dlbricks("jobs", *action, "last", "--quiet", "--json")
    assert json.loads(out)["id"] == folder.run and LINES[0] not in told


def test_the_reason_of_an_end_is_told(dlbricks: Command, data: DataFolder) -> None:
    folder = proof(data, UserError("the worker was lost"))
    status, _, told = dlbricks("jobs", "watch", "last")
    assert status == 1 and told.endswith(f"job {folder.run} has failed: the worker was lost\n")


def test_a_job_that_has_ended_is_worked_on_again(
    dlbricks: Command, data: DataFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, started = proof(data, UserError("the worker was lost")), list[tuple[str, str]]()
    monkeypatch.setattr(jobs, "start_detached", lambda it, _, function: started.append((it.run, function)))
    status, _, told = dlbricks("jobs", "resume", "last", "--detach")
    assert (status, told) == (0, f"job {folder.run} goes on in a separate process\n")
    assert started == [(folder.run, PROOF.function)]
    folder.set_state(replace(folder.state(), state=State.RUNNING))
    assert "is running already" in dlbricks("jobs", "resume", "last")[2]
    cancelled: list[str] = []
    monkeypatch.setattr(JobFolder, "cancel", lambda it: cancelled.append(it.run))
    assert dlbricks("jobs", "cancel", "last")[0] == 0 and cancelled == [folder.run]


def test_a_job_that_is_finished_is_not_worked_on_again(data: DataFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[str] = []
    monkeypatch.setattr(jobs, "start_detached", lambda it, *_: started.append(it.run))
    run = put_run(data, [planned(), ended()], State.FINISHED)
    whole = Tally(1, 1)
    run.set_state(replace(run.state(), bricks=whole, whole_models=whole))
    store_request(run.request_file, RunRequest(models=(), runtime=Registry(data.path).default()))
    for folder, reason in ((run, "nothing of it is missing"), (proof(data), "nothing to resume")):
        with pytest.raises(JobError, match=reason):
            jobs.pause_or_resume(folder.run, data)
    assert not started


def test_a_job_of_any_kind_is_paused_and_goes_on(
    dlbricks: Command, data: DataFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []

    def paused(_: JobAtWork[ProofOrder]) -> None:
        told.append(dlbricks("jobs", "pause", "last")[2])
        raise JobStopped(State.CANCELLED, "it was cancelled")

    monkeypatch.setattr("os.kill", lambda *_: None)
    folder = PROOF.create(data, ("net",), ProofOrder(ModelSource("net", Path("/net.onnx")), ()))
    assert work_on(PROOF, folder, data, paused).state is State.PAUSED
    assert told == [f"job {folder.run} pauses: what it has stored is kept\n"]
    gone = replace(folder.state().process, started="gone")
    folder.set_state(replace(folder.state(), process=gone))
    (found,) = json.loads(dlbricks("jobs", "--json")[1])
    assert (found["state"], found["pid"]) == ("paused", None)
    started: list[str] = []
    monkeypatch.setattr(jobs, "start_detached", lambda it, *_: started.append(it.run))
    assert dlbricks("jobs", "resume", "last", "--detach")[0] == 0 and started == [folder.run]


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        ("llm smollm2-135m --detach", "language model"),
        ("trace squeezenet1.1 --detach", "trace"),
        pytest.param("scenario squeezenet1.1 --kind single --detach", "load test", marks=pytest.mark.mxnet),
        ("suite export squeezenet1.1 -o s.json --detach", "suite export"),
    ],
)
def test_any_work_can_go_on_in_a_process_of_its_own(
    dlbricks: Command, data: DataFolder, monkeypatch: pytest.MonkeyPatch, words: str, kind: str
) -> None:
    monkeypatch.setattr(jobs, "start_detached", lambda *_: None)
    status, out, told = dlbricks(*words.split())
    (folder,) = JobFolders(data.jobs).folders()
    assert (status, out) == (0, f"{folder.run}\n")
    assert told.endswith(f"it runs in a separate process; `dlbricks jobs watch {folder.run}` shows its progress\n")
    assert folder.state().kind.value == kind and folder.state().models[0] in words
    assert json.loads(dlbricks(*words.split(), "--json")[1])["kind"] == kind


def test_what_cannot_be_done_is_one_line(dlbricks: Command, data: DataFolder) -> None:
    assert "there is no job yet" in dlbricks("jobs", "watch", "last")[2]
    proof(data)
    assert "there is nothing to pause" in dlbricks("jobs", "pause", "last")[2]
    assert "there is nothing to cancel" in dlbricks("jobs", "cancel", "last")[2]
    assert "no job is called 'x'" in dlbricks("jobs", "watch", "x")[2]


def test_runs_and_fleet_runs_are_shown_by_their_own_commands(dlbricks: Command, data: DataFolder) -> None:
    run = put_run(data, [planned(), ended()])
    assert f"end of the replay: run {run.run} was finished" in dlbricks("jobs", "replay", run.run, "--speed", "1000")[2]
    assert "pauses after its current round" in dlbricks("jobs", "pause", run.run)[2]
    fleet = sample_fleet(data, State.FINISHED)
    assert "c7i" in dlbricks("jobs", "watch", fleet.run)[1]
    assert "at no --speed" in dlbricks("jobs", "replay", fleet.run, "--speed", "9")[2]


REPLAY = ("runs", "replay", "last")
FAST = (*REPLAY, "--speed", "100000")


def test_a_replay_shows_the_progress_and_ends_with_the_estimates(data: DataFolder, dlbricks: Command) -> None:
    put_run(data, [*in_the_middle(), ended()], State.FINISHED)
    status, out, told = dlbricks(*FAST)
    assert status == 0
    assert "nothing is measured now" in told and f"run {RUN} was finished\n" in told
    assert "left out: broken" in told and "failed: Convolution 3x3" in told
    assert "resnet18_v1    part 12.50 ms" in out and "12.34 to 12.66 ms" in out
    # The run takes half a minute, the replay no time; a line comes after ten seconds of the run.
    assert sum(" of 40 bricks, " in line for line in told.splitlines()) >= 1
    status, out, _ = dlbricks(*FAST, "--json", "--quiet")
    found = json.loads(out)
    assert (found["run"], found["state"], found["runtime"]) == (RUN, "finished", "mxnet-1.9.1 python-3.11 threads-2")
    first = found["models"][0]
    assert (first["model"], first["sequential_ms"], first["measured_ms"]) == ("resnet18_v1", 12.5, 0.05)
    assert (first["measured_layers"], first["layers"]) == (40, 60)


def test_a_replay_at_the_speed_of_the_run_says_so(data: DataFolder, dlbricks: Command) -> None:
    put_run(data, [planned(), ended(seconds=2)], State.FINISHED)
    assert " of it, at its own speed; nothing is measured now" in dlbricks(*REPLAY)[2]


@pytest.mark.parametrize(("process", "then"), [(None, "and may go on"), (NOBODY, "then interrupted")])
def test_a_replay_says_of_a_run_whose_process_was_killed_that_it_does_not_go_on(
    process: ProcessIdentity | None, then: str, data: DataFolder, dlbricks: Command
) -> None:
    put_run(data, [planned()], process=process)
    assert dlbricks(*FAST)[2].endswith(f"end of the replay: run {RUN} was running, {then}\n")


def test_runs_have_the_names_of_their_models_in_a_narrow_terminal(
    data: DataFolder, dlbricks: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_run(data, [planned(), ended()], State.FINISHED)
    monkeypatch.setenv("COLUMNS", "80")
    assert "resnet18_v1, squeez" in dlbricks("runs")[1]


ROOT = Path(__file__).parents[2]
AT_ONCE = ("--speed", "100000")
# Frameworks that are asked for are missing, and so is every other program.
BLOCKED = """
import importlib.abc, subprocess, sys

class Blocker(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name.partition(".")[0] in ("mxnet", "onnxruntime", "openvino", "distributed", "mlperf_loadgen"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Blocker())

def refuse(*_, **__):
    raise AssertionError("a process was started")

subprocess.Popen.__init__ = refuse
from dlbricks_tui.cli.main import main
sys.exit(main(sys.argv[1:]))
"""


def test_it_needs_no_framework_and_starts_no_process(tmp_path: Path) -> None:
    command = [sys.executable, "-c", BLOCKED, "--data-dir", str(tmp_path / "data"), "demo", "--json", *AT_ONCE]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    found = json.loads(ran.stdout)
    assert found["state"] == "finished" and len(found["models"]) >= 3
    assert all(it["sequential_ms"] > 0 < it["measured_ms"] for it in found["models"])
    assert not (tmp_path / "data").exists()
    assert "a demonstration: all numbers were recorded on " in ran.stderr


def test_in_a_terminal_it_opens_the_workbench_on_the_recorded_results(tmp_path: Path) -> None:
    opened = []

    def demonstrate(found: Demonstration, sources: Sources, speed: float) -> int:
        opened.append((found.data.store.is_dir(), recorded_host() is found.host, speed, sources.read().theme))
        return 7

    arguments = ["--data-dir", str(tmp_path), "--set", "workbench.theme=light", "demo", "--speed", "2"]
    assert main(arguments, demonstrate=demonstrate) == 7
    assert opened == [(True, True, 2.0, "light")] and recorded_host() is None
