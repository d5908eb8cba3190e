"""The verdicts of the doctor on the facts about a host, each with its cure."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from packaging.markers import Marker
from packaging.specifiers import SpecifierSet
from packaging.version import InvalidVersion, Version

from dlbricks_tui.fleet.request import HostEntry
from dlbricks_tui.fleet.setting_up.host_facts import HostFacts
from dlbricks_tui.fleet.setting_up.host_script import ENVIRONMENT

GIBIBYTE = 1 << 30
MEBIBYTE = 1 << 20
OLDEST_PYTHON, NEWEST_PYTHON = (3, 10), (3, 14)
PYTHONS = "Python 3.10 to 3.14"
# An environment with three frameworks takes 0.9 GiB, and the files for it as much again while it is made.
BYTES_TO_INSTALL = 2 * GIBIBYTE
_BYTES_TO_MEASURE = 256 * MEBIBYTE
_LITTLE_MEMORY = GIBIBYTE
# A larger load of other programs is worth a line, as in `dlbricks doctor`.
_BUSY_SHARE = 0.05
_STOLEN_SHARE = 0.005
_CLOCK_NOTE_SECONDS = 2.0
# Certificates have a beginning and an end.
_CLOCK_LIMIT_SECONDS = 300.0
_INSTALL = "dlbricks fleet doctor --hosts FILE --install"
_ANOTHER_PYTHON = "name another interpreter as python in the hosts file"
_PLATFORMS = {"Linux": "linux", "Darwin": "darwin"}


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


@dataclass(frozen=True, slots=True, kw_only=True)
class HostFinding:
    """One line about a host: the subject, its state, and the cure, which is empty if none is needed."""

    subject: str
    state: str
    verdict: FindingVerdict
    cure: str = ""
    # True: `fleet doctor --install` is the cure.
    installable: bool = False
    # True: nothing can be installed before the user has cured it.
    blocks_installing: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedPackage:
    """A package that a host must have in the version of this machine."""

    name: str
    version: str
    # The hosts that it can be installed on: a version constraint of Python, and a condition as wheels spell it.
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


def judged(host: HostEntry, facts: HostFacts, clock_seconds: float, wanted: Wanted) -> tuple[HostFinding, ...]:
    """Return one finding for each subject; `clock_seconds` is the least by which its clock can be ahead."""
    lacks_ours = tuple(_environment(facts, wanted))
    must_install = any(it.verdict is FindingVerdict.LACKS for it in lacks_ours)
    return (
        *_python(host, facts, wanted, must_install),
        *(_to_install(host, facts) if must_install else ()),
        *lacks_ours,
        *_noise(facts),
        _clock(clock_seconds),
        _disk(facts, must_install),
        _memory(facts),
        _processor(facts),
        _measuring(facts),
    )


def _python(host: HostEntry, facts: HostFacts, wanted: Wanted, must_install: bool) -> Iterator[HostFinding]:
    """Yield the verdict on the interpreter that makes the environment, or on the one in it."""
    python = facts.python if must_install else facts.environment_python
    place = facts.executable if must_install else facts.interpreter
    state = f"{python} ({place})"
    if facts.implementation != "CPython":
        yield _lack("Python", f"{facts.implementation} {state}", f"{_ANOTHER_PYTHON}: CPython", blocks=True)
    elif not OLDEST_PYTHON <= _numbers(python)[:2] <= NEWEST_PYTHON:
        yield _lack("Python", f"{state}, and {PYTHONS} are needed", _other_python(facts, wanted), blocks=True)
    elif misfit := _misfit(facts, python, wanted):
        text = f"{state}, which {misfit.name} {misfit.version} is not made for"
        yield _lack("Python", text, _other_python(facts, wanted), blocks=True)
    elif _minor(python) != wanted.python:
        text = f"{state}, and {wanted.python} here: results are those of another runtime"
        name = f"python{wanted.python}"
        cure = f'to compare with this machine, write python = "{name}" for it in the hosts file'
        yield _note("Python", text, cure if name in facts.others else "")
    else:
        yield _fine("Python", state)


def _other_python(facts: HostFacts, wanted: Wanted) -> str:
    """Return what to do about an interpreter that cannot be used; another one may be there."""
    fits = [it for it in facts.others if not _misfit(facts, it.removeprefix("python"), wanted)]
    usual = f"python{wanted.python}"
    if not fits:
        return f"install {usual} there (such as sudo apt install {usual} {usual}-venv), and {_ANOTHER_PYTHON}"
    name = usual if usual in fits else fits[-1]
    return f'write python = "{name}" for it in the hosts file'


def _misfit(facts: HostFacts, python: str, wanted: Wanted) -> WantedPackage | None:
    """Return a package that cannot be installed for that Python on this host."""
    return next((it for it in wanted.packages if not _fits(it, facts, python, wanted.extras)), None)


def _fits(package: WantedPackage, facts: HostFacts, python: str, extras: tuple[str, ...]) -> bool:
    if package.pythons and not SpecifierSet(package.pythons).contains(_release(python)):
        return False
    if not package.condition:
        return True
    place = {
        "python_version": _minor(python),
        "python_full_version": _release(python),
        "platform_machine": facts.machine,
        "platform_system": facts.operating_system,
        "sys_platform": _PLATFORMS.get(facts.operating_system, facts.operating_system.lower()),
    }
    return any(Marker(package.condition).evaluate({**place, "extra": extra}) for extra in extras)


def _to_install(host: HostEntry, facts: HostFacts) -> Iterator[HostFinding]:
    """Yield what the user has to do before anything can be installed."""
    if not facts.makes_environments:
        package = f"python{_minor(facts.python)}-venv"
        cure = f"sudo apt install {package} (elsewhere: the package with ensurepip), or {_ANOTHER_PYTHON}"
        yield _lack("ensurepip", f"{host.python_there} cannot make environments with pip", cure, blocks=True)
    if facts.operating_system == "Linux" and not facts.libc.startswith("glibc"):
        cure = "use a system with glibc, such as Debian, Ubuntu, Fedora or Amazon Linux"
        yield _lack("C library", f"{facts.libc or 'no glibc'}: frameworks have no wheels for it", cure, blocks=True)
    if facts.obstacle:
        cure = "make it writable, or name another folder in the hosts file"
        yield _lack("folder", f"{facts.folder}: {facts.obstacle}", cure, blocks=True)
    if not facts.replaceable:
        cure = "move it away, or name another folder in the hosts file"
        text = f"{facts.folder}/{ENVIRONMENT} was not made by {_INSTALL}, which leaves it as it is"
        yield _lack("environment", text, cure, blocks=True)


def _environment(facts: HostFacts, wanted: Wanted) -> Iterator[HostFinding]:
    """Yield the verdicts on what is installed in the environment."""
    place = f"{facts.folder}/{ENVIRONMENT}"
    if not facts.interpreter:
        yield _lack("environment", f"none in {place}", _INSTALL, installable=True)
        return
    yield _fine("environment", place)
    if not facts.dlbricks:
        yield _lack("dlbricks", "not installed", _INSTALL, installable=True)
    elif facts.dlbricks != wanted.dlbricks:
        yield _lack("dlbricks", f"{facts.dlbricks}, and {wanted.dlbricks} here", _INSTALL, installable=True)
    elif facts.content != wanted.content:
        yield _lack("dlbricks", f"{facts.dlbricks} with other files than here", _INSTALL, installable=True)
    else:
        yield _fine("dlbricks", facts.dlbricks)
    for package in wanted.packages:
        found = facts.packages.get(package.name, "")
        if found == package.version:
            yield _fine(package.name, found)
        else:
            yield _lack(package.name, f"{found or 'none'}, and {package.version} here", _INSTALL, installable=True)


def _noise(facts: HostFacts) -> Iterator[HostFinding]:
    if not facts.governors:
        yield _fine("governor", "not told")
    elif facts.governors == ("performance",):
        yield _fine("governor", "performance")
    else:
        cure = "sudo cpupower frequency-set -g performance"
        yield _note("governor", ", ".join(facts.governors), cure)
    busy, stolen = facts.busy, facts.stolen
    if busy is None or stolen is None:
        yield _fine("load", "not told")
    elif busy > _BUSY_SHARE or stolen > _STOLEN_SHARE:
        text = f"the processors are {busy:.0%} busy, and {stolen:.1%} of their time goes to other guests"
        yield _note("load", text, "end other programs there: results get noisy, and take longer")
    else:
        yield _fine("load", f"{busy:.0%}")


def _clock(seconds: float) -> HostFinding:
    if abs(seconds) < _CLOCK_NOTE_SECONDS:
        return _fine("clock", "as here")
    text = f"{abs(seconds):.0f} s {'ahead' if seconds > 0 else 'behind'}"
    cure = "sudo timedatectl set-ntp true there, or correct the clock of this machine"
    if abs(seconds) < _CLOCK_LIMIT_SECONDS:
        return _note("clock", text, cure)
    return _lack("clock", f"{text}: certificates may not be valid yet or any more", cure)


def _disk(facts: HostFacts, must_install: bool) -> HostFinding:
    needed = BYTES_TO_INSTALL if must_install else _BYTES_TO_MEASURE
    text = f"{in_bytes(facts.free_disk)} free"
    if facts.free_disk >= needed:
        return _fine("disk", text)
    cure = f"free {in_bytes(needed)} for {facts.folder}, or name a folder on another disk in the hosts file"
    return _lack("disk", text, cure, blocks=must_install)


def _memory(facts: HostFacts) -> HostFinding:
    if facts.free_memory is None:
        return _fine("memory", "not told")
    text = f"{in_bytes(facts.free_memory)} free"
    if facts.free_memory >= _LITTLE_MEMORY:
        return _fine("memory", text)
    return _note("memory", text, "end other programs there: large models may not fit")


def _processor(facts: HostFacts) -> HostFinding:
    cores = f"{facts.cores} core{'' if facts.cores == 1 else 's'}"
    name = facts.cpu or facts.machine
    return _fine("processor", f"{name}, {cores}, {facts.vectors or 'no vector instructions known'}")


def _measuring(facts: HostFacts) -> HostFinding:
    if not facts.measuring:
        return _fine("measuring", "nothing measures there")
    return _note("measuring", f"{facts.measuring} measures there", "the fleet run waits until it has ended")


def _numbers(python: str) -> tuple[int, ...]:
    """Return the numbers of a version of Python; its builds between versions end in a plus sign."""
    try:
        return Version(python.rstrip("+")).release
    except InvalidVersion:
        return (0,)


def _release(python: str) -> str:
    return ".".join(map(str, _numbers(python)))


def _minor(python: str) -> str:
    return ".".join(map(str, _numbers(python)[:2]))


def in_bytes(size: int) -> str:
    """Return a size with its unit."""
    return f"{size / GIBIBYTE:.1f} GiB" if size >= GIBIBYTE else f"{size // MEBIBYTE} MiB"


def _fine(subject: str, state: str) -> HostFinding:
    return HostFinding(subject=subject, state=state, verdict=FindingVerdict.FINE)


def _note(subject: str, state: str, cure: str) -> HostFinding:
    return HostFinding(subject=subject, state=state, verdict=FindingVerdict.NOTE, cure=cure)


def _lack(subject: str, state: str, cure: str, *, installable: bool = False, blocks: bool = False) -> HostFinding:
    return HostFinding(
        subject=subject,
        state=state,
        verdict=FindingVerdict.LACKS,
        cure=cure,
        installable=installable,
        blocks_installing=blocks,
    )
