"""What the doctor of a fleet finds out about a host."""

from dataclasses import dataclass
from enum import Enum


class Verdict(str, Enum):
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
    verdict: Verdict
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
    """What a host must have to measure for this machine: this dlbricks, and packages of the same versions."""

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
    # Absolute paths there: the host's folder, and the interpreter of the fleet's environment, which stays the same
    # while a process runs in it. Start workers with this interpreter.
    folder: str = ""
    interpreter: str = ""
    # What `--install` has done, in one line; empty if there was nothing to do.
    installed: str = ""

    @property
    def lacks(self) -> tuple[HostFinding, ...]:
        """The findings that keep it from measuring."""
        return tuple(it for it in self.findings if it.verdict is Verdict.LACKS)

    @property
    def can_be_set_up(self) -> bool:
        """True if `--install` cures some of it, and nothing keeps it from that."""
        return any(it.installable for it in self.lacks) and not any(it.blocks_installing for it in self.lacks)

    @property
    def refusal(self) -> str:
        """The reason in one line why it gets no work, with the cure; empty if it is ready."""
        if not self.lacks:
            return ""
        first = self.lacks[0]
        more = f" (and {len(self.lacks) - 1} more: dlbricks fleet doctor)" if len(self.lacks) > 1 else ""
        return f"{first.subject}: {first.state}" + (f"; {first.cure}" if first.cure else "") + more
