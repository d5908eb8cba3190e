"""A check of the dlbricks of a host by itself, once it has the same files as here: do the frameworks start there?"""

import json
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from dlbricks_tui.errors import UserError
from dlbricks_tui.fleet.errors import FleetError
from dlbricks_tui.printable import printable
from dlbricks_tui.untrusted_json import check_fields, parsed_document

_FORMAT = "dlbricks-self-check"
_SCHEMA = 1
_MOST_CHARACTERS = 300


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
        document = parsed_document(content, _FORMAT, _SCHEMA)
        check_fields(document, {"system": str, "system_name": str, "bricks": int, "failures": dict})
        if not all(isinstance(reason, str) for reason in document["failures"].values()) or document["bricks"] < 0:
            raise ValueError("has values that it cannot have")
    except ValueError as error:
        raise FleetError(f"its check of itself {error}; check what this host is") from error
    failures = {name: _short(reason) for name, reason in document["failures"].items()}
    system, name = _short(document["system"]), _short(document["system_name"])
    return SelfCheck(system=system, system_name=name, bricks=document["bricks"], failures=failures)


def _short(text: str) -> str:
    return printable(text)[:_MOST_CHARACTERS]


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
            failures[framework] = str(error)
    bricks = _measured_bricks(data.store, system.id)
    return SelfCheck(system=system.id, system_name=system.name, bricks=bricks, failures=failures)


def _measured_bricks(store: Path, system: str) -> int:
    from dlbricks_tui.store.database import ResultsDatabase
    from dlbricks_tui.store.filters import equal

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
    sys.stdout.write(json.dumps({"format": _FORMAT, "schema": _SCHEMA, **document}) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
