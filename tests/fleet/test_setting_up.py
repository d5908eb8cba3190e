"""Hosts are examined and judged, and environments made for real there, from a wheel that needs no other package."""

import asyncio
import base64
import csv
import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field, replace
from email import message_from_bytes
from importlib import metadata
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest

from dlbricks_tui import __version__
from dlbricks_tui.fleet import host_script, installing
from dlbricks_tui.fleet.doctor import (
    Examination,
    FindingVerdict,
    HostFacts,
    HostFinding,
    Readiness,
    Wanted,
    WantedPackage,
    examine_hosts,
    facts_from,
    judged,
)
from dlbricks_tui.fleet.installing import (
    content_of,
    reason,
    set_up_hosts,
    wanted,
    write_wheel,
)
from dlbricks_tui.fleet.messages import HostReport, text_of
from dlbricks_tui.fleet.request import FleetError, HostEntry, shell_path
from dlbricks_tui.fleet.ssh import Connect, Finished, SshConnection
from dlbricks_tui.jobs.process import PACKAGE_PARENT
from dlbricks_tui.runtime.runtime import Runtime
from dlbricks_tui.store.documents import to_document
from tests.store.samples import system

HOST = HostEntry(name="big")
WANTED_ON_PYTHON_3_11 = Wanted(
    dlbricks="0.2.0",
    content="c" * 64,
    packages=(
        WantedPackage(name="onnxruntime", version="1.32.0", pythons=">=3.11"),
        WantedPackage(name="mxnet", version="1.9.1", condition="python_version < '3.13'"),
        WantedPackage(name="distributed", version="2026.8.0", pythons=">=3.10", condition="extra == 'fleet'"),
    ),
    extras=("fleet",),
    frameworks=("onnxruntime", "mxnet"),
    python="3.11",
)
READY = HostFacts(
    python="3.11.2",
    implementation="CPython",
    executable="/usr/bin/python3",
    others=("python3.11",),
    makes_environments=True,
    operating_system="Linux",
    machine="x86_64",
    libc="glibc 2.36",
    folder="/home/me/.local/share/dlbricks",
    obstacle="",
    free_disk=100 << 30,
    replaceable=True,
    interpreter="/home/me/.local/share/dlbricks/venvs/3.11.2-0/bin/python",
    # Its clock agrees with any: it began before and ended after.
    clock_first=1 << 45,
    clock_last=0,
)
# A host on which nothing was installed yet.
BARE = replace(READY, interpreter="")
REPORT = HostReport(
    dlbricks="0.2.0",
    python="3.11.2",
    methods={},
    runtimes=(),
    system=to_document(replace(system("s"), name="a system")),
    clock="2026-11-27T08:00:00+00:00",
    content="c" * 64,
    packages={"onnxruntime": "1.32.0", "mxnet": "1.9.1", "distributed": "2026.8.0"},
    noticed=(("measuring", "run 7 of ann", "it \x07waits"), ("memory", "16 GiB free", "")),
    bricks=3,
)


def findings_of(
    facts: HostFacts, told: HostReport | str | None = None, seconds: float = 0.0
) -> tuple[HostFinding, ...]:
    told = told if told is not None else REPORT if facts.interpreter else ""
    return judged(HOST, facts, told, seconds, WANTED_ON_PYTHON_3_11)


def finding_of(facts: HostFacts, subject: str, told: HostReport | str | None = None, **changes: Any) -> HostFinding:
    (finding,) = [it for it in findings_of(replace(facts, **changes), told) if it.subject == subject]
    return finding


def printed(facts: HostFacts) -> bytes:
    return json.dumps({"format": host_script.FORMAT, "schema": host_script.SCHEMA, **asdict(facts)}).encode()


def refusal(found: Examination) -> str:
    return f"{found.lacks[0].subject}: {found.lacks[0].state}; {found.lacks[0].cure}" if found.lacks else ""


@dataclass
class LocalHost(SshConnection):
    """A connection to a host that is this machine; it keeps what was sent."""

    home: Path
    sent: list[str] = field(default_factory=list)

    async def run(self, command: str, given: bytes | Iterable[bytes] = b"", *, seconds: float | None) -> Finished:
        process = await asyncio.create_subprocess_shell(
            command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            cwd=self.home,
            env={**os.environ, "HOME": str(self.home)},
        )
        assert isinstance(given, bytes)
        out, err = await asyncio.wait_for(process.communicate(given), seconds)
        assert process.returncode is not None
        return Finished(process.returncode, out, err)

    async def send(self, source: Path, target: str) -> None:
        self.sent.append(target)
        shutil.copyfile(source, target)


def connecting(hosts: Mapping[str, SshConnection]) -> Connect:
    """Return how connections to these hosts are opened, by name; no other host can be reached."""

    @asynccontextmanager
    async def connect(host: HostEntry) -> AsyncIterator[SshConnection]:
        if host.name not in hosts:
            raise FleetError(f"{host.name} cannot be reached: no route to host; is it running?")
        yield hosts[host.name]

    return connect


DIST_INFO = f"dlbricks_tui-{__version__}.dist-info"


def test_the_wheel_has_the_command_the_extras_and_a_record_of_hashes(tmp_path: Path) -> None:
    with ZipFile(write_wheel(tmp_path)) as opened:
        record = csv.reader(opened.read(f"{DIST_INFO}/RECORD").decode().splitlines())
        rows = {name: digest for name, digest, _ in record}
        assert rows.keys() == set(opened.namelist())
        described = message_from_bytes(opened.read(f"{DIST_INFO}/METADATA"))
        assert "dlbricks = dlbricks_tui.__main__:main" in opened.read(f"{DIST_INFO}/entry_points.txt").decode()
        assert described["Version"] == __version__
        assert {"fleet", "openvino"} <= set(described.get_all("Provides-Extra", []))
        for name, digest in rows.items():
            if digest:
                found = base64.urlsafe_b64encode(hashlib.sha256(opened.read(name)).digest()).decode().rstrip("=")
                assert digest == f"sha256={found}", name


def test_a_host_that_is_set_up_lacks_a_folder_to_write_to() -> None:
    found = finding_of(READY, "folder", obstacle="this user may not write to /home/me")
    assert found.verdict is FindingVerdict.LACKS and "another folder" in found.cure


def test_hosts_need_the_versions_of_the_frameworks_here_and_their_extras() -> None:
    version = metadata.version("openvino")
    needed = wanted([Runtime("default-openvino", "", "openvino", version, "3.11")])
    packages = {it.name: it for it in needed.packages}
    assert packages["openvino"].version == version and packages["openvino"].pythons
    assert "platform_machine == 'x86_64'" in packages["openvino"].condition.replace('"', "'")
    assert packages["distributed"].version == metadata.version("distributed")
    assert (needed.extras, needed.frameworks) == (("fleet", "openvino"), ("openvino",))


HERE = HostEntry(name="here", python=sys.executable, folder="~/there")
OWN = (Path("dlbricks_tui-0.2.0-py3-none-any.whl"),)
SENT = (*OWN, Path("/wheels/onnx-1.0-py3-none-any.whl"))
# The digest is that of `content_of`.
PROGRAM = f"""
import hashlib, json, sys
from importlib import metadata
from pathlib import Path
report, root, packages = json.loads({text_of(REPORT)!r}), Path(__file__).parents[2], json.loads(sys.argv[2])[1]
names, whole = sorted(it.relative_to(root).as_posix() for it in (root / "dlbricks_tui").rglob("*.py")), hashlib.sha256()
for name in names:
    whole.update(f"{{name}} {{hashlib.sha256((root / name).read_bytes()).hexdigest()}}\\n".encode())
versions = {{it.name: it.version for it in metadata.distributions()}}
report.update(content=whole.hexdigest(), packages={{it: versions[it] for it in packages if it in versions}})
print(json.dumps(report))
"""


def write_small_wheel(folder: Path, name: str, version: str, files: dict[str, str], metadata: str = "") -> Path:
    """Write a wheel of a package that consists of these files."""
    path, info = folder / f"{name}-{version}-py3-none-any.whl", f"{name}-{version}.dist-info"
    contents = {
        **files,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name.replace('_', '-')}\nVersion: {version}\n{metadata}",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{each},,\n" for each in [*contents, f"{info}/RECORD"])
    with ZipFile(path, "w") as wheel:
        for each, text in {**contents, f"{info}/RECORD": record}.items():
            wheel.writestr(each, text)
    return path


class SmallDlbricks:
    """A dlbricks of few files, which hosts are to have instead of this one."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self.text = folder, "one = 1\n"
        monkeypatch.setattr(installing, "write_wheel", self.write)

    @property
    def files(self) -> dict[str, str]:
        package = {"dlbricks_tui/__init__.py": self.text, "dlbricks_tui/fleet/__init__.py": ""}
        return {**package, "dlbricks_tui/fleet/at_host.py": PROGRAM}

    def write(self, folder: Path) -> Path:
        extra = "Provides-Extra: fleet\nRequires-Dist: small-engine; extra == 'fleet'\n"
        return write_small_wheel(folder, "dlbricks_tui", "0.2.0", self.files, extra)

    @property
    def wanted(self) -> Wanted:
        paths = {}
        for name, text in self.files.items():
            paths[name] = self.folder / name
            paths[name].parent.mkdir(parents=True, exist_ok=True)
            paths[name].write_text(text)
        engine = WantedPackage(name="small-engine", version="1.5")
        return Wanted(
            dlbricks="0.2.0",
            content=content_of(paths),
            packages=(engine,),
            extras=("fleet",),
            frameworks=(),
            python=".".join(map(str, sys.version_info[:2])),
        )


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SmallDlbricks:
    # These environments are small.
    monkeypatch.setattr("dlbricks_tui.fleet.doctor.BYTES_TO_INSTALL", 1 << 20)
    return SmallDlbricks(tmp_path / "source", monkeypatch)


@pytest.fixture
def wheels(tmp_path: Path) -> Path:
    folder = tmp_path / "wheels"
    folder.mkdir()
    for version in ("1.4", "1.5", "1.6"):
        write_small_wheel(folder, "small_engine", version, {"small_engine.py": ""})
    return folder


def set_up(home: Path, wanted: Wanted, wheels: Path) -> tuple[Examination, LocalHost]:
    host = LocalHost(home)
    (found,) = set_up_hosts([HERE], wanted, connecting({"here": host}), wheels=wheels)
    return found, host


@pytest.mark.soak
def test_a_host_is_set_up_once_for_each_content_and_a_failure_changes_nothing(
    small: SmallDlbricks, wheels: Path, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    found, host = set_up(home, small.wanted, wheels)
    assert found.state is Readiness.READY, refusal(found)
    assert (found.system, found.system_name, found.bricks) == ("s", "a system", 3)
    assert found.installed.startswith(f"made {home}/there/venvs/")
    assert {it.subject: it.state for it in found.findings}["small-engine"] == "1.5"
    assert Path(found.interpreter).parents[1] == (home / "there" / "venv").resolve()
    # Only the environment stays there.
    assert list((home / "there" / "incoming").iterdir()) == []

    again, host = set_up(home, small.wanted, wheels)
    assert (again.state, again.installed, host.sent) == (Readiness.READY, "", [])

    # The environment before stays for processes that run in it.
    small.text = "one = 2\n"
    newer, _ = set_up(home, small.wanted, wheels)
    assert newer.state is Readiness.READY and newer.interpreter != found.interpreter
    assert Path(found.interpreter).exists()

    # A failure changes nothing, and leaves nothing behind.
    small.text = "one = 3\n"
    (wheels / "small_engine-1.5-py3-none-any.whl").unlink()
    failed, _ = set_up(home, small.wanted, wheels)
    assert failed.state is Readiness.LACKING
    assert f"{wheels} has no wheel of small-engine" in refusal(failed)
    assert (home / "there" / "venv").resolve() == Path(newer.interpreter).parents[1]
    environments = [it.name for it in (home / "there" / "venvs").iterdir() if it.is_dir()]
    assert set(environments) == {Path(it.interpreter).parents[1].name for it in (found, newer)}

    # Something was removed from an environment: it is made again, and not in its place.
    write_small_wheel(wheels, "small_engine", "1.5", {"small_engine.py": ""})
    small.text = "one = 2\n"
    (damaged,) = Path(newer.interpreter).parents[1].glob("lib/python*/site-packages/small_engine-1.5.dist-info")
    shutil.rmtree(damaged)
    mended, _ = set_up(home, small.wanted, wheels)
    assert mended.state is Readiness.READY and mended.interpreter != newer.interpreter


class ToldHost(SshConnection):
    """A bare host whose installer tells what it is given, and which has the environment from then on."""

    def __init__(self, told: dict[str, object], report: HostReport = REPORT, **facts: Any) -> None:
        self.told, self.facts, self.report = told, replace(BARE, **facts), report
        self.sent: list[str] = []

    async def run(self, command: str, given: bytes | Iterable[bytes] = b"", *, seconds: float | None) -> Finished:
        assert isinstance(given, bytes)
        head = {"format": host_script.FORMAT, "schema": host_script.SCHEMA}
        if "at_host" in command:
            return Finished(0, text_of(self.report).encode(), b"")
        last = given.decode().strip().splitlines()[-1]
        if last.startswith("prepare("):
            return Finished(0, json.dumps({**head, "state": "prepared", "incoming": "/there/in"}).encode(), b"")
        if last.startswith("install("):
            assert "0.2.0-py3-none-any.whl" in last and "all_wheels=" in last
            self.facts = READY if self.told.get("state") == "done" else self.facts
            return Finished(0, json.dumps({**head, **self.told}).encode(), b"")
        return Finished(0, printed(self.facts), b"")

    async def send(self, source: Path, target: str) -> None:
        assert source.exists()
        self.sent.append(target)


def test_what_the_installer_tells_is_what_the_user_is_told(small: SmallDlbricks, wheels: Path) -> None:
    wanted = small.wanted
    report = replace(REPORT, content=wanted.content, packages={"small-engine": "1.5"})
    done = ToldHost({"state": "done", "environment": "/there/venvs/one"}, report)
    full = ToldHost({"state": "failed", "step": "pip", "output": "", "is_full": True})
    blocked = ToldHost({}, makes_environments=False)
    hosts, steps = {"done": done, "full": full, "blocked": blocked}, list[tuple[str, str]]()
    entries = [replace(HERE, name=name) for name in hosts]
    found = set_up_hosts(
        entries, wanted, connecting(hosts), wheels=wheels, step=lambda host, text: steps.append((host, text))
    )
    assert [it.state for it in found] == [Readiness.READY, Readiness.LACKING, Readiness.LACKING]
    assert found[0].installed == "made /there/venvs/one" and "the disk is full" in refusal(found[1])
    busy, memory = found[0].findings[-2:]
    assert (busy.verdict, busy.cure, memory.verdict) == (FindingVerdict.NOTE, "it \\x07waits", FindingVerdict.FINE)
    assert "venv (elsewhere: the package with ensurepip)" in refusal(found[2]) and blocked.sent == []
    # All wheels of the folder, and the one of this dlbricks.
    assert len(done.sent) == 4 and all(it.startswith("/there/in/") for it in done.sent)
    assert ("done", "installing") in steps

    (again,) = set_up_hosts(entries[:1], wanted, connecting(hosts), wheels=wheels)
    assert (again.state, again.installed, len(done.sent)) == (Readiness.READY, "", 4)


@pytest.mark.parametrize("path", ["relative", "/a\nb", "/" * 5000, 5])
def test_a_path_that_no_host_has_is_refused(path: object, small: SmallDlbricks, wheels: Path) -> None:
    host = ToldHost({"state": "done", "environment": path})
    (found,) = set_up_hosts([HERE], small.wanted, connecting({"here": host}), wheels=wheels)
    assert found.state is Readiness.LACKING and refusal(found).startswith("install: ")


def test_a_folder_without_wheels_is_refused_before_any_host_is_reached(tmp_path: Path) -> None:
    for name in ("README.md", "dlbricks_tui-0.2.0-py3-none-any.whl"):
        (tmp_path / name).touch()
    with pytest.raises(FleetError, match="holds no wheels"):
        set_up_hosts([HERE], WANTED, connecting({}), wheels=tmp_path)
    with pytest.raises(FleetError, match="cannot read the folder of wheels"):
        set_up_hosts([HERE], WANTED, connecting({}), wheels=tmp_path / "gone")


@pytest.mark.parametrize(
    ("step", "output", "wheels", "said"),
    [
        ("pip", "Failed to establish a new connection\nERROR: No matching distribution", OWN, "--wheels DIR"),
        ("pip", "ERROR: No matching distribution found for onnx==1.99 (from x)", OWN, "has no onnx==1.99"),
        ("pip", "ERROR: No matching distribution found for onnx==1.99", SENT, "-d /wheels 'onnx==1.99'"),
        ("pip", "ERROR: first\nERROR: the \x1blast\nmore", OWN, r"pip failed: the \x1blast"),
        ("pip", "killed", OWN, "pip failed: killed"),
        ("pip", "", OWN, "it printed nothing"),
        ("full disk", "", OWN, "the disk is full: free 2.0 GiB for ~/there"),
        ("venv", "oh", OWN, "sudo apt install python3-venv"),
        ("lock", "oh", OWN, "try again"),
        ("link", "oh", OWN, "move it away"),
        ("folder", "oh", OWN, "writable"),
    ],
)
def test_a_step_that_fails_becomes_one_line_with_a_cure(
    step: str, output: str, wheels: tuple[Path, ...], said: str
) -> None:
    line = reason(step, output, HERE, wheels, is_full=step == "full disk")
    assert said in line and line.isprintable()


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("dlbricks_tui.fleet.installing.DISTRIBUTION", "dlbricks-tui-of-nobody", "never installed"),
        ("dlbricks_tui.__version__", "0.0.1", "another version was installed here"),
    ],
)
def test_a_dlbricks_that_is_not_installed_here_makes_no_wheel(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str, value: str, said: str
) -> None:
    monkeypatch.setattr(name, value)
    with pytest.raises(FleetError, match=said):
        write_wheel(tmp_path)


# The versions of the frameworks are not made for every Python that runs these tests.
WANTED = replace(WANTED_ON_PYTHON_3_11, packages=WANTED_ON_PYTHON_3_11.packages[-1:], frameworks=())


def examined(home: Path, entry: HostEntry = HERE) -> Examination:
    (found,) = examine_hosts([entry], WANTED, connecting({entry.name: LocalHost(home)}))
    return found


def script(path: Path, text: str) -> str:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


def test_a_bare_host_lacks_its_environment_and_one_that_cannot_be_reached_keeps_no_other_waiting(
    tmp_path: Path,
) -> None:
    gone, found = examine_hosts([replace(HERE, name="gone"), HERE], WANTED, connecting({"here": LocalHost(tmp_path)}))
    assert gone.state is Readiness.UNREACHABLE and "no route to host" in refusal(gone)
    assert found.findings[0].subject == "reachable" and found.state is Readiness.LACKING
    assert "environment" in [it.subject for it in found.lacks]
    assert "dlbricks fleet doctor --hosts FILE --install" in refusal(found)
    assert list(tmp_path.iterdir()) == []


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
        f"import sys; sys.path += {path!r}; from dlbricks_tui.fleet.worker import start_from_folder; "
        "start_from_folder(); print(sys.prefix, *sys.argv[1:])"
    )
    started = subprocess.run(
        [link / "bin" / "python", "-c", code, "kept"], stdout=subprocess.PIPE, text=True, check=True
    )
    assert started.stdout == f"{folder} kept\n"


FINE, NOTE, LACKS = FindingVerdict.FINE, FindingVerdict.NOTE, FindingVerdict.LACKS
OTHERS = ("python3.10", "python3.12", "python3.13")
INSTALL = "dlbricks fleet doctor --hosts FILE --install"
OLDER = replace(REPORT, packages={**REPORT.packages, "onnxruntime": "1.31.0"})
WRITE_311 = 'write python = "python3.11" for it in the hosts file'


def test_a_host_with_everything_lacks_nothing_and_a_bare_one_its_environment() -> None:
    findings = findings_of(READY)
    assert {it.verdict for it in findings} == {FINE}
    assert {"Python", "environment", "dlbricks", "onnxruntime", "clock", "disk"} <= {it.subject for it in findings}
    lacking = [it for it in findings_of(BARE) if it.verdict is LACKS]
    assert [(it.subject, it.installable, it.cure) for it in lacking] == [("environment", True, INSTALL)]


@pytest.mark.parametrize(
    ("facts", "subject", "changes", "verdict", "words"),
    [
        (BARE, "Python", {"python": "3.9.18", "others": OTHERS}, LACKS, "3.9.18 (/usr/bin/python3), and Python"),
        # ONNX Runtime needs 3.11 here, and MXNet 3.12 or older.
        (BARE, "Python", {"python": "3.9.18", "others": OTHERS}, LACKS, WRITE_311.replace("11", "12")),
        (BARE, "Python", {"python": "3.9.18", "others": ()}, LACKS, "sudo apt install python3.11"),
        (BARE, "Python", {"python": "3.13.1"}, LACKS, "mxnet 1.9.1"),
        (BARE, "Python", {"python": "3.10.4"}, LACKS, "onnxruntime 1.32.0"),
        (BARE, "Python", {"python": "3.10.4"}, LACKS, WRITE_311),
        (BARE, "Python", {"python": "new"}, LACKS, ""),
        # A build between versions counts as its version; another minor version than here is a note.
        (BARE, "Python", {"python": "3.11.9+"}, FINE, ""),
        (BARE, "Python", {"python": "3.12.1", "others": ("python3.11",)}, NOTE, WRITE_311),
        # The interpreter of a ready environment counts, and not the other one.
        (READY, "Python", {"python": "3.9.18", "makes_environments": False}, FINE, "3.11.2"),
        (BARE, "C library", {"libc": "musl 1.2"}, LACKS, ""),
        (BARE, "ensurepip", {"makes_environments": False}, LACKS, "sudo apt install python3.11-venv"),
        (BARE, "disk", {"free_disk": 1 << 30}, LACKS, ""),
        (READY, "disk", {"free_disk": 1 << 30}, FINE, ""),
        # Another version or content is replaced by --install.
        (READY, "dlbricks", {"told": replace(REPORT, dlbricks="0.1.0")}, LACKS, f"0.1.0, and 0.2.0 here; {INSTALL}"),
        (
            READY,
            "dlbricks",
            {"told": replace(REPORT, content="d" * 64)},
            LACKS,
            f"with other files than here; {INSTALL}",
        ),
        (READY, "dlbricks", {"told": "does not start: no room"}, LACKS, f"does not start: no room; {INSTALL}"),
        (READY, "onnxruntime", {"told": OLDER}, LACKS, f"1.31.0, and 1.32.0 here; {INSTALL}"),
    ],
)
def test_each_finding_says_what_it_is_and_how_to_cure_it(
    facts: HostFacts, subject: str, changes: dict[str, Any], verdict: FindingVerdict, words: str
) -> None:
    finding = finding_of(facts, subject, **changes)
    assert (finding.verdict, finding.installable) == (verdict, finding.cure == INSTALL)
    assert finding.blocks_installing == (verdict is LACKS and not finding.installable)
    assert words in f"{finding.state}; {finding.cure}"
    assert finding.cure or verdict is FINE


def test_an_environment_of_someone_else_is_never_replaced_and_a_full_disk_keeps_from_measuring() -> None:
    findings = findings_of(replace(READY, replaceable=False), replace(REPORT, dlbricks="0.1.0"))
    blocking = [it for it in findings if it.blocks_installing]
    assert [it.subject for it in blocking] == ["environment"] and "move it away" in blocking[0].cure
    full = finding_of(READY, "disk", free_disk=1 << 20)
    assert full.verdict is LACKS and "256 MiB" in full.cure


@pytest.mark.parametrize(("seconds", "verdict"), [(1.0, FINE), (-30.0, NOTE), (4000.0, LACKS)])
def test_a_wrong_clock_is_a_note_and_refused_when_certificates_suffer(seconds: float, verdict: FindingVerdict) -> None:
    (clock,) = [it for it in findings_of(READY, seconds=seconds) if it.subject == "clock"]
    assert clock.verdict is verdict


ANSWER: dict[str, Any] = json.loads(printed(READY))


def test_an_answer_becomes_facts_without_what_a_shell_prints_before_and_without_control_codes() -> None:
    told = {**ANSWER, "libc": "\x1b[2J", "others": ["\x07"]}
    facts = facts_from(b"Welcome!\n{fortune}\n" + json.dumps(told).encode() + b"\n")
    assert facts == replace(READY, libc="\\x1b[2J", others=("\\x07",))


@pytest.mark.parametrize(
    "change",
    [
        lambda it: json.dumps(it).encode() + b"\nmore",
        *(
            lambda it, changed=changed: json.dumps({**it, **changed}).encode()
            for changed in (
                {"more": 1},
                {"free_disk": "8"},
                {"free_disk": True},
                {"free_disk": 1 << 80},
                {"others": ["a"] * 1000},
                {"others": [["a"]]},
                {"libc": "x" * 10000},
                {"schema": 2},
            )
        ),
        lambda it: b"[" * 100000,
        lambda it: b"",
    ],
)
def test_any_other_answer_is_refused_in_one_line(change: Callable[[dict[str, Any]], bytes]) -> None:
    with pytest.raises(FleetError, match="its answer to the doctor") as raised:
        facts_from(change(ANSWER))
    assert len(str(raised.value).splitlines()) == 1
