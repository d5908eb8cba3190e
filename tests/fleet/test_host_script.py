"""The steps of the installer on a host, with commands that take no time."""

import ast
import json
import os
import subprocess
import sys
import time
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from dlbricks_tui.fleet import host_script
from dlbricks_tui.fleet.doctor import HostFacts, facts_from, script


def facts(home: Path) -> HostFacts:
    """Return the facts about this machine with another home folder."""
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(StringIO()) as told:
        patch.setenv("HOME", str(home))
        host_script.tell("~/there")
    return facts_from(told.getvalue().encode())


def test_what_is_sent_runs_on_python_37_without_other_packages() -> None:
    path = Path(host_script.__file__)
    tree = ast.parse(path.read_text(), feature_version=(3, 7))
    assert "from __future__ import annotations" in path.read_text()
    for node in ast.walk(tree):
        assert not (isinstance(node, ast.ImportFrom) and (node.level or node.module not in ("__future__", "pathlib")))
        if isinstance(node, ast.Import):
            assert {it.name for it in node.names} <= sys.stdlib_module_names


def test_a_bare_host_tells_its_facts_and_is_not_changed(tmp_path: Path) -> None:
    told = subprocess.run(
        [sys.executable, "-I", "-"],
        input=script("tell", "~/there"),
        env={**os.environ, "HOME": str(tmp_path)},
        stdout=subprocess.PIPE,
        check=True,
    )
    found = facts_from(told.stdout)
    assert found.python == ".".join(map(str, sys.version_info[:3]))
    assert (found.folder, found.obstacle, found.interpreter) == (str(tmp_path / "there"), "", "")
    assert found.free_disk > 0 and found.clock_last > found.clock_first
    assert list(tmp_path.iterdir()) == []


def test_an_environment_whose_interpreter_is_gone_is_none_and_a_file_in_its_place_is_told(tmp_path: Path) -> None:
    python = tmp_path / "one" / "there" / "venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.symlink_to(tmp_path / "gone")
    found = facts(tmp_path / "one")
    assert found.interpreter == "" and not found.replaceable
    (tmp_path / "there").write_text("")
    assert facts(tmp_path).obstacle == f"{tmp_path / 'there'} is a file"


class Installer:
    """The installer in a folder; `failures` has what a step prints if it fails."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self.capsys, self.failures = folder, capsys, dict[str, str]()
        self.commands: list[list[str]] = []
        monkeypatch.setattr(host_script, "_failure_of", self._run)

    def _run(self, command: list[str], temporary: Path) -> str | None:
        self.commands.append(command)
        if command[2] == "venv":
            (Path(command[3]) / "bin").mkdir(parents=True)
        return self.failures.get(command[2])

    def prepare(self, token: str) -> dict[str, Any]:
        host_script.prepare(str(self.folder), token)
        return self._told()

    def install(self, token: str, content: str = "c", seconds_to_wait: float = 0.0) -> dict[str, Any]:
        host_script.install(
            *(str(self.folder), token, "own.whl", content, ["fleet"], {"onnx": "1.0"}),
            all_wheels=True,
            seconds_to_wait=seconds_to_wait,
        )
        return self._told()

    def _told(self) -> dict[str, Any]:
        told: dict[str, Any] = json.loads(self.capsys.readouterr().out)
        return told

    @property
    def environments(self) -> set[str]:
        return {it.name.rpartition("-")[2] for it in (self.folder / "venvs").iterdir() if it.is_dir()}


@pytest.fixture
def installer(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Installer:
    return Installer(tmp_path.resolve() / "there", capsys, monkeypatch)


def test_the_link_leads_to_the_environment_when_it_is_complete(installer: Installer) -> None:
    incoming = Path(installer.prepare("one")["incoming"])
    assert incoming.stat().st_mode & 0o777 == 0o700
    done = installer.install("one")
    assert done["state"] == "done"
    assert (installer.folder / "venv").resolve() == Path(done["environment"])
    assert not incoming.exists()
    pip = installer.commands[1]
    assert pip[-2:] == [f"{incoming}/own.whl[fleet]", "onnx==1.0"] and "--no-index" in pip


def test_a_step_that_fails_leaves_the_environment_before_in_use(installer: Installer) -> None:
    installer.prepare("one")
    before = installer.install("one")["environment"]
    for step, printed, is_full in (("venv", "no", False), ("pip", "[Errno 28] No space left on device", True)):
        installer.failures = {step: printed}
        installer.prepare(step)
        failed = installer.install(step)
        assert (failed["state"], failed["step"], failed["is_full"]) == ("failed", step, is_full)
        assert (installer.folder / "venv").resolve() == Path(before)
        assert installer.environments == {"one"}
        assert not (installer.folder / "incoming" / step).exists()


def test_the_environment_before_and_those_in_use_stay(installer: Installer) -> None:
    installer.prepare("one")
    used = installer.install("one")["environment"]
    process = subprocess.Popen([sys.executable, "-c", "input()", f"{used}/bin/python"], stdin=subprocess.PIPE)
    for token in ("two", "three", "four"):
        installer.prepare(token)
        installer.install(token)
    assert installer.environments == {"one", "three", "four"}
    process.communicate(b"\n")
    installer.prepare("five")
    installer.install("five")
    assert installer.environments == {"four", "five"}


def test_what_an_interrupted_installation_left_is_removed_by_the_next(installer: Installer) -> None:
    half = installer.folder / "venvs" / "3.11.2-half"
    stranded = installer.folder / "incoming" / "stranded"
    for folder in (half, stranded):
        folder.mkdir(parents=True)
    long_ago = time.time() - 48 * 3600
    os.utime(stranded, (long_ago, long_ago))
    installer.prepare("other")
    installer.prepare("one")
    installer.install("one")
    assert installer.environments == {"one"}
    assert [it.name for it in (installer.folder / "incoming").iterdir()] == ["other"]


def test_hosts_that_share_the_folder_make_the_same_environment_once(installer: Installer) -> None:
    installer.prepare("one")
    installer.prepare("two")
    first = installer.install("one")
    complete = Path(first["environment"], "complete")
    # Times of files are coarse.
    os.utime(complete, (time.time() + 60,) * 2)
    assert installer.install("two") == first
    assert len(installer.commands) == 2
    # One that was there before it began lacks something, else nothing would be installed.
    os.utime(complete, (time.time() - 60,) * 2)
    installer.prepare("three")
    assert installer.install("three")["environment"] != first["environment"]


def test_an_installation_waits_for_another_one_and_gives_up(installer: Installer) -> None:
    installer.prepare("one")
    (installer.folder / "venvs").mkdir()
    locking = "import fcntl, sys; file = open(sys.argv[1], 'ab'); fcntl.flock(file, fcntl.LOCK_EX)"
    hold = f"{locking}; print('held', flush=True); input()"
    process = subprocess.Popen(
        [sys.executable, "-c", hold, str(installer.folder / "venvs" / "lock")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdout is not None and process.stdout.readline() == b"held\n"
    assert installer.install("one")["step"] == "lock"
    process.communicate(b"\n")
    installer.prepare("two")
    assert installer.install("two")["state"] == "done"


def test_a_folder_that_is_not_its_own_is_left_and_one_that_cannot_be_made_is_told(
    installer: Installer, monkeypatch: pytest.MonkeyPatch
) -> None:
    installer.prepare("one")
    (installer.folder / "venv").mkdir()
    assert installer.install("one")["step"] == "link"
    assert (installer.folder / "venv").is_dir() and installer.environments == set()
    installer.folder = installer.folder / "file"
    installer.folder.write_text("")
    failed = installer.prepare("one")
    assert (failed["step"], failed["is_full"]) == ("folder", False) and "there" in failed["output"]

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "mkdir", full)
    assert installer.prepare("one")["is_full"]


def test_commands_get_no_variables_that_lead_them_elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("PYTHONPATH", "PIP_TARGET"):
        monkeypatch.setenv(name, "elsewhere")
    code = f"import os; assert 'elsewhere' not in os.environ.values() and os.environ['TMPDIR'] == {str(tmp_path)!r}"
    assert host_script._failure_of([sys.executable, "-c", code], tmp_path) is None
    assert "no" in (host_script._failure_of([sys.executable, "-c", "exit('no')"], tmp_path) or "")
