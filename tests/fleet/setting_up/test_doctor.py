import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from dlbricks_tui.fleet.engine.ssh import connected, shell_path
from dlbricks_tui.fleet.errors import last_line
from dlbricks_tui.fleet.request import HostEntry
from dlbricks_tui.fleet.setting_up.doctor import examine_hosts
from dlbricks_tui.fleet.setting_up.judging import Examination, Readiness
from dlbricks_tui.jobs.process import PACKAGE_PARENT
from tests.fleet.facts import WANTED as WANTED_ON_PYTHON_3_11
from tests.fleet.facts import refusal
from tests.fleet.local_host import LocalHost, connecting
from tests.fleet.ssh_server import Person, SshServer, served

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


def test_a_host_without_the_named_python_is_told_which_there_are(tmp_path: Path) -> None:
    found = examined(tmp_path, replace(HERE, python="python9.9"))
    (python,) = found.lacks
    assert python.state == "no python9.9 there" and python.blocks_installing
    assert python.cure.startswith(('write python = "python3.', "install Python 3.10 to 3.14"))
    assert not found.can_be_set_up


def test_the_python_of_this_machine_is_named_before_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("python3.10", "python3.11", "python3.13"):
        script(tmp_path / name, "exit 1")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    (python,) = examined(tmp_path, replace(HERE, python="python9.9")).lacks
    assert python.cure == 'write python = "python3.11" for it in the hosts file'


def test_a_python_that_is_too_old_for_the_doctor_is_named(tmp_path: Path) -> None:
    old = script(tmp_path / "old", 'if [ "$1" = -V ]; then echo Python 3.6.9; else cat > /dev/null; exit 1; fi')
    (python,) = examined(tmp_path, replace(HERE, python=old)).lacks
    assert python.state == f"{old} is Python 3.6.9, and Python 3.10 to 3.14 are needed"


def test_an_interpreter_that_fails_is_quoted_in_one_line(tmp_path: Path) -> None:
    broken = script(
        tmp_path / "broken",
        'if [ "$1" = -V ]; then echo Python 3.11.2; exit; fi; printf "a\\nno \\033memory\\n" >&2; exit 1',
    )
    (python,) = examined(tmp_path, replace(HERE, python=broken)).lacks
    assert python.state == f"{broken} cannot run the doctor: no \\x1bmemory"


def test_an_answer_that_is_none_makes_the_host_unreachable(tmp_path: Path) -> None:
    liar = script(tmp_path / "liar", "cat > /dev/null; echo hello")
    found = examined(tmp_path, replace(HERE, python=liar))
    assert found.state is Readiness.UNREACHABLE and "its answer to the doctor" in refusal(found)


def test_paths_reach_the_shell_as_they_are() -> None:
    assert shell_path("~/my folder/python") == "~/'my folder/python'"
    assert shell_path("$(rm -r x)") == "'$(rm -r x)'"
    assert shell_path("/usr/bin/python3") == "/usr/bin/python3"


def test_the_last_line_is_short_and_printable() -> None:
    assert last_line(b"first\nlast \x1b[2J\n\n") == "last \\x1b[2J"
    assert len(last_line(b"x" * 10000)) == 300
    assert last_line(b"") == ""


def test_hosts_are_examined_over_ssh_and_an_unknown_one_says_why_it_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "person"))
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    person = Person(tmp_path / "person")
    (tmp_path / "host").mkdir()
    with served(SshServer(tmp_path / "host", Path(f"{person.key}.pub"), {"PATH": os.environ["PATH"]})) as server:
        entry = server.entry(python=sys.executable, folder="~/there")
        (unknown,) = examine_hosts([entry], WANTED, connected)
        person.trusts(server)
        (found,) = examine_hosts([entry], WANTED, connected)
    assert unknown.state is Readiness.UNREACHABLE and refusal(unknown).isprintable()
    assert found.state is Readiness.LACKING and found.can_be_set_up


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
