import ast
import getpass
import os
import subprocess
import sys
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import pytest

from dlbricks_tui.fleet.setting_up import host_check, host_install
from dlbricks_tui.fleet.setting_up.host_facts import HostFacts, facts_from, facts_script
from dlbricks_tui.host import queue
from dlbricks_tui.host.queue import HostQueue, Kind, QueuedWork
from tests.fleet.facts import hasty

SENT = [Path(str(it.__file__)) for it in (host_check, host_install)]


def facts(home: Path, packages: tuple[str, ...] = ()) -> HostFacts:
    """Return the facts about this machine with another home folder."""
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(StringIO()) as told:
        for name, value in variables_of(home).items():
            patch.setenv(name, value)
        patch.setattr(host_check, "_SECONDS_TO_WATCH", 0.02)
        host_check.tell("~/there", list(packages))
    return facts_from(told.getvalue().encode())


def variables_of(home: Path) -> dict[str, str]:
    return {"HOME": str(home), host_check.LOCK_VARIABLE: str(home / "lock")}


@pytest.mark.parametrize("path", SENT, ids=lambda path: path.stem)
def test_what_is_sent_runs_on_python_37_without_other_packages(path: Path) -> None:
    tree = ast.parse(path.read_text(), feature_version=(3, 7))
    assert "from __future__ import annotations" in path.read_text()
    for node in ast.walk(tree):
        assert not (isinstance(node, ast.ImportFrom) and (node.level or node.module not in ("__future__", "pathlib")))
        if isinstance(node, ast.Import):
            assert {it.name for it in node.names} <= sys.stdlib_module_names


def test_both_scripts_and_the_lock_of_runs_agree_on_names() -> None:
    assert (host_check.LOCK_VARIABLE, Path(host_check.LOCK)) == (queue.HOST_LOCK_VARIABLE, queue.DEFAULT_PATH)
    assert host_check.ENVIRONMENT == host_install.ENVIRONMENT


def test_a_bare_host_tells_its_facts_and_is_not_changed(tmp_path: Path) -> None:
    told = subprocess.run(
        [sys.executable, "-I", "-"],
        input=hasty(facts_script("~/there", ())),
        env={**os.environ, **variables_of(tmp_path)},
        stdout=subprocess.PIPE,
        check=True,
    )
    found = facts_from(told.stdout)
    assert found.python == ".".join(map(str, sys.version_info[:3]))
    assert (found.folder, found.obstacle, found.interpreter) == (str(tmp_path / "there"), "", "")
    assert found.cores >= 1 and found.free_disk > 0 and found.clock_last > found.clock_first
    assert list(tmp_path.iterdir()) == []


def test_an_environment_tells_its_packages_and_the_content_of_dlbricks(tmp_path: Path) -> None:
    there = tmp_path / "there"
    environment = there / "venvs" / "one"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
    (there / "venv").symlink_to(Path("venvs", "one"))
    (site,) = environment.glob("lib/python*/site-packages")
    for name in ("dlbricks_tui-0.2.0", "Some_Package-1.5", "other-2"):
        (site / f"{name}.dist-info").mkdir()
    package = site / "dlbricks_tui"
    (package / "__pycache__").mkdir(parents=True)
    (package / "__init__.py").write_text("one = 1\n")
    (package / "__pycache__" / "__init__.pyc").write_text("compiled")

    found = facts(tmp_path, ("some-package", "none"))
    assert (found.dlbricks, found.packages) == ("0.2.0", {"some-package": "1.5"})
    assert found.interpreter == str(environment / "bin" / "python") and found.replaceable
    assert found.content == host_check.content_of({"dlbricks_tui/__init__.py": package / "__init__.py"})

    (package / "__init__.py").write_text("one = 2\n")
    assert facts(tmp_path).content != found.content


def test_an_environment_whose_interpreter_is_gone_is_none(tmp_path: Path) -> None:
    python = tmp_path / "there" / "venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.symlink_to(tmp_path / "gone")
    found = facts(tmp_path)
    assert found.interpreter == "" and not found.replaceable


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written_to_is_told(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    assert "may not write" in facts(tmp_path).obstacle
    tmp_path.chmod(0o700)


def test_a_file_in_the_place_of_the_folder_is_told(tmp_path: Path) -> None:
    (tmp_path / "there").write_text("")
    assert facts(tmp_path).obstacle == f"{tmp_path / 'there'} is a file"


def test_a_run_that_measures_there_is_named_until_its_process_has_ended(tmp_path: Path) -> None:
    line = HostQueue(tmp_path / "lock")
    first, second = (line.join(QueuedWork(Kind.RUN, [model], tmp_path)) for model in ("alexnet", "320n"))
    assert facts(tmp_path).measuring == ""
    assert first.try_take()
    assert facts(tmp_path).measuring == f"run of alexnet by {getpass.getuser()} (process {os.getpid()})"
    first.leave()
    assert facts(tmp_path).measuring == ""
    second.leave()
