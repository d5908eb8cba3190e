"""The facts about a host that the doctor asks for: the script that it sends, and the checked answer.

Once the host has the same dlbricks as this machine, this module checks it there: do the frameworks start?
"""

import json
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from dlbricks_tui.errors import UserError
from dlbricks_tui.fleet.errors import FleetError
from dlbricks_tui.fleet.setting_up import host_script
from dlbricks_tui.jobs.codec import decoded, from_others
from dlbricks_tui.printable import printable
from dlbricks_tui.untrusted_json import parsed_document

_CHECK_FORMAT, _CHECK_SCHEMA = "dlbricks-self-check", 1
# Letters of a text in the facts, of one in a check, and entries of a list.
_MOST_IN_FACTS, _MOST_IN_CHECK, _MOST_ENTRIES = 4096, 300, 64


@dataclass(frozen=True, slots=True, kw_only=True)
class HostFacts:
    """Facts about a host. Texts are empty and numbers None if the host cannot tell."""

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
    cpu: str
    cores: int
    vectors: str
    governors: tuple[str, ...]
    busy: float | None
    stolen: float | None
    free_memory: int | None
    # The run that holds the lock of the host.
    measuring: str
    # The absolute path of its folder, and the reason why it cannot be written to.
    folder: str
    obstacle: str
    free_disk: int
    # The environment is one that `--install` has made, or there is none.
    replaceable: bool
    # The interpreter of the environment, and what is installed in it.
    interpreter: str
    environment_python: str
    dlbricks: str
    content: str
    packages: Mapping[str, str]
    # The time there when the script began and when it ended, in milliseconds since 1970.
    clock_first: int
    clock_last: int


def script(function: str, *arguments: object, **options: object) -> bytes:
    """Return the program for the interpreter of a host that calls one of its functions."""
    literals = [f"json.loads({json.dumps(each)!r})" for each in arguments]
    literals += [f"{name}=json.loads({json.dumps(each)!r})" for name, each in options.items()]
    called = ", ".join(literals)
    return (Path(host_script.__file__).read_text(encoding="utf-8") + f"\n\n{function}({called})\n").encode()


def answer_in(output: bytes) -> bytes:
    """Return the last line of what a program has printed; the files of a shell may print others before it."""
    return output.strip().rpartition(b"\n")[2]


def facts_script(folder: str, packages: Sequence[str]) -> bytes:
    """Return the program that prints the facts about a host."""
    return script("tell", folder, list(packages))


def facts_from(output: bytes) -> HostFacts:
    """Return the facts that a host has printed; raise FleetError unless they are what the program prints."""
    try:
        document = parsed_document(answer_in(output), host_script.FORMAT, host_script.SCHEMA)
        return decoded(HostFacts, document, from_others(_MOST_IN_FACTS, _MOST_ENTRIES, printable))
    except ValueError as error:
        raise FleetError(f"its answer to the doctor {error}; check what this host is") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class SelfCheck:
    """The system of a host, the bricks that its store has results of, and why frameworks do not start, by name."""

    system: str = ""
    system_name: str = ""
    bricks: int = 0
    failures: Mapping[str, str]


def self_check_command(interpreter: str, data_path: str, frameworks: Sequence[str]) -> str:
    """Return the command line that checks the dlbricks of an interpreter there."""
    return shlex.join([interpreter, "-I", "-m", __name__, data_path, *frameworks])


def self_check_from(content: bytes) -> SelfCheck:
    """Return the check that a host has printed; raise FleetError unless it is one."""
    try:
        document = parsed_document(content, _CHECK_FORMAT, _CHECK_SCHEMA)
        found = decoded(SelfCheck, document, from_others(_MOST_IN_CHECK, _MOST_ENTRIES, printable))
        if found.bricks < 0:
            raise ValueError("has values that it cannot have")
        return found
    except ValueError as error:
        raise FleetError(f"its check of itself {error}; check what this host is") from error


def check(data_path: Path, frameworks: Sequence[str]) -> SelfCheck:
    """Return the check of this dlbricks; it starts each framework."""
    # Loaded here: the other side needs none of it.
    from dlbricks_tui.folders import DataFolder
    from dlbricks_tui.host.fingerprint import fingerprint
    from dlbricks_tui.runtime.registry import Registry
    from dlbricks_tui.runtime.traits import traits_of

    data, failures = DataFolder(data_path), {}
    system = fingerprint()
    for framework in frameworks:
        try:
            Registry(data.path).check(traits_of(framework).own_runtime)
        except UserError as error:
            failures[framework] = str(error)[:_MOST_IN_CHECK]
    return SelfCheck(
        system=system.id,
        system_name=system.name[:_MOST_IN_CHECK],
        bricks=_measured_bricks(data.store, system.id),
        failures=failures,
    )


def _measured_bricks(store: Path, system: str) -> int:
    from dlbricks_tui.store.database import ResultsDatabase
    from dlbricks_tui.store.selections import equal

    if not store.exists():
        return 0
    with ResultsDatabase(store) as results:
        return len({brick for brick in results.select(equal(system=system), order=()).values("brick") if brick})


def main() -> int:
    """Print the check as JSON; the arguments are the data folder and the frameworks."""
    try:
        document = asdict(check(Path(sys.argv[1]), sys.argv[2:]))
    except UserError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.write(json.dumps({"format": _CHECK_FORMAT, "schema": _CHECK_SCHEMA, **document}) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
