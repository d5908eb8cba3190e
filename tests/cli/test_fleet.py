"""`dlbricks fleet`, with a driver that tells the events of a fleet run, and hosts that are examined at once."""

import io
import stat
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from dlbricks_tui.cli.progress import ShownFleet
from dlbricks_tui.fleet import doctor, worker
from dlbricks_tui.fleet import driver as running
from dlbricks_tui.fleet.doctor import Examination, FindingVerdict, HostFinding, Readiness
from dlbricks_tui.fleet.driver import FleetPlace
from dlbricks_tui.fleet.folder import COMMANDS, FleetFolder, FleetFolders, HostCommanded, read_fleet_request
from dlbricks_tui.fleet.request import FleetEnded, FleetHostState, FleetProgress, FleetRequest, HostEntry
from dlbricks_tui.folders import DATA_FOLDER_VARIABLE, DataFolder, data_folder
from dlbricks_tui.host.queue import this_process
from dlbricks_tui.jobs.events import Event, EventReader
from dlbricks_tui.jobs.folder import JobState, State
from dlbricks_tui.settings.measuring import Question
from tests.cli.people import Command, document, one_line, schema_kept
from tests.fleet.sample_fleet import EVENTS, changed, measuring, sample_fleet, tell
from tests.models.onnx_models import saved, small

# No SSH server answers at port 1.
HOSTS = """
[defaults]
port = 1

[[host]]
name = "c7i"
address = "127.0.0.1"
price_per_hour = 0.2

[[host]]
name = "m8g"
address = "127.0.0.1"
"""


@pytest.fixture
def data(tmp_path: Path) -> DataFolder:
    return DataFolder(tmp_path / "data")


@pytest.fixture
def hosts(tmp_path: Path) -> Path:
    path = tmp_path / "hosts.toml"
    path.write_text(HOSTS)
    return path


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return saved(tmp_path, small())


@pytest.fixture
def driven(monkeypatch: pytest.MonkeyPatch) -> list[FleetRequest]:
    """The requests of fleet runs, whose hosts have measured everything at once."""
    requests: list[FleetRequest] = []

    def drive(folder: FleetFolder, place: FleetPlace, take: Callable[[Event], None]) -> JobState:
        requests.append(read_fleet_request(folder.request_file))
        done = [measuring(*it, state=FleetHostState.DONE) for it in (("c7i", 60), ("m8g", 12))]
        for event in (*EVENTS, *done, FleetEnded(state="finished", message="", seconds=1.0)):
            tell(folder, event)
            take(event)
        folder.set_state(replace(folder.state(), state=State.FINISHED))
        return folder.state()

    monkeypatch.setattr(running, "execute_fleet", drive)
    return requests


def test_the_estimates_of_each_model_on_each_host_are_printed_or_one_document_of_its_schema(
    dlbricks: Command, driven: list[FleetRequest], hosts: Path, model: Path
) -> None:
    options = ("--hosts", hosts, "--question", "which-host", "--probe-seconds", "5", "--threads", "1")
    asked = ("run", model, "--runtime", "onnxruntime", *options)
    status, out, told = dlbricks("fleet", *asked)
    assert status == 1, "a host was refused"
    assert "~31.00" in out and "resnet50_v1: m8g < c7i (95 % sure)" in out
    assert "old refused: it has dlbricks 0.1.0, and 0.2.0 is needed" in told
    (request,) = driven
    assert [(it.name, it.price_per_hour) for it in request.hosts] == [("c7i", 0.2), ("m8g", None)]
    assert (request.question, request.probe_seconds, request.scheduler) == (Question.WHICH_HOST, 5.0, "")
    assert request.run.runtime.settings.threads == 1 and not request.run.end_to_end, "whole models stay at home"
    found = document(dlbricks("fleet", *asked, "--json"), 1)
    schema_kept(found, "fleet", "run")
    hosts_found = [(it["host"], it["state"], it["bricks"]) for it in found["hosts"]]
    assert hosts_found == [("c7i", "done", 60), ("m8g", "done", 12), ("old", "refused", 0)]
    best, _ = found["models"][0]["estimates"]
    assert (best["host"], best["predicted_layers"]) == ("m8g", 12)


def test_wrong_hosts_schedulers_and_times_are_refused_in_one_line(
    dlbricks: Command, tmp_path: Path, model: Path, hosts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "broken.toml").write_text("[[host]]\nnme = 1\n")
    for options, said in {
        (): "one of the arguments --hosts --scheduler is required",
        ("--hosts", hosts, "--scheduler", "tls://x:1"): "not allowed with argument",
        ("--hosts", hosts, "--runtime", "nix"): "nix",
        ("--hosts", tmp_path / "broken.toml"): "broken.toml, line",
        ("--hosts", tmp_path / "gone.toml"): "gone.toml",
    }.items():
        assert said in one_line(dlbricks("fleet", "run", model, *options))
    asked = ("--llm", "smollm2-135m", "--hosts", hosts, "--precision", "int8")
    assert "--precision is for a MODEL" in one_line(dlbricks("fleet", "run", *asked))
    assert "--level is for a MODEL" in one_line(dlbricks("fleet", "run", *asked[:-2], "--level", "written"))
    assert "name one by --llm" in one_line(dlbricks("fleet", "run", model, "--hosts", hosts, "--prompt", "64"))
    assert "--allow-plain is for" in one_line(dlbricks("fleet", "run", model, "--hosts", hosts, "--allow-plain"))
    monkeypatch.setattr("dlbricks_tui.api.fleets.find_spec", lambda name: None)
    assert "pip install 'dlbricks-tui[fleet]'" in one_line(dlbricks("fleet", "run", model, "--hosts", hosts))


def test_a_scheduler_that_cannot_be_used_is_refused_before_there_is_a_fleet_run(
    dlbricks: Command, driven: list[FleetRequest], data: DataFolder, model: Path
) -> None:
    named = ("run", model, "--runtime", "onnxruntime", "--scheduler")
    assert "neither encryption nor certificates" in one_line(dlbricks("fleet", *named, "tcp://10.0.0.1:8786"))
    assert "is no address of a scheduler" in one_line(dlbricks("fleet", *named, "10.0.0.1"))
    assert "dlbricks fleet init" in one_line(dlbricks("fleet", *named, "tls://10.0.0.1:8786"))
    assert not data.fleets.exists()
    # Without TLS it is used with leave of the user.
    dlbricks("fleet", *named, "tcp://10.0.0.1:8786", "--allow-plain")
    assert [(it.scheduler, it.allow_plain) for it in driven] == [("tcp://10.0.0.1:8786", True)]


def test_status_shows_the_newest_fleet_run(dlbricks: Command, data: DataFolder) -> None:
    assert "there is no fleet run yet; `dlbricks fleet run` starts one" in one_line(dlbricks("fleet", "status"))
    folder = sample_fleet(data)
    status, out, _ = dlbricks("fleet", "status")
    assert status == 0 and "c7i" in out and "45 of 60" in out and "3 rounds" in out
    assert folder.run in dlbricks("fleet", "list")[1]
    assert dlbricks("fleet", "pause", "last")[0] == 0 and folder.pause_file.exists()
    assert dlbricks("fleet", "resume", "last")[0] == 0 and not folder.pause_file.exists()
    assert "is running already" in one_line(dlbricks("fleet", "resume", "last"))


@pytest.mark.parametrize(("state", "statuses"), [(State.FINISHED, (1, 1)), (State.CANCELLED, (1, 130))])
def test_a_fleet_run_that_has_ended_is_followed_to_its_end_and_neither_paused_nor_cancelled(
    dlbricks: Command, data: DataFolder, state: State, statuses: tuple[int, int]
) -> None:
    sample_fleet(data, state)
    status, out, told = dlbricks("fleet", "status", "last", "--follow")
    assert status == statuses[1] and "m8g" in out and "old refused" in told
    assert ("dlbricks fleet resume" in told) == (state is State.CANCELLED)
    assert dlbricks("fleet", "status")[0] == statuses[0]
    assert "nothing to pause" in one_line(dlbricks("fleet", "pause", "last"))
    assert "nothing to cancel" in one_line(dlbricks("fleet", "cancel", "last"))


def test_single_hosts_are_paused_resumed_and_cancelled_by_commands_to_the_driver(
    dlbricks: Command, driven: list[FleetRequest], data: DataFolder, hosts: Path, model: Path
) -> None:
    dlbricks("fleet", "run", model, "--runtime", "onnxruntime", "--hosts", hosts)
    (state,) = FleetFolders(data.fleets).states()
    folder = FleetFolder(data.fleets / state.run)
    folder.set_state(replace(state, state=State.RUNNING, process=this_process()))
    actions = ("pause", "resume", "cancel")
    for action in actions:
        assert dlbricks("fleet", action, state.run, "--host", "m8g")[0] == 0
    told = EventReader(folder.commands_file, COMMANDS).new()
    assert told == tuple(HostCommanded(host="m8g", what=action) for action in actions)
    assert "leave it or --host out" in one_line(dlbricks("fleet", "resume", "last", "--host", "m8g", "--detach"))
    assert "has no host 'm9'" in one_line(dlbricks("fleet", "pause", "last", "--host", "m9"))


def test_hosts_are_added_to_a_fleet_run_over_ssh_only(
    dlbricks: Command, driven: list[FleetRequest], data: DataFolder, hosts: Path, model: Path, tmp_path: Path
) -> None:
    more = tmp_path / "more.toml"
    more.write_text('[[host]]\nname = "c8a"\n')
    dlbricks("fleet", "run", model, "--runtime", "onnxruntime", "--hosts", hosts)
    status, _, told = dlbricks("fleet", "add", "last", "--hosts", more)
    assert (status, "takes in c8a" in told) == (0, True)
    assert "has a host c8a already" in one_line(dlbricks("fleet", "add", "last", "--hosts", more))
    dlbricks("fleet", "run", model, "--runtime", "onnxruntime", "--scheduler", "tcp://127.0.0.1:8786")
    assert "dlbricks fleet worker tcp://127.0.0.1:8786" in one_line(dlbricks("fleet", "add", "last", "--hosts", more))


def test_a_complete_fleet_run_is_shown_and_not_driven_again(
    dlbricks: Command,
    driven: list[FleetRequest],
    data: DataFolder,
    hosts: Path,
    model: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    dlbricks("fleet", "run", model, "--runtime", "onnxruntime", "--hosts", hosts)
    (state,) = FleetFolders(data.fleets).states()
    folder = FleetFolder(data.fleets / state.run)
    tell(folder, *[measuring(it, 60, failed=0, state=FleetHostState.DONE) for it in ("c7i", "m8g")])
    before = folder.state()
    _, out, told = dlbricks("fleet", "resume", "last")
    assert "60 of 60" in out
    assert f"fleet run {folder.run} is complete: there is nothing to resume" in told
    assert (folder.state(), len(driven)) == (before, 1)
    more = tmp_path / "more.toml"
    more.write_text('[[host]]\nname = "c8a"\naddress = "127.0.0.1"\nport = 1\n')
    dlbricks("fleet", "add", "last", "--hosts", more)
    dlbricks("fleet", "resume", "last")
    assert (folder.state(), len(driven)) == (before, 1), "none of its hosts is there"
    monkeypatch.setattr("dlbricks_tui.fleet.ssh.check_hosts", lambda *_, **__: None)
    dlbricks("fleet", "resume", "last")
    assert len(driven) == 2, "a host was added"


EXAMINED = (
    Examination(
        host="c7i",
        state=Readiness.READY,
        findings=(HostFinding(subject="Python", state="3.11.2", verdict=FindingVerdict.FINE),),
        system="intel-4c-1",
        bricks=12,
    ),
    Examination(
        host="m8g",
        state=Readiness.LACKING,
        findings=(
            HostFinding(subject="Python", state="3.11.2", verdict=FindingVerdict.FINE),
            HostFinding(
                subject="environment", state="none", verdict=FindingVerdict.LACKS, cure="install it", installable=True
            ),
        ),
    ),
)


@pytest.fixture
def examined(monkeypatch: pytest.MonkeyPatch, without_mxnet: None) -> list[tuple[str, ...]]:
    """The names of the hosts that were examined, of which one lacks its environment."""
    asked: list[tuple[str, ...]] = []

    def examine(entries: Sequence[HostEntry], *_: object) -> tuple[Examination, ...]:
        asked.append(tuple(entry.name for entry in entries))
        return EXAMINED

    monkeypatch.setattr(doctor, "examine_hosts", examine)
    return asked


def test_the_doctor_lists_what_hosts_lack_and_fails(
    dlbricks: Command, examined: list[tuple[str, ...]], hosts: Path
) -> None:
    asked = ("fleet", "doctor", "--hosts", hosts)
    status, out, told = dlbricks(*asked)
    assert (status, examined) == (1, [("c7i", "m8g")])
    assert "as it should be" in out and "install it" in out and "3.11.2" not in out
    assert "`--install` sets up what is missing" in told
    _, everything, _ = dlbricks(*asked, "--all")
    assert everything.count("3.11.2") == 2
    found = document(dlbricks(*asked, "--json"), 1)
    schema_kept(found, "fleet", "doctor")
    assert [(it["host"], it["state"], it["bricks"]) for it in found["hosts"]] == [
        ("c7i", "ready", 12),
        ("m8g", "lacking", None),
    ]
    assert "--wheels is for --install" in one_line(dlbricks(*asked, "--wheels", hosts.parent))


def test_certificates_are_made_once_and_keys_are_private(dlbricks: Command, data: DataFolder) -> None:
    status, out, told = dlbricks("fleet", "init")
    assert (status, out.strip()) == (0, str(data.certificates)) and "scp -p" in told
    made = {path: path.read_bytes() for path in data.certificates.iterdir()}
    assert {stat.S_IMODE(it.stat().st_mode) for it in made if it.name.endswith("-key.pem")} == {0o600}
    status, again, told = dlbricks("fleet", "init")
    assert (status, again) == (0, out) and "are there already" in told
    assert {path: path.read_bytes() for path in data.certificates.iterdir()} == made
    told = one_line(dlbricks("fleet", "worker", "tls://127.0.0.1:1", "--name", "a", "--certificates", data.path))
    assert "scp -p" in told and "fleet init" not in told, "that would make another authority"


def test_a_worker_measures_into_the_data_folder_that_is_named(
    dlbricks: Command, data: DataFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(DATA_FOLDER_VARIABLE, str(tmp_path / "usual"))
    found: list[DataFolder] = []
    monkeypatch.setattr(worker, "run_worker", lambda *_, **__: found.append(data_folder()))
    assert dlbricks("fleet", "worker", "tls://127.0.0.1:1", "--name", "a")[0] == 0
    assert found == [data]


def test_without_a_terminal_progress_is_a_line_now_and_then(capsys: pytest.CaptureFixture[str]) -> None:
    now = [0.0]
    shown = ShownFleet(FleetProgress(), None, lambda: now[0])
    for event in EVENTS:
        shown.take(event)
    told = capsys.readouterr().err.splitlines()
    assert len([line for line in told if line.startswith("c7i")]) == 1, "ten seconds have not passed"
    now[0] = 10.0
    shown.take(measuring("c7i", 50))
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("c7i measuring, 50 of 60 bricks, 1 failed, 42 s left; m8g probing, 12 of 60 bricks")


def test_on_a_terminal_each_host_has_a_row_and_repaints_are_rare() -> None:
    stream, now = io.StringIO(), [0.0]
    console = Console(file=stream, force_terminal=True, width=80, color_system=None)
    shown = ShownFleet(FleetProgress(), console, lambda: now[0])
    for event in EVENTS:
        shown.take(event)
    now[0] = 1.0
    shown.take(measuring("c7i", 50))
    shown.close()
    rows = [line for line in stream.getvalue().splitlines() if "of 60" in line]
    assert ["c7i" in rows[-2], "50 of 60" in rows[-2], "m8g" in rows[-1]] == [True, True, True]
    assert "45 of 60" not in stream.getvalue(), "events between two pictures are not painted"
    assert "the order of hosts is sure for 1 of 2 models" in stream.getvalue()


def test_a_quiet_fleet_run_tells_failures_only_and_once_why_a_host_cannot_be_reached(
    capsys: pytest.CaptureFixture[str],
) -> None:
    shown = ShownFleet(FleetProgress(), None, quiet=True)
    for event in EVENTS:
        shown.take(event)
    assert capsys.readouterr().err == "old refused: it has dlbricks 0.1.0, and 0.2.0 is needed\n"
    for seconds in (2, 4, 8):
        shown.take(changed("c7i", FleetHostState.CONNECTING, f"no SSH server answers; the next try is in {seconds} s"))
    shown.take(changed("c7i", FleetHostState.FAILED, "it did not join within 10 minutes"))
    assert capsys.readouterr().err.splitlines() == [
        "c7i connecting: no SSH server answers; the next try is in 2 s",
        "c7i failed: it did not join within 10 minutes",
    ]
