"""A host is examined by a program that its own interpreter runs."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from dlbricks_tui.fleet.engine.ssh import shell_path
from dlbricks_tui.fleet.request import HostEntry
from dlbricks_tui.fleet.setting_up.doctor import examine_hosts
from dlbricks_tui.fleet.setting_up.judging import Examination, Readiness
from dlbricks_tui.jobs.process import PACKAGE_PARENT
from tests.fleet.facts import WANTED as WANTED_ON_PYTHON_3_11
from tests.fleet.facts import refusal
from tests.fleet.local_host import LocalHost, connecting

HERE = HostEntry(name="here", python=sys.executable, folder="~/there")
# The versions of the frameworks are not made for every Python that runs these tests.
WANTED = replace(WANTED_ON_PYTHON_3_11, packages=WANTED_ON_PYTHON_3_11.packages[-1:], frameworks=())


def examined(home: Path, entry: HostEntry = HERE) -> Examination:
    (found,) = examine_hosts([entry], WANTED, connecting({entry.name: LocalHost(home)}))
    return found


def script(path: Path, text: str) -> str:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


def test_a_bare_host_is_reachable_and_lacks_its_environment(tmp_path: Path) -> None:
    found = examined(tmp_path)
    assert found.findings[0].subject == "reachable" and found.state is Readiness.LACKING
    assert "environment" in [it.subject for it in found.lacks]
    assert found.system_name
    assert "dlbricks fleet doctor --hosts FILE --install" in refusal(found)
    assert list(tmp_path.iterdir()) == []


def test_a_host_that_cannot_be_reached_keeps_no_other_from_being_examined(tmp_path: Path) -> None:
    gone, told = replace(HERE, name="gone"), list[str]()
    found = examine_hosts(
        [gone, HERE], WANTED, connecting({"here": LocalHost(tmp_path)}), lambda it: told.append(it.host)
    )
    assert [it.state for it in found] == [Readiness.UNREACHABLE, Readiness.LACKING]
    assert "no route to host" in refusal(found[0])
    assert told == ["gone", "here"]


def test_a_host_without_the_named_python_is_told_which_there_are_that_of_this_machine_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("python3.10", "python3.11", "python3.13"):
        script(tmp_path / name, "exit 1")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    found = examined(tmp_path, replace(HERE, python="python9.9"))
    (python,) = found.lacks
    assert python.state == "no python9.9 there" and python.blocks_installing and not found.can_be_set_up
    assert python.cure == 'write python = "python3.11" for it in the hosts file'


@pytest.mark.parametrize(
    ("shell", "said"),
    [
        (
            'if [ "$1" = -V ]; then echo Python 3.6.9; else cat > /dev/null; exit 1; fi',
            "/python is Python 3.6.9, and Python 3.10 to 3.14 are needed;",
        ),
        (
            'if [ "$1" = -V ]; then echo Python 3.11.2; exit; fi; printf "a\\nno \\033memory\\n" >&2; exit 1',
            r"/python cannot run the doctor: no \x1bmemory;",
        ),
        ("cat > /dev/null; echo hello", "its answer to the doctor"),
    ],
    ids=["too old", "fails", "lies"],
)
def test_an_interpreter_that_cannot_run_the_doctor_is_told_in_one_line(tmp_path: Path, shell: str, said: str) -> None:
    found = examined(tmp_path, replace(HERE, python=script(tmp_path / "python", shell)))
    assert said in refusal(found)
    assert (found.state is Readiness.UNREACHABLE) == ("answer" in said)


def test_paths_reach_the_shell_as_they_are() -> None:
    assert shell_path("~/my folder/python") == "~/'my folder/python'"
    assert shell_path("$(rm -r x)") == "'$(rm -r x)'"
    assert shell_path("/usr/bin/python3") == "/usr/bin/python3"


def test_a_worker_that_was_started_through_the_link_runs_in_the_folder_itself(tmp_path: Path) -> None:
    folder = tmp_path.resolve() / "venvs" / "one"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    link = tmp_path / "venv"
    link.symlink_to(folder)
    path = [str(PACKAGE_PARENT), *(it for it in sys.path if it.endswith("site-packages"))]
    code = (
        f"import sys; sys.path += {path!r}; from dlbricks_tui.fleet.engine.worker import start_from_folder; "
        "start_from_folder(); print(sys.prefix, *sys.argv[1:])"
    )
    started = subprocess.run(
        [link / "bin" / "python", "-c", code, "kept"], stdout=subprocess.PIPE, text=True, check=True
    )
    assert started.stdout == f"{folder} kept\n"
