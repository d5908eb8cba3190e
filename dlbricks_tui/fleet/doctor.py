"""The doctor of a fleet: one finding for each thing that a host lacks or has, with what to do about it.

A host's own Python tells facts about the host. Once it has the same dlbricks as this machine, that checks itself.
"""

import asyncio
import json
import re
import shlex
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from packaging.markers import Marker
from packaging.specifiers import SpecifierSet
from packaging.version import InvalidVersion, Version

from dlbricks_tui.files import parsed_document
from dlbricks_tui.fleet import host_script
from dlbricks_tui.fleet.host_script import ENVIRONMENT
from dlbricks_tui.fleet.messages import HostReport, message_in
from dlbricks_tui.fleet.request import USUAL_PYTHON, FleetError, HostEntry, MessageError, last_line, shell_path
from dlbricks_tui.fleet.results import ImpossibleError, check_report
from dlbricks_tui.jobs.codec import decoded, from_others
from dlbricks_tui.printable import printable
from dlbricks_tui.runtime.traits import traits_of

if TYPE_CHECKING:
    from dlbricks_tui.fleet.ssh import Connect, Finished, SshConnection

GIBIBYTE, MEBIBYTE = 1 << 30, 1 << 20
# An environment with three frameworks takes 0.9 GiB, and the files for it as much again while it is made.
BYTES_TO_INSTALL = 2 * GIBIBYTE
_BYTES_TO_MEASURE = 256 * MEBIBYTE
_OLDEST_PYTHON, _NEWEST_PYTHON, _PYTHONS = (3, 10), (3, 14), "Python 3.10 to 3.14"
# Certificates have a beginning and an end.
_CLOCK_NOTE_SECONDS, _CLOCK_LIMIT_SECONDS = 2.0, 300.0
# Hosts that are examined at the same time. Frameworks are imported from a disk that may be slow.
_AT_ONCE, _SECONDS_TO_CHECK, _SECONDS_TO_START = 16, 120.0, 300.0
_NO_SUCH_COMMAND = (126, 127)
_TOO_OLD = re.compile(r"Python (2|3\.[0-6]\b)")
_INSTALL = "dlbricks fleet doctor --hosts FILE --install"
_ANOTHER_PYTHON = "name another interpreter as python in the hosts file"
_AT_HOST = "dlbricks_tui.fleet.at_host"
# Letters of a text in the facts, and entries of a list.
_MOST_IN_FACTS, _MOST_ENTRIES = 4096, 64


@dataclass(frozen=True, slots=True, kw_only=True)
class HostFacts:
    """The facts that a host's interpreter tells about it and its environment. Texts are empty if it cannot tell."""

    python: str
    implementation: str
    executable: str
    # The names of other interpreters there, such as python3.12.
    others: tuple[str, ...]
    # The interpreter can make environments with pip in them.
    makes_environments: bool
    operating_system: str
    machine: str
    libc: str
    # The absolute path of its folder, and the reason why it cannot be written to.
    folder: str
    obstacle: str
    free_disk: int
    # The environment is one that `--install` has made, or there is none.
    replaceable: bool
    # The interpreter of the environment.
    interpreter: str
    # The time there when the script began and when it ended, in milliseconds since 1970.
    clock_first: int
    clock_last: int


class FindingVerdict(str, Enum):
    """The verdict on one finding."""

    FINE = "fine"
    # The host can measure; its results may be noisier, or something else is worth knowing.
    NOTE = "note"
    # The host gets no work until it has this.
    LACKS = "lacks"


class Readiness(str, Enum):
    """The state of a host that was examined."""

    READY = "ready"
    LACKING = "lacking"
    UNREACHABLE = "unreachable"


@dataclass(frozen=True, slots=True)
class HostFinding:
    """One line about a host: the subject, its state, and the cure, which is empty if none is needed."""

    subject: str
    state: str
    verdict: FindingVerdict = FindingVerdict.FINE
    cure: str = ""
    # True: `fleet doctor --install` is the cure.
    installable: bool = False
    # True: nothing can be installed before the user has cured it.
    blocks_installing: bool = False


_note = partial(HostFinding, verdict=FindingVerdict.NOTE)
_lack = partial(HostFinding, verdict=FindingVerdict.LACKS)
_blocking = partial(_lack, blocks_installing=True)
_to_install = partial(_lack, cure=_INSTALL, installable=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedPackage:
    """A package that a host must have in the version of this machine."""

    name: str
    version: str
    # Where it can be installed: a constraint on the Python version, and an environment marker (PEP 508).
    pythons: str = ""
    condition: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """The requirements on a host that measures for this machine: this dlbricks, and packages of the same versions."""

    dlbricks: str
    # The digest of the files of this dlbricks.
    content: str
    packages: tuple[WantedPackage, ...]
    # The optional parts of dlbricks that are installed with it, such as `fleet`.
    extras: tuple[str, ...]
    # The frameworks of the chosen runtimes, which have to start there.
    frameworks: tuple[str, ...]
    # The Python of this machine, such as 3.11; with another one results are those of another runtime.
    python: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Examination:
    """A host as the doctor found it. Facts that it could not find out are empty or None."""

    host: str
    state: Readiness
    findings: tuple[HostFinding, ...]
    # The id and the name of its system.
    system: str = ""
    system_name: str = ""
    # The bricks that its store has results of.
    bricks: int | None = None
    # The interpreter of the fleet's environment there, which stays the same while a process runs in it.
    interpreter: str = ""
    # What `--install` has done, in one line; empty if there was nothing to do.
    installed: str = ""

    @property
    def lacks(self) -> tuple[HostFinding, ...]:
        """The findings that keep it from measuring."""
        return tuple(it for it in self.findings if it.verdict is FindingVerdict.LACKS)

    @property
    def can_be_set_up(self) -> bool:
        """True if `--install` cures some of it, and nothing keeps it from that."""
        return any(it.installable for it in self.lacks) and not any(it.blocks_installing for it in self.lacks)


def examine_hosts(hosts: Sequence[HostEntry], wanted: Wanted, connect: "Connect") -> tuple[Examination, ...]:
    """Examine hosts side by side, and return what was found in their order."""
    return for_each(hosts, connect, partial(examine, wanted))


def for_each(
    hosts: Sequence[HostEntry],
    connect: "Connect",
    treat: Callable[[HostEntry, "SshConnection"], Awaitable[Examination]],
) -> tuple[Examination, ...]:
    """Treat hosts side by side, some at a time; one that cannot be reached keeps no other one waiting."""

    async def one(host: HostEntry, turn: asyncio.Semaphore) -> Examination:
        async with turn:
            try:
                async with connect(host) as connection:
                    return await treat(host, connection)
            except FleetError as error:
                finding = _lack("reachable", printable(str(error)))
                return Examination(host=host.name, state=Readiness.UNREACHABLE, findings=(finding,))

    async def every() -> Sequence[Examination]:
        turn = asyncio.Semaphore(_AT_ONCE)
        return await asyncio.gather(*(one(host, turn) for host in hosts))

    return tuple(asyncio.run(every()))


async def examine(wanted: Wanted, host: HostEntry, connection: "SshConnection") -> Examination:
    """Examine one host; FleetError if the connection ends."""
    program = script("tell", host.folder_there)
    sent = time.time()
    asked = await connection.run(f"{shell_path(host.python_there)} -I -", program, seconds=_SECONDS_TO_CHECK)
    received = time.time()
    findings, facts, report = [HostFinding("reachable", "yes")], None, None
    if asked.status:
        findings.append(await _no_python(host, connection, asked, wanted))
    else:
        facts = facts_from(asked.out)
        # The clock offset is between these, as the delay each way is unknown; the one nearest to 0 is judged.
        least, most = facts.clock_last / 1000 - received, facts.clock_first / 1000 - sent
        told = await _told_by(facts, wanted, connection) if facts.interpreter else ""
        report = told if isinstance(told, HostReport) else None
        findings += judged(host, facts, told, least if least > 0 else min(most, 0.0), wanted)
        if report is not None and not any(it.installable for it in findings):
            for framework in wanted.frameworks:
                subject, why = traits_of(framework).title, printable(report.failures.get(framework, ""))
                cure = f"{facts.interpreter} -m dlbricks_tui runtimes check says more there"
                failed = _lack(subject, f"does not start: {why}", cure=cure)
                findings.append(failed if why else HostFinding(subject, "starts"))
        for noticed in report.noticed if report is not None else ():
            subject, state, cure = map(printable, noticed)
            findings.append(_note(subject, state, cure=cure) if cure else HostFinding(subject, state))
    lacking = any(it.verdict is FindingVerdict.LACKS for it in findings)
    system = None if report is None else check_report(report)
    return Examination(
        host=host.name,
        state=Readiness.LACKING if lacking else Readiness.READY,
        findings=tuple(findings),
        system=system.id if system else "",
        system_name=printable(system.name) if system else "",
        bricks=report.bricks if report else None,
        interpreter=facts.interpreter if facts else "",
    )


def script(function: str, *arguments: object, **options: object) -> bytes:
    """Return the program for the interpreter of a host that calls one of its functions."""
    literals = [f"json.loads({json.dumps(each)!r})" for each in arguments]
    literals += [f"{name}=json.loads({json.dumps(each)!r})" for name, each in options.items()]
    called = ", ".join(literals)
    return (Path(host_script.__file__).read_text(encoding="utf-8") + f"\n\n{function}({called})\n").encode()


def answer_in(output: bytes) -> bytes:
    """Return the last line of what a program has printed; the files of a shell may print others before it."""
    return output.strip().rpartition(b"\n")[2]


def facts_from(output: bytes) -> HostFacts:
    """Return the facts that a host has printed; raise FleetError unless they are what the program prints."""
    try:
        document = parsed_document(answer_in(output), host_script.FORMAT, host_script.SCHEMA)
        return decoded(HostFacts, document, from_others(_MOST_IN_FACTS, _MOST_ENTRIES, printable))
    except ValueError as error:
        raise FleetError(f"its answer to the doctor {error}; check what this host is") from error


async def _told_by(facts: HostFacts, wanted: Wanted, connection: "SshConnection") -> HostReport | str:
    """Return the report of the dlbricks in the environment of a host, or why there is none."""
    asked_for = json.dumps([wanted.frameworks, [it.name for it in wanted.packages]])
    command = shlex.join([facts.interpreter, "-I", "-m", _AT_HOST, facts.folder, asked_for])
    asked = await connection.run(command, seconds=_SECONDS_TO_START)
    if asked.status:
        return f"does not start: {last_line(asked.err) or f'it ends with status {asked.status}'}"
    try:
        report = message_in(answer_in(asked.out).decode(errors="replace"), HostReport)
        check_report(report)
    except (MessageError, ImpossibleError) as error:
        return f"is not as here: its check of itself {printable(str(error))}"
    return report


async def _no_python(host: HostEntry, connection: "SshConnection", asked: "Finished", wanted: Wanted) -> HostFinding:
    """Return why the interpreter of a host cannot run the doctor, and what to do."""
    python = host.python_there
    version = await connection.run(f"{shell_path(python)} -V", seconds=_SECONDS_TO_CHECK)
    # Earlier versions than 3.4 tell their version as an error.
    told = last_line(version.out or version.err)
    if version.status in _NO_SUCH_COMMAND:
        state = f"no {python} there"
    elif version.status or _TOO_OLD.match(told):
        state = f"{python} is {told or 'no interpreter'}, and {_PYTHONS} are needed"
    else:
        state = f"{python} cannot run the doctor: {last_line(asked.err) or f'status {asked.status}'}"
    others = [f"python3.{minor}" for minor in range(_NEWEST_PYTHON[1], _OLDEST_PYTHON[1] - 1, -1)]
    commands = "; ".join(f"command -v {name}" for name in others)
    found = await connection.run(f"sh -c '{commands}'", seconds=_SECONDS_TO_CHECK)
    names = {line.rpartition("/")[2] for line in found.out.decode(errors="replace").split()}
    if fits := [name for name in others if name in names]:
        usual = f"python{wanted.python}"
        cure = f'write python = "{usual if usual in fits else fits[0]}" for it in the hosts file'
    else:
        cure = f"install {_PYTHONS} there (such as sudo apt install python3 python3-venv)"
        cure += "" if python == USUAL_PYTHON else ", or correct python in the hosts file"
    return _blocking("Python", state, cure=cure)


def judged(
    host: HostEntry, facts: HostFacts, told: HostReport | str, clock_seconds: float, wanted: Wanted
) -> tuple[HostFinding, ...]:
    """Return one finding for each subject.

    `told` is the report of its environment, or why there is none, and `clock_seconds` the least by which its clock can
    be ahead.
    """
    lacks_ours = tuple(_environment(facts, told, wanted))
    must_install = any(it.verdict is FindingVerdict.LACKS for it in lacks_ours)
    used = facts.python, facts.executable
    if isinstance(told, HostReport) and not must_install:
        used = printable(told.python), facts.interpreter
    return (
        _python(facts, *used, wanted),
        *(_obstacles(host, facts) if must_install else _unwritable(facts)),
        *lacks_ours,
        _clock(clock_seconds),
        _room(facts, must_install),
    )


def _python(facts: HostFacts, python: str, executable: str, wanted: Wanted) -> HostFinding:
    """Return the verdict on the version of the interpreter that makes the environment, or of the one in it."""
    state = f"{python} ({executable})"
    usual = f"python{wanted.python}"
    # Another interpreter may be there.
    fits = [it for it in facts.others if not _misfit(facts, it.removeprefix("python"), wanted)]
    another = f"install {usual} there (such as sudo apt install {usual} {usual}-venv), and {_ANOTHER_PYTHON}"
    if fits:
        another = f'write python = "{usual if usual in fits else fits[-1]}" for it in the hosts file'
    if facts.implementation != "CPython":
        return _blocking("Python", f"{facts.implementation} {state}", cure=f"{_ANOTHER_PYTHON}: CPython")
    if not _OLDEST_PYTHON <= _numbers(python)[:2] <= _NEWEST_PYTHON:
        return _blocking("Python", f"{state}, and {_PYTHONS} are needed", cure=another)
    if misfit := _misfit(facts, python, wanted):
        return _blocking("Python", f"{state}, which {misfit.name} {misfit.version} is not made for", cure=another)
    if _minor(python) != wanted.python:
        cure = f'to compare with this machine, write python = "{usual}" for it in the hosts file'
        text = f"{state}, and {wanted.python} here: results are those of another runtime"
        return _note("Python", text, cure=cure if usual in facts.others else "")
    return HostFinding("Python", state)


def _misfit(facts: HostFacts, python: str, wanted: Wanted) -> WantedPackage | None:
    """Return a package that cannot be installed for that Python on this host."""
    release = ".".join(map(str, _numbers(python)))
    system = facts.operating_system
    place = {
        "python_version": _minor(python),
        "python_full_version": release,
        "platform_machine": facts.machine,
        "platform_system": system,
        "sys_platform": system.lower(),
    }
    for package in wanted.packages:
        fits = not package.pythons or SpecifierSet(package.pythons).contains(release)
        marker = Marker(package.condition) if package.condition else None
        if not fits or (marker and not any(marker.evaluate({**place, "extra": it}) for it in wanted.extras)):
            return package
    return None


def _obstacles(host: HostEntry, facts: HostFacts) -> Iterator[HostFinding]:
    """Yield what the user has to do before anything can be installed."""
    if not facts.makes_environments:
        package = f"python{_minor(facts.python)}-venv"
        cure = f"sudo apt install {package} (elsewhere: the package with ensurepip), or {_ANOTHER_PYTHON}"
        yield _blocking("ensurepip", f"{host.python_there} cannot make environments with pip", cure=cure)
    if facts.operating_system == "Linux" and not facts.libc.startswith("glibc"):
        cure = "use a system with glibc, such as Debian, Ubuntu, Fedora or Amazon Linux"
        yield _blocking("C library", f"{facts.libc or 'no glibc'}: frameworks have no wheels for it", cure=cure)
    yield from _unwritable(facts)
    if not facts.replaceable:
        text = f"{facts.folder}/{ENVIRONMENT} was not made by `{_INSTALL}`, which leaves it as it is"
        yield _blocking("environment", text, cure="move it away, or name another folder in the hosts file")


def _unwritable(facts: HostFacts) -> Iterator[HostFinding]:
    """Yield why nothing can be written to the folder of a host: results and logs are, too."""
    if facts.obstacle:
        cure = "make it writable, or name another folder in the hosts file"
        yield _blocking("folder", f"{facts.folder}: {facts.obstacle}", cure=cure)


def _environment(facts: HostFacts, told: HostReport | str, wanted: Wanted) -> Iterator[HostFinding]:
    """Yield the verdicts on what is installed in the environment."""
    place = f"{facts.folder}/{ENVIRONMENT}"
    if not facts.interpreter:
        yield _to_install("environment", f"none in {place}")
        return
    yield HostFinding("environment", place)
    if isinstance(told, str):
        yield _to_install("dlbricks", told)
        return
    version = printable(told.dlbricks)
    if told.dlbricks != wanted.dlbricks:
        yield _to_install("dlbricks", f"{version}, and {wanted.dlbricks} here")
    elif told.content != wanted.content:
        yield _to_install("dlbricks", f"{version} with other files than here")
    else:
        yield HostFinding("dlbricks", version)
    for package in wanted.packages:
        found = printable(told.packages.get(package.name, ""))
        if found == package.version:
            yield HostFinding(package.name, found)
        else:
            yield _to_install(package.name, f"{found or 'none'}, and {package.version} here")


def _clock(seconds: float) -> HostFinding:
    if abs(seconds) < _CLOCK_NOTE_SECONDS:
        return HostFinding("clock", "as here")
    text = f"{abs(seconds):.0f} s {'ahead' if seconds > 0 else 'behind'}"
    cure = "sudo timedatectl set-ntp true there, or correct the clock of this machine"
    if abs(seconds) < _CLOCK_LIMIT_SECONDS:
        return _note("clock", text, cure=cure)
    return _lack("clock", f"{text}: certificates may not be valid yet or any more", cure=cure)


def _room(facts: HostFacts, must_install: bool) -> HostFinding:
    needed = BYTES_TO_INSTALL if must_install else _BYTES_TO_MEASURE
    text = f"{in_bytes(facts.free_disk)} free"
    cure = f"free {in_bytes(needed)} for {facts.folder}, or name a folder on another disk in the hosts file"
    lack = _lack("disk", text, cure=cure, blocks_installing=must_install)
    return lack if facts.free_disk < needed else HostFinding("disk", text)


def _numbers(python: str) -> tuple[int, ...]:
    """Return the numbers of a version of Python; its builds between versions end in a plus sign."""
    try:
        return Version(python.rstrip("+")).release
    except InvalidVersion:
        return (0,)


def _minor(python: str) -> str:
    return ".".join(map(str, _numbers(python)[:2]))


def in_bytes(size: int) -> str:
    """Return a size with its unit."""
    return f"{size / GIBIBYTE:.1f} GiB" if size >= GIBIBYTE else f"{size // MEBIBYTE} MiB"
